"""The ledger in Postgres."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import Engine, Row, Select, Table, any_, func, insert, select
from sqlalchemy.engine import URL

from tidemark.adapters import ledger_rows as rows
from tidemark.adapters import ledger_statements as sql
from tidemark.adapters import ledger_tables as tables
from tidemark.adapters.ledger_tables import BY_URI, document, run_document
from tidemark.adapters.postgres_engine import Database
from tidemark.adapters.postgres_ledger_sites import PostgresSites
from tidemark.adapters.postgres_lock import document_locks, source_lock
from tidemark.domain.records import (
    ChunkRecord,
    DocumentRecord,
    DocumentStatus,
    GenerationRecord,
    RunDocument,
    RunRecord,
    SectionRecord,
    Tombstone,
    Touch,
)

BATCH = 2000
"""Rows in one statement of a bulk read or write."""

T = TypeVar("T")


class PostgresLedger(PostgresSites):
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

    def lock(self, source: str, *, shared: bool = False) -> AbstractContextManager[None]:
        return source_lock(self._database, source, shared=shared)

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
        for batch in _batches(ids):
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
            sql.remove(connection, sql.DELETE_TOMBSTONES, [key])
            sql.remove(connection, sql.DELETE_IN_FLIGHT, [key])
            sql.remove(connection, sql.DELETE_ALIASES, [key])

    def update_document(self, record: DocumentRecord, event: RunDocument) -> None:
        with self._database.transaction() as connection:
            sql.write_document(connection, record, event)

    def remove_document(self, tombstone: Tombstone, event: RunDocument) -> None:
        with self._database.transaction() as connection:
            sql.ensure_source(connection, tombstone.source)
            sql.remove(connection, sql.DELETE_DOCUMENTS, [tombstone.document_id])
            sql.remove(connection, sql.DELETE_IN_FLIGHT, [tombstone.document_id])
            sql.upsert(connection, sql.UPSERT_TOMBSTONES, [rows.tombstone_values(tombstone)])
            sql.upsert(connection, sql.UPSERT_EVENTS, [rows.event_values(event)])

    # Many documents' bookkeeping

    def touch(self, run_id: str, seen_at: datetime, touches: Sequence[Touch]) -> None:
        # One statement may update a row once: the last touch of a document is the one that counts.
        latest = list({touch.document_id: touch for touch in touches}.values())
        with self._database.transaction() as connection:
            for batch in _batches(latest):
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
            for batch in _batches(document_ids):
                connection.execute(sql.MISS, {"ids": batch, "seen_at": seen_at, "run": run_id})

    # Runs

    def start_run(self, run: RunRecord) -> None:
        with self._database.transaction() as connection:
            sql.ensure_source(connection, run.source)
            sql.upsert(connection, sql.UPSERT_RUNS, [rows.run_values(run)])

    def finish_run(self, run: RunRecord) -> None:
        self.start_run(run)

    def run(self, run_id: str) -> RunRecord | None:
        query = select(tables.run).where(tables.run.c.run_id == run_id)
        found = self._database.rows(query)
        return rows.run_record(found[0]) if found else None

    def runs(self, source: str | None = None, limit: int = 20) -> list[RunRecord]:
        run = tables.run
        query = select(run).order_by(run.c.started_at.desc(), run.c.run_id.desc()).limit(limit)
        if source is not None:
            query = query.where(run.c.source == source)
        return [rows.run_record(row) for row in self._database.rows(query)]

    def record_events(self, events: Sequence[RunDocument]) -> None:
        unique = list({(e.run_id, e.document_id): e for e in events}.values())
        with self._database.transaction() as connection:
            for batch in _batches(unique):
                sql.upsert(connection, sql.UPSERT_EVENTS, [rows.event_values(e) for e in batch])

    def events(self, document_id: UUID, limit: int = 20) -> list[RunDocument]:
        query = (
            select(run_document)
            .where(run_document.c.document_id == document_id)
            .order_by(run_document.c.recorded_at.desc())
            .limit(limit)
        )
        return [rows.event_record(row) for row in self._database.rows(query)]

    def run_events(self, run_id: str) -> Iterator[RunDocument]:
        query = (
            select(run_document)
            .where(run_document.c.run_id == run_id)
            .order_by(BY_URI, run_document.c.uri, run_document.c.document_id)
        )
        return map(rows.event_record, self._database.stream(query))

    # Counts, generations, audits

    def count_chunks(self, source: str, generation: int) -> int:
        return self._count_of(tables.chunk, source, generation)

    def count_sections(self, source: str, generation: int) -> int:
        return self._count_of(tables.section, source, generation)

    def sources(self) -> list[str]:
        return [row.name for row in self._database.rows(sql.SOURCES)]

    def count_quarantined(self, source: str) -> int:
        quarantined = document.c.status == DocumentStatus.QUARANTINED.value
        return self._number(select(func.count()).where(document.c.source == source, quarantined))

    def totals(self, source: str | None = None) -> tuple[int, int]:
        query: Select[Any] = select(
            func.count(), func.coalesce(func.sum(document.c.chunks), 0)
        ).where(document.c.raw_hash.is_not(None))
        if source is not None:
            query = query.where(document.c.source == source)
        documents, chunks = tuple(self._database.rows(query)[0])
        return int(documents), int(chunks)

    def generations(self, index_name: str) -> list[GenerationRecord]:
        generation = tables.generation
        query = (
            select(generation)
            .where(generation.c.index_name == index_name)
            .order_by(generation.c.number)
        )
        return [rows.generation_record(row) for row in self._database.rows(query)]

    def save_generation(self, generation: GenerationRecord) -> None:
        with self._database.transaction() as connection:
            sql.upsert(connection, sql.UPSERT_GENERATIONS, [rows.generation_values(generation)])

    def documents_outside(self, generation: int) -> int:
        query = select(func.count()).where(
            document.c.raw_hash.is_not(None), document.c.generation.is_distinct_from(generation)
        )
        return self._number(query)

    def save_audit(self, source: str | None, findings: Mapping[str, int], repaired: int) -> None:
        with self._database.transaction() as connection:
            if source is not None:
                sql.ensure_source(connection, source)
            connection.execute(
                insert(tables.audit),
                {"source": source, "findings": dict(findings), "repaired": repaired},
            )

    def _count_of(self, table: Table, source: str, generation: int) -> int:
        return self._number(
            select(func.count())
            .select_from(table.join(document))
            .where(document.c.source == source, document.c.generation == generation)
        )

    def _number(self, query: Select[int]) -> int:
        return int(self._database.rows(query)[0][0])


def _batches(items: Sequence[T]) -> Iterator[list[T]]:
    for start in range(0, len(items), BATCH):
        yield list(items[start : start + BATCH])
