"""Trees of HTML: how a page is parsed, and what everybody asks of an element."""

import re
from functools import lru_cache

from lxml import etree

from tidemark.domain.errors import DocumentError

# What a tag has no place for, written on it as an attribute.
KIND = "data-tm-kind"
ANCHOR = "data-tm-anchor"
HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
PERMALINK_TEXT = frozenset(
    {"", "¶", "#", "§", "🔗", "link", "permalink", "anchor", "\uf0c1", "\u200b"}
)
_WORDS = re.compile(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]+")
_NOT_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""What the parser lets pass, as itself or as a reference, and refuses to be given again."""
_PARTING = "\x0b\x0c"
"""Those of them that part words: vertical tab and form feed."""
_REFERENCE = re.compile(r"&#(?:[xX]([0-9a-fA-F]+)|([0-9]+))")


def parse_page(html: str, name: str) -> etree._Element:
    """A page as it is, boilerplate, scripts and all. Raises ``DocumentError`` when it has no element."""
    # Ids are looked up nowhere, and collecting them takes as long as the rest.
    parser = etree.HTMLParser(
        huge_tree=True,
        remove_comments=True,
        remove_pis=True,
        encoding="utf-8",
        no_network=True,
        collect_ids=False,
    )
    root = etree.fromstring(html.encode("utf-8", "ignore"), parser)
    if root is None:
        raise DocumentError(
            "partition", f"{name} holds no HTML element.", "Check the file at its source."
        )
    if _NOT_XML.search(html) or any(map(_is_control, _REFERENCE.finditer(html))):
        _drop_control_characters(root)
    return root


def text_of(element: etree._Element) -> str:
    """All text in an element with white space folded."""
    return " ".join("".join(map(str, element.itertext())).split())


def heading_text(heading: etree._Element) -> str:
    """A heading's text without the permalink beside it."""
    parts: list[str] = []
    walk = etree.iterwalk(heading, events=("start", "end"))
    for event, element in walk:
        if event == "end":
            parts.append((element.tail if element is not heading else None) or "")
        elif element.tag == "a" and is_permalink(element):
            walk.skip_subtree()
        else:
            parts.append(element.text or "")
    return " ".join("".join(parts).split()).rstrip("¶ ")


def is_permalink(anchor: etree._Element) -> bool:
    """A link beside a heading that only points at the heading."""
    if words_of(anchor.get("class") or "") & {"headerlink", "permalink", "anchorjs", "hash"}:
        return True
    return (anchor.get("href") or "").startswith("#") and text_of(anchor).lower() in PERMALINK_TEXT


def classes_of(element: etree._Element) -> set[str]:
    return set((element.get("class") or "").split())


@lru_cache(maxsize=8192)
def words_of(value: str) -> frozenset[str]:
    """The words of a class or id attribute: split at separators and at camel humps, lower case."""
    return frozenset(word.lower() for word in _WORDS.findall(value))


def drop(element: etree._Element) -> None:
    """Remove an element and keep the text that follows it."""
    parent = element.getparent()
    if parent is None:
        return
    if element.tail:
        previous = element.getprevious()
        if previous is not None:
            previous.tail = (previous.tail or "") + element.tail
        else:
            parent.text = (parent.text or "") + element.tail
    parent.remove(element)


def add_block(parent: etree._Element, tag: str, text: str) -> etree._Element:
    """A new element with a text, at the end of ``parent``; control characters are left out."""
    element = etree.SubElement(parent, tag)
    element.text = _NOT_XML.sub("", text)
    return element


def language_code(tag: str) -> str | None:
    """The ISO 639-1 code of a language tag such as "en-GB", else None."""
    match = re.match(r"\s*([A-Za-z]{2})(?![A-Za-z])", tag)
    return match[1].lower() if match else None


def _is_control(reference: re.Match[str]) -> bool:
    hexadecimal, decimal = reference.groups()
    # Longer than any character's number: whatever the parser makes of it, it is looked at.
    if len(hexadecimal or decimal) > 9:
        return True
    number = int(hexadecimal, 16) if hexadecimal else int(decimal)
    return number > 0x10FFFF or _NOT_XML.match(chr(number)) is not None


def _drop_control_characters(root: etree._Element) -> None:
    for element in root.iter("*"):
        if element.text and _NOT_XML.search(element.text):
            element.text = _legal(element.text)
        if element.tail and _NOT_XML.search(element.tail):
            element.tail = _legal(element.tail)
        for name, value in [(str(k), str(v)) for k, v in element.attrib.items()]:
            if _NOT_XML.search(value):
                # Taken off first: names that only HTML knows (`@click`) cannot be set.
                del element.attrib[name]
                if re.fullmatch(r"[A-Za-z_][\w.-]*", name):
                    element.set(name, _legal(value))


def _legal(text: str) -> str:
    return _NOT_XML.sub(lambda match: " " if match[0] in _PARTING else "", text)
