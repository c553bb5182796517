"""What the stages ask of a place to crawl."""

from collections.abc import Iterator
from typing import Protocol

from tidemark.domain.documents import CrawlEnd, CrawlItem, Validators


class Known(Protocol):
    """What a source may know of its last crawl, to ask only for what changed."""

    def validators(self, uri: str) -> Validators | None:
        """The validators of the bytes held for a canonical URI, None when none are held."""

    def uris(self) -> Iterator[str]:
        """Every canonical URI of the source that is indexed or quarantined."""

    def content(self, uri: str) -> tuple[bytes, str] | None:
        """The bytes last fetched for a URI and their media type (to follow links of a page not modified)."""

    def state(self) -> str:
        """``CrawlEnd.state`` of the last crawl whose run was applied whole; "" when there is none."""


class Source(Protocol):
    """A place to crawl."""

    @property
    def fingerprint(self) -> str:
        """Of what decides the bytes fetched; a change makes every item be fetched again."""

    def crawl(self, known: Known, limit: int | None = None) -> Iterator[CrawlItem | CrawlEnd]:
        """Yield every item once, with its outcome, then exactly one CrawlEnd.

        Bytes are held for one item at a time. An item's failure is an outcome; the source being away as
        a whole is a CrawlEnd that is not complete, with the problem. Never raises for either. With
        ``limit``, stops after that many items that have content, and is then not complete.
        """
