import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from time import monotonic

import pytest

from tidemark.adapters.website_politeness import HostGate, StoppedError, backoff, retry_after

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_it_lets_only_so_many_through_at_once() -> None:
    gate = HostGate(2, 0, threading.Event())
    inside, most, lock = 0, 0, threading.Lock()
    together = threading.Barrier(2, timeout=5)

    def visit() -> None:
        nonlocal inside, most
        with gate.turn():
            with lock:
                inside += 1
                most = max(most, inside)
            together.wait()
            with lock:
                inside -= 1

    with ThreadPoolExecutor(6) as pool:
        for visited in [pool.submit(visit) for _ in range(6)]:
            visited.result()
    assert most == 2


def test_it_keeps_starts_apart() -> None:
    gate = HostGate(4, 0.05, threading.Event())
    starts = []
    for _ in range(3):
        with gate.turn():
            starts.append(monotonic())
    assert starts[2] - starts[0] >= 0.099


def test_a_crawl_delay_only_ever_slows_it_down() -> None:
    gate = HostGate(1, 0.05, threading.Event())
    gate.slow_down(0.001)
    started = monotonic()
    for _ in range(2):
        with gate.turn():
            pass
    assert monotonic() - started >= 0.05


def test_nobody_waits_on_when_the_crawl_ends() -> None:
    stop = threading.Event()
    gate = HostGate(1, 0, stop)
    gate.pause(60)
    threading.Timer(0.02, stop.set).start()
    started = monotonic()
    with pytest.raises(StoppedError), gate.turn():
        pass
    assert monotonic() - started < 5


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120.0),
        ("Thu, 01 Jan 2026 00:00:30 GMT", 30.0),
        ("Wed, 31 Dec 2025 00:00:00 GMT", 0.0),
        ("soon", None),
        ("-5", None),
        ("", None),
        (None, None),
    ],
)
def test_it_reads_when_to_come_back(header: str | None, seconds: float | None) -> None:
    assert retry_after(header, NOW) == seconds


def test_each_retry_waits_longer_up_to_a_bound() -> None:
    assert 0.3 < backoff(0, 0.5) < backoff(2, 0.5) < backoff(4, 0.5)
    assert backoff(50, 0.5) <= 30 * 1.25
    assert backoff(3, 0) == 0
