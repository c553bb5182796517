"""What the ledger knows of a source beside its documents: how its crawls left it, and its other addresses."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Column,
    Connection,
    Index,
    Integer,
    Row,
    Table,
    Text,
    Uuid,
    any_,
    bindparam,
    delete,
    exists,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB

from tidemark.adapters.ledger.documents import document, hold
from tidemark.adapters.ledger.engine import Database
from tidemark.adapters.ledger.runs import run
from tidemark.adapters.ledger.schema import (
    BY_URI,
    DisplayText,
    UtcDateTime,
    Values,
    bulk_upsert,
    ensure_source,
    fields_of,
    metadata,
    required,
    sorted_text,
    source,
    texts,
    to_document,
    to_source,
    upsert,
    uuids,
    validators_json,
)
from tidemark.domain.documents import Validators
from tidemark.domain.identity import document_id
from tidemark.domain.records import Alias, AliasKind, SourceState

alias = Table(
    "alias",
    metadata,
    Column("alias_id", Uuid, primary_key=True),
    to_source(),
    required("uri", sorted_text()),
    to_document(),
    required("kind", Text),
    required("seen_at", UtcDateTime),
    required("validators", JSONB),
    Column("raw_hash", Text, index=True),
    required("media_type", DisplayText),
    Column("charset", DisplayText),
    Column("text_hash", Text),
    Column("text_length", Integer),
    Column("fetched_at", UtcDateTime),
    Index("alias_source_uri_idx", "source", BY_URI),
    Index(None, "uri", postgresql_using="hash"),
)


def alias_id(source: str, uri: str) -> UUID:
    """One alias an address: it is known as the document that it would be."""
    return document_id(source, uri)


def alias_values(record: Alias) -> Values:
    return {
        **fields_of(record),
        "alias_id": alias_id(record.source, record.uri),
        "kind": record.kind.value,
        "validators": validators_json(record.validators),
    }


def alias_record(row: Row[Any]) -> Alias:
    stored = row._asdict()
    del stored["alias_id"]
    validators = Validators(**stored["validators"])
    return Alias(**{**stored, "kind": AliasKind(stored["kind"]), "validators": validators})


UPSERT_ALIASES = bulk_upsert(alias)
LEAD_ON = (
    update(alias)
    .where(alias.c.document_id == bindparam("gone", type_=Uuid()))
    .values(document_id=bindparam("there", type_=Uuid()))
)
_NAMES = (
    select(source.c.name)
    .where(
        exists().where(document.c.source == source.c.name)
        | exists().where(run.c.source == source.c.name)
    )
    .order_by(source.c.name)
)
_ALIASES_BY_URI = select(alias).where(alias.c.uri == any_(texts("uris")))
_ALIASES_BY_ID = select(alias).where(alias.c.alias_id == any_(uuids("ids")))


class PostgresSources:
    """The SourceStates port on Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def names(self) -> list[str]:
        return [row.name for row in self._database.rows(_NAMES)]

    def state(self, name: str) -> SourceState:
        rows = self._database.rows(select(source).where(source.c.name == name))
        if not rows:
            return SourceState(name)
        [row] = rows
        return SourceState(name, row.state, tuple(row.furniture), row.furniture_pages)

    def save_state(self, state: SourceState) -> None:
        self._change(
            state.source,
            state=state.state,
            furniture=list(state.boilerplate),
            furniture_pages=state.boilerplate_pages,
        )

    def epoch(self, name: str) -> str:
        rows = self._database.rows(select(source.c.mark).where(source.c.name == name))
        return str(rows[0][0]) if rows else ""

    def write_epoch(self, name: str, epoch: str) -> None:
        self._change(name, mark=epoch)

    def _change(self, name: str, **values: Any) -> None:
        def write(connection: Connection) -> None:
            ensure_source(connection, name)
            connection.execute(update(source).where(source.c.name == name).values(values))

        self._database.write(write)

    def aliases(self, name: str) -> Iterator[Alias]:
        query = select(alias).where(alias.c.source == name).order_by(BY_URI, alias.c.uri)
        return map(alias_record, self._database.stream(query))

    def aliases_of(self, document_id: UUID) -> list[Alias]:
        query = select(alias).where(alias.c.document_id == document_id)
        rows = self._database.rows(query.order_by(BY_URI, alias.c.uri))
        return [alias_record(row) for row in rows]

    def aliases_by_uri(self, uris: Sequence[str], name: str | None = None) -> list[Alias]:
        if name is None:
            rows = self._database.rows_of(_ALIASES_BY_URI, "uris", uris)
        else:
            ids = [alias_id(name, uri) for uri in uris]
            rows = self._database.rows_of(_ALIASES_BY_ID, "ids", ids)
        return sorted(map(alias_record, rows), key=lambda alias: (alias.source, alias.uri))

    def save_aliases(self, aliases: Sequence[Alias]) -> None:
        by_id = {alias_id(a.source, a.uri): a for a in aliases}

        def write(connection: Connection) -> None:
            there = hold(connection, {*by_id, *(a.document_id for a in aliases)})
            kept = [a for key, a in by_id.items() if a.document_id in there and key not in there]
            upsert(connection, UPSERT_ALIASES, [alias_values(a) for a in kept])

        if by_id:
            self._database.write(write)

    def drop_aliases(self, name: str, seen_before: datetime) -> None:
        self._database.execute(
            delete(alias).where(
                alias.c.source == name,
                alias.c.seen_at < seen_before,
                alias.c.kind != AliasKind.MOVED.value,
            )
        )
