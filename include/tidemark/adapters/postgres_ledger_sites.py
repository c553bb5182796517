"""The part of the ledger in Postgres that knows what real sites do: other addresses, equal texts, graves."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    any_,
    bindparam,
    delete,
    func,
    or_,
    select,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import Text

from tidemark.adapters import ledger_rows as rows
from tidemark.adapters import ledger_statements as sql
from tidemark.adapters import ledger_tables as tables
from tidemark.adapters.ledger_tables import (
    BY_URI,
    FAILED,
    FAILED_RAW_HASH,
    KEPT_OUT,
    QUARANTINED,
    RESTORABLE,
    document,
)
from tidemark.adapters.postgres_engine import Database
from tidemark.domain.records import (
    Alias,
    AliasKind,
    DocumentRecord,
    DocumentStatus,
    SourceState,
    Tombstone,
)


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
                    furniture=list(state.furniture),
                    furniture_pages=state.furniture_pages,
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
