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
from tidemark.domain.plan import Action, Decision, Reason, Target
from tidemark.domain.records import DocumentRecord, DocumentStatus, Failure, RunDocument
from tidemark.domain.summary import ChunkCounts
from tidemark.stages.codec import Planned
from tidemark.stages.index import Vectors, index_document, pass_gate
from tidemark.stages.job import Job, Tools
from tidemark.stages.keepsakes import vectors_of
from tidemark.stages.payloads import read_indexed
from tidemark.stages.plan import read_plan
from tidemark.stages.prepare import Meter, Prepared, SameContent, Version, prepare

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
    version = _version(tools, planned, record, decision.document_id in in_flight)
    if version is None:
        event = _left(job, planned, Reason.SUPERSEDED, "a later run has seen it", record)
        tools.ledger.record_events([event])
        return event
    if record is not None and _is_done(job, record, version, target):
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
        good = _as_indexed(version.planned, record, in_flight=version.in_flight)
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


def _version(
    tools: Tools, planned: Planned, record: DocumentRecord | None, in_flight: bool
) -> Version | None:
    """The version to index; None when a later run has seen a newer one, or removed the document."""
    decision, observed = planned.decision, planned.observed
    if decision.snapshot:
        if record is None or record.raw_hash != decision.raw_hash:
            return None
        return _as_indexed(planned, record, in_flight=in_flight)
    if observed is None or decision.raw_hash is None:
        return None
    if observed.raw_hash is None:
        return _not_modified(planned, record, in_flight=in_flight)
    fetched_at = observed.fetched_at
    if fetched_at is None:
        raise AssertionError(f"{observed.uri} was fetched at no time")
    if _is_older(tools, decision, record, fetched_at):
        return None
    return Version(
        planned,
        decision.raw_hash,
        observed.media_type or "application/octet-stream",
        observed.charset,
        observed.validators,
        _first_fetched(record or _origin(tools, decision), decision.raw_hash, fetched_at),
        record,
        in_flight,
        text_hash=observed.text_hash,
        text_length=observed.text_length,
        modified_at=observed.modified_at,
        link=observed.link,
    )


def _as_indexed(planned: Planned, record: DocumentRecord, *, in_flight: bool) -> Version:
    return Version(
        planned,
        record.raw_hash or "",
        record.media_type,
        record.charset,
        record.validators,
        record.fetched_at,
        record,
        in_flight,
        text_hash=record.text_hash,
        text_length=record.text_length,
        modified_at=record.modified_at,
        link=record.link,
    )


def _origin(tools: Tools, decision: Decision) -> DocumentRecord | None:
    """The record of the document that this one is under another address."""
    if decision.reason is not Reason.MOVED or decision.origin is None:
        return None
    return tools.ledger.document(decision.origin)


def _not_modified(
    planned: Planned, record: DocumentRecord | None, *, in_flight: bool
) -> Version | None:
    """What the ledger knows of the bytes last fetched holds for them still."""
    if record is None or record.fetched_raw_hash != planned.decision.raw_hash:
        return None
    failure = record.failure
    failed = failure is not None and failure.raw_hash == record.fetched_raw_hash
    return Version(
        planned,
        record.fetched_raw_hash,
        failure.media_type if failure and failed and failure.media_type else record.media_type,
        failure.charset if failure and failed else record.charset,
        record.validators,
        failure.first_at if failure and failed else record.fetched_at,
        record,
        in_flight,
        text_hash=record.text_hash,
        text_length=record.text_length,
        modified_at=record.modified_at,
        link=record.link,
    )


def _is_older(
    tools: Tools, decision: Decision, record: DocumentRecord | None, fetched_at: datetime
) -> bool:
    """Was the document indexed from later bytes, or removed, after these were fetched?"""
    if record is None:
        stone = tools.ledger.tombstones_by_id([decision.document_id]).get(decision.document_id)
        return stone is not None and stone.removed_at > fetched_at
    return record.raw_hash not in (None, decision.raw_hash) and record.fetched_at > fetched_at


def _first_fetched(record: DocumentRecord | None, raw_hash: str, fetched_at: datetime) -> datetime:
    """When these bytes were first fetched: equal bytes fetched again are not a new version."""
    if record is not None and record.raw_hash == raw_hash:
        return record.fetched_at
    return fetched_at


def _is_done(job: Job, record: DocumentRecord, version: Version, target: Target) -> bool:
    return (
        record.last_run_id == job.run_id
        and record.raw_hash == version.raw_hash
        and record.fingerprints == target.fingerprints
        and record.generation == target.generation
        and not version.in_flight
    )


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
