"""How many rows of a table without markup are its header, and what merged cells say."""

import io

import pytest
from fpdf import FPDF
from lxml import html
from openpyxl import Workbook

from tidemark.adapters.partition.html.tables import header_rows_of, join_cells, table_text
from tidemark.adapters.partition.office.sheets import partition_csv, partition_xlsx
from tidemark.adapters.partition.pdf.reader import partition_pdf


def cells(text: str) -> list[list[str]]:
    return [row.split(",") for row in text.split("\n")]


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("Name,Height\nA,1", 1),
        ("Name,Height,Heat\n,in m,°C\nA,1,2", 2),
        ("Mix,Mean,Cement\nunit,N/mm²,kg/m³\nM35,43,210", 2),
        (",2024,2025\nNorth,1,2", 1),
        (",North,,South,\nKind,low,high,low,high\noak,1,2,3,4", 2),
        (",North,,South,\nKind,low,high,low,high\n,€,€,€,€\noak,1,2,3,4", 3),
        ("1,2\n3,4", 0),
        ("1991,2012\n3,4", 0),
        ("Word,Meaning\nm,metre\ns,second", 1),
        ("A,B", 0),
    ],
)
def test_header_rows_are_counted(table: str, rows: int) -> None:
    assert header_rows_of(cells(table)) == rows


def test_an_empty_corner_survives_and_empty_ends_do_not() -> None:
    assert join_cells(["", "a", "", ""]) == "\ta"
    table = partition_csv(",2024,2025,\nNorth,1,,\n").elements[0]
    assert table.text == "\t2024\t2025\nNorth\t1"


def test_merged_cells_of_a_sheet_name_each_column_and_each_row() -> None:
    book = Workbook()
    sheet = book.active
    for row in (
        ["Prices of 2026"],
        [None, "North", None, "South", None],
        ["Kind", "low", "high", "low", "high"],
        ["oak", 1, 2, 3, 4],
        [None, 5, "none", None, 6],
    ):
        sheet.append(row)
    for merged in ("A1:E1", "B2:C2", "D2:E2", "A4:A5", "C5:D5"):
        sheet.merge_cells(merged)
    stream = io.BytesIO()
    book.save(stream)
    title, table = partition_xlsx(stream.getvalue()).elements
    assert title.text == "Prices of 2026"
    assert table.text.split("\n") == [
        "\tNorth\tNorth\tSouth\tSouth",
        "Kind\tlow\thigh\tlow\thigh",
        "oak\t1\t2\t3\t4",
        "oak\t5\tnone\t\t6",
    ]
    assert table.header_rows == 2


def test_merged_cells_of_a_ruled_table_in_a_pdf_are_read_whole() -> None:
    paper = FPDF()
    paper.add_page()
    paper.set_font("helvetica", size=11)
    paper.cell(0, 8, "Prices are those of the season.", new_x="LMARGIN", new_y="NEXT")
    with paper.table(first_row_as_headings=False) as table:
        row = table.row()
        row.cell("Kind", rowspan=2)
        row.cell("Northern and southern quay", colspan=2, align="C")
        for texts in (["low", "high"], ["oak", "1", "2"], ["ash", "3", "4"]):
            row = table.row()
            for text in texts:
                row.cell(text)
    document = partition_pdf(bytes(paper.output()), "a.pdf", 10)
    read = document.elements[-1]
    assert read.text.split("\n") == [
        "Kind\tNorthern and southern quay\tNorthern and southern quay",
        "Kind\tlow\thigh",
        "oak\t1\t2",
        "ash\t3\t4",
    ]
    assert read.header_rows == 2


@pytest.mark.parametrize(
    "cell",
    ["<td colspan=1000 rowspan=65000>x</td>", "<td colspan=1000 rowspan=65000></td><td>y</td>",
     "<th colspan=1000 rowspan=65000>a long name of a column</th>"],
)  # fmt: skip
@pytest.mark.parametrize("rows", [1, 300])
def test_spans_make_a_table_no_more_than_a_few_times_larger(cell: str, rows: int) -> None:
    source = f"<table>{f'<tr>{cell}</tr>' * rows}</table>"
    text = table_text(html.fromstring(source)).text
    assert 0 < len(text) <= 3_000 + 10 * len(source)
    assert text.count("\n") == rows - 1, "no row is lost"


def test_the_spans_of_an_honest_table_are_all_read() -> None:
    head = "<tr><th>Part</th><th colspan=40>Week</th></tr>"
    groups = "".join(
        f"<tr><td rowspan=30>group {g}</td><td>a</td></tr>" + "<tr><td>b</td></tr>" * 29
        for g in range(40)
    )
    lines = table_text(html.fromstring(f"<table>{head}{groups}</table>")).text.split("\n")
    assert lines[0].split("\t") == ["Part"] + ["Week"] * 40
    assert lines[1:31] == ["group 0\ta"] + ["group 0\tb"] * 29
    assert lines[-1] == "group 39\tb"


def table_of(rows: str) -> str:
    return table_text(html.fromstring(f"<table>{rows}</table>")).text


def test_a_cell_over_several_rows_is_said_in_each() -> None:
    head = "<tr><th>Place</th><th>Depth</th></tr>"
    rows = f"{head}<tr><td rowspan=2>Pier</td><td>3 m</td></tr><tr><td>4 m</td></tr>"
    assert table_of(rows) == "Place\tDepth\nPier\t3 m\nPier\t4 m"


def test_a_heading_over_several_columns_names_each_of_them() -> None:
    rows = "<tr><th colspan=2>Depth</th></tr><tr><th>low</th><th>high</th></tr><tr><td>1</td><td>2</td></tr>"
    assert table_of(rows) == "Depth\tDepth\nlow\thigh\n1\t2"


def test_spans_that_ask_for_billions_of_cells_are_bounded() -> None:
    cell = "<td colspan=99999 rowspan=99999>" + "x" * 999 + "</td>"
    assert len(table_of(f"<tr>{cell}</tr>" + "<tr><td>y</td><td>z</td></tr>" * 300)) < 2_000_000
