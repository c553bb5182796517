"""A cleaned page to Elements, by what its markup says of each block.

First the blocks are made alike in place (tables read, formulas spelt, notes joined with their marks, code
flattened); what a tag has no place for is written on it as an attribute of our own. Then one walk over the
tree gives an Element for each run of text within a block.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from lxml import etree

from tidemark.adapters.media import syntax_of_attributes
from tidemark.adapters.partition.html.cleaner import clean_html
from tidemark.adapters.partition.html.lines import LINE_END, with_line_ends
from tidemark.adapters.partition.html.math import spell_formulas
from tidemark.adapters.partition.html.tables import (
    LINE_NUMBERS,
    caption_paragraph,
    read_tables,
    table_element,
)
from tidemark.adapters.partition.html.tree import (
    ANCHOR,
    HEADINGS,
    KIND,
    classes_of,
    drop,
    is_permalink,
    text_of,
)
from tidemark.domain.documents import Element, ElementKind, PartitionedDocument

_SYNTAX = "data-tm-syntax"

_BLOCKS = HEADINGS | frozenset(
    {"address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dir", "div", "dl",
     "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "legend",
     "li", "main", "menu", "nav", "noscript", "ol", "p", "pre", "search", "section", "summary", "table",
     "ul"}
)  # fmt: skip
_SILENT = frozenset({"del", "head", "hr", "ix:header", "noframes", "table", "title", "xml"})
"""What is not read as running text; a table is read before."""
_LISTS = frozenset({"ul", "ol", "menu", "dir"})
_KINDS = {
    "pre": ElementKind.CODE,
    "dt": ElementKind.TERM,
    "dd": ElementKind.DEFINITION,
    "blockquote": ElementKind.QUOTE,
    "summary": ElementKind.TERM,
    "legend": ElementKind.CAPTION,
    "figcaption": ElementKind.CAPTION,
}
_DECLARED_KINDS = {
    "term": ElementKind.TERM,
    "caption": ElementKind.CAPTION,
    "formula": ElementKind.FORMULA,
    "definition": ElementKind.DEFINITION,
}
_SEPARATORS = re.compile(r"[|•·»«›‹/\\–—\-,;:>*\s]{1,5}")
_AROUND_LINE_END = re.compile(rf"\s*{LINE_END}\s*")
_INVISIBLE = str.maketrans("", "", "\u00ad\u200b\u2060\ufeff")

_CAPTION_CLASSES = frozenset(
    ["admonition-title", "rubric", "caption", "sidebar-title", "topic-title"]
)
_CALLOUT_CLASSES = frozenset(
    {"admonition", "note", "tip", "warning", "important", "caution", "danger", "hint", "callout",
     "alert"}
)  # fmt: skip
_NUMBERED_CAPTION = re.compile(
    r"\s*(?:table|figure|fig\.|listing|example|exhibit|chart|plate|tabelle|tab\.|abbildung|abb\.|tableau|tabla|figura"
    r"|tabella|tabela|cuadro|afbeelding|表|図|图)\s*(?:[A-Z]?\d[\d.\-–]*|[IVX]{1,5}\b)\s*[.:：–—|-]",
    re.IGNORECASE,
)
_CAPTION_CHARS = 300
_BACKLINK_TEXT = frozenset({"↩", "↩︎", "↑", "↵", "⏎", "^", "↩️", "⤴"})


@dataclass(slots=True)
class _Block:
    """What the text of a block is. prefix: of a list item that has said nothing yet, its number."""

    kind: ElementKind
    level: int | None = None
    depth: int = 0
    anchor: str | None = None
    syntax: str = ""
    prefix: str | None = None

    def element(self, text: str) -> Element | None:
        """A run of its text, None when that says nothing."""
        kind, level = self.kind, self.level
        if kind is not ElementKind.CODE:
            text = " ".join(text.split())
        text = _AROUND_LINE_END.sub("\n", text.translate(_INVISIBLE))
        if kind is ElementKind.TITLE:
            text = text.replace("\n", " ").rstrip("¶ ")
        if not text.strip() or (kind is ElementKind.TEXT and _SEPARATORS.fullmatch(text)):
            return None
        if kind is ElementKind.LIST_ITEM:
            if self.prefix is None:  # a further paragraph of the same item
                kind, level = ElementKind.TEXT, None
            else:
                text, self.prefix = self.prefix + text, None
        return Element(kind, text, level, anchor=self.anchor, syntax=self.syntax)


def partition_page(
    html: str, name: str, max_depth: int, boilerplate: frozenset[int] = frozenset()
) -> PartitionedDocument:
    """Clean and partition a page; ``name`` names it in errors. Raises ``DocumentError``.

    boilerplate: blocks that stand on most pages of its site (``Inspection.blocks``) and go.
    """
    page = clean_html(html, name, max_depth, boilerplate=boilerplate)
    return PartitionedDocument(page.title, tuple(elements_of(page.root)), page.language)


def elements_of(root: etree._Element) -> Iterator[Element]:
    """The blocks under ``root`` as Elements, in document order; the tree is rewritten on the way."""
    _normalise(root)
    blocks: list[_Block] = []
    numbers: dict[etree._Element, int] = {}
    text: list[str] = []
    walk = etree.iterwalk(root, events=("start", "end"))
    for event, element in walk:
        is_block = element is root or element.tag in _BLOCKS
        if is_block:
            made = blocks[-1].element("".join(text)) if blocks and text else None
            text.clear()
            if made is not None:
                yield made
        if event == "start":
            if is_block:
                blocks.append(_block(element, blocks[-1] if blocks else None, numbers))
            table = table_element(element) if element.tag == "table" else None
            if table is not None:
                yield table
            if element.tag in _SILENT:
                walk.skip_subtree()
            else:
                text.append(element.text or "")
        else:
            if is_block:
                blocks.pop()
            if blocks:
                text.append(element.tail or "")


def _block(
    element: etree._Element, outer: _Block | None, numbers: dict[etree._Element, int]
) -> _Block:
    """What an element's text is, from its tag and from the block that it is in."""
    tag, anchor = element.tag, element.get(ANCHOR)
    outer = outer or _Block(ElementKind.TEXT)
    if tag in HEADINGS:
        return _Block(ElementKind.TITLE, int(tag[1]), outer.depth, anchor)
    if tag == "li":
        number = _number(element, numbers)
        depth = outer.depth
        return _Block(ElementKind.LIST_ITEM, max(depth, 1), depth, prefix=number)
    if tag in _LISTS:
        return _Block(ElementKind.TEXT, None, outer.depth + 1)
    kind = _KINDS.get(tag) or _DECLARED_KINDS.get(element.get(KIND) or "")
    if kind is None:
        return outer
    return _Block(kind, None, outer.depth, anchor, element.get(_SYNTAX) or "")


