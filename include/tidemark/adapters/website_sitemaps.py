"""Sitemaps: plain, compressed, and indexes of them."""

import re
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from lxml import etree

from tidemark.adapters.website_decode import BrokenEncodingError, TooLargeError, gunzip
from tidemark.adapters.website_http import Fetcher
from tidemark.domain.errors import PermanentError, TransientError
from tidemark.domain.urls import canonical_url, site_of

MAX_BYTES = 50 * 1024 * 1024
"""Decoded, as the sitemap protocol has it."""
MAX_FILES = 1_000
_MAX_REDIRECTS = 5
_STEP_BYTES = 65_536
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_BARE_AMPERSAND = re.compile(rb"&(?!(?:#\d+|#x[0-9a-fA-F]+|\w+);)")
_END = re.compile(rb"</(?:\w+:)?(?:urlset|sitemapindex)\s*>")


class Listed(NamedTuple):
    """One ``<loc>``: a page, or (``is_sitemap``) a further sitemap."""

    url: str
    is_sitemap: bool


class SitemapReader:
    """Reads the sitemaps of an origin; what goes wrong is in ``problems`` afterwards."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self.problems: list[str] = []

    def pages(self, origin: str, declared: list[str]) -> Iterator[str]:
        """Stream the URLs that the declared sitemaps list, or ``/sitemap.xml`` where none is declared.

        A guessed sitemap that is not there is no problem; one that is declared or in an index is, unless
        it is on another host, which is passed over.
        """
        waiting = [(url, True) for url in declared] or [(f"{origin}/sitemap.xml", False)]
        read: set[str] = set()
        while waiting:
            url, promised = waiting.pop(0)
            canonical = canonical_url(url, origin)
            if canonical is None or canonical in read or site_of(canonical) != site_of(origin):
                continue
            if len(read) == MAX_FILES:
                self.problems.append(f"There are more than {MAX_FILES:,} sitemaps.")
                return
            read.add(canonical)
            for listed in self._read(canonical, promised=promised):
                if listed.is_sitemap:
                    waiting.append((listed.url, True))
                else:
                    yield listed.url

    def _read(self, url: str, *, promised: bool) -> Iterator[Listed]:
        body = self._body(url, promised=promised)
        if body is None:
            return
        try:
            if body.startswith(b"\x1f\x8b"):
                body = gunzip(body, MAX_BYTES)
            yield from listed_in(body)
        except (TooLargeError, BrokenEncodingError, zlib.error):
            # A guess that meets an HTML page is a site without a sitemap.
            if promised or b"<urlset" in body[:4096] or b"<sitemapindex" in body[:4096]:
                self.problems.append(f"The sitemap {url} cannot be read to its end.")

    def _body(self, url: str, *, promised: bool) -> bytes | None:
        asked = url
        for _ in range(_MAX_REDIRECTS + 1):
            try:
                response = self._fetcher.get(url, max_bytes=MAX_BYTES)
            except (TransientError, PermanentError) as error:
                self.problems.append(f"The sitemap cannot be had: {error}")
                return None
            if response.status == 200:
                if response.refused:
                    self.problems.append(f"The sitemap {url} {response.refused}.")
                return response.body
            target = canonical_url(response.headers.get("location", ""), url)
            redirected = response.status in {301, 302, 303, 307, 308} and target is not None
            if not redirected or target is None or site_of(target) != site_of(url):
                break
            url = target
        if promised:
            self.problems.append(f"The sitemap {asked} answers {response.status}.")
        return None


def listed_in(body: bytes) -> Iterator[Listed]:
    """Stream the locations in a sitemap or an index, whatever its namespace.

    A bare "&" in an address is read as it is meant. Raises ``BrokenEncodingError`` when the end is
    missing, after the locations before that.
    """
    # Entities stay unresolved and nothing is loaded: a sitemap is a stranger's XML.
    parser = etree.XMLPullParser(
        events=("end",),
        recover=True,
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
    )
    if not body.startswith(_UTF_16):
        body = _BARE_AMPERSAND.sub(b"&amp;", body)
    try:
        for start in range(0, len(body), _STEP_BYTES):
            parser.feed(body[start : start + _STEP_BYTES])
            yield from _drained(parser)
        parser.close()
    except etree.XMLSyntaxError as error:
        raise BrokenEncodingError("it is no XML") from error
    yield from _drained(parser)
    if not _END.search(body[-256:]):
        raise BrokenEncodingError("it ends too early")


def _drained(parser: etree.XMLPullParser) -> Iterator[Listed]:
    for _, element in parser.read_events():
        if element is None or isinstance(element, tuple):
            continue
        kind = _local_name(element)
        if kind not in {"url", "sitemap"}:
            continue
        for child in element:
            if _local_name(child) == "loc" and child.text and child.text.strip():
                yield Listed(child.text.strip(), kind == "sitemap")
        # Freed at once, with the elements before it: memory stays flat over 50,000 entries.
        parent = element.getparent()
        element.clear()
        if parent is not None:
            del parent[: parent.index(element)]


def _local_name(element: "etree._Element") -> str:
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""
