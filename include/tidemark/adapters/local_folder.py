"""Values as files in a folder of this machine; every method raises ``OSError`` and nothing else."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from tidemark.adapters.artifact_rules import TEMPORARY

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

    def open(self, key: str) -> BinaryIO:
        return (self._root / key).open("rb")

    def size(self, key: str) -> int | None:
        path = self._root / key
        return path.stat().st_size if path.is_file() else None

    def delete(self, key: str) -> None:
        path = self._root / key
        try:
            path.unlink(missing_ok=True)
        except (IsADirectoryError, NotADirectoryError, PermissionError):
            if path.is_file():
                raise
            return
        for folder in path.relative_to(self._root).parents:
            try:
                (self._root / folder).rmdir()
            except OSError:
                return  # Not empty, or already gone.

    def keys(self, prefix: str) -> Iterator[str]:
        folder = prefix.rpartition("/")[0]
        for key in self._files(self._root / folder, f"{folder}/" if folder else ""):
            if key.startswith(prefix):
                yield key

    def _files(self, folder: Path, above: str) -> Iterator[str]:
        try:
            entries = os.scandir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return
        with entries:
            for entry in entries:
                if entry.is_file():
                    yield above + entry.name
                elif entry.is_dir() and (above or entry.name != TEMPORARY):
                    yield from self._files(Path(entry.path), f"{above}{entry.name}/")

    def _sweep(self) -> None:
        """Once per store: remove what processes that were killed left unfinished."""
        if self._swept:
            return
        self._swept = True
        for path in self._aside.iterdir():
            try:
                if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                    path.unlink(missing_ok=True)
            except FileNotFoundError:
                continue
