"""Artifacts under any fsspec URL: a folder (the default), or an object store.

In a folder a value is written to a temporary file, flushed to the disk and renamed; an object store shows an
object only when its upload has ended. Lines are kept as plain text, so that a run can be looked into.
"""

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, TextIO, TypeVar, cast
from uuid import uuid4

from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem

from tidemark.adapters.retry import Retry
from tidemark.domain.errors import ConfigurationError, PermanentError, TransientError
from tidemark.ports.artifacts import ArtifactEntry

# What every artifact store holds to: which keys there are, and how lines are written.

TEMPORARY = ".tmp"
"""Where a store on a file system keeps what is not whole yet; no key may begin with it."""

ENCODING = "utf-8"
ENCODING_ERRORS = "surrogatepass"

T = TypeVar("T")


def checked_key(key: str) -> str:
    """Return the key. Raises ``PermanentError`` when it could lead out of the store or name a folder."""
    parts = key.split("/")
    if "\0" in key or parts[0] == TEMPORARY or any(part in ("", ".", "..") for part in parts):
        raise PermanentError(
            f"{key!r} is no key of an artifact.",
            'A key is names parted by "/", none of them empty, "." or "..".',
        )
    return key


def checked_line(text: str) -> str:
    """Return the line. Raises ``PermanentError`` when it would be read back as two."""
    if "\n" in text:
        raise PermanentError("A line of an artifact may not contain a line break.", "Escape it.")
    return text


def without_ends(lines: Iterable[str], key: str) -> Iterator[str]:
    """Lines as they were written. Raises ``PermanentError`` for what is no text."""
    try:
        for line in lines:
            yield line.removesuffix("\n")
    except UnicodeDecodeError as error:
        raise PermanentError(
            f"The artifact {key} is no text in UTF-8.", "Read it as bytes."
        ) from error


# Where values lie; every method raises ``OSError`` and nothing else.

_ABANDONED_SECONDS = 24 * 3600
"""Age at which an unfinished file is taken for one whose process was killed."""


