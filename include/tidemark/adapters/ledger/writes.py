"""How documents change in the ledger: the intents, and all rows of one document in one transaction."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, insert

from tidemark.adapters.ledger.documents import (
    CHUNK_ROWS,
    CHUNKS,
    DOCUMENT,
    DOCUMENTS,
    FAILED,
    SECTION_ROWS,
    SECTIONS,
    chunk,
    document,
    hold,
    section,
)
from tidemark.adapters.ledger.engine import Database, batches
from tidemark.adapters.ledger.runs import write_events
from tidemark.adapters.ledger.schema import (
    UtcDateTime,
    Values,
    bulk_upsert,
    by_ids,
    delete_by,
    ensure_source,
    metadata,
    required,
    sorted_text,
    to_source,
    unnested,
    upsert,
    uuids,
)
from tidemark.adapters.ledger.sources import LEAD_ON, alias, write_aliases
from tidemark.adapters.ledger.tombstones import (
    DELETE_TOMBSTONES,
    TOMBSTONES,
    UPSERT_TOMBSTONES,
)
from tidemark.adapters.ledger.versions import (
    committed_version,
    move_versions,
    removed_version,
    updated_version,
    write_version,
)
from tidemark.domain.records import (
    Alias,
    AliasKind,
    ChunkRecord,
    DocumentRecord,
    RunDocument,
    SectionRecord,
    Sighting,
    Tombstone,
)

in_flight = sa.Table(
    "in_flight",
    metadata,
    # No foreign key: a document is noted here before its own row exists.
    sa.Column("document_id", sa.Uuid, primary_key=True),
    to_source(),
    required("uri", sorted_text()),
    required("run_id", sorted_text()),
    required("begun_at", UtcDateTime, server_default=sa.func.now()),
    sa.Index(None, "source"),
)


def _upsert_document() -> sa.Executable:
    statement = insert(document)
    changes: Values = {
        c.name: statement.excluded[c.name]
        for c in document.columns
        if not c.primary_key and c.name != "missed_by"
    }
    none = sa.literal_column("'{}'::text[]", ARRAY(sa.Text))
    changes["missed_by"] = sa.case(
        (statement.excluded.missing_runs == 0, none), else_=document.c.missed_by
    )
    # The server's snapshot is of before the write, so this is what the row had.
    known = document.alias("known")
    before = (
        sa.select(known.c.raw_hash)
        .where(known.c.document_id == sa.literal_column("document.document_id", sa.Uuid()))
        .scalar_subquery()
    )
    return statement.on_conflict_do_update(
        index_elements=list(document.primary_key.columns), set_=changes
    ).returning(before)


def _mark_seen() -> sa.Update:
    seen = unnested(
        {
            "seen": sa.Uuid(),
            "new_validators": document.c.validators.type,
            "new_fingerprint": sa.Text(),
            "new_raw_hash": sa.Text(),
            "new_suspect": document.c.suspect.type,
        }
    )
    return (
        sa.update(document)
        .where(document.c.document_id == seen.c.seen)
        .values(
            validators=seen.c.new_validators,
            fetch_fingerprint=seen.c.new_fingerprint,
            fetched_raw_hash=seen.c.new_raw_hash,
            suspect=seen.c.new_suspect,
            last_seen=sa.bindparam("seen_at", type_=UtcDateTime()),
            last_run_id=sa.bindparam("run"),
            missing_since=None,
            missing_runs=0,
            missed_by=[],
        )
    )


def _mark_missing() -> sa.Update:
    run = sa.bindparam("run", type_=sa.Text())
    since = sa.bindparam("seen_at", type_=UtcDateTime())
    return (
        sa.update(document)
        .where(document.c.document_id == sa.any_(uuids("ids")))
        .where(sa.not_(run == sa.any_(document.c.missed_by)))
        .values(
            missing_since=sa.func.coalesce(document.c.missing_since, since),
            missing_runs=document.c.missing_runs + 1,
            missed_by=sa.func.array_append(document.c.missed_by, run),
            last_run_id=run,
        )
    )


def _record_hashes() -> sa.Update:
    known = unnested({"point": sa.Uuid(), "hash": sa.Text()})
    return (
        sa.update(chunk)
        .where(
            chunk.c.point_id == known.c.point,
            chunk.c.document_id == _OWNER,
            sa.or_(
                chunk.c.vector_hash.is_(None),
                sa.func.starts_with(known.c.hash, chunk.c.vector_hash + "."),
            ),
        )
        .values(vector_hash=known.c.hash)
    )


_OWNER = sa.bindparam("owner", type_=sa.Uuid())
_UPSERT_DOCUMENT = _upsert_document()
_UPSERT_SECTIONS = bulk_upsert(section)
_UPSERT_CHUNKS = bulk_upsert(chunk)
_DELETE_DOCUMENTS = delete_by(document, "document_id")
_DELETE_SECTIONS = delete_by(section, "section_id")
_DELETE_CHUNKS = delete_by(chunk, "point_id")
_OPEN_INTENTS = bulk_upsert(in_flight, stamp="begun_at")
_CLOSE_INTENTS = delete_by(in_flight, "document_id")
_PENDING = sa.select(in_flight.c.document_id, in_flight.c.uri)
# What is over when a document is there: one way to the server instead of three.
_SETTLE_COMMITTED = (
    delete_by(alias, "alias_id")
    .add_cte(DELETE_TOMBSTONES.cte("risen"))
    .add_cte(_CLOSE_INTENTS.cte("landed"))
)
_MARK_SEEN = _mark_seen()
_MARK_MISSING = _mark_missing()
_REQUEUE = (
    sa.update(document)
    .where(document.c.document_id == sa.any_(uuids("ids")), FAILED)
    .values(
        failure=sa.func.jsonb_set(
            document.c.failure, ["fingerprint"], sa.literal_column("'\"\"'::jsonb")
        )
    )
)
_LOCK_ROW = (
    sa.select(document.c.document_id).where(document.c.document_id == _OWNER).with_for_update()
)
_RECORD_HASHES = _record_hashes()
_RECORD_CHECKSUM = (
    sa.update(document)
    .where(
        document.c.document_id == _OWNER,
        document.c.checksum.is_not_distinct_from(sa.bindparam("before", type_=sa.Text())),
        ~sa.exists().where(chunk.c.document_id == _OWNER, chunk.c.vector_hash.is_(None)),
    )
    .values(checksum=sa.bindparam("sum", type_=sa.Text()))
)


class PostgresWrites:
    """The DocumentWrites port on Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def open_intent(self, run_id: str, source: str, documents: Mapping[UUID, str]) -> None:
        notes = [
            {"document_id": key, "source": source, "uri": uri, "run_id": run_id}
            for key, uri in documents.items()
        ]

        def write(connection: sa.Connection) -> None:
            ensure_source(connection, source)
            upsert(connection, _OPEN_INTENTS, notes)

        self._database.write(write)

    def close_intent(self, document_ids: Sequence[UUID]) -> None:
        if document_ids:
            self._database.execute(_CLOSE_INTENTS, {"ids": document_ids})

    def pending(
        self, source: str | None = None, *, among: Sequence[UUID] | None = None
    ) -> dict[UUID, str]:
        query = _PENDING if source is None else _PENDING.where(in_flight.c.source == source)
        if among is None:
            rows = self._database.rows(query)
        else:
            query = query.where(in_flight.c.document_id == sa.any_(uuids("ids")))
            rows = [*self._database.rows_of(query, "ids", among)]
        return {row.document_id: row.uri for row in rows}

    def commit(
        self,
        record: DocumentRecord,
        sections: Sequence[SectionRecord],
        chunks: Sequence[ChunkRecord],
        event: RunDocument,
    ) -> None:
        key = record.document_id
        section_rows = {s.section_id: SECTION_ROWS.values(s, document_id=key) for s in sections}
        chunk_rows = {c.point_id: CHUNK_ROWS.values(c, document_id=key) for c in chunks}

        def write(connection: sa.Connection) -> None:
            _write_document(connection, record, event)
            old_sections = connection.execute(SECTIONS, {"document": key}).all()
            old_chunks = connection.execute(CHUNKS, {"document": key}).all()
            # New sections come before the chunks that name them, and old ones go after the chunks
            # that have left them, or the cascade would take those along.
            upsert(connection, _UPSERT_SECTIONS, _changed(section_rows, old_sections))
            upsert(connection, _UPSERT_CHUNKS, _changed(chunk_rows, old_chunks))
            by_ids(connection, _DELETE_CHUNKS, {r.point_id for r in old_chunks} - chunk_rows.keys())
            gone = {r.section_id for r in old_sections} - section_rows.keys()
            by_ids(connection, _DELETE_SECTIONS, gone)
            by_ids(connection, _SETTLE_COMMITTED, [key])
            write_version(connection, committed_version(record, event))

        self._database.write(write)

    def update(self, record: DocumentRecord, event: RunDocument) -> None:
        def write(connection: sa.Connection) -> None:
            before = _write_document(connection, record, event)
            write_version(connection, updated_version(record, event, before))

        self._database.write(write)

    def remove(self, tombstone: Tombstone, event: RunDocument, alias: Alias | None = None) -> None:
        key = tombstone.document_id

        def write(connection: sa.Connection) -> None:
            ensure_source(connection, tombstone.source)
            row = connection.execute(DOCUMENT, {"document": key}).first()
            record = DOCUMENTS.record(row) if row else None
            heir = alias
            if heir is not None and not hold(connection, {heir.document_id} - {key}):
                heir = None
            if heir is not None and heir.kind is AliasKind.MOVED:
                move_versions(connection, key, heir.document_id, tombstone.removed_at)
            else:
                write_version(connection, removed_version(record, tombstone, event))
            if heir is not None:
                connection.execute(LEAD_ON, {"gone": key, "there": heir.document_id})
            by_ids(connection, _DELETE_DOCUMENTS, [key])
            if heir is not None:
                write_aliases(connection, [heir])
            by_ids(connection, _CLOSE_INTENTS, [key])
            upsert(connection, UPSERT_TOMBSTONES, [TOMBSTONES.values(tombstone)])
            write_events(connection, [event])

        self._database.write(write)

    def mark_seen(self, run_id: str, seen_at: datetime, sightings: Sequence[Sighting]) -> None:
        # One statement may update a row once: the last sighting of a document is the one that counts.
        latest = list({sighting.document_id: sighting for sighting in sightings}.values())

        def write(connection: sa.Connection) -> None:
            for batch in batches(latest):
                values = {
                    "seen": [sighting.document_id for sighting in batch],
                    "new_validators": [sighting.validators for sighting in batch],
                    "new_fingerprint": [sighting.fetch_fingerprint for sighting in batch],
                    "new_raw_hash": [sighting.fetched_raw_hash for sighting in batch],
                    "new_suspect": [sighting.suspect for sighting in batch],
                }
                connection.execute(_MARK_SEEN, {**values, "seen_at": seen_at, "run": run_id})

        self._database.write(write)

    def mark_missing(self, run_id: str, seen_at: datetime, document_ids: Sequence[UUID]) -> None:
        def write(connection: sa.Connection) -> None:
            for batch in batches(document_ids):
                values = {"ids": batch, "seen_at": seen_at, "run": run_id}
                connection.execute(_MARK_MISSING, values)

        self._database.write(write)

    def requeue(self, document_ids: Sequence[UUID]) -> None:
        self._database.execute(_REQUEUE, {"ids": document_ids})

    def record_vectors(
        self,
        document_id: UUID,
        hashes: Mapping[UUID, str],
        checksum: str,
        before: str | None = None,
    ) -> None:
        owner = {"owner": document_id}
        known = {"point": list(hashes), "hash": list(hashes.values())}

        def write(connection: sa.Connection) -> None:
            # The document first, as a commit does, or the two might wait for each other.
            connection.execute(_LOCK_ROW, owner)
            connection.execute(_RECORD_HASHES, {**owner, **known})
            connection.execute(_RECORD_CHECKSUM, {**owner, "sum": checksum, "before": before})

        self._database.write(write)


def _write_document(
    connection: sa.Connection, record: DocumentRecord, event: RunDocument
) -> str | None:
    """Upsert a document's own row and the event that explains it; returns the ``raw_hash`` it had before."""
    ensure_source(connection, record.source)
    before: str | None = connection.scalar(_UPSERT_DOCUMENT, DOCUMENTS.values(record))
    write_events(connection, [event])
    return before


def _changed(wanted: Mapping[UUID, Values], stored: Sequence[sa.Row[Any]]) -> list[Values]:
    """Of the rows wanted, by key, those that are not stored exactly so."""
    same = {row[0] for row in stored if wanted.get(row[0]) == row._asdict()}
    return [values for key, values in wanted.items() if key not in same]
