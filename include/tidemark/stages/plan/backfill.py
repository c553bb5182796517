"""Backfill: process again, from stored snapshots, what was first fetched in an interval.

It never fetches and never deletes, and since it only knows present versions it cannot put an older one
over a newer one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from tidemark.domain.documents import CrawlEnd, CrawlItem, Outcome, SourceItem
from tidemark.domain.records import DocumentRecord
from tidemark.ports import Known, Ledger


def fetched_within(start: datetime, end: datetime) -> Callable[[DocumentRecord], bool]:
    """Was the live version of a document first fetched in [start, end)?"""
    return lambda record: start <= record.fetched_at < end


@dataclass(frozen=True, slots=True)
class LedgerSource:
    """A source whose items are some of the documents that the ledger has.

    wanted: which of them. fingerprint: of the source they came from, so that their validators stay valid.
    """

    ledger: Ledger
    source: str
    wanted: Callable[[DocumentRecord], bool]
    fingerprint: str

    def crawl(self, known: Known, limit: int | None = None) -> Iterator[CrawlItem | CrawlEnd]:
        """Yield each as not modified; the listing is never complete, so nothing is ever missing."""
        count = 0
        for record in self.ledger.documents(self.source):
            if limit is not None and count >= limit:
                break
            if self.wanted(record):
                count += 1
                yield CrawlItem(SourceItem(record.uri, record.validators), Outcome.NOT_MODIFIED)
        yield CrawlEnd(complete=False, authoritative=False)
