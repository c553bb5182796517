"""The ledger in Postgres."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import ColumnElement, Engine, Row, Select, Table, any_, func, select
from sqlalchemy.engine import URL

from tidemark.adapters import ledger_history_statements as history
from tidemark.adapters import ledger_rows as rows
from tidemark.adapters import ledger_statements as sql
from tidemark.adapters import ledger_tables as tables
from tidemark.adapters.ledger_tables import BY_URI, document
from tidemark.adapters.ledger_versions import committed_version, removed_version, updated_version
from tidemark.adapters.postgres_engine import Database, batches
from tidemark.adapters.postgres_ledger_history import PostgresHistory
from tidemark.adapters.postgres_lock import document_locks, is_source_locked, source_lock
from tidemark.domain.records import (
    Alias,
    AliasKind,
    ChunkRecord,
    DocumentRecord,
    RunDocument,
    SectionRecord,
    Tombstone,
    Touch,
)

T = TypeVar("T")


class PostgresLedger(PostgresHistory):
    """The Ledger port on Postgres, for a database that `tidemark migrate` has prepared.

    target: the database's URL, or an engine of it. Nothing is opened before the first call, and a
    ledger may be used on both sides of a fork.
    lock_seconds: how long ``lock_documents`` waits.
    """

    def __init__(self, target: Engine | URL | str, *, lock_seconds: float = 300.0) -> None:
        self._database = Database(target)
        self._lock_seconds = lock_seconds

    def close(self) -> None:
        """Close this process's pooled connections."""
        self._database.close()

    def lock(
        self, source: str, *, run_id: str | None = None, wait_seconds: float = 0.0
    ) -> AbstractContextManager[None]:
        return source_lock(self._database, source, run_id=run_id, wait_seconds=wait_seconds)

    def is_locked(self, source: str) -> bool:
        return is_source_locked(self._database, source)

    def lock_documents(self, document_ids: Sequence[UUID]) -> AbstractContextManager[None]:
        return document_locks(self._database, document_ids, wait_seconds=self._lock_seconds)

    # Documents

    def documents(self, source: str | None = None) -> Iterator[DocumentRecord]:
        query = select(document).order_by(document.c.source, BY_URI, document.c.uri)
        if source is not None:
            query = query.where(document.c.source == source)
        return map(rows.document_record, self._database.stream(query))

    def document(self, document_id: UUID) -> DocumentRecord | None:
        return self.documents_by_id([document_id]).get(document_id)

    def documents_by_id(self, ids: Sequence[UUID]) -> dict[UUID, DocumentRecord]:
        found = self._by_id(document, ids, rows.document_record)
        return {record.document_id: record for record in found}

    def find_documents(self, uri: str) -> list[DocumentRecord]:
        query = select(document).where(document.c.uri == uri).order_by(document.c.source)
        return [rows.document_record(row) for row in self._database.rows(query)]

    def tombstones_by_id(self, ids: Sequence[UUID]) -> dict[UUID, Tombstone]:
        found = self._by_id(tables.tombstone, ids, rows.tombstone_record)
        return {record.document_id: record for record in found}

    def find_tombstones(self, uri: str) -> list[Tombstone]:
        grave = tables.tombstone
        query = select(grave).where(grave.c.uri == uri).order_by(grave.c.source)
        return [rows.tombstone_record(row) for row in self._database.rows(query)]

    def sections(self, document_id: UUID) -> list[SectionRecord]:
        found = self._database.rows(sql.SECTIONS, {"document": document_id})
        return [rows.section_record(row) for row in found]

    def chunks(self, document_id: UUID) -> list[ChunkRecord]:
        found = self._database.rows(sql.CHUNKS, {"document": document_id})
        return [rows.chunk_record(row) for row in found]

    def _by_id(
        self, table: Table, ids: Sequence[UUID], read: Callable[[Row[Any]], T]
    ) -> Iterator[T]:
        query = select(table).where(table.c.document_id == any_(sql.uuids("ids")))
        for batch in batches(ids):
            yield from map(read, self._database.rows(query, {"ids": batch}))

    # One document's changes, each in one transaction

    def begin(self, run_id: str, source: str, documents: Mapping[UUID, str]) -> None:
        notes = [
            {"document_id": key, "source": source, "uri": uri, "run_id": run_id}
            for key, uri in documents.items()
        ]
        with self._database.transaction() as connection:
            sql.ensure_source(connection, source)
            sql.upsert(connection, sql.UPSERT_IN_FLIGHT, notes)

    def in_flight(self, source: str) -> dict[UUID, str]:
        note = tables.in_flight
        query = select(note.c.document_id, note.c.uri).where(note.c.source == source)
        return {row.document_id: row.uri for row in self._database.rows(query)}

    def begun(self, document_ids: Sequence[UUID]) -> set[UUID]:
        note = tables.in_flight
        query = select(note.c.document_id).where(note.c.document_id == any_(sql.uuids("ids")))
        return {
            row.document_id
            for batch in batches(document_ids)
            for row in self._database.rows(query, {"ids": batch})
        }

    def settle(self, document_ids: Sequence[UUID]) -> None:
        with self._database.transaction() as connection:
            sql.remove(connection, sql.DELETE_IN_FLIGHT, document_ids)

    def commit_document(
        self,
        record: DocumentRecord,
        sections: Sequence[SectionRecord],
        chunks: Sequence[ChunkRecord],
        event: RunDocument,
    ) -> None:
        key = record.document_id
        with self._database.transaction() as connection:
            sql.write_document(connection, record, event)
            old_sections = connection.execute(sql.SECTIONS, {"document": key}).all()
            old_chunks = connection.execute(sql.CHUNKS, {"document": key}).all()
            # New sections come before the chunks that name them, and old ones go after the chunks
            # that have left them, or the cascade would take those along.
            section_rows = {s.section_id: rows.section_values(key, s) for s in sections}
            chunk_rows = {c.point_id: rows.chunk_values(key, c) for c in chunks}
            sql.upsert(connection, sql.UPSERT_SECTIONS, sql.changed(section_rows, old_sections))
            sql.upsert(connection, sql.UPSERT_CHUNKS, sql.changed(chunk_rows, old_chunks))
            lost = {r.point_id for r in old_chunks} - chunk_rows.keys()
            sql.remove(connection, sql.DELETE_CHUNKS, lost)
            gone = {r.section_id for r in old_sections} - section_rows.keys()
            sql.remove(connection, sql.DELETE_SECTIONS, gone)
            sql.remove(connection, sql.SETTLE_COMMITTED, [key])
            history.write_version(connection, committed_version(record, event))

    def update_document(self, record: DocumentRecord, event: RunDocument) -> None:
        with self._database.transaction() as connection:
            before = sql.write_document(connection, record, event)
            history.write_version(connection, updated_version(record, event, before))

    def adopt_vectors(
        self,
        document_id: UUID,
        hashes: Mapping[UUID, str],
        checksum: str,
        before: str | None = None,
    ) -> None:
        owner = {"owner": document_id}
        given = {"point": list(hashes), "hash": list(hashes.values())}
        with self._database.transaction() as connection:
            # The document first, as a commit does, or the two might wait for each other.
            connection.execute(history.HOLD, owner)
            connection.execute(history.ADOPT_HASHES, {**owner, **given})
            connection.execute(history.ADOPT_CHECKSUM, {**owner, "sum": checksum, "before": before})

    def remove_document(
        self, tombstone: Tombstone, event: RunDocument, alias: Alias | None = None
    ) -> None:
        key = tombstone.document_id
        with self._database.transaction() as connection:
            sql.ensure_source(connection, tombstone.source)
            found = connection.execute(sql.DOCUMENT, {"document": key}).first()
            record = rows.document_record(found) if found else None
            if alias is not None and not self._hold(connection, {alias.document_id} - {key}):
                alias = None
            if alias is not None and alias.kind is AliasKind.MOVED:
                since = tombstone.removed_at
                history.move_versions(connection, key, alias.document_id, since)
            else:
                history.write_version(connection, removed_version(record, tombstone, event))
            if alias is not None:
                connection.execute(sql.LEAD_ON, {"gone": key, "there": alias.document_id})
            sql.remove(connection, sql.DELETE_DOCUMENTS, [key])
            if alias is not None:
                sql.upsert(connection, sql.UPSERT_ALIASES, [rows.alias_values(alias)])
            sql.remove(connection, sql.DELETE_IN_FLIGHT, [tombstone.document_id])
            sql.upsert(connection, sql.UPSERT_TOMBSTONES, [rows.tombstone_values(tombstone)])
            sql.upsert(connection, sql.UPSERT_EVENTS, [rows.event_values(event)])

    # Many documents' bookkeeping

    def touch(self, run_id: str, seen_at: datetime, touches: Sequence[Touch]) -> None:
        # One statement may update a row once: the last touch of a document is the one that counts.
        latest = list({touch.document_id: touch for touch in touches}.values())
        with self._database.transaction() as connection:
            for batch in batches(latest):
                values = {
                    "touched": [touch.document_id for touch in batch],
                    "new_validators": [rows.validators_json(touch.validators) for touch in batch],
                    "new_fingerprint": [touch.fetch_fingerprint for touch in batch],
                    "new_raw_hash": [touch.fetched_raw_hash for touch in batch],
                    "new_suspect": [rows.suspect_json(touch.suspect) for touch in batch],
                }
                connection.execute(sql.TOUCH, {**values, "seen_at": seen_at, "run": run_id})

    def miss(self, run_id: str, seen_at: datetime, document_ids: Sequence[UUID]) -> None:
        with self._database.transaction() as connection:
            for batch in batches(document_ids):
                connection.execute(sql.MISS, {"ids": batch, "seen_at": seen_at, "run": run_id})

    # Counts

    def count_chunks(self, source: str, generation: int) -> int:
        return self._count_of(tables.chunk, source, generation)

    def count_sections(self, source: str, generation: int) -> int:
        return self._count_of(tables.section, source, generation)

    def sources(self) -> list[str]:
        return [row.name for row in self._database.rows(sql.SOURCES)]

    def totals(self, source: str | None = None) -> tuple[int, int]:
        query: Select[Any] = select(
            func.count(), func.coalesce(func.sum(document.c.chunks), 0)
        ).where(document.c.raw_hash.is_not(None))
        if source is not None:
            query = query.where(document.c.source == source)
        documents, chunks = tuple(self._database.rows(query)[0])
        return int(documents), int(chunks)

    def documents_outside(self, generation: int) -> int:
        return self._number(select(func.count()).where(*_outside(generation)))

    def sources_outside(self, generation: int) -> dict[str, int]:
        name = document.c.source
        query = select(name, func.count()).where(*_outside(generation)).group_by(name)
        counts = dict(map(tuple, self._database.rows(query)))
        return {str(source): int(counts[source]) for source in sorted(counts)}

    def _count_of(self, table: Table, source: str, generation: int) -> int:
        return self._number(
            select(func.count())
            .select_from(table.join(document))
            .where(document.c.source == source, document.c.generation == generation)
        )

    def _number(self, query: Select[int]) -> int:
        return int(self._database.rows(query)[0][0])


def _outside(generation: int) -> tuple[ColumnElement[bool], ...]:
    """Documents with an indexed version that belong to another generation."""
    other = document.c.generation.is_distinct_from(generation)
    return document.c.raw_hash.is_not(None), other
