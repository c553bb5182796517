"""A queue with priorities, kept in memory."""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import monotonic

DEFAULT_PRIORITY = 10
"""Lower numbers are handed out first."""


class Full(Exception):
    """The queue can take no more jobs."""


@dataclass(order=True, frozen=True)
class _Entry:
    priority: int
    number: int
    job: Callable[[], None] = field(compare=False)


class Queue:
    """Hands out jobs by priority, and among equal ones in the order in which they came.

    Safe to use from several threads.
    """

    def __init__(self, name: str, maxsize: int = 0) -> None:
        if maxsize < 0:
            raise ValueError(f"maxsize is {maxsize}; 0 means no limit")
        self.name = name
        self._maxsize = maxsize
        self._entries: list[_Entry] = []
        self._number = 0
        self._changed = threading.Condition()

    def __len__(self) -> int:
        with self._changed:
            return len(self._entries)

    def put(self, job: Callable[[], None], *, priority: int = DEFAULT_PRIORITY) -> None:
        """Add a job. Raises ``Full`` when the queue holds as many as it may."""
        with self._changed:
            if self._maxsize and len(self._entries) >= self._maxsize:
                raise Full(f"{self.name} holds {self._maxsize} jobs")
            heapq.heappush(self._entries, _Entry(priority, self._number, job))
            self._number += 1
            self._changed.notify()

    def get(self, timeout: float | None = None) -> Callable[[], None] | None:
        """Take out the next job; None after ``timeout`` seconds without one."""
        until = None if timeout is None else monotonic() + timeout
        with self._changed:
            while not self._entries:
                left = None if until is None else until - monotonic()
                if left is not None and left <= 0:
                    return None
                self._changed.wait(left)
            return heapq.heappop(self._entries).job


def drain(queue: Queue) -> Iterator[Callable[[], None]]:
    """Take out jobs until the queue is empty.

    Jobs that are put meanwhile are handed out too.
    """
    while (job := queue.get(timeout=0)) is not None:
        yield job


def run_all(queue: Queue, *, on_error: Callable[[Exception], None]) -> int:
    """Run every job of the queue and return how many ran without an error."""
    done = 0
    for job in drain(queue):
        try:
            job()
        except Exception as error:
            on_error(error)
        else:
            done += 1
    return done
