"""Calls that wait for a store that is away: until when, how often, what is said, and what must not wait."""

import logging
import os
import pickle
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import get_type_hints
from uuid import UUID, uuid4

import pytest

from fakes.artifacts import MemoryArtifacts
from tidemark.adapters.retry import UNTOUCHED, retrying
from tidemark.domain.errors import LockLostError, PermanentError, SourceBusyError, TransientError
from tidemark.ports import ArtifactStore, Ledger, VectorIndex

AWAY = TransientError("The store cannot be reached.", "Check the network.")
PATIENCE = 60.0


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


@dataclass
class Store(MemoryArtifacts):
    """A store whose calls raise what is planned before they work, and count."""

    plan: list[Exception] = field(default_factory=list)
    calls: int = 0
    closed: int = 0

    def __post_init__(self) -> None:
        MemoryArtifacts.__init__(self)

    def _called(self) -> None:
        self.calls += 1
        if self.plan:
            raise self.plan.pop(0)

    def read(self, key: str) -> bytes:
        self._called()
        return super().read(key)

    def write(self, key: str, data: bytes) -> None:
        # Carried out, though the answer is lost.
        super().write(key, data)
        self._called()

    def keys(self, prefix: str = "") -> Iterator[str]:
        self._called()
        try:
            for key in super().keys(prefix):
                yield key
                if "broken" in key:
                    raise AWAY
        finally:
            self.closed += 1

    @contextmanager
    def writer(self, key: str) -> Iterator["Lines"]:
        self._called()
        yield Lines()


class Lines:
    def line(self, text: str) -> None: ...


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def store() -> Store:
    store = Store()
    for key in ("a", "b", "c"):
        store.write(key, key.encode())
    store.calls = 0
    return store


def patient(store: Store, time: Time, patience: float = PATIENCE) -> ArtifactStore:
    return retrying(store, patience, sleep=time.sleep, clock=time.clock)


def test_a_call_is_made_again_until_the_store_is_back(store: Store, time: Time) -> None:
    store.plan = [AWAY] * 4
    assert patient(store, time).read("a") == b"a"
    assert store.calls == 5
    assert len(time.slept) == 4


def test_a_call_that_works_costs_no_second_one_and_no_wait(store: Store, time: Time) -> None:
    assert patient(store, time).read("a") == b"a"
    assert (store.calls, time.slept) == (1, [])


def test_waits_grow_are_spread_at_random_and_bounded(store: Store) -> None:
    schedules = []
    for _ in range(20):
        time = Time()
        store.plan = [AWAY] * 10
        patient(store, time, patience=10_000).read("a")
        schedules.append(time.slept)
    assert all(0.05 <= wait <= 5.0 for waits in schedules for wait in waits)
    assert all(waits[0] <= 0.2 and waits[1] <= 0.4 for waits in schedules)
    mean = [sum(waits[n] for waits in schedules) / len(schedules) for n in range(10)]
    assert mean[0] < mean[3] < mean[6]
    assert len({waits[5] for waits in schedules}) == len(schedules)


def test_the_last_error_is_raised_when_patience_is_over_and_not_before(
    store: Store, time: Time
) -> None:
    last = TransientError("Still away.")
    began = time.now

    def endless() -> Iterator[Exception]:
        while True:
            yield AWAY if time.now < began + PATIENCE else last

    errors = endless()
    store._called = lambda: (_ for _ in ()).throw(next(errors))  # type: ignore[method-assign]
    with pytest.raises(TransientError) as raised:
        patient(store, time).read("a")
    assert raised.value is last
    assert time.now == pytest.approx(began + PATIENCE)


def test_a_try_that_took_all_the_patience_is_the_only_one(store: Store, time: Time) -> None:
    def slow() -> None:
        store.calls += 1
        time.now += 120
        raise AWAY

    store._called = slow  # type: ignore[method-assign]
    with pytest.raises(TransientError):
        patient(store, time).read("a")
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
def test_an_error_that_will_not_pass_is_raised_at_once(
    store: Store, time: Time, error: Exception
) -> None:
    store.plan = [error]
    with pytest.raises(type(error)):
        patient(store, time).read("a")
    assert (store.calls, time.slept) == (1, [])


