"""Process one batch of the plan: partition, chunk, embed and index, window by window.

A window holds a bounded number of documents and of new texts, so memory does not grow with the batch,
while the model still gets texts enough to sort by length.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from uuid import UUID

from tidemark.domain.errors import DocumentError
from tidemark.domain.model import Validators
from tidemark.domain.plan import Action, Reason, Target
from tidemark.domain.records import DocumentRecord, DocumentStatus, Failure, RunDocument
from tidemark.domain.summary import ChunkCounts
from tidemark.stages.codec import Planned
from tidemark.stages.index import Vectors, index_document, pass_gate
from tidemark.stages.job import Job, Tools
from tidemark.stages.keepsakes import vectors_of
from tidemark.stages.payloads import read_indexed
from tidemark.stages.plan import read_plan
from tidemark.stages.prepare import Meter, Prepared, SameContent, Version, prepare
from tidemark.stages.versions import as_indexed, is_done, version_of

WINDOW_DOCUMENTS = 32
WINDOW_TEXTS = 512


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """documents: by action. work: calls of each stage. seconds: wall, by stage."""

    documents: dict[str, int] = field(default_factory=dict)
    chunks: ChunkCounts = ChunkCounts()
    work: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


def process_batch(job: Job, tools: Tools, target: Target, key: str) -> BatchSummary:
    """Make the index right for the documents of one batch. Safe to repeat, safe to kill.

    A document that fails by its own fault is quarantined; an outage (``TransientError``) ends the batch,
    and its repetition goes on where it ended.
    """
    return process(job, tools, target, read_plan(tools.artifacts, key))


def process(job: Job, tools: Tools, target: Target, work: Iterator[Planned]) -> BatchSummary:
    """Process planned documents (see ``process_batch``)."""
    meter = Meter()
    events: list[RunDocument] = []
    in_flight = tools.ledger.in_flight(job.source)
    while window := list(islice(work, WINDOW_DOCUMENTS)):
        # Locked before the ledger is read: what is written is a difference to what was read.
        with tools.ledger.lock_documents([p.decision.document_id for p in window]):
            events += _window(job, tools, target, window, meter, in_flight)
    return _summary(events, meter)


def _window(
    job: Job,
    tools: Tools,
    target: Target,
    window: Sequence[Planned],
    meter: Meter,
    in_flight: dict[UUID, str],
) -> list[RunDocument]:
    events: list[RunDocument] = []
    prepared: list[Prepared] = []
    for planned in window:
        outcome = _one(job, tools, target, planned, meter, in_flight)
        if isinstance(outcome, Prepared):
            prepared.append(outcome)
        else:
            events.append(outcome)
            tools.progress.advance(detail=planned.decision.uri)
        if sum(len(p.new) for p in prepared) >= WINDOW_TEXTS:
            events += _flush(job, tools, target, prepared, meter)
            prepared = []
    return events + _flush(job, tools, target, prepared, meter)


def _one(
    job: Job,
    tools: Tools,
    target: Target,
    planned: Planned,
    meter: Meter,
    in_flight: dict[UUID, str],
) -> Prepared | RunDocument:
    decision = planned.decision
    record = tools.ledger.document(decision.document_id)
    version = version_of(tools, planned, record, decision.document_id in in_flight)
    if version is None:
        event = _left(job, planned, Reason.SUPERSEDED, "a later run has seen it", record)
        tools.ledger.record_events([event])
        return event
    if record is not None and is_done(job, record, version, target):
        return _left(job, planned, decision.reason, "already done by an earlier attempt", record)
    try:
        outcome = prepare(job, tools, target, version, meter)
    except DocumentError as error:
        event = quarantine(job, tools, target, version, error)
        elsewhere = record is not None and record.generation not in (None, target.generation)
        if version.in_flight or elsewhere:
            return _last_good(job, tools, target, version, event, meter)
        return event
    if isinstance(outcome, SameContent):
        return pass_gate(job, tools, target, outcome)
    return outcome


def _last_good(
    job: Job, tools: Tools, target: Target, version: Version, event: RunDocument, meter: Meter
) -> Prepared | RunDocument:
    """Of a document that fails: its last good version, whole and in this generation, or nothing at all.

    Needed where a write of it was cut short, or where that version is in another generation.
    """
    document = version.planned.decision.document_id
    record = tools.ledger.document(document)
    if record is not None and record.raw_hash is not None and not version.snapshot:
        good = as_indexed(version.planned, record, in_flight=version.in_flight)
        good = replace(good, failed=event)
        try:
            outcome = prepare(job, tools, target, good, meter)
        except DocumentError:
            return event  # Its snapshot is lost too; a later run tries again.
        if isinstance(outcome, Prepared):
            return outcome
    elif record is None or record.raw_hash is None:
        held = read_indexed(tools.index, target.generation, document)
        tools.index.delete_points(target.generation, list(held.points))
        tools.index.delete_sections(target.generation, list(held.sections))
        tools.ledger.settle([document])
    return event


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
    job: Job, tools: Tools, target: Target, window: Sequence[Prepared], meter: Meter
) -> list[RunDocument]:
    if not window:
        return []
    vectors, kept = _vectors(tools, target, window, meter)
    tools.ledger.begin(
        job.run_id,
        job.source,
        {p.version.planned.decision.document_id: p.version.planned.decision.uri for p in window},
    )
    events = []
    with meter.stage("upsert", sum(len(p.new) for p in window)), tools.index.session():
        for prepared in window:
            carried = sum(c.chunk_id in kept for c in prepared.new_chunks())
            written = replace(prepared, carried=carried)
            events.append(index_document(job, tools, target, written, vectors))
            tools.progress.advance(detail=prepared.version.planned.decision.uri)
    return events


def _vectors(
    tools: Tools, target: Target, window: Sequence[Prepared], meter: Meter
) -> tuple[Vectors, set[UUID]]:
    """The vectors of all new chunks, and which of them were there before under another address."""
    chunks = {chunk.chunk_id: chunk for prepared in window for chunk in prepared.new_chunks()}
    if not chunks:
        return {}, set()
    dense: dict[UUID, tuple[float, ...]] = {}
    for prepared in window:
        dense |= _carried(tools, target, prepared)
    kept = set(dense)
    missing = [chunk for key, chunk in chunks.items() if key not in kept]
    if missing:
        with meter.stage("embed", len(missing)):
            made = tools.embedder.embed([chunk.embed_text for chunk in missing])
        dense |= {chunk.chunk_id: vector for chunk, vector in zip(missing, made, strict=True)}
    lexical = tools.lexical.encode([chunk.embed_text for chunk in chunks.values()])
    vectors = {key: (dense[key], sparse) for key, sparse in zip(chunks, lexical, strict=True)}
    return vectors, kept


def _carried(tools: Tools, target: Target, prepared: Prepared) -> dict[UUID, tuple[float, ...]]:
    """Vectors of a document that moved or came back, for those of its texts that stayed the same."""
    origin = prepared.version.planned.decision.origin
    if origin is None or not prepared.new:
        return {}
    hashes = {
        c.chunk_id: prepared.chunk_records[c.chunk_id].embed_hash for c in prepared.new_chunks()
    }
    known = vectors_of(tools, target, origin, hashes.values())
    return {chunk: known[h] for chunk, h in hashes.items() if h in known}


def quarantine(
    job: Job, tools: Tools, target: Target, version: Version, error: DocumentError
) -> RunDocument:
    """Record a document's own failure; its last good version, if it has one, stays live."""
    decision, record, now = version.planned.decision, version.record, tools.clock()
    before = record.failure if record else None
    failure = Failure(
        stage=error.stage,
        message=error.message,
        cure=error.cure,
        raw_hash=version.raw_hash,
        fingerprint=target.fingerprints.combined,
        first_at=before.first_at if before else now,
        last_at=now,
        attempts=before.attempts + 1 if before else 1,
        media_type=version.media_type,
        charset=version.charset,
    )
    # A lost snapshot must be fetched again, so nothing may be known of it.
    validators = Validators() if error.stage == "fetch" else version.validators
    event = RunDocument(
        job.run_id,
        decision.document_id,
        decision.uri,
        Action.QUARANTINE.value,
        Reason.FAILED.value,
        f"{error.stage}: {error}",
    )
    failed = replace(
        record or _never_indexed(job, version, now),
        status=DocumentStatus.QUARANTINED,
        failure=failure,
        validators=validators,
        last_run_id=job.run_id,
        reason=Reason.FAILED.value,
    )
    if not version.snapshot:
        failed = replace(
            failed,
            fetch_fingerprint=target.fingerprints.fetch,
            fetched_raw_hash=version.raw_hash,
            last_seen=now,
            missing_since=None,
            missing_runs=0,
        )
    tools.ledger.update_document(failed, event)
    return event


def _never_indexed(job: Job, version: Version, now: datetime) -> DocumentRecord:
    decision = version.planned.decision
    return DocumentRecord(
        document_id=decision.document_id,
        source=job.source,
        uri=decision.uri,
        title="",
        media_type=version.media_type,
        charset=version.charset,
        status=DocumentStatus.QUARANTINED,
        validators=version.validators,
        fetch_fingerprint="",
        fetched_raw_hash=version.raw_hash,
        raw_hash=None,
        content_hash=None,
        fingerprints=None,
        generation=None,
        sections=0,
        chunks=0,
        reason=Reason.FAILED.value,
        first_seen=now,
        last_seen=now,
        fetched_at=version.fetched_at,
        indexed_at=None,
    )


def _summary(events: Sequence[RunDocument], meter: Meter) -> BatchSummary:
    chunks = ChunkCounts(
        sum(e.chunks_added for e in events),
        sum(e.chunks_kept for e in events),
        sum(e.chunks_removed for e in events),
    )
    documents = Counter(event.action for event in events)
    return BatchSummary(dict(documents), chunks, dict(meter.work), dict(meter.seconds))
