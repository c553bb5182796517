"""The merged cells of a workbook, which its rows do not tell: the value is in the first of them alone."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import BytesIO
from zipfile import ZipFile

from lxml import etree

from tidemark.adapters.html_tables import REPEAT_BUDGET

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
    found: dict[str, list[Span]] = {}
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
                found[str(sheet.get("name"))] = list(_read(archive, path))
    return found


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
    """The rows with each value said again in the rows that it reaches down into."""
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
