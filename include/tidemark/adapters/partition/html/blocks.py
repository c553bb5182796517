"""A cleaned page in the few block types that a partitioner reads without losing any.

Unstructured leaves out ``details``, ``figure``, forms, labels and buttons, drops ids, and reads tables
without their spans. Here such blocks become ones that it keeps; what it has no place for is written on
the element in attributes of our own (``KIND``, ``ANCHOR``, ``TABLE_TEXT``, ``HEADER_ROWS``, and ``SYNTAX`` of
code).
"""

import re

from lxml import etree

from tidemark.adapters.media import syntax_of_attributes
from tidemark.adapters.partition.html import boilerplate as boilerplate
from tidemark.adapters.partition.html.boilerplate import HEADINGS, drop, text_of
from tidemark.adapters.partition.html.lines import with_line_ends
from tidemark.adapters.partition.html.math import KIND, spell_formulas
from tidemark.adapters.partition.html.tables import caption_of, is_layout, table_text

# Blocks of code on a page: their text as it stands, and the language that the markup names.

SYNTAX = "data-tm-syntax"
LINE_NUMBERS = frozenset(
    {"linenos", "linenumbers", "lineno", "linenodiv", "gutter", "line-numbers-rows"}
)
_WRAPPING = frozenset({"div", "figure", "span", "td", "tr", "tbody", "table"})
_PROSE = frozenset({"p", "ul", "ol", "dl", "section", "article", "blockquote"}) | HEADINGS
_WRAPPERS = 4
"""How far above the code a wrapper may name its language."""
_BLOCK_IN_PRE = frozenset({"div", "p", "li", "tr", "ol", "ul", "table"})


def flatten_code(element: etree._Element) -> None:
    """Code as one verbatim text: no line numbers, no copy button, a line for each block in it."""
    syntax = _syntax(element)
    if syntax:
        element.set(SYNTAX, syntax)
    _drop_controls(element)
    parts: list[str] = []
    for event, part in etree.iterwalk(element, events=("start", "end")):
        if event == "start":
            if part.tag == "br":
                parts.append("\n")
            parts.append(part.text or "")
        elif part is not element:
            if part.tag in _BLOCK_IN_PRE and not (parts and parts[-1].endswith("\n")):
                parts.append("\n")
            parts.append(part.tail or "")
    text = "".join(parts).replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ")
    for child in list(element):
        element.remove(child)
    lines = text.expandtabs(4).rstrip().split("\n")
    while lines and not lines[0].strip():
        lines = lines[1:]
    # The first and the last line end are the markup's own and are taken off again by the partitioner.
    element.text = "\n" + "\n".join(line.rstrip() for line in lines) + "\n"
    element.tag = "pre"


def _drop_controls(pre: etree._Element) -> None:
    for part in list(pre.iter("*")):
        names = set((part.get("class") or "").split())
        if part is not pre and (part.tag == "button" or names & LINE_NUMBERS):
            drop(part)


def _syntax(pre: etree._Element) -> str:
    """The language of a block of code: as itself tells, the ``code`` in it, or a wrapper around it."""
    for part in [pre, *pre.iter("code")]:
        named = syntax_of_attributes(_attributes(part), is_code=True)
        if named:
            return named
    for level, wrapper in enumerate(pre.iterancestors()):
        if level == _WRAPPERS or wrapper.tag not in _WRAPPING or _says_more(wrapper):
            break
        named = syntax_of_attributes(_attributes(wrapper), is_code=False)
        if named:
            return named
    return ""


def _says_more(wrapper: etree._Element) -> bool:
    """Whether there is prose in it: then its classes are not about the code."""
    return any(child.tag in _PROSE for child in wrapper)


def _attributes(element: etree._Element) -> dict[str, str]:
    return {str(name): str(value) for name, value in element.attrib.items()}


# Notes at the foot of a page: each a block of its own that begins with its mark, "[1] See the archive.".

_ROLES = frozenset({"doc-footnote", "doc-endnote", "doc-biblioentry"})
_NOTE_CLASSES = frozenset({"footnote", "citation", "footnote-item"})
_NOTE_ID = re.compile(r"(?:fn|footnote|endnote)[:_.-]?\w", re.IGNORECASE)
_MARK = re.compile(r"\w{1,12}|[*†‡§¶]{1,3}")


