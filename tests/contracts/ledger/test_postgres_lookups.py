"""That the real ledger looks up what it is asked for, however much it holds, and forgets it in parts."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ledger_cases import NOON, SOURCE, document
from sqlalchemy import Connection, Engine, text
from sqlalchemy import event as events

from tidemark.adapters.ledger.engine import database_engine
from tidemark.adapters.ledger.postgres import PostgresLedger

pytestmark = pytest.mark.services


@pytest.fixture
def engine(postgres_url: str) -> Iterator[Engine]:
    engine = database_engine(postgres_url)
    yield engine
    engine.dispose()


@pytest.fixture
def real(engine: Engine) -> PostgresLedger:
    return PostgresLedger(engine)


def test_what_is_forgotten_goes_by_the_thousand_and_the_oldest_first(
    real: PostgresLedger, engine: Engine
) -> None:
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO version (document_id, run_id, source, uri, title, action, reason, detail, "
                "raw_hash, media_type, fetch_fingerprint, partition_fingerprint, chunk_fingerprint, "
                "embed_fingerprint, sections, chunks, fetched_at, indexed_at, replaced_at) "
                "SELECT gen_random_uuid(), n::text, 's', 'u', '', 'add', 'new', '', n::text, '', '', '', '', "
                "'', 0, 0, now(), now(), timestamptz '2026-01-01Z' + n * interval '1 minute' "
                "FROM generate_series(0, 1002) n ORDER BY random()"
            )
        )
    assert real.versions.drop(NOON) == 1_000
    assert {v.run_id for v in real.versions.stream()} == {"1000", "1001", "1002"}
    assert real.versions.drop(NOON) == 3


@pytest.mark.parametrize(
    ("ask", "index"),
    [
        (lambda r: list(r.documents.stream(SOURCE, quarantined=True)), "document_quarantined_idx"),
        (lambda r: r.sources.aliases_by_uri(["a"]), "alias_uri_idx"),
        (lambda r: r.versions.raw_in_use(["raw-1"]), "document_failed_raw_hash_idx"),
        (lambda r: r.versions.raw_in_use(["raw-1"]), "version_raw_hash_idx"),
        (lambda r: r.tombstones.blocking(SOURCE), "tombstone_kept_out_idx"),
        (lambda r: r.tombstones.restorable(SOURCE, NOON), "tombstone_restorable_idx"),
        (lambda r: r.tombstones.drop(NOON), "tombstone_forgettable_idx"),
        (lambda r: r.versions.drop(NOON), "version_replaced_at_idx"),
        (lambda r: r.versions.of(document().document_id), "version_pkey"),
        (lambda r: r.runs.running(), "run_finished_at_idx"),
        (lambda r: r.runs.drop(NOON, 1), "run_finished_at_idx"),
        (lambda r: r.writes.pending(among=[document().document_id]), "in_flight_pkey"),
        (lambda r: r.generations.audits("a"), "audit_source_audited_at_idx"),
        (lambda r: r.generations.audits(), "audit_audited_at_idx"),
    ],
)
def test_what_is_asked_for_is_looked_up(
    real: PostgresLedger, engine: Engine, ask: Callable[[PostgresLedger], object], index: str
) -> None:
    plans: list[str] = []

    def explained(
        connection: Connection, cursor: Any, statement: str, parameters: Any, *_: object
    ) -> None:
        if statement.startswith(("SELECT", "DELETE", "WITH", "(SELECT")):
            inner = cursor.connection.cursor()
            # Tables are empty here, so a plan tells what can be used, not what pays.
            inner.execute("SET LOCAL enable_seqscan = off")
            inner.execute("SET LOCAL plan_cache_mode = force_generic_plan")
            inner.execute(f"EXPLAIN {statement}", parameters)
            plans.extend(row[0] for row in inner.fetchall())

    events.listen(engine, "before_cursor_execute", explained)
    ask(real)
    assert any(index in line for line in plans), "\n".join(plans)
