"""Clean HTML through Unstructured to Elements, with what Unstructured has no place for carried across.

Each block gets a number in ``data-page-number``, which Unstructured copies to the elements it makes of the
block; by that number an element finds its kind, level, anchor and table again.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lxml import etree

from tidemark.adapters.partition.html.blocks import (
    ANCHOR,
    HEADER_ROWS,
    SYNTAX,
    TABLE_TEXT,
    normalise,
)
from tidemark.adapters.partition.html.boilerplate import HEADINGS
from tidemark.adapters.partition.html.cleaner import clean_html
from tidemark.adapters.partition.html.lines import LINE_END
from tidemark.adapters.partition.html.math import KIND
from tidemark.adapters.partition.unstructured import html_partitioner
from tidemark.domain.documents import Element, ElementKind, PartitionedDocument

_NUMBER = "data-page-number"
_BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "body", "center", "div", "footer", "header", "hgroup",
     "section", "p", "pre", "dl", "ol", "ul", "dd", "dt", "li", "table"}
) | HEADINGS  # fmt: skip
_SEPARATORS = re.compile(r"[|•·»«›‹/\\–—\-,;:>*\s]{1,5}")
_AROUND_LINE_END = re.compile(rf"\s*{LINE_END}\s*")
_INVISIBLE = str.maketrans("", "", "\u00ad\u200b\u2060\ufeff")


@dataclass(frozen=True, slots=True)
class _Mark:
    """What a block is; ``owner`` is the number of the list item it belongs to, ``prefix`` its number."""

    kind: ElementKind
    level: int | None = None
    depth: int = 0
    owner: int | None = None
    prefix: str = ""
    anchor: str | None = None
    table: str | None = None
    header_rows: int = 0
    syntax: str = ""


class _Numbering:
    """The numbers of ordered lists, counted while the page is walked."""

    def __init__(self) -> None:
        self._next: dict[etree._Element, int] = {}
        self._style: dict[etree._Element, str] = {}

    def begin(self, ordered: etree._Element) -> None:
        """Note where a list begins and how it counts, before its attributes go."""
        start = ordered.get("start") or ""
        self._next[ordered] = int(start) if start.isdigit() else 1
        self._style[ordered] = ordered.get("type") or "1"

    def of(self, item: etree._Element) -> str:
        """ "3. " for the third item of an ordered list, as its reader sees it; "" for a bullet."""
        parent = item.getparent()
        if parent is None or parent not in self._next:
            return ""
        value = item.get("value") or ""
        number = int(value) if value.isdigit() else self._next[parent]
        self._next[parent] = number + 1
        return f"{_styled(number, self._style[parent])}. "


def partition_page(
    html: str, name: str, max_depth: int, boilerplate: frozenset[int] = frozenset()
) -> PartitionedDocument:
    """Clean and partition a page; ``name`` names it in errors. Raises ``DocumentError``.

    boilerplate: blocks that stand on most pages of its site (``Inspection.blocks``) and go.
    """
    page = clean_html(html, name, max_depth, boilerplate=boilerplate)
    return PartitionedDocument(page.title, tuple(elements_of(page.root)), page.language)


def elements_of(root: etree._Element) -> Iterator[Element]:
    """The blocks under ``root`` as Elements, in document order."""
    normalise(root)
    marks = _mark(root)
    if root.tag != "body":
        root.tag = "div"
    root.tail = None
    html = etree.tostring(root, method="html", encoding="unicode")
    html = html if root.tag == "body" else f"<body>{html}</body>"
    # languages: without it each call detects the language, which costs more than the rest.
    parts = html_partitioner()(text=f"<html>{html}</html>", languages=[""])
    seen: set[int] = set()
    for part in parts:
        number = part.metadata.page_number
        mark = marks[number] if number is not None else _Mark(ElementKind.TEXT)
        element = _element(part.text, mark, seen)
        if element is not None:
            yield element


def _element(text: str, mark: _Mark, seen: set[int]) -> Element | None:
    text = _AROUND_LINE_END.sub("\n", text.translate(_INVISIBLE))
    kind, level = mark.kind, mark.level
    if mark.table is not None:
        text = mark.table
    elif kind is ElementKind.TITLE:
        text = text.replace("\n", " ").rstrip("¶ ")
    if not text.strip() or (kind is ElementKind.TEXT and _SEPARATORS.fullmatch(text)):
        return None
    if mark.owner is not None and kind is ElementKind.LIST_ITEM:
        if mark.owner in seen:  # a further paragraph of the same item
            kind, level = ElementKind.TEXT, None
        else:
            text = mark.prefix + text
        seen.add(mark.owner)
    return Element(
        kind, text, level, anchor=mark.anchor, header_rows=mark.header_rows, syntax=mark.syntax
    )


def _mark(root: etree._Element) -> list[_Mark]:
    """Number the blocks, strip them of what is not needed any more, and note what they are."""
    marks: list[_Mark] = []
    contexts: dict[etree._Element, _Mark] = {}
    numbering = _Numbering()
    for element in root.iter("*"):
        owner = element.getparent()
        outer = contexts.get(owner) if owner is not None else None
        mark = _derive(element, outer or _Mark(ElementKind.TEXT), len(marks), numbering)
        contexts[element] = mark
        numbered = element.tag in _BLOCKS
        for attribute in list(element.attrib):
            del element.attrib[attribute]
        if numbered:
            element.set(_NUMBER, str(len(marks)))
            marks.append(mark)
    return marks


def _derive(element: etree._Element, parent: _Mark, number: int, numbering: _Numbering) -> _Mark:
    """The mark of an element from its tag and from what its parent is."""
    tag, depth, anchor = element.tag, parent.depth, element.get(ANCHOR)
    if tag in HEADINGS:
        return _Mark(ElementKind.TITLE, int(tag[1]), depth, anchor=anchor)
    if tag == "table":
        rows = int(element.get(HEADER_ROWS) or 0)
        return _Mark(
            ElementKind.TABLE,
            None,
            depth,
            anchor=anchor,
            table=element.get(TABLE_TEXT),
            header_rows=rows,
        )
    if tag == "li":
        return _Mark(ElementKind.LIST_ITEM, max(depth, 1), depth, number, numbering.of(element))
    if tag in {"ul", "ol"}:
        if tag == "ol":
            numbering.begin(element)
        return _Mark(ElementKind.TEXT, None, depth + 1)
    kind = _KINDS.get(tag) or _DECLARED.get(element.get(KIND) or "")
    if kind is not None:
        return _Mark(kind, None, depth, anchor=anchor, syntax=element.get(SYNTAX) or "")
    return parent


_KINDS = {
    "pre": ElementKind.CODE,
    "dt": ElementKind.TERM,
    "dd": ElementKind.DEFINITION,
    "blockquote": ElementKind.QUOTE,
}
_DECLARED = {
    "term": ElementKind.TERM,
    "caption": ElementKind.CAPTION,
    "formula": ElementKind.FORMULA,
    "definition": ElementKind.DEFINITION,
}


def _styled(number: int, style: str) -> str:
    if style in {"a", "A"} and 1 <= number <= 26:
        return chr(ord(style) + number - 1)
    if style in {"i", "I"} and 1 <= number < 40:
        tens, ones = divmod(number, 10)
        roman = "x" * tens + ["", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix"][ones]
        return roman if style == "i" else roman.upper()
    return str(number)
