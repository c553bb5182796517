"""What a crawl remembers of every URL, in a temporary file: memory stays flat as the site grows.

One row a URL. Nothing in the file outlives the crawl, so it is written without journal or syncing, in one
transaction that is never committed.
"""

import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from itertools import islice
from pathlib import Path
from types import TracebackType

_CACHE_KIB = 4_096
_BATCH = 500
_SCHEMA = """
CREATE TABLE page (
    uri TEXT PRIMARY KEY, flags INTEGER NOT NULL, kind INTEGER, target TEXT, depth INTEGER, referrer TEXT,
    modified TEXT
) WITHOUT ROWID;
CREATE INDEX redirect ON page (target, kind) WHERE target IS NOT NULL;
CREATE TABLE variants (path TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE queue (
    number INTEGER PRIMARY KEY, uri TEXT, url TEXT, depth INTEGER, referrer TEXT, hops INTEGER, marks INTEGER
);
"""


class Mark(IntFlag):
    """What is known of a URL."""

    KNOWN = 1
    """From earlier crawls."""
    SEEN = 2
    """It was taken into the frontier, or turned away for good."""
    SETTLED = 4
    """It was asked for, and the answer judged."""
    LISTED = 8
    """It is in the listing."""
    DOCUMENT = 16
    """It is in the listing with content."""
    FAILED = 32
    GONE = 64
    OWN = 128
    """It is to be asked for again as a document of its own, whatever it calls its canonical address."""
    STOOD = 256
    """And it was."""


class RedirectKind(IntEnum):
    """In which way a URL leads to another."""

    PERMANENT = 1
    TEMPORARY = 2
    CANONICAL = 3


@dataclass(frozen=True, slots=True)
class Redirect:
    """A URL that leads to another one, with where it was found."""

    uri: str
    kind: RedirectKind
    target: str
    known: bool
    depth: int
    referrer: str


@dataclass(frozen=True, slots=True)
class Route:
    """Where redirects and canonical links lead from a URL.

    end: the last URL of the way.
    document: is that one a document of this listing?
    permanent: were all redirects on the way for good?
    circle: the way comes back to where it has been; ``through`` the very URL it began at.
    names: another URL on the way names a canonical address and may yet stand for itself.
    marks: of the last URL.
    """

    end: str
    document: bool
    permanent: bool
    circle: bool
    through: bool
    names: bool
    marks: int


