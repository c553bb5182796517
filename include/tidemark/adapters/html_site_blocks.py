"""The blocks of a cleaned page, and what is left of it without those that are furniture of its site."""

from lxml import etree

from tidemark.adapters.html_furniture import text_of
from tidemark.adapters.html_pruner import drop
from tidemark.domain.site_furniture import LONGEST, block_of

MOST_OF_A_PAGE = 400
"""Blocks told of a page: furniture is at its beginning and end, so the middle of a long page is left out."""
_MOST_DROPPED = 0.5
"""Of a page's text beside links. What would go beyond it is not furniture but pages that say the same."""

_BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "center", "details", "div", "figure", "footer",
     "form", "header", "hgroup", "li", "main", "menu", "nav", "ol", "p", "section", "ul"}
)  # fmt: skip
_KEPT = frozenset({"pre", "table", "math", "h1", "dl", "figcaption"})
"""Never furniture by repetition, and neither is what holds one of them or is in one."""


def blocks_of(root: etree._Element) -> tuple[int, ...]:
    """The numbers of a page's blocks (see ``domain.site_furniture``) in order, each once."""
    found = list(dict.fromkeys(number for _, number in _numbered(root)))
    if len(found) > MOST_OF_A_PAGE:
        found = found[: MOST_OF_A_PAGE // 2] + found[-MOST_OF_A_PAGE // 2 :]
    return tuple(found)


def drop_blocks(root: etree._Element, furniture: frozenset[int]) -> None:
    """Drop the blocks that are furniture, unless that would be much of the page."""
    known = [element for element, number in _numbered(root) if number in furniture]
    if not known:
        return
    inside = set(known)
    outermost = [e for e in known if not any(outer in inside for outer in e.iterancestors())]
    prose, whole = sum(map(_prose, outermost)), _prose(root)
    rest = len(text_of(root)) - sum(len(text_of(e)) for e in outermost)
    if prose <= whole * _MOST_DROPPED and rest > 0:
        for element in outermost:
            drop(element)


def _prose(element: etree._Element) -> int:
    """Characters that are no link."""
    links = sum(len(text_of(a)) for a in element.iter("a"))
    return max(len(text_of(element)) - links, 0)


def _numbered(root: etree._Element) -> list[tuple[etree._Element, int]]:
    """The blocks under ``root`` with their numbers, in order, outer ones first."""
    barred = {root}
    for kept in root.iter(*_KEPT):
        if kept not in barred:
            barred.update(kept.iter(*_KEPT, *_BLOCKS))
            _bar_around(kept, barred)
    found: list[tuple[etree._Element, int]] = []
    # Inner ones first: what holds one that is too long is too long, and need not be read.
    for element in reversed(list(root.iter(*_BLOCKS))):
        if element not in barred:
            text = text_of(element)
            number = block_of(text)
            if number is not None:
                found.append((element, number))
            elif len(text) > LONGEST:
                _bar_around(element, barred)
    return found[::-1]


def _bar_around(element: etree._Element, barred: set[etree._Element]) -> None:
    for outer in element.iterancestors():
        if outer in barred:
            break
        barred.add(outer)
