"""What only the real ledger can show: transactions, streams, forks, and what goes wrong with a server."""

import os
import socket
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace

import pytest
from ledger_cases import (
    RUN,
    SOURCE,
    chunks_of,
    document,
    event,
    quarantined,
    run,
    sections_of,
)
from sqlalchemy import Engine, create_engine, insert, make_url, text
from sqlalchemy import event as events

from tidemark.adapters.ledger.documents import DOCUMENTS
from tidemark.adapters.ledger.documents import document as table
from tidemark.adapters.ledger.engine import BATCH, Database, database_engine
from tidemark.adapters.ledger.engine import postgres_url as read_url
from tidemark.adapters.ledger.postgres import PostgresLedger
from tidemark.adapters.ledger.schema import ensure_source
from tidemark.adapters.retry import Retry
from tidemark.domain.errors import ConfigurationError, PermanentError, TransientError

pytestmark = pytest.mark.services


@pytest.fixture
def engine(postgres_url: str) -> Iterator[Engine]:
    engine = database_engine(postgres_url)
    yield engine
    engine.dispose()


@pytest.fixture
def real(engine: Engine) -> PostgresLedger:
    return PostgresLedger(engine)


def rewritten(engine: Engine, table: str) -> set[str]:
    """The rows as the server numbers their versions: a row rewritten has another number."""
    with engine.connect() as connection:
        return {
            f"{r[0]}:{r[1]}" for r in connection.execute(text(f"SELECT ctid, xmin FROM {table}"))
        }


def test_a_commit_writes_only_the_rows_that_changed(real: PostgresLedger, engine: Engine) -> None:
    record = document()
    sections = sections_of(record)
    texts = [f"text {n}" for n in range(20)]
    real.writes.commit(record, sections, chunks_of(record, sections, texts), event(record))
    before = {table: rewritten(engine, table) for table in ("section", "chunk")}
    chunks = chunks_of(record, sections, [*texts[:7], "edited", *texts[8:]])
    real.writes.commit(record, sections, chunks, event(record))
    assert len(rewritten(engine, "chunk") - before["chunk"]) == 1
    assert rewritten(engine, "section") == before["section"]
    assert real.documents.chunks(record.document_id) == chunks


def test_a_commit_that_fails_in_the_middle_leaves_everything_as_it_was(
    real: PostgresLedger,
) -> None:
    record = document()
    sections = sections_of(record)
    chunks = chunks_of(record, sections)
    real.writes.commit(record, sections, chunks, event(record))
    real.writes.open_intent(RUN, SOURCE, {record.document_id: record.uri})
    bad = replace(chunks[0], token_count=2**40)
    with pytest.raises(PermanentError):
        real.writes.commit(
            replace(record, title="Another"), sections[:1], [bad], event(record, reason="content")
        )
    assert real.documents.get(record.document_id) == record
    assert real.documents.sections(record.document_id) == sections
    assert real.documents.chunks(record.document_id) == chunks
    assert real.runs.events_of(record.document_id) == [event(record)]
    assert real.writes.pending(SOURCE) == {record.document_id: record.uri}


def test_text_that_postgres_cannot_hold_is_replaced_where_people_read_it(
    real: PostgresLedger,
) -> None:
    record = document(title="nul \0 and half a pair \ud800")
    section = replace(sections_of(record)[0], heading_path=("\0",))
    real.writes.commit(record, [section], [], event(record, detail="\0"))
    found = real.documents.get(record.document_id)
    assert found is not None
    assert found.title == "nul \ufffd and half a pair \ufffd"
    assert real.documents.sections(record.document_id)[0].heading_path == ("\ufffd",)
    assert real.runs.events_of(record.document_id)[0].detail == "\ufffd"


def test_an_address_that_postgres_cannot_hold_is_a_permanent_error(real: PostgresLedger) -> None:
    for uri in ("a\0b", "a\ud800b"):
        record = replace(document(), uri=uri)
        with pytest.raises(PermanentError):
            real.writes.commit(record, [], [], event(record))


def test_bulk_work_of_more_than_one_batch_is_done_whole(
    real: PostgresLedger, engine: Engine
) -> None:
    records = [quarantined(f"{n:05}") for n in range(2 * BATCH + 1)]
    with engine.begin() as connection:
        ensure_source(connection, SOURCE)
        connection.execute(insert(table), [DOCUMENTS.values(r) for r in records])
    ids = [record.document_id for record in records]
    assert len(real.documents.by_id(ids)) == len(ids)
    real.writes.mark_missing("run-2", records[0].first_seen, ids)
    assert {d.missing_runs for d in real.documents.stream()} == {1}
    real.runs.record_events([event(record) for record in records])
    assert sum(1 for _ in real.runs.events(RUN)) == len(ids)


