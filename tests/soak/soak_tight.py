"""A store that says "no space left" as a full disk does, for machines that let nobody mount a small one.

``tight:///a/folder``: puts fail with ENOSPC as soon as the folder would hold more bytes than its file
``.room`` says.
"""

import errno
import os
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem
from fsspec.spec import AbstractFileSystem

ROOM = ".room"


class TightFileSystem(AbstractFileSystem):  # type: ignore[misc]  # fsspec has no types
    """A local folder with a limit. Not a LocalFileSystem by class, or it would be written past this one."""

    protocol = "tight"
    cachable = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._local = LocalFileSystem(auto_mkdir=True)

    def put_file(self, lpath: str, rpath: str, **options: Any) -> None:
        root = _root(Path(rpath))
        used = sum(file.stat().st_size for file in root.rglob("*") if file.is_file())
        if used + Path(lpath).stat().st_size > int((root / ROOM).read_text()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._local.put_file(lpath, rpath)

    def ls(self, path: str, detail: bool = True, **options: Any) -> Any:
        found = self._local.ls(path, detail=True)
        found = [entry for entry in found if not entry["name"].endswith(f"/{ROOM}")]
        return found if detail else [entry["name"] for entry in found]

    def info(self, path: str, **options: Any) -> Any:
        return self._local.info(path)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        self._local.makedirs(path, exist_ok=exist_ok)

    def rm_file(self, path: str) -> None:
        self._local.rm_file(path)

    def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        return self._local.open(path, mode)


def _root(path: Path) -> Path:
    return next(above for above in path.parents if (above / ROOM).exists())


fsspec.register_implementation("tight", TightFileSystem, clobber=True)
