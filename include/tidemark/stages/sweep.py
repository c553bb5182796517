"""Sweep: remove what is gone, note what was seen and what was missed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from time import perf_counter
from uuid import UUID

from tidemark.domain.identity import document_id
from tidemark.domain.model import Outcome
from tidemark.domain.plan import ELSEWHERE, SUSPECTED, Action, Decision, Reason
from tidemark.domain.records import (
    Alias,
    AliasKind,
    DocumentRecord,
    RunDocument,
    Suspect,
    Tombstone,
    Touch,
)
from tidemark.stages.codec import Planned
from tidemark.stages.expire import expire
from tidemark.stages.generation import switch_when_complete
from tidemark.stages.job import Job, Tools, is_later, plan_key
from tidemark.stages.keepsakes import put_aside
from tidemark.stages.payloads import read_indexed
from tidemark.stages.plan import read_plan
from tidemark.stages.quarantine import quarantine_unfetched
from tidemark.stages.reconcile import close
from tidemark.stages.takedown_late import bury, moved_meanwhile

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


def sweep(job: Job, tools: Tools, generation: int) -> SweepSummary:
    """Carry out the part of the plan that needs no document's bytes. Safe to repeat, safe to kill."""
    started = perf_counter()
    documents: Counter[str] = Counter()
    removed_chunks = 0
    tools.progress.stage("sweep", None)
    plan = read_plan(tools.artifacts, plan_key(job.run_id))
    while page := list(islice(plan, PAGE)):
        records = tools.ledger.documents_by_id([p.decision.document_id for p in page])
        _note(job, tools, page, records)
        for planned in page:
            if planned.decision.action is Action.QUARANTINE:
                with tools.ledger.lock_documents([planned.decision.document_id]):
                    quarantine_unfetched(job, tools, planned, generation)
        documents.update(
            p.decision.action.value for p in page if p.decision.action is not Action.REMOVE
        )
    # After all notes: what one address leads to may be known by another, further down in the plan.
    for planned in read_plan(tools.artifacts, plan_key(job.run_id)):
        if planned.decision.action is Action.REMOVE:
            removed = remove(job, tools, planned, generation)
            if removed is not None:
                documents[Action.REMOVE.value] += 1
                removed_chunks += removed
            tools.progress.advance(detail=planned.decision.uri)
    switched = switch_when_complete(job, tools, generation)
    close(job, tools, generation)
    expired = expire(job, tools)
    return SweepSummary(
        dict(documents), removed_chunks, switched, perf_counter() - started, expired.documents
    )


def _note(
    job: Job, tools: Tools, page: Sequence[Planned], records: dict[UUID, DocumentRecord]
) -> None:
    """Write down in bulk what was seen, what was missed, and every reason that says something."""
    touches, missed, events, aliases = [], [], [], []
    for planned in page:
        decision = planned.decision
        record = records.get(decision.document_id)
        if record is not None and decision.action is Action.KEEP and _was_seen(planned):
            touches.append(_touch(job, planned, record, tools))
        if decision.target and decision.action is not Action.REMOVE:
            aliases.append(_alias(job, planned, tools))
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
    now = tools.clock()
    tools.ledger.touch(job.run_id, now, touches)
    tools.ledger.miss(job.run_id, now, missed)
    tools.ledger.record_events(events)
    tools.ledger.save_aliases(aliases)


def _alias(job: Job, planned: Planned, tools: Tools) -> Alias:
    decision, observed = planned.decision, planned.observed
    target = document_id(job.source, decision.target)
    kind = AliasKind(decision.reason.value)
    now = tools.clock()
    if kind is not AliasKind.DUPLICATE or observed is None:
        return Alias(job.source, decision.uri, target, kind, now)
    return Alias(
        job.source,
        decision.uri,
        target,
        kind,
        now,
        observed.validators,
        observed.raw_hash,
        observed.media_type or "",
        observed.charset,
        observed.text_hash,
        observed.text_length,
        observed.fetched_at,
    )


def _was_seen(planned: Planned) -> bool:
    if planned.decision.reason is Reason.TAKEN_DOWN:
        return planned.observed is not None
    return planned.observed is not None and planned.observed.outcome in (
        Outcome.FETCHED,
        Outcome.NOT_MODIFIED,
        Outcome.TOO_LARGE,
    )


def _touch(job: Job, planned: Planned, record: DocumentRecord, tools: Tools) -> Touch:
    observed, reason = planned.observed, planned.decision.reason
    if reason in SUSPECTED or observed is None or observed.outcome is not Outcome.FETCHED:
        # Nothing is remembered of bytes that are not believed: they are looked at again every time.
        return Touch(
            record.document_id,
            record.validators,
            record.fetch_fingerprint,
            record.fetched_raw_hash,
            _suspect(job, planned, record, tools) if reason in SUSPECTED else None,
        )
    return Touch(
        record.document_id,
        observed.validators,
        tools.source.fingerprint,
        observed.raw_hash or record.fetched_raw_hash,
    )


def _suspect(job: Job, planned: Planned, record: DocumentRecord, tools: Tools) -> Suspect:
    decision, observed, before = planned.decision, planned.observed, record.suspect
    text = (observed.text_hash if observed else None) or ""
    reason = decision.reason.value
    if before is None or (before.reason, before.text_hash) != (reason, text):
        return Suspect(reason, decision.detail, text, tools.clock(), 1, job.run_id)
    runs = before.runs + (before.run_id != job.run_id)
    return replace(before, detail=decision.detail, runs=runs, run_id=job.run_id)


