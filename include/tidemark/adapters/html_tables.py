"""Tables as lines: one a row, cells parted by a tab, spans resolved."""

from dataclasses import dataclass

from lxml import etree

from tidemark.adapters.html_furniture import HEADINGS, text_of
from tidemark.domain.model import CELL

MAX_SPAN = 200
# Cells repeated over their spans may cost this many characters a table; a page can ask for billions.
REPEAT_BUDGET = 200_000


@dataclass(frozen=True, slots=True)
class TableText:
    """A table as an Element's text.

    text: one line a row, cells parted by a tab.
    header_rows: how many leading lines are its header.
    """

    text: str
    header_rows: int


def is_layout(table: etree._Element) -> bool:
    """Whether a table arranges a page instead of data: its cells are then read as blocks."""
    if table.get("role") in {"presentation", "none"}:
        return True
    if table.find(".//table") is not None or next(table.iter(*HEADINGS), None) is not None:
        return True
    rows = [row for row in table.iter("tr") if _cells(row)]
    widest = max((len(_cells(row)) for row in rows), default=0)
    if widest > 1:
        return False
    # One column of blocks is a frame (an admonition, a code sample); one column of words is a list.
    return next(table.iter("p", "pre", "ul", "ol", "dl", "div"), None) is not None or len(rows) < 2


def table_text(table: etree._Element) -> TableText:
    """Read a data table. A cell that spans rows is repeated in each of them, as a reader sees it."""
    rows: list[list[str]] = []
    header_rows = 0
    spans = _Spans()
    only_headers = True
    for row in _rows(table):
        cells = _cells(row)
        is_header = bool(cells) and (_in_head(row) or all(cell.tag == "th" for cell in cells))
        line = spans.line(cells, is_header=is_header)
        if not any(line):
            continue
        only_headers = only_headers and is_header
        header_rows += int(only_headers)
        rows.append(line)
    if header_rows == len(rows):
        header_rows = 0
    return TableText("\n".join(join_cells(row) for row in rows), header_rows)


def join_cells(cells: list[str]) -> str:
    """One row as a line, without empty cells at its end."""
    while cells and not cells[-1]:
        cells = cells[:-1]
    return CELL.join(cells)


def looks_like_header(rows: list[list[str]]) -> bool:
    """Whether the first row of a table without markup names its columns."""
    if len(rows) < 2 or len(rows[0]) < 2:
        return False
    first = rows[0]
    if not all(first) or len(set(first)) < len(first) or any(len(cell) > 60 for cell in first):
        return False
    return not any(_is_number(cell) for cell in first)


def _is_number(text: str) -> bool:
    return text.strip("+-$€£% ").replace(",", "").replace(".", "").isdigit()


def _rows(table: etree._Element) -> list[etree._Element]:
    """The rows in the order they are shown: a footer may be written before the body."""
    body: list[etree._Element] = []
    foot: list[etree._Element] = []
    head: list[etree._Element] = []
    for child in table:
        if child.tag == "tr":
            body.append(child)
        elif child.tag in {"thead", "tbody", "tfoot"}:
            part = {"thead": head, "tbody": body, "tfoot": foot}[child.tag]
            part.extend(row for row in child if row.tag == "tr")
    return head + body + foot


def _in_head(row: etree._Element) -> bool:
    parent = row.getparent()
    return parent is not None and parent.tag == "thead"


def _cells(row: etree._Element) -> list[etree._Element]:
    return [cell for cell in row if cell.tag in {"td", "th"}]


class _Spans:
    """Resolves the spans of one table, row by row."""

    def __init__(self) -> None:
        self._carried: dict[int, tuple[int, str]] = {}  # column → rows it still reaches, its text
        self._budget = REPEAT_BUDGET

    def line(self, cells: list[etree._Element], *, is_header: bool) -> list[str]:
        """One row, with the cells above that reach into it."""
        line: list[str] = []
        for cell in cells:
            self._take_carried(line)
            text = _cell_text(cell)
            rows_below = _span(cell, "rowspan") - 1
            for offset in range(_span(cell, "colspan")):
                # A heading over several columns names each; a wide cell of the body says its text once.
                shown = text if offset == 0 else self._repeat(text if is_header else "")
                if rows_below:
                    self._carried[len(line)] = (rows_below, shown)
                line.append(shown)
        self._take_carried(line)
        return line

    def _take_carried(self, line: list[str]) -> None:
        while (column := len(line)) in self._carried:
            left, text = self._carried.pop(column)
            line.append(self._repeat(text))
            if left > 1:
                self._carried[column] = (left - 1, text)

    def _repeat(self, text: str) -> str:
        self._budget -= len(text)
        return text if self._budget > 0 else ""


def _span(cell: etree._Element, attribute: str) -> int:
    value = (cell.get(attribute) or "1").strip()
    return min(max(int(value), 1), MAX_SPAN) if value.isascii() and value.isdigit() else 1


def _cell_text(cell: etree._Element) -> str:
    """The cell's text on one line; blocks in it stay apart."""
    if len(cell) == 0:
        return " ".join((cell.text or "").split())
    parts: list[str] = []
    for event, element in etree.iterwalk(cell, events=("start", "end")):
        block = element.tag in {
            "p",
            "div",
            "li",
            "br",
            "pre",
            "dt",
            "dd",
            "ul",
            "ol",
            "tr",
            "td",
            "th",
        }
        if event == "start":
            parts.append(" " if block else "")
            parts.append(element.text or "")
        elif element is not cell:
            parts.append(" " if block else "")
            parts.append(element.tail or "")
    return " ".join("".join(parts).split())


def caption_of(table: etree._Element) -> str:
    caption = table.find("./caption")
    return text_of(caption) if caption is not None else ""
