"""A PDF's text as lines with their place and font, without running headers and footers."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Protocol, TypeVar

from pdfminer.converter import PDFPageAggregator
from pdfminer.layout import (
    LAParams,
    LTChar,
    LTContainer,
    LTCurve,
    LTFigure,
    LTItem,
    LTLine,
    LTPage,
    LTRect,
    LTTextBox,
    LTTextLine,
)
from pdfminer.pdfdocument import PDFDocument, PDFEncryptionError, PDFPasswordIncorrect
from pdfminer.pdfexceptions import PDFException
from pdfminer.pdfinterp import PDFPageInterpreter, PDFResourceManager
from pdfminer.pdfpage import PDFPage
from pdfminer.pdfparser import PDFParser
from pdfminer.pdftypes import resolve1
from pdfminer.psexceptions import PSException
from pdfminer.utils import decode_text

from tidemark.domain.errors import DocumentError

# Ruled tables of a PDF page: the lines drawn around cells tell which characters belong to which cell.

_SNAP = 3.0
_THIN = 2.5
_MAX_RULES = 4000


@dataclass(frozen=True, slots=True)
class RuledTable:
    """rows: texts of the cells. x0, bottom, x1, top: points, from the page's lower left corner."""

    rows: tuple[tuple[str, ...], ...]
    x0: float
    bottom: float
    x1: float
    top: float

    def holds(self, x: float, y: float) -> bool:
        return self.x0 <= x <= self.x1 and self.bottom <= y <= self.top


@dataclass(slots=True)
class _Rule:
    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def horizontal(self) -> bool:
        return self.x1 - self.x0 > self.y1 - self.y0

    def touches(self, other: "_Rule") -> bool:
        return (
            self.x0 <= other.x1 + _SNAP
            and other.x0 <= self.x1 + _SNAP
            and self.y0 <= other.y1 + _SNAP
            and other.y0 <= self.y1 + _SNAP
        )


def ruled_tables(layout: Iterable[LTItem]) -> list[RuledTable]:
    """The tables of a page that have lines between their rows and their columns."""
    rules = list(_rules(layout))
    if not 5 <= len(rules) <= _MAX_RULES:
        return []
    grids = []
    for group in _connected(rules):
        xs = _positions(
            [r.x0 for r in group if not r.horizontal] + [r.x1 for r in group if not r.horizontal]
        )
        ys = _positions(
            [r.y0 for r in group if r.horizontal] + [r.y1 for r in group if r.horizontal]
        )
        if len(xs) >= 3 and len(ys) >= 3:
            grids.append((xs, ys, group))
    if not grids:
        return []
    chars = list(_chars(layout))
    tables = [_table(xs, ys, group, chars) for xs, ys, group in grids]
    return [
        table for table in tables if sum(1 for row in table.rows if sum(map(bool, row)) > 1) >= 2
    ]


def _rules(items: Iterable[LTItem]) -> Iterator[_Rule]:
    for item in items:
        if isinstance(item, LTLine | LTRect) or (isinstance(item, LTCurve) and item.pts):
            wide, high = item.x1 - item.x0, item.y1 - item.y0
            if wide <= _THIN or high <= _THIN:
                yield _Rule(item.x0, item.y0, item.x1, item.y1)
            elif isinstance(item, LTRect):
                yield _Rule(item.x0, item.y0, item.x0, item.y1)
                yield _Rule(item.x1, item.y0, item.x1, item.y1)
                yield _Rule(item.x0, item.y0, item.x1, item.y0)
                yield _Rule(item.x0, item.y1, item.x1, item.y1)


def _connected(rules: Sequence[_Rule]) -> list[list[_Rule]]:
    """Rules in groups of those that touch, in the order of the page from the top."""
    groups: list[tuple[_Rule, list[_Rule]]] = []
    for rule in sorted(rules, key=lambda r: (-r.y1, r.x0)):
        box, members = _Rule(rule.x0, rule.y0, rule.x1, rule.y1), [rule]
        apart: list[tuple[_Rule, list[_Rule]]] = []
        for other, theirs in groups:
            if box.touches(other):
                box = _Rule(
                    min(box.x0, other.x0),
                    min(box.y0, other.y0),
                    max(box.x1, other.x1),
                    max(box.y1, other.y1),
                )
                members = theirs + members
            else:
                apart.append((other, theirs))
        groups = [*apart, (box, members)]
    return [members for _, members in groups]


def _positions(values: Iterable[float]) -> list[float]:
    """Distinct positions, near ones as one."""
    found: list[float] = []
    for value in sorted(values):
        if not found or value - found[-1] > _SNAP:
            found.append(value)
    return found


def _chars(items: Iterable[LTItem]) -> Iterator[LTChar]:
    for item in items:
        if isinstance(item, LTChar):
            yield item
        elif isinstance(item, LTContainer):
            yield from _chars(item)


