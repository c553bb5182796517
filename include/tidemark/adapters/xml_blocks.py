"""The blocks of a document in XML (DocBook, DITA, TEI, JATS) as HTML, which the partitioner reads."""

from lxml import etree

from tidemark.adapters.html_furniture import text_of
from tidemark.adapters.syntaxes import canonical_syntax
from tidemark.adapters.xml_reader import local_name

PARAGRAPHS = frozenset({"para", "simpara", "p", "shortdesc", "ab", "l", "cmd", "lg"})
_HEADS = frozenset({"title", "head", "heading"})
_SKIPPED = frozenset(
    {"indexterm", "remark", "revhistory", "metadata", "prolog", "processing-instruction", "copyright",
     "legalnotice", "authorgroup", "author", "pubdate", "date", "teiHeader", "colspec", "subjectset",
     "keywordset", "graphic", "imagedata", "xref-list", "related-links", "index", "toc", "titleabbrev",
     "script", "style"}
)  # fmt: skip
_CODE = frozenset(
    {"programlisting", "screen", "codeblock", "literallayout", "synopsis", "msgblock", "pre", "eg",
     "code-block", "listing", "programlistingco"}
)  # fmt: skip
_UNORDERED = frozenset({"itemizedlist", "ul", "sl", "simplelist", "list", "choices"})
_ORDERED = frozenset({"orderedlist", "ol", "procedure", "steps", "substeps", "steps-unordered"})
_ITEMS = frozenset(
    {"listitem", "li", "sli", "item", "step", "substep", "member", "choice", "list-item"}
)
_TERMS = frozenset({"term", "dt", "glossterm", "pt", "question"})
_MEANINGS = frozenset({"glossdef", "dd", "pd", "answer"})
_NOTES = frozenset(
    {"note", "tip", "warning", "caution", "important", "danger", "attention", "hazardstatement"}
)
_ENTRIES = frozenset({"varlistentry", "dlentry", "glossentry", "plentry", "qandaentry"})
_QUOTES = frozenset({"blockquote", "lq", "epigraph", "disp-quote"})
_ROWS = frozenset({"row", "tr", "strow", "sthead"})
_CELLS = frozenset({"entry", "td", "th", "stentry", "cell"})
_TABLES = frozenset({"table", "informaltable", "simpletable"})
_CAPTIONED = frozenset({"figure", "example", "table", "fig", "equation"})
_INFORMATION = frozenset(
    {"info", "bookinfo", "articleinfo", "front", "article-meta", "title-group"}
)
_XML_ID = "{http://www.w3.org/XML/1998/namespace}id"


def document_blocks(root: etree._Element) -> etree._Element:
    """An HTML ``div`` with the blocks of ``root``, in order."""
    out = etree.Element("div")
    _walk(root, out, 1)
    return out


def _walk(element: etree._Element, out: etree._Element, level: int) -> None:
    name = local_name(element)
    if not name or name in _SKIPPED:
        return
    if name in _HEADS:
        _head(element, out, level)
    elif name in _CODE:
        _code(element, out)
    elif name in _TABLES and _table(element, out):
        return
    elif name in _ENTRIES:
        _definition(element, out, level)
    elif not _holder(element, name, out, level):
        if name in PARAGRAPHS or _is_inline(element):
            _paragraph(element, out, level)
        else:
            _children(element, out, level + int(_is_section(element)))


def _holder(element: etree._Element, name: str, out: etree._Element, level: int) -> bool:
    """Add a list, an item, a note or a quotation with what is in it; False for anything else."""
    if name in _UNORDERED or name in _ORDERED:
        _children(element, etree.SubElement(out, "ol" if name in _ORDERED else "ul"), level)
    elif name in _ITEMS and out.tag in {"ul", "ol"}:
        _children(element, etree.SubElement(out, "li"), level, mixed=True)
    elif name in _QUOTES:
        _children(element, etree.SubElement(out, "blockquote"), level, mixed=True)
    elif name in _NOTES:
        box = etree.SubElement(out, "div", {"class": "admonition"})
        if not any(local_name(child) in _HEADS for child in element):
            caption = etree.SubElement(box, "p", {"class": "admonition-title"})
            caption.text = name.capitalize()
        _children(element, box, level)
    else:
        return False
    return True


