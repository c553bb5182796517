"""Write one document: the order of the writes is what makes a run safe to kill.

1. sections of the new version; 2. new points; 3. payloads of kept points; 4. deletion, by id, of what the
new version no longer has; 5. the ledger's rows, last. A crash before 5 redoes the document. At no moment
is a healthy document missing, and nothing is left that the next attempt does not remove.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import uuid5

from tidemark.domain.chunks import PointWrite
from tidemark.domain.decide import Action, Reason
from tidemark.domain.errors import RefusedError
from tidemark.domain.hashing import Canonical, vectors_hash
from tidemark.domain.records import ChunkRecord, DocumentRecord, DocumentStatus, RunDocument
from tidemark.stages.process.payloads import checksum_of
from tidemark.stages.process.prepare import Context, Prepared, SameContent
from tidemark.stages.process.vectors import Vectors


def write_document(ctx: Context, prepared: Prepared, vectors: Vectors) -> RunDocument:
    """Write a prepared document, whose new chunks' vectors are given, and return what was done."""
    generation, index = ctx.target.generation, ctx.deps.index
    index.upsert_sections(
        generation,
        [
            PointWrite(
                prepared.document.sections[i].section_id, prepared.section_payloads[i].as_dict()
            )
            for i in prepared.changed_sections
        ],
    )
    index.upsert_points(generation, [_point(prepared, i, vectors) for i in prepared.new])
    index.set_payloads(
        generation,
        [
            PointWrite(prepared.document.chunks[i].chunk_id, prepared.payloads[i].as_dict())
            for i in prepared.moved
        ],
    )
    index.delete_points(generation, prepared.removed_points)
    index.delete_sections(generation, prepared.removed_sections)
    event = _event(ctx, prepared)
    sections, chunks = list(prepared.section_records.values()), _chunks(prepared, vectors)
    ctx.deps.ledger.writes.commit(
        replace(
            _record(ctx, prepared, event.reason),
            checksum=checksum_of(chunks, sections),
        ),
        sections,
        chunks,
        event,
    )
    return event


def takes_any(ctx: Context, refused: Sequence[Prepared], vectors: Vectors) -> bool:
    """Does the index take a point at all, when it has refused all of some documents?

    Tried with the vectors of one of them and next to no payload, under an id that no chunk has, and deleted
    at once: killed in between, it goes with that document's other remains.
    """
    for prepared in refused:
        version = prepared.version
        for i in prepared.new[:1]:
            key = uuid5(version.document_id, "probe")
            dense, lexical = vectors[prepared.document.chunks[i].chunk_id]
            payload: dict[str, Canonical] = {
                "document_id": str(version.document_id),
                "source": prepared.payloads[i].source,
                "source_uri": version.uri,
                "text": "",
            }
            try:
                ctx.deps.index.upsert_points(
                    ctx.target.generation, [PointWrite(key, payload, dense, lexical)]
                )
            except RefusedError:
                continue
            ctx.deps.index.delete_points(ctx.target.generation, [key])
            return True
    return False


def _chunks(prepared: Prepared, vectors: Vectors) -> list[ChunkRecord]:
    """The rows of the chunks, with the hashes of the vectors just written."""
    written = {prepared.document.chunks[i].chunk_id for i in prepared.new}
    return [
        replace(record, vector_hash=vectors_hash(*vectors[key])) if key in written else record
        for key, record in prepared.chunk_records.items()
    ]


