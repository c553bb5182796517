"""Include and exclude patterns over paths, the same for websites and folders.

    *       anything within one segment
    **      anything, across segments
    ?       one character within a segment
    a/      everything below ``a``
    *.md    (no slash) the last segment, at any depth

Paths and patterns are compared without a leading slash, in their decoded form, case mattering.
"""

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath
from urllib.parse import quote

from tidemark.adapters.media import media_type_of_suffix
from tidemark.domain.documents import CrawlEnd, CrawlItem, Outcome, SourceItem
from tidemark.ports.source import Known

_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?")
_MEANING = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Compile one pattern to a test of a path."""
    anchored = pattern.lstrip("/")
    if anchored.endswith("/"):
        anchored += "**"
    if "/" not in pattern:
        anchored = f"**/{anchored}"
    expression, position = "", 0
    for token in _TOKEN.finditer(anchored):
        expression += re.escape(anchored[position : token.start()]) + _MEANING[token[0]]
        position = token.end()
    matcher = re.compile(expression + re.escape(anchored[position:]), re.DOTALL)
    return lambda path: matcher.fullmatch(path.lstrip("/")) is not None


@dataclass(frozen=True, slots=True)
class PathPatterns:
    """Admits a path that matches an include pattern (any path, without one) and no exclude pattern."""

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    _included: tuple[Callable[[str], bool], ...] = field(init=False, repr=False, compare=False)
    _excluded: tuple[Callable[[str], bool], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_included", tuple(map(compile_pattern, self.include)))
        object.__setattr__(self, "_excluded", tuple(map(compile_pattern, self.exclude)))

    def admits(self, path: str) -> bool:
        if any(matches(path) for matches in self._excluded):
            return False
        return not self._included or any(matches(path) for matches in self._included)


# What every source says of an item that it wants and does not fetch because of its size.


def too_large(item: SourceItem, bound: int, size: int | None = None) -> CrawlItem:
    """The outcome of an item of ``size`` bytes, None when it is only known to be more than the bound."""
    return CrawlItem(item, Outcome.TOO_LARGE, detail=size_problem(bound, size))


def size_problem(bound: int, size: int | None = None) -> str:
    """How large it is and what the bound is, to stand behind its name; alike until one of them changes."""
    if size is None:
        return f"has more than the {bound:,} bytes that are fetched"
    return f"has {size:,} bytes, more than the {bound:,} that are fetched"


# What every files source decides alike, wherever the files are.

URI_SAFE = "/!$&'()*+,;=:@~"
"""What stays as it is in the path of a document's URI."""


class FileRules:
    """Which paths are documents, and of which type."""

    def __init__(self, include: tuple[str, ...], exclude: tuple[str, ...]) -> None:
        self._patterns = PathPatterns(include, exclude)
        self._asked_for = bool(include)

    def admits(self, relative: str) -> bool:
        """Do the patterns let a path through?"""
        return self._patterns.admits(relative)

    def is_document(self, relative: str) -> bool:
        return media_type(relative) is not None and self.admits(relative)

    def lists(self, relative: str) -> bool:
        """Is it told of? What a pattern asks for is, though its format is not known."""
        return self.admits(relative) and (self._asked_for or media_type(relative) is not None)


def media_type(relative: str) -> str | None:
    """By the suffix of a path, None for what is no document."""
    return media_type_of_suffix(PurePosixPath(relative).suffix.lower())


def listing_end(
    problems: list[str], *, listed: bool, allow_empty: bool, known: Known, place: str
) -> CrawlEnd:
    """The end of a listing; one that is empty, though documents are known, is not believed."""
    if not listed and not problems and not allow_empty and next(known.uris(), None) is not None:
        problems.append(
            f"There is no document in {place}, though there were some: is the share mounted, the path "
            "still right? Set allow_empty if it was emptied on purpose."
        )
    problem = " ".join(problems)
    return CrawlEnd(complete=not problem, authoritative=True, problem=problem)


def utc_now() -> datetime:
    """The clock of every source, where no other is handed in."""
    return datetime.now(UTC)


def limit_problem(limit: int | None) -> str:
    """The problem of a listing that was cut off."""
    return f"It was limited to {limit:,} documents."


def quoted(path: str) -> str:
    """A path as it stands in a URI."""
    return quote(path, safe=URI_SAFE, errors="surrogateescape")


# A sorted walk through a local folder that never leaves it.

_SKIPPED_FOLDERS = frozenset({"CVS", "node_modules", "__pycache__"})
_SKIPPED_PREFIXES = (".", "~$")
"""Hidden, version control (``.git``, ``.svn``, ...), and the lock files of office programs."""


@dataclass(frozen=True, slots=True)
class LocalEntry:
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

    def entries(self) -> Iterator[LocalEntry]:
        """Stream the files; holds the names of the folders on the way, not of the tree."""
        yield from self._folder(self._root, "", frozenset({self._root}))

    def _folder(self, path: str, relative: str, above: frozenset[str]) -> Iterator[LocalEntry]:
        try:
            with os.scandir(path) as listed:
                children = sorted(listed, key=lambda child: child.name)
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
    ) -> Iterator[LocalEntry]:
        if child.is_symlink():
            yield from self._link(child, relative, above)
        elif child.is_dir(follow_symlinks=False):
            yield from self._folder(child.path, relative, above | {os.path.realpath(child.path)})
        elif child.is_file(follow_symlinks=False):
            yield LocalEntry(relative, child.path)

    def _link(
        self, child: "os.DirEntry[str]", relative: str, above: frozenset[str]
    ) -> Iterator[LocalEntry]:
        try:
            mode = child.stat().st_mode
        except OSError as error:
            yield LocalEntry(
                relative, child.path, failure=f"is a link that leads nowhere ({error.strerror})"
            )
            return
        real = os.path.realpath(child.path)
        inside = PurePosixPath(os.path.relpath(real, self._root))
        if inside.parts[:1] == (os.pardir,):
            yield LocalEntry(relative, child.path, refused="is a link that leads out of the folder")
            return
        hidden = any(is_hidden(part) for part in inside.parts)
        if stat.S_ISDIR(mode) and hidden and real not in above:
            yield from self._folder(child.path, relative, above | {real})
        elif stat.S_ISREG(mode) and (hidden or not self._lists(str(inside))):
            yield LocalEntry(relative, child.path)


def is_hidden(name: str) -> bool:
    """Is a file or folder of this name never listed?"""
    return name.startswith(_SKIPPED_PREFIXES) or name in _SKIPPED_FOLDERS
