"""The ledger's tables of what was: versions, runs and their events, generations, evaluations, audits."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Identity,
    Index,
    Integer,
    Table,
    Text,
    Uuid,
    func,
    literal_column,
)
from sqlalchemy.dialects.postgresql import JSONB

from tidemark.adapters.ledger_columns import (
    BY_URI,
    DisplayText,
    UtcDateTime,
    metadata,
    required,
    sorted_text,
    to_source,
)

REPLACED = literal_column("replaced_at IS NOT NULL", Boolean)

version = Table(
    "version",
    metadata,
    # No foreign keys: a version outlives its document.
    Column("document_id", Uuid, primary_key=True),
    Column("run_id", sorted_text(), primary_key=True),
    required("source", sorted_text()),
    required("uri", sorted_text()),
    required("title", DisplayText),
    required("action", Text),
    required("reason", Text),
    required("detail", DisplayText),
    required("raw_hash", Text, index=True),
    Column("content_hash", Text),
    required("media_type", DisplayText),
    Column("charset", DisplayText),
    *(required(f"{gate}_fingerprint", Text) for gate in ("fetch", "partition", "chunk", "embed")),
    Column("generation", Integer),
    required("sections", Integer),
    required("chunks", Integer),
    required("fetched_at", UtcDateTime),
    Column("modified_at", UtcDateTime),
    required("indexed_at", UtcDateTime),
    required("recorded_at", UtcDateTime, server_default=func.clock_timestamp()),
    # When another version took its place; empty for the last one of a document, live or not.
    Column("replaced_at", UtcDateTime),
    Index(None, "replaced_at", postgresql_where=REPLACED),
)

run = Table(
    "run",
    metadata,
    Column("run_id", sorted_text(), primary_key=True),
    to_source(),
    required("trigger", Text),
    required("status", Text),
    required("started_at", UtcDateTime, index=True),
    Column("finished_at", UtcDateTime, index=True),
    required("note", DisplayText),
    # JSON as text: it is handed back as it was written, and only people query it.
    Column("summary", DisplayText),
    Index(None, "source", "started_at"),
)

run_document = Table(
    "run_document",
    metadata,
    # No foreign keys: an event outlives its document, and bookkeeping must never refuse a commit.
    Column("run_id", sorted_text(), primary_key=True),
    Column("document_id", Uuid, primary_key=True),
    required("uri", sorted_text()),
    required("action", Text),
    required("reason", Text),
    required("detail", DisplayText),
    required("seconds", Double),
    required("chunks_added", Integer),
    required("chunks_kept", Integer),
    required("chunks_removed", Integer),
    required("recorded_at", UtcDateTime, server_default=func.clock_timestamp()),
    Index("run_document_run_id_uri_idx", "run_id", BY_URI),
    Index(None, "document_id", "recorded_at"),
)

generation = Table(
    "generation",
    metadata,
    Column("index_name", sorted_text(), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    required("embed_fingerprint", Text),
    required("dimension", Integer),
    required("status", Text),
    required("created_at", UtcDateTime),
)

evaluation = Table(
    "evaluation",
    metadata,
    Column("evaluation_id", BigInteger, Identity(), primary_key=True),
    required("evaluated_at", UtcDateTime, server_default=func.now(), index=True),
    required("index_name", sorted_text()),
    required("generation", Integer),
    required("questions", Integer),
    required("metrics", JSONB),
)

audit = Table(
    "audit",
    metadata,
    Column("audit_id", BigInteger, Identity(), primary_key=True),
    required("audited_at", UtcDateTime, server_default=func.now(), index=True),
    to_source(nullable=True),
    required("findings", JSONB),
    required("repaired", Integer),
    Column("left", JSONB(none_as_null=True)),
    Index(None, "source", "audited_at"),
)
