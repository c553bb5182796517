"""The ledger's tables, as SQLAlchemy Core metadata.

An address may be longer than an index entry: exact look-ups go through hash indexes, and an order through
an index on the address's beginning (``BY_URI``), within which the server sorts.
A document's removal deletes its sections and chunks by cascade; what remains is its tombstone, its events
and its versions (``ledger_history_tables``).
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    DateTime,
    Dialect,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    Uuid,
    func,
    literal_column,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

from tidemark.domain.records import TAKEN_DOWN, DocumentStatus

# What the ledger's tables are made of: types of columns, names of constraints, common columns.
#
# Text that is sorted by has the "C" collation, so every server orders it by code point, as Python does.

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(value: str) -> str:
    """Replace what Postgres cannot store (NUL, lone surrogates) in text that people read."""
    return _UNSTORABLE.sub("\ufffd", value)


class DisplayText(TypeDecorator[str]):
    """Text for people, which documents may have filled with anything."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else storable(value)


class UtcDateTime(TypeDecorator[datetime]):
    """``timestamptz`` that takes aware times and gives them back in UTC, whatever the server's zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is not None and value.tzinfo is None:
            raise ValueError(f"The time {value.isoformat()} has no time zone.")
        return value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)


BY_URI = literal_column("left(uri, 500)", Text(collation="C"))
"""Sort by this, then by ``uri``, to read in the order of addresses without sorting a whole table."""

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)


def sorted_text() -> Text:
    return Text(collation="C")


def required(name: str, kind: Any, *more: Any, **options: Any) -> Column[Any]:
    return Column(name, kind, *more, nullable=False, **options)


def to_source(*, nullable: bool = False) -> Column[str]:
    return Column("source", sorted_text(), ForeignKey("source.name"), nullable=nullable)


def to_document() -> Column[Any]:
    return Column(
        "document_id",
        Uuid,
        ForeignKey("document.document_id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    )


# The ledger's tables of what was: versions, runs and their events, generations, evaluations, audits.

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
