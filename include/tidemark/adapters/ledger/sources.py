"""What the ledger knows of a source beside its documents: how its crawls left it, and its other addresses."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from tidemark.adapters.ledger.documents import document, hold
from tidemark.adapters.ledger.engine import Database
from tidemark.adapters.ledger.runs import run
from tidemark.adapters.ledger.schema import (
    BY_URI,
    VALIDATORS,
    DisplayText,
    Rows,
    UtcDateTime,
    Word,
    bulk_upsert,
    ensure_source,
    metadata,
    required,
    sorted_text,
    texts,
    to_document,
    to_source,
    upsert,
    uuids,
)
from tidemark.adapters.ledger.schema import source as sources
from tidemark.domain.identity import document_id
from tidemark.domain.records import Alias, AliasKind, SourceState

alias = sa.Table(
    "alias",
    metadata,
    sa.Column("alias_id", sa.Uuid, primary_key=True),
    to_source(),
    required("uri", sorted_text()),
    to_document(),
    required("kind", Word(AliasKind)),
    required("seen_at", UtcDateTime),
    required("validators", VALIDATORS),
    sa.Column("raw_hash", sa.Text, index=True),
    required("media_type", DisplayText),
    sa.Column("charset", DisplayText),
    sa.Column("text_hash", sa.Text),
    sa.Column("text_length", sa.Integer),
    sa.Column("fetched_at", UtcDateTime),
    sa.Index("alias_source_uri_idx", "source", BY_URI),
    sa.Index(None, "uri", postgresql_using="hash"),
)


def alias_id(source: str, uri: str) -> UUID:
    """One alias an address: it is known as the document that it would be."""
    return document_id(source, uri)


ALIASES = Rows(alias, Alias)
_UPSERT_ALIASES = bulk_upsert(alias)
LEAD_ON = (
    sa.update(alias)
    .where(alias.c.document_id == sa.bindparam("gone", type_=sa.Uuid()))
    .values(document_id=sa.bindparam("there", type_=sa.Uuid()))
)
_NAMES = (
    sa.select(sources.c.name)
    .where(
        sa.exists().where(document.c.source == sources.c.name)
        | sa.exists().where(run.c.source == sources.c.name)
    )
    .order_by(sources.c.name)
)
_ALIASES_BY_URI = sa.select(alias).where(alias.c.uri == sa.any_(texts("uris")))
_ALIASES_BY_ID = sa.select(alias).where(alias.c.alias_id == sa.any_(uuids("ids")))


def write_aliases(connection: sa.Connection, aliases: Iterable[Alias]) -> None:
    """Upsert aliases of different addresses."""
    values = [ALIASES.values(a, alias_id=alias_id(a.source, a.uri)) for a in aliases]
    upsert(connection, _UPSERT_ALIASES, values)


class PostgresSources:
    """The SourceStates port on Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def names(self) -> list[str]:
        return [row.name for row in self._database.rows(_NAMES)]

    def state(self, source: str) -> SourceState:
        rows = self._database.rows(sa.select(sources).where(sources.c.name == source))
        if not rows:
            return SourceState(source)
        [row] = rows
        return SourceState(source, row.state, row.furniture, row.furniture_pages)

    def save_state(self, state: SourceState) -> None:
        self._change(
            state.source,
            state=state.state,
            furniture=state.boilerplate,
            furniture_pages=state.boilerplate_pages,
        )

    def epoch(self, source: str) -> str:
        rows = self._database.rows(sa.select(sources.c.mark).where(sources.c.name == source))
        return str(rows[0][0]) if rows else ""

    def write_epoch(self, source: str, epoch: str) -> None:
        self._change(source, mark=epoch)

    def _change(self, source: str, **values: Any) -> None:
        def write(connection: sa.Connection) -> None:
            ensure_source(connection, source)
            connection.execute(sa.update(sources).where(sources.c.name == source).values(values))

        self._database.write(write)

    def aliases(self, source: str) -> Iterator[Alias]:
        query = sa.select(alias).where(alias.c.source == source).order_by(BY_URI, alias.c.uri)
        return ALIASES.stream(self._database.stream(query))

    def aliases_of(self, document_id: UUID) -> list[Alias]:
        query = sa.select(alias).where(alias.c.document_id == document_id)
        return ALIASES.of(self._database.rows(query.order_by(BY_URI, alias.c.uri)))

    def aliases_by_uri(self, uris: Sequence[str], source: str | None = None) -> list[Alias]:
        if source is None:
            rows = self._database.rows_of(_ALIASES_BY_URI, "uris", uris)
        else:
            ids = [alias_id(source, uri) for uri in uris]
            rows = self._database.rows_of(_ALIASES_BY_ID, "ids", ids)
        return sorted(ALIASES.of(rows), key=lambda alias: (alias.source, alias.uri))

    def save_aliases(self, aliases: Sequence[Alias]) -> None:
        by_id = {alias_id(a.source, a.uri): a for a in aliases}

        def write(connection: sa.Connection) -> None:
            there = hold(connection, {*by_id, *(a.document_id for a in aliases)})
            kept = [a for key, a in by_id.items() if a.document_id in there and key not in there]
            write_aliases(connection, kept)

        if by_id:
            self._database.write(write)

    def drop_aliases(self, source: str, seen_before: datetime) -> None:
        self._database.execute(
            sa.delete(alias).where(
                alias.c.source == source,
                alias.c.seen_at < seen_before,
                alias.c.kind != AliasKind.MOVED,
            )
        )
