"""Calls that wait for a store that is away: until when, how often, what is said, and what must not wait."""

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat

import pytest
from sqlalchemy import select

from tidemark.adapters.ledger.engine import Database
from tidemark.adapters.retry import Retry
from tidemark.domain.errors import LockLostError, PermanentError, SourceBusyError, TransientError

AWAY = TransientError("The store cannot be reached.", "Check the network.")
TIMEOUT = 60.0


@dataclass
class Time:
    """A clock that goes on by sleeping alone."""

    now: float = 1000.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def clock(self) -> float:
        return self.now


class Store:
    """A store whose calls raise what is planned before they work, and count."""

    def __init__(self) -> None:
        self.keys = ["a", "b", "c"]
        self.plan: Iterator[Exception | None] = iter(())
        self.calls = 0
        self.closed = 0

    def read(self) -> bytes:
        self.calls += 1
        if (error := next(self.plan, None)) is not None:
            raise error
        return b"read"

    def scan(self) -> Iterator[str]:
        self.read()
        try:
            for key in self.keys:
                if key == "broken":
                    raise AWAY
                yield key
        finally:
            self.closed += 1


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def retry(time: Time) -> Retry:
    return Retry("Store", TIMEOUT, sleep=time.sleep, clock=time.clock)


def test_a_call_is_made_again_until_the_store_is_back(
    store: Store, retry: Retry, time: Time
) -> None:
    store.plan = iter([AWAY] * 4)
    assert retry(store.read) == b"read"
    assert store.calls == 5
    assert len(time.slept) == 4


def test_a_call_that_works_costs_no_second_one_and_no_wait(
    store: Store, retry: Retry, time: Time
) -> None:
    assert retry(store.read) == b"read"
    assert (store.calls, time.slept) == (1, [])


def test_waits_grow_are_spread_at_random_and_bounded(store: Store) -> None:
    schedules = []
    for _ in range(20):
        time = Time()
        store.plan = iter([AWAY] * 10)
        Retry("Store", 10_000, sleep=time.sleep, clock=time.clock)(store.read)
        schedules.append(time.slept)
    assert all(0.05 <= wait <= 5.0 for waits in schedules for wait in waits)
    assert all(waits[0] <= 0.2 and waits[1] <= 0.4 for waits in schedules)
    mean = [sum(waits[n] for waits in schedules) / len(schedules) for n in range(10)]
    assert mean[0] < mean[3] < mean[6]
    assert len({waits[5] for waits in schedules}) == len(schedules)


def test_the_last_error_is_raised_when_the_time_is_over_and_not_before(
    store: Store, retry: Retry, time: Time
) -> None:
    last = TransientError("Still away.")
    began = time.now
    store.plan = (AWAY if time.now < began + TIMEOUT else last for _ in repeat(None))
    with pytest.raises(TransientError) as raised:
        retry(store.read)
    assert raised.value is last
    assert time.now == pytest.approx(began + TIMEOUT)


def test_a_try_that_took_all_the_time_is_the_only_one(
    store: Store, retry: Retry, time: Time
) -> None:
    def slow() -> None:
        time.now += 120
        store.plan = iter([AWAY])
        store.read()

    with pytest.raises(TransientError):
        retry(slow)
    assert (store.calls, time.slept) == (1, [])


def test_without_a_timeout_nothing_is_tried_again(store: Store, time: Time) -> None:
    store.plan = iter([AWAY])
    with pytest.raises(TransientError):
        Retry("Store", 0, sleep=time.sleep, clock=time.clock)(store.read)
    assert (store.calls, time.slept) == (1, [])


