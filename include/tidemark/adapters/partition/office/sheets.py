"""XLSX and CSV as tables, with each value as its author wrote it.

Both are read without Unstructured, whose data frames turn "007" into 7 and 5 into 5.0 beside an empty cell.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from io import BytesIO
from itertools import chain
from typing import Any
from zipfile import ZipFile

from lxml import etree
from openpyxl import load_workbook

from tidemark.adapters.partition.formats import over_limit
from tidemark.adapters.partition.html.tables import REPEAT_BUDGET, header_rows_of, join_cells
from tidemark.adapters.partition.titles import core_properties
from tidemark.domain.documents import CELL, Element, ElementKind, PartitionedDocument

# The merged cells of a workbook, which its rows do not tell: the value is in the first of them alone.

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_MERGED = re.compile(
    rb'<(?:\w+:)?mergeCell\s[^>]*?ref="([A-Z]{1,3})(\d{1,7}):([A-Z]{1,3})(\d{1,7})"'
)
_PART = 1 << 20
_OVERLAP = 200
_MOST = 20_000


@dataclass(frozen=True, slots=True)
class Span:
    """Merged cells; rows and columns from 0, ends excluded."""

    row: int
    row_end: int
    column: int
    column_end: int


@dataclass(frozen=True, slots=True)
class Row:
    """Values of a row, and where one of them reaches over columns: (column, end)."""

    cells: list[str]
    wide: tuple[tuple[int, int], ...] = ()


def spans_by_sheet(content: bytes) -> dict[str, list[Span]]:
    """The merged cells of each sheet by its name."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)
    spans: dict[str, list[Span]] = {}
    with ZipFile(BytesIO(content)) as archive:
        names = set(archive.namelist())
        if not {"xl/workbook.xml", "xl/_rels/workbook.xml.rels"} <= names:
            return {}
        book = etree.fromstring(archive.read("xl/workbook.xml"), parser)
        relations = etree.fromstring(archive.read("xl/_rels/workbook.xml.rels"), parser)
        targets = {str(r.get("Id")): str(r.get("Target") or "") for r in relations}
        for sheet in book.iter(f"{_MAIN}sheet"):
            target = targets.get(str(sheet.get(_RELATION)), "")
            path = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
            if path in names:
                spans[str(sheet.get("name"))] = list(_read(archive, path))
    return spans


def _read(archive: ZipFile, path: str) -> Iterator[Span]:
    """They stand at the end of a sheet, which is read in parts."""
    kept = b""
    seen: set[Span] = set()
    with archive.open(path) as stream:
        while part := stream.read(_PART):
            text = kept + part
            for left, top, right, bottom in _MERGED.findall(text):
                span = Span(int(top) - 1, int(bottom), _column(left), _column(right) + 1)
                if span not in seen and len(seen) < _MOST:
                    seen.add(span)
                    yield span
            kept = text[-_OVERLAP:]


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number - 1


def with_spans(rows: Iterable[list[str]], spans: Iterable[Span]) -> Iterator[Row]:
    """The rows with each value repeated in the rows that it reaches down into."""
    starting: dict[int, list[Span]] = {}
    for span in spans:
        starting.setdefault(span.row, []).append(span)
    reaching: list[tuple[Span, str]] = []
    budget = REPEAT_BUDGET
    for index, cells in enumerate(rows):
        reaching = [(span, text) for span, text in reaching if span.row_end > index]
        for span, text in reaching:
            if any(cells) and span.column < len(cells) and not cells[span.column] and budget > 0:
                cells[span.column] = text
                budget -= len(text)
        wide: list[tuple[int, int]] = [
            (span.column, span.column_end)
            for span, _ in reaching
            if span.column_end > span.column + 1
        ]
        for span in starting.get(index, ()):
            if span.column >= len(cells) or not cells[span.column]:
                continue
            if span.row_end > index + 1:
                reaching.append((span, cells[span.column]))
            if span.column_end > span.column + 1:
                wide.append((span.column, min(span.column_end, len(cells))))
        yield Row(cells, tuple(wide))


_DELIMITERS = ",;\t|"
_MAX_FIELD = 10_000_000
_MAX_CELLS = 1_000_000
_DEFAULT_SHEETS = ("sheet", "tabelle", "feuil", "hoja", "foglio", "blad", "ark", "лист")


def partition_csv(
    text: str, name: str = "The file", max_cells: int = _MAX_CELLS
) -> PartitionedDocument:
    """Partition delimited text into one table; ``name`` names it in errors.

    Raises ``ValueError`` when it cannot be read and ``DocumentError`` when it has too many cells.
    """
    csv.field_size_limit(_MAX_FIELD)
    counted = _Counter(name, max_cells)
    try:
        rows = [
            Row([_folded(cell) for cell in counted.row(row)])
            for row in csv.reader(io.StringIO(text), _dialect(text))
        ]
    except csv.Error as error:
        raise ValueError(str(error)) from error
    return PartitionedDocument("", tuple(_tables(rows, None)))


