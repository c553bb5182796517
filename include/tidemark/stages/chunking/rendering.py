"""A section's elements as one readable text, and where in it each element stands."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.domain.model import Element, ElementKind

INDENT = "  "
_NUMBERED = re.compile(r"(?:\(?(?:\d{1,4}|[A-Za-z]|[ivxIVX]{1,5})[.)]|[-*•‣◦–—])\s")


@dataclass(frozen=True, slots=True)
class Rendered:
    """A text and the half-open character range of each element in it, in order."""

    text: str
    spans: tuple[tuple[int, int], ...]


def render(elements: Sequence[Element]) -> Rendered:
    """Join blocks by blank lines, and the lines of a list or of an entry by line ends.

    Elements without a visible character get an empty range.
    """
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    position = 0
    previous: Element | None = None
    for element in elements:
        text = render_element(element)
        if not text:
            spans.append((position, position))
            continue
        between = separator(previous, element) if previous is not None else ""
        position += len(between)
        parts += (between, text)
        spans.append((position, position + len(text)))
        position += len(text)
        previous = element
    return Rendered("".join(parts), tuple(spans))


def render_element(element: Element) -> str:
    """One element as text; a list item gets its bullet unless it has a number of its own."""
    if element.kind is ElementKind.CODE:
        lines = element.text.rstrip().split("\n")
        while lines and not lines[0].strip():
            lines.pop(0)
        return "\n".join(lines)
    text = element.text.strip()
    if element.kind is not ElementKind.LIST_ITEM or not text:
        return text
    bullet = "" if _NUMBERED.match(text) else "- "
    return INDENT * (max(element.level or 1, 1) - 1) + bullet + text


def separator(before: Element, after: Element) -> str:
    """What stands between two neighbouring elements."""
    same_list = before.kind is ElementKind.LIST_ITEM and after.kind is ElementKind.LIST_ITEM
    same_entry = before.kind is ElementKind.TERM and after.kind in {
        ElementKind.TERM,
        ElementKind.DEFINITION,
    }
    captioned = before.kind is ElementKind.CAPTION and after.kind is not ElementKind.CAPTION
    return "\n" if same_list or same_entry or captioned else "\n\n"
