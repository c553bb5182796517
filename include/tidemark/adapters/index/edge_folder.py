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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol, TypeVar, cast
from weakref import WeakValueDictionary

from filelock import FileLock, Timeout
from qdrant_edge import (
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    HnswIndexConfig,
    Memory,
    Modifier,
)

from tidemark.adapters.index.layout import DENSE, LEXICAL
from tidemark.domain.errors import TidemarkError, TransientError

log = logging.getLogger(__name__)

FIRST_LINE = 2.0
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
                lock.acquire(timeout=min(FIRST_LINE, timeout))
            except Timeout:
                if timeout > FIRST_LINE:
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


# The small files beside an embedded collection, replaced so that a kill leaves them whole.


@dataclass(frozen=True, slots=True)
class CollectionFile:
    """FOLDER/COLLECTION/collection.json: what the engine's own files do not say.

    dimension: of its dense vectors, None for sections and when it is not known.
    embed_fingerprint: what its vectors are made by, "" when that is not known.
    settings: those that the engine was last opened with; empty when that is not known.
    """

    dimension: int | None = None
    embed_fingerprint: str = ""
    settings: Mapping[str, str | int] = field(default_factory=dict)

    @classmethod
    def read(cls, collection: Path) -> "CollectionFile":
        """What is known of it: a file of an older Tidemark, or a damaged one, says less."""
        with local_files(collection):
            try:
                stored = json.loads(_path(collection).read_bytes())
            except (FileNotFoundError, ValueError):
                return cls()
        if not isinstance(stored, dict):
            return cls()
        dimension, built_under, settings = (
            stored.get(key) for key in ("dimension", "embed_fingerprint", "settings")
        )
        return cls(
            dimension if isinstance(dimension, int) else None,
            built_under if isinstance(built_under, str) else "",
            settings if isinstance(settings, dict) else {},
        )

    def write(self, collection: Path) -> None:
        replace_file(
            _path(collection),
            json.dumps(
                {
                    "dimension": self.dimension,
                    "embed_fingerprint": self.embed_fingerprint,
                    "settings": dict(self.settings),
                }
            ),
        )


def _path(collection: Path) -> Path:
    return collection / "collection.json"


@contextmanager
def local_files(path: Path) -> Iterator[None]:
    """Translate what goes wrong with files, into ``TransientError``."""
    try:
        yield
    except OSError as error:
        raise TransientError(
            f"The index files in {path} cannot be used: {error}.",
            "Check the disk, its free space and the owner of the folder.",
        ) from error


def replace_file(path: Path, text: str) -> None:
    """Replace a small file as a whole; the new text is on the disk when this returns."""
    with local_files(path):
        fresh = path.with_name(f".{path.name}.new")
        with fresh.open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


# How an embedded collection is set up.
#
# - No graph is built: it took 28 CPU-seconds for 20,000 points to bring a query from 4.4 to 2.0 ms.
# Search is exact; past some 200,000 points a server is the better home.
# - Closing offers the engine to tidy up: 0.1 ms when there is nothing to do. It seals what has grown
# past SEAL_KB into files that need no building when opened (40,000 points: 0.15 s to open, not 0.45 s;
# 3.5 s of work once) and drops the dead when they are a fifth. A kill in the middle loses nothing.

SEAL_KB = 16_000
"""Size in KB of the vectors of a growing segment (some 10,000 points) past which it is sealed."""

SEGMENTS = 2
"""Files that a collection is kept in, at least."""

NO_VECTOR = "none"
"""The engine wants a vector in each collection: sections get one that no point ever has."""


def settings(dimension: int | None) -> Mapping[str, str | int]:
    """What a collection is set up with, to tell whether one was opened with it before."""
    shared: dict[str, str | int] = {"graph": 0, "segments": SEGMENTS, "seal_kb": SEAL_KB}
    return {**shared, "distance": "cosine", "lexical": "idf"} if dimension else shared


def config(dimension: int | None) -> EdgeConfig:
    """Of a collection of points whose vectors are so long, or (None) of one of sections."""
    lexical = EdgeSparseVectorParams(modifier=Modifier.Idf, memory=Memory.Cold)
    return EdgeConfig(
        vectors={DENSE: EdgeVectorParams(size=dimension, distance=Distance.Cosine)}
        if dimension
        else None,
        sparse_vectors={LEXICAL: lexical} if dimension else {NO_VECTOR: EdgeSparseVectorParams()},
        hnsw_config=HnswIndexConfig(m=0, ef_construct=4, full_scan_threshold=1_000_000),
        id_tracker_memory=Memory.Cold,
        optimizers=EdgeOptimizersConfig(
            indexing_threshold=SEAL_KB, default_segment_number=SEGMENTS
        ),
    )
