"""What crawling real sites asks of the ledger: other addresses, doubts, and what to restore from."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0002"
down_revision = "0001"

BEGINNING = sa.text("left(uri, 500)")
TIME = sa.DateTime(timezone=True)
SORTED = sa.Text(collation="C")


def upgrade() -> None:
    op.add_column("source", sa.Column("state", sa.Text(), nullable=False, server_default=""))
    op.add_column(
        "source",
        sa.Column("furniture", JSONB(), nullable=False, server_default=sa.text("'[]'::jsonb")),
    )
    op.add_column(
        "source", sa.Column("furniture_pages", sa.Integer(), nullable=False, server_default="0")
    )
    for column in (
        sa.Column("text_hash", sa.Text()),
        sa.Column("text_length", sa.Integer()),
        sa.Column("modified_at", TIME),
        sa.Column("link", sa.Text(), nullable=False, server_default=""),
        sa.Column("suspect", JSONB()),
    ):
        op.add_column("document", column)
    for name in ("raw_hash", "fetched_raw_hash", "text_hash"):
        op.create_index(f"document_{name}_idx", "document", [name])
    op.add_column(
        "tombstone",
        sa.Column("expired", sa.Boolean(), nullable=False, server_default=sa.text("false")),
    )
    op.create_index("tombstone_raw_hash_idx", "tombstone", ["raw_hash"])
    _aliases()


def _aliases() -> None:
    op.create_table(
        "alias",
        sa.Column("alias_id", sa.Uuid(), nullable=False),
        sa.Column("source", SORTED, nullable=False),
        sa.Column("uri", SORTED, nullable=False),
        sa.Column("document_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("seen_at", TIME, nullable=False),
        sa.Column("validators", JSONB(), nullable=False),
        sa.Column("raw_hash", sa.Text()),
        sa.Column("media_type", sa.Text(), nullable=False),
        sa.Column("charset", sa.Text()),
        sa.Column("text_hash", sa.Text()),
        sa.Column("text_length", sa.Integer()),
        sa.Column("fetched_at", TIME),
        sa.PrimaryKeyConstraint("alias_id", name="alias_pkey"),
        sa.ForeignKeyConstraint(["source"], ["source.name"], name="alias_source_fkey"),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["document.document_id"],
            name="alias_document_id_fkey",
            ondelete="CASCADE",
        ),
    )
    op.create_index("alias_document_id_idx", "alias", ["document_id"])
    op.create_index("alias_raw_hash_idx", "alias", ["raw_hash"])
    op.create_index("alias_source_uri_idx", "alias", ["source", BEGINNING])
    op.create_index("alias_uri_idx", "alias", ["uri"], postgresql_using="hash")
