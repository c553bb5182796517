"""Retry: documents in quarantine are tried again from their stored bytes, whatever they failed under."""

from collections.abc import Sequence
from dataclasses import replace

from tidemark.domain.records import DocumentRecord
from tidemark.domain.summary import RunSummary
from tidemark.stages.backfill import LedgerSource
from tidemark.stages.job import Job, Tools
from tidemark.stages.run import run_source

WITHOUT_BYTES = frozenset({"fetch", "size"})
"""Stages after whose failure there are no bytes in store."""


def can_retry(record: DocumentRecord) -> bool:
    """Are there bytes in store to try again? Else the next crawl fetches them."""
    return record.failure is not None and record.failure.stage not in WITHOUT_BYTES


def retry(job: Job, tools: Tools, records: Sequence[DocumentRecord]) -> RunSummary:
    """Run a source over some of its documents in quarantine alone; nothing is fetched or removed.

    Raises ``SourceBusyError`` when another run holds the source.
    """
    wanted = {record.document_id for record in records}
    tools.ledger.release(list(wanted))
    source = LedgerSource(
        tools.ledger,
        job.source,
        lambda record: record.document_id in wanted,
        tools.source.fingerprint,
    )
    # How many there are in quarantine is what the source's own runs are judged by.
    guards = replace(job.guards, quarantined_percent=100.0, quarantined_documents=None)
    job = replace(job, learn=False, guards=guards)
    return run_source(job, replace(tools, source=source), "retry")
