"""A PDF's text as lines with their place and font, without running headers and footers."""

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Protocol, TypeVar

from pdfminer.layout import LTChar, LTCurve, LTFigure, LTItem, LTPage, LTTextBox, LTTextLine
from pdfminer.pdfdocument import PDFDocument, PDFEncryptionError, PDFPasswordIncorrect
from pdfminer.pdfexceptions import PDFException
from pdfminer.pdfpage import PDFPage
from pdfminer.pdftypes import resolve1
from pdfminer.psexceptions import PSException
from pdfminer.utils import decode_text
from pdfplumber.page import Page
from pdfplumber.pdf import PDF
from pdfplumber.table import Table
from pdfplumber.utils.exceptions import MalformedPDFException, PdfminerException

from tidemark.adapters.partition.formats import damaged, locked, over_limit
from tidemark.domain.errors import DocumentError

_SNAP = 3.0
"""Points by which lines may miss each other and still meet."""
_MAX_RULES = 4000


@dataclass(frozen=True, slots=True)
class RuledTable:
    """rows: texts of the cells. x0, top, x1, bottom: points, from the page's upper left corner."""

    rows: tuple[tuple[str, ...], ...]
    x0: float
    top: float
    x1: float
    bottom: float

    def holds(self, x: float, y: float) -> bool:
        return self.x0 <= x <= self.x1 and self.top <= y <= self.bottom


def ruled_tables(page: Page) -> list[RuledTable]:
    """The tables of a page that have lines between their rows and their columns."""
    if not _may_have_tables(page.layout):
        return []
    left, upper = page.bbox[:2]
    tables: list[RuledTable] = []
    for table in page.find_tables():
        rows = _rows(table)
        if sum(1 for row in rows if sum(map(bool, row)) > 1) >= 2:
            x0, top, x1, bottom = table.bbox
            tables.append(RuledTable(rows, x0 - left, top - upper, x1 - left, bottom - upper))
    return tables


def _may_have_tables(layout: LTPage) -> bool:
    """Whether there are lines enough for two rows and two columns: to look for tables takes time."""
    rules = [item for item in layout if isinstance(item, LTCurve)]
    columns = {round(x / _SNAP) for r in rules if r.height > _SNAP for x in (r.x0, r.x1)}
    rows = {round(y / _SNAP) for r in rules if r.width > _SNAP for y in (r.y0, r.y1)}
    return len(rules) <= _MAX_RULES and len(columns) >= 3 and len(rows) >= 3


def _rows(table: Table) -> tuple[tuple[str, ...], ...]:
    """A cell stands again in the rows that it reaches into; over columns only where it names them."""
    xs = sorted({x for cell in table.cells for x in (cell[0], cell[2])})
    ys = sorted({y for cell in table.cells for y in (cell[1], cell[3])})
    grid = [[""] * (len(xs) - 1) for _ in ys[1:]]
    for row, texts in zip(table.rows, table.extract(x_tolerance_ratio=0.18), strict=True):
        for cell, text in zip(row.cells, texts, strict=True):
            if cell is None or not text:
                continue
            first, end = bisect_left(xs, cell[0]), bisect_left(xs, cell[2])
            for line in range(bisect_left(ys, cell[1]), bisect_left(ys, cell[3])):
                for column in range(first, end if line == 0 else first + 1):
                    grid[line][column] = " ".join(text.split())
    return tuple(tuple(row) for row in grid if any(row))


# Running headers, footers and page numbers: what stands at the edge of pages and is none of their text.
#
# A line at the edge goes when it returns there on many pages (numbers aside), when it is the page's number,
# or when it stands where other pages have a line that returns, set apart from the text: the name of a
# chapter in the header changes with the chapter, and a chapter may be one page long.

_Key = TypeVar("_Key")

_EDGE = 0.09
"""Of a page's height."""
_OFTEN = 0.3
"""Of the pages: odd and even pages may have headers of their own, and chapters begin without one."""
_SLOT = 0.5
"""Of the pages that have a line at a height, so that this is a place for running lines."""

_ROMAN = r"(?=[ivxlc])(?:c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})"
_PAGE = (
    r"(?:page|seite|pages?|página|pagina|pág\.?|pag\.?|bladzijde|blz\.?|s\.|p\.|pg\.?|第|ページ)"
)
_PAGE_NUMBER = re.compile(
    rf"[^\w(]*(?:(?P<word>{_PAGE})\s*)?(?P<number>\d{{1,5}}|{_ROMAN})"
    rf"(?:\s*(?P<of>of|/|von|de|di|van|sur|\|)\s*(?P<all>\d{{1,5}}|{_PAGE}))?(?:\s*[页頁ページ]+.*)?[^\w)]*",
    re.IGNORECASE,
)


