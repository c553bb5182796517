"""Tables as lines: one a row, cells parted by a tab, spans resolved."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lxml import etree

from tidemark.adapters.partition.html.tree import (
    ANCHOR,
    HEADINGS,
    KIND,
    classes_of,
    drop,
    text_of,
    words_of,
)
from tidemark.domain.documents import CELL, Element, ElementKind

_MAX_SPAN = 200
_YEAR = re.compile(r"(?:19|20|21)\d\d(?:[/–-]\d{2,4})?")
_UNIT_LABEL = re.compile(r"units?|einheit(?:en)?|unités?|unidad(?:es)?|unità", re.IGNORECASE)
_ONE_UNIT = (
    r"(?:%|‰|°\s?[CFK]?|€|\$|£|¥|ppm|ppb|psi|bar|min|rpm|dB|pH|lx|lm|cd|ha|lb|oz|ft|yd|mi|mph|knots?|kn"
    r"|[kMGTmµμncdh]?(?:m|g|s|A|V|W|J|N|K|L|l|Pa|Hz|mol|eV|Wh|B|bit|t|h|d|Ω|F|H|T|C|S|b)|EUR|USD|GBP|CHF"
    r"|euros?|dollars?|pounds?|degrees?|days?|hours?|minutes?|seconds?|years?|months?|weeks?|pieces?|pcs\.?|persons?"
    r"|met(?:er|re)s?|kilomet(?:er|re)s?|tonnes?|tons?|lit(?:er|re)s?|inches|inch|feet|miles|percent|per cent"
    r"|Stück|Euro|Tage?|Stunden?|Jahre?|Meter|Grad)"
)
_POWER = r"(?:[²³⁴⁻¹]+|\^?-?[234])?"
_UNIT = re.compile(
    rf"[\[(]?(?:(?:in|en|per|pro|je|par|por)\s)?{_ONE_UNIT}{_POWER}(?:\s?[/·⋅*.]\s?{_ONE_UNIT}{_POWER}"
    rf"|\sper\s{_ONE_UNIT}|\s{_ONE_UNIT}{_POWER}){{0,3}}[\])]?"
)
_BLOCKS = frozenset({"p", "div", "li", "br", "pre", "dt", "dd", "ul", "ol", "tr", "td", "th"})
# Cells repeated over their spans may cost this many characters a table; a page can ask for billions.
REPEAT_BUDGET = 200_000
# A table may grow by its spans to about so many times what is written in it, and a small one by so much.
_REPEAT_FACTOR = 20
_REPEAT_CELLS = 500
_REPEAT_TEXT = 2_000
_TEXT = "data-tm-table"
_HEADER_ROWS = "data-tm-header-rows"
LINE_NUMBERS = frozenset(
    {"linenos", "linenumbers", "lineno", "linenodiv", "gutter", "line-numbers-rows"}
)


def read_tables(root: etree._Element) -> None:
    """Read the tables under ``root``, in place: what is left of one of data is for ``table_element``."""
    for table in list(root.iter("table")):
        in_code = next(table.iterancestors("pre"), None) is not None
        if table is root or (table.getparent() is not None and not in_code):
            _read_table(table)


def table_element(table: etree._Element) -> Element | None:
    """The element of a table that was read, None for one that was not."""
    text = table.get(_TEXT)
    if not text:
        return None
    rows = int(table.get(_HEADER_ROWS) or 0)
    return Element(ElementKind.TABLE, text, anchor=table.get(ANCHOR), header_rows=rows)


def _read_table(table: etree._Element) -> None:
    """A table of data keeps its text alone; one that numbers code, or arranges a page, is none any more."""
    code = [p for p in table.iter("pre") if not _is_line_numbers(p)]
    numbered = words_of(table.get("class") or "") & {"highlighttable", "rouge"}
    parent = table.getparent()
    if len(code) == 1 and (numbered or any(map(_is_line_numbers, table.iter("pre")))):
        code[0].tail = table.tail
        if parent is not None:
            parent.replace(table, code[0])
        return
    if _is_layout(table):
        _unfold_layout(table)
        return
    read = table_text(table)
    caption = table.find("./caption")
    if caption is not None and text_of(caption):
        table.addprevious(caption_paragraph(text_of(caption)))
    around = (
        parent.get("id") if parent is not None and "table" in (parent.get("class") or "") else None
    )
    anchor = table.get("id") or around
    for child in list(table):
        table.remove(child)
    table.text = None
    if not read.text:
        drop(table)
        return
    table.set(_TEXT, read.text)
    table.set(_HEADER_ROWS, str(read.header_rows))
    if anchor:
        table.set(ANCHOR, anchor)


def _unfold_layout(table: etree._Element) -> None:
    table.tag = "div"
    for part in table.iter("tr", "td", "th", "tbody", "thead", "tfoot", "caption"):
        # Parts of a data table inside a cell keep their tags.
        if next(a for a in part.iterancestors() if a.tag in {"table", "div"}).tag == "div":
            part.tag = "div"


def _is_line_numbers(pre: etree._Element) -> bool:
    return bool(re.fullmatch(r"[\d\s]+", text_of(pre))) and any(
        LINE_NUMBERS & classes_of(a) for a in [pre, *pre.iterancestors()]
    )


def caption_paragraph(text: str) -> etree._Element:
    caption = etree.Element("p", {KIND: "caption"})
    caption.text = text
    return caption


@dataclass(frozen=True, slots=True)
class TableText:
    """A table as an Element's text.

    text: one line a row, cells parted by a tab.
    header_rows: how many leading lines are its header.
    """

    text: str
    header_rows: int


def _is_layout(table: etree._Element) -> bool:
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
    spans = _Spans(table)
    only_headers = True
    for row in _rows(table):
        cells = _cells(row)
        part = row.getparent()
        in_head = part is not None and part.tag == "thead"
        is_header = bool(cells) and (in_head or all(cell.tag == "th" for cell in cells))
        line = spans.line(cells, is_header=is_header)
        if not any(line):
            continue
        only_headers = only_headers and is_header
        header_rows += int(only_headers)
        rows.append(line)
    if header_rows == len(rows):
        header_rows = 0
    header_rows += int(header_rows > 0 and _has_units(rows, header_rows))
    return TableText("\n".join(join_cells(row) for row in rows), header_rows)


def join_cells(cells: list[str]) -> str:
    """One row as a line, without empty cells at its end."""
    end = len(cells)
    while end and not cells[end - 1]:
        end -= 1
    return CELL.join(cells[:end])


def header_rows_of(rows: Sequence[Sequence[str]]) -> int:
    """How many leading rows of a table without markup name its columns.

    One row of names; a second one where the first names groups of columns; one of units below them.
    """
    count = int(_names_columns(rows))
    if (
        not count
        and len(rows) > 2
        and _names_groups(rows[0], rows[1])
        and _names_columns(rows[1:], grouped=True)
    ):
        count = 2
    return count + int(count > 0 and _has_units(rows, count))


def _has_units(rows: Sequence[Sequence[str]], index: int) -> bool:
    """Whether a row below the header gives the units of the columns ("in m", "°C"), with numbers under it."""
    if len(rows) <= index + 1:
        return False
    row, below = rows[index], rows[index + 1]
    cells = {
        i: cell
        for i, cell in enumerate(row)
        if cell and not (i == 0 and _UNIT_LABEL.fullmatch(cell))
    }
    if not cells or not all(_UNIT.fullmatch(cell) for cell in cells.values()):
        return False
    return any(i < len(below) and re.search(r"\d", below[i]) for i in cells)


def _names_columns(rows: Sequence[Sequence[str]], *, grouped: bool = False) -> bool:
    """Whether the first row names the columns of those under it; the corner may be empty.

    grouped: names may return, one in each group of columns.
    """
    if len(rows) < 2 or len(rows[0]) < 2:
        return False
    first, below = rows[0], rows[1]
    names = first if first[0] else first[1:]
    labelled = not first[0] and bool(below[:1]) and bool(below[0]) and not _is_number(below[0])
    if not (first[0] or labelled) or not all(names):
        return False
    if not grouped and len(set(names)) < len(names):
        return False
    if any(len(cell) > 60 for cell in names):
        return False
    years = all(_YEAR.fullmatch(cell) for cell in names if _is_number(cell))
    return not any(map(_is_number, names)) or (labelled and years)


def _names_groups(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether a row names groups of the columns that the row below it names: it says less often something."""
    filled = sum(map(bool, first))
    plain = not any(_is_number(cell) and not _YEAR.fullmatch(cell) for cell in first)
    sparse = filled < sum(map(bool, second)) or len({c for c in first if c}) < filled
    return plain and sparse and filled >= 1 and len(second) >= len(first)


