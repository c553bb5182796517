"""A PDF loses its running headers, footers and page numbers; its text keeps the pages it is on."""

from collections.abc import Callable, Iterable

import pytest
from fpdf import FPDF

from tidemark.adapters.partition.pdf.lines import Line, read_pdf
from tidemark.adapters.partition.pdf.reader import partition_pdf

Texts = Iterable[tuple[float, str]]
"""Heights in points from the top, and what stands there."""
FOOT = 815.0
HEAD = 30.0


def pdf(
    pages: int, edges: Callable[[int], Texts], body: Callable[[int], list[str]] | None = None
) -> bytes:
    """An A4 document (842 points high) with text from 100 points down."""
    document = FPDF(unit="pt", format="A4")
    document.set_auto_page_break(False)
    for number in range(1, pages + 1):
        document.add_page()
        document.set_font("Helvetica", size=11)
        said = (
            body(number)
            if body
            else [f"The gauge of basin {number * 3} is read", "at noon and at night."]
        )
        for place, line in enumerate(said):
            document.text(72, 120 + 14 * place, line)
        for height, text in edges(number):
            document.text(72, height, text)
    return bytes(document.output())


def texts(content: bytes) -> list[str]:
    return [line.text.strip() for line in read_pdf(content, "a.pdf", 500).lines]


def roman(number: int) -> str:
    return ["", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii"][number]


CHAPTERS = [
    "On gauges",
    "On gauges",
    "On gauges",
    "On tides",
    "On tides",
    "On ropes",
    "On piers",
    "On piers",
]

RUNNING: dict[str, tuple[int, Callable[[int], Texts]]] = {
    "the same header on every page": (4, lambda n: [(HEAD, "Harbour handbook")]),
    "headers of odd and even pages": (8, lambda n: [(HEAD, "Harbour" if n % 2 else "Handbook")]),
    "a header but on the first page": (4, lambda n: [(HEAD, "Harbour handbook")] if n > 1 else []),
    "a header with the page's number": (5, lambda n: [(HEAD, f"{n} | Harbour handbook")]),
    "page numbers": (5, lambda n: [(FOOT, str(n))]),
    "page numbers that begin later": (5, lambda n: [(FOOT, str(n + 40))]),
    "page numbers between dashes": (5, lambda n: [(FOOT, f"- {n} -")]),
    "Roman page numbers": (9, lambda n: [(FOOT, roman(n))]),
    "Roman, then Arabic page numbers": (12, lambda n: [(FOOT, roman(n) if n < 5 else str(n - 4))]),
    "page numbers of a total": (10, lambda n: [(FOOT, f"Page {n} of 10")]),
    "German page numbers": (4, lambda n: [(FOOT, f"Seite {n} von 4")]),
    "French page numbers": (4, lambda n: [(FOOT, f"{n} / 4")]),
    "page numbers of a chapter": (6, lambda n: [(FOOT, f"3-{n}")]),
    "the name of the chapter": (8, lambda n: [(HEAD, CHAPTERS[n - 1])]),
    "the name of the chapter in a long document": (
        24, lambda n: [(HEAD, f"Of matter {'abcdefgh'[(n - 1) // 3]}")]),
    "a footer of two lines": (4, lambda n: [(800, "Harbour board"), (FOOT, "For members only")]),
    "both in a document of two pages": (2, lambda n: [(HEAD, "Harbour handbook"), (FOOT, str(n))]),
    "a page number on a single page": (1, lambda n: [(FOOT, "Page 1 of 1")]),
}  # fmt: skip


@pytest.mark.parametrize("what", RUNNING)
def test_running_lines_go(what: str) -> None:
    pages, edges = RUNNING[what]
    assert texts(pdf(pages, edges)) == texts(pdf(pages, lambda n: []))


def test_the_pages_of_the_text_are_those_of_the_file_whatever_is_printed_on_them() -> None:
    content = pdf(
        6, lambda n: [(HEAD, "Harbour handbook"), (FOOT, roman(n) if n < 3 else str(n - 2))]
    )
    assert [line.page for line in read_pdf(content, "a.pdf", 9).lines] == [
        1,
        1,
        2,
        2,
        3,
        3,
        4,
        4,
        5,
        5,
        6,
        6,
    ]


def test_a_sentence_goes_on_over_a_header_and_belongs_to_the_page_where_it_begins() -> None:
    content = pdf(
        3,
        lambda n: [(HEAD, "Harbour handbook"), (FOOT, f"Page {n} of 3")],
        lambda n: [
            ["The gauge is read at noon", "and at"],
            ["night by the keeper.", ""],
            ["It is old."],
        ][n - 1],
    )
    found = [(e.page_number, e.text) for e in partition_pdf(content, "a.pdf", 9).elements]
    assert found == [
        (1, "The gauge is read at noon and at night by the keeper."),
        (3, "It is old."),
    ]


STAYING: dict[str, tuple[int, Callable[[int], Texts]]] = {
    "a line at the top of one page": (6, lambda n: [(HEAD, "Seen by the board.")] if n == 1 else []),
    "text that begins at the edge of every page": (
        6, lambda n: [(HEAD, f"Basin {'abcdef'[n - 1] * 3} was read by {'uvwxyz'[n - 1] * 4}")]),
    "a year at the foot of one page": (6, lambda n: [(FOOT, "2026")] if n == 3 else []),
    "a word of Roman digits": (6, lambda n: [(FOOT, "civil")] if n == 2 else []),
    "an amount at the foot of one page": (6, lambda n: [(FOOT, "1,250.00")] if n == 2 else []),
}  # fmt: skip


@pytest.mark.parametrize("what", STAYING)
def test_text_at_the_edge_stays(what: str) -> None:
    pages, edges = STAYING[what]
    expected = [text for n in range(1, pages + 1) for _, text in edges(n)]
    found = texts(pdf(pages, edges))
    assert [text for text in expected if text not in found] == []


def test_a_heading_at_the_top_of_a_page_stays() -> None:
    def lines(page: int) -> list[Line]:
        head = Line(f"Chapter {page}", page, 0, 72, 200, 30, 52, 22.0, True, False, 842)
        text = Line(
            "The gauge is read at noon.", page, 1, 72, 300, 120, 131, 11.0, False, False, 842
        )
        return [head, text, text]

    from tidemark.adapters.partition.pdf.lines import running_lines

    assert running_lines([line for page in range(1, 6) for line in lines(page)]) == set()