class Placed(Protocol):
    """What is asked of a ``Line``."""

    @property
    def text(self) -> str: ...
    @property
    def page(self) -> int: ...
    @property
    def top(self) -> float: ...
    @property
    def bottom(self) -> float: ...
    @property
    def size(self) -> float: ...
    @property
    def height(self) -> float: ...
    @property
    def table(self) -> tuple[tuple[str, ...], ...] | None: ...


def running_lines(lines: Sequence[Placed]) -> set[int]:
    """Which of a document's lines are running headers, footers and page numbers, by their index."""
    pages = {line.page for line in lines}
    body = _body_size(lines)
    # What is larger than the text is a heading that happens to begin a page ("Chapter 3").
    edge = {
        index: line
        for index, line in enumerate(lines)
        if line.table is None and line.size < 1.2 * body and _at_edge(line)
    }
    running = _page_numbers(edge, len(pages))
    if len(pages) < 2:
        return running
    returning = _on_pages((_shape(line), line.page) for line in edge.values())
    least = max(2, round(len(pages) * _OFTEN))
    running |= {i for i, line in edge.items() if len(returning[_shape(line)]) >= least}
    return running | _in_slots(edge, lines, len(pages))


def _in_slots(edge: dict[int, Placed], lines: Sequence[Placed], pages: int) -> set[int]:
    """Lines at a height where most pages have one, mostly the same as on another page."""
    slots: dict[int, list[int]] = defaultdict(list)
    for index, line in edge.items():
        slots[_height_slot(line)].append(index)
    texts = _text_areas(lines)
    running: set[int] = set()
    for indices in slots.values():
        on = {edge[i].page for i in indices}
        if len(on) < max(3, pages * _SLOT):
            continue
        shapes = _on_pages((_shape(edge[i]), edge[i].page) for i in indices)
        repeated = {i for i in indices if len(shapes[_shape(edge[i])]) >= 2}
        if len({edge[i].page for i in repeated}) < _SLOT * len(on):
            continue
        running |= repeated
        running |= {i for i in indices if i not in repeated and _set_apart(edge[i], texts)}
    return running


def _set_apart(line: Placed, texts: dict[int, tuple[float, float]]) -> bool:
    """Whether there is more than a line's room between a line at the edge and the text of its page."""
    if line.page not in texts:
        return False
    top, bottom = texts[line.page]
    gap = top - line.bottom if line.bottom < line.height / 2 else line.top - bottom
    return gap > 1.2 * (line.bottom - line.top)


def _text_areas(lines: Sequence[Placed]) -> dict[int, tuple[float, float]]:
    """Upper and lower end of what is not at the edge, by page."""
    areas: dict[int, tuple[float, float]] = {}
    for line in lines:
        if not _at_edge(line):
            top, bottom = areas.get(line.page, (line.top, line.bottom))
            areas[line.page] = (min(top, line.top), max(bottom, line.bottom))
    return areas


def _page_numbers(edge: dict[int, Placed], pages: int) -> set[int]:
    """Lines that are a page's number: they say so, or count on with the pages.

    In a document of one or two pages a bare number at the edge is taken for one.
    """
    numbers: set[int] = set()
    counted: dict[int, int] = {}
    for index, line in edge.items():
        match = _PAGE_NUMBER.fullmatch(" ".join(line.text.split()))
        if match is None:
            continue
        number = match["number"]
        if match["word"] or match["of"]:
            numbers.add(index)
        else:
            counted[index] = (int(number) if number.isdigit() else _roman(number)) - line.page
    offsets = _on_pages((offset, edge[index].page) for index, offset in counted.items())
    return numbers | {i for i, offset in counted.items() if pages < 3 or len(offsets[offset]) >= 2}


