"""What the ledger's tables and statements are made of.

An address may be longer than an index entry: exact look-ups go through hash indexes, and an order through
an index on the address's beginning (``BY_URI``), within which the server sorts. Text that is sorted by has
the "C" collation, so every server orders it by code point, as Python does.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Generic, TypeVar
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, Insert, insert

from tidemark.domain.chunks import Fingerprints
from tidemark.domain.documents import Validators

AT_ONCE = 1_000
"""How many of the oldest are handed out, or forgotten, by one call."""

Values = dict[str, Any]
"""Column names to values."""

R = TypeVar("R")

# Columns

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(value: str) -> str:
    """Replace what Postgres cannot store (NUL, lone surrogates) in text that people read."""
    return _UNSTORABLE.sub("\ufffd", value)


class DisplayText(sa.TypeDecorator[str]):
    """Text for people, which documents may have filled with anything."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: sa.Dialect) -> str | None:
        return None if value is None else storable(value)


class UtcDateTime(sa.TypeDecorator[datetime]):
    """``timestamptz`` that takes aware times and gives them back in UTC, whatever the server's zone."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        if value is not None and value.tzinfo is None:
            raise ValueError(f"The time {value.isoformat()} has no time zone.")
        return value

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)


class Word(sa.TypeDecorator[StrEnum]):
    """One of the words of an enumeration."""

    impl = sa.Text
    cache_ok = True

    def __init__(self, kind: type[StrEnum]) -> None:
        super().__init__()
        self.kind = kind

    def process_bind_param(self, value: StrEnum | None, dialect: sa.Dialect) -> str | None:
        return None if value is None else value.value

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> StrEnum | None:
        return None if value is None else self.kind(value)


class Json(sa.TypeDecorator[Any]):
    """A value that is kept as JSON, SQL's NULL where there is none."""

    impl = JSONB(none_as_null=True)
    cache_ok = True

    def __init__(self, encode: Callable[[Any], Any], decode: Callable[[Any], Any]) -> None:
        super().__init__()
        self.encode = encode
        self.decode = decode

    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> Any:
        return None if value is None else self.encode(value)

    def process_result_value(self, value: Any, dialect: sa.Dialect) -> Any:
        return None if value is None else self.decode(value)


VALIDATORS = Json(
    lambda validators: {k: v for k, v in fields_of(validators).items() if v is not None},
    lambda stored: Validators(**stored),
)
TUPLE = Json(list, tuple)

metadata = sa.MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)

BY_URI = sa.literal_column("left(uri, 500)", sa.Text(collation="C"))
"""Sort by this, then by ``uri``, to read in the order of addresses without sorting a whole table."""


def sorted_text() -> sa.Text:
    return sa.Text(collation="C")


def required(name: str, kind: Any, *more: Any, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, *more, nullable=False, **options)


def to_source(*, nullable: bool = False) -> sa.Column[str]:
    return sa.Column("source", sorted_text(), sa.ForeignKey("source.name"), nullable=nullable)


def to_document() -> sa.Column[Any]:
    owner = sa.ForeignKey("document.document_id", ondelete="CASCADE")
    return sa.Column("document_id", sa.Uuid, owner, nullable=False, index=True)


source = sa.Table(
    "source",
    metadata,
    sa.Column("name", sorted_text(), primary_key=True),
    required("first_seen", UtcDateTime, server_default=sa.func.now()),
    required("state", sa.Text, server_default=""),
    required("furniture", TUPLE, server_default=sa.text("'[]'::jsonb")),
    required("furniture_pages", sa.Integer, server_default="0"),
    required("mark", sa.Text, server_default=""),
)

# Rows

GATES = tuple(field.name for field in fields(Fingerprints))


def fields_of(record: Any) -> Values:
    # dataclasses.asdict copies every leaf, which costs more than the database does.
    return {field.name: getattr(record, field.name) for field in fields(record)}


