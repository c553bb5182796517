"""XML: documents (DocBook, DITA, TEI and their like) by their blocks, all else as the data that it is."""

import re
from collections.abc import Iterator
from html.entities import html5

from lxml import etree

from tidemark.adapters.decoding import decode
from tidemark.adapters.media import canonical_syntax
from tidemark.adapters.partition.data.structured import Data, data_elements, title_of
from tidemark.adapters.partition.formats import nested_too_deeply
from tidemark.adapters.partition.html.reader import elements_of, partition_page
from tidemark.adapters.partition.html.tree import language_code, text_of
from tidemark.domain.documents import ElementKind, PartitionedDocument
from tidemark.domain.errors import DocumentError

# XML without its dangers: nothing is fetched, no entity is expanded into another, nesting is bounded.

_DECLARATION = re.compile(r"\A\s*<\?xml\b[^>]*\?>")
_NAMED = re.compile(r"&([A-Za-z][A-Za-z0-9]{1,31});")
_PREDEFINED = frozenset({"amp", "lt", "gt", "quot", "apos"})
_MAX_ENTITY = 1000
_MAX_SUBSTITUTED = 1_000_000


def parse_xml(content: bytes, name: str, charset: str | None = None) -> etree._Element:
    """Parse XML bytes; ``name`` names the document in errors, ``charset`` is what its server declared.

    An entity that is plain text stands for that text; one that is made of others, or lies outside, is left as
    its name. Raises ``DocumentError`` for what is not well formed, or nested deeper than 255 elements.
    """
    return parse_xml_text(decode(content, charset, name), name)


def parse_xml_text(text: str, name: str) -> etree._Element:
    """As ``parse_xml``, for decoded text."""
    text = _DECLARATION.sub("", text, count=1).lstrip()
    if "<!ENTITY" not in text:
        # Names that HTML has and XML has not; a DTD that would define them is never fetched.
        text = _NAMED.sub(_character, text)
    parser = etree.XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        root = etree.fromstring(text.encode("utf-8", "ignore"), parser)
    except etree.XMLSyntaxError as error:
        raise _refused(name, error) from error
    _substitute(root)
    return root


def _character(reference: re.Match[str]) -> str:
    name = reference[1]
    return reference[0] if name in _PREDEFINED else html5.get(f"{name};", reference[0])


def _refused(name: str, error: etree.XMLSyntaxError) -> DocumentError:
    message = str(error.msg)
    if "depth" in message.lower():
        return nested_too_deeply(name)
    if "entity" in message.lower() and ("loop" in message or "amplification" in message):
        return DocumentError(
            "partition",
            f"{name} defines entities that multiply without bound.",
            "Exclude it from the source, or write their text out.",
        )
    message = " ".join(message.split())[:200].rstrip(".")
    return DocumentError(
        "partition",
        f"{name} is no well-formed XML: {message}.",
        "It is damaged or was cut short: fetch or export it again.",
    )


def _substitute(root: etree._Element) -> None:
    entities = list(root.iter(etree.Entity))
    if not entities:
        return
    dtd = root.getroottree().docinfo.internalDTD
    declared: dict[str, str] = {}
    for entity in getattr(dtd, "iterentities", tuple)():  # not in the stubs
        content = entity.content or ""
        if content and len(content) <= _MAX_ENTITY and not re.search("[&<]", content):
            declared[str(entity.name)] = content
    budget = _MAX_SUBSTITUTED
    for entity in entities:
        name = (entity.text or "").strip("&;")
        text = declared.get(name) or html5.get(f"{name};") or name
        budget -= len(text)
        _replace(entity, text if budget > 0 else "")


def _replace(node: etree._Element, text: str) -> None:
    parent, before = node.getparent(), node.getprevious()
    text += node.tail or ""
    if parent is None:
        return
    if before is not None:
        before.tail = (before.tail or "") + text
    else:
        parent.text = (parent.text or "") + text
    parent.remove(node)


