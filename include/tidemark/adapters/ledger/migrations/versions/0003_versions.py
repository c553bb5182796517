"""What was live before and why, and what proves that it is: versions, checksums, tide marks."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0003"
down_revision = "0002"

BEGINNING = sa.text("left(uri, 500)")
TIME = sa.DateTime(timezone=True)
TEXT = sa.Text()
NUMBER = sa.Integer()
SORTED = sa.Text(collation="C")


def required(name: str, kind: Any, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, **options)


def upgrade() -> None:
    op.add_column("source", required("mark", TEXT, server_default=""))
    op.add_column("document", sa.Column("checksum", TEXT))
    op.add_column("chunk", sa.Column("vector_hash", TEXT))
    for hashes in ("kept_out", "texts"):
        empty = sa.text("'[]'::jsonb")
        op.add_column("tombstone", required(hashes, JSONB(), server_default=empty))
    op.add_column("tombstone", required("everywhere", sa.Boolean(), server_default=sa.false()))
    _versions()
    _live_documents_become_versions()
    _indexes()


def _versions() -> None:
    op.create_table(
        "version",
        required("document_id", sa.Uuid()),
        required("run_id", SORTED),
        required("source", SORTED),
        required("uri", SORTED),
        required("title", TEXT),
        required("action", TEXT),
        required("reason", TEXT),
        required("detail", TEXT),
        required("raw_hash", TEXT),
        sa.Column("content_hash", TEXT),
        required("media_type", TEXT),
        sa.Column("charset", TEXT),
        *(
            required(f"{gate}_fingerprint", TEXT)
            for gate in ("fetch", "partition", "chunk", "embed")
        ),
        sa.Column("generation", NUMBER),
        required("sections", NUMBER),
        required("chunks", NUMBER),
        required("fetched_at", TIME),
        sa.Column("modified_at", TIME),
        required("indexed_at", TIME),
        required("recorded_at", TIME, server_default=sa.func.clock_timestamp()),
        sa.Column("replaced_at", TIME),
        sa.PrimaryKeyConstraint("document_id", "run_id", name="version_pkey"),
    )


def _live_documents_become_versions() -> None:
    """Each as the last event tells that wrote it; its own row tells enough where that is forgotten."""
    op.execute(
        """
        INSERT INTO version (
            document_id, run_id, source, uri, title, action, reason, detail, raw_hash, content_hash,
            media_type, charset, fetch_fingerprint, partition_fingerprint, chunk_fingerprint,
            embed_fingerprint, generation, sections, chunks, fetched_at, modified_at, indexed_at
        )
        SELECT
            d.document_id, coalesce(e.run_id, d.last_run_id), d.source, d.uri, d.title,
            coalesce(e.action, 'add'), coalesce(e.reason, d.reason), coalesce(e.detail, ''),
            d.raw_hash, d.content_hash, d.media_type, d.charset, d.indexed_fetch_fingerprint,
            d.indexed_partition_fingerprint, d.indexed_chunk_fingerprint,
            d.indexed_embed_fingerprint, d.generation, d.sections, d.chunks, d.fetched_at,
            d.modified_at, coalesce(d.indexed_at, d.fetched_at)
        FROM document d
        LEFT JOIN LATERAL (
            SELECT run_id, action, reason, detail FROM run_document
            WHERE document_id = d.document_id
              AND action IN ('add', 'update', 'metadata', 'restore')
            ORDER BY recorded_at DESC LIMIT 1
        ) e ON true
        WHERE d.raw_hash IS NOT NULL AND d.indexed_fetch_fingerprint IS NOT NULL
        """
    )


def _indexes() -> None:
    op.create_index("version_raw_hash_idx", "version", ["raw_hash"])
    op.create_index(
        "version_replaced_at_idx",
        "version",
        ["replaced_at"],
        postgresql_where=sa.text("replaced_at IS NOT NULL"),
    )
    op.create_index(
        "document_quarantined_idx",
        "document",
        ["source", BEGINNING],
        postgresql_where=sa.text("status = 'quarantined'"),
    )
    op.create_index(
        "document_failed_raw_hash_idx",
        "document",
        [sa.text("(failure ->> 'raw_hash')")],
        postgresql_where=sa.text("failure IS NOT NULL"),
    )
    op.drop_index("tombstone_source_idx", "tombstone")
    op.create_index(
        "tombstone_restorable_idx",
        "tombstone",
        ["source", "removed_at"],
        postgresql_where=sa.text("NOT expired"),
    )
    op.create_index(
        "tombstone_kept_out_idx",
        "tombstone",
        ["source"],
        postgresql_where=sa.text("reason = 'taken_down'"),
    )
    op.create_index(
        "tombstone_forgettable_idx",
        "tombstone",
        ["removed_at"],
        postgresql_where=sa.text("expired AND reason <> 'taken_down'"),
    )
    op.create_index("run_finished_at_idx", "run", ["finished_at"])
    op.add_column("audit", sa.Column("left", JSONB()))
    op.create_index("audit_audited_at_idx", "audit", ["audited_at"])