def _table(
    xs: Sequence[float], ys: Sequence[float], rules: Sequence[_Rule], chars: Sequence[LTChar]
) -> RuledTable:
    spans = _spans(xs, ys, rules)
    cells: dict[tuple[int, int], list[LTChar]] = {}
    for char in chars:
        column = _slot(xs, (char.x0 + char.x1) / 2)
        row = _slot(ys, (char.y0 + char.y1) / 2)
        if column is not None and row is not None:
            cells.setdefault(spans[row, column], []).append(char)
    texts = {place: _text_of_pdf_tables(found) for place, found in cells.items()}
    top = len(ys) - 2
    rows: list[tuple[str, ...]] = []
    for row in range(top, -1, -1):
        line: list[str] = []
        for column in range(len(xs) - 1):
            place = spans[row, column]
            # A cell is said again in the rows that it reaches into; over columns only where it names them.
            again = place[1] == column or row == top
            line.append(texts.get(place, "") if again else "")
        rows.append(tuple(line))
    return RuledTable(tuple(row for row in rows if any(row)), xs[0], ys[0], xs[-1], ys[-1])


def _spans(
    xs: Sequence[float], ys: Sequence[float], rules: Sequence[_Rule]
) -> dict[tuple[int, int], tuple[int, int]]:
    """For each slot of the grid the first slot, from the upper left, of the cell that it belongs to.

    Two slots are one cell where no line is drawn between them.
    """
    upright: set[tuple[int, int]] = set()
    level: set[tuple[int, int]] = set()
    for rule in rules:
        for place, edge in enumerate(ys if rule.horizontal else xs):
            if abs(edge - (rule.y0 if rule.horizontal else rule.x0)) > _SNAP:
                continue
            along, low, high = (xs, rule.x0, rule.x1) if rule.horizontal else (ys, rule.y0, rule.y1)
            for slot in range(len(along) - 1):
                if low - _SNAP <= (along[slot] + along[slot + 1]) / 2 <= high + _SNAP:
                    (level if rule.horizontal else upright).add((place, slot))
    owners: dict[tuple[int, int], tuple[int, int]] = {}
    for row in range(len(ys) - 2, -1, -1):
        for column in range(len(xs) - 1):
            owner = (row, column)
            if column and (column, row) not in upright:
                owner = owners[row, column - 1]
            elif row < len(ys) - 2 and (row + 1, column) not in level:
                owner = owners[row + 1, column]
            owners[row, column] = owner
    return owners


def _slot(edges: Sequence[float], value: float) -> int | None:
    for index in range(len(edges) - 1):
        if edges[index] - _SNAP / 2 <= value < edges[index + 1]:
            return index
    return None


def _text_of_pdf_tables(chars: Sequence[LTChar]) -> str:
    """Characters of a cell as its reader takes them: by lines from the top, by place within a line."""
    parts: list[str] = []
    before: LTChar | None = None
    for char in sorted(
        chars, key=lambda c: (-round((c.y0 + c.y1) / 2 / max(c.size * 0.6, 1)), c.x0)
    ):
        if before is not None and (char.x0 < before.x0 or char.x0 - before.x1 > before.size * 0.18):
            parts.append(" ")
        parts.append(char.get_text())
        before = char
    return " ".join("".join(parts).split())


# Running headers, footers and page numbers: what stands at the edge of pages and is none of their text.
#
# A line at the edge goes when it returns there on many pages (numbers aside), when it is the page's number,
# or
# when it stands where other pages have a line that returns, set apart from the text: the name of a chapter
# in the header changes with the chapter, and a chapter may be one page long.

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
    """What is asked of a line (see ``pdf_lines.Line``)."""

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
        slots[_slot_of_pdf_running_lines(line)].append(index)
    texts = _text_areas(lines)
    found: set[int] = set()
    for indices in slots.values():
        on = {edge[i].page for i in indices}
        if len(on) < max(3, pages * _SLOT):
            continue
        shapes = _on_pages((_shape(edge[i]), edge[i].page) for i in indices)
        repeated = {i for i in indices if len(shapes[_shape(edge[i])]) >= 2}
        if len({edge[i].page for i in repeated}) < _SLOT * len(on):
            continue
        found |= repeated
        found |= {i for i in indices if i not in repeated and _set_apart(edge[i], texts)}
    return found


def _set_apart(line: Placed, texts: dict[int, tuple[float, float]]) -> bool:
    """Whether there is more than a line's room between a line at the edge and the text of its page."""
    if line.page not in texts:
        return False
    top, bottom = texts[line.page]
    gap = top - line.bottom if line.bottom < line.height / 2 else line.top - bottom
    return gap > 1.2 * (line.bottom - line.top)


