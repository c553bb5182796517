"""The lock of a source that the tasks of one run share, and how others wait for it."""

import os
import socket
import threading
import time
from collections import Counter
from contextlib import ExitStack
from uuid import uuid4

import pytest

from conftest import THROWAWAY, short_folder
from tidemark.adapters.ledger import locks
from tidemark.adapters.ledger.postgres import PostgresLedger
from tidemark.adapters.services.postgres import EmbeddedPostgres
from tidemark.domain.errors import LockLostError, SourceBusyError, TidemarkError
from tidemark.ports.ledger import Ledger


def test_tasks_of_two_runs_never_have_a_source_together(ledger: Ledger) -> None:
    with ledger.lock("handbook", run_id="run-1"):
        with (
            pytest.raises(SourceBusyError, match="handbook"),
            ledger.lock("handbook", run_id="run-2"),
        ):
            pytest.fail("It was had by two runs.")
        # A try that failed leaves nothing behind that would keep the run's own tasks out.
        with ledger.lock("handbook", run_id="run-1"), ledger.lock("other", run_id="run-2"):
            pass
    with ledger.lock("handbook", run_id="run-2"):
        pass


def test_a_run_of_many_tasks_ends_with_the_last_of_them(ledger: Ledger) -> None:
    with ExitStack() as second:
        with ExitStack() as first:
            first.enter_context(ledger.lock("handbook", run_id="run-1"))
            second.enter_context(ledger.lock("handbook", run_id="run-1"))
        for run_id in (None, "run-2"):
            with pytest.raises(SourceBusyError), ledger.lock("handbook", run_id=run_id):
                pytest.fail("It was had beside the second task.")
    with ledger.lock("handbook"):
        pass


def test_it_tells_whether_a_source_is_locked(ledger: Ledger) -> None:
    assert not ledger.is_locked("handbook")
    for run_id in (None, "run-1"):
        with ledger.lock("handbook", run_id=run_id):
            assert ledger.is_locked("handbook")
            assert not ledger.is_locked("other")
        assert not ledger.is_locked("handbook")


def test_it_waits_for_a_source_within_a_bound(ledger: Ledger) -> None:
    with ledger.lock("handbook", run_id="run-1"):
        begun = time.monotonic()
        with pytest.raises(SourceBusyError) as caught, ledger.lock("handbook", wait_seconds=0.3):
            pytest.fail("It was had twice.")
        assert 0.3 <= time.monotonic() - begun < 3
    assert "handbook" in caught.value.message
    assert "run-1" in caught.value.message
    assert "Wait for it to end" in caught.value.hint


@pytest.mark.parametrize("run_id", [None, "run-2"])
def test_it_has_a_source_once_the_other_run_ends(ledger: Ledger, run_id: str | None) -> None:
    had: list[str] = []

    def other() -> None:
        with ledger.lock("handbook", run_id=run_id, wait_seconds=30):
            had.append("second")

    with ledger.lock("handbook", run_id="run-1"):
        thread = threading.Thread(target=other)
        thread.start()
        time.sleep(0.3)
        had.append("first")
    thread.join(timeout=20)
    assert had == ["first", "second"]


def test_who_waits_tells_the_log_for_whom(
    ledger: Ledger, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locks, "FIRST_LINE", 0.1)
    monkeypatch.setattr(locks, "REMINDER", 60)
    caplog.set_level("INFO")
    with (
        ledger.lock("handbook", run_id="run-1"),
        pytest.raises(SourceBusyError),
        ledger.lock("handbook", run_id="run-2", wait_seconds=1.2),
    ):
        pytest.fail("It was had by two runs.")
    told = [r.getMessage() for r in caplog.records if "handbook" in r.getMessage()]
    assert len(told) == 1
    assert "run-1" in told[0]


def test_of_runs_that_come_at_once_one_has_the_source_and_its_tasks_are_never_turned_away(
    ledger: Ledger,
) -> None:
    inside: Counter[str] = Counter()
    guard, begin = threading.Lock(), threading.Barrier(6)
    mixed: list[set[str]] = []
    wrong: list[TidemarkError] = []

    def task(run_id: str) -> None:
        try:
            begin.wait()
            with ledger.lock("handbook", run_id=run_id, wait_seconds=60):
                for _ in range(4):
                    # A task of a run that has the source gets it at once, whoever else knocks.
                    with ledger.lock("handbook", run_id=run_id), guard:
                        inside[run_id] += 1
                        mixed.append(set(+inside))
                    with guard:
                        inside[run_id] -= 1
        except TidemarkError as error:
            wrong.append(error)

    threads = [threading.Thread(target=task, args=(f"run-{n % 3}",)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=90)
    assert wrong == []
    assert len(mixed) == 24
    assert {len(runs) for runs in mixed} == {1}


@pytest.mark.services
def test_the_holder_of_a_source_is_named_with_its_run(postgres_url: str) -> None:
    run_id = "handbook__scheduled__2026-03-01T12-00-00-00-00__0a1b2c"
    ledger = PostgresLedger(postgres_url)
    with (
        ledger.lock("handbook", run_id=run_id),
        pytest.raises(SourceBusyError) as caught,
        ledger.lock("handbook"),
    ):
        pytest.fail("It was had beside a task.")
    ledger.close()
    assert "__0a1b2c" in caught.value.message
    assert f"process {os.getpid()} on {socket.gethostname()[:12]}" in caught.value.message


def restart(server: EmbeddedPostgres) -> None:
    server.stop()
    server.ensure_running()


@pytest.mark.services
def test_a_lock_is_gone_with_a_server_that_was_restarted() -> None:
    with short_folder() as folder:
        server = EmbeddedPostgres(folder, settings=THROWAWAY)
        try:
            ledger = PostgresLedger(server.url("postgres"))
            with pytest.raises(LockLostError), ledger.lock("handbook", run_id="run-1"):
                restart(server)
            assert not ledger.is_locked("handbook")
            with pytest.raises(LockLostError), ledger.lock_documents([uuid4()]):
                restart(server)
            with ledger.lock("handbook", run_id="run-2"):
                assert ledger.is_locked("handbook")
            ledger.close()
        finally:
            server.stop()
