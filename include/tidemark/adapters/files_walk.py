"""A sorted walk through a local folder that never leaves it."""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

_SKIPPED_FOLDERS = frozenset({"CVS", "node_modules", "__pycache__"})
_SKIPPED_PREFIXES = (".", "~$")
"""Hidden, version control (``.git``, ``.svn``, ...), and the lock files of office programs."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One regular file, or what stands in its place.

    relative: path under the root, parted by "/".
    path: where to open it.
    refused: why it is not to be opened, "" when it is.
    failure: why it cannot be looked at, "" when it can.
    """

    relative: str
    path: str
    refused: str = ""
    failure: str = ""


class FolderWalk:
    """Walks one folder in order of names; ``problems`` then names the folders that could not be listed.

    A link within the folder to something that is listed under its own path is passed over, so that
    nothing comes twice; one to something hidden (as a mounted configuration has it) is followed.
    """

    def __init__(self, root: str, lists: Callable[[str], bool]) -> None:
        """``lists`` tells of a file's relative path whether it is listed at all."""
        self._root = os.path.realpath(root)
        self._lists = lists
        self.problems: list[str] = []

    def entries(self) -> Iterator[Entry]:
        """Stream the files; holds the names of the folders on the way, not of the tree."""
        yield from self._folder(self._root, "", frozenset({self._root}))

    def _folder(self, path: str, relative: str, above: frozenset[str]) -> Iterator[Entry]:
        try:
            with os.scandir(path) as found:
                children = sorted(found, key=lambda child: child.name)
        except OSError as error:
            self.problems.append(
                f"The folder {relative or path} cannot be listed: {error.strerror}."
            )
            return
        for child in children:
            if not is_hidden(child.name):
                below = f"{relative}/{child.name}" if relative else child.name
                yield from self._child(child, below, above)

    def _child(
        self, child: "os.DirEntry[str]", relative: str, above: frozenset[str]
    ) -> Iterator[Entry]:
        if child.is_symlink():
            yield from self._link(child, relative, above)
        elif child.is_dir(follow_symlinks=False):
            yield from self._folder(child.path, relative, above | {os.path.realpath(child.path)})
        elif child.is_file(follow_symlinks=False):
            yield Entry(relative, child.path)

    def _link(
        self, child: "os.DirEntry[str]", relative: str, above: frozenset[str]
    ) -> Iterator[Entry]:
        try:
            mode = child.stat().st_mode
        except OSError as error:
            yield Entry(
                relative, child.path, failure=f"is a link that leads nowhere ({error.strerror})"
            )
            return
        real = os.path.realpath(child.path)
        inside = PurePosixPath(os.path.relpath(real, self._root))
        if inside.parts[:1] == (os.pardir,):
            yield Entry(relative, child.path, refused="is a link that leads out of the folder")
            return
        hidden = any(is_hidden(part) for part in inside.parts)
        if stat.S_ISDIR(mode) and hidden and real not in above:
            yield from self._folder(child.path, relative, above | {real})
        elif stat.S_ISREG(mode) and (hidden or not self._lists(str(inside))):
            yield Entry(relative, child.path)


def is_hidden(name: str) -> bool:
    """Is a file or folder of this name never listed?"""
    return name.startswith(_SKIPPED_PREFIXES) or name in _SKIPPED_FOLDERS