def _text_areas(lines: Sequence[Placed]) -> dict[int, tuple[float, float]]:
    """Upper and lower end of what is not at the edge, by page."""
    found: dict[int, tuple[float, float]] = {}
    for line in lines:
        if not _at_edge(line):
            top, bottom = found.get(line.page, (line.top, line.bottom))
            found[line.page] = (min(top, line.top), max(bottom, line.bottom))
    return found


def _page_numbers(edge: dict[int, Placed], pages: int) -> set[int]:
    """Lines that are a page's number: they say so, or count on with the pages.

    In a document of one or two pages a bare number at the edge is taken for one.
    """
    found: set[int] = set()
    counted: dict[int, int] = {}
    for index, line in edge.items():
        match = _PAGE_NUMBER.fullmatch(" ".join(line.text.split()))
        if match is None:
            continue
        number = match["number"]
        if match["word"] or match["of"]:
            found.add(index)
        else:
            counted[index] = (int(number) if number.isdigit() else _roman(number)) - line.page
    offsets = _on_pages((offset, edge[index].page) for index, offset in counted.items())
    return found | {i for i, offset in counted.items() if pages < 3 or len(offsets[offset]) >= 2}


def _roman(numeral: str) -> int:
    values = [{"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}[char] for char in numeral.lower()]
    return sum(
        -value if value < max(values[place:]) else value for place, value in enumerate(values)
    )


def _on_pages(places: Iterable[tuple[_Key, int]]) -> dict[_Key, set[int]]:
    found: dict[_Key, set[int]] = defaultdict(set)
    for key, page in places:
        found[key].add(page)
    return found


def _body_size(lines: Sequence[Placed]) -> float:
    sizes: Counter[float] = Counter()
    for line in lines:
        sizes[line.size] += len(line.text)
    return sizes.most_common(1)[0][0] if sizes else 0.0


def _at_edge(line: Placed) -> bool:
    return line.bottom < line.height * _EDGE or line.top > line.height * (1 - _EDGE)


def _slot_of_pdf_running_lines(line: Placed) -> int:
    """The height where a line stands, to a few points; pages of another size have places of their own."""
    return round(line.top / 6)


def _shape(line: Placed) -> tuple[str, int]:
    """The text without its numbers, and where it stands."""
    return re.sub(r"\d+", "#", " ".join(line.text.split()).lower()), _slot_of_pdf_running_lines(
        line
    )


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
        document = PDFDocument(PDFParser(BytesIO(content)))
        lines = list(_lines(document, name, max_pages))
        title, language = _of_itself(document)
    except (PDFPasswordIncorrect, PDFEncryptionError) as error:
        raise DocumentError(
            "partition", f"{name} is encrypted.", "Save it without a password."
        ) from error
    except DocumentError:
        raise
    except (
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
        raise DocumentError(
            "partition",
            f"{name} is damaged or was cut short ({type(error).__name__}: {error}).",
            "Fetch or export the file again.",
        ) from error
    running = running_lines(lines)
    kept = [line for index, line in enumerate(lines) if index not in running]
    if not any(line.table or re.search(r"\w", line.text) for line in kept):
        raise DocumentError(
            "partition",
            f"{name} has no text, only images.",
            "Recognise its text (OCR) and save it again.",
        )
    return PdfText(kept, title, language)


def _lines(document: PDFDocument, name: str, max_pages: int) -> Iterator[Line]:
    resources = PDFResourceManager()
    device = PDFPageAggregator(resources, laparams=LAParams())
    interpreter = PDFPageInterpreter(resources, device)
    for number, page in enumerate(PDFPage.create_pages(document), start=1):
        if number > max_pages:
            raise DocumentError(
                "partition",
                f"{name} has more than {max_pages} pages.",
                "Exclude it from the source, or split it: this limit is no setting.",
            )
        interpreter.process_page(page)
        layout = device.get_result()
        yield from _page_lines(layout, number)


def _page_lines(layout: LTPage, number: int) -> Iterator[Line]:
    """The lines of a page; a table stands where the first of its lines would."""
    tables = ruled_tables(layout)
    given: set[int] = set()
    for box_number, box in enumerate(_boxes(layout)):
        for line in box:
            if not isinstance(line, LTTextLine) or not line.get_text().strip():
                continue
            x, y = (line.x0 + line.x1) / 2, (line.y0 + line.y1) / 2
            inside = next((i for i, table in enumerate(tables) if table.holds(x, y)), None)
            if inside is None:
                yield _line(line, number, box_number, layout.height)
            elif inside not in given:
                given.add(inside)
                table = tables[inside]
                drawn = _line(line, number, -1 - inside, layout.height)
                yield replace(drawn, text="", table=table.rows)


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


def _of_itself(document: PDFDocument) -> tuple[str, str]:
    title = next((resolve1(info["Title"]) for info in document.info if "Title" in info), b"")
    language = resolve1(document.catalog.get("Lang", b""))
    return _text(title), _text(language)


def _text(value: object) -> str:
    return decode_text(value).strip() if isinstance(value, bytes) else ""
