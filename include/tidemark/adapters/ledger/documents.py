"""Documents in the ledger, and what each has in the index: its sections and chunks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY

from tidemark.adapters.ledger.engine import Database
from tidemark.adapters.ledger.schema import (
    BY_URI,
    GATES,
    VALIDATORS,
    DisplayText,
    Json,
    Rows,
    UtcDateTime,
    Values,
    Word,
    fields_of,
    metadata,
    required,
    sorted_text,
    storable,
    texts,
    to_document,
    to_source,
    uuids,
)
from tidemark.domain.records import (
    ChunkRecord,
    DocumentCounts,
    DocumentRecord,
    DocumentStatus,
    Failure,
    HeldVersion,
    SectionRecord,
)

# The conditions of partial indexes are written out, here and in the queries that use them: the server
# does not match them with a parameter.
QUARANTINED = sa.literal_column(f"status = '{DocumentStatus.QUARANTINED}'", sa.Boolean)
FAILED = sa.literal_column("failure IS NOT NULL", sa.Boolean)
FAILED_RAW_HASH = sa.literal_column("(failure ->> 'raw_hash')", sa.Text)


def _failure_json(failure: Failure) -> Values:
    values = fields_of(failure)
    return {
        **{name: value for name, value in values.items() if name != "hint"},
        "message": storable(failure.message),
        "cure": storable(failure.hint),
        "first_at": failure.first_at.isoformat(),
        "last_at": failure.last_at.isoformat(),
    }


def _failure(stored: Mapping[str, Any]) -> Failure:
    times = {key: datetime.fromisoformat(stored[key]) for key in ("first_at", "last_at")}
    values = {("hint" if key == "cure" else key): value for key, value in stored.items()}
    return Failure(**{**values, **times})


def _suspect_json(suspect: HeldVersion) -> Values:
    since = suspect.since.isoformat()
    return {**fields_of(suspect), "detail": storable(suspect.detail), "since": since}


def _suspect(stored: Mapping[str, Any]) -> HeldVersion:
    return HeldVersion(**{**stored, "since": datetime.fromisoformat(stored["since"])})


document = sa.Table(
    "document",
    metadata,
    sa.Column("document_id", sa.Uuid, primary_key=True),
    to_source(),
    required("uri", sorted_text()),
    required("title", DisplayText),
    required("media_type", DisplayText),
    sa.Column("charset", DisplayText),
    required("status", Word(DocumentStatus)),
    required("validators", VALIDATORS),
    required("fetch_fingerprint", sa.Text),
    required("fetched_raw_hash", sa.Text),
    sa.Column("raw_hash", sa.Text),
    sa.Column("content_hash", sa.Text),
    *(sa.Column(f"indexed_{gate}_fingerprint", sa.Text) for gate in GATES),
    sa.Column("generation", sa.Integer),
    required("sections", sa.Integer),
    required("chunks", sa.Integer),
    required("reason", sa.Text),
    required("first_seen", UtcDateTime),
    required("last_seen", UtcDateTime),
    required("fetched_at", UtcDateTime),
    sa.Column("indexed_at", UtcDateTime),
    sa.Column("missing_since", UtcDateTime),
    required("missing_runs", sa.Integer),
    # The runs that missing_runs has counted, so that a repeated task does not count twice.
    required("missed_by", ARRAY(sa.Text), server_default=sa.text("'{}'::text[]")),
    required("last_run_id", sa.Text),
    sa.Column("failure", Json(_failure_json, _failure)),
    sa.Column("text_hash", sa.Text),
    sa.Column("text_length", sa.Integer),
    sa.Column("modified_at", UtcDateTime),
    required("link", DisplayText, server_default=""),
    sa.Column("suspect", Json(_suspect_json, _suspect)),
    sa.Column("checksum", sa.Text),
    sa.CheckConstraint(
        f"num_nulls({', '.join(f'indexed_{gate}_fingerprint' for gate in GATES)}) IN (0, 4)",
        name="fingerprints",
    ),
    sa.Index("document_source_uri_idx", "source", BY_URI),
    sa.Index(None, "uri", postgresql_using="hash"),
    sa.Index(None, "raw_hash"),
    sa.Index(None, "fetched_raw_hash"),
    sa.Index(None, "text_hash"),
    sa.Index("document_quarantined_idx", "source", BY_URI, postgresql_where=QUARANTINED),
    sa.Index("document_failed_raw_hash_idx", FAILED_RAW_HASH, postgresql_where=FAILED),
)

section = sa.Table(
    "section",
    metadata,
    sa.Column("section_id", sa.Uuid, primary_key=True),
    to_document(),
    # No foreign key: parents and children come and go together with their document.
    sa.Column("parent_section_id", sa.Uuid),
    required("ordinal", sa.Integer),
    required("heading_path", Json(lambda path: [storable(h) for h in path], tuple)),
    required("payload_hash", sa.Text),
)

chunk = sa.Table(
    "chunk",
    metadata,
    sa.Column("point_id", sa.Uuid, primary_key=True),
    to_document(),
    required(
        "section_id", sa.Uuid, sa.ForeignKey("section.section_id", ondelete="CASCADE"), index=True
    ),
    required("chunk_index", sa.Integer),
    required("embed_hash", sa.Text),
    required("payload_hash", sa.Text),
    required("token_count", sa.Integer),
    sa.Column("vector_hash", sa.Text),
)

DOCUMENTS = Rows(document, DocumentRecord, "indexed_")
SECTION_ROWS = Rows(section, SectionRecord)
CHUNK_ROWS = Rows(chunk, ChunkRecord)

# Statements

_ORDERED = sa.select(document).order_by(document.c.source, BY_URI, document.c.uri)
_BY_ID = sa.select(document).where(document.c.document_id == sa.any_(uuids("ids")))
_PRESENT = (
    sa.select(document.c.document_id)
    .where(document.c.document_id == sa.any_(uuids("ids")))
    .with_for_update(key_share=True)
)
_INDEXED = document.c.raw_hash.is_not(None)
_COUNTS = sa.select(
    sa.func.count(),
    sa.func.count().filter(_INDEXED),
    sa.func.count().filter(QUARANTINED),
    sa.func.count().filter(document.c.suspect.is_not(None)),
    sa.func.coalesce(sa.func.sum(document.c.sections).filter(_INDEXED), 0),
    sa.func.coalesce(sa.func.sum(document.c.chunks).filter(_INDEXED), 0),
).select_from(document)
_OWNER = sa.bindparam("document", type_=sa.Uuid())
DOCUMENT = sa.select(document).where(document.c.document_id == _OWNER)
SECTIONS = sa.select(section).where(section.c.document_id == _OWNER).order_by(section.c.ordinal)
CHUNKS = sa.select(chunk).where(chunk.c.document_id == _OWNER).order_by(chunk.c.chunk_index)


def hold(connection: sa.Connection, ids: Iterable[UUID]) -> set[UUID]:
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
        return DOCUMENTS.stream(self._database.stream(query))

    def get(self, document_id: UUID) -> DocumentRecord | None:
        return self.by_id([document_id]).get(document_id)

    def by_id(self, ids: Sequence[UUID]) -> dict[UUID, DocumentRecord]:
        records = DOCUMENTS.of(self._database.rows_of(_BY_ID, "ids", ids))
        return {record.document_id: record for record in records}

    def by_uri(self, uri: str) -> list[DocumentRecord]:
        query = sa.select(document).where(document.c.uri == uri).order_by(document.c.source)
        return DOCUMENTS.of(self._database.rows(query))

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
        same = document.c[name] == sa.any_(texts("hashes"))
        query = sa.select(document).where(same, document.c.source == source)
        return DOCUMENTS.of(self._database.rows(query, {"hashes": hashes}))

    def sections(self, document_id: UUID) -> list[SectionRecord]:
        return SECTION_ROWS.of(self._database.rows(SECTIONS, {"document": document_id}))

    def chunks(self, document_id: UUID) -> list[ChunkRecord]:
        return CHUNK_ROWS.of(self._database.rows(CHUNKS, {"document": document_id}))

    def counts(self, source: str | None = None, generation: int | None = None) -> DocumentCounts:
        query = _COUNTS
        if source is not None:
            query = query.where(document.c.source == source)
        if generation is not None:
            query = query.where(document.c.generation == generation)
        return DocumentCounts(*map(int, self._database.rows(query)[0]))
