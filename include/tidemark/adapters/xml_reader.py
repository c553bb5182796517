"""XML without its dangers: nothing is fetched, no entity is expanded into another, nesting is bounded."""

import re
from html.entities import html5

from lxml import etree

from tidemark.adapters.text_decoding import decode
from tidemark.domain.errors import DocumentError

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


def _character(found: re.Match[str]) -> str:
    name = found[1]
    return found[0] if name in _PREDEFINED else html5.get(f"{name};", found[0])


def _refused(name: str, error: etree.XMLSyntaxError) -> DocumentError:
    said = str(error.msg)
    if "depth" in said.lower():
        return DocumentError("partition", f"{name} is nested too deeply.", "Simplify it.")
    if "entity" in said.lower() and ("loop" in said or "amplification" in said):
        return DocumentError(
            "partition",
            f"{name} defines entities that multiply without bound.",
            "Exclude it from the source, or write their text out.",
        )
    said = " ".join(said.split())[:200].rstrip(".")
    return DocumentError(
        "partition",
        f"{name} is no well-formed XML: {said}.",
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
