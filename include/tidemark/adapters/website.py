"""The website source: from start pages, sitemaps and links to documents with their bytes."""

from collections.abc import Iterator
from datetime import UTC, datetime

from tidemark.adapters.website_crawl import Crawl
from tidemark.adapters.website_frontier import Scope
from tidemark.adapters.website_http import Fetcher
from tidemark.adapters.website_loop import LoopThread
from tidemark.adapters.website_options import WebsiteOptions
from tidemark.adapters.website_trail import Trail
from tidemark.domain.model import CrawlEnd, CrawlItem
from tidemark.ports import Clock, Known

__all__ = ["WebsiteOptions", "WebsiteSource"]


def _utc_now() -> datetime:
    return datetime.now(UTC)


class WebsiteSource:
    """Crawls one website (a ``Source``)."""

    def __init__(self, options: WebsiteOptions, clock: Clock = _utc_now) -> None:
        self.fingerprint = options.fingerprint
        self._options = options
        self._clock = clock

    def crawl(self, known: Known, limit: int | None = None) -> Iterator[CrawlItem | CrawlEnd]:
        """Crawl it (``Source.crawl``); memory does not grow with the site.

        Whoever consumes this may stop early: no thread, task or file outlives the crawl. Raises
        ``ConfigurationError`` when the certificate authorities cannot be read.
        """
        fetcher = Fetcher(self._options)
        with Trail() as trail, LoopThread(fetcher) as loop:
            yield from Crawl(
                options=self._options,
                scope=Scope(self._options),
                fetcher=fetcher,
                loop=loop,
                trail=trail,
                known=known,
                limit=limit,
                clock=self._clock,
            ).run()
