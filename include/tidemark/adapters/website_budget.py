"""How much may be fetched ahead of whoever consumes a crawl."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

MAX_HELD_BYTES = 32_000_000
"""Of bodies fetched and not yet handed on, beside those of the requests under way."""


class Permit(Protocol):
    """Asked at the last moment before a request is sent."""

    def given(self) -> bool: ...

    async def changed(self) -> None:
        """Wait until it is worth asking again."""


class Budget:
    """Counts bodies in and out. Visits are numbered in the order of asking, from 0.

    The oldest visit that is not yet handed on always goes ahead: all others may be waiting for it. What
    is fetched is counted in the event loop, what is handed on where the crawl is consumed.
    """

    def __init__(
        self, call_soon: Callable[[Callable[[], None]], object], limit: int = MAX_HELD_BYTES
    ) -> None:
        self._call_soon = call_soon
        self._limit = limit
        self._fetched = 0
        self._handed_on = 0
        self._visits = 0
        self._waiting = 0
        self._freed = asyncio.Event()

    def fetched(self, size: int) -> None:
        """In the loop: so many bytes are held from now on."""
        self._fetched += size

    def handed_on(self, size: int) -> None:
        """In the consumer: the oldest visit is done, and so many bytes with it."""
        self._handed_on += size
        self._visits += 1
        # Read after the counts were written, as ``wait`` does the other way round: no wake-up gets lost.
        if self._waiting:
            self._call_soon(self._freed.set)

    def allows(self, number: int) -> bool:
        """May this visit send its request now?"""
        return self._fetched - self._handed_on < self._limit or number <= self._visits

    async def wait(self, number: int) -> None:
        """In the loop: wait until the visit may go ahead."""
        self._waiting += 1
        try:
            while not self.allows(number):
                self._freed.clear()
                await self._freed.wait()
        finally:
            self._waiting -= 1

    def permit(self, number: int) -> "Permit":
        """What one visit's requests ask."""
        return _Numbered(self, number)


@dataclass(frozen=True, slots=True)
class _Numbered:
    budget: Budget
    number: int

    def given(self) -> bool:
        return self.budget.allows(self.number)

    async def changed(self) -> None:
        await self.budget.wait(self.number)
