"""Finding sitemaps and reading them one after the other; what is in one is told by website_sitemap_files."""

from collections import deque
from collections.abc import Iterator
from tempfile import SpooledTemporaryFile
from typing import IO

from tidemark.adapters.website_decode import BrokenEncodingError, TooLargeError, decoded, gunzipped
from tidemark.adapters.website_http import Fetcher, Response
from tidemark.adapters.website_loop import LoopThread
from tidemark.adapters.website_sitemap_files import Listed, NoSitemapError, listed_in
from tidemark.domain.errors import PermanentError, TransientError
from tidemark.domain.urls import canonical_url, site_of

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
    whole = _chained(first, pieces)
    return gunzipped(whole, MAX_BYTES) if first.startswith(_GZIP) else whole


def _chained(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest
