"""What the ledger's tables are made of: types of columns, names of constraints, common columns.

Text that is sorted by has the "C" collation, so every server orders it by code point, as Python does.
"""

import re
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    Column,
    DateTime,
    Dialect,
    ForeignKey,
    MetaData,
    Text,
    TypeDecorator,
    Uuid,
    literal_column,
)

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


BY_URI = literal_column("left(uri, 500)", Text(collation="C"))
"""Sort by this, then by ``uri``, to read in the order of addresses without sorting a whole table."""

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
    }
)


def sorted_text() -> Text:
    return Text(collation="C")


def required(name: str, kind: Any, *more: Any, **options: Any) -> Column[Any]:
    return Column(name, kind, *more, nullable=False, **options)


def to_source(*, nullable: bool = False) -> Column[str]:
    return Column("source", sorted_text(), ForeignKey("source.name"), nullable=nullable)


def to_document() -> Column[Any]:
    return Column(
        "document_id",
        Uuid,
        ForeignKey("document.document_id", ondelete="CASCADE"),
        nullable=False,
        index=True,
    )