def test_an_error_that_will_not_pass_ends_the_waiting(store: Store, time: Time) -> None:
    for error in (PermanentError("The disk is full."), LockLostError("It was lost on the way.")):
        store.calls, store.plan = 0, [AWAY, error]
        with pytest.raises(type(error)):
            patient(store, time).read("a")
        assert store.calls == 2


def test_a_write_whose_answer_was_lost_counts_once(store: Store, time: Time) -> None:
    store.plan = [AWAY]
    patient(store, time).write("d", b"d")
    assert sorted(store.keys()) == ["a", "b", "c", "d"]


def test_without_patience_it_is_the_port_itself(store: Store) -> None:
    assert retrying(store, 0) is store


def test_a_scan_waits_for_its_first_item(store: Store, time: Time) -> None:
    store.plan = [AWAY, AWAY]
    assert sorted(patient(store, time).keys()) == ["a", "b", "c"]
    assert store.calls == 3


def test_a_scan_of_nothing_waits_for_its_end(store: Store, time: Time) -> None:
    store.plan = [AWAY]
    assert list(patient(store, time).keys("none")) == []
    assert store.calls == 2


def test_a_scan_asks_for_nothing_before_it_is_read(store: Store, time: Time) -> None:
    patient(store, time).keys()
    assert store.calls == 0


def test_a_scan_that_breaks_on_the_way_is_not_taken_up_again(store: Store, time: Time) -> None:
    store.write("broken", b"")
    scan = patient(store, time).keys("broken")
    assert next(scan) == "broken"
    with pytest.raises(TransientError):
        next(scan)
    assert time.slept == []


def test_a_scan_that_is_left_is_closed_at_once(store: Store, time: Time) -> None:
    scan = patient(store, time).keys()
    next(scan)
    assert store.closed == 0
    scan.close()  # type: ignore[attr-defined]
    assert store.closed == 1


def test_an_iterator_that_cannot_be_closed_is_fine(time: Time) -> None:
    class Listing(Store):
        def keys(self, prefix: str = "") -> Iterator[str]:
            return iter(["a", "b"])

    assert list(patient(Listing(), time).keys()) == ["a", "b"]


def test_what_is_entered_passes_through_untouched(store: Store, time: Time) -> None:
    store.plan = [AWAY]
    with pytest.raises(TransientError), patient(store, time).writer("d"):
        pytest.fail("it was entered")
    assert (store.calls, time.slept) == (1, [])


@pytest.mark.parametrize("port", [VectorIndex, Ledger, ArtifactStore])
def test_every_call_that_gives_a_context_is_known(port: type) -> None:
    entered = {
        name
        for name, member in vars(port).items()
        if not name.startswith("_")
        and str(get_type_hints(member)["return"]).find(AbstractContextManager.__name__) >= 0
    }
    assert entered <= UNTOUCHED | {"lock_documents"}
    assert entered


class Documents:
    """The part of a ledger that has to do with locks of documents."""

    def __init__(self) -> None:
        self.plan: list[Exception] = []
        self.under_locks: list[Exception] = []
        self.said: list[str] = []
        self.lost = False

    def _called(self, name: str) -> None:
        self.said.append(name)
        if self.plan:
            raise self.plan.pop(0)

    @contextmanager
    def lock_documents(self, document_ids: Sequence[UUID]) -> Iterator[None]:
        self._called(f"lock {len(document_ids)}")
        self.plan, self.under_locks = self.under_locks, []
        try:
            yield
            if self.lost:
                raise TransientError("The locks were lost on the way.")
        finally:
            self.said.append("free")

    def begun(self, document_ids: Sequence[UUID]) -> set[UUID]:
        self._called("begun")
        return set()

    def in_flight(self, source: str) -> Iterator[str]:
        self._called("in flight")
        yield "one"


@pytest.fixture
def documents() -> Documents:
    return Documents()


@pytest.fixture
def ledger(documents: Documents, time: Time) -> Ledger:
    return retrying(documents, PATIENCE, sleep=time.sleep, clock=time.clock)  # type: ignore[type-var]