@pytest.mark.parametrize(
    "error",
    [
        PermanentError("The disk is full."),
        SourceBusyError("Another run."),
        LockLostError("It was lost on the way."),
        KeyError("a"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_that_will_not_pass_is_raised_at_once_and_ends_the_waiting(
    store: Store, retry: Retry, time: Time, error: Exception
) -> None:
    store.plan = iter([error])
    with pytest.raises(type(error)):
        retry(store.read)
    assert (store.calls, time.slept) == (1, [])
    store.plan = iter([AWAY, error])
    with pytest.raises(type(error)):
        retry(store.read)
    assert store.calls == 3


# Scans


@pytest.mark.parametrize("keys", [["a", "b", "c"], []], ids=["its first item", "its end"])
def test_a_scan_waits_for_its_first_item(store: Store, retry: Retry, keys: list[str]) -> None:
    store.keys, store.plan = keys, iter([AWAY, AWAY])
    assert list(retry.stream(store.scan)) == keys
    assert store.calls == 3


def test_a_scan_asks_for_nothing_before_it_is_read(store: Store, retry: Retry) -> None:
    retry.stream(store.scan)
    assert store.calls == 0


def test_a_scan_that_breaks_on_the_way_is_not_taken_up_again(
    store: Store, retry: Retry, time: Time
) -> None:
    store.keys = ["a", "broken"]
    scan = retry.stream(store.scan)
    assert next(scan) == "a"
    with pytest.raises(TransientError):
        next(scan)
    assert time.slept == []


def test_a_scan_that_is_left_is_closed_at_once(store: Store, retry: Retry) -> None:
    scan = retry.stream(store.scan)
    next(scan)
    assert store.closed == 0
    scan.close()  # type: ignore[attr-defined]
    assert store.closed == 1


def test_an_iterator_that_cannot_be_closed_is_fine(retry: Retry) -> None:
    assert list(retry.stream(lambda: iter(["a", "b"]))) == ["a", "b"]


# Under locks of documents


@pytest.fixture
def database(retry: Retry) -> Database:
    """One that nobody serves."""
    return Database("postgresql://nobody@127.0.0.1:1/none", retry)


@pytest.mark.parametrize(
    "call",
    [
        lambda database: database.rows(select(1)),
        lambda database: list(database.stream(select(1))),
        lambda database: database.execute(select(1)),
        lambda database: database.write(lambda connection: None),
    ],
    ids=["rows", "stream", "execute", "write"],
)
def test_the_ledger_waits_but_for_a_block_under_locks_of_documents(
    database: Database, time: Time, call: Callable[[Database], object]
) -> None:
    database.locks.held = True
    with pytest.raises(TransientError):
        call(database)
    assert time.slept == []
    database.locks.held = False
    with pytest.raises(TransientError):
        call(database)
    assert time.slept


def test_another_thread_waits_meanwhile(database: Database, time: Time) -> None:
    database.locks.held = True

    def ask() -> None:
        with pytest.raises(TransientError):
            database.rows(select(1))

    other = threading.Thread(target=ask)
    other.start()
    other.join(30)
    assert time.slept


# What the log is told


def test_an_outage_is_told_once_and_its_end_once(
    store: Store, retry: Retry, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    store.plan = iter([AWAY] * 5)
    retry(store.read)
    warning, info = caplog.records
    assert (warning.levelname, info.levelname) == ("WARNING", "INFO")
    message = warning.getMessage()
    assert message.startswith("Store failed")
    assert "60 s" in message
    assert "The store cannot be reached. Check the network." in message
    assert "works again" in info.getMessage()


def test_an_outage_that_lasts_is_told_as_such(
    store: Store, retry: Retry, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    store.plan = repeat(AWAY)
    for _ in range(2):
        with pytest.raises(TransientError):
            retry(store.read)
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


def test_threads_that_wait_together_are_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    back = threading.Event()
    all_wait = threading.Barrier(9)
    entered = threading.local()

    def read() -> bytes:
        if not back.is_set():
            raise AWAY
        return b""

    def sleep(seconds: float) -> None:
        if not hasattr(entered, "done"):
            entered.done = True
            all_wait.wait(10)
            back.wait(10)

    retry = Retry("Store", TIMEOUT, sleep=sleep)
    threads = [threading.Thread(target=retry, args=(read,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    all_wait.wait(10)
    back.set()
    for thread in threads:
        thread.join(10)
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_a_child_forked_in_the_middle_of_an_outage_waits_by_itself(
    store: Store, time: Time
) -> None:
    children: list[int] = []

    def sleep(seconds: float) -> None:
        time.sleep(seconds)
        if children:
            return
        # Just as another thread tells the log: its guard is never released in the child.
        with retry._guard:
            children.append(os.fork())
            if children == [0]:
                signal.alarm(10)
                store.plan = iter([AWAY] * 3)
                os._exit(0 if retry(store.read) == b"read" else 1)

    retry = Retry("Store", TIMEOUT, sleep=sleep, clock=time.clock)
    store.plan = chain([AWAY, AWAY])
    retry(store.read)
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
