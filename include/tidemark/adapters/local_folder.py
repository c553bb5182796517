"""Values as files in a folder of this machine; every method raises ``OSError`` and nothing else."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from tidemark.adapters.artifact_rules import TEMPORARY
from tidemark.ports import ArtifactEntry

_ABANDONED_SECONDS = 24 * 3600
"""Age at which an unfinished file is taken for one whose process was killed."""


class LocalFolder:
    """A folder with a file per key; made when the first value is put."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._aside = root / TEMPORARY
        self._swept = False

    @contextmanager
    def aside(self) -> Iterator[Path]:
        """A path for a new file, on the same file system, gone at the end unless it was put."""
        self._aside.mkdir(parents=True, exist_ok=True)
        self._sweep()
        path = self._aside / f"{os.getpid()}-{uuid4().hex}"
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def put(self, key: str, file: Path) -> None:
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

    def renew(self, key: str) -> bool:
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
        return (key for key, _ in self._found(prefix))

    def entries(self, prefix: str) -> Iterator[ArtifactEntry]:
        for key, entry in self._found(prefix):
            try:
                status = entry.stat()
            except FileNotFoundError:
                continue
            yield ArtifactEntry(key, status.st_size, _time(status.st_mtime))

    def _found(self, prefix: str) -> Iterator[tuple[str, "os.DirEntry[str]"]]:
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
        for path in self._aside.iterdir() if self._aside.is_dir() else ():
            try:
                status = path.stat()
                if _time(status.st_mtime) < written_before:
                    if not dry_run:
                        path.unlink()
                    count, size = count + 1, size + status.st_size
            except FileNotFoundError:
                continue
        return count, size

    def _sweep(self) -> None:
        """Once per store, so that a folder that nobody keeps house in does not fill up either."""
        if not self._swept:
            self._swept = True
            self.discard_unfinished(_time(time.time() - _ABANDONED_SECONDS), dry_run=False)


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
