"""Documents in the ledger, and what each has in the index: its sections and chunks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    Connection,
    ForeignKey,
    Index,
    Integer,
    Row,
    Table,
    Text,
    Uuid,
    any_,
    bindparam,
    func,
    literal_column,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from tidemark.adapters.ledger.engine import Database
from tidemark.adapters.ledger.schema import (
    BY_URI,
    DisplayText,
    UtcDateTime,
    Values,
    fields_of,
    metadata,
    required,
    sorted_text,
    storable,
    texts,
    to_document,
    to_source,
    uuids,
    validators_json,
)
from tidemark.domain.chunks import Fingerprints
from tidemark.domain.documents import Validators
from tidemark.domain.records import (
    ChunkRecord,
    DocumentCounts,
    DocumentRecord,
    DocumentStatus,
    Failure,
    HeldVersion,
    SectionRecord,
)

_GATES = tuple(f.name for f in fields(Fingerprints))

# The conditions of partial indexes are written out, here and in the queries that use them: the server
# does not match them with a parameter.
QUARANTINED = literal_column(f"status = '{DocumentStatus.QUARANTINED}'", Boolean)
FAILED = literal_column("failure IS NOT NULL", Boolean)
FAILED_RAW_HASH = literal_column("(failure ->> 'raw_hash')", Text)

document = Table(
    "document",
    metadata,
    Column("document_id", Uuid, primary_key=True),
    to_source(),
    required("uri", sorted_text()),
    required("title", DisplayText),
    required("media_type", DisplayText),
    Column("charset", DisplayText),
    required("status", Text),
    required("validators", JSONB),
    required("fetch_fingerprint", Text),
    required("fetched_raw_hash", Text),
    Column("raw_hash", Text),
    Column("content_hash", Text),
    *(Column(f"indexed_{gate}_fingerprint", Text) for gate in _GATES),
    Column("generation", Integer),
    required("sections", Integer),
    required("chunks", Integer),
    required("reason", Text),
    required("first_seen", UtcDateTime),
    required("last_seen", UtcDateTime),
    required("fetched_at", UtcDateTime),
    Column("indexed_at", UtcDateTime),
    Column("missing_since", UtcDateTime),
    required("missing_runs", Integer),
    # The runs that missing_runs has counted, so that a repeated task does not count twice.
    required("missed_by", ARRAY(Text), server_default=text("'{}'::text[]")),
    required("last_run_id", Text),
    Column("failure", JSONB(none_as_null=True)),
    Column("text_hash", Text),
    Column("text_length", Integer),
    Column("modified_at", UtcDateTime),
    required("link", DisplayText, server_default=""),
    Column("suspect", JSONB(none_as_null=True)),
    Column("checksum", Text),
    CheckConstraint(
        f"num_nulls({', '.join(f'indexed_{gate}_fingerprint' for gate in _GATES)}) IN (0, 4)",
        name="fingerprints",
    ),
    Index("document_source_uri_idx", "source", BY_URI),
    Index(None, "uri", postgresql_using="hash"),
    Index(None, "raw_hash"),
    Index(None, "fetched_raw_hash"),
    Index(None, "text_hash"),
    Index("document_quarantined_idx", "source", BY_URI, postgresql_where=QUARANTINED),
    Index("document_failed_raw_hash_idx", FAILED_RAW_HASH, postgresql_where=FAILED),
)

section = Table(
    "section",
    metadata,
    Column("section_id", Uuid, primary_key=True),
    to_document(),
    # No foreign key: parents and children come and go together with their document.
    Column("parent_section_id", Uuid),
    required("ordinal", Integer),
    required("heading_path", JSONB),
    required("payload_hash", Text),
)

chunk = Table(
    "chunk",
    metadata,
    Column("point_id", Uuid, primary_key=True),
    to_document(),
    required("section_id", Uuid, ForeignKey("section.section_id", ondelete="CASCADE"), index=True),
    required("chunk_index", Integer),
    required("embed_hash", Text),
    required("payload_hash", Text),
    required("token_count", Integer),
    Column("vector_hash", Text),
)

# Rows


def _failure_json(failure: Failure | None) -> Values | None:
    if failure is None:
        return None
    values = fields_of(failure)
    return {
        **{name: value for name, value in values.items() if name != "hint"},
        "message": storable(failure.message),
        "cure": storable(failure.hint),
        "first_at": failure.first_at.isoformat(),
        "last_at": failure.last_at.isoformat(),
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
    return {**fields_of(suspect), "detail": storable(suspect.detail), "since": since}


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
        **{f"indexed_{gate}_fingerprint": getattr(indexed, gate, None) for gate in _GATES},
        "status": record.status.value,
        "validators": validators_json(record.validators),
        "failure": _failure_json(record.failure),
        "suspect": suspect_json(record.suspect),
    }


def document_record(row: Row[Any]) -> DocumentRecord:
    # By way of a dictionary: a row's attributes cost more than all the rest of this together.
    stored = row._asdict()
    fingerprints = None
    if stored["indexed_fetch_fingerprint"] is not None:
        fingerprints = Fingerprints(*(stored[f"indexed_{gate}_fingerprint"] for gate in _GATES))
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
    return {**fields_of(record), "document_id": document_id, "heading_path": heading_path}


def section_record(row: Row[Any]) -> SectionRecord:
    stored = row._asdict()
    del stored["document_id"]
    return SectionRecord(**{**stored, "heading_path": tuple(stored["heading_path"])})


def chunk_values(document_id: UUID, record: ChunkRecord) -> Values:
    return {**fields_of(record), "document_id": document_id}


def chunk_record(row: Row[Any]) -> ChunkRecord:
    stored = row._asdict()
    del stored["document_id"]
    return ChunkRecord(**stored)


# Statements

_ORDERED = select(document).order_by(document.c.source, BY_URI, document.c.uri)
_BY_ID = select(document).where(document.c.document_id == any_(uuids("ids")))
_PRESENT = (
    select(document.c.document_id)
    .where(document.c.document_id == any_(uuids("ids")))
    .with_for_update(key_share=True)
)
_INDEXED = document.c.raw_hash.is_not(None)
_COUNTS = select(
    func.count(),
    func.count().filter(_INDEXED),
    func.count().filter(QUARANTINED),
    func.count().filter(document.c.suspect.is_not(None)),
    func.coalesce(func.sum(document.c.sections).filter(_INDEXED), 0),
    func.coalesce(func.sum(document.c.chunks).filter(_INDEXED), 0),
).select_from(document)
_OWNER = bindparam("document", type_=Uuid())
DOCUMENT = select(document).where(document.c.document_id == _OWNER)
SECTIONS = select(section).where(section.c.document_id == _OWNER).order_by(section.c.ordinal)
CHUNKS = select(chunk).where(chunk.c.document_id == _OWNER).order_by(chunk.c.chunk_index)


def hold(connection: Connection, ids: Iterable[UUID]) -> set[UUID]:
    """Those documents that are there, locked, so that none goes before a write that refers to it."""
    return {row[0] for row in connection.execute(_PRESENT, {"ids": list(ids)})}


class PostgresDocuments:
    """The Documents port on Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def stream(
        self, source: str | None = None, *, quarantined: bool = False
    ) -> Iterator[DocumentRecord]:
        query = _ORDERED.where(QUARANTINED) if quarantined else _ORDERED
        if source is not None:
            query = query.where(document.c.source == source)
        return map(document_record, self._database.stream(query))

    def get(self, document_id: UUID) -> DocumentRecord | None:
        return self.by_id([document_id]).get(document_id)

    def by_id(self, ids: Sequence[UUID]) -> dict[UUID, DocumentRecord]:
        records = map(document_record, self._database.rows_of(_BY_ID, "ids", ids))
        return {record.document_id: record for record in records}

    def by_uri(self, uri: str) -> list[DocumentRecord]:
        query = select(document).where(document.c.uri == uri).order_by(document.c.source)
        return [document_record(row) for row in self._database.rows(query)]

    def by_text(self, source: str, text_hashes: Sequence[str]) -> list[DocumentRecord]:
        return self._by_hash("text_hash", source, text_hashes)

    def by_raw(self, source: str, raw_hashes: Sequence[str]) -> list[DocumentRecord]:
        return self._by_hash("raw_hash", source, raw_hashes)

    def by_failed(self, source: str, raw_hashes: Sequence[str]) -> list[DocumentRecord]:
        records = self._by_hash("fetched_raw_hash", source, raw_hashes)
        return [record for record in records if record.status is DocumentStatus.QUARANTINED]

    def _by_hash(self, name: str, source: str, hashes: Sequence[str]) -> list[DocumentRecord]:
        if not hashes:
            return []
        same = document.c[name] == any_(texts("hashes"))
        query = select(document).where(same, document.c.source == source)
        return [document_record(row) for row in self._database.rows(query, {"hashes": hashes})]

    def sections(self, document_id: UUID) -> list[SectionRecord]:
        rows = self._database.rows(SECTIONS, {"document": document_id})
        return [section_record(row) for row in rows]

    def chunks(self, document_id: UUID) -> list[ChunkRecord]:
        rows = self._database.rows(CHUNKS, {"document": document_id})
        return [chunk_record(row) for row in rows]

    def counts(self, source: str | None = None, generation: int | None = None) -> DocumentCounts:
        query = _COUNTS
        if source is not None:
            query = query.where(document.c.source == source)
        if generation is not None:
            query = query.where(document.c.generation == generation)
        return DocumentCounts(*map(int, self._database.rows(query)[0]))
