"""DOCX by mammoth, which makes HTML of it; the styles of paragraphs decide what each of them is.

Before, the document's own XML is brought to what mammoth knows: the style that each paragraph is based on
under one of a few names, formulas and simple fields as text, what is hidden left out.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from zipfile import ZipFile

from lxml import etree

from tidemark.adapters.partition.data.xml import parse_xml
from tidemark.adapters.partition.formats import damaged, over_limit
from tidemark.adapters.partition.html.lines import LINE_END
from tidemark.adapters.partition.html.reader import elements_of
from tidemark.adapters.partition.html.tables import header_rows_of
from tidemark.adapters.partition.html.tree import HEADINGS, drop, text_of
from tidemark.adapters.partition.titles import core_properties
from tidemark.domain.documents import CELL, Element, ElementKind, PartitionedDocument

_BODY = "word/document.xml"
_STYLES = "word/styles.xml"
_READ = re.compile(
    r"\[Content_Types\]\.xml|_rels/\.rels|word/_rels/.*|word/(numbering|footnotes|endnotes)\.xml"
)
"""What mammoth is given beside the body and its styles: no pictures, comments or running headers."""
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_STRICT = b"http://purl.oclc.org/ooxml/wordprocessingml/main"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_HEADING = re.compile(r"heading (\d)", re.IGNORECASE)
_LIST = re.compile(r"list (bullet|number)(?: (\d))?", re.IGNORECASE)
_CODE = re.compile(
    r"code|preformatted|macro|source|listing|verbatim|console|terminal", re.IGNORECASE
)
_QUOTE = re.compile(r"quot", re.IGNORECASE)
_MAX_CELLS = 50_000
_NOTE = re.compile(r"(?:foot|end)note-\d+")

_STYLE_MAP = "\n".join(
    [
        *(f"p.tm-h{level} => h{level}:fresh" for level in range(1, 7)),
        "p.tm-code => pre:separator('\\n')",
        "p.tm-quote => blockquote > p:fresh",
        "p.tm-caption => p.caption:fresh",
        "p.tm-text => p:fresh",
        *(
            f"p.tm-{tag}{depth} => {'ul|ol > li > ' * (depth - 1)}{tag} > li:fresh"
            for tag in ("ul", "ol")
            for depth in range(1, 6)
        ),
        "br[type='page'] => hr",
        "r[style-name='Hyperlink'] =>",
    ]
)


def partition_docx(content: bytes, name: str, max_cells: int) -> PartitionedDocument:
    """Partition a Word document; headers, footers and its table of contents are left out.

    ``name`` names it in errors. Raises ``DocumentError`` when its tables have too many cells.
    """
    import mammoth

    plain, styled_title = _plain(content, name, min(max_cells, _MAX_CELLS))
    html = mammoth.convert_to_html(
        BytesIO(plain), style_map=_STYLE_MAP, convert_image=lambda _image: []
    ).value
    root = etree.fromstring(f"<div>{html}</div>", etree.XMLParser(huge_tree=True))
    _notes_as_text(root)
    _line_ends_as_text(root)
    if not root.xpath("//h1|//h2|//h3|//h4|//h5|//h6"):
        _bold_as_headings(root)
    elements = tuple(_by_page(root))
    title, language = core_properties(content)
    heading = next((e.text for e in elements if e.kind is ElementKind.TITLE), "")
    return PartitionedDocument(styled_title or title or heading, elements, language)


def _plain(content: bytes, name: str, max_cells: int) -> tuple[bytes, str]:
    """The document as mammoth is given it, and what stands in the style "Title"."""
    made = BytesIO()
    with ZipFile(BytesIO(content)) as archive, ZipFile(made, "w") as plain:
        parts = set(archive.namelist())
        if _BODY not in parts:
            raise damaged(name, f"it has no {_BODY}")
        text = archive.read(_BODY)
        # Counted before any is read: a table in memory is much larger than in its file.
        if len(re.findall(rb"<\w{1,20}:tc[ >]", text)) > max_cells:
            raise over_limit(name, f"has more than {max_cells:,} cells in its tables")
        body = _parsed(text, name)
        styles = _Styles(_parsed(archive.read(_STYLES), name) if _STYLES in parts else None)
        title = _prepare(body, styles)
        plain.writestr(_BODY, etree.tostring(body))
        if styles.root is not None:
            plain.writestr(_STYLES, etree.tostring(styles.root))
        for part in parts:
            if _READ.fullmatch(part):
                plain.writestr(part, etree.tostring(_parsed(archive.read(part), name)))
    return made.getvalue(), title


def _parsed(text: bytes, name: str) -> etree._Element:
    # Files in the format's strict form have other names for the same things.
    return parse_xml(text.replace(_STRICT, _WORD[1:-1].encode()), name)


@dataclass(frozen=True, slots=True)
class _Style:
    """name: of the style itself. level: of headings made with it, from 1, or 0."""

    name: str = ""
    level: int = 0


class _Styles:
    """Styles of paragraphs by their ids; one that is based on a heading is a heading."""

    def __init__(self, root: etree._Element | None) -> None:
        self.root = root
        self._elements = {
            style.get(f"{_WORD}styleId") or "": style
            for style in (root.iter(f"{_WORD}style") if root is not None else ())
            if style.get(f"{_WORD}type") == "paragraph"
        }

    def of(self, paragraph: etree._Element) -> _Style:
        properties = paragraph.find(f"{_WORD}pPr")
        used = _value(properties, "pStyle")
        own, level = "", _outline(properties)
        seen: set[str] = set()
        while used in self._elements and used not in seen:
            seen.add(used)
            style = self._elements[used]
            name = _value(style, "name")
            own = own or name
            heading = _HEADING.fullmatch(name)
            level = level or (int(heading[1]) if heading else _outline(style.find(f"{_WORD}pPr")))
            used = _value(style, "basedOn")
        return _Style(own or used, level)


def _value(parent: etree._Element | None, name: str) -> str:
    child = parent.find(f"{_WORD}{name}") if parent is not None else None
    return (child.get(f"{_WORD}val") or "") if child is not None else ""


def _outline(properties: etree._Element | None) -> int:
    """The outline level in the properties of a paragraph, from 1; 0 where it is body text."""
    value = _value(properties, "outlineLvl")
    return int(value) + 1 if value.isdigit() and int(value) < 9 else 0


def _prepare(body: etree._Element, styles: _Styles) -> str:
    for run in list(body.iter(f"{_WORD}r")):
        if _is_on(run.find(f"{_WORD}rPr"), "vanish"):
            drop(run)
    for formula in list(body.iter(f"{_MATH}oMath")):
        text, tail = "".join(part.text or "" for part in formula.iter(f"{_MATH}t")), formula.tail
        formula.clear()
        formula.tail, formula.tag = tail, f"{_WORD}r"
        etree.SubElement(formula, f"{_WORD}t").text = text
    for field in body.iter(f"{_WORD}fldSimple", f"{_MATH}oMathPara"):
        field.tag = f"{_WORD}smartTag"  # whose content is read
    for line_break in list(body.iter(f"{_WORD}br")):
        if line_break.get(f"{_WORD}type") == "page":
            drop(line_break)  # where a page ended when it was last shown is told for these too
    for shown in body.iter(f"{_WORD}lastRenderedPageBreak"):
        shown.tag = f"{_WORD}br"
        shown.set(f"{_WORD}type", "page")
    return _name_styles(body, styles)


def _is_on(properties: etree._Element | None, name: str) -> bool:
    switch = properties.find(f"{_WORD}{name}") if properties is not None else None
    return switch is not None and switch.get(f"{_WORD}val") not in {"0", "false", "off"}


def _name_styles(body: etree._Element, styles: _Styles) -> str:
    """Give each paragraph the style that says what it is; returns the text of the title."""
    paragraphs = [(p, styles.of(p)) for p in body.iter(f"{_WORD}p")]
    titles = [p for p, style in paragraphs if style.name == "Title"]
    for paragraph, style in paragraphs:
        # A document title above numbered headings is one level up from them.
        kind = _kind(paragraph, style, deeper=int(bool(titles)))
        if kind == "toc":
            drop(paragraph)
        elif kind:
            properties = paragraph.find(f"{_WORD}pPr")
            if properties is None:
                properties = etree.Element(f"{_WORD}pPr")
                paragraph.insert(0, properties)
            for used in properties.findall(f"{_WORD}pStyle"):
                properties.remove(used)
            properties.insert(0, etree.Element(f"{_WORD}pStyle", {f"{_WORD}val": f"tm-{kind}"}))
    texts = (" ".join("".join(map(str, title.itertext())).split()) for title in titles)
    return next(filter(None, texts), "")


def _kind(paragraph: etree._Element, style: _Style, *, deeper: int) -> str:
    """Our name of a paragraph's style, "" where mammoth is to look at it itself."""
    name = style.name.lower()
    if name.startswith("toc"):
        return "toc"
    if name == "title":
        return "h1"
    if style.level and name != "subtitle":
        return f"h{min(style.level + deeper, 6)}"
    if name == "caption":
        return "caption"
    if _CODE.search(name):
        return "code"
    if _QUOTE.search(name):
        return "quote"
    listed = _LIST.fullmatch(name)
    if listed and paragraph.find(f"{_WORD}pPr/{_WORD}numPr") is None:
        return f"{'ol' if listed[1] == 'number' else 'ul'}{min(int(listed[2] or 1), 5)}"
    return ""


