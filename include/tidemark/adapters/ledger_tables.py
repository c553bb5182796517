"""The ledger's tables, as SQLAlchemy Core metadata.

Text that is sorted by has the "C" collation, so every server orders it by code point, as Python does.
An address may be longer than an index entry: exact look-ups go through hash indexes, and an order through
an index on the address's beginning (``BY_URI``), within which the server sorts.
A document's removal deletes its sections and chunks by cascade; what remains is its tombstone and events.
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


def _sorted_text() -> Text:
    return Text(collation="C")


def _required(name: str, kind: Any, *more: Any, **options: Any) -> Column[Any]:
    return Column(name, kind, *more, nullable=False, **options)


def _to_source(*, nullable: bool = False) -> Column[str]:
    return Column("source", _sorted_text(), ForeignKey("source.name"), nullable=nullable)


def _to_document() -> Column[Any]:
    return Column(
        "document_id",
        Uuid,
        ForeignKey("document.document_id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    )


source = Table(
    "source",
    metadata,
    Column("name", _sorted_text(), primary_key=True),
    _required("first_seen", UtcDateTime, server_default=func.now()),
    _required("state", Text, server_default=""),
    _required("furniture", JSONB, server_default=text("'[]'::jsonb")),
    _required("furniture_pages", Integer, server_default="0"),
)

_FINGERPRINTS: Sequence[str] = ("fetch", "partition", "chunk", "embed")

document = Table(
    "document",
    metadata,
    Column("document_id", Uuid, primary_key=True),
    _to_source(),
    _required("uri", _sorted_text()),
    _required("title", DisplayText),
    _required("media_type", DisplayText),
    Column("charset", DisplayText),
    _required("status", Text),
    _required("validators", JSONB),
    _required("fetch_fingerprint", Text),
    _required("fetched_raw_hash", Text),
    Column("raw_hash", Text),
    Column("content_hash", Text),
    *(Column(f"indexed_{gate}_fingerprint", Text) for gate in _FINGERPRINTS),
    Column("generation", Integer),
    _required("sections", Integer),
    _required("chunks", Integer),
    _required("reason", Text),
    _required("first_seen", UtcDateTime),
    _required("last_seen", UtcDateTime),
    _required("fetched_at", UtcDateTime),
    Column("indexed_at", UtcDateTime),
    Column("missing_since", UtcDateTime),
    _required("missing_runs", Integer),
    # The runs that missing_runs has counted, so that a repeated task does not count twice.
    _required("missed_by", ARRAY(Text), server_default=text("'{}'::text[]")),
    _required("last_run_id", Text),
    Column("failure", JSONB(none_as_null=True)),
    Column("text_hash", Text),
    Column("text_length", Integer),
    Column("modified_at", UtcDateTime),
    _required("link", DisplayText, server_default=""),
    Column("suspect", JSONB(none_as_null=True)),
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
)

alias = Table(
    "alias",
    metadata,
    Column("alias_id", Uuid, primary_key=True),
    _to_source(),
    _required("uri", _sorted_text()),
    _to_document(),
    _required("kind", Text),
    _required("seen_at", UtcDateTime),
    _required("validators", JSONB),
    Column("raw_hash", Text, index=True),
    _required("media_type", DisplayText),
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
    _to_document(),
    # No foreign key: parents and children come and go together with their document.
    Column("parent_section_id", Uuid),
    _required("ordinal", Integer),
    _required("heading_path", JSONB),
    _required("payload_hash", Text),
)

chunk = Table(
    "chunk",
    metadata,
    Column("point_id", Uuid, primary_key=True),
    _to_document(),
    _required("section_id", Uuid, ForeignKey("section.section_id", ondelete="CASCADE"), index=True),
    _required("chunk_index", Integer),
    _required("embed_hash", Text),
    _required("payload_hash", Text),
    _required("token_count", Integer),
)

in_flight = Table(
    "in_flight",
    metadata,
    # No foreign key: a document is noted here before its own row exists.
    Column("document_id", Uuid, primary_key=True),
    _to_source(),
    _required("uri", _sorted_text()),
    _required("run_id", _sorted_text()),
    _required("begun_at", UtcDateTime, server_default=func.now()),
    Index(None, "source"),
)

tombstone = Table(
    "tombstone",
    metadata,
    Column("document_id", Uuid, primary_key=True),
    _to_source(),
    _required("uri", _sorted_text()),
    _required("title", DisplayText),
    Column("raw_hash", Text),
    _required("removed_at", UtcDateTime),
    _required("reason", Text),
    _required("run_id", _sorted_text()),
    _required("expired", Boolean, server_default=text("false")),
    Index(None, "source"),
    Index(None, "uri", postgresql_using="hash"),
    Index(None, "raw_hash"),
)

run = Table(
    "run",
    metadata,
    Column("run_id", _sorted_text(), primary_key=True),
    _to_source(),
    _required("trigger", Text),
    _required("status", Text),
    _required("started_at", UtcDateTime, index=True),
    Column("finished_at", UtcDateTime),
    _required("note", DisplayText),
    # JSON as text: it is handed back as it was written, and only people query it.
    Column("summary", DisplayText),
    Index(None, "source", "started_at"),
)

run_document = Table(
    "run_document",
    metadata,
    # No foreign keys: an event outlives its document, and bookkeeping must never refuse a commit.
    Column("run_id", _sorted_text(), primary_key=True),
    Column("document_id", Uuid, primary_key=True),
    _required("uri", _sorted_text()),
    _required("action", Text),
    _required("reason", Text),
    _required("detail", DisplayText),
    _required("seconds", Double),
    _required("chunks_added", Integer),
    _required("chunks_kept", Integer),
    _required("chunks_removed", Integer),
    _required("recorded_at", UtcDateTime, server_default=func.clock_timestamp()),
    Index("run_document_run_id_uri_idx", "run_id", BY_URI),
    Index(None, "document_id", "recorded_at"),
)

generation = Table(
    "generation",
    metadata,
    Column("index_name", _sorted_text(), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    _required("embed_fingerprint", Text),
    _required("dimension", Integer),
    _required("status", Text),
    _required("created_at", UtcDateTime),
)

evaluation = Table(
    "evaluation",
    metadata,
    Column("evaluation_id", BigInteger, Identity(), primary_key=True),
    _required("evaluated_at", UtcDateTime, server_default=func.now(), index=True),
    _required("index_name", _sorted_text()),
    _required("generation", Integer),
    _required("questions", Integer),
    _required("metrics", JSONB),
)

audit = Table(
    "audit",
    metadata,
    Column("audit_id", BigInteger, Identity(), primary_key=True),
    _required("audited_at", UtcDateTime, server_default=func.now()),
    _to_source(nullable=True),
    _required("findings", JSONB),
    _required("repaired", Integer),
    Index(None, "source", "audited_at"),
)
