"""Finding sitemaps and reading them one after the other; what is in one is told by website_sitemap_files."""

import re
from collections import deque
from collections.abc import Iterator
from itertools import chain
from tempfile import SpooledTemporaryFile
from typing import IO, NamedTuple

from lxml import etree

from tidemark.adapters.sources.website.http import (
    BrokenEncodingError,
    Fetcher,
    Response,
    TooLargeError,
    decoded,
    gunzipped,
)
from tidemark.adapters.sources.website.transport import LoopThread
from tidemark.domain.errors import PermanentError, TransientError
from tidemark.domain.urls import canonical_url, site_of

# What is in one sitemap file: XML of the sitemap protocol, a feed, or plain text with a URL a line.

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


MAX_BYTES = 50 * 1024 * 1024
"""Decoded, as the sitemap protocol has it."""
MAX_FILES = 1_000
_MAX_REDIRECTS = 5
_MAX_DOUBTS = 3
_NOT_THERE = frozenset({404, 410})
_STEP_BYTES = 65_536
_IN_MEMORY_BYTES = 1_000_000
_GZIP = b"\x1f\x8b"


class SitemapReader:
    """Reads the sitemaps of an origin; what goes wrong is in ``problems`` afterwards.

    ``doubts`` are what goes wrong only where pages are missing that such a sitemap may have named: it was
    not read, but nothing shows that there is, or was, one to read.

    A sitemap is kept in a temporary file and read as a stream, so that memory stays flat.
    """

    def __init__(self, fetcher: Fetcher, loop: LoopThread) -> None:
        self._fetcher = fetcher
        self._loop = loop
        self.problems: list[str] = []
        self.doubts: list[str] = []

    def pages(self, origin: str, declared: list[str]) -> Iterator[Listed]:
        """Stream the pages that the declared sitemaps list, or ``/sitemap.xml`` where none is declared.

        A guessed sitemap that is not there (404, 410) is nothing; one that is declared or in an index is a
        problem. A guess that is answered with anything else, and a sitemap on another host, which is not
        asked, are doubts.
        """
        waiting = deque((url, True) for url in declared) or deque(
            [(f"{origin}/sitemap.xml", False)]
        )
        read: set[str] = set()
        while waiting:
            url, promised = waiting.popleft()
            canonical = canonical_url(url, origin)
            if canonical is None or site_of(canonical) != site_of(origin):
                self._doubt(url, "is on another host, which is not asked")
                continue
            if canonical in read:
                continue
            if len(read) == MAX_FILES:
                self.problems.append(f"There are more than {MAX_FILES:,} sitemaps.")
                return
            read.add(canonical)
            for listed in self._read(canonical, promised=promised):
                if not listed.is_sitemap:
                    yield listed
                elif len(waiting) <= MAX_FILES:
                    waiting.append((listed.url, True))

    def _read(self, url: str, *, promised: bool) -> Iterator[Listed]:
        with SpooledTemporaryFile(_IN_MEMORY_BYTES) as spool:
            response = self._fetched(url, spool, promised=promised)
            if response is None:
                return
            try:
                yield from listed_in(_pieces(spool, response.headers.get("content-encoding", "")))
            except NoSitemapError:
                if promised:
                    self.problems.append(f"The sitemap {url} is none.")
                else:
                    # A site without a sitemap may answer so, and so may one whose sitemap broke.
                    self._doubt(url, "is none")
            except (TooLargeError, BrokenEncodingError):
                self.problems.append(f"The sitemap {url} cannot be read to its end.")

    def _fetched(self, url: str, spool: IO[bytes], *, promised: bool) -> Response | None:
        asked = url
        for _ in range(_MAX_REDIRECTS + 1):
            try:
                response = self._loop.run(self._fetcher.get(url, max_bytes=MAX_BYTES, spool=spool))
            except (TransientError, PermanentError) as error:
                self.problems.append(f"The sitemap cannot be had: {error}")
                return None
            if response.status == 200:
                if response.refused:
                    self.problems.append(f"The sitemap {url} {response.refused}.")
                    return None
                return response
            target = canonical_url(response.headers.get("location", ""), url)
            redirected = response.status in {301, 302, 303, 307, 308} and target is not None
            if not redirected or target is None or site_of(target) != site_of(url):
                break
            url = target
        if promised:
            self.problems.append(f"The sitemap {asked} answers {response.status}.")
        elif response.status not in _NOT_THERE:
            self._doubt(asked, f"answers {response.status}")
        return None

    def _doubt(self, url: str, why: str) -> None:
        if len(self.doubts) < _MAX_DOUBTS:
            self.doubts.append(f"The sitemap {url[:200]} {why}.")


def _pieces(spool: IO[bytes], encodings: str) -> Iterator[bytes]:
    spool.seek(0)
    pieces = decoded(iter(lambda: spool.read(_STEP_BYTES), b""), encodings, MAX_BYTES)
    first = next(pieces, b"")
    whole = chain([first], pieces)
    return gunzipped(whole, MAX_BYTES) if first.startswith(_GZIP) else whole