def _dialect(text: str) -> type[csv.Dialect]:
    sample = text[:65536].rpartition("\n")[0] or text[:65536]
    lines = sample.split("\n")[:50]
    # The delimiter that parts most lines into the same number of fields.
    scores = {
        d: min((line.count(d) for line in lines if line.strip()), default=0) for d in _DELIMITERS
    }
    best = max(_DELIMITERS, key=lambda d: (scores[d], sum(line.count(d) for line in lines)))

    class Found(csv.excel):
        delimiter = best

    return Found


class _Counter:
    """Counts the cells of a document, and stops at the bound."""

    def __init__(self, name: str, limit: int) -> None:
        self._name = name
        self._limit = limit
        self._cells = 0

    def row(self, cells: list[str]) -> list[str]:
        """The row that was handed in. Raises ``DocumentError`` at the bound."""
        self._cells += max(len(cells), 1)
        if self._cells > self._limit:
            raise over_limit(self._name, f"has more than {self._limit:,} cells in its tables")
        return cells


def partition_xlsx(
    content: bytes, name: str = "The file", max_cells: int = _MAX_CELLS
) -> PartitionedDocument:
    """Partition a workbook: a section for each visible sheet, a table for each block of rows in it.

    ``name`` names it in errors. Raises ``DocumentError`` when it has too many cells.
    """
    counted = _Counter(name, max_cells)
    workbook = load_workbook(io.BytesIO(content), read_only=True, data_only=True)
    try:
        sheets = [s for s in workbook.worksheets if s.sheet_state == "visible"]
        spans = spans_by_sheet(content)
        elements: list[Element] = []
        for number, sheet in enumerate(sheets, start=1):
            width = _declared_width(sheet, max_cells)
            sheet.reset_dimensions()  # it may have less than it says, or more
            cells = (counted.row(_cells(row)) for row in sheet.iter_rows())
            padded = (row + [""] * (width - len(row)) for row in cells)
            rows = with_spans(padded, spans.get(sheet.title, ()))
            blocks = list(_tables(rows, number))
            named = not sheet.title.lower().startswith(_DEFAULT_SHEETS)
            if blocks and (len(sheets) > 1 or named):
                elements.append(Element(ElementKind.TITLE, sheet.title, 1, number))
            elements += blocks
    finally:
        workbook.close()
    title, language = core_properties(content)
    return PartitionedDocument(title, tuple(elements), language)


def _declared_width(sheet: Any, max_cells: int) -> int:
    """The columns that a sheet says it has, 0 where that cannot be believed."""
    width = sheet.max_column or 0
    return width if width * (sheet.max_row or 1) <= max_cells else 0


def _cells(row: Iterable[Any]) -> list[str]:
    return [_shown(cell.value, getattr(cell, "number_format", "") or "") for cell in row]


def _shown(value: Any, number_format: str) -> str:
    """A cell's value as a reader would write it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime):
        return (
            value.date().isoformat() if value.time() == time() else value.isoformat(" ", "minutes")
        )
    if isinstance(value, date | time | timedelta):
        return str(value)
    if isinstance(value, int | float):
        if "%" in number_format:
            return f"{value * 100:.10g}%"
        return (
            str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else f"{value:.15g}"
        )
    return _folded(str(value))


def _folded(text: str) -> str:
    return " ".join(text.split())


def _tables(rows: Iterable[Row], page: int | None) -> Iterator[Element]:
    """Blocks of rows parted by empty ones: a table each, or paragraphs where there is one column only."""
    block: list[Row] = []
    for row in chain(rows, [Row([])]):
        if any(row.cells):
            block.append(row)
        elif block:
            yield from _block(block, page)
            block = []


def _block(block: list[Row], page: int | None) -> Iterator[Element]:
    empty_left = min(next(i for i, cell in enumerate(row.cells) if cell) for row in block)
    wide = [row.wide for row in block]
    cells = [row.cells[empty_left:] for row in block]
    # Titles and remarks stand alone above a table; so does no name of a group of its columns.
    while len(cells) > 1 and sum(map(bool, cells[0])) == 1 and sum(map(bool, cells[1])) != 1:
        if wide[0] and not cells[0][0]:
            break
        yield Element(ElementKind.TEXT, next(filter(None, cells[0])), None, page)
        cells, wide = cells[1:], wide[1:]
    if all(sum(map(bool, row)) == 1 for row in cells) and len(cells) < 4:
        for row in cells:
            yield Element(ElementKind.TEXT, next(filter(None, row)), None, page)
        return
    width = max(len(join_cells(row).split(CELL)) for row in cells[:50])
    header_rows = header_rows_of([row[:width] for row in cells[:5]])
    for row, reaches in zip(cells[:header_rows], wide, strict=False):
        for column, end in reaches:  # a name over several columns names each
            first = column - empty_left
            if 0 <= first < len(row):
                row[first : end - empty_left] = [row[first]] * (len(row[first : end - empty_left]))
    text = "\n".join(join_cells(row) for row in cells)
    yield Element(ElementKind.TABLE, text, None, page, header_rows=header_rows)