def _children(
    element: etree._Element, out: etree._Element, level: int, *, mixed: bool = False
) -> None:
    if mixed and (element.text or "").strip():
        _paragraph(element, out, level)
        return
    for child in element:
        _walk(child, out, level)


def _is_section(element: etree._Element) -> bool:
    """Whether a heading in an element opens a section below the one around it."""
    if element.getparent() is None or local_name(element) in _INFORMATION:
        return False
    return any(local_name(child) in _HEADS | _INFORMATION for child in element)


def _head(element: etree._Element, out: etree._Element, level: int) -> None:
    parent = element.getparent()
    text = text_of(element)
    if not text:
        return
    if parent is not None and (
        local_name(parent) in _CAPTIONED or out.get("class") == "admonition" or out.tag == "li"
    ):
        caption = etree.SubElement(out, "p", {"class": "admonition-title"})
        caption.text = text
        return
    heading = etree.SubElement(out, f"h{min(max(level, 1), 6)}")
    heading.text = text
    anchor = None
    if parent is not None:
        anchor = parent.get(_XML_ID) or parent.get("id")
    if anchor:
        heading.set("id", anchor)


def _code(element: etree._Element, out: etree._Element) -> None:
    block = etree.SubElement(out, "pre")
    # The first line end after the tag is not read.
    block.text = "\n" + "".join(map(str, element.itertext())).strip("\n")
    language = element.get("language") or element.get("lang") or element.get("outputclass") or ""
    syntax = canonical_syntax(language.removeprefix("language-"))
    if syntax:
        block.set("class", f"language-{syntax}")


def _paragraph(element: etree._Element, out: etree._Element, level: int) -> None:
    """A paragraph; blocks inside it (lists, code) come after the text before them."""
    words: list[str] = [element.text or ""]
    for child in element:
        if _is_block(child):
            _say(words, out)
            words = []
            _walk(child, out, level)
        elif local_name(child) not in _SKIPPED:
            words.append("".join(map(str, child.itertext())))
        words.append(child.tail or "")
    _say(words, out)


def _say(words: list[str], out: etree._Element) -> None:
    text = " ".join("".join(words).split())
    if text:
        etree.SubElement(out, "p").text = text


def _is_block(element: etree._Element) -> bool:
    name = local_name(element)
    if name in {"code"}:
        return False
    return name in _CODE | _UNORDERED | _ORDERED | _TABLES | _NOTES | _QUOTES | {
        "variablelist", "dl", "parml", "figure", "example", "informalexample", "informaltable",
        "para", "p",
    }  # fmt: skip


def _is_inline(element: etree._Element) -> bool:
    """Whether an element of an unknown name holds text of its own."""
    own = (element.text or "").strip() or any((child.tail or "").strip() for child in element)
    return bool(own)


def _definition(element: etree._Element, out: etree._Element, level: int) -> None:
    into = out if out.tag == "dl" else etree.SubElement(out, "dl")
    for child in element:
        name = local_name(child)
        if name in _TERMS:
            etree.SubElement(into, "dt").text = text_of(child)
        elif name in _MEANINGS | _ITEMS:
            _children(child, etree.SubElement(into, "dd"), level, mixed=True)
        else:
            _walk(child, into, level)


def _table(element: etree._Element, out: etree._Element) -> bool:
    """Add a table; False where the element holds no rows, and is none."""
    rows = [row for row in element.iter("{*}*") if local_name(row) in _ROWS]
    if not rows:
        return False
    table = etree.SubElement(out, "table")
    title = next((child for child in element if local_name(child) in _HEADS | {"caption"}), None)
    if title is not None and text_of(title):
        etree.SubElement(table, "caption").text = text_of(title)
    for row in rows:
        line = etree.SubElement(table, "tr")
        parent = row.getparent()
        head = local_name(row) == "sthead" or (parent is not None and local_name(parent) == "thead")
        for cell in row:
            kind = local_name(cell)
            if kind not in _CELLS:
                continue
            made = etree.SubElement(line, "th" if head or kind == "th" else "td")
            made.text = text_of(cell)
            for attribute in ("rowspan", "colspan"):
                if cell.get(attribute):
                    made.set(attribute, cell.get(attribute) or "")
            if (cell.get("morerows") or "").isdigit():
                made.set("rowspan", str(int(cell.get("morerows") or 0) + 1))
    return True
