"""A cleaned page in the few block types that a partitioner reads without losing any.

Unstructured leaves out ``details``, ``figure``, forms, labels and buttons, drops ids, and reads tables
without their spans. Here such blocks become ones that it keeps; what it has no place for is written on
the element in attributes of our own (``KIND``, ``ANCHOR``, ``TABLE_TEXT``, ``HEADER_ROWS``, and ``SYNTAX`` of
code).
"""

import re

from lxml import etree

from tidemark.adapters import html_furniture as furniture
from tidemark.adapters.html_code import LINE_NUMBERS, flatten_code
from tidemark.adapters.html_furniture import HEADINGS, text_of
from tidemark.adapters.html_lines import with_line_ends
from tidemark.adapters.html_math import KIND, spell_formulas
from tidemark.adapters.html_notes import join_note_marks, superscript_mark
from tidemark.adapters.html_pruner import drop
from tidemark.adapters.html_tables import caption_of, is_layout, table_text

ANCHOR = "data-tm-anchor"
TABLE_TEXT = "data-tm-table"
HEADER_ROWS = "data-tm-header-rows"

_TO_DIV = frozenset(
    {"details", "figure", "form", "fieldset", "nav", "main", "search", "noscript", "body"}
)
_TO_PARAGRAPH = {"summary": "term", "legend": "caption", "figcaption": "caption"}
_TO_PRE = frozenset({"listing", "xmp", "plaintext"})
_TO_LIST = frozenset({"menu", "dir"})
_CAPTION_CLASSES = frozenset(
    {"admonition-title", "rubric", "caption", "sidebar-title", "topic-title"}
)
_NUMBERED_CAPTION = re.compile(
    r"\s*(?:table|figure|fig\.|listing|example|exhibit|chart|plate|tabelle|tab\.|abbildung|abb\.|tableau|tabla|figura"
    r"|tabella|tabela|cuadro|afbeelding|表|図|图)\s*(?:[A-Z]?\d[\d.\-–]*|[IVX]{1,5}\b)\s*[.:：–—|-]",
    re.IGNORECASE,
)
_CAPTION_CHARS = 300
_CALLOUT_CLASSES = frozenset(
    {
        "admonition",
        "note",
        "tip",
        "warning",
        "important",
        "caution",
        "danger",
        "hint",
        "callout",
        "alert",
    }
)


def normalise(root: etree._Element) -> None:
    """Rewrite the blocks under ``root`` in place."""
    _distribute_tab_labels(root)
    spell_formulas(root)
    join_note_marks(root)
    for element in list(root.iter("table")):
        if element is root or element.getparent() is not None:
            _table(element)
    for element in list(root.iter("*")):
        if element.getparent() is None and element is not root:
            continue
        _rewrite(element, root)
    with_line_ends(root)
    _name_captions(root)
    for heading in list(root.iter(*HEADINGS)):
        if _heads_a_callout(heading, root):
            heading.tag = "p"
            heading.set(KIND, "caption")
            continue
        anchor = _heading_anchor(heading, root)
        if anchor:
            heading.set(ANCHOR, anchor)


def _heads_a_callout(heading: etree._Element, root: etree._Element) -> bool:
    """The heading of a note or a warning opens no section: the text after the note is not under it."""
    for owner in heading.iterancestors():
        if owner is root or owner.tag == "body":
            return False
        if _CALLOUT_CLASSES & set((owner.get("class") or "").lower().split()):
            return len(list(owner.iter(*HEADINGS))) == 1
    return False


def _rewrite(element: etree._Element, root: etree._Element) -> None:
    tag = element.tag
    if tag in _TO_DIV:
        element.tag = "div"
    elif tag in _TO_PARAGRAPH:
        element.tag = "p"
        element.set(KIND, _TO_PARAGRAPH[tag])
    elif tag in _TO_LIST:
        element.tag = "ul"
    elif tag == "dl" and element.find(".//dd") is None:
        _terms_to_list(element)
    elif tag == "pre" or tag in _TO_PRE:
        flatten_code(element)
    elif tag in _INLINE:
        _INLINE[tag](element)
    elif tag == "dt" and element.get("id"):
        element.set(ANCHOR, element.get("id") or "")
    elif tag in {"p", "div"} and _CAPTION_CLASSES & set((element.get("class") or "").split()):
        element.set(KIND, "caption")
    if element.get("role") == "heading" and tag not in HEADINGS and element is not root:
        level = element.get("aria-level") or "2"
        element.tag = f"h{level}" if level in "123456" else "h2"


def _terms_to_list(element: etree._Element) -> None:
    """Terms without definitions are a list (DocBook writes its tables of contents so)."""
    element.tag = "ul"
    for term in element.iter("dt"):
        term.tag = "li"


def _label(element: etree._Element) -> None:
    element.tag = "span"


def _button(element: etree._Element) -> None:
    """The button of an accordion bears its heading; any other is furniture."""
    bears = any(a.tag in HEADINGS or a.tag in {"summary", "dt"} for a in element.iterancestors())
    if bears:
        element.tag = "span"
    elif element.get("aria-expanded") is not None and len(text_of(element)) > 12:
        element.tag = "p"
        element.set(KIND, "term")
    else:
        drop(element)


