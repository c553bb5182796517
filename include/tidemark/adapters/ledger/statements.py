"""The statements that change the ledger, built once, and how they are run."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Connection,
    Delete,
    Executable,
    Row,
    Table,
    Text,
    Uuid,
    any_,
    bindparam,
    case,
    column,
    delete,
    exists,
    func,
    literal_column,
    not_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, Insert, insert

from tidemark.adapters.ledger import rows, tables
from tidemark.adapters.ledger.rows import Values
from tidemark.adapters.ledger.tables import FAILED, UtcDateTime, document
from tidemark.domain.records import DocumentRecord, RunDocument

AT_ONCE = 1_000
"""How many of the oldest are handed out, or forgotten, by one call."""


def uuids(name: str) -> Any:
    """A parameter that takes a list of UUIDs."""
    return bindparam(name, type_=ARRAY(Uuid))


def _bulk_upsert(table: Table, *, stamp: str | None = None) -> Insert:
    """Upsert any number of rows by primary key; run it with ``upsert``.

    Arrays are unnested on the server, so the text is the same for one row and for thousands: it is
    compiled and prepared once. The column ``stamp`` is not given but gets the server's time.
    """
    columns = [c for c in table.columns if c.name != stamp]
    given = unnested({c.name: c.type for c in columns})
    statement = insert(table).from_select([c.name for c in columns], select(*given.c))
    changes: Values = {c.name: statement.excluded[c.name] for c in columns if not c.primary_key}
    if stamp is not None:
        changes[stamp] = func.clock_timestamp()
    return statement.on_conflict_do_update(
        index_elements=list(table.primary_key.columns), set_=changes
    )


def unnested(types: Mapping[str, Any]) -> Any:
    """Parallel arrays as a table, one bound array per column."""
    return (
        func.unnest(
            *(bindparam(name, type_=ARRAY(kind, dimensions=1)) for name, kind in types.items())
        )
        .table_valued(*(column(name, kind) for name, kind in types.items()), name="given")
        .render_derived()
    )


def _document_upsert() -> Executable:
    statement = insert(document)
    changes: Values = {
        c.name: statement.excluded[c.name]
        for c in document.columns
        if not c.primary_key and c.name != "missed_by"
    }
    none = literal_column("'{}'::text[]", ARRAY(Text))
    changes["missed_by"] = case(
        (statement.excluded.missing_runs == 0, none), else_=document.c.missed_by
    )
    # The server's snapshot is of before the write, so this is what the row had.
    known = document.alias("known")
    before = (
        select(known.c.raw_hash)
        .where(known.c.document_id == literal_column("document.document_id", Uuid()))
        .scalar_subquery()
    )
    return statement.on_conflict_do_update(
        index_elements=list(document.primary_key.columns), set_=changes
    ).returning(before)


def _touch() -> Executable:
    given = unnested(
        {
            "touched": Uuid(),
            "new_validators": JSONB(),
            "new_fingerprint": Text(),
            "new_raw_hash": Text(),
            "new_suspect": JSONB(none_as_null=True),
        }
    )
    return (
        update(document)
        .where(document.c.document_id == given.c.touched)
        .values(
            validators=given.c.new_validators,
            fetch_fingerprint=given.c.new_fingerprint,
            fetched_raw_hash=given.c.new_raw_hash,
            suspect=given.c.new_suspect,
            last_seen=bindparam("seen_at", type_=UtcDateTime()),
            last_run_id=bindparam("run"),
            missing_since=None,
            missing_runs=0,
            missed_by=[],
        )
    )


def _miss() -> Executable:
    run = bindparam("run", type_=Text())
    return (
        update(document)
        .where(document.c.document_id == any_(uuids("ids")))
        .where(not_(run == any_(document.c.missed_by)))
        .values(
            missing_since=func.coalesce(
                document.c.missing_since, bindparam("seen_at", type_=UtcDateTime())
            ),
            missing_runs=document.c.missing_runs + 1,
            missed_by=func.array_append(document.c.missed_by, run),
            last_run_id=run,
        )
    )


def _delete_by(table: Table, key: str) -> Delete:
    return delete(table).where(table.c[key] == any_(uuids("ids")))


UPSERT_SECTIONS = _bulk_upsert(tables.section)
UPSERT_CHUNKS = _bulk_upsert(tables.chunk)
UPSERT_EVENTS = _bulk_upsert(tables.run_document, stamp="recorded_at")
UPSERT_IN_FLIGHT = _bulk_upsert(tables.in_flight, stamp="begun_at")
UPSERT_TOMBSTONES = _bulk_upsert(tables.tombstone)
UPSERT_ALIASES = _bulk_upsert(tables.alias)
UPSERT_RUNS = _bulk_upsert(tables.run)
UPSERT_GENERATIONS = _bulk_upsert(tables.generation)

DELETE_DOCUMENTS = _delete_by(document, "document_id")
DELETE_SECTIONS = _delete_by(tables.section, "section_id")
DELETE_CHUNKS = _delete_by(tables.chunk, "point_id")
DELETE_IN_FLIGHT = _delete_by(tables.in_flight, "document_id")
EXPIRE = (
    update(tables.tombstone)
    .where(tables.tombstone.c.document_id == any_(uuids("ids")))
    .values(expired=True)
)
DELETE_TOMBSTONES = _delete_by(tables.tombstone, "document_id")
# What is over when a document is there: one way to the server instead of three.
SETTLE_COMMITTED = (
    _delete_by(tables.alias, "alias_id")
    .add_cte(DELETE_TOMBSTONES.cte("risen"))
    .add_cte(DELETE_IN_FLIGHT.cte("landed"))
)
LEAD_ON = (
    update(tables.alias)
    .where(tables.alias.c.document_id == bindparam("gone", type_=Uuid()))
    .values(document_id=bindparam("there", type_=Uuid()))
)
RELEASE = (
    update(document)
    .where(document.c.document_id == any_(uuids("ids")), FAILED)
    .values(
        failure=func.jsonb_set(document.c.failure, ["fingerprint"], literal_column("'\"\"'::jsonb"))
    )
)

DOCUMENT = select(document).where(document.c.document_id == bindparam("document", type_=Uuid()))
SECTIONS = (
    select(tables.section)
    .where(tables.section.c.document_id == bindparam("document", type_=Uuid()))
    .order_by(tables.section.c.ordinal)
)
CHUNKS = (
    select(tables.chunk)
    .where(tables.chunk.c.document_id == bindparam("document", type_=Uuid()))
    .order_by(tables.chunk.c.chunk_index)
)

SOURCES = (
    select(tables.source.c.name)
    .where(
        exists().where(document.c.source == tables.source.c.name)
        | exists().where(tables.run.c.source == tables.source.c.name)
    )
    .order_by(tables.source.c.name)
)

TOUCH = _touch()
MISS = _miss()

_UPSERT_DOCUMENT = _document_upsert()
_ENSURE_SOURCE = insert(tables.source).on_conflict_do_nothing()


def ensure_source(connection: Connection, name: str) -> None:
    """Make the row that a source's other rows refer to."""
    connection.execute(_ENSURE_SOURCE, {"name": name})


def write_document(
    connection: Connection, record: DocumentRecord, event: RunDocument
) -> str | None:
    """Upsert a document's own row and the event that explains it; returns the ``raw_hash`` it had before."""
    ensure_source(connection, record.source)
    before: str | None = connection.scalar(_UPSERT_DOCUMENT, rows.document_values(record))
    upsert(connection, UPSERT_EVENTS, [rows.event_values(event)])
    return before


def upsert(connection: Connection, statement: Executable, values: Sequence[Values]) -> None:
    """Run a bulk upsert; no two rows may have the same key."""
    if values:
        by_column = {name: [row[name] for row in values] for name in values[0]}
        connection.execute(statement, by_column)


def remove(connection: Connection, statement: Executable, ids: Iterable[UUID]) -> None:
    """Run one of the deletes by key."""
    gone = list(ids)
    if gone:
        connection.execute(statement, {"ids": gone})


def changed(wanted: Mapping[UUID, Values], stored: Sequence[Row[Any]]) -> list[Values]:
    """Of the rows wanted, by key, those that are not stored exactly so."""
    same = {row[0] for row in stored if wanted.get(row[0]) == row._asdict()}
    return [values for key, values in wanted.items() if key not in same]
