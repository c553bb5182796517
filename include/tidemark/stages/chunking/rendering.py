"""A section's elements as one readable text, and where in it each element stands.

Only white space is added: what a chunk cites is what the document says, no bullet and no bar more.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.domain.model import Element, ElementKind

INDENT = "  "
_ENTRY = frozenset({ElementKind.TERM, ElementKind.DEFINITION})


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
    """One element as text: code verbatim, a table's empty corner kept, a nested list item indented."""
    if element.kind is ElementKind.CODE:
        lines = element.text.rstrip().split("\n")
        while lines and not lines[0].strip():
            lines.pop(0)
        return "\n".join(lines)
    if element.kind is ElementKind.TABLE:
        return element.text.strip("\n ").rstrip()
    text = element.text.strip()
    if element.kind is not ElementKind.LIST_ITEM or not text:
        return text
    return INDENT * (max(element.level or 1, 1) - 1) + text


def separator(before: Element, after: Element) -> str:
    """What stands between two neighbouring elements."""
    same_list = before.kind is ElementKind.LIST_ITEM and after.kind is ElementKind.LIST_ITEM
    same_entry = before.kind in _ENTRY and after.kind is ElementKind.DEFINITION
    same_entry = same_entry or (before.kind is ElementKind.TERM and after.kind is ElementKind.TERM)
    captioned = before.kind is ElementKind.CAPTION and after.kind is not ElementKind.CAPTION
    return "\n" if same_list or same_entry or captioned else "\n\n"