def test_a_stream_holds_few_rows_at_a_time(real: PostgresLedger, engine: Engine) -> None:
    def fill(start: int, count: int) -> None:
        with engine.begin() as connection:
            connection.execute(
                text(
                    "INSERT INTO run_document (run_id, document_id, uri, action, reason, detail, "
                    "seconds, chunks_added, chunks_kept, chunks_removed) "
                    "SELECT 'run-1', gen_random_uuid(), n::text, 'keep', 'unchanged', "
                    "repeat('x', 200), 0, 0, 0, 0 FROM generate_series(CAST(:a AS int), CAST(:b AS int)) n"
                ),
                {"a": start, "b": start + count - 1},
            )

    def peak() -> int:
        tracemalloc.start()
        counted = sum(1 for _ in real.runs.events(RUN))
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert counted
        return size

    fill(0, 3_000)
    peak()  # What is cached on first use is no part of the stream.
    small = peak()
    fill(3_000, 12_000)
    assert peak() < small * 1.5


def test_a_stream_left_half_way_gives_its_connection_back(
    real: PostgresLedger, engine: Engine
) -> None:
    real.runs.record_events([event(document(f"{n}")) for n in range(5)])
    stream = real.runs.events(RUN)
    next(stream)
    del stream
    assert engine.pool.checkedout() == 0


def test_a_ledger_may_be_used_on_both_sides_of_a_fork(real: PostgresLedger, engine: Engine) -> None:
    real.runs.save(run("before"))
    child = os.fork()
    if child == 0:
        code = 1
        try:
            real.runs.save(run("in-the-child"))
            code = 0 if real.runs.get("before") is not None else 1
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with engine.connect() as connection:
        assert connection.scalar(text("SELECT count(*) FROM run")) == 2
    assert {r.run_id for r in real.runs.recent()} == {"before", "in-the-child"}


def test_it_goes_on_after_the_server_has_dropped_its_connections(
    real: PostgresLedger, postgres_url: str
) -> None:
    real.runs.save(run())
    other = create_engine(postgres_url)
    with other.begin() as connection:
        connection.execute(
            text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
    other.dispose()
    assert real.runs.get("run-1") == run()


def test_a_connection_lost_in_a_statement_is_transient(engine: Engine) -> None:
    with pytest.raises(TransientError, match="database"):
        Database(engine, Retry("The ledger")).execute(
            text("SELECT pg_terminate_backend(pg_backend_pid())")
        )


def test_a_server_that_is_away_is_transient_and_named_without_its_password() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        ledger = PostgresLedger(f"postgresql://someone:hush-hush@127.0.0.1:{port}/books")
        for call in (lambda: ledger.runs.get("run-1"), lambda: ledger.lock("handbook").__enter__()):
            with pytest.raises(TransientError) as caught:
                call()
            assert '"books" on 127.0.0.1' in str(caught.value)
            assert "hush-hush" not in str(caught.value)


def test_a_missing_database_is_not_worth_a_retry(postgres_url: str) -> None:
    url = make_url(postgres_url).set(database="no_such_database")
    with pytest.raises(ConfigurationError, match="no_such_database"):
        PostgresLedger(url).runs.get("run-1")


def test_a_database_without_tables_asks_for_the_migration(empty_postgres_url: str) -> None:
    with pytest.raises(ConfigurationError, match="tidemark migrate"):
        list(PostgresLedger(empty_postgres_url).documents.stream())


@pytest.mark.parametrize("url", ["mysql://user:hush@host/db", "not a url hush", ""])
def test_a_url_of_something_else_is_refused_without_being_quoted(url: str) -> None:
    with pytest.raises(ConfigurationError, match="postgresql://") as caught:
        PostgresLedger(url)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg2"])
def test_any_spelling_of_a_postgres_url_is_taken(scheme: str) -> None:
    assert read_url(f"{scheme}://u@h/d").drivername == "postgresql+psycopg"


def test_one_commit_takes_few_statements(real: PostgresLedger, engine: Engine) -> None:
    record = document()
    sections = sections_of(record)
    count = 0

    def counted(*_: object) -> None:
        nonlocal count
        count += 1

    events.listen(engine, "before_cursor_execute", counted)
    texts = [f"text {n}" for n in range(300)]
    real.writes.commit(record, sections, chunks_of(record, sections, texts), event(record))
    assert count <= 10
