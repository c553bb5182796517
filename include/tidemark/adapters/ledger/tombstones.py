"""The records of removed documents."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Boolean,
    Column,
    Index,
    Row,
    Table,
    Text,
    Uuid,
    any_,
    bindparam,
    delete,
    func,
    literal_column,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB

from tidemark.adapters.ledger.engine import Database
from tidemark.adapters.ledger.runs import drop_events_of
from tidemark.adapters.ledger.schema import (
    AT_ONCE,
    DisplayText,
    UtcDateTime,
    Values,
    bulk_upsert,
    delete_by,
    fields_of,
    metadata,
    required,
    sorted_text,
    texts,
    to_source,
    uuids,
)
from tidemark.domain.records import TAKEN_DOWN, Tombstone

# Written out for the sake of partial indexes, as those of ``documents``.
BLOCKING = literal_column(f"reason = '{TAKEN_DOWN}'", Boolean)
RESTORABLE = literal_column("NOT expired", Boolean)
DROPPABLE = literal_column(f"expired AND reason <> '{TAKEN_DOWN}'", Boolean)

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
    Index("tombstone_kept_out_idx", "source", postgresql_where=BLOCKING),
    Index("tombstone_forgettable_idx", "removed_at", postgresql_where=DROPPABLE),
    Index(None, "uri", postgresql_using="hash"),
    Index(None, "raw_hash"),
)


def tombstone_values(record: Tombstone) -> Values:
    return {**fields_of(record), "kept_out": list(record.kept_out), "texts": list(record.texts)}


def tombstone_record(row: Row[Any]) -> Tombstone:
    lists = {"kept_out": tuple(row.kept_out), "texts": tuple(row.texts)}
    return Tombstone(**{**row._asdict(), **lists})


UPSERT_TOMBSTONES = bulk_upsert(tombstone)
DELETE_TOMBSTONES = delete_by(tombstone, "document_id")
_BY_ID = select(tombstone).where(tombstone.c.document_id == any_(uuids("ids")))
_EXPIRE = (
    update(tombstone).where(tombstone.c.document_id == any_(uuids("ids"))).values(expired=True)
)
_SAME_BYTES = (tombstone.c.raw_hash == any_(texts("hashes"))) & (
    tombstone.c.source == bindparam("owner", type_=Text())
)
_OLDEST = (tombstone.c.removed_at, tombstone.c.document_id)
_OLD = (DROPPABLE, tombstone.c.removed_at < bindparam("before", type_=UtcDateTime()))
_DROP = delete(tombstone).where(tombstone.c.document_id == any_(uuids("ids")), DROPPABLE)


class PostgresTombstones:
    """The Tombstones port on Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def by_id(self, ids: Sequence[UUID]) -> dict[UUID, Tombstone]:
        records = map(tombstone_record, self._database.rows_of(_BY_ID, "ids", ids))
        return {record.document_id: record for record in records}

    def by_uri(self, uri: str) -> list[Tombstone]:
        query = select(tombstone).where(tombstone.c.uri == uri).order_by(tombstone.c.source)
        return [tombstone_record(row) for row in self._database.rows(query)]

    def by_raw(self, source: str, raw_hashes: Sequence[str]) -> list[Tombstone]:
        if not raw_hashes:
            return []
        query = select(tombstone).where(_SAME_BYTES, RESTORABLE, ~BLOCKING)
        rows = self._database.rows(query, {"hashes": raw_hashes, "owner": source})
        return [tombstone_record(row) for row in rows]

    def restorable(self, source: str, removed_before: datetime) -> list[Tombstone]:
        old = tombstone.c.removed_at < removed_before
        query = select(tombstone).where(tombstone.c.source == source, RESTORABLE, old)
        rows = self._database.rows(query.order_by(*_OLDEST).limit(AT_ONCE))
        return [tombstone_record(row) for row in rows]

    def expire(self, document_ids: Sequence[UUID]) -> None:
        self._database.execute(_EXPIRE, {"ids": document_ids})

    def clear_titles(self, source: str, raw_hashes: Sequence[str]) -> None:
        statement = update(tombstone).where(_SAME_BYTES).values(title="")
        self._database.execute(statement, {"hashes": raw_hashes, "owner": source})

    def blocking(self, source: str) -> list[Tombstone]:
        there = or_(tombstone.c.source == source, tombstone.c.everywhere)
        rows = self._database.rows(select(tombstone).where(there, BLOCKING))
        return [tombstone_record(row) for row in rows]

    def unblock(self, document_id: UUID) -> None:
        self._database.execute(DELETE_TOMBSTONES, {"ids": [document_id]})

    def drop(self, removed_before: datetime) -> int:
        query = select(tombstone.c.document_id).where(*_OLD).order_by(*_OLDEST).limit(AT_ONCE)
        ids = [row.document_id for row in self._database.rows(query, {"before": removed_before})]
        drop_events_of(self._database, ids)
        return self._database.execute(_DROP, {"ids": ids})

    def count_droppable(self, removed_before: datetime) -> int:
        query = select(func.count()).select_from(tombstone).where(*_OLD)
        return int(self._database.rows(query, {"before": removed_before})[0][0])