def pass_gate(ctx: Context, same: SameContent) -> RunDocument:
    """Note that a document's content is what is indexed already; points and sections stay."""
    version, record = same.version, same.version.record
    if record is None:
        raise AssertionError("only an indexed document can have the same content")
    reason = version.planned.decision.reason
    event = RunDocument(
        ctx.job.run_id,
        record.document_id,
        record.uri,
        Action.KEEP.value,
        (Reason.BOILERPLATE if reason is Reason.CONTENT else reason).value,
        "the content is unchanged",
        same.seconds,
        chunks_kept=record.chunks,
    )
    ctx.deps.ledger.writes.update(
        replace(
            record,
            validators=version.validators,
            fetch_fingerprint=ctx.target.fingerprints.fetch,
            fetched_raw_hash=version.raw_hash,
            raw_hash=version.raw_hash,
            media_type=version.media_type,
            charset=version.charset,
            fingerprints=ctx.target.fingerprints,
            last_seen=ctx.deps.clock(),
            missing_since=None,
            missing_runs=0,
            last_run_id=ctx.job.run_id,
            text_hash=version.text_hash,
            text_length=version.text_length,
            suspect=None,
        ),
        event,
    )
    return event


def _record(ctx: Context, prepared: Prepared, reason: str) -> DocumentRecord:
    version, before = prepared.version, prepared.version.record
    now = ctx.deps.clock()
    if version.snapshot and before is not None:
        # Nothing new was seen of the document: only what is live was written again.
        return replace(
            before,
            failure=replace(before.failure, stranded=False) if before.failure else None,
            title=prepared.title,
            content_hash=prepared.content_hash,
            fingerprints=ctx.target.fingerprints,
            generation=ctx.target.generation,
            sections=len(prepared.document.sections),
            chunks=len(prepared.document.chunks),
            indexed_at=now,
            last_run_id=ctx.job.run_id,
        )
    return DocumentRecord(
        document_id=version.document_id,
        source=ctx.job.source,
        uri=version.uri,
        title=prepared.title,
        media_type=version.media_type,
        charset=version.charset,
        status=DocumentStatus.INDEXED,
        validators=version.validators,
        fetch_fingerprint=ctx.target.fingerprints.fetch,
        fetched_raw_hash=version.raw_hash,
        raw_hash=version.raw_hash,
        content_hash=prepared.content_hash,
        fingerprints=ctx.target.fingerprints,
        generation=ctx.target.generation,
        sections=len(prepared.document.sections),
        chunks=len(prepared.document.chunks),
        reason=reason,
        first_seen=_first_seen(ctx, prepared, now),
        last_seen=now,
        fetched_at=version.fetched_at,
        indexed_at=now,
        last_run_id=ctx.job.run_id,
        text_hash=version.text_hash,
        text_length=version.text_length,
        modified_at=version.modified_at,
        link=version.link,
    )


def _first_seen(ctx: Context, prepared: Prepared, now: datetime) -> datetime:
    """Since when the document is known, at whatever address."""
    version = prepared.version
    if version.record is not None:
        return version.record.first_seen
    decision = version.planned.decision
    if decision.reason is Reason.MOVED and decision.origin is not None:
        origin = ctx.deps.ledger.documents.get(decision.origin)
        return origin.first_seen if origin else now
    return now


def _point(prepared: Prepared, i: int, vectors: Vectors) -> PointWrite:
    chunk = prepared.document.chunks[i]
    dense, lexical = vectors[chunk.chunk_id]
    return PointWrite(chunk.chunk_id, prepared.payloads[i].as_dict(), dense, lexical)


def _event(ctx: Context, prepared: Prepared) -> RunDocument:
    decision, failed = prepared.version.planned.decision, prepared.version.failed
    if failed is not None:
        return replace(
            failed,
            chunks_added=len(prepared.new) - prepared.reused,
            chunks_kept=prepared.kept + prepared.reused,
            chunks_removed=len(prepared.removed_points),
        )
    action, reason = decision.action, decision.reason
    if action is Action.UPDATE and not prepared.new and not prepared.removed_points:
        action = Action.METADATA if prepared.moved or prepared.changed_sections else Action.KEEP
    return RunDocument(
        ctx.job.run_id,
        decision.document_id,
        decision.uri,
        action.value,
        reason.value,
        "; ".join(filter(None, (decision.detail, f"cut as {prepared.profile}"))),
        prepared.seconds,
        len(prepared.new) - prepared.reused,
        prepared.kept + prepared.reused,
        len(prepared.removed_points),
    )
