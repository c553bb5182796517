"""How often and how many at once: per host, shared by the threads that fetch."""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from time import monotonic

MAX_CRAWL_DELAY = 60.0
"""Seconds. A longer Crawl-delay would make a crawl last for weeks; it is obeyed up to here."""
MAX_RETRY_AFTER = 120.0
"""Seconds. A server that asks for more is left until the next run."""
_MAX_BACKOFF = 30.0


class StoppedError(Exception):
    """The crawl is being ended: whoever waits goes home."""


class HostGate:
    """Lets requests to one host through: so many at once, so far apart, none while it wants quiet."""

    def __init__(self, concurrency: int, delay: float, stop: threading.Event) -> None:
        self._slots = threading.BoundedSemaphore(concurrency)
        self._lock = threading.Lock()
        self._delay = delay
        self._next = 0.0
        self._stop = stop

    def slow_down(self, delay: float) -> None:
        """Keep at least ``delay`` seconds between two starts (Crawl-delay)."""
        with self._lock:
            self._delay = max(self._delay, min(delay, MAX_CRAWL_DELAY))
            self._next = max(self._next, monotonic() + self._delay)

    def pause(self, seconds: float) -> None:
        """Let no request start for so long (Retry-After)."""
        with self._lock:
            self._next = max(self._next, monotonic() + seconds)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn and hold it. Raises ``StoppedError`` when the crawl ends meanwhile."""
        with self._slots:
            while (wait := self._claim()) > 0:
                self.sleep(wait)
            if self._stop.is_set():
                raise StoppedError
            yield

    def sleep(self, seconds: float) -> None:
        """Raises ``StoppedError`` when the crawl ends meanwhile."""
        if self._stop.wait(seconds):
            raise StoppedError

    def _claim(self) -> float:
        """Take the next start if it is now; else how many seconds to wait before asking again."""
        with self._lock:
            now = monotonic()
            if now < self._next:
                return self._next - now
            self._next = now + self._delay
            return 0.0


def retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Seconds that a Retry-After header asks for, None without a usable one."""
    if not value:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    return max(0.0, (at - (now or datetime.now(UTC))).total_seconds())


def backoff(attempt: int, base: float) -> float:
    """Seconds before retry ``attempt`` (from 0): doubled each time, with jitter, bounded."""
    spread = 0.75 + random.random() / 2  # noqa: S311 - spreads load, guards nothing
    return min(_MAX_BACKOFF, base * 2.0**attempt) * spread
