"""The ledger's tables, as SQLAlchemy Core metadata.

An address may be longer than an index entry: exact look-ups go through hash indexes, and an order through
an index on the address's beginning (``BY_URI``), within which the server sorts.
A document's removal deletes its sections and chunks by cascade; what remains is its tombstone, its events
and its versions (``ledger_history_tables``).
"""

from collections.abc import Sequence

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    Integer,
    Table,
    Text,
    Uuid,
    func,
    literal_column,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from tidemark.adapters.ledger_columns import (
    BY_URI,
    DisplayText,
    UtcDateTime,
    metadata,
    required,
    sorted_text,
    to_document,
    to_source,
)
from tidemark.adapters.ledger_history_tables import (
    audit,
    evaluation,
    generation,
    run,
    run_document,
    version,
)
from tidemark.domain.records import TAKEN_DOWN, DocumentStatus

__all__ = [
    "BY_URI",
    "FAILED",
    "FAILED_RAW_HASH",
    "FORGETTABLE",
    "KEPT_OUT",
    "QUARANTINED",
    "RESTORABLE",
    "alias",
    "audit",
    "chunk",
    "document",
    "evaluation",
    "generation",
    "in_flight",
    "metadata",
    "run",
    "run_document",
    "section",
    "source",
    "tombstone",
    "version",
]

source = Table(
    "source",
    metadata,
    Column("name", sorted_text(), primary_key=True),
    required("first_seen", UtcDateTime, server_default=func.now()),
    required("state", Text, server_default=""),
    required("furniture", JSONB, server_default=text("'[]'::jsonb")),
    required("furniture_pages", Integer, server_default="0"),
    required("mark", Text, server_default=""),
)

_FINGERPRINTS: Sequence[str] = ("fetch", "partition", "chunk", "embed")

# The conditions of partial indexes are written out, here and in the queries that use them: the server
# does not match them with a parameter.
QUARANTINED = literal_column(f"status = '{DocumentStatus.QUARANTINED}'", Boolean)
FAILED = literal_column("failure IS NOT NULL", Boolean)
FAILED_RAW_HASH = literal_column("(failure ->> 'raw_hash')", Text)
KEPT_OUT = literal_column(f"reason = '{TAKEN_DOWN}'", Boolean)
RESTORABLE = literal_column("NOT expired", Boolean)
FORGETTABLE = literal_column(f"expired AND reason <> '{TAKEN_DOWN}'", Boolean)

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
    *(Column(f"indexed_{gate}_fingerprint", Text) for gate in _FINGERPRINTS),
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
        "num_nulls({}) IN (0, 4)".format(
            ", ".join(f"indexed_{g}_fingerprint" for g in _FINGERPRINTS)
        ),
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

alias = Table(
    "alias",
    metadata,
    Column("alias_id", Uuid, primary_key=True),
    to_source(),
    required("uri", sorted_text()),
    to_document(),
    required("kind", Text),
    required("seen_at", UtcDateTime),
    required("validators", JSONB),
    Column("raw_hash", Text, index=True),
    required("media_type", DisplayText),
    Column("charset", DisplayText),
    Column("text_hash", Text),
    Column("text_length", Integer),
    Column("fetched_at", UtcDateTime),
    Index("alias_source_uri_idx", "source", BY_URI),
    Index(None, "uri", postgresql_using="hash"),
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

in_flight = Table(
    "in_flight",
    metadata,
    # No foreign key: a document is noted here before its own row exists.
    Column("document_id", Uuid, primary_key=True),
    to_source(),
    required("uri", sorted_text()),
    required("run_id", sorted_text()),
    required("begun_at", UtcDateTime, server_default=func.now()),
    Index(None, "source"),
)

tombstone = Table(
    "tombstone",
    metadata,
    Column("document_id", Uuid, primary_key=True),
    to_source(),
    required("uri", sorted_text()),
    required("title", DisplayText),
    Column("raw_hash", Text),
    required("removed_at", UtcDateTime),
    required("reason", Text),
    required("run_id", sorted_text()),
    required("expired", Boolean, server_default=text("false")),
    required("kept_out", JSONB, server_default=text("'[]'::jsonb")),
    required("texts", JSONB, server_default=text("'[]'::jsonb")),
    required("everywhere", Boolean, server_default=text("false")),
    Index("tombstone_restorable_idx", "source", "removed_at", postgresql_where=RESTORABLE),
    Index("tombstone_kept_out_idx", "source", postgresql_where=KEPT_OUT),
    Index("tombstone_forgettable_idx", "removed_at", postgresql_where=FORGETTABLE),
    Index(None, "uri", postgresql_using="hash"),
    Index(None, "raw_hash"),
)
