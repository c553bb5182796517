"""What the ledger's tables and statements are made of.

An address may be longer than an index entry: exact look-ups go through hash indexes, and an order through
an index on the address's beginning (``BY_URI``), within which the server sorts. Text that is sorted by has
the "C" collation, so every server orders it by code point, as Python does.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Column,
    Connection,
    DateTime,
    Delete,
    Dialect,
    Executable,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
    Uuid,
    any_,
    bindparam,
    column,
    delete,
    func,
    literal_column,
    select,
    text,
    tuple_,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, Insert, insert

from tidemark.domain.documents import Validators

AT_ONCE = 1_000
"""How many of the oldest are handed out, or forgotten, by one call."""

Values = dict[str, Any]
"""Column names to values."""

# Tables

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(value: str) -> str:
    """Replace what Postgres cannot store (NUL, lone surrogates) in text that people read."""
    return _UNSTORABLE.sub("\ufffd", value)


class DisplayText(TypeDecorator[str]):
    """Text for people, which documents may have filled with anything."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else storable(value)


class UtcDateTime(TypeDecorator[datetime]):
    """``timestamptz`` that takes aware times and gives them back in UTC, whatever the server's zone."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is not None and value.tzinfo is None:
            raise ValueError(f"The time {value.isoformat()} has no time zone.")
        return value

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)


metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)

BY_URI = literal_column("left(uri, 500)", Text(collation="C"))
"""Sort by this, then by ``uri``, to read in the order of addresses without sorting a whole table."""


def sorted_text() -> Text:
    return Text(collation="C")


def required(name: str, kind: Any, *more: Any, **options: Any) -> Column[Any]:
    return Column(name, kind, *more, nullable=False, **options)


def to_source(*, nullable: bool = False) -> Column[str]:
    return Column("source", sorted_text(), ForeignKey("source.name"), nullable=nullable)


def to_document() -> Column[Any]:
    owner = ForeignKey("document.document_id", ondelete="CASCADE")
    return Column("document_id", Uuid, owner, nullable=False, index=True)


source = Table(
    "source",
    metadata,
    Column("name", sorted_text(), primary_key=True),
    required("first_seen", UtcDateTime, server_default=func.now()),
    required("state", Text, server_default=""),
    required("furniture", JSONB, server_default=text("'[]'::jsonb")),
    required("furniture_pages", Integer, server_default="0"),
    required("mark", Text, server_default=""),
)


def ensure_source(connection: Connection, name: str) -> None:
    """Make the row that a source's other rows refer to."""
    connection.execute(_ENSURE_SOURCE, {"name": name})


_ENSURE_SOURCE = insert(source).on_conflict_do_nothing()


# Values


def fields_of(record: Any) -> Values:
    # dataclasses.asdict copies every leaf, which costs more than the database does.
    return {field.name: getattr(record, field.name) for field in fields(record)}


def validators_json(validators: Validators) -> Values:
    return {k: v for k, v in fields_of(validators).items() if v is not None}


# Statements. Arrays are unnested on the server, so a statement's text is the same for one row and for
# thousands: it is compiled and prepared once.


def uuids(name: str) -> Any:
    """A parameter that takes a list of UUIDs."""
    return bindparam(name, type_=ARRAY(Uuid))


def texts(name: str) -> Any:
    """A parameter that takes a list of texts."""
    return bindparam(name, type_=ARRAY(Text))


def unnested(types: Mapping[str, Any]) -> Any:
    """Parallel arrays as a table, one bound array per column."""
    return (
        func.unnest(
            *(bindparam(name, type_=ARRAY(kind, dimensions=1)) for name, kind in types.items())
        )
        .table_valued(*(column(name, kind) for name, kind in types.items()), name="given")
        .render_derived()
    )


def bulk_upsert(table: Table, *, stamp: str | None = None) -> Insert:
    """Upsert any number of rows by primary key; run it with ``upsert``.

    The column ``stamp`` is not given but gets the server's time.
    """
    columns = [c for c in table.columns if c.name != stamp]
    rows = unnested({c.name: c.type for c in columns})
    statement = insert(table).from_select([c.name for c in columns], select(*rows.c))
    changes: Values = {c.name: statement.excluded[c.name] for c in columns if not c.primary_key}
    if stamp is not None:
        changes[stamp] = func.clock_timestamp()
    return statement.on_conflict_do_update(
        index_elements=list(table.primary_key.columns), set_=changes
    )


def upsert(connection: Connection, statement: Executable, values: Sequence[Values]) -> None:
    """Run a bulk upsert; no two rows may have the same key."""
    if values:
        by_column = {name: [row[name] for row in values] for name in values[0]}
        connection.execute(statement, by_column)


def delete_by(table: Table, key: str) -> Delete:
    """Delete rows by key; run it with ``by_ids``."""
    return delete(table).where(table.c[key] == any_(uuids("ids")))


def by_ids(connection: Connection, statement: Executable, ids: Iterable[UUID]) -> None:
    """Run a statement that takes ``ids``, if there are any."""
    keys = list(ids)
    if keys:
        connection.execute(statement, {"ids": keys})


def delete_some(table: Table, *conditions: Any, order: Sequence[Any] = ()) -> Delete:
    """Delete ``AT_ONCE`` rows, the first in an order, that meet conditions.

    So no transaction holds many. The conditions are asked again of the rows that are deleted, for one may
    have changed since it was chosen.
    """
    key = tuple(table.primary_key.columns)
    chosen = select(*key).where(*conditions).order_by(*order).limit(AT_ONCE)
    return delete(table).where(tuple_(*key).in_(chosen), *conditions)
