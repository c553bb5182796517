"""Expire: after the grace period a removed document loses what it could have been restored from."""

from dataclasses import dataclass
from datetime import timedelta

from tidemark.domain.records import Tombstone
from tidemark.ports import ArtifactStore
from tidemark.stages.job import Job, Tools, raw_key
from tidemark.stages.keepsakes import forget


@dataclass(frozen=True, slots=True)
class ExpireSummary:
    """documents: tombstones past their grace. snapshots: raw bytes deleted with them."""

    documents: int = 0
    snapshots: int = 0


def expire(job: Job, tools: Tools) -> ExpireSummary:
    """Delete vectors, elements and snapshots of the documents of a source that are gone for good.

    The tombstone itself stays, as the record of what was there. A snapshot that another document shares
    stays with that one. Safe to repeat, safe to kill.
    """
    limit = tools.clock() - timedelta(days=job.grace_days)
    tools.ledger.drop_aliases(job.source, limit)
    documents = snapshots = 0
    while stones := tools.ledger.tombstones_before(job.source, limit):
        ids = [stone.document_id for stone in stones]
        forget(tools, ids)
        # Marked first: bytes that only these refer to count as unused from here on, and a kill in between
        # leaves artifacts without an owner, which housekeeping finds, never an owner without artifacts.
        tools.ledger.expire(ids)
        snapshots += _delete_snapshots(tools, stones)
        documents += len(stones)
    return ExpireSummary(documents, snapshots)


def _delete_snapshots(tools: Tools, stones: list[Tombstone]) -> int:
    hashes = {stone.raw_hash for stone in stones if stone.raw_hash}
    unused = hashes - tools.ledger.raw_in_use(sorted(hashes))
    for raw_hash in sorted(unused):
        _delete_elements(tools.artifacts, raw_hash)
        tools.artifacts.delete(raw_key(raw_hash))
    return len(unused)


def _delete_elements(artifacts: ArtifactStore, raw_hash: str) -> None:
    for key in list(artifacts.keys(f"elements/{raw_hash}.")):
        artifacts.delete(key)
