"""The locks that every Ledger gives, and what holds of the real ones across processes."""

import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from uuid import UUID, uuid4

import pytest
from processes import start_python
from sqlalchemy import NullPool, create_engine, text

from tidemark.adapters.ledger.postgres import PostgresLedger
from tidemark.domain.errors import LockLostError, SourceBusyError, TidemarkError, TransientError
from tidemark.ports.ledger import Ledger

IDS = sorted(uuid4() for _ in range(4))


def test_a_source_is_held_by_one_run(ledger: Ledger) -> None:
    with ledger.lock("handbook"):
        for run_id in (None, "run-1"):
            with (
                pytest.raises(SourceBusyError, match="handbook"),
                ledger.lock("handbook", run_id=run_id),
            ):
                pytest.fail("It was had twice.")
        with ledger.lock("other source"):
            pass
    with ledger.lock("handbook"):
        pass


def test_the_tasks_of_a_run_share_a_source_and_keep_a_whole_run_out(ledger: Ledger) -> None:
    with ledger.lock("handbook", run_id="run-1"):
        with ledger.lock("handbook", run_id="run-1"):
            pass
        with pytest.raises(SourceBusyError), ledger.lock("handbook"):
            pytest.fail("It was had beside a task.")
    with ledger.lock("handbook"):
        pass


def test_a_failed_run_frees_its_source(ledger: Ledger) -> None:
    with pytest.raises(ZeroDivisionError), ledger.lock("handbook"):
        _ = 1 / 0
    with ledger.lock("handbook"):
        pass


def test_a_lock_is_free_in_the_moment_in_which_its_block_ends(ledger: Ledger) -> None:
    for n in range(60):
        with suppress(ZeroDivisionError), ledger.lock("handbook", run_id=f"run-{n}"):
            _ = 1 / (n % 2)
        assert not ledger.is_locked("handbook")


def test_names_of_sources_may_be_in_any_script(ledger: Ledger) -> None:
    with ledger.lock("Ünïcode 東京 '\"%"):
        with pytest.raises(SourceBusyError), ledger.lock("Ünïcode 東京 '\"%"):
            pytest.fail("It was had twice.")
        with ledger.lock("Ünïcode 東京 '\""):
            pass


def test_documents_are_written_by_one_run_at_a_time(ledger: Ledger) -> None:
    with ledger.lock_documents(IDS[:2]):
        with pytest.raises(TransientError), ledger.lock_documents(IDS[1:3]):
            pytest.fail("A document was had twice.")
        with ledger.lock_documents(IDS[2:]):
            pass
    with ledger.lock_documents(IDS):
        pass


def test_a_document_may_be_named_twice_and_none_at_all(ledger: Ledger) -> None:
    with ledger.lock_documents([IDS[0], IDS[0]]):
        pass
    with ledger.lock_documents([IDS[0]]):
        pass
    with ledger.lock_documents([]):
        pass


def test_a_failed_write_frees_its_documents(ledger: Ledger) -> None:
    with pytest.raises(ZeroDivisionError), ledger.lock_documents(IDS):
        _ = 1 / 0
    with ledger.lock_documents(IDS):
        pass


@pytest.fixture
def patient(postgres_url: str) -> Iterator[PostgresLedger]:
    """A real ledger that waits for documents as long as it takes here."""
    ledger = PostgresLedger(postgres_url, lock_seconds=30)
    yield ledger
    ledger.close()


@pytest.mark.services
def test_it_waits_for_documents_until_they_are_free(patient: PostgresLedger) -> None:
    had: list[str] = []

    def other() -> None:
        with patient.lock_documents(IDS[1:]):
            had.append("second")

    with patient.lock_documents(IDS[:2]):
        thread = threading.Thread(target=other)
        thread.start()
        time.sleep(0.2)
        had.append("first")
    thread.join(timeout=20)
    assert had == ["first", "second"]


@pytest.mark.services
def test_two_runs_that_want_the_same_documents_never_wait_for_each_other(
    patient: PostgresLedger,
) -> None:
    failures: list[Exception] = []

    def take(ids: list[UUID]) -> None:
        try:
            for _ in range(15):
                with patient.lock_documents(ids):
                    pass
        except TidemarkError as error:
            failures.append(error)

    threads = [threading.Thread(target=take, args=(ids,)) for ids in (IDS, IDS[::-1])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert failures == []


HOLDER = """
import sys, time
from uuid import UUID
from tidemark.adapters.ledger.postgres import PostgresLedger
ledger = PostgresLedger(sys.argv[1])
with ledger.lock("handbook"), ledger.lock_documents([UUID(sys.argv[2])]):
    print("held", flush=True)
    time.sleep(60)
"""


@contextmanager
def holder(url: str, document: UUID) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the source "handbook" and a document."""
    process = start_python(HOLDER, url, str(document))
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "held"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.services
def test_the_death_of_a_process_frees_what_it_held(
    patient: PostgresLedger, postgres_url: str
) -> None:
    with holder(postgres_url, IDS[0]) as process:
        with pytest.raises(SourceBusyError), patient.lock("handbook", run_id="run-1"):
            pytest.fail("It was had beside the other process.")
        process.send_signal(signal.SIGKILL)
        process.wait()
        # The server notices the closed connection in a moment.
        with patient.lock_documents([IDS[0]]):
            pass
        with patient.lock("handbook"):
            pass


@pytest.mark.services
def test_the_message_names_the_process_that_holds_the_source(
    patient: PostgresLedger, postgres_url: str
) -> None:
    with (
        holder(postgres_url, IDS[0]) as process,
        pytest.raises(SourceBusyError) as caught,
        patient.lock("handbook"),
    ):
        pytest.fail("It was had twice.")
    assert f"tidemark process {process.pid} on " in caught.value.message
    assert " since 20" in caught.value.message
    assert "stop that process" in caught.value.hint


def end_lock_sessions(url: str) -> None:
    with create_engine(url, poolclass=NullPool).begin() as connection:
        connection.execute(
            text("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
        )


@pytest.mark.services
def test_a_lock_lost_on_the_way_is_told_at_the_end(
    patient: PostgresLedger, postgres_url: str
) -> None:
    with pytest.raises(TransientError, match="handbook"), patient.lock("handbook"):
        end_lock_sessions(postgres_url)
    with patient.lock("handbook"):
        pass


@pytest.mark.services
@pytest.mark.parametrize("run_id", [None, "run-1"])
def test_documents_lost_on_the_way_are_told_at_the_end(
    patient: PostgresLedger, postgres_url: str, run_id: str | None
) -> None:
    with pytest.raises(LockLostError, match="1 document"), patient.lock_documents(IDS[:1]):
        end_lock_sessions(postgres_url)
    with pytest.raises(LockLostError, match="handbook"), patient.lock("handbook", run_id=run_id):
        end_lock_sessions(postgres_url)
    with patient.lock("handbook", run_id=run_id), patient.lock_documents(IDS):
        pass
