"""Process one batch of the plan: partition, chunk, embed and index, window by window.

A window holds a bounded number of documents and of new texts, so memory does not grow with the batch,
while the model still gets texts enough to sort by length.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from tidemark.domain.decide import Action, Reason, Target
from tidemark.domain.documents import Outcome
from tidemark.domain.errors import (
    DocumentError,
    LockLostError,
    PermanentError,
    RefusedError,
    TransientError,
)
from tidemark.domain.records import ChunkCounts, DocumentRecord, RunDocument, Sighting
from tidemark.stages.codec import Planned, read_plan
from tidemark.stages.discard import discard_snapshots
from tidemark.stages.job import Dependencies, Job
from tidemark.stages.process.prepare import (
    BlockedError,
    Context,
    Prepared,
    SameContent,
    Version,
    is_done,
    prepare,
    version_of,
)
from tidemark.stages.process.quarantine import last_good, quarantine, quarantine_unfetched
from tidemark.stages.process.vectors import Vectors, vectors_for
from tidemark.stages.process.write import pass_gate, takes_any, write_document

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
    ctx = Context(job, deps, target)
    events: list[RunDocument] = []
    while window := list(islice(work, WINDOW_DOCUMENTS)):
        try:
            events += _window(ctx, window)
        except TransientError as error:
            # A store that was restarted took the locks with it. What is done of the window is not done again.
            log.warning("%s Its %d documents are tried once more.", error.message, len(window))
            events += _window(ctx, window)
    chunks = ChunkCounts(
        sum(e.chunks_added for e in events),
        sum(e.chunks_kept for e in events),
        sum(e.chunks_removed for e in events),
    )
    documents = Counter(event.action for event in events)
    return BatchSummary(dict(documents), chunks, dict(ctx.meter.work), dict(ctx.meter.seconds))


def _window(ctx: Context, window: Sequence[Planned]) -> list[RunDocument]:
    ledger = ctx.deps.ledger
    uris = {planned.decision.document_id: planned.decision.uri for planned in window}
    try:
        # Locked before the ledger is read: what is written is a difference to what was read.
        # What moves is taken down at either end, so both are locked.
        origins = {p.decision.origin for p in window if p.decision.reason is Reason.MOVED}
        with ledger.lock_documents([*uris, *filter(None, origins - uris.keys())]):
            pending = ledger.writes.pending(among=[*uris])
            events: list[RunDocument] = []
            prepared: list[Prepared] = []
            for planned in window:
                key = planned.decision.document_id
                outcome = _one(ctx, planned, in_flight=key in pending)
                if isinstance(outcome, Prepared):
                    prepared.append(outcome)
                else:
                    events.append(outcome)
                    ctx.deps.progress.advance(detail=planned.decision.uri)
                if sum(len(p.new) for p in prepared) >= WINDOW_TEXTS:
                    events += _flush(ctx, prepared)
                    prepared = []
            return events + _flush(ctx, prepared)
    except LockLostError:
        # Another may have written them meanwhile: whoever is next asks the index what it holds.
        ledger.writes.open_intent(ctx.job.run_id, ctx.job.source, uris)
        raise


def _one(ctx: Context, planned: Planned, *, in_flight: bool) -> Prepared | RunDocument:
    record = ctx.deps.ledger.documents.get(planned.decision.document_id)
    version = version_of(ctx, planned, record, in_flight)
    if version is None:
        event = _event(ctx, planned, record, Reason.SUPERSEDED, "a later run has seen it")
        ctx.deps.ledger.runs.record_events([event])
        return event
    if is_done(ctx, version):
        detail = "already done by an earlier attempt"
        return _event(ctx, planned, record, planned.decision.reason, detail)
    try:
        outcome = prepare(ctx, version)
    except DocumentError as error:
        return _keep_good(ctx, version, quarantine(ctx, version, error))
    except BlockedError as error:
        return _block(ctx, version, error)
    return pass_gate(ctx, outcome) if isinstance(outcome, SameContent) else outcome


def _keep_good(ctx: Context, version: Version, event: RunDocument) -> Prepared | RunDocument:
    """What is live of a document whose newer version is not to be had, where that has to be put right."""
    if version.in_flight or version.is_elsewhere(ctx.target):
        return last_good(ctx, version, event)
    return event


def _block(ctx: Context, version: Version, error: BlockedError) -> Prepared | RunDocument:
    """Leave out a version that was taken down, with what is stored of it; what is live stays."""
    record, ledger, now = version.record, ctx.deps.ledger, ctx.deps.clock()
    live = record is not None and record.raw_hash is not None
    action = Action.KEEP if live else Action.SKIP
    event = _event(ctx, version.planned, record, Reason.TAKEN_DOWN, str(error), action)
    # Of a document that goes itself nothing is put right.
    goes = version.uri in ctx.job.blocks.by_uri
    outcome = event if goes else _keep_good(ctx, version, event)
    if error.origin is not None:
        # It is the one that was taken down, so that its new address is blocked with the old one.
        key, raw = version.document_id, version.raw_hash
        ledger.writes.remove(error.origin.moved_to(key, version.uri, raw, now), event)
    else:
        ledger.runs.record_events([event])
    if record is not None:
        known = record.validators, record.fetch_fingerprint, record.fetched_raw_hash
        sighting = Sighting(record.document_id, *known)
        ledger.writes.mark_seen(ctx.job.run_id, now, [sighting])
    discard_snapshots(ledger, ctx.deps.artifacts, [version.raw_hash])
    return outcome


def _event(
    ctx: Context,
    planned: Planned,
    record: DocumentRecord | None,
    reason: Reason,
    detail: str,
    action: Action = Action.KEEP,
) -> RunDocument:
    return RunDocument(
        ctx.job.run_id,
        planned.decision.document_id,
        planned.decision.uri,
        action.value,
        reason.value,
        detail,
        chunks_kept=record.chunks if record else 0,
    )


def _flush(ctx: Context, window: Sequence[Prepared]) -> list[RunDocument]:
    if not window:
        return []
    embedded = vectors_for(ctx, window)
    whole = [p for p in window if p.version.document_id not in embedded.failed]
    uris = {p.version.document_id: p.version.uri for p in whole}
    ctx.deps.ledger.writes.open_intent(ctx.job.run_id, ctx.job.source, uris)
    events = []
    refused: list[tuple[Prepared, DocumentError]] = []
    with ctx.meter.stage("upsert", sum(len(p.new) for p in whole)), ctx.deps.index.session():
        for prepared in window:
            uri = prepared.version.uri
            if (fault := embedded.failed.get(prepared.version.document_id)) is not None:
                refused.append((prepared, fault))
                continue
            reused = sum(chunk.chunk_id in embedded.reused for chunk in prepared.new_chunks())
            try:
                events.append(_write(ctx, replace(prepared, reused=reused), embedded.vectors))
            except RefusedError as error:
                message = f"{uri} was refused: {error.message}"
                refused.append((prepared, DocumentError("index", message, error.hint)))
                continue
            ctx.deps.progress.advance(detail=uri)
    if not events and len(whole) > 1 and not takes_any(ctx, whole, embedded.vectors):
        fault = refused[-1][1]
        raise PermanentError(
            f"The index refused all of {len(whole)} documents, so the fault is not theirs: "
            f"{fault.message}",
            fault.hint,
        )
    for prepared, fault in refused:
        events.append(_refused(ctx, prepared, fault))
        ctx.deps.progress.advance(detail=prepared.version.uri)
    return events


def _write(ctx: Context, prepared: Prepared, vectors: Vectors) -> RunDocument:
    event = write_document(ctx, prepared, vectors)
    planned = prepared.version.planned
    if planned.observed is None or planned.observed.outcome is not Outcome.TOO_LARGE:
        return event
    # What was written is the last good version; that there is a newer one is to be known all the same.
    return quarantine_unfetched(ctx.job, ctx.deps, planned, ctx.target.generation, event)


def _refused(ctx: Context, prepared: Prepared, error: DocumentError) -> RunDocument:
    """Quarantine a document after its writing may have begun, and put its last good version right."""
    version = prepared.version
    if version.failed is not None:
        return version.failed
    event = quarantine(ctx, version, error)
    began = version.in_flight or error.stage == "index"
    if not began and not version.is_elsewhere(ctx.target):
        return event
    good = last_good(ctx, replace(version, in_flight=began), event)
    if isinstance(good, RunDocument):
        return good
    embedded = vectors_for(ctx, [good])
    if embedded.failed:
        return event
    try:
        return write_document(ctx, good, embedded.vectors)
    except RefusedError:
        return event  # Its note stays, so the next run tries again.