def superscript_mark(element: etree._Element) -> None:
    """The mark of a note in running text, in brackets: "them.[1]"."""
    text = text_of(element).strip("[]()")
    if next(element.iter("a"), None) is not None and re.fullmatch(r"\w{1,4}|[*†‡]", text):
        for child in list(element):
            element.remove(child)
        element.text = f"[{text}]"


def join_note_marks(root: etree._Element) -> None:
    """Put the mark of each note before its text, in whichever way the page parts the two."""
    for note in list(root.iter("aside", "div", "dl", "table", "li")):
        classes = set((note.get("class") or "").split())
        listed = note.tag == "li" and _NOTE_ID.match(note.get("id") or "")
        if note is not root and (classes & _NOTE_CLASSES or note.get("role") in _ROLES or listed):
            _SHAPES.get(str(note.tag), _labelled)(note)


def _labelled(note: etree._Element) -> None:
    """A note that begins with its label, as docutils writes it."""
    if len(note) and "label" in (note[0].get("class") or "").split():
        _join(note[0], note)


def _entries(notes: etree._Element) -> None:
    """Notes as terms with definitions, as Sphinx wrote them."""
    for term in list(notes.iterchildren("dt")):
        text = term.getnext()
        if text is not None and text.tag == "dd" and _join(term, text):
            text.tag = "div"
    if not notes.findall("dt"):
        notes.tag = "div"


def _rows(notes: etree._Element) -> None:
    """Notes as a table of two columns, as docutils wrote them once."""
    for row in list(notes.iter("tr")):
        cells = [cell for cell in row if cell.tag in {"td", "th"}]
        if len(cells) == 2 and _join(cells[0], cells[1]):
            cells[1].tag = "div"
    if next(notes.iter("td", "th"), None) is None:
        for part in list(notes.iter("table", "tbody", "tr", "colgroup")):
            part.tag = "div"


def _unlisted(item: etree._Element) -> None:
    """A note written as an item of a list, which numbers nothing but the notes."""
    found = re.search(r"(\d+|[*†‡])$", item.get("id") or "")
    notes = item.getparent()
    if notes is None or notes.tag not in {"ol", "ul", "div"}:
        return
    mark = found[1] if found else str(notes.index(item) + 1)
    item.tag = "div"
    _lead(item, f"[{mark}] ")
    if all(child.tag == "div" for child in notes):
        notes.tag = "div"


def _join(label: etree._Element, text: etree._Element) -> bool:
    """Put a label before a text, unless it says more than a mark does."""
    mark = text_of(label).strip("[]() ")
    if not _MARK.fullmatch(mark):
        return False
    drop(label)
    _lead(text, f"[{mark}] ")
    return True


def _lead(block: etree._Element, mark: str) -> None:
    """Write ``mark`` where the first text of a block begins."""
    first = block
    while not (first.text or "").strip() and len(first) and first[0].tag in {"p", "div"}:
        first = first[0]
    first.text = mark + (first.text or "").lstrip()


_SHAPES = {"li": _unlisted, "dl": _entries, "table": _rows}

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
    """The button of an accordion bears its heading; any other is boilerplate."""
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
    if boilerplate.is_permalink(element) and not (element.get("id") and not element.get("href")):
        for owner in element.iterancestors():
            if owner.tag in HEADINGS or owner.tag == "dt":
                fragment = (element.get("href") or "").partition("#")[2]
                if fragment:
                    owner.set(ANCHOR, fragment)
                break
        drop(element)
    elif text_of(element) in boilerplate.BACKLINK_TEXT and (element.get("href") or "").startswith(
        "#"
    ):
        drop(element)


_INLINE = {"label": _label, "button": _button, "img": _image, "sup": superscript_mark, "a": _anchor}


def _table(table: etree._Element) -> None:
    code = [p for p in table.iter("pre") if not _is_line_numbers(p)]
    names = boilerplate.words_of(table.get("class") or "")
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
