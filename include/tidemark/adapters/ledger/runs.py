"""The runs, and the events that tell what each did to a document."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from tidemark.adapters.ledger.engine import Database, batches
from tidemark.adapters.ledger.schema import (
    AT_ONCE,
    BY_URI,
    DisplayText,
    Rows,
    UtcDateTime,
    Word,
    bulk_upsert,
    delete_some,
    ensure_source,
    metadata,
    required,
    sorted_text,
    source,
    texts,
    to_source,
    upsert,
    uuids,
)
from tidemark.domain.records import RunDocument, RunRecord, RunStatus

run = sa.Table(
    "run",
    metadata,
    sa.Column("run_id", sorted_text(), primary_key=True),
    to_source(),
    required("trigger", sa.Text),
    required("status", Word(RunStatus)),
    required("started_at", UtcDateTime, index=True),
    sa.Column("finished_at", UtcDateTime, index=True),
    required("note", DisplayText),
    # JSON as text: it is handed back as it was written, and only people query it.
    sa.Column("summary", DisplayText),
    sa.Index(None, "source", "started_at"),
)

run_document = sa.Table(
    "run_document",
    metadata,
    # No foreign keys: an event outlives its document, and bookkeeping must never refuse a commit.
    sa.Column("run_id", sorted_text(), primary_key=True),
    sa.Column("document_id", sa.Uuid, primary_key=True),
    required("uri", sorted_text()),
    required("action", sa.Text),
    required("reason", sa.Text),
    required("detail", DisplayText),
    required("seconds", sa.Double),
    required("chunks_added", sa.Integer),
    required("chunks_kept", sa.Integer),
    required("chunks_removed", sa.Integer),
    required("recorded_at", UtcDateTime, server_default=sa.func.clock_timestamp()),
    sa.Index("run_document_run_id_uri_idx", "run_id", BY_URI),
    sa.Index(None, "document_id", "recorded_at"),
)


RUNS = Rows(run, RunRecord)
EVENTS = Rows(run_document, RunDocument)
_UPSERT_RUNS = bulk_upsert(run)
_UPSERT_EVENTS = bulk_upsert(run_document, stamp="recorded_at")
_RUNNING = (
    sa.select(run).where(run.c.finished_at.is_(None)).order_by(run.c.started_at, run.c.run_id)
)


def _old_runs() -> sa.Select[Any]:
    latest = (
        sa.select(run.c.run_id)
        .where(run.c.source == source.c.name)
        .order_by(run.c.started_at.desc(), run.c.run_id.desc())
    )
    stay = [
        some.lateral()
        for some in (
            latest.limit(sa.bindparam("keep", type_=sa.Integer())),
            latest.where(run.c.status == RunStatus.SUCCESS).limit(1),
        )
    ]
    kept = sa.union_all(
        *(sa.select(s.c.run_id).select_from(source.join(s, sa.true())) for s in stay)
    )
    return (
        sa.select(run.c.run_id)
        .where(
            run.c.finished_at < sa.bindparam("before", type_=UtcDateTime()),
            run.c.run_id.not_in(kept),
        )
        .order_by(run.c.finished_at, run.c.run_id)
        .limit(AT_ONCE)
    )


_OLD_RUNS = _old_runs()
_DROP_RUN_EVENTS = delete_some(run_document, run_document.c.run_id == sa.any_(texts("runs")))
_DROP_RUNS = sa.delete(run).where(
    run.c.run_id == sa.any_(texts("runs")), run.c.finished_at.is_not(None)
)
_DROP_DOCUMENT_EVENTS = delete_some(
    run_document, run_document.c.document_id == sa.any_(uuids("ids"))
)


def write_events(connection: sa.Connection, events: Sequence[RunDocument]) -> None:
    """Upsert events of different runs or documents."""
    upsert(connection, _UPSERT_EVENTS, [EVENTS.values(event) for event in events])


def drop_events_of(database: Database, document_ids: Sequence[UUID]) -> None:
    """Forget the events of documents, some at a time."""
    while database.execute(_DROP_DOCUMENT_EVENTS, {"ids": document_ids}) == AT_ONCE:
        continue


class PostgresRuns:
    """The Runs port on Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, record: RunRecord) -> None:
        def write(connection: sa.Connection) -> None:
            ensure_source(connection, record.source)
            upsert(connection, _UPSERT_RUNS, [RUNS.values(record)])

        self._database.write(write)

    def get(self, run_id: str) -> RunRecord | None:
        rows = self._database.rows(sa.select(run).where(run.c.run_id == run_id))
        return RUNS.record(rows[0]) if rows else None

    def recent(self, source: str | None = None, limit: int = 20) -> list[RunRecord]:
        query = sa.select(run).order_by(run.c.started_at.desc(), run.c.run_id.desc()).limit(limit)
        if source is not None:
            query = query.where(run.c.source == source)
        return RUNS.of(self._database.rows(query))

    def running(self) -> list[RunRecord]:
        return RUNS.of(self._database.rows(_RUNNING))

    def drop(self, finished_before: datetime, keep: int) -> list[str]:
        old = self._database.rows(_OLD_RUNS, {"before": finished_before, "keep": keep})
        gone = [row.run_id for row in old]
        # The events first: killed in between, the runs are still there to be found again.
        while self._database.execute(_DROP_RUN_EVENTS, {"runs": gone}) == AT_ONCE:
            continue
        self._database.execute(_DROP_RUNS, {"runs": gone})
        return gone

    def record_events(self, events: Sequence[RunDocument]) -> None:
        unique = list({(e.run_id, e.document_id): e for e in events}.values())

        def write(connection: sa.Connection) -> None:
            for batch in batches(unique):
                write_events(connection, batch)

        self._database.write(write)

    def events(self, run_id: str) -> Iterator[RunDocument]:
        query = (
            sa.select(run_document)
            .where(run_document.c.run_id == run_id)
            .order_by(BY_URI, run_document.c.uri, run_document.c.document_id)
        )
        return EVENTS.stream(self._database.stream(query))

    def events_of(self, document_id: UUID, limit: int = 20) -> list[RunDocument]:
        query = (
            sa.select(run_document)
            .where(run_document.c.document_id == document_id)
            .order_by(run_document.c.recorded_at.desc())
            .limit(limit)
        )
        return EVENTS.of(self._database.rows(query))
