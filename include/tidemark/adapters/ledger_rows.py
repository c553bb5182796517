"""Between the ledger's rows and the domain's records."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any

from sqlalchemy import Row

from tidemark.adapters.ledger_tables import storable
from tidemark.domain.model import Fingerprints, Validators
from tidemark.domain.records import (
    ChunkRecord,
    DocumentRecord,
    DocumentStatus,
    Failure,
    GenerationRecord,
    GenerationStatus,
    RunDocument,
    RunRecord,
    RunStatus,
    SectionRecord,
    Tombstone,
)

Values = dict[str, Any]
"""Column names to values."""


def _fields(record: Any) -> Values:
    # dataclasses.asdict copies every leaf, which costs more than the database does.
    return {field.name: getattr(record, field.name) for field in fields(record)}


def validators_json(validators: Validators) -> Values:
    return {k: v for k, v in _fields(validators).items() if v is not None}


def _failure_json(failure: Failure | None) -> Values | None:
    if failure is None:
        return None
    return {
        "stage": failure.stage,
        "message": storable(failure.message),
        "cure": storable(failure.cure),
        "raw_hash": failure.raw_hash,
        "fingerprint": failure.fingerprint,
        "first_at": failure.first_at.isoformat(),
        "last_at": failure.last_at.isoformat(),
        "attempts": failure.attempts,
    }


def _failure(stored: Mapping[str, Any] | None) -> Failure | None:
    if stored is None:
        return None
    times = {key: datetime.fromisoformat(stored[key]) for key in ("first_at", "last_at")}
    return Failure(**{**stored, **times})


def document_values(record: DocumentRecord) -> Values:
    indexed = record.fingerprints
    return {
        "document_id": record.document_id,
        "source": record.source,
        "uri": record.uri,
        "title": record.title,
        "media_type": record.media_type,
        "charset": record.charset,
        "status": record.status.value,
        "validators": validators_json(record.validators),
        "fetch_fingerprint": record.fetch_fingerprint,
        "fetched_raw_hash": record.fetched_raw_hash,
        "raw_hash": record.raw_hash,
        "content_hash": record.content_hash,
        "indexed_fetch_fingerprint": indexed.fetch if indexed else None,
        "indexed_partition_fingerprint": indexed.partition if indexed else None,
        "indexed_chunk_fingerprint": indexed.chunk if indexed else None,
        "indexed_embed_fingerprint": indexed.embed if indexed else None,
        "generation": record.generation,
        "sections": record.sections,
        "chunks": record.chunks,
        "reason": record.reason,
        "first_seen": record.first_seen,
        "last_seen": record.last_seen,
        "fetched_at": record.fetched_at,
        "indexed_at": record.indexed_at,
        "missing_since": record.missing_since,
        "missing_runs": record.missing_runs,
        "last_run_id": record.last_run_id,
        "failure": _failure_json(record.failure),
    }


def document_record(row: Row[Any]) -> DocumentRecord:
    fingerprints = None
    if row.indexed_fetch_fingerprint is not None:
        fingerprints = Fingerprints(
            fetch=row.indexed_fetch_fingerprint,
            partition=row.indexed_partition_fingerprint,
            chunk=row.indexed_chunk_fingerprint,
            embed=row.indexed_embed_fingerprint,
        )
    return DocumentRecord(
        document_id=row.document_id,
        source=row.source,
        uri=row.uri,
        title=row.title,
        media_type=row.media_type,
        charset=row.charset,
        status=DocumentStatus(row.status),
        validators=Validators(**row.validators),
        fetch_fingerprint=row.fetch_fingerprint,
        fetched_raw_hash=row.fetched_raw_hash,
        raw_hash=row.raw_hash,
        content_hash=row.content_hash,
        fingerprints=fingerprints,
        generation=row.generation,
        sections=row.sections,
        chunks=row.chunks,
        reason=row.reason,
        first_seen=row.first_seen,
        last_seen=row.last_seen,
        fetched_at=row.fetched_at,
        indexed_at=row.indexed_at,
        missing_since=row.missing_since,
        missing_runs=row.missing_runs,
        last_run_id=row.last_run_id,
        failure=_failure(row.failure),
    )


def section_values(document_id: object, record: SectionRecord) -> Values:
    return {
        "section_id": record.section_id,
        "document_id": document_id,
        "parent_section_id": record.parent_section_id,
        "ordinal": record.ordinal,
        "heading_path": [storable(heading) for heading in record.heading_path],
        "payload_hash": record.payload_hash,
    }


def section_record(row: Row[Any]) -> SectionRecord:
    return SectionRecord(
        section_id=row.section_id,
        parent_section_id=row.parent_section_id,
        ordinal=row.ordinal,
        heading_path=tuple(row.heading_path),
        payload_hash=row.payload_hash,
    )


def chunk_values(document_id: object, record: ChunkRecord) -> Values:
    return {
        "point_id": record.point_id,
        "document_id": document_id,
        "section_id": record.section_id,
        "chunk_index": record.chunk_index,
        "embed_hash": record.embed_hash,
        "payload_hash": record.payload_hash,
        "token_count": record.token_count,
    }


def chunk_record(row: Row[Any]) -> ChunkRecord:
    return ChunkRecord(
        point_id=row.point_id,
        section_id=row.section_id,
        chunk_index=row.chunk_index,
        embed_hash=row.embed_hash,
        payload_hash=row.payload_hash,
        token_count=row.token_count,
    )


def tombstone_values(record: Tombstone) -> Values:
    return _fields(record)


def tombstone_record(row: Row[Any]) -> Tombstone:
    return Tombstone(**row._asdict())


def run_values(record: RunRecord) -> Values:
    return {**_fields(record), "status": record.status.value}


def run_record(row: Row[Any]) -> RunRecord:
    return RunRecord(**{**row._asdict(), "status": RunStatus(row.status)})


def event_values(record: RunDocument) -> Values:
    return _fields(record)


def event_record(row: Row[Any]) -> RunDocument:
    return RunDocument(**{k: v for k, v in row._asdict().items() if k != "recorded_at"})


def generation_values(record: GenerationRecord) -> Values:
    return {**_fields(record), "status": record.status.value}


def generation_record(row: Row[Any]) -> GenerationRecord:
    return GenerationRecord(**{**row._asdict(), "status": GenerationStatus(row.status)})
