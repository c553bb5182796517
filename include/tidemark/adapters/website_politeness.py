"""How often and how many at once: per host, shared by all that fetch in one event loop."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from time import monotonic

MAX_CRAWL_DELAY = 60.0
"""Seconds. A longer Crawl-delay would make a crawl last for weeks; it is obeyed up to here."""
MAX_RETRY_AFTER = 120.0
"""Seconds. A server that asks for more is left until the next run."""
_MAX_BACKOFF = 30.0


class HostGate:
    """Lets requests to one host through: so many at once, so far apart, none while it wants quiet."""

    def __init__(self, concurrency: int, delay: float) -> None:
        self._slots = asyncio.Semaphore(concurrency)
        self._delay = delay
        self._next = 0.0

    def slow_down(self, delay: float) -> None:
        """Keep at least ``delay`` seconds between two starts (Crawl-delay)."""
        self._delay = max(self._delay, min(delay, MAX_CRAWL_DELAY))
        self._next = max(self._next, monotonic() + self._delay)

    def pause(self, seconds: float) -> None:
        """Let no request start for so long (Retry-After)."""
        self._next = max(self._next, monotonic() + seconds)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn and hold it."""
        async with self._slots:
            # Whoever waits is not woken: the time may be put off meanwhile, never brought forward.
            while (wait := self._claim()) > 0:  # noqa: ASYNC110
                await asyncio.sleep(wait)
            yield

    def _claim(self) -> float:
        """Take the next start if it is now; else how many seconds to wait before asking again."""
        now = monotonic()
        if now < self._next:
            return self._next - now
        self._next = now + self._delay
        return 0.0


def http_date(value: str | None) -> datetime | None:
    """The time that an HTTP date names (UTC), None for none and for what is no date."""
    if not value:
        return None
    try:
        at = parsedate_to_datetime(value.strip())
    except ValueError:
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Seconds that a Retry-After header asks for, None without a usable one."""
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    at = http_date(text)
    return None if at is None else max(0.0, (at - (now or datetime.now(UTC))).total_seconds())


def backoff(attempt: int, base: float) -> float:
    """Seconds before retry ``attempt`` (from 0): doubled each time, with jitter, bounded."""
    spread = 0.75 + random.random() / 2  # noqa: S311 - spreads load, guards nothing
    return min(_MAX_BACKOFF, base * 2.0**attempt) * spread
