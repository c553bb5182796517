"""Running headers, footers and page numbers: what stands at the edge of pages and is none of their text.

A line at the edge goes when it returns there on many pages (numbers aside), when it is the page's number, or
when it stands where other pages have a line that returns, set apart from the text: the name of a chapter in
the header changes with the chapter, and a chapter may be one page long.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

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
        slots[_slot(line)].append(index)
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


def _slot(line: Placed) -> int:
    """The height where a line stands, to a few points; pages of another size have places of their own."""
    return round(line.top / 6)


def _shape(line: Placed) -> tuple[str, int]:
    """The text without its numbers, and where it stands."""
    return re.sub(r"\d+", "#", " ".join(line.text.split()).lower()), _slot(line)
