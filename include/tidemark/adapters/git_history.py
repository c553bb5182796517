"""The last commit of every path of a branch, brought up to date with the commits that came since.

It is kept in a small database beside the copy of the repository, so memory does not grow with the files.
"""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from tidemark.adapters.git_program import GitProgram
from tidemark.domain.errors import PermanentError, TidemarkError

_COMMIT_LINE = re.compile(rb"\x01([0-9a-f]{40,64}) (\d+)")
_BATCH = 5_000


@dataclass(frozen=True, slots=True)
class Change:
    """The last commit that changed a file, and its time (UTC)."""

    commit: str
    at: datetime


class History:
    """The last change of every path that the branch has or had."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def last_change(self, path: str) -> Change | None:
        """``path`` is from the repository's root."""
        found = self._database.execute(
            "SELECT commit_id, at FROM change WHERE path = ?",
            (path.encode("utf-8", "surrogateescape"),),
        ).fetchone()
        return Change(found[0], datetime.fromtimestamp(found[1], UTC)) if found else None


@contextmanager
def history(git: GitProgram, folder: Path, head: str) -> Iterator[History]:
    """The history up to the commit ``head``, kept in ``folder``.

    Raises ``TidemarkError`` when it cannot be read from the repository.
    """
    path = folder / "history.sqlite"
    try:
        database = _database(path)
    except sqlite3.DatabaseError:
        path.unlink()
        database = _database(path)
    with closing(database):
        _bring_up_to_date(git, database, head)
        yield History(database)


def records(pipe: IO[bytes] | None, end: bytes) -> Iterator[bytes]:
    """Stream what stands between ends."""
    rest = b""
    while pipe is not None and (part := pipe.read(65_536)):
        *whole, rest = (rest + part).split(end)
        yield from whole
    if rest:
        yield rest


def _database(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path)
    # It can be made again from the repository, so nothing is lost with a power cut.
    database.execute("PRAGMA synchronous = OFF")
    database.execute(
        "CREATE TABLE IF NOT EXISTS change"
        " (path BLOB PRIMARY KEY, commit_id TEXT, at INTEGER, walk INTEGER) WITHOUT ROWID"
    )
    database.execute("CREATE TABLE IF NOT EXISTS state (head TEXT, walk INTEGER)")
    return database


def _bring_up_to_date(git: GitProgram, database: sqlite3.Connection, head: str) -> None:
    walked, walk = database.execute("SELECT head, walk FROM state").fetchone() or ("", 0)
    if walked == head:
        return
    commits = [head]
    if walked and _is_ancestor(git, walked, head):
        commits.append(f"^{walked}")
    else:
        database.execute("DELETE FROM change")
    # -c: a merge is told of the files that it made different from all that it merged.
    arguments = ("log", "-c", "--no-renames", "--name-only", "-z", "--format=%x01%H %ct", *commits)
    with git.stream(*arguments, "--") as process:
        rows = _changes(process.stdout, walk + 1)
        while batch := [row for _, row in zip(range(_BATCH), rows, strict=False)]:
            # Latest first, so within a walk the first that is told of a path stays.
            database.executemany(
                "INSERT INTO change VALUES (?, ?, ?, ?) ON CONFLICT (path) DO UPDATE SET "
                "commit_id = excluded.commit_id, at = excluded.at, walk = excluded.walk "
                "WHERE change.walk < excluded.walk",
                batch,
            )
        if process.wait():
            raise PermanentError(
                "The history of the repository cannot be read.",
                "Delete its copy in the cache; it is made anew.",
            )
    database.execute("DELETE FROM state")
    database.execute("INSERT INTO state VALUES (?, ?)", (head, walk + 1))
    database.commit()


def _is_ancestor(git: GitProgram, commit: str, head: str) -> bool:
    try:
        git.local("merge-base", "--is-ancestor", commit, head)
    except TidemarkError:
        return False
    return True


def _changes(pipe: IO[bytes] | None, walk: int) -> Iterator[tuple[bytes, str, int, int]]:
    """Path, commit, time and walk of each change, latest first."""
    commit, at = "", 0
    for record in records(pipe, b"\0"):
        name = record.lstrip(b"\n")
        if found := _COMMIT_LINE.fullmatch(name):
            commit, at = found[1].decode("ascii"), int(found[2])
        elif name:
            yield name, commit, at, walk
