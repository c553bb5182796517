"""The locks of the ledger in memory: threads may share them, and one thread may hold many."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Condition
from uuid import UUID

from tidemark.adapters.lock_waiting import wait_for_source
from tidemark.domain.errors import TransientError


class MemoryLocks:
    """Who holds which source and which documents.

    lock_seconds: how long documents are waited for.
    """

    def __init__(self, lock_seconds: float) -> None:
        self._lock_seconds = lock_seconds
        # By source, how many hold it for which run; None stands for one that holds it alone.
        self._held: dict[str, Counter[str | None]] = {}
        self._written: set[UUID] = set()
        self._changed = Condition()

    def __deepcopy__(self, memo: object) -> "MemoryLocks":
        """A copy of a ledger is held by nobody."""
        return MemoryLocks(self._lock_seconds)

    @contextmanager
    def source(self, source: str, run_id: str | None, wait_seconds: float) -> Iterator[None]:
        wait_for_source(lambda: self._take(source, run_id), source, wait_seconds)
        try:
            yield
        finally:
            with self._changed:
                held = self._held[source]
                held[run_id] -= 1
                if not held[run_id]:
                    del self._held[source]

    def is_held(self, source: str) -> bool:
        with self._changed:
            return source in self._held

    def _take(self, source: str, run_id: str | None) -> str | None:
        with self._changed:
            held = self._held.get(source)
            if held is not None and (run_id is None or set(held) != {run_id}):
                runs = ", ".join(sorted(run for run in held if run is not None))
                return f"the run {runs} in this process" if runs else "this process"
            self._held.setdefault(source, Counter())[run_id] += 1
            return None

    @contextmanager
    def documents(self, document_ids: Sequence[UUID]) -> Iterator[None]:
        wanted = set(document_ids)
        with self._changed:
            free = self._changed.wait_for(
                lambda: self._written.isdisjoint(wanted), self._lock_seconds
            )
            if not free:
                raise TransientError(
                    f"Another run has been writing one of {len(wanted)} documents for "
                    f"{self._lock_seconds:.0f} s.",
                    "Try again when it has ended.",
                )
            self._written |= wanted
        try:
            yield
        finally:
            with self._changed:
                self._written -= wanted
                self._changed.notify_all()
