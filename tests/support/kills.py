"""Ports that die before a chosen write: what SIGKILL does to a process, write by write.

To die after one is to die before the next, and to die at a call that only reads too.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fakes.ledger import PARTS

READS = frozenset({
    "aliases", "aliases_by_uri", "aliases_of", "all", "audits", "blocking", "built_under", "by_failed",
    "by_id", "by_raw", "by_text", "by_uri", "chunks", "count", "count_points",
    "count_sections", "counts", "dimension", "entries", "epoch", "events", "events_of", "exists",
    "generations", "get", "get_points", "get_sections", "get_vectors", "incomplete", "is_locked", "keys",
    "lines", "live", "live_sections", "lock", "lock_documents", "epochs", "names", "of", "outside",
    "pending", "raw_in_use", "raw_references", "read", "recent", "restorable", "running", "scan_points",
    "scan_sections", "search", "sections", "session", "state", "stream",
})  # fmt: skip


class KilledError(BaseException):
    """Stands in for SIGKILL: nothing may catch it and go on."""


class Fuse:
    """Burns before the write that is chosen, None for never; ``ticks`` counts them."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.ticks = 0

    def tick(self) -> None:
        if self.ticks == self.at:
            raise KilledError(f"killed before write {self.ticks}")
        self.ticks += 1


class Killing:
    """A port whose writes burn the fuse."""

    def __init__(self, inner: Any, fuse: Fuse) -> None:
        self._inner = inner
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if name in PARTS and not callable(value):
            return type(self)(value, self._fuse)
        if not callable(value) or name in READS:
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            self._fuse.tick()
            return value(*args, **kwargs)

        return call


def killed(work: Callable[[Fuse], object], at: int | None) -> int:
    """Do some work that dies before a write; how many it came to."""
    fuse = Fuse(at)
    with suppress(KilledError):
        work(fuse)
    return fuse.ticks