def _roman(numeral: str) -> int:
    values = [{"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}[char] for char in numeral.lower()]
    return sum(
        -value if value < max(values[place:]) else value for place, value in enumerate(values)
    )


def _on_pages(places: Iterable[tuple[_Key, int]]) -> dict[_Key, set[int]]:
    by_key: dict[_Key, set[int]] = defaultdict(set)
    for key, page in places:
        by_key[key].add(page)
    return by_key


def _body_size(lines: Sequence[Placed]) -> float:
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def _at_edge(line: Placed) -> bool:
    return line.bottom < line.height * _EDGE or line.top > line.height * (1 - _EDGE)


def _height_slot(line: Placed) -> int:
    """The height where a line stands, to a few points; pages of another size have places of their own."""
    return round(line.top / 6)


def _shape(line: Placed) -> tuple[str, int]:
    """The text without its numbers, and where it stands."""
    return re.sub(r"\d+", "#", " ".join(line.text.split()).lower()), _height_slot(line)


_BOLD = re.compile(r"bold|black|heavy|semib|demi", re.IGNORECASE)
_MONO = re.compile(r"mono|courier|consol|menlo|typewriter|cmtt|code|fixed", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a page.

    page: from 1. box: number of the text block on the page. x0, x1, top, bottom: points, from the upper
    left corner of the page. size: of its font in points. height: of the page. table: the cells of a ruled
    table that stands here; its text is "".
    """

    text: str
    page: int
    box: int
    x0: float
    x1: float
    top: float
    bottom: float
    size: float
    bold: bool
    mono: bool
    height: float
    table: tuple[tuple[str, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class PdfText:
    """lines: in reading order. title, language: what the file says of itself, "" where it does not."""

    lines: list[Line]
    title: str
    language: str


def read_pdf(content: bytes, name: str, max_pages: int) -> PdfText:
    """Read a PDF's text layer; ``name`` names it in errors.

    Raises ``DocumentError`` for a file that is locked, damaged, too long or without text.
    """
    try:
        document = PDF(BytesIO(content), laparams={})
        lines = list(_lines(document, name, max_pages))
        title, language = _properties(document.doc)
    except (
        PdfminerException,
        MalformedPDFException,
        PDFException,
        PSException,
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        OSError,
        AssertionError,
        RecursionError,
    ) as error:
        # pdfminer lets whatever a broken file provokes through.
        cause = error.args[0] if isinstance(error, PdfminerException) else error
        if isinstance(cause, MemoryError):  # the machine's: no document is to blame
            raise cause from error
        if isinstance(cause, PDFPasswordIncorrect | PDFEncryptionError):
            raise locked(name) from error
        raise damaged(name, f"{type(cause).__name__}: {cause}") from error
    running = running_lines(lines)
    kept = [line for index, line in enumerate(lines) if index not in running]
    if not any(line.table or re.search(r"\w", line.text) for line in kept):
        raise DocumentError(
            "partition",
            f"{name} has no text, only images.",
            "Recognise its text (OCR) and save it again.",
        )
    return PdfText(kept, title, language)


def _lines(document: PDF, name: str, max_pages: int) -> Iterator[Line]:
    for number, page in enumerate(PDFPage.create_pages(document.doc), start=1):
        if number > max_pages:
            raise over_limit(name, f"has more than {max_pages} pages")
        yield from _page_lines(Page(document, page, page_number=number), number)


def _page_lines(page: Page, number: int) -> Iterator[Line]:
    """The lines of a page; a table stands where the first of its lines would."""
    layout: LTPage = page.layout
    tables = ruled_tables(page)
    placed: set[int] = set()
    for box_number, box in enumerate(_boxes(layout)):
        for text_line in box:
            if not isinstance(text_line, LTTextLine) or not text_line.get_text().strip():
                continue
            line = _line(text_line, number, box_number, layout.height)
            x, y = (line.x0 + line.x1) / 2, (line.top + line.bottom) / 2
            inside = next((i for i, table in enumerate(tables) if table.holds(x, y)), None)
            if inside is None:
                yield line
            elif inside not in placed:
                placed.add(inside)
                yield replace(line, box=-1 - inside, text="", table=tables[inside].rows)


def _boxes(container: Iterable[LTItem]) -> Iterator[LTTextBox]:
    for item in container:
        if isinstance(item, LTTextBox):
            yield item
        elif isinstance(item, LTFigure):
            yield from _boxes(item)


def _line(line: LTTextLine, page: int, box: int, height: float) -> Line:
    fonts: Counter[tuple[float, str]] = Counter()
    for char in line:
        if isinstance(char, LTChar) and not char.get_text().isspace():
            fonts[(round(char.size * 2) / 2, char.fontname)] += 1
    size, font = fonts.most_common(1)[0][0] if fonts else (0.0, "")
    return Line(
        text=re.sub(r"\(cid:\d+\)", "", line.get_text()).rstrip("\n").replace("\xa0", " "),
        page=page,
        box=box,
        x0=line.x0,
        x1=line.x1,
        top=height - line.y1,
        bottom=height - line.y0,
        size=size,
        bold=bool(_BOLD.search(font)),
        mono=bool(_MONO.search(font)),
        height=height,
    )


def _properties(document: PDFDocument) -> tuple[str, str]:
    title = next((resolve1(info["Title"]) for info in document.info if "Title" in info), b"")
    language = resolve1(document.catalog.get("Lang", b""))
    return _text(title), _text(language)


def _text(value: object) -> str:
    return decode_text(value).strip() if isinstance(value, bytes) else ""