class Rows(Generic[R]):
    """A table whose rows are records: a field is the column of its name, ``fingerprints`` one column a gate.

    gates: what the names of those begin with. columns: of fields that are called otherwise.
    """

    def __init__(
        self,
        table: sa.Table,
        kind: type[R],
        gates: str = "",
        columns: Mapping[str, str] | None = None,
    ) -> None:
        names = [field.name for field in fields(kind)]  # type: ignore[arg-type]
        self._kind = kind
        self._columns = {
            name: (columns or {}).get(name, name) for name in names if name != "fingerprints"
        }
        self._gates = (
            tuple(f"{gates}{gate}_fingerprint" for gate in GATES) if "fingerprints" in names else ()
        )

    def values(self, record: R, **more: Any) -> Values:
        """A record's row; ``more``: the columns that are none of its fields."""
        values = {column: getattr(record, name) for name, column in self._columns.items()}
        if self._gates:
            made_under = record.fingerprints  # type: ignore[attr-defined]
            values |= {
                column: getattr(made_under, gate, None)
                for column, gate in zip(self._gates, GATES, strict=True)
            }
        return {**values, **more}

    def record(self, row: sa.Row[Any]) -> R:
        # By way of a dictionary: a row's attributes cost more than all the rest of this together.
        stored = row._asdict()
        values = {name: stored[column] for name, column in self._columns.items()}
        if self._gates:
            made_under = [stored[column] for column in self._gates]
            values["fingerprints"] = None if made_under[0] is None else Fingerprints(*made_under)
        return self._kind(**values)

    def of(self, rows: Iterable[sa.Row[Any]]) -> list[R]:
        return [self.record(row) for row in rows]

    def stream(self, rows: Iterable[sa.Row[Any]]) -> Iterator[R]:
        return map(self.record, rows)


# Statements. Arrays are unnested on the server, so a statement's text is the same for one row and for
# thousands: it is compiled and prepared once.


def uuids(name: str) -> Any:
    """A parameter that takes a list of UUIDs."""
    return sa.bindparam(name, type_=ARRAY(sa.Uuid))


def texts(name: str) -> Any:
    """A parameter that takes a list of texts."""
    return sa.bindparam(name, type_=ARRAY(sa.Text))


def unnested(types: Mapping[str, Any]) -> Any:
    """Parallel arrays as a table, one bound array per column."""
    arrays = (sa.bindparam(name, type_=ARRAY(kind, dimensions=1)) for name, kind in types.items())
    columns = (sa.column(name, kind) for name, kind in types.items())
    return sa.func.unnest(*arrays).table_valued(*columns, name="input").render_derived()


def bulk_upsert(table: sa.Table, *, stamp: str | None = None) -> Insert:
    """Upsert any number of rows by primary key; run it with ``upsert``.

    The column ``stamp`` is not among the values but gets the server's time.
    """
    columns = [c for c in table.columns if c.name != stamp]
    rows = unnested({c.name: c.type for c in columns})
    statement = insert(table).from_select([c.name for c in columns], sa.select(*rows.c))
    changes: Values = {c.name: statement.excluded[c.name] for c in columns if not c.primary_key}
    if stamp is not None:
        changes[stamp] = sa.func.clock_timestamp()
    return statement.on_conflict_do_update(
        index_elements=list(table.primary_key.columns), set_=changes
    )


def upsert(connection: sa.Connection, statement: sa.Executable, values: Sequence[Values]) -> None:
    """Run a bulk upsert; no two rows may have the same key."""
    if values:
        by_column = {name: [row[name] for row in values] for name in values[0]}
        connection.execute(statement, by_column)


def delete_by(table: sa.Table, key: str) -> sa.Delete:
    """Delete rows by key; run it with ``by_ids``."""
    return sa.delete(table).where(table.c[key] == sa.any_(uuids("ids")))


def by_ids(connection: sa.Connection, statement: sa.Executable, ids: Iterable[UUID]) -> None:
    """Run a statement that takes ``ids``, if there are any."""
    keys = list(ids)
    if keys:
        connection.execute(statement, {"ids": keys})


def delete_some(table: sa.Table, *conditions: Any, order: Sequence[Any] = ()) -> sa.Delete:
    """Delete ``AT_ONCE`` rows, the first in an order, that meet conditions.

    So no transaction holds many. The conditions are asked again of the rows that are deleted, for one may
    have changed since it was chosen.
    """
    key = tuple(table.primary_key.columns)
    chosen = sa.select(*key).where(*conditions).order_by(*order).limit(AT_ONCE)
    return sa.delete(table).where(sa.tuple_(*key).in_(chosen), *conditions)


_ENSURE_SOURCE = insert(source).on_conflict_do_nothing()


def ensure_source(connection: sa.Connection, name: str) -> None:
    """Make the row that a source's other rows refer to."""
    connection.execute(_ENSURE_SOURCE, {"name": name})
