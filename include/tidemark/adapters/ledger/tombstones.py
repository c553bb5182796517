"""The records of removed documents."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from tidemark.adapters.ledger.engine import Database
from tidemark.adapters.ledger.runs import drop_events_of
from tidemark.adapters.ledger.schema import (
    AT_ONCE,
    TUPLE,
    DisplayText,
    Rows,
    UtcDateTime,
    bulk_upsert,
    delete_by,
    metadata,
    required,
    sorted_text,
    texts,
    to_source,
    uuids,
)
from tidemark.domain.records import TAKEN_DOWN, Tombstone

# Written out for the sake of partial indexes, as those of ``documents``.
BLOCKING = sa.literal_column(f"reason = '{TAKEN_DOWN}'", sa.Boolean)
RESTORABLE = sa.literal_column("NOT expired", sa.Boolean)
DROPPABLE = sa.literal_column(f"expired AND reason <> '{TAKEN_DOWN}'", sa.Boolean)

tombstone = sa.Table(
    "tombstone",
    metadata,
    sa.Column("document_id", sa.Uuid, primary_key=True),
    to_source(),
    required("uri", sorted_text()),
    required("title", DisplayText),
    sa.Column("raw_hash", sa.Text),
    required("removed_at", UtcDateTime),
    required("reason", sa.Text),
    required("run_id", sorted_text()),
    required("expired", sa.Boolean, server_default=sa.text("false")),
    required("kept_out", TUPLE, server_default=sa.text("'[]'::jsonb")),
    required("texts", TUPLE, server_default=sa.text("'[]'::jsonb")),
    required("everywhere", sa.Boolean, server_default=sa.text("false")),
    sa.Index("tombstone_restorable_idx", "source", "removed_at", postgresql_where=RESTORABLE),
    sa.Index("tombstone_kept_out_idx", "source", postgresql_where=BLOCKING),
    sa.Index("tombstone_forgettable_idx", "removed_at", postgresql_where=DROPPABLE),
    sa.Index(None, "uri", postgresql_using="hash"),
    sa.Index(None, "raw_hash"),
)


TOMBSTONES = Rows(
    tombstone,
    Tombstone,
    columns={"blocked_raws": "kept_out", "blocked_texts": "texts", "all_sources": "everywhere"},
)
UPSERT_TOMBSTONES = bulk_upsert(tombstone)
DELETE_TOMBSTONES = delete_by(tombstone, "document_id")
_BY_ID = sa.select(tombstone).where(tombstone.c.document_id == sa.any_(uuids("ids")))
_EXPIRE = (
    sa.update(tombstone)
    .where(tombstone.c.document_id == sa.any_(uuids("ids")))
    .values(expired=True)
)
_SAME_BYTES = (tombstone.c.raw_hash == sa.any_(texts("hashes"))) & (
    tombstone.c.source == sa.bindparam("owner", type_=sa.Text())
)
_OLDEST = (tombstone.c.removed_at, tombstone.c.document_id)
_OLD = (DROPPABLE, tombstone.c.removed_at < sa.bindparam("before", type_=UtcDateTime()))
_DROP = sa.delete(tombstone).where(tombstone.c.document_id == sa.any_(uuids("ids")), DROPPABLE)


class PostgresTombstones:
    """The Tombstones port on Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def by_id(self, ids: Sequence[UUID]) -> dict[UUID, Tombstone]:
        records = TOMBSTONES.of(self._database.rows_of(_BY_ID, "ids", ids))
        return {record.document_id: record for record in records}

    def by_uri(self, uri: str) -> list[Tombstone]:
        query = sa.select(tombstone).where(tombstone.c.uri == uri).order_by(tombstone.c.source)
        return TOMBSTONES.of(self._database.rows(query))

    def by_raw(self, source: str, raw_hashes: Sequence[str]) -> list[Tombstone]:
        if not raw_hashes:
            return []
        query = sa.select(tombstone).where(_SAME_BYTES, RESTORABLE, ~BLOCKING)
        return TOMBSTONES.of(self._database.rows(query, {"hashes": raw_hashes, "owner": source}))

    def restorable(self, source: str, removed_before: datetime) -> list[Tombstone]:
        old = tombstone.c.removed_at < removed_before
        query = sa.select(tombstone).where(tombstone.c.source == source, RESTORABLE, old)
        return TOMBSTONES.of(self._database.rows(query.order_by(*_OLDEST).limit(AT_ONCE)))

    def expire(self, document_ids: Sequence[UUID]) -> None:
        self._database.execute(_EXPIRE, {"ids": document_ids})

    def clear_titles(self, source: str, raw_hashes: Sequence[str]) -> None:
        statement = sa.update(tombstone).where(_SAME_BYTES).values(title="")
        self._database.execute(statement, {"hashes": raw_hashes, "owner": source})

    def blocking(self, source: str) -> list[Tombstone]:
        there = sa.or_(tombstone.c.source == source, tombstone.c.everywhere)
        return TOMBSTONES.of(self._database.rows(sa.select(tombstone).where(there, BLOCKING)))

    def unblock(self, document_id: UUID) -> None:
        self._database.execute(DELETE_TOMBSTONES, {"ids": [document_id]})

    def drop(self, removed_before: datetime) -> int:
        query = sa.select(tombstone.c.document_id).where(*_OLD).order_by(*_OLDEST).limit(AT_ONCE)
        ids = [row.document_id for row in self._database.rows(query, {"before": removed_before})]
        drop_events_of(self._database, ids)
        return self._database.execute(_DROP, {"ids": ids})