def test_getting_the_locks_of_documents_waits(documents: Documents, ledger: Ledger) -> None:
    documents.plan = [AWAY]
    with ledger.lock_documents([uuid4()]):
        ledger.begun([])
    assert documents.said == ["lock 1", "lock 1", "begun", "free"]


def test_an_outage_of_the_ledger_under_locks_of_documents_ends_the_block_at_once(
    documents: Documents, ledger: Ledger, time: Time
) -> None:
    documents.under_locks = [AWAY]
    with pytest.raises(TransientError), ledger.lock_documents([uuid4()]):
        ledger.begun([])
    assert documents.said == ["lock 1", "begun", "free"]
    assert time.slept == []


def test_a_scan_of_the_ledger_under_locks_of_documents_does_not_wait_either(
    documents: Documents, ledger: Ledger, time: Time
) -> None:
    documents.under_locks = [AWAY]
    with pytest.raises(TransientError), ledger.lock_documents([uuid4()]):
        list(ledger.in_flight("site"))
    assert time.slept == []


def test_after_the_block_calls_wait_again(documents: Documents, ledger: Ledger) -> None:
    documents.under_locks = [AWAY]
    with pytest.raises(TransientError), ledger.lock_documents([]):
        ledger.begun([])
    documents.plan = [AWAY]
    assert ledger.begun([]) == set()


def test_another_thread_waits_meanwhile(documents: Documents, ledger: Ledger) -> None:
    documents.under_locks = [AWAY]
    with ledger.lock_documents([]):
        other = threading.Thread(target=ledger.begun, args=([],))
        other.start()
        other.join(10)
    assert documents.said.count("begun") == 2


def test_locks_that_were_lost_are_told_at_the_end(documents: Documents, ledger: Ledger) -> None:
    documents.lost = True
    with pytest.raises(TransientError, match="lost"), ledger.lock_documents([]):
        pass
    assert documents.said == ["lock 0", "free"]


def test_an_outage_is_told_once_and_its_end_once(
    store: Store, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    store.plan = [AWAY] * 5
    patient(store, time).read("a")
    warning, info = caplog.records
    assert (warning.levelname, info.levelname) == ("WARNING", "INFO")
    said = warning.getMessage()
    assert "Store.read" in said
    assert "60 s" in said
    assert "The store cannot be reached. Check the network." in said
    assert "works again" in info.getMessage()


def test_an_outage_that_lasts_is_told_as_such(
    store: Store, time: Time, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    for _ in range(2):
        store.plan = [AWAY] * 1_000
        with pytest.raises(TransientError):
            patient(store, time).read("a")
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING"]


def test_threads_that_wait_together_are_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    away = threading.Event()
    all_wait = threading.Barrier(9)

    class Shared(Store):
        def read(self, key: str) -> bytes:
            if not away.is_set():
                raise AWAY
            return b""

    entered = threading.local()

    def sleep(seconds: float) -> None:
        if not hasattr(entered, "done"):
            entered.done = True
            all_wait.wait(10)
            away.wait(10)

    port: ArtifactStore = retrying(Shared(), PATIENCE, sleep=sleep)
    threads = [threading.Thread(target=port.read, args=("a",)) for _ in range(8)]
    for thread in threads:
        thread.start()
    all_wait.wait(10)
    away.set()
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
        with port._outage._guard:  # type: ignore[attr-defined]
            children.append(os.fork())
            if children == [0]:
                signal.alarm(10)
                store.plan = [AWAY] * 3
                os._exit(0 if port.read("a") == b"a" else 1)

    port: ArtifactStore = retrying(store, PATIENCE, sleep=sleep, clock=time.clock)
    store.plan = [AWAY] * 2
    port.read("a")
    assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0


def test_what_is_no_call_passes_through(time: Time) -> None:
    class Named(Store):
        url = "memory:"

    assert patient(Named(), time).url == "memory:"  # type: ignore[attr-defined]


def test_copying_it_does_not_go_round_for_ever(store: Store, time: Time) -> None:
    with pytest.raises((TypeError, AttributeError, pickle.PicklingError)):
        pickle.dumps(patient(store, time))
