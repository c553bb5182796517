"""An embedder that remembers: sentences embedded to find where meaning parts come back at every edit.

A SQLite file beside the other state, shared by processes. It is a cache: when it cannot be used, the texts
are embedded again and nothing else happens.
"""

import sqlite3
from array import array
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from hashlib import blake2b
from pathlib import Path

from tidemark.domain.errors import TransientError
from tidemark.ports.embedding import Embedder

_AT_ONCE = 500
_ITEM = array("f").itemsize


class CachedEmbedder:
    """Wraps an embedder.

    path: of the cache's file; its folder is made when missing.
    most: vectors kept; the oldest go first. 384 dimensions are 1.5 kB each.
    wait: seconds for other processes that write to the file; after them the texts are embedded again.
    """

    def __init__(
        self, embedder: Embedder, path: Path, most: int = 500_000, wait: float = 5.0
    ) -> None:
        self._embedder = embedder
        self._path = path
        self._most = most
        self._wait = wait

    @property
    def fingerprint(self) -> str:
        return self._embedder.fingerprint

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    def embed(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        """One vector a text, in order, in single precision; only those not met before are embedded."""
        keys = [self._key(text) for text in texts]
        known = self._read(set(keys))
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            vectors = self._embedder.embed(list(missing.values()))
            # As they will be read, so that a second run sees the same numbers.
            new = {key: array("f", vector) for key, vector in zip(missing, vectors, strict=True)}
            self._write(new)
            known |= {key: tuple(vector) for key, vector in new.items()}
        return [known[key] for key in keys]

    def _key(self, text: str) -> bytes:
        hashed = blake2b(self.fingerprint.encode(), digest_size=16)
        hashed.update(text.encode("utf-8", "surrogatepass"))
        return hashed.digest()

    def _read(self, keys: set[bytes]) -> dict[bytes, tuple[float, ...]]:
        found: dict[bytes, tuple[float, ...]] = {}
        size = self.dimension * _ITEM
        ordered = sorted(keys)
        try:
            with self._open() as cache:
                for first in range(0, len(ordered), _AT_ONCE):
                    part = ordered[first : first + _AT_ONCE]
                    marks = ",".join("?" * len(part))
                    rows = cache.execute(
                        f"select key, vector from vectors where key in ({marks})",  # noqa: S608 - marks alone
                        part,
                    )
                    found.update(
                        (key, tuple(array("f", vector)))
                        for key, vector in rows
                        if isinstance(vector, bytes) and len(vector) == size
                    )
        except (sqlite3.Error, OSError) as error:
            self._drop_broken(error)
            return {}  # a cache that is away costs time and nothing else
        return found

    def _write(self, vectors: dict[bytes, "array[float]"]) -> None:
        try:
            with self._open() as cache, cache:
                cache.executemany(
                    "insert or replace into vectors (key, vector) values (?, ?)",
                    [(key, vector.tobytes()) for key, vector in vectors.items()],
                )
                cache.execute(
                    "delete from vectors where number <= (select max(number) from vectors) - ?",
                    [self._most],
                )
        except (sqlite3.Error, OSError) as error:
            self._drop_broken(error)

    def _drop_broken(self, error: Exception) -> None:
        """Begin anew with a file that is no database; one that is only locked stays."""
        broken = isinstance(error, sqlite3.DatabaseError)
        if broken and not isinstance(error, sqlite3.OperationalError):
            with suppress(OSError):
                self._path.unlink(missing_ok=True)

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(self._path, timeout=self._wait)) as cache:
            cache.execute(
                "create table if not exists vectors"
                " (number integer primary key autoincrement, key blob unique, vector blob)"
            )
            yield cache


class EmbeddingCache:
    """The file of a ``CachedEmbedder`` as such, without any embedder: what is in it, and emptying it.

    path, wait: as there.
    """

    def __init__(self, path: Path, wait: float = 60.0) -> None:
        self._path = path
        self._wait = wait

    def count(self) -> int:
        """How many vectors are kept. Raises ``TransientError`` when it cannot be told."""
        if not self._path.exists():
            return 0
        with self._opened() as cache:
            table = "select count(*) from sqlite_master where name = 'vectors'"
            if cache.execute(table).fetchone()[0] == 0:
                return 0
            return int(cache.execute("select count(*) from vectors").fetchone()[0])

    def clear(self) -> int:
        """Forget all vectors, in the file too; how many. A file that is no database is deleted.

        Raises ``TransientError`` when another process keeps the file locked, or it cannot be written.
        """
        if not self._path.exists():
            return 0
        try:
            count = self.count()
            with self._opened() as cache:
                # Or the deleted rows would stay readable in the free pages of the file.
                cache.execute("pragma secure_delete = on")
                cache.execute("drop table if exists vectors")
                cache.commit()
                cache.execute("vacuum")
        except _BrokenError:
            self._path.unlink(missing_ok=True)
            return 0
        return count

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self._path, timeout=self._wait)) as cache:
                yield cache
        except (sqlite3.OperationalError, OSError) as error:
            raise TransientError(
                f"The cache of vectors {self._path} cannot be used: {error}.",
                "Try again when no run is embedding, or delete the file.",
            ) from error
        except sqlite3.DatabaseError as error:
            raise _BrokenError from error


class _BrokenError(Exception):
    """The file is no database."""
