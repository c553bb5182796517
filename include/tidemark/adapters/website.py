"""The website source: from start pages, sitemaps and links to documents with their bytes."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

from tidemark.adapters.website_crawl import Crawl
from tidemark.adapters.website_frontier import Scope
from tidemark.adapters.website_http import Fetcher
from tidemark.adapters.website_options import WebsiteOptions
from tidemark.domain.model import CrawlEnd, CrawlItem
from tidemark.ports import Clock, Known

__all__ = ["WebsiteOptions", "WebsiteSource"]

_MAX_THREADS = 32


def _utc_now() -> datetime:
    return datetime.now(UTC)


class WebsiteSource:
    """Crawls one website (a ``Source``)."""

    def __init__(self, options: WebsiteOptions, clock: Clock = _utc_now) -> None:
        self.fingerprint = options.fingerprint
        self._options = options
        self._clock = clock

    def crawl(self, known: Known, limit: int | None = None) -> Iterator[CrawlItem | CrawlEnd]:
        """Crawl it; bodies in memory are bounded by the number of threads (``Source.crawl``)."""
        scope = Scope(self._options)
        threads = min(_MAX_THREADS, self._options.concurrency * scope.hosts)
        with Fetcher(self._options) as fetcher:
            pool = ThreadPoolExecutor(threads, "crawl")
            try:
                crawl = Crawl(
                    options=self._options,
                    scope=scope,
                    fetcher=fetcher,
                    pool=pool,
                    threads=threads,
                    known=known,
                    limit=limit,
                    clock=self._clock,
                )
                yield from crawl.run()
            finally:
                # Also when whoever consumes this stops early: no thread outlives the crawl.
                fetcher.stop()
                pool.shutdown(wait=True, cancel_futures=True)