def _image(element: etree._Element) -> None:
    """An image would part the paragraph it stands in."""
    drop(element)


def _anchor(element: etree._Element) -> None:
    if furniture.is_permalink(element) and not (element.get("id") and not element.get("href")):
        for owner in element.iterancestors():
            if owner.tag in HEADINGS or owner.tag == "dt":
                fragment = (element.get("href") or "").partition("#")[2]
                if fragment:
                    owner.set(ANCHOR, fragment)
                break
        drop(element)
    elif text_of(element) in furniture.BACKLINK_TEXT and (element.get("href") or "").startswith(
        "#"
    ):
        drop(element)


_INLINE = {"label": _label, "button": _button, "img": _image, "sup": superscript_mark, "a": _anchor}


def _table(table: etree._Element) -> None:
    code = [p for p in table.iter("pre") if not _is_line_numbers(p)]
    names = furniture.words_of(table.get("class") or "")
    if len(code) == 1 and (names & {"highlighttable", "rouge"} or _has_line_numbers(table)):
        _unwrap_to(table, code[0])
    elif is_layout(table):
        for part in [table, *table.iter("tr", "td", "th", "tbody", "thead", "tfoot", "caption")]:
            # Parts of a data table inside a cell keep their tags.
            owner = (
                part
                if part is table
                else next(a for a in part.iterancestors() if a.tag in {"table", "div"})
            )
            if part is table or owner.tag == "div":
                part.tag = "div"
    else:
        _data_table(table)


def _data_table(table: etree._Element) -> None:
    read = table_text(table)
    caption = caption_of(table)
    if caption:
        paragraph = etree.Element("p")
        paragraph.text = caption
        paragraph.set(KIND, "caption")
        table.addprevious(paragraph)
    parent = table.getparent()
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
    cell = etree.SubElement(etree.SubElement(table, "tr"), "td")
    cell.text = "table"
    table.set(TABLE_TEXT, read.text)
    table.set(HEADER_ROWS, str(read.header_rows))
    if anchor:
        table.set(ANCHOR, anchor)


def _name_captions(root: etree._Element) -> None:
    """A paragraph such as "Table 3: Prices" right above or below a table or code is its caption."""
    for paragraph in root.iter("p"):
        if paragraph.get(KIND) is not None or not _NUMBERED_CAPTION.match(text_of(paragraph)[:80]):
            continue
        beside = {e.tag for e in (paragraph.getprevious(), paragraph.getnext()) if e is not None}
        if beside & {"table", "pre"} and len(text_of(paragraph)) <= _CAPTION_CHARS:
            paragraph.set(KIND, "caption")


def _is_line_numbers(pre: etree._Element) -> bool:
    return bool(re.fullmatch(r"[\d\s]+", text_of(pre))) and any(
        LINE_NUMBERS & set((a.get("class") or "").split()) for a in [pre, *pre.iterancestors()]
    )


def _has_line_numbers(table: etree._Element) -> bool:
    return any(_is_line_numbers(pre) for pre in table.iter("pre"))


def _unwrap_to(outer: etree._Element, inner: etree._Element) -> None:
    """Put ``inner`` in the place of ``outer``."""
    parent = outer.getparent()
    inner.tail = outer.tail
    if parent is not None:
        parent.replace(outer, inner)


def _distribute_tab_labels(root: etree._Element) -> None:
    """The label of a tab goes to the head of its panel, so that alternatives are told apart."""
    for labels in [e for e in root.iter("div") if "tabbed-labels" in (e.get("class") or "")]:
        panels = labels.getnext()
        if panels is None or len(panels) != len(labels):
            continue
        for label, panel in zip(list(labels), list(panels), strict=True):
            if not text_of(panel):  # a picture, which is not read
                continue
            paragraph = etree.Element("p")
            paragraph.text = text_of(label)
            paragraph.set(KIND, "caption")
            paragraph.tail, panel.text = panel.text, None
            panel.insert(0, paragraph)
        drop(labels)


def _heading_anchor(heading: etree._Element, root: etree._Element) -> str | None:
    """The fragment that shows a heading: its permalink's, its id's, or that of what it heads."""
    own = heading.get(ANCHOR) or heading.get("id")
    if own:
        return str(own)
    for inner in heading.iter("a", "span"):
        name = inner.get("id") or inner.get("name")
        if name:
            return str(name)
    before = heading.getprevious()
    if (
        before is not None
        and before.tag in {"a", "span"}
        and not text_of(before)
        and not (before.tail or "").strip()
    ):
        name = before.get("id") or before.get("name")
        if name:
            return str(name)
    return _container_id(heading, root)


def _container_id(heading: etree._Element, root: etree._Element) -> str | None:
    element = heading
    for parent in heading.iterancestors():
        if (parent.text or "").strip() or any(
            text_of(e) or (e.tail or "").strip() for e in element.itersiblings(preceding=True)
        ):
            return None
        identifier = parent.get("id")
        if identifier:
            return str(identifier)
        if parent is root:
            return None
        element = parent
    return None
