"""Backfill: process again, from stored snapshots, what was first fetched in an interval.

It never fetches and never deletes, and since it only knows present versions it cannot put an older one
over a newer one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from tidemark.domain.model import CrawlEnd, CrawlItem, Outcome, SourceItem
from tidemark.ports import Known, Ledger


@dataclass(frozen=True, slots=True)
class LedgerSource:
    """A source whose items are the documents that the ledger has from [start, end).

    fingerprint: of the source they came from, so that their validators stay valid.
    """

    ledger: Ledger
    source: str
    start: datetime
    end: datetime
    fingerprint: str

    def crawl(self, known: Known, limit: int | None = None) -> Iterator[CrawlItem | CrawlEnd]:
        """Yield each as not modified; the listing is never complete, so nothing is ever missing."""
        count = 0
        for record in self.ledger.documents(self.source):
            if limit is not None and count >= limit:
                break
            if self.start <= record.fetched_at < self.end:
                count += 1
                yield CrawlItem(SourceItem(record.uri, record.validators), Outcome.NOT_MODIFIED)
        yield CrawlEnd(complete=False, authoritative=False)
