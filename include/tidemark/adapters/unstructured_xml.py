"""XML: documents (DocBook, DITA, TEI and their like) by their blocks, all else as the data that it is."""

import re
from collections.abc import Iterator

from lxml import etree

from tidemark.adapters.html_furniture import text_of
from tidemark.adapters.html_titles import language_code
from tidemark.adapters.structured_data import Data, data_elements, title_of
from tidemark.adapters.unstructured_html import elements_of, partition_page
from tidemark.adapters.xml_blocks import PARAGRAPHS, document_blocks
from tidemark.adapters.xml_reader import local_name, parse_xml
from tidemark.domain.errors import DocumentError
from tidemark.domain.model import ElementKind, PartitionedDocument

_LANGUAGE = ("{http://www.w3.org/XML/1998/namespace}lang", "lang")
_HELD = frozenset({"rss", "feed", "RDF"})


def partition_xml(
    content: bytes,
    name: str,
    charset: str | None,
    max_depth: int,
    furniture: frozenset[int] = frozenset(),
) -> PartitionedDocument:
    """Partition XML; ``name`` names it in errors. Raises ``DocumentError``."""
    root = parse_xml(content, name, charset)
    kind = local_name(root)
    language = next(
        (code for key in _LANGUAGE if (code := language_code(root.get(key) or ""))), None
    )
    if kind == "html":
        page = etree.tostring(root, encoding="unicode")
        return partition_page(page, name, max_depth, furniture)
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