def local_name(element: etree._Element) -> str:
    """The name of an element without its namespace, "" for what is no element."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


# The blocks of a document in XML (DocBook, DITA, TEI, JATS) as HTML, which the partitioner reads.

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
            _children_of_xml_blocks(element, out, level + int(_is_section(element)))


def _holder(element: etree._Element, name: str, out: etree._Element, level: int) -> bool:
    """Add a list, an item, a note or a quotation with what is in it; False for anything else."""
    if name in _UNORDERED or name in _ORDERED:
        _children_of_xml_blocks(
            element, etree.SubElement(out, "ol" if name in _ORDERED else "ul"), level
        )
    elif name in _ITEMS and out.tag in {"ul", "ol"}:
        _children_of_xml_blocks(element, etree.SubElement(out, "li"), level, mixed=True)
    elif name in _QUOTES:
        _children_of_xml_blocks(element, etree.SubElement(out, "blockquote"), level, mixed=True)
    elif name in _NOTES:
        box = etree.SubElement(out, "div", {"class": "admonition"})
        if not any(local_name(child) in _HEADS for child in element):
            caption = etree.SubElement(box, "p", {"class": "admonition-title"})
            caption.text = name.capitalize()
        _children_of_xml_blocks(element, box, level)
    else:
        return False
    return True


def _children_of_xml_blocks(
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
            _add_words(words, out)
            words = []
            _walk(child, out, level)
        elif local_name(child) not in _SKIPPED:
            words.append("".join(map(str, child.itertext())))
        words.append(child.tail or "")
    _add_words(words, out)


def _add_words(words: list[str], out: etree._Element) -> None:
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
            _children_of_xml_blocks(child, etree.SubElement(into, "dd"), level, mixed=True)
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


_LANGUAGE = ("{http://www.w3.org/XML/1998/namespace}lang", "lang")
_HELD = frozenset({"rss", "feed", "RDF"})


def partition_xml(
    content: bytes,
    name: str,
    charset: str | None,
    max_depth: int,
    boilerplate: frozenset[int] = frozenset(),
) -> PartitionedDocument:
    """Partition XML; ``name`` names it in errors. Raises ``DocumentError``."""
    root = parse_xml(content, name, charset)
    kind = local_name(root)
    language = next(
        (code for key in _LANGUAGE if (code := language_code(root.get(key) or ""))), None
    )
    if kind == "html":
        page = etree.tostring(root, encoding="unicode")
        return partition_page(page, name, max_depth, boilerplate)
    if kind == "svg":
        raise DocumentError(
            "partition", f"{name} is a picture (SVG), which is not read.", "Exclude it."
        )
    if kind not in _HELD and _is_document(root):
        elements = tuple(elements_of(document_blocks(root)))
        title = next((e.text for e in elements if e.kind is ElementKind.TITLE), "")
        return PartitionedDocument(title, elements, language)
    data = _entries(root) if kind in _HELD else _data(root)
    return PartitionedDocument(
        title_of(data) or _channel_title(root),
        tuple(data_elements(data, name, max_depth)),
        language,
    )


def _is_document(root: etree._Element) -> bool:
    """Whether most of the text stands in what the vocabularies of documents call a paragraph."""
    inside = sum(len(text_of(e)) for e in root.iter("{*}*") if local_name(e) in PARAGRAPHS)
    return inside > 0 and inside >= 0.3 * len(text_of(root))


def _channel_title(root: etree._Element) -> str:
    for element in root:
        if local_name(element) == "title":
            return text_of(element)
        if local_name(element) == "channel":
            return _channel_title(element)
    return ""


def _entries(feed: etree._Element) -> Data:
    """The entries of a feed; what it says of itself is for programs."""
    return [_data(e) for e in feed.iter("{*}*") if local_name(e) in {"item", "entry"}]


def _data(root: etree._Element) -> Data:
    """Elements as the objects and lists that they spell: attributes and children by their names."""
    children = list(_children(root))
    attributes: dict[str, Data] = {
        _attribute(key): str(value)
        for key, value in root.attrib.items()
        if "schemaLocation" not in str(key)
    }
    text = " ".join((root.text or "").split()) if children else (root.text or "").strip()
    mixed = any((child.tail or "").strip() for child in children) or (bool(children) and bool(text))
    if mixed:
        text, children = text_of(root), []
    if not children:
        if not attributes:
            return text
        return {**attributes, **({local_name(root): text} if text else {})}
    held: dict[str, list[Data]] = {}
    for child in children:
        held.setdefault(local_name(child), []).append(_data(child))
    if len(held) == 1 and not attributes:
        (values,) = held.values()
        if len(values) > 1:
            return values
    fields: dict[str, Data] = dict(attributes)
    for key, values in held.items():
        fields[key] = values[0] if len(values) == 1 else values
    return fields


def _children(element: etree._Element) -> Iterator[etree._Element]:
    return (child for child in element if isinstance(child.tag, str))


def _attribute(key: object) -> str:
    return re.sub(r"^\{[^}]*\}", "", str(key))