class LocalFolder:
    """A folder with a file per key; made when the first value is put."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._temporary = root / TEMPORARY
        self._tidied = False

    @contextmanager
    def temporary(self) -> Iterator[Path]:
        """A path for a new file, on the same file system, gone at the end unless it was put."""
        self._temporary.mkdir(parents=True, exist_ok=True)
        self._tidy()
        path = self._temporary / f"{os.getpid()}-{uuid4().hex}"
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def put(self, key: str, file: Path) -> None:
        """Make the file's bytes the key's value, at once; may take the file away."""
        with file.open("rb+") as written:
            # Without this a power cut could leave the new name on an empty file.
            os.fsync(written.fileno())
        target = self._root / key
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            file.replace(target)
        except FileNotFoundError:
            # Another process deleted the folder's last file, and with it the folder.
            target.parent.mkdir(parents=True, exist_ok=True)
            file.replace(target)

    def touch(self, key: str) -> bool:
        """Let the value count as written now; False where there is none any more."""
        try:
            os.utime(self._root / key)
        except FileNotFoundError:
            return False
        return True

    def open(self, key: str) -> BinaryIO:
        return (self._root / key).open("rb")

    def size(self, key: str) -> int | None:
        path = self._root / key
        return path.stat().st_size if path.is_file() else None

    def delete(self, key: str, written_before: datetime | None) -> bool:
        path = self._root / key
        try:
            if written_before is not None and _time(path.stat().st_mtime) >= written_before:
                return False
            path.unlink(missing_ok=True)
        except FileNotFoundError:
            return True
        except (IsADirectoryError, NotADirectoryError, PermissionError):
            if path.is_file():
                raise
            return True
        self._remove_empty(path)
        return True

    def _remove_empty(self, path: Path) -> None:
        for folder in path.relative_to(self._root).parents:
            try:
                (self._root / folder).rmdir()
            except OSError:
                return  # Not empty, or already gone.

    def keys(self, prefix: str) -> Iterator[str]:
        return (key for key, _ in self._listed(prefix))

    def entries(self, prefix: str) -> Iterator[ArtifactEntry]:
        for key, entry in self._listed(prefix):
            try:
                status = entry.stat()
            except FileNotFoundError:
                continue
            yield ArtifactEntry(key, status.st_size, _time(status.st_mtime))

    def _listed(self, prefix: str) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
        folder = prefix.rpartition("/")[0]
        for key, entry in self._files(self._root / folder, f"{folder}/" if folder else ""):
            if key.startswith(prefix):
                yield key, entry

    def _files(self, folder: Path, above: str) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
        try:
            entries = os.scandir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return
        with entries:
            for entry in entries:
                if entry.is_file():
                    yield above + entry.name, entry
                elif entry.is_dir() and (above or entry.name != TEMPORARY):
                    yield from self._files(Path(entry.path), f"{above}{entry.name}/")

    def discard_unfinished(self, written_before: datetime, *, dry_run: bool) -> tuple[int, int]:
        """Remove what processes that were killed left unfinished; how many files, and their bytes."""
        count = size = 0
        for path in self._temporary.iterdir() if self._temporary.is_dir() else ():
            try:
                status = path.stat()
                if _time(status.st_mtime) < written_before:
                    if not dry_run:
                        path.unlink()
                    count, size = count + 1, size + status.st_size
            except FileNotFoundError:
                continue
        return count, size

    def _tidy(self) -> None:
        """Once per store, so that a folder that nobody keeps house in does not fill up either."""
        if not self._tidied:
            self._tidied = True
            self.discard_unfinished(_time(time.time() - _ABANDONED_SECONDS), dry_run=False)


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


class ObjectStore:
    """Values as objects of a store that shows an object whole or not at all."""

    def __init__(self, system: Any, root: str) -> None:
        self._system = system
        self._root = root.rstrip("/")

    @contextmanager
    def temporary(self) -> Iterator[Path]:
        with TemporaryDirectory(prefix="tidemark-") as folder:
            yield Path(folder) / "value"

    def put(self, key: str, file: Path) -> None:
        self._system.makedirs(self._path(key).rpartition("/")[0], exist_ok=True)
        self._system.put_file(str(file), self._path(key))

    def touch(self, key: str) -> bool:
        return False

    def open(self, key: str) -> BinaryIO:
        return cast(BinaryIO, self._system.open(self._path(key), "rb"))

    def size(self, key: str) -> int | None:
        try:
            info = self._system.info(self._path(key))
        except FileNotFoundError:
            return None
        return int(info["size"]) if info["type"] == "file" else None

    def delete(self, key: str, written_before: datetime | None) -> bool:
        try:
            info = self._system.info(self._path(key))
        except FileNotFoundError:
            return True
        if info["type"] == "file":
            if written_before is not None and _written_at(info) >= written_before:
                return False
            self._system.rm_file(self._path(key))
        return True

    def keys(self, prefix: str) -> Iterator[str]:
        return (key for key, _ in self._listed(prefix))

    def entries(self, prefix: str) -> Iterator[ArtifactEntry]:
        for key, info in self._listed(prefix):
            yield ArtifactEntry(key, int(info["size"]), _written_at(info))

    def discard_unfinished(self, written_before: datetime, *, dry_run: bool) -> tuple[int, int]:
        return 0, 0  # An upload that is cut short is the store's to forget.

    def _listed(self, prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
        folder = prefix.rpartition("/")[0]
        start = self._path(folder) if folder else self._root
        cut = len(self._root.lstrip("/")) + 1
        # Folder by folder, so that only one listing is held at a time.
        for above, _, files in self._system.walk(start, detail=True):
            for name, info in files.items():
                key = f"{above}/{name}".lstrip("/")[cut:]
                if key.startswith(prefix):
                    yield key, info

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}"


_TIMES = ("LastModified", "last_modified", "updated", "mtime", "modified", "created")
"""What the packages of object stores call the time at which an object was put."""


def _written_at(info: dict[str, Any]) -> datetime:
    """When an object was put; now, which keeps it, where the store does not tell."""
    for name in _TIMES:
        written = info.get(name)
        if isinstance(written, int | float):
            return _time(written)
        if isinstance(written, str):
            written = datetime.fromisoformat(written)
        if isinstance(written, datetime):
            return written if written.tzinfo else written.replace(tzinfo=UTC)
    return datetime.now(UTC)


_LASTING = (
    errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EISDIR,
    errno.ENAMETOOLONG, errno.EINVAL, errno.EFBIG, errno.ELOOP,
)  # fmt: skip
"""Errors that a retry meets again; all others may be the network's."""


