"""Sweep: remove what is gone, note what was seen and what was missed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import islice
from time import perf_counter
from uuid import UUID

from tidemark.domain.decide import ANOMALIES, Action, Reason
from tidemark.domain.documents import Outcome
from tidemark.domain.records import DocumentRecord, HeldVersion, RunDocument, Sighting
from tidemark.stages.codec import Planned
from tidemark.stages.discard import discard_snapshots, discard_vectors
from tidemark.stages.generations import switch_when_complete
from tidemark.stages.job import Dependencies, Job, plan_key
from tidemark.stages.plan.plan import read_plan
from tidemark.stages.process.quarantine import quarantine_unfetched
from tidemark.stages.sweep.remove import alias_of, remove

# Expire: after the grace period a removed document loses what it could have been restored from.


@dataclass(frozen=True, slots=True)
class ExpireSummary:
    """documents: tombstones past their grace. snapshots: raw bytes deleted with them."""

    documents: int = 0
    snapshots: int = 0


def expire(job: Job, deps: Dependencies) -> ExpireSummary:
    """Delete vectors, history, elements and snapshots of a source's documents that are gone for good.

    The tombstone itself stays, as the record of what was there. A snapshot that another document shares
    stays with that one. Safe to repeat, safe to kill.
    """
    limit = deps.clock() - timedelta(days=job.grace_days)
    ledger, artifacts = deps.ledger, deps.artifacts
    ledger.sources.drop_aliases(job.source, limit)
    documents = snapshots = 0
    while stones := ledger.tombstones.restorable(job.source, limit):
        ids = [stone.document_id for stone in stones]
        discard_vectors(artifacts, ids)
        hashes = {stone.raw_hash for stone in stones if stone.raw_hash}
        hashes |= {version.raw_hash for key in ids for version in ledger.versions.of(key)}
        # Forgotten and marked first: bytes that only these refer to count as unused from here on. A kill
        # in between leaves artifacts without an owner, which housekeeping finds, never an owner without
        # artifacts. And the versions before the mark, or nobody would come back for them.
        ledger.versions.forget(ids)
        ledger.tombstones.expire(ids)
        snapshots += len(discard_snapshots(ledger, artifacts, hashes))
        documents += len(stones)
    return ExpireSummary(documents, snapshots)


PAGE = 500

COUNTED_ONLY = frozenset({Reason.UNCHANGED, Reason.UNLISTED})
"""Reasons that hold for whole sources at a time: the plan counts them, no row is written for each."""


@dataclass(frozen=True, slots=True)
class SweepSummary:
    """documents: by action. removed_chunks: points deleted. switched: the generation went live.

    expired: documents removed so long ago that they can no longer be restored.
    """

    documents: dict[str, int] = field(default_factory=dict)
    removed_chunks: int = 0
    switched: bool = False
    seconds: float = 0.0
    expired: int = 0


def sweep(job: Job, deps: Dependencies, generation: int) -> SweepSummary:
    """Carry out the part of the plan that needs no document's bytes. Safe to repeat, safe to kill."""
    started = perf_counter()
    documents: Counter[str] = Counter()
    removed_chunks = 0
    deps.progress.stage("sweep", None)
    plan = read_plan(deps.artifacts, plan_key(job.run_id))
    while page := list(islice(plan, PAGE)):
        records = deps.ledger.documents.by_id([p.decision.document_id for p in page])
        _note(job, deps, page, records)
        for planned in page:
            if planned.decision.action is Action.QUARANTINE:
                with deps.ledger.lock_documents([planned.decision.document_id]):
                    quarantine_unfetched(job, deps, planned, generation)
        documents.update(
            p.decision.action.value for p in page if p.decision.action is not Action.REMOVE
        )
    # After all notes: what one address leads to may be known by another, further down in the plan.
    for planned in read_plan(deps.artifacts, plan_key(job.run_id)):
        if planned.decision.action is Action.REMOVE:
            removed = remove(job, deps, planned, generation)
            if removed is not None:
                documents[Action.REMOVE.value] += 1
                removed_chunks += removed
            deps.progress.advance(detail=planned.decision.uri)
    switched = switch_when_complete(job, deps, generation)
    expired = expire(job, deps)
    return SweepSummary(
        dict(documents), removed_chunks, switched, perf_counter() - started, expired.documents
    )


def _note(
    job: Job, deps: Dependencies, page: Sequence[Planned], records: dict[UUID, DocumentRecord]
) -> None:
    """Write down in bulk what was seen, what was missed, and every reason that says something."""
    sightings, missed, events, aliases = [], [], [], []
    for planned in page:
        decision = planned.decision
        record = records.get(decision.document_id)
        if record is not None and decision.action is Action.KEEP and _was_seen(planned):
            sightings.append(_sighting(job, planned, record, deps))
        if decision.target and decision.action is not Action.REMOVE:
            aliases.append(alias_of(job, planned, deps))
        if record is not None and decision.action is Action.MISS:
            missed.append(decision.document_id)
        written_elsewhere = decision.action in (Action.REMOVE, Action.QUARANTINE)
        if decision.reason not in COUNTED_ONLY and not written_elsewhere:
            events.append(
                RunDocument(
                    job.run_id,
                    decision.document_id,
                    decision.uri,
                    decision.action.value,
                    decision.reason.value,
                    decision.detail,
                    chunks_kept=record.chunks if record else 0,
                )
            )
    now = deps.clock()
    deps.ledger.writes.mark_seen(job.run_id, now, sightings)
    deps.ledger.writes.mark_missing(job.run_id, now, missed)
    deps.ledger.runs.record_events(events)
    deps.ledger.sources.save_aliases(aliases)


def _was_seen(planned: Planned) -> bool:
    if planned.decision.reason is Reason.TAKEN_DOWN:
        return planned.observed is not None
    return planned.observed is not None and planned.observed.outcome in (
        Outcome.FETCHED,
        Outcome.NOT_MODIFIED,
        Outcome.TOO_LARGE,
    )


def _sighting(job: Job, planned: Planned, record: DocumentRecord, deps: Dependencies) -> Sighting:
    observed, reason = planned.observed, planned.decision.reason
    if reason in ANOMALIES or observed is None or observed.outcome is not Outcome.FETCHED:
        # Nothing is remembered of bytes that are not believed: they are looked at again every time.
        return Sighting(
            record.document_id,
            record.validators,
            record.fetch_fingerprint,
            record.fetched_raw_hash,
            _suspect(job, planned, record, deps) if reason in ANOMALIES else None,
        )
    return Sighting(
        record.document_id,
        observed.validators,
        deps.source.fingerprint,
        observed.raw_hash or record.fetched_raw_hash,
    )


def _suspect(job: Job, planned: Planned, record: DocumentRecord, deps: Dependencies) -> HeldVersion:
    decision, observed, before = planned.decision, planned.observed, record.suspect
    text = (observed.text_hash if observed else None) or ""
    reason = decision.reason.value
    if before is None or (before.reason, before.text_hash) != (reason, text):
        return HeldVersion(reason, decision.detail, text, deps.clock(), 1, job.run_id)
    runs = before.runs + (before.run_id != job.run_id)
    return replace(before, detail=decision.detail, runs=runs, run_id=job.run_id)
