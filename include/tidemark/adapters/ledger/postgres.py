"""The ledger in Postgres."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Delete,
    Engine,
    Row,
    Select,
    Table,
    any_,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import URL
from sqlalchemy.types import Text

from tidemark.adapters.ledger import history_statements as history
from tidemark.adapters.ledger import rows, tables
from tidemark.adapters.ledger import statements as sql
from tidemark.adapters.ledger.engine import Database, batches
from tidemark.adapters.ledger.locks import document_locks, is_source_locked, source_lock
from tidemark.adapters.ledger.tables import (
    BY_URI,
    FAILED,
    FAILED_RAW_HASH,
    KEPT_OUT,
    QUARANTINED,
    RESTORABLE,
    document,
    run_document,
)
from tidemark.adapters.ledger.versions import committed_version, removed_version, updated_version
from tidemark.domain.records import (
    Alias,
    AliasKind,
    AuditRecord,
    ChunkRecord,
    DocumentRecord,
    DocumentStatus,
    GenerationRecord,
    RunDocument,
    RunRecord,
    SectionRecord,
    SourceState,
    Tombstone,
    Touch,
    VersionRecord,
)

# The part of the ledger in Postgres that knows what real sites do: other addresses, equal texts, graves.


class PostgresSites:
    """What the ledger knows of a source beside its documents, one by one."""

    _database: Database

    def documents_by_text(self, source: str, text_hashes: Sequence[str]) -> list[DocumentRecord]:
        return self._documents_by("text_hash", source, text_hashes)

    def documents_by_raw(self, source: str, raw_hashes: Sequence[str]) -> list[DocumentRecord]:
        return self._documents_by("raw_hash", source, raw_hashes)

    def documents_by_failed(self, source: str, raw_hashes: Sequence[str]) -> list[DocumentRecord]:
        found = self._documents_by("fetched_raw_hash", source, raw_hashes)
        return [record for record in found if record.status is DocumentStatus.QUARANTINED]

    def _documents_by(self, name: str, source: str, hashes: Sequence[str]) -> list[DocumentRecord]:
        if not hashes:
            return []
        query = select(document).where(
            document.c[name] == any_(_texts(hashes)), document.c.source == source
        )
        return [rows.document_record(row) for row in self._database.rows(query)]

    def tombstones_by_raw(self, source: str, raw_hashes: Sequence[str]) -> list[Tombstone]:
        if not raw_hashes:
            return []
        grave = tables.tombstone
        query = select(grave).where(
            grave.c.raw_hash == any_(_texts(raw_hashes)),
            grave.c.source == source,
            RESTORABLE,
            ~KEPT_OUT,
        )
        return [rows.tombstone_record(row) for row in self._database.rows(query)]

    def tombstones_before(self, source: str, removed_before: datetime) -> list[Tombstone]:
        grave = tables.tombstone
        query = (
            select(grave)
            .where(grave.c.source == source, RESTORABLE, grave.c.removed_at < removed_before)
            .order_by(grave.c.removed_at, grave.c.document_id)
            .limit(sql.AT_ONCE)
        )
        return [rows.tombstone_record(row) for row in self._database.rows(query)]

    def expire(self, document_ids: Sequence[UUID]) -> None:
        with self._database.transaction() as connection:
            sql.remove(connection, sql.EXPIRE, document_ids)

    def forget_titles(self, source: str, raw_hashes: Sequence[str]) -> None:
        grave = tables.tombstone
        same = grave.c.raw_hash == any_(_texts(raw_hashes))
        with self._database.transaction() as connection:
            connection.execute(update(grave).where(same, grave.c.source == source).values(title=""))

    def taken_down(self, source: str) -> list[Tombstone]:
        grave = tables.tombstone
        query = select(grave).where(or_(grave.c.source == source, grave.c.everywhere), KEPT_OUT)
        return [rows.tombstone_record(row) for row in self._database.rows(query)]

    def lift(self, document_id: UUID) -> None:
        with self._database.transaction() as connection:
            sql.remove(connection, sql.DELETE_TOMBSTONES, [document_id])

    def raw_in_use(self, raw_hashes: Sequence[str]) -> set[str]:
        if not raw_hashes:
            return set()
        wanted = any_(_texts(raw_hashes))
        queries = [query.where(column == wanted) for query, column in _raw_references()]
        return {row[0] for row in self._database.rows(union_all(*queries))}

    def raw_references(self) -> Iterator[str]:
        # The empty one stands for bytes that were never had.
        query = union_all(*(query.where(column > "") for query, column in _raw_references()))
        return (row[0] for row in self._database.stream(query))

    def aliases(self, source: str) -> Iterator[Alias]:
        alias = tables.alias
        query = select(alias).where(alias.c.source == source).order_by(BY_URI, alias.c.uri)
        return map(rows.alias_record, self._database.stream(query))

    def aliases_by_uri(self, source: str, uris: Sequence[str]) -> dict[str, Alias]:
        ids = [rows.alias_id(source, uri) for uri in uris]
        query = select(tables.alias).where(tables.alias.c.alias_id == any_(sql.uuids("ids")))
        found = self._database.rows(query.params(ids=ids)) if ids else []
        return {record.uri: record for record in map(rows.alias_record, found)}

    def aliases_of(self, document_id: UUID) -> list[Alias]:
        alias = tables.alias
        query = select(alias).where(alias.c.document_id == document_id)
        query = query.order_by(BY_URI, alias.c.uri)
        return [rows.alias_record(row) for row in self._database.rows(query)]

    def find_aliases(self, uri: str) -> list[Alias]:
        alias = tables.alias
        query = select(alias).where(alias.c.uri == uri).order_by(alias.c.source)
        return [rows.alias_record(row) for row in self._database.rows(query)]

    def save_aliases(self, aliases: Sequence[Alias]) -> None:
        if not aliases:
            return
        by_id = {rows.alias_id(a.source, a.uri): a for a in aliases}
        wanted = list({*by_id, *(a.document_id for a in aliases)})
        with self._database.transaction() as connection:
            there = self._hold(connection, wanted)
            kept = [a for key, a in by_id.items() if a.document_id in there and key not in there]
            sql.upsert(connection, sql.UPSERT_ALIASES, [rows.alias_values(a) for a in kept])

    def _hold(self, connection: Connection, ids: Iterable[UUID]) -> set[UUID]:
        """Those documents that are there, locked, so that none goes before a write that refers to it."""
        query = (
            select(document.c.document_id)
            .where(document.c.document_id == any_(sql.uuids("ids")))
            .with_for_update(key_share=True)
        )
        return {row[0] for row in connection.execute(query, {"ids": list(ids)})}

    def drop_aliases(self, source: str, seen_before: datetime) -> None:
        alias = tables.alias
        with self._database.transaction() as connection:
            connection.execute(
                delete(alias).where(
                    alias.c.source == source,
                    alias.c.seen_at < seen_before,
                    alias.c.kind != AliasKind.MOVED.value,
                )
            )

    def source_state(self, source: str) -> SourceState:
        found = self._database.rows(select(tables.source).where(tables.source.c.name == source))
        if not found:
            return SourceState(source)
        row = found[0]
        return SourceState(source, row.state, tuple(row.furniture), row.furniture_pages)

    def save_source_state(self, state: SourceState) -> None:
        with self._database.transaction() as connection:
            sql.ensure_source(connection, state.source)
            connection.execute(
                update(tables.source)
                .where(tables.source.c.name == state.source)
                .values(
                    state=state.state,
                    furniture=list(state.boilerplate),
                    furniture_pages=state.boilerplate_pages,
                )
            )

    def tide_mark(self, source: str) -> str:
        found = self._database.rows(
            select(tables.source.c.mark).where(tables.source.c.name == source)
        )
        return str(found[0][0]) if found else ""

    def save_tide_mark(self, source: str, mark: str) -> None:
        with self._database.transaction() as connection:
            sql.ensure_source(connection, source)
            connection.execute(
                update(tables.source).where(tables.source.c.name == source).values(mark=mark)
            )

    def quarantined(self, source: str | None = None) -> Iterator[DocumentRecord]:
        query = select(document).where(QUARANTINED)
        if source is not None:
            query = query.where(document.c.source == source)
        query = query.order_by(document.c.source, BY_URI, document.c.uri)
        return map(rows.document_record, self._database.stream(query))

    def release(self, document_ids: Sequence[UUID]) -> None:
        with self._database.transaction() as connection:
            sql.remove(connection, sql.RELEASE, document_ids)

    def count_quarantined(self, source: str) -> int:
        query = select(func.count()).where(document.c.source == source, QUARANTINED)
        return int(self._database.rows(query)[0][0])

    def count_suspects(self, source: str) -> int:
        query = select(func.count()).where(
            document.c.source == source, document.c.suspect.is_not(None)
        )
        return int(self._database.rows(query)[0][0])


def _raw_references() -> list[tuple[Select[Any], ColumnElement[str]]]:
    """All that may refer to a snapshot, each as a query and the column that it reads."""
    grave, alias, version = tables.tombstone, tables.alias, tables.version
    found: list[tuple[Select[Any], ColumnElement[str]]] = [
        (select(column).select_from(table), column)
        for table, column in (
            (document, document.c.raw_hash),
            (document, document.c.fetched_raw_hash),
            (version, version.c.raw_hash),
            (alias, alias.c.raw_hash),
        )
    ]
    failed = select(FAILED_RAW_HASH).select_from(document).where(FAILED)
    buried = select(grave.c.raw_hash).where(RESTORABLE)
    return [*found, (failed, FAILED_RAW_HASH), (buried, grave.c.raw_hash)]


def _texts(values: Sequence[str]) -> Any:
    return bindparam(None, list(values), type_=ARRAY(Text))


# The part of the ledger in Postgres that remembers what was: versions, runs, events, generations, audits.


class PostgresHistory(PostgresSites):
    """What runs and audits did, and what was live before."""

    # Versions

    def versions(self, document_id: UUID) -> list[VersionRecord]:
        found = self._database.rows(history.VERSIONS, {"owner": document_id})
        return [rows.version_record(row) for row in found]

    def all_versions(self) -> Iterator[VersionRecord]:
        return map(rows.version_record, self._database.stream(history.ALL_VERSIONS))

    def drop_versions(self, superseded_before: datetime) -> int:
        return self._deleted(history.DROP_VERSIONS, {"before": superseded_before})

    def forget_versions(self, document_ids: Sequence[UUID]) -> None:
        for batch in batches(document_ids, sql.AT_ONCE):
            self._deleted(history.FORGET_VERSIONS, {"ids": batch})

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
            for batch in batches(unique):
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

    def running(self) -> list[RunRecord]:
        return [rows.run_record(row) for row in self._database.rows(history.RUNNING)]

    def drop_runs(self, finished_before: datetime, keep: int) -> list[str]:
        wanted = {"before": finished_before, "keep": keep}
        gone = [row.run_id for row in self._database.rows(history.OLD_RUNS, wanted)]
        # The events first: killed in between, the runs are still there to be found again.
        while self._deleted(history.DROP_RUN_EVENTS, {"runs": gone}) == sql.AT_ONCE:
            continue
        self._deleted(history.DROP_RUNS, {"runs": gone})
        return gone

    def forgettable_tombstones(self, removed_before: datetime) -> int:
        [row] = self._database.rows(history.COUNT_OLD_TOMBSTONES, {"before": removed_before})
        return int(row[0])

    def drop_tombstones(self, removed_before: datetime) -> int:
        old = self._database.rows(history.OLD_TOMBSTONES, {"before": removed_before})
        ids = [row.document_id for row in old]
        while self._deleted(history.DROP_DOCUMENT_EVENTS, {"ids": ids}) == sql.AT_ONCE:
            continue
        return self._deleted(history.DROP_TOMBSTONES, {"ids": ids})

    # Generations and audits

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

    def drop_generation(self, index_name: str, number: int) -> None:
        generation = tables.generation
        self._deleted(
            delete(generation).where(
                generation.c.index_name == index_name, generation.c.number == number
            ),
            {},
        )

    def save_audit(self, record: AuditRecord) -> None:
        with self._database.transaction() as connection:
            if record.source is not None:
                sql.ensure_source(connection, record.source)
            connection.execute(insert(tables.audit), rows.audit_values(record))

    def audits(self, source: str | None = None, limit: int = 20) -> list[AuditRecord]:
        audit = tables.audit
        query = (
            select(audit).order_by(audit.c.audited_at.desc(), audit.c.audit_id.desc()).limit(limit)
        )
        if source is None:
            found = self._database.rows(query)
        else:
            # Two look-ups in one index; asked for as one, it might be a walk through all audits.
            conditions = (audit.c.source == source, audit.c.source.is_(None))
            both = [row for c in conditions for row in self._database.rows(query.where(c))]
            both.sort(key=lambda row: (row.audited_at, row.audit_id), reverse=True)
            found = both[:limit]
        return [rows.audit_record(row) for row in found]

    def drop_audits(self, audited_before: datetime) -> int:
        stay = [row.audit_id for row in self._database.rows(history.LATEST_AUDITS)]
        gone, wanted = 0, {"before": audited_before, "stay": stay}
        while found := self._deleted(history.DROP_AUDITS, wanted):
            gone += found
        return gone

    def _deleted(self, statement: Delete, values: dict[str, Any]) -> int:
        """Run a deletion in a transaction of its own; how many rows went."""
        with self._database.transaction() as connection:
            return int(connection.execute(statement, values).rowcount)


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
