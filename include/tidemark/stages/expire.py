"""Expire: after the grace period a removed document loses what it could have been restored from."""

from dataclasses import dataclass
from datetime import timedelta

from tidemark.stages.discard import discard_snapshots, discard_vectors
from tidemark.stages.job import Job, Tools


@dataclass(frozen=True, slots=True)
class ExpireSummary:
    """documents: tombstones past their grace. snapshots: raw bytes deleted with them."""

    documents: int = 0
    snapshots: int = 0


def expire(job: Job, tools: Tools) -> ExpireSummary:
    """Delete vectors, history, elements and snapshots of a source's documents that are gone for good.

    The tombstone itself stays, as the record of what was there. A snapshot that another document shares
    stays with that one. Safe to repeat, safe to kill.
    """
    limit = tools.clock() - timedelta(days=job.grace_days)
    ledger, artifacts = tools.ledger, tools.artifacts
    ledger.drop_aliases(job.source, limit)
    documents = snapshots = 0
    while stones := ledger.tombstones_before(job.source, limit):
        ids = [stone.document_id for stone in stones]
        discard_vectors(artifacts, ids)
        hashes = {stone.raw_hash for stone in stones if stone.raw_hash}
        hashes |= {version.raw_hash for key in ids for version in ledger.versions(key)}
        # Forgotten and marked first: bytes that only these refer to count as unused from here on. A kill
        # in between leaves artifacts without an owner, which housekeeping finds, never an owner without
        # artifacts. And the versions before the mark, or nobody would come back for them.
        ledger.forget_versions(ids)
        ledger.expire(ids)
        snapshots += len(discard_snapshots(ledger, artifacts, hashes))
        documents += len(stones)
    return ExpireSummary(documents, snapshots)