class FsspecArtifacts:
    """The ArtifactStore port under a URL: "/a/folder", "file:///a/folder", "s3://bucket/prefix", ...

    retry_timeout: for how long a store that is away is asked again, each time.
    Raises ``ConfigurationError`` when the URL's kind is unknown or its package is not installed.
    """

    def __init__(self, url: str, *, retry_timeout: float = 0.0) -> None:
        self._url = url
        self._retry = Retry("The artifact store", retry_timeout)
        try:
            # A listing remembered from before another process wrote would hide what it wrote.
            system, root = url_to_fs(url, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            raise ConfigurationError(
                f"The artifact store {url} cannot be opened: {error}.",
                "Set TIDEMARK_ARTIFACTS_URL to a folder, or install the fsspec package of its kind.",
            ) from error
        self._backend: LocalFolder | ObjectStore
        if isinstance(system, LocalFileSystem):
            self._backend = LocalFolder(Path(root))
        else:
            self._backend = ObjectStore(system, root)

    def write(self, key: str, data: bytes) -> None:
        def write() -> None:
            if self._holds(key, data) and self._backend.touch(key):
                return
            with self._backend.temporary() as path:
                path.write_bytes(data)
                self._backend.put(key, path)

        self._ask(checked_key(key), write)

    def _holds(self, key: str, data: bytes) -> bool:
        try:
            return self._backend.size(key) == len(data) and self._read(key) == data
        except KeyError:
            return False  # Deleted in between.

    def read(self, key: str) -> bytes:
        return self._ask(checked_key(key), lambda: self._read(key))

    def exists(self, key: str) -> bool:
        return self._ask(checked_key(key), lambda: self._backend.size(key) is not None)

    def delete(self, key: str, *, written_before: datetime | None = None) -> bool:
        return self._ask(checked_key(key), lambda: self._backend.delete(key, written_before))

    def keys(self, prefix: str = "") -> Iterator[str]:
        return self._scan(prefix, self._backend.keys)

    def entries(self, prefix: str = "") -> Iterator[ArtifactEntry]:
        return self._scan(prefix, self._backend.entries)

    def discard_unfinished(
        self, written_before: datetime, *, dry_run: bool = False
    ) -> tuple[int, int]:
        return self._ask(
            "of unfinished writes",
            lambda: self._backend.discard_unfinished(written_before, dry_run=dry_run),
        )

    @contextmanager
    def writer(self, key: str) -> Iterator["_Lines"]:
        with ExitStack() as unfinished:
            with self._translated(checked_key(key)):
                path = unfinished.enter_context(self._backend.temporary())
                file = path.open("w", encoding=ENCODING, errors=ENCODING_ERRORS, newline="\n")
                unfinished.callback(_discard, file)
            yield _Lines(file, lambda: self._translated(key))
            with self._translated(key):
                file.close()
                self._backend.put(key, path)

    def lines(self, key: str) -> Iterator[str]:
        files = [self._ask(checked_key(key), lambda: self._open(key))]

        def read() -> Iterator[str]:
            with self._translated(key):
                # The one that is open already is for the first try.
                file = files.pop() if files else self._open(key)
                text = TextIOWrapper(file, encoding=ENCODING, errors=ENCODING_ERRORS, newline="\n")
                with text:
                    yield from without_ends(text, key)

        return self._retry.stream(read)

    def _read(self, key: str) -> bytes:
        with self._open(key) as file:
            return file.read()

    def _open(self, key: str) -> BinaryIO:
        try:
            return self._backend.open(key)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
            raise KeyError(key) from error

    def _ask(self, key: str, call: Callable[[], T]) -> T:
        """What ``call`` returns, called again while the store is away."""

        def once() -> T:
            with self._translated(key):
                return call()

        return self._retry(once)

    def _scan(self, prefix: str, call: Callable[[str], Iterator[T]]) -> Iterator[T]:
        def scan() -> Iterator[T]:
            with self._translated(prefix):
                yield from call(prefix)

        return self._retry.stream(scan)

    @contextmanager
    def _translated(self, key: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            what = f"The artifact {key} in {self._url}: {error.strerror or error}."
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise PermanentError(what, "Free some space there, then run again.") from error
            if error.errno in _LASTING:
                raise PermanentError(what, "Check the folder's owner, rights and path.") from error
            raise TransientError(what, "Check that the store can be reached.") from error


def _discard(file: TextIO) -> None:
    # What it still holds does not go onto a full disk, and nobody wants it: the error that led here counts.
    with suppress(OSError):
        file.close()


class _Lines:
    def __init__(
        self, file: TextIO, translated: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._file = file
        self._translated = translated

    def line(self, text: str) -> None:
        with self._translated():
            self._file.write(f"{checked_line(text)}\n")