def _number(item: etree._Element, numbers: dict[etree._Element, int]) -> str:
    """ "3. " for the third item of an ordered list, as its reader sees it; "" for a bullet.

    numbers: the next of each list.
    """
    listing = item.getparent()
    if listing is None or listing.tag != "ol":
        return ""
    start, value = listing.get("start") or "", item.get("value") or ""
    number = numbers.get(listing) or (int(start) if start.isdecimal() else 1)
    number = int(value) if value.isdecimal() else number
    numbers[listing] = number + 1
    style = listing.get("type") or "1"
    shown = str(number)
    if style in {"a", "A"} and 1 <= number <= 26:
        shown = chr(ord(style) + number - 1)
    if style in {"i", "I"} and 1 <= number < 40:
        tens, ones = divmod(number, 10)
        shown = "x" * tens + ["", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix"][ones]
        shown = shown if style == "i" else shown.upper()
    return f"{shown}. "


# Blocks made alike.


def _normalise(root: etree._Element) -> None:
    _distribute_tab_labels(root)
    spell_formulas(root)
    _join_note_marks(root)
    read_tables(root)
    for element in list(root.iter("*")):
        if element is root or element.getparent() is not None:
            _rewrite(element, root)
    with_line_ends(root)
    _name_captions(root)
    for heading in list(root.iter(*HEADINGS)):
        if _heads_a_callout(heading, root):
            heading.tag = "p"
            heading.set(KIND, "caption")
        else:
            anchor = _heading_anchor(heading, root)
            if anchor:
                heading.set(ANCHOR, anchor)
    if root.tag != "body":
        root.tag = "div"


def _rewrite(element: etree._Element, root: etree._Element) -> None:
    tag = element.tag
    if tag in _REWRITES:
        _REWRITES[tag](element)
    elif tag == "dt" and element.get("id"):
        element.set(ANCHOR, element.get("id") or "")
    elif tag in {"p", "div"} and _CAPTION_CLASSES & classes_of(element):
        element.set(KIND, "caption")
    if element.get("role") == "heading" and tag not in HEADINGS and element is not root:
        level = element.get("aria-level") or "2"
        element.tag = f"h{level}" if level in "123456" else "h2"


def _terms(element: etree._Element) -> None:
    """Terms without definitions are a list (DocBook writes its tables of contents so)."""
    if element.find(".//dd") is None:
        element.tag = "ul"
        for term in element.iter("dt"):
            term.tag = "li"


def _button(element: etree._Element) -> None:
    """The button of an accordion bears its heading; any other is boilerplate."""
    if any(a.tag in HEADINGS or a.tag in {"summary", "dt"} for a in element.iterancestors()):
        element.tag = "span"
    elif element.get("aria-expanded") is not None and len(text_of(element)) > 12:
        element.tag = "p"
        element.set(KIND, "term")
    else:
        drop(element)


def _anchor(element: etree._Element) -> None:
    """Links back and permalinks go; the heading or term keeps where its permalink points."""
    href = element.get("href") or ""
    if is_permalink(element) and not (element.get("id") and not href):
        owner = next((a for a in element.iterancestors() if a.tag in HEADINGS | {"dt"}), None)
        fragment = href.partition("#")[2]
        if owner is not None and fragment:
            owner.set(ANCHOR, fragment)
        drop(element)
    elif text_of(element) in _BACKLINK_TEXT and href.startswith("#"):
        drop(element)


def _heads_a_callout(heading: etree._Element, root: etree._Element) -> bool:
    """The heading of a note or a warning opens no section: the text after the note is not under it."""
    for owner in heading.iterancestors():
        if owner is root or owner.tag == "body":
            return False
        if _CALLOUT_CLASSES & set((owner.get("class") or "").lower().split()):
            return len(list(owner.iter(*HEADINGS))) == 1
    return False


def _heading_anchor(heading: etree._Element, root: etree._Element) -> str | None:
    """The fragment that shows a heading: its permalink's, its id's, or that of what it heads."""
    own = heading.get(ANCHOR) or heading.get("id")
    if own:
        return str(own)
    before = heading.getprevious()
    named = list(heading.iter("a", "span"))
    if before is not None and before.tag in {"a", "span"} and not _says(before):
        named.append(before)
    for inner in named:
        name = inner.get("id") or inner.get("name")
        if name:
            return str(name)
    element = heading
    for parent in heading.iterancestors():
        if (parent.text or "").strip() or any(map(_says, element.itersiblings(preceding=True))):
            return None
        identifier = parent.get("id")
        if identifier or parent is root:
            return str(identifier) if identifier else None
        element = parent
    return None


def _says(element: etree._Element) -> bool:
    """Whether there is text in it or right after it."""
    return bool(text_of(element) or (element.tail or "").strip())


def _distribute_tab_labels(root: etree._Element) -> None:
    """The label of a tab goes to the head of its panel, so that alternatives are told apart."""
    for labels in [e for e in root.iter("div") if "tabbed-labels" in (e.get("class") or "")]:
        panels = labels.getnext()
        if panels is None or len(panels) != len(labels):
            continue
        for label, panel in zip(list(labels), list(panels), strict=True):
            if text_of(panel):  # else a picture, which is not read
                caption = caption_paragraph(text_of(label))
                caption.tail, panel.text = panel.text, None
                panel.insert(0, caption)
        drop(labels)


def _name_captions(root: etree._Element) -> None:
    """A paragraph such as "Table 3: Prices" right above or below a table or code is its caption."""
    for paragraph in root.iter("p"):
        if paragraph.get(KIND) is not None or not _NUMBERED_CAPTION.match(text_of(paragraph)[:80]):
            continue
        beside = {e.tag for e in (paragraph.getprevious(), paragraph.getnext()) if e is not None}
        if beside & {"table", "pre"} and len(text_of(paragraph)) <= _CAPTION_CHARS:
            paragraph.set(KIND, "caption")


# Code.

_WRAPPING = frozenset(["div", "figure", "span", "td", "tr", "tbody", "table"])
_PROSE = HEADINGS | frozenset(["p", "ul", "ol", "dl", "section", "article", "blockquote"])
_WRAPPERS = 4
"""How far above the code a wrapper may name its language."""
_BLOCK_IN_PRE = frozenset(["div", "p", "li", "tr", "ol", "ul", "table"])


def _flatten_code(element: etree._Element) -> None:
    """Code as one verbatim text: no line numbers, no copy button, a line for each block in it."""
    syntax = _syntax(element)
    if syntax:
        element.set(_SYNTAX, syntax)
    for part in list(element.iter("*")):
        if part is not element and (part.tag == "button" or classes_of(part) & LINE_NUMBERS):
            drop(part)
    parts: list[str] = []
    for event, part in etree.iterwalk(element, events=("start", "end")):
        if event == "start":
            parts += ["\n" if part.tag == "br" else "", part.text or ""]
        elif part is not element:
            if part.tag in _BLOCK_IN_PRE and not parts[-1].endswith("\n"):
                parts.append("\n")
            parts.append(part.tail or "")
    text = "".join(parts).replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ")
    for child in list(element):
        element.remove(child)
    lines = [line.rstrip() for line in text.expandtabs(4).rstrip().split("\n")]
    while lines and not lines[0]:
        del lines[0]
    element.text, element.tag = "\n".join(lines), "pre"


def _syntax(pre: etree._Element) -> str:
    """The language of a block of code: as itself tells, the ``code`` in it, or a wrapper around it."""
    for part in [pre, *pre.iter("code")]:
        syntax = syntax_of_attributes(_attributes(part), is_code=True)
        if syntax:
            return syntax
    for level, wrapper in enumerate(pre.iterancestors()):
        # Where there is prose in a wrapper its classes are not about the code.
        prose = any(child.tag in _PROSE for child in wrapper)
        if level == _WRAPPERS or wrapper.tag not in _WRAPPING or prose:
            break
        syntax = syntax_of_attributes(_attributes(wrapper), is_code=False)
        if syntax:
            return syntax
    return ""


def _attributes(element: etree._Element) -> dict[str, str]:
    return {str(name): str(value) for name, value in element.attrib.items()}


# Notes at the foot of a page: each a block of its own that begins with its mark, "[1] See the archive.".

_NOTE_ROLES = frozenset({"doc-footnote", "doc-endnote", "doc-biblioentry"})
_NOTE_CLASSES = frozenset({"footnote", "citation", "footnote-item"})
_NOTE_ID = re.compile(r"(?:fn|footnote|endnote)[:_.-]?\w", re.IGNORECASE)
_NOTE_MARK = re.compile(r"\w{1,12}|[*†‡§¶]{1,3}")


def _superscript_mark(element: etree._Element) -> None:
    """The mark of a note in running text, in brackets: "them.[1]"."""
    text = text_of(element).strip("[]()")
    if next(element.iter("a"), None) is not None and re.fullmatch(r"\w{1,4}|[*†‡]", text):
        for child in list(element):
            element.remove(child)
        element.text = f"[{text}]"


def _join_note_marks(root: etree._Element) -> None:
    """Put the mark of each note before its text, in whichever way the page parts the two."""
    for note in list(root.iter("aside", "div", "dl", "table", "li")):
        listed = note.tag == "li" and _NOTE_ID.match(note.get("id") or "")
        named = classes_of(note) & _NOTE_CLASSES or note.get("role") in _NOTE_ROLES
        if note is root or not (named or listed):
            continue
        if note.tag in _NOTES:
            _NOTES[note.tag](note)
        elif len(note) and "label" in classes_of(note[0]):  # as docutils writes it
            _join_mark(note[0], note)


def _note_terms(notes: etree._Element) -> None:
    """Notes as terms with definitions, as Sphinx wrote them."""
    for term in list(notes.iterchildren("dt")):
        text = term.getnext()
        if text is not None and text.tag == "dd" and _join_mark(term, text):
            text.tag = "div"
    if not notes.findall("dt"):
        notes.tag = "div"


def _note_rows(notes: etree._Element) -> None:
    """Notes as a table of two columns, as docutils wrote them once."""
    for row in list(notes.iter("tr")):
        cells = [cell for cell in row if cell.tag in {"td", "th"}]
        if len(cells) == 2 and _join_mark(cells[0], cells[1]):
            cells[1].tag = "div"
    if next(notes.iter("td", "th"), None) is None:
        for part in list(notes.iter("table", "tbody", "tr", "colgroup")):
            part.tag = "div"


def _note_item(item: etree._Element) -> None:
    """A note written as an item of a list, which numbers nothing but the notes."""
    notes = item.getparent()
    if notes is None or notes.tag not in {"ol", "ul", "div"}:
        return
    numbered = re.search(r"(\d+|[*†‡])$", item.get("id") or "")
    mark = numbered[1] if numbered else str(notes.index(item) + 1)
    item.tag = "div"
    _prepend(item, f"[{mark}] ")
    if all(child.tag == "div" for child in notes):
        notes.tag = "div"


def _join_mark(label: etree._Element, text: etree._Element) -> bool:
    """Put a label before a text, unless it says more than a mark does."""
    mark = text_of(label).strip("[]() ")
    if not _NOTE_MARK.fullmatch(mark):
        return False
    drop(label)
    _prepend(text, f"[{mark}] ")
    return True


def _prepend(block: etree._Element, mark: str) -> None:
    """Write ``mark`` where the first text of a block begins."""
    first = block
    while not (first.text or "").strip() and len(first) and first[0].tag in {"p", "div"}:
        first = first[0]
    first.text = mark + (first.text or "").lstrip()


_NOTES = {"li": _note_item, "dl": _note_terms, "table": _note_rows}
_REWRITES: dict[str, Callable[[etree._Element], None]] = {
    "dl": _terms,
    "pre": _flatten_code,
    "listing": _flatten_code,
    "xmp": _flatten_code,
    "plaintext": _flatten_code,
    "button": _button,
    "img": drop,  # it would part the paragraph it stands in
    "sup": _superscript_mark,
    "a": _anchor,
}