class CrawlState:
    """What one crawl remembers. A context: its file is deleted at the end."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(
            prefix="tidemark-crawl-", ignore_cleanup_errors=True
        )
        # Used by one thread at a time, but not always by the one that made it.
        self._database = sqlite3.connect(
            Path(self._folder.name) / "state.sqlite", isolation_level=None, check_same_thread=False
        )
        self._database.executescript(
            f"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
            f"PRAGMA cache_size = -{_CACHE_KIB}; PRAGMA temp_store = FILE; {_SCHEMA}"
        )
        self._do = self._database.cursor().execute
        self._do("BEGIN")

    def __enter__(self) -> "CrawlState":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._database.close()
        self._folder.cleanup()

    def add_known(self, uris: Iterable[str]) -> None:
        """Note the URIs known from earlier crawls."""
        self._database.executemany(
            "INSERT OR IGNORE INTO page (uri, flags) VALUES (?, ?)",
            ((uri, int(Mark.KNOWN)) for uri in uris),
        )

    def marks(self, uri: str) -> int:
        """The ``Mark``s of a URL, 0 for one never heard of."""
        row = self._do("SELECT flags FROM page WHERE uri = ?", (uri,)).fetchone()
        return int(row[0]) if row else 0

    def mark(self, uri: str, marks: int) -> None:
        """Add marks."""
        self._do(
            "INSERT INTO page (uri, flags) VALUES (?, ?)"
            " ON CONFLICT DO UPDATE SET flags = flags | excluded.flags",
            (uri, int(marks)),
        )

    def set_sitemap_date(self, uri: str, modified: str) -> None:
        """Note when the sitemap says that a page was changed."""
        self._do(
            "INSERT INTO page (uri, flags, modified) VALUES (?, 0, ?)"
            " ON CONFLICT DO UPDATE SET modified = excluded.modified",
            (uri, modified),
        )

    def sitemap_date(self, uri: str) -> str:
        """What ``set_sitemap_date`` noted, "" without."""
        row = self._do("SELECT modified FROM page WHERE uri = ?", (uri,)).fetchone()
        return str(row[0]) if row and row[0] else ""

    def add_redirect(
        self, uri: str, kind: RedirectKind, target: str, depth: int = 0, referrer: str = ""
    ) -> None:
        """Note that a URL, which has its row, leads to another."""
        self._do(
            "UPDATE page SET kind = ?, target = ?, depth = ?, referrer = ? WHERE uri = ?",
            (int(kind), target, depth, referrer, uri),
        )

    def redirects(self) -> Iterator[Redirect]:
        """Stream those that lead elsewhere and are not in the listing, by URI; all may change meanwhile."""
        after = ""
        while True:
            rows = self._do(
                "SELECT uri, kind, target, flags, depth, referrer FROM page"
                " WHERE target IS NOT NULL AND flags & ? = 0 AND uri > ? ORDER BY uri LIMIT ?",
                (int(Mark.LISTED | Mark.OWN), after, _BATCH),
            ).fetchall()
            for uri, kind, target, marks, depth, referrer in rows:
                yield Redirect(
                    uri, RedirectKind(kind), target, bool(marks & Mark.KNOWN), depth, referrer
                )
                after = uri
            if len(rows) < _BATCH:
                return

    def route(self, uri: str) -> Route:
        """Follow a URL to where it leads."""
        passed: set[str] = set()
        permanent, names, end = True, False, uri
        while True:
            row = self._do("SELECT flags, kind, target FROM page WHERE uri = ?", (end,)).fetchone()
            marks, kind, target = row or (0, None, None)
            stands = bool(marks & (Mark.DOCUMENT | Mark.STOOD)) or target is None
            if stands or end in passed:
                is_document = bool(marks & Mark.DOCUMENT)
                circle = not stands
                return Route(
                    end, is_document, permanent, circle, circle and end == uri, names, marks
                )
            permanent = permanent and kind != RedirectKind.TEMPORARY
            names = names or (kind == RedirectKind.CANONICAL and end != uri)
            passed.add(end)
            end = str(target)

    def count_temporary_redirects(self, target: str) -> int:
        """How many known URLs redirect for now to a target, whatever its query (``/login?next=...``)."""
        path = target.partition("?")[0]
        row = self._do(
            "SELECT count(*) FROM page WHERE (target = ? OR target >= ? AND target < ?)"
            " AND kind = ? AND flags & ?",
            # "@" comes right after "?".
            (path, f"{path}?", f"{path}@", int(RedirectKind.TEMPORARY), int(Mark.KNOWN)),
        ).fetchone()
        return int(row[0])

    def unreached(self) -> Iterator[str]:
        """Stream the known URIs that were not asked for and are not in the listing, by URI."""
        after = ""
        while True:
            rows = self._do(
                "SELECT uri FROM page WHERE flags & ? = ? AND uri > ? ORDER BY uri LIMIT ?",
                (int(Mark.KNOWN | Mark.SETTLED | Mark.LISTED), int(Mark.KNOWN), after, _BATCH),
            ).fetchall()
            for (uri,) in rows:
                yield uri
                after = uri
            if len(rows) < _BATCH:
                return

    def has_absent(self) -> bool:
        """Is any URI known that the listing says nothing of?"""
        row = self._do(
            "SELECT 1 FROM page WHERE flags & ? = ? LIMIT 1",
            (int(Mark.KNOWN | Mark.LISTED), int(Mark.KNOWN)),
        ).fetchone()
        return row is not None

    def count_variant(self, path: str, limit: int) -> bool:
        """Count one more variant of a path, if there are fewer than ``limit``; else give False."""
        row = self._do("SELECT count FROM variants WHERE path = ?", (path,)).fetchone()
        if row and row[0] >= limit:
            return False
        self._do(
            "INSERT INTO variants VALUES (?, 1) ON CONFLICT DO UPDATE SET count = count + 1",
            (path,),
        )
        return True

    def enqueue(self, rows: Iterable[tuple[str | int, ...]]) -> None:
        """Append to the queue: uri, url, depth, referrer, hops, marks."""
        self._database.executemany(
            "INSERT INTO queue (uri, url, depth, referrer, hops, marks) VALUES (?, ?, ?, ?, ?, ?)",
            rows,
        )

    def dequeue(self, count: int) -> list[tuple[str, str, int, str, int, int]]:
        """Take the first so many from the queue."""
        rows = self._do("SELECT * FROM queue ORDER BY number LIMIT ?", (count,)).fetchall()
        if rows:
            self._do("DELETE FROM queue WHERE number <= ?", (rows[-1][0],))
        return [(row[1], row[2], row[3], row[4], row[5], row[6]) for row in islice(rows, count)]

    def clear_queue(self) -> None:
        self._do("DELETE FROM queue")
