import asyncio
from datetime import UTC, datetime
from time import monotonic

import pytest

from tidemark.adapters.sources.website.http import HostGate, backoff, retry_after

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_it_lets_only_so_many_through_at_once() -> None:
    async def visits() -> int:
        gate = HostGate(2, 0)
        inside, most = 0, 0

        async def visit() -> None:
            nonlocal inside, most
            async with gate.turn():
                inside += 1
                most = max(most, inside)
                await asyncio.sleep(0.001)
                inside -= 1

        await asyncio.gather(*(visit() for _ in range(6)))
        return most

    assert asyncio.run(visits()) == 2


async def starts(gate: HostGate, count: int) -> list[float]:
    times = []
    for _ in range(count):
        async with gate.turn():
            times.append(monotonic())
    return times


def test_it_keeps_starts_apart() -> None:
    times = asyncio.run(starts(HostGate(4, 0.05), 3))
    assert times[2] - times[0] >= 0.099


def test_a_crawl_delay_only_ever_slows_it_down() -> None:
    gate = HostGate(1, 0.05)
    gate.slow_down(0.001)
    started = monotonic()
    asyncio.run(starts(gate, 2))
    assert monotonic() - started >= 0.05


def test_a_host_that_wants_quiet_gets_it_from_those_who_wait_already() -> None:
    async def waited() -> float:
        gate = HostGate(4, 0.05)
        await starts(gate, 1)
        waiting = asyncio.create_task(starts(gate, 1))
        await asyncio.sleep(0.01)
        started = monotonic()
        gate.pause(0.15)
        await waiting
        return monotonic() - started

    assert asyncio.run(waited()) >= 0.15


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


def test_those_that_failed_together_do_not_come_back_together() -> None:
    waits = {backoff(2, 0.5) for _ in range(100)}
    assert len(waits) > 90
    assert max(waits) - min(waits) > 0.5