def remove(job: Job, tools: Tools, planned: Planned, generation: int) -> int | None:
    """Remove one document from every generation, then from the ledger; how many points it had.

    None when a later run has seen it, so that this plan is out of date and decides nothing any more, and
    when what its address leads to is not indexed after all: then it stays as it is.
    """
    document, uri, target = (
        planned.decision.document_id,
        planned.decision.uri,
        planned.decision.target,
    )
    ids = [document, document_id(job.source, target)] if target else [document]
    with tools.ledger.lock_documents(ids):
        late = moved_meanwhile(tools.ledger, job.source, uri, target)
        if late is not None:
            detail = f"moved from {uri}, which was taken down meanwhile"
            followed = Decision(
                late.document_id, late.uri, Action.REMOVE, Reason.TAKEN_DOWN, detail=detail
            )
            _take_down(job, tools, Planned(followed, None), late, generation, uri)
        record = tools.ledger.document(document)
        run = tools.ledger.run(job.run_id)
        if record and run and is_later(record.last_seen, run.started_at, tools.clock):
            tools.ledger.record_events([_superseded(job, planned, record)])
            return None
        if record is not None and record.raw_hash and not _stands_elsewhere(job, tools, planned):
            tools.ledger.record_events([_not_there_yet(job, planned, record)])
            return None
        if record is not None and planned.decision.reason is Reason.TAKEN_DOWN:
            return _take_down(job, tools, planned, record, generation, uri)
        # The note first: were this cut short, a document that came back must not pass as unchanged.
        tools.ledger.begin(job.run_id, job.source, {document: planned.decision.uri})
        if record is not None and planned.decision.reason not in ELSEWHERE:
            _keep_vectors(tools, record)
        removed = _delete_points(job, tools, planned, generation)
        _forget(job, tools, planned, record, removed)
        if planned.decision.target:
            tools.ledger.save_aliases([_alias(job, planned, tools)])
    return removed


def _take_down(
    job: Job, tools: Tools, planned: Planned, record: DocumentRecord, generation: int, ordered: str
) -> int:
    """Carry out what a takedown could not, of a document that a run was writing; how many points it had."""
    decision = planned.decision
    tools.ledger.begin(job.run_id, job.source, {decision.document_id: decision.uri})
    removed = _delete_points(job, tools, planned, generation)
    bury(tools, record, _removal(job, planned, removed), ordered)
    return removed


def _keep_vectors(tools: Tools, record: DocumentRecord) -> None:
    if record.fingerprints is None or record.generation not in tools.index.generations():
        return
    if record.generation is not None:
        with tools.index.session():
            put_aside(tools, record.document_id, record.generation, record.fingerprints.embed)


def _stands_elsewhere(job: Job, tools: Tools, planned: Planned) -> bool:
    """Is the document that the address leads to live? Also for a removal that is none of that kind."""
    target = planned.decision.target
    if not target:
        return True
    found = tools.ledger.document(document_id(job.source, target))
    if found is None and (alias := tools.ledger.aliases_by_uri(job.source, [target]).get(target)):
        found = tools.ledger.document(alias.document_id)
    return found is not None and found.raw_hash is not None


def _not_there_yet(job: Job, planned: Planned, record: DocumentRecord) -> RunDocument:
    return RunDocument(
        job.run_id,
        record.document_id,
        record.uri,
        Action.KEEP.value,
        Reason.UNREACHABLE.value,
        f"leads to {planned.decision.target}, which is not indexed",
        chunks_kept=record.chunks,
    )


def _superseded(job: Job, planned: Planned, record: DocumentRecord) -> RunDocument:
    return RunDocument(
        job.run_id,
        record.document_id,
        record.uri,
        Action.KEEP.value,
        Reason.SUPERSEDED.value,
        "a later run has seen it",
        chunks_kept=record.chunks,
    )


def _delete_points(job: Job, tools: Tools, planned: Planned, generation: int) -> int:
    """Delete what any generation has of a document; how many points the one that is written had.

    Of one that stands elsewhere now searches are answered from the live generation until this one is live:
    there it goes with that generation, or with the document that it has become.
    """
    removed, document = 0, planned.decision.document_id
    with tools.index.session():
        live = tools.index.live()
        building = live not in (None, generation)
        moved = building and planned.decision.reason in ELSEWHERE
        before = [
            document_id(job.source, alias.uri)
            for alias in (tools.ledger.aliases_of(document) if building else [])
        ]
        for number in tools.index.generations():
            if moved and number == live:
                continue
            for one in (document, *before):
                held = read_indexed(tools.index, number, one)
                tools.index.delete_points(number, list(held.points))
                tools.index.delete_sections(number, list(held.sections))
                removed += len(held.points) if number == generation else 0
    return removed


def _removal(job: Job, planned: Planned, removed: int) -> RunDocument:
    decision = planned.decision
    return RunDocument(
        job.run_id,
        decision.document_id,
        decision.uri,
        decision.action.value,
        decision.reason.value,
        decision.detail,
        chunks_removed=removed,
    )


def _forget(
    job: Job, tools: Tools, planned: Planned, record: DocumentRecord | None, removed: int
) -> None:
    decision, event = planned.decision, _removal(job, planned, removed)
    if record is None:
        # Only the remains of a write that was cut short: there is no document to remember.
        tools.ledger.settle([decision.document_id])
        tools.ledger.record_events([event])
        return
    tools.ledger.remove_document(
        Tombstone(
            record.document_id,
            record.source,
            record.uri,
            record.title,
            record.raw_hash,
            tools.clock(),
            decision.reason.value,
            job.run_id,
        ),
        event,
    )
