"""The ledger as first released."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.types import TypeEngine

revision = "0001"
down_revision = None

UUID = sa.Uuid()
NUMBER = sa.Integer()
TIME = sa.DateTime(timezone=True)
PLAIN = sa.Text()
SORTED = sa.Text(collation="C")

BEGINNING = sa.text("left(uri, 500)")


def required(name: str, kind: TypeEngine[Any], **options: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, **options)


def optional(name: str, kind: TypeEngine[Any]) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=True)


def key(table: str, *columns: str) -> sa.PrimaryKeyConstraint:
    return sa.PrimaryKeyConstraint(*columns, name=f"{table}_pkey")


def refers(table: str, column: str, target: str, **options: Any) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [target], name=f"{table}_{column}_fkey", **options)


def index(table: str, *columns: str, **options: Any) -> None:
    op.create_index(f"{table}_{'_'.join(columns)}_idx", table, list(columns), **options)


def upgrade() -> None:
    _sources_and_runs()
    _documents()
    _parts_of_documents()
    _index_wide()


def _sources_and_runs() -> None:
    op.create_table(
        "source",
        required("name", SORTED),
        required("first_seen", TIME, server_default=sa.func.now()),
        key("source", "name"),
    )
    op.create_table(
        "run",
        required("run_id", SORTED),
        required("source", SORTED),
        required("trigger", PLAIN),
        required("status", PLAIN),
        required("started_at", TIME),
        optional("finished_at", TIME),
        required("note", PLAIN),
        optional("summary", PLAIN),
        key("run", "run_id"),
        refers("run", "source", "source.name"),
    )
    index("run", "started_at")
    index("run", "source", "started_at")
    op.create_table(
        "run_document",
        required("run_id", SORTED),
        required("document_id", UUID),
        required("uri", SORTED),
        required("action", PLAIN),
        required("reason", PLAIN),
        required("detail", PLAIN),
        required("seconds", sa.Double()),
        required("chunks_added", NUMBER),
        required("chunks_kept", NUMBER),
        required("chunks_removed", NUMBER),
        required("recorded_at", TIME, server_default=sa.func.clock_timestamp()),
        key("run_document", "run_id", "document_id"),
    )
    op.create_index("run_document_run_id_uri_idx", "run_document", ["run_id", BEGINNING])
    index("run_document", "document_id", "recorded_at")


def _documents() -> None:
    fingerprints = [
        f"indexed_{gate}_fingerprint" for gate in ("fetch", "partition", "chunk", "embed")
    ]
    op.create_table(
        "document",
        required("document_id", UUID),
        required("source", SORTED),
        required("uri", SORTED),
        required("title", PLAIN),
        required("media_type", PLAIN),
        optional("charset", PLAIN),
        required("status", PLAIN),
        required("validators", JSONB()),
        required("fetch_fingerprint", PLAIN),
        required("fetched_raw_hash", PLAIN),
        optional("raw_hash", PLAIN),
        optional("content_hash", PLAIN),
        *(optional(name, PLAIN) for name in fingerprints),
        optional("generation", NUMBER),
        required("sections", NUMBER),
        required("chunks", NUMBER),
        required("reason", PLAIN),
        required("first_seen", TIME),
        required("last_seen", TIME),
        required("fetched_at", TIME),
        optional("indexed_at", TIME),
        optional("missing_since", TIME),
        required("missing_runs", NUMBER),
        required("missed_by", ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]")),
        required("last_run_id", PLAIN),
        optional("failure", JSONB()),
        sa.CheckConstraint(
            f"num_nulls({', '.join(fingerprints)}) IN (0, 4)",
            name=op.f("document_fingerprints_check"),
        ),
        key("document", "document_id"),
        refers("document", "source", "source.name"),
    )
    op.create_index("document_source_uri_idx", "document", ["source", BEGINNING])
    index("document", "uri", postgresql_using="hash")
    op.create_table(
        "in_flight",
        required("document_id", UUID),
        required("source", SORTED),
        required("uri", SORTED),
        required("run_id", SORTED),
        required("begun_at", TIME, server_default=sa.func.now()),
        key("in_flight", "document_id"),
        refers("in_flight", "source", "source.name"),
    )
    index("in_flight", "source")
    op.create_table(
        "tombstone",
        required("document_id", UUID),
        required("source", SORTED),
        required("uri", SORTED),
        required("title", PLAIN),
        optional("raw_hash", PLAIN),
        required("removed_at", TIME),
        required("reason", PLAIN),
        required("run_id", SORTED),
        key("tombstone", "document_id"),
        refers("tombstone", "source", "source.name"),
    )
    index("tombstone", "source")
    index("tombstone", "uri", postgresql_using="hash")


def _parts_of_documents() -> None:
    op.create_table(
        "section",
        required("section_id", UUID),
        required("document_id", UUID),
        optional("parent_section_id", UUID),
        required("ordinal", NUMBER),
        required("heading_path", JSONB()),
        required("payload_hash", PLAIN),
        key("section", "section_id"),
        refers("section", "document_id", "document.document_id", ondelete="CASCADE"),
    )
    index("section", "document_id")
    op.create_table(
        "chunk",
        required("point_id", UUID),
        required("document_id", UUID),
        required("section_id", UUID),
        required("chunk_index", NUMBER),
        required("embed_hash", PLAIN),
        required("payload_hash", PLAIN),
        required("token_count", NUMBER),
        key("chunk", "point_id"),
        refers("chunk", "document_id", "document.document_id", ondelete="CASCADE"),
        refers("chunk", "section_id", "section.section_id", ondelete="CASCADE"),
    )
    index("chunk", "document_id")
    index("chunk", "section_id")


def _index_wide() -> None:
    op.create_table(
        "generation",
        required("index_name", SORTED),
        required("number", NUMBER, autoincrement=False),
        required("embed_fingerprint", PLAIN),
        required("dimension", NUMBER),
        required("status", PLAIN),
        required("created_at", TIME),
        key("generation", "index_name", "number"),
    )
    op.create_table(
        "evaluation",
        sa.Column("evaluation_id", sa.BigInteger(), sa.Identity(), nullable=False),
        required("evaluated_at", TIME, server_default=sa.func.now()),
        required("index_name", SORTED),
        required("generation", NUMBER),
        required("questions", NUMBER),
        required("metrics", JSONB()),
        key("evaluation", "evaluation_id"),
    )
    index("evaluation", "evaluated_at")
    op.create_table(
        "audit",
        sa.Column("audit_id", sa.BigInteger(), sa.Identity(), nullable=False),
        required("audited_at", TIME, server_default=sa.func.now()),
        optional("source", SORTED),
        required("findings", JSONB()),
        required("repaired", NUMBER),
        key("audit", "audit_id"),
        refers("audit", "source", "source.name"),
    )
    index("audit", "source", "audited_at")
