"""Sweep: remove what is gone or stands elsewhere now, note what was seen and what was missed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import islice
from time import perf_counter
from uuid import UUID

from tidemark.domain.decide import ANOMALIES, ELSEWHERE, Action, Decision, Reason
from tidemark.domain.documents import Outcome
from tidemark.domain.identity import document_id
from tidemark.domain.records import (
    Alias,
    AliasKind,
    DocumentRecord,
    HeldVersion,
    RunDocument,
    Sighting,
    Tombstone,
)
from tidemark.ports.ledger import Ledger
from tidemark.stages.codec import Planned, read_plan
from tidemark.stages.discard import discard_snapshots, discard_vectors
from tidemark.stages.generations import switch_when_complete
from tidemark.stages.job import Dependencies, Job, is_later, plan_key
from tidemark.stages.process.payloads import read_indexed
from tidemark.stages.process.quarantine import quarantine_unfetched
from tidemark.stages.process.vectors import archive_vectors

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
    expired = _expire(job, deps)
    return SweepSummary(
        dict(documents), removed_chunks, switched, perf_counter() - started, expired
    )


def _expire(job: Job, deps: Dependencies) -> int:
    """After the grace period a removed document loses what it could have been restored from; how many.

    Vectors, history, elements and snapshots go, but for a snapshot that another document shares. The
    tombstone itself stays, as the record of what was there. Safe to repeat, safe to kill.
    """
    limit = deps.clock() - timedelta(days=job.grace_days)
    ledger, artifacts = deps.ledger, deps.artifacts
    ledger.sources.drop_aliases(job.source, limit)
    documents = 0
    while tombstones := ledger.tombstones.restorable(job.source, limit):
        ids = [tombstone.document_id for tombstone in tombstones]
        discard_vectors(artifacts, ids)
        hashes = {tombstone.raw_hash for tombstone in tombstones if tombstone.raw_hash}
        hashes |= {version.raw_hash for key in ids for version in ledger.versions.of(key)}
        # Forgotten and marked first: bytes that only these refer to count as unused from here on. A kill
        # in between leaves artifacts without an owner, which housekeeping finds, never an owner without
        # artifacts. And the versions before the mark, or nobody would come back for them.
        ledger.versions.forget(ids)
        ledger.tombstones.expire(ids)
        discard_snapshots(ledger, artifacts, hashes)
        documents += len(ids)
    return documents


# What was seen, and what was missed.


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
            aliases.append(_alias(job, deps, planned))
        if record is not None and decision.action is Action.MISS:
            missed.append(decision.document_id)
        written_elsewhere = decision.action in (Action.REMOVE, Action.QUARANTINE)
        if decision.reason not in COUNTED_ONLY and not written_elsewhere:
            events.append(_event(job, decision, kept=record.chunks if record else 0))
    now = deps.clock()
    deps.ledger.writes.mark_seen(job.run_id, now, sightings)
    deps.ledger.writes.mark_missing(job.run_id, now, missed)
    deps.ledger.runs.record_events(events)
    deps.ledger.sources.save_aliases(aliases)


def _event(job: Job, decision: Decision, *, kept: int = 0, removed: int = 0) -> RunDocument:
    return RunDocument(
        job.run_id,
        decision.document_id,
        decision.uri,
        decision.action.value,
        decision.reason.value,
        decision.detail,
        chunks_kept=kept,
        chunks_removed=removed,
    )


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
            _held_version(job, planned, record, deps) if reason in ANOMALIES else None,
        )
    return Sighting(
        record.document_id,
        observed.validators,
        deps.source.fingerprint,
        observed.raw_hash or record.fetched_raw_hash,
    )


def _held_version(
    job: Job, planned: Planned, record: DocumentRecord, deps: Dependencies
) -> HeldVersion:
    decision, observed, before = planned.decision, planned.observed, record.suspect
    text = (observed.text_hash if observed else None) or ""
    reason = decision.reason.value
    if before is None or (before.reason, before.text_hash) != (reason, text):
        return HeldVersion(reason, decision.detail, text, deps.clock(), 1, job.run_id)
    runs = before.runs + (before.run_id != job.run_id)
    return replace(before, detail=decision.detail, runs=runs, run_id=job.run_id)


def _alias(job: Job, deps: Dependencies, planned: Planned) -> Alias:
    """What an address is from now on that leads to another one."""
    decision, observed = planned.decision, planned.observed
    target = document_id(job.source, decision.target)
    kind = AliasKind(decision.reason.value)
    alias = Alias(job.source, decision.uri, target, kind, deps.clock())
    if kind is not AliasKind.DUPLICATE or observed is None:
        return alias
    return replace(
        alias,
        validators=observed.validators,
        raw_hash=observed.raw_hash,
        media_type=observed.media_type or "",
        charset=observed.charset,
        text_hash=observed.text_hash,
        text_length=observed.text_length,
        fetched_at=observed.fetched_at,
    )


# One document that goes.


def remove(job: Job, deps: Dependencies, planned: Planned, generation: int) -> int | None:
    """Remove one document from every generation, then from the ledger; how many points it had.

    None when a later run has seen it, so that this plan is out of date and decides nothing any more, and
    when what its address leads to is not indexed after all: then it stays as it is. None also for one that
    is being taken down: that is done by others, or by the next run.
    """
    decision, ledger = _as_moved(job, deps, planned), deps.ledger
    document, uri, target = decision.document_id, decision.uri, decision.target
    ids = [document, document_id(job.source, target)] if target else [document]
    with ledger.lock_documents(ids):
        record = ledger.documents.get(document)
        end = _end(job, deps, decision)
        kept = _kept(job, deps, decision, record, end)
        if record is not None and kept is not None:
            ledger.runs.record_events([_event(job, kept, kept=record.chunks)])
            return None
        if record is not None and decision.reason is Reason.TAKEN_DOWN:
            return None
        # The intent first: were this cut short, a document that came back must not pass as unchanged.
        ledger.writes.open_intent(job.run_id, job.source, {document: uri})
        if record is not None and decision.reason not in ELSEWHERE:
            _archive_vectors(deps, record)
        removed = _delete_points(job, deps, decision, generation)
        event = _event(job, decision, removed=removed)
        planned = replace(planned, decision=decision)
        alias = replace(_alias(job, deps, planned), document_id=end.document_id) if end else None
        if record is not None:
            ledger.writes.remove(_tombstone(job, deps, decision, record), event, alias)
            return removed
        # Only the remains of a write that was cut short: there is no document to remember.
        ledger.writes.close_intent([document])
        ledger.runs.record_events([event])
        ledger.sources.save_aliases([alias] if alias else [])
    return removed


def _as_moved(job: Job, deps: Dependencies, planned: Planned) -> Decision:
    """What is gone as moved, where a run that died had it written at its new address already."""
    decision, ledger = planned.decision, deps.ledger
    if decision.reason is not Reason.GONE or planned.observed is not None:
        return decision
    record = ledger.documents.get(decision.document_id)
    if record is None or record.raw_hash is None:
        return decision
    for other in ledger.documents.by_raw(job.source, [record.raw_hash]):
        if other.first_seen >= record.first_seen and has_moved_from(ledger, other, record.uri):
            return replace(decision, reason=Reason.MOVED, target=other.uri)
    return decision


def has_moved_from(ledger: Ledger, record: DocumentRecord, uri: str) -> bool:
    """Did a document come to be by moving from an address?"""
    if record.reason != Reason.MOVED.value:
        return False
    detail = f"from {uri}"
    return any(
        (version.reason, version.uri) == (Reason.MOVED.value, record.uri)
        and (version.detail == detail or version.detail.startswith(f"{detail}; "))
        for version in ledger.versions.of(record.document_id)
    )


def _end(job: Job, deps: Dependencies, decision: Decision) -> DocumentRecord | None:
    """The document that an address leads to, which may itself have become another address meanwhile."""
    if not decision.target:
        return None
    end = deps.ledger.documents.get(document_id(job.source, decision.target))
    if end is None:
        aliases = deps.ledger.sources.aliases_by_uri([decision.target], job.source)
        end = deps.ledger.documents.get(aliases[0].document_id) if aliases else None
    # One that is led back to has nowhere to go.
    return None if end is not None and end.document_id == decision.document_id else end


def _kept(
    job: Job,
    deps: Dependencies,
    decision: Decision,
    record: DocumentRecord | None,
    end: DocumentRecord | None,
) -> Decision | None:
    """The decision to keep it after all, for what is known since the plan; None to go on."""
    run = deps.ledger.runs.get(job.run_id)
    kept = replace(decision, action=Action.KEEP)
    if record and run and is_later(record.last_seen, run.started_at, deps.clock):
        return replace(kept, reason=Reason.SUPERSEDED, detail="a later run has seen it")
    is_live = end is not None and end.raw_hash is not None
    if record is not None and record.raw_hash and decision.target and not is_live:
        detail = f"leads to {decision.target}, which is not indexed"
        return replace(kept, reason=Reason.UNREACHABLE, detail=detail)
    return None


def _archive_vectors(deps: Dependencies, record: DocumentRecord) -> None:
    generation, made_under = record.generation, record.fingerprints
    if generation is None or made_under is None or generation not in deps.index.generations():
        return
    with deps.index.session():
        archive_vectors(deps, record.document_id, generation, made_under.embed)


def _delete_points(job: Job, deps: Dependencies, decision: Decision, generation: int) -> int:
    """Delete what any generation has of a document; how many points the one that is written had.

    Of one that stands elsewhere now searches are answered from the live generation until this one is live:
    there it goes with that generation, or with the document that it has become.
    """
    removed, document = 0, decision.document_id
    with deps.index.session():
        live = deps.index.live()
        building = live not in (None, generation)
        moved = building and decision.reason in ELSEWHERE
        before = [
            document_id(job.source, alias.uri)
            for alias in (deps.ledger.sources.aliases_of(document) if building else [])
        ]
        for number in deps.index.generations():
            if moved and number == live:
                continue
            for one in (document, *before):
                held = read_indexed(deps.index, number, one)
                deps.index.delete_points(number, list(held.points))
                deps.index.delete_sections(number, list(held.sections))
                removed += len(held.points) if number == generation else 0
    return removed


def _tombstone(
    job: Job, deps: Dependencies, decision: Decision, record: DocumentRecord
) -> Tombstone:
    return Tombstone(
        record.document_id,
        record.source,
        record.uri,
        record.title,
        record.raw_hash,
        deps.clock(),
        decision.reason.value,
        job.run_id,
    )
