"""Between the ledger's rows and the domain's records."""

from collections.abc import Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row

from tidemark.adapters.ledger.tables import storable
from tidemark.domain.chunks import Fingerprints
from tidemark.domain.documents import Validators
from tidemark.domain.identity import document_id
from tidemark.domain.records import (
    Alias,
    AliasKind,
    AuditRecord,
    ChunkRecord,
    DocumentRecord,
    DocumentStatus,
    Failure,
    GenerationRecord,
    GenerationStatus,
    HeldVersion,
    RunDocument,
    RunRecord,
    RunStatus,
    SectionRecord,
    Tombstone,
    VersionRecord,
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
        "cure": storable(failure.hint),
        "raw_hash": failure.raw_hash,
        "fingerprint": failure.fingerprint,
        "first_at": failure.first_at.isoformat(),
        "last_at": failure.last_at.isoformat(),
        "attempts": failure.attempts,
        "media_type": failure.media_type,
        "charset": failure.charset,
        "stranded": failure.stranded,
    }


def _failure(stored: Mapping[str, Any] | None) -> Failure | None:
    if stored is None:
        return None
    times = {key: datetime.fromisoformat(stored[key]) for key in ("first_at", "last_at")}
    values = {("hint" if key == "cure" else key): value for key, value in stored.items()}
    return Failure(**{**values, **times})


def suspect_json(suspect: HeldVersion | None) -> Values | None:
    if suspect is None:
        return None
    since = suspect.since.isoformat()
    return {**_fields(suspect), "detail": storable(suspect.detail), "since": since}


def _suspect(stored: Mapping[str, Any] | None) -> HeldVersion | None:
    if stored is None:
        return None
    return HeldVersion(**{**stored, "since": datetime.fromisoformat(stored["since"])})


_CONVERTED = ("status", "validators", "fingerprints", "failure", "suspect")
_ALIKE = tuple(f.name for f in fields(DocumentRecord) if f.name not in _CONVERTED)
"""Fields of a document that are columns of the same name and type."""


def document_values(record: DocumentRecord) -> Values:
    indexed = record.fingerprints
    return {
        **{name: getattr(record, name) for name in _ALIKE},
        "status": record.status.value,
        "validators": validators_json(record.validators),
        "indexed_fetch_fingerprint": indexed.fetch if indexed else None,
        "indexed_partition_fingerprint": indexed.partition if indexed else None,
        "indexed_chunk_fingerprint": indexed.chunk if indexed else None,
        "indexed_embed_fingerprint": indexed.embed if indexed else None,
        "failure": _failure_json(record.failure),
        "suspect": suspect_json(record.suspect),
    }


def document_record(row: Row[Any]) -> DocumentRecord:
    # By way of a dictionary: a row's attributes cost more than all the rest of this together.
    stored = row._asdict()
    fingerprints = None
    if stored["indexed_fetch_fingerprint"] is not None:
        fingerprints = Fingerprints(
            fetch=stored["indexed_fetch_fingerprint"],
            partition=stored["indexed_partition_fingerprint"],
            chunk=stored["indexed_chunk_fingerprint"],
            embed=stored["indexed_embed_fingerprint"],
        )
    return DocumentRecord(
        **{name: stored[name] for name in _ALIKE},
        status=DocumentStatus(stored["status"]),
        validators=Validators(**stored["validators"]),
        fingerprints=fingerprints,
        failure=_failure(stored["failure"]),
        suspect=_suspect(stored["suspect"]),
    )


def section_values(document_id: UUID, record: SectionRecord) -> Values:
    heading_path = [storable(heading) for heading in record.heading_path]
    return {**_fields(record), "document_id": document_id, "heading_path": heading_path}


def section_record(row: Row[Any]) -> SectionRecord:
    stored = row._asdict()
    del stored["document_id"]
    return SectionRecord(**{**stored, "heading_path": tuple(stored["heading_path"])})


def chunk_values(document_id: UUID, record: ChunkRecord) -> Values:
    return {**_fields(record), "document_id": document_id}


def chunk_record(row: Row[Any]) -> ChunkRecord:
    stored = row._asdict()
    del stored["document_id"]
    return ChunkRecord(**stored)


def alias_id(source: str, uri: str) -> UUID:
    """One alias an address: it is known as the document that it would be."""
    return document_id(source, uri)


def alias_values(record: Alias) -> Values:
    return {
        **_fields(record),
        "alias_id": alias_id(record.source, record.uri),
        "kind": record.kind.value,
        "validators": validators_json(record.validators),
    }


def alias_record(row: Row[Any]) -> Alias:
    stored = row._asdict()
    del stored["alias_id"]
    validators = Validators(**stored["validators"])
    return Alias(**{**stored, "kind": AliasKind(stored["kind"]), "validators": validators})


def tombstone_values(record: Tombstone) -> Values:
    return {**_fields(record), "kept_out": list(record.kept_out), "texts": list(record.texts)}


def tombstone_record(row: Row[Any]) -> Tombstone:
    lists = {"kept_out": tuple(row.kept_out), "texts": tuple(row.texts)}
    return Tombstone(**{**row._asdict(), **lists})


def run_values(record: RunRecord) -> Values:
    return {**_fields(record), "status": record.status.value}


def run_record(row: Row[Any]) -> RunRecord:
    return RunRecord(**{**row._asdict(), "status": RunStatus(row.status)})


def event_values(record: RunDocument) -> Values:
    return _fields(record)


def event_record(row: Row[Any]) -> RunDocument:
    stored = row._asdict()
    del stored["recorded_at"]
    return RunDocument(**stored)


def generation_values(record: GenerationRecord) -> Values:
    return {**_fields(record), "status": record.status.value}


def generation_record(row: Row[Any]) -> GenerationRecord:
    return GenerationRecord(**{**row._asdict(), "status": GenerationStatus(row.status)})


_GATES = tuple(f.name for f in fields(Fingerprints))


def version_values(record: VersionRecord) -> Values:
    values = _fields(record)
    made_under = values.pop("fingerprints")
    return {**values, **{f"{gate}_fingerprint": getattr(made_under, gate) for gate in _GATES}}


def version_record(row: Row[Any]) -> VersionRecord:
    stored = row._asdict()
    for name in ("recorded_at", "replaced_at"):
        del stored[name]
    made_under = Fingerprints(**{gate: stored.pop(f"{gate}_fingerprint") for gate in _GATES})
    return VersionRecord(**stored, fingerprints=made_under)


def audit_values(record: AuditRecord) -> Values:
    return _fields(record)


def audit_record(row: Row[Any]) -> AuditRecord:
    stored = row._asdict()
    del stored["audit_id"]
    return AuditRecord(**stored)
