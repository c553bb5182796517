"""A folder of embedded collections that many processes share, each opening it for a short time.

The engine lets one process hold a collection and turns all others away. Here they wait instead: a
lock file is taken first, collections are opened under it, and all of them are flushed and closed before
it is let go. A process that dies lets go of the lock by dying.
"""

import contextlib
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, TypeVar, cast
from weakref import WeakValueDictionary

from filelock import FileLock, Timeout

from tidemark.domain.errors import TidemarkError, TransientError

log = logging.getLogger(__name__)

PATIENCE = 2.0
"""Seconds of waiting after which one line of the log says who is waited for."""

POLL = 0.02
"""Seconds between two looks at a lock that another process holds."""


class Collection(Protocol):
    """Something open that belongs to the holder of the lock."""

    def close(self) -> None:
        """Make every write durable and let go of the files."""


C = TypeVar("C", bound=Collection)


class EdgeFolder:
    """The lock of one index in one folder, and what is open under it, for all threads of this process.

    Get it by `at`: two objects for the same index in one process would wait for each other for ever.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self._lock_path = folder / f"{name}.lock"
        self._holder_path = folder / f"{name}.holder"
        self.guard = threading.RLock()
        """Taken around every use of a collection: one thread at a time, and none while forking."""
        self._lock: FileLock | None = None
        self._depth = 0
        self._open: dict[str, Collection] = {}
        self._epoch = 0

    @classmethod
    def at(cls, folder: Path, name: str) -> "EdgeFolder":
        """The process's one object for this index. Creates the folder."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TransientError(
                f"The index folder {folder} cannot be made: {error}.",
                "Free space or set TIDEMARK_HOME to a folder that can be written.",
            ) from error
        key = (str(folder.resolve()), name)
        with _folders_guard:
            return _folders.setdefault(key, cls(folder, name))

    @contextlib.contextmanager
    def session(self, timeout: float) -> Iterator[None]:
        """Hold the lock; collections opened inside stay open until the outermost session ends.

        timeout: seconds to wait for other processes, then ``TransientError``.
        """
        with self.guard:
            if self._depth == 0:
                self._lock = self._acquire(timeout)
            self._depth += 1
            epoch = self._epoch
        try:
            yield
        finally:
            with self.guard:
                # In a child forked inside the session, the session is the parent's to end.
                if epoch == self._epoch:
                    self._depth -= 1
                    if self._depth == 0:
                        self._release()

    def opened(self, name: str, load: Callable[[], C]) -> C:
        """The collection of this name, loaded if it is not open. Only inside a session."""
        if name not in self._open:
            self._open[name] = load()
        return cast(C, self._open[name])

    def close(self, name: str) -> None:
        """Close one collection, if open. Only inside a session."""
        collection = self._open.pop(name, None)
        if collection is not None:
            collection.close()

    def _acquire(self, timeout: float) -> FileLock:
        # Not thread-local, as threads share the session and any of them may be the last to leave it.
        lock = FileLock(self._lock_path, thread_local=False, poll_interval=POLL)
        started = time.monotonic()
        try:
            try:
                lock.acquire(timeout=min(PATIENCE, timeout))
            except Timeout:
                if timeout > PATIENCE:
                    log.warning(
                        "Waiting up to %g s for %s, which has the index in %s open",
                        timeout,
                        self._holder(),
                        self.folder,
                    )
                lock.acquire(timeout=max(0.0, timeout - (time.monotonic() - started)))
        except Timeout as error:
            raise TransientError(
                f"The index in {self.folder} is held by {self._holder()}; "
                f"it was waited for {timeout:g} s.",
                "Let it finish, or end it if it hangs, then try again; "
                "a Qdrant server serves many at once.",
            ) from error
        except OSError as error:
            raise TransientError(
                f"The lock {self._lock_path} cannot be taken: {error}.",
                "Check that the folder can be written and is on a local disk.",
            ) from error
        with contextlib.suppress(OSError):
            program = Path(sys.argv[0]).name.lstrip("-") if sys.argv else ""
            holder = {"process": os.getpid(), "program": program, "since": round(time.time())}
            self._holder_path.write_text(json.dumps(holder) + "\n")
        return lock

    def _holder(self) -> str:
        try:
            holder = json.loads(self._holder_path.read_text())
            since = datetime.fromtimestamp(holder["since"], UTC)
            program = f" ({holder['program']})" if holder["program"] else ""
            return f"process {holder['process']}{program} since {since:%Y-%m-%d %H:%M:%S} UTC"
        except (OSError, ValueError, KeyError, TypeError, OverflowError):
            return "another process"

    def _release(self) -> None:
        try:
            self._close_all()
        finally:
            lock, self._lock = self._lock, None
            if lock is not None:
                lock.release()

    def _close_all(self) -> None:
        with contextlib.ExitStack() as closing:
            for collection in self._open.values():
                closing.callback(collection.close)
            self._open.clear()

    def before_fork(self) -> None:
        """Leave nothing open for a child: it would keep the files, and hang on their threads."""
        self.guard.acquire()
        try:
            self._close_all()
        except TidemarkError:
            log.exception("The index in %s could not be closed before a fork", self.folder)

    def after_fork_in_parent(self) -> None:
        self.guard.release()

    def after_fork_in_child(self) -> None:
        """Start as if nothing had been opened; filelock has closed the child's copy of the lock."""
        self._lock = None
        self._depth = 0
        self._epoch += 1
        self.guard.release()


_folders: WeakValueDictionary[tuple[str, str], EdgeFolder] = WeakValueDictionary()
_folders_guard = threading.Lock()
_forking: list[EdgeFolder] = []


def _before_fork() -> None:
    _folders_guard.acquire()
    _forking.extend(_folders.values())
    for folder in _forking:
        folder.before_fork()


def _after_fork_in_parent() -> None:
    while _forking:
        _forking.pop().after_fork_in_parent()
    _folders_guard.release()


def _after_fork_in_child() -> None:
    while _forking:
        _forking.pop().after_fork_in_child()
    _folders_guard.release()


os.register_at_fork(
    before=_before_fork,
    after_in_parent=_after_fork_in_parent,
    after_in_child=_after_fork_in_child,
)
