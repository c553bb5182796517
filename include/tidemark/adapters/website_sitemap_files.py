"""What is in one sitemap file: XML of the sitemap protocol, a feed, or plain text with a URL a line."""

import re
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from lxml import etree

from tidemark.adapters.website_decode import BrokenEncodingError

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_BOM = b"\xef\xbb\xbf"
_BARE_AMPERSAND = re.compile(rb"&(?!(?:#\d+|#x[0-9a-fA-F]+|\w+);)")
_LONGEST_ENTITY = 12
_END = re.compile(rb"</(?:\w+:)?(?:urlset|sitemapindex|rss|feed|RDF)\s*>")
_ROOT = re.compile(rb"<(?:\w+:)?(?:urlset|sitemapindex|rss|feed|RDF)[\s>]")
_ENTRIES = frozenset({"url", "sitemap", "item", "entry"})
_DATES = frozenset({"lastmod", "pubDate", "updated", "date"})
_MAX_LINE_BYTES = 8_192


class Listed(NamedTuple):
    """One entry: a page, or (``is_sitemap``) a further sitemap; ``modified`` as it is written, or ""."""

    url: str
    is_sitemap: bool
    modified: str = ""


class NoSitemapError(Exception):
    """The bytes are no kind of sitemap."""


def listed_in(pieces: Iterator[bytes]) -> Iterator[Listed]:
    """Stream the entries of a sitemap, an index, an RSS or Atom feed, or a text of URLs.

    Namespaces do not matter; a bare "&" in an address is read as it is meant. Raises ``NoSitemapError``
    before the first entry, ``BrokenEncodingError`` when the end is missing, after the entries before that.
    """
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= 4096:
            break
    body = chain([head], pieces)
    if head.startswith(_UTF_16) or _ROOT.search(head):
        return _in_xml(body, entities=not head.startswith(_UTF_16))
    if head.removeprefix(_BOM).lstrip().lower().startswith((b"http://", b"https://")):
        return _in_text(body)
    raise NoSitemapError


def _in_text(pieces: Iterator[bytes]) -> Iterator[Listed]:
    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield from _line(line)
        if len(rest) > _MAX_LINE_BYTES:
            raise BrokenEncodingError("it has no lines")
    yield from _line(rest)


def _line(line: bytes) -> Iterator[Listed]:
    text = line.removeprefix(_BOM).decode("utf-8", "replace").strip()
    if text.lower().startswith(("http://", "https://")):
        yield Listed(text, is_sitemap=False)


def _in_xml(pieces: Iterator[bytes], *, entities: bool) -> Iterator[Listed]:
    # Entities stay unresolved and nothing is loaded: a sitemap is a stranger's XML.
    parser = etree.XMLPullParser(
        events=("end",),
        recover=True,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
    )
    last = b""
    try:
        for piece in _escaped(pieces) if entities else pieces:
            parser.feed(piece)
            last = (last + piece)[-256:]
            yield from _drained(parser)
        parser.close()
    except etree.XMLSyntaxError as error:
        raise BrokenEncodingError("it is no XML") from error
    yield from _drained(parser)
    if entities and not _END.search(last):
        raise BrokenEncodingError("it ends too early")


def _escaped(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Escape bare ampersands, also where a piece ends in the middle of an entity."""
    rest = b""
    for piece in pieces:
        data = rest + piece
        cut = data.rfind(b"&", max(0, len(data) - _LONGEST_ENTITY))
        cut = len(data) if cut < 0 else cut
        yield _BARE_AMPERSAND.sub(b"&amp;", data[:cut])
        rest = data[cut:]
    yield _BARE_AMPERSAND.sub(b"&amp;", rest)


def _drained(parser: etree.XMLPullParser) -> Iterator[Listed]:
    for _, element in parser.read_events():
        if element is None or isinstance(element, tuple):
            continue
        kind = _local_name(element)
        if kind not in _ENTRIES:
            continue
        url, modified = "", ""
        for child in element:
            name, text = _local_name(child), (child.text or "").strip()
            if name == "loc" or (name == "link" and not url):
                url = text or _href(child) or url
            elif name in _DATES:
                modified = text
        if url:
            # Escaped twice: by mistake, or as a bare one within CDATA by this module.
            url = url.replace("&amp;", "&")
            yield Listed(url, kind == "sitemap", modified)
        # Freed at once, with the elements before it: memory stays flat over 50,000 entries.
        parent = element.getparent()
        element.clear()
        if parent is not None:
            del parent[: parent.index(element)]


def _href(element: "etree._Element") -> str:
    """Where an Atom link leads, if it is the entry itself."""
    if element.get("rel", "alternate") != "alternate":
        return ""
    return str(element.get("href") or "").strip()


def _local_name(element: "etree._Element") -> str:
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""