def _notes_as_text(root: etree._Element) -> None:
    """Foot- and endnotes as paragraphs at the end, each after the mark that stands in the text."""
    notes = [item for item in root.iter("li") if _NOTE.fullmatch(item.get("id") or "")]
    for back in list(root.iter("a")):
        if (back.get("href") or "").startswith(("#footnote-ref", "#endnote-ref")):
            drop(back)
    for number, note in enumerate(notes, start=1):
        etree.SubElement(root, "p").text = f"[{number}] {text_of(note)}"
    for note in notes:
        listing = note.getparent()
        if listing is not None and listing.getparent() is not None:
            drop(listing)
    for mark in root.iter("sup"):
        if mark.find("a") is not None:
            mark.tag = "span"  # beside the word that it is a note to, as "[1]"


def _line_ends_as_text(root: etree._Element) -> None:
    for line_break in list(root.iter("br")):
        block = next(line_break.iterancestors("pre", "td", "th", *HEADINGS), None)
        end = LINE_END if block is None else "\n" if block.tag == "pre" else " "
        line_break.tail = end + (line_break.tail or "")
        drop(line_break)


def _bold_as_headings(root: etree._Element) -> None:
    """Where no heading style is used at all, short bold paragraphs are the headings."""
    for block in root.iter("p"):
        text = text_of(block)
        bold = "".join(text_of(part) for part in block.findall("strong"))
        whole = "".join(bold.split()) == "".join(text.split())
        if text and whole and len(text) <= 100 and not text.endswith((".", ":")):
            block.tag = "h2"


def _by_page(root: etree._Element) -> Iterator[Element]:
    """Elements with the number of the page on which they begin, where the file tells its pages."""
    paged = root.find(".//hr") is not None
    page, parts = 1, [(1, etree.Element("div"))]
    for block in list(root):
        breaks = list(block.iter("hr"))
        leading = sum(1 for line in breaks if not _before(line, block))
        if page + leading != parts[-1][0]:
            parts.append((page + leading, etree.Element("div")))
        page += len(breaks)
        for line in breaks:
            drop(line)
        parts[-1][1].append(block)
    for number, part in parts:
        for element in elements_of(part):
            page_number, headers = number if paged else None, element.header_rows
            if element.kind is ElementKind.TABLE and not headers:
                headers = header_rows_of([row.split(CELL) for row in element.text.split("\n")])
            yield replace(element, page_number=page_number, header_rows=headers, anchor=None)


def _before(node: etree._Element, block: etree._Element) -> bool:
    """Whether there is text before a node in its block."""
    for other in block.iter("*"):
        if other is node:
            return False
        if (other.text or "").strip():
            return True
        if other.tag == "hr" and (other.tail or "").strip():
            return True
    return False
