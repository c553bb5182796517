"""The part of the ledger in Postgres that remembers what was: versions, runs, events, generations, audits."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Delete, delete, insert, select

from tidemark.adapters import ledger_history_statements as history
from tidemark.adapters import ledger_rows as rows
from tidemark.adapters import ledger_statements as sql
from tidemark.adapters import ledger_tables as tables
from tidemark.adapters.ledger_tables import BY_URI, run_document
from tidemark.adapters.postgres_engine import batches
from tidemark.adapters.postgres_ledger_sites import PostgresSites
from tidemark.domain.records import (
    AuditRecord,
    GenerationRecord,
    RunDocument,
    RunRecord,
    VersionRecord,
)


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
