"""Process one batch of the plan: partition, chunk, embed and index, window by window.

A window holds a bounded number of documents and of new texts, so memory does not grow with the batch,
while the model still gets texts enough to sort by length.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from uuid import UUID

from tidemark.domain.decide import Action, Reason, Target
from tidemark.domain.documents import Outcome
from tidemark.domain.errors import (
    DocumentError,
    LockLostError,
    PermanentError,
    RefusedError,
    TransientError,
)
from tidemark.domain.records import DocumentRecord, RunDocument
from tidemark.domain.summary import ChunkCounts
from tidemark.stages.codec import Planned
from tidemark.stages.job import Dependencies, Job
from tidemark.stages.plan.plan import read_plan
from tidemark.stages.process.prepare import Meter, Prepared, SameContent, prepare
from tidemark.stages.process.quarantine import last_good, quarantine, quarantine_unfetched
from tidemark.stages.process.vectors import vectors_for
from tidemark.stages.process.versions import is_done, version_of
from tidemark.stages.process.write import Vectors, index_document, pass_gate, takes_any
from tidemark.stages.takedown.late import held_back

log = logging.getLogger(__name__)

WINDOW_DOCUMENTS = 32
WINDOW_TEXTS = 512


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """documents: by action. work: calls of each stage. seconds: wall, by stage."""

    documents: dict[str, int] = field(default_factory=dict)
    chunks: ChunkCounts = ChunkCounts()
    work: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


def process_batch(job: Job, deps: Dependencies, target: Target, key: str) -> BatchSummary:
    """Make the index right for the documents of one batch. Safe to repeat, safe to kill.

    A document that fails by its own fault is quarantined; an outage (``TransientError``) ends the batch,
    and its repetition goes on where it ended.
    """
    return process(job, deps, target, read_plan(deps.artifacts, key))


def process(job: Job, deps: Dependencies, target: Target, work: Iterator[Planned]) -> BatchSummary:
    """Process planned documents (see ``process_batch``)."""
    meter = Meter()
    events: list[RunDocument] = []
    while window := list(islice(work, WINDOW_DOCUMENTS)):
        try:
            events += _locked(job, deps, target, window, meter)
        except TransientError as error:
            # A store that was restarted took the locks with it. What is done of the window is not done again.
            log.warning("%s Its %d documents are tried once more.", error.message, len(window))
            events += _locked(job, deps, target, window, meter)
    return _summary(events, meter)


def _locked(
    job: Job, deps: Dependencies, target: Target, window: Sequence[Planned], meter: Meter
) -> list[RunDocument]:
    ids = [planned.decision.document_id for planned in window]
    try:
        # Locked before the ledger is read: what is written is a difference to what was read.
        with deps.ledger.lock_documents(ids):
            return _window(job, deps, target, window, meter, deps.ledger.begun(ids))
    except LockLostError:
        # Another may have written them meanwhile: whoever is next asks the index what it holds.
        deps.ledger.begin(
            job.run_id, job.source, {p.decision.document_id: p.decision.uri for p in window}
        )
        raise


def _window(
    job: Job,
    deps: Dependencies,
    target: Target,
    window: Sequence[Planned],
    meter: Meter,
    begun: set[UUID],
) -> list[RunDocument]:
    events: list[RunDocument] = []
    prepared: list[Prepared] = []
    taken = held_back(job, deps, {p.decision.document_id: p.decision.uri for p in window})
    deps.ledger.record_events([*taken.values()])
    for planned in window:
        if (held := taken.get(planned.decision.document_id)) is not None:
            events.append(held)
            continue
        outcome = _one(job, deps, target, planned, meter, begun)
        if isinstance(outcome, Prepared):
            prepared.append(outcome)
        else:
            events.append(outcome)
            deps.progress.advance(detail=planned.decision.uri)
        if sum(len(p.new) for p in prepared) >= WINDOW_TEXTS:
            events += _flush(job, deps, target, prepared, meter)
            prepared = []
    return events + _flush(job, deps, target, prepared, meter)


def _one(
    job: Job,
    deps: Dependencies,
    target: Target,
    planned: Planned,
    meter: Meter,
    begun: set[UUID],
) -> Prepared | RunDocument:
    decision = planned.decision
    record = deps.ledger.document(decision.document_id)
    version = version_of(deps, planned, record, decision.document_id in begun)
    if version is None:
        event = _left(job, planned, Reason.SUPERSEDED, "a later run has seen it", record)
        deps.ledger.record_events([event])
        return event
    if record is not None and is_done(job, record, version, target):
        return _left(job, planned, decision.reason, "already done by an earlier attempt", record)
    try:
        outcome = prepare(job, deps, target, version, meter)
    except DocumentError as error:
        event = quarantine(job, deps, target, version, error)
        elsewhere = record is not None and record.generation not in (None, target.generation)
        if version.in_flight or elsewhere:
            return last_good(job, deps, target, version, event, meter)
        return event
    if isinstance(outcome, SameContent):
        return pass_gate(job, deps, target, outcome)
    return outcome


def _left(
    job: Job,
    planned: Planned,
    reason: Reason,
    detail: str,
    record: DocumentRecord | None = None,
) -> RunDocument:
    decision = planned.decision
    return RunDocument(
        job.run_id,
        decision.document_id,
        decision.uri,
        Action.KEEP.value,
        reason.value,
        detail,
        chunks_kept=record.chunks if record else 0,
    )


def _flush(
    job: Job, deps: Dependencies, target: Target, window: Sequence[Prepared], meter: Meter
) -> list[RunDocument]:
    if not window:
        return []
    embedded = vectors_for(deps, target, window, meter)
    whole = [p for p in window if p.version.planned.decision.document_id not in embedded.failed]
    deps.ledger.begin(
        job.run_id,
        job.source,
        {p.version.planned.decision.document_id: p.version.planned.decision.uri for p in whole},
    )
    events = []
    refused: list[tuple[Prepared, DocumentError]] = []
    with meter.stage("upsert", sum(len(p.new) for p in whole)), deps.index.session():
        for prepared in window:
            decision = prepared.version.planned.decision
            if (fault := embedded.failed.get(decision.document_id)) is not None:
                refused.append((prepared, fault))
                continue
            carried = sum(c.chunk_id in embedded.carried for c in prepared.new_chunks())
            written = replace(prepared, carried=carried)
            try:
                events.append(_write(job, deps, target, written, embedded.vectors))
            except RefusedError as error:
                refused.append((prepared, _not_taken(decision.uri, error)))
                continue
            deps.progress.advance(detail=decision.uri)
    if not events and len(whole) > 1 and not takes_any(deps, target, whole, embedded.vectors):
        raise PermanentError(
            f"The index refused all of {len(whole)} documents, so the fault is not theirs: "
            f"{refused[-1][1].message}",
            refused[-1][1].hint,
        )
    for prepared, fault in refused:
        events.append(_refused(job, deps, target, prepared, fault, meter))
        deps.progress.advance(detail=prepared.version.planned.decision.uri)
    return events


def _write(
    job: Job, deps: Dependencies, target: Target, prepared: Prepared, vectors: Vectors
) -> RunDocument:
    event = index_document(job, deps, target, prepared, vectors)
    planned = prepared.version.planned
    if planned.observed is None or planned.observed.outcome is not Outcome.TOO_LARGE:
        return event
    # What was written is the last good version; that there is a newer one is to be known all the same.
    return quarantine_unfetched(job, deps, planned, target.generation, event)


def _not_taken(uri: str, error: RefusedError) -> DocumentError:
    return DocumentError("index", f"{uri} was refused: {error.message}", error.hint)


def _refused(
    job: Job,
    deps: Dependencies,
    target: Target,
    prepared: Prepared,
    error: DocumentError,
    meter: Meter,
) -> RunDocument:
    """Quarantine a document after its writing may have begun, and put its last good version right."""
    version = prepared.version
    if version.failed is not None:
        return version.failed
    event = quarantine(job, deps, target, version, error)
    began = version.in_flight or error.stage == "index"
    record = version.record
    if not began and (record is None or record.generation in (None, target.generation)):
        return event
    good = last_good(job, deps, target, replace(version, in_flight=began), event, meter)
    return good if isinstance(good, RunDocument) else _rewritten(job, deps, target, good, meter)


def _rewritten(
    job: Job, deps: Dependencies, target: Target, good: Prepared, meter: Meter
) -> RunDocument:
    event = good.version.failed
    if event is None:
        raise AssertionError("only the last good version of a document that failed is written so")
    embedded = vectors_for(deps, target, [good], meter)
    if embedded.failed:
        return event
    try:
        return index_document(job, deps, target, good, embedded.vectors)
    except RefusedError:
        return event  # Its note stays, so the next run tries again.


def _summary(events: Sequence[RunDocument], meter: Meter) -> BatchSummary:
    chunks = ChunkCounts(
        sum(e.chunks_added for e in events),
        sum(e.chunks_kept for e in events),
        sum(e.chunks_removed for e in events),
    )
    documents = Counter(event.action for event in events)
    return BatchSummary(dict(documents), chunks, dict(meter.work), dict(meter.seconds))