def _is_number(text: str) -> bool:
    return text.strip("+-$€£% ").replace(",", "").replace(".", "").isdigit()


def _rows(table: etree._Element) -> list[etree._Element]:
    """The rows in the order they are shown: a footer may be written before the body."""
    parts: dict[str, list[etree._Element]] = {"thead": [], "tbody": [], "tfoot": []}
    for child in table:
        if child.tag == "tr":
            parts["tbody"].append(child)
        elif child.tag in parts:
            parts[child.tag].extend(row for row in child if row.tag == "tr")
    return [row for rows in parts.values() for row in rows]


def _cells(row: etree._Element) -> list[etree._Element]:
    return [cell for cell in row if cell.tag in {"td", "th"}]


class _Spans:
    """Resolves the spans of one table, row by row."""

    def __init__(self, table: etree._Element) -> None:
        self._carried: dict[int, tuple[int, str]] = {}  # column → rows it still reaches, its text
        written = sum(len(text) for text in table.itertext())
        self._budget = min(REPEAT_BUDGET, _REPEAT_TEXT + _REPEAT_FACTOR * written)
        # An empty cell costs a tab too, and a column in each row that it reaches.
        self._cells = _REPEAT_CELLS + _REPEAT_FACTOR * sum(1 for _ in table.iter("td", "th"))

    def line(self, cells: list[etree._Element], *, is_header: bool) -> list[str]:
        """One row, with the cells above that reach into it."""
        line: list[str] = []
        for cell in cells:
            self._take_carried(line)
            text = _cell_text(cell)
            rows_below = _span(cell, "rowspan") - 1
            columns = min(_span(cell, "colspan"), 1 + max(self._cells, 0))
            for offset in range(columns):
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
            if self._cells <= 0:
                # Spent: what is left of the table is read as if nothing reached into it.
                self._carried.clear()
                return
            line.append(self._repeat(text))
            if left > 1:
                self._carried[column] = (left - 1, text)

    def _repeat(self, text: str) -> str:
        self._cells -= 1
        self._budget -= len(text)
        return text if self._budget > 0 else ""


def _span(cell: etree._Element, attribute: str) -> int:
    value = (cell.get(attribute) or "1").strip()
    return min(max(int(value), 1), _MAX_SPAN) if value.isascii() and value.isdigit() else 1


def _cell_text(cell: etree._Element) -> str:
    """The cell's text on one line; blocks in it stay apart."""
    if len(cell) == 0:
        return " ".join((cell.text or "").split())
    parts: list[str] = []
    for event, element in etree.iterwalk(cell, events=("start", "end")):
        text = element.text if event == "start" else element.tail
        if event == "start" or element is not cell:
            parts += [" " if element.tag in _BLOCKS else "", text or ""]
    return " ".join("".join(parts).split())
