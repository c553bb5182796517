"""The git source: the tracked files of a branch, unchanged ones told by their content's own id.

    file                                       outcome
    -----------------------------------------  -----------------------------------------------------------
    its blob id is the one held                NOT_MODIFIED, not read
    another blob id                            FETCHED, with a link to it at its last commit, and its time
    larger than max_bytes, and not as held     TOO_LARGE, not read
    a link                                     EXCLUDED, not read
    kept in LFS (a pointer in its place)       EXCLUDED
    in a submodule, hidden, no document        not listed (EXCLUDED when an include pattern asks for it)
    not tracked any more                       not listed: the listing is authoritative
    the remote is away, or refuses             the copy is listed; the listing is incomplete
    no branch, no repository                   the same, with the problem

What changed is found by comparing every file's blob id with the one held, which is exactly what a diff
between the last indexed commit and this one would tell, and right after a force push, a fresh copy, or a
run that was applied in part as well. The commit is the end's ``state``.
"""

import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from filelock import FileLock, Timeout

from tidemark.adapters.sources.git.options import GitOptions
from tidemark.adapters.sources.git.program import Addresses, BrokenCopyError, GitProgram
from tidemark.adapters.sources.selection import (
    FileRules,
    is_hidden,
    limit_problem,
    listing_end,
    media_type,
    too_large,
    utc_now,
)
from tidemark.domain.documents import (
    CrawlEnd,
    CrawlItem,
    Outcome,
    RawDocument,
    SourceItem,
    Validators,
)
from tidemark.domain.errors import PermanentError, TidemarkError, TransientError
from tidemark.domain.hashing import digest_text
from tidemark.ports.progress import Clock
from tidemark.ports.source import Known

# The last commit of every path of a branch, brought up to date with the commits that came since.
#
# It is kept in a small database beside the copy of the repository, so memory does not grow with the files.

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
        row = self._database.execute(
            "SELECT commit_id, at FROM change WHERE path = ?",
            (path.encode("utf-8", "surrogateescape"),),
        ).fetchone()
        return Change(row[0], datetime.fromtimestamp(row[1], UTC)) if row else None


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
        _update(git, database, head)
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


def _update(git: GitProgram, database: sqlite3.Connection, head: str) -> None:
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
        if match := _COMMIT_LINE.fullmatch(name):
            commit, at = match[1].decode("ascii"), int(match[2])
        elif name:
            yield name, commit, at, walk


# A bare copy of one branch of a repository, kept from crawl to crawl.
#
# It has the branch's whole history, since the time of each file's last change is asked for; a shallow copy
# would give every file the time of the copy. It holds no working tree.

_HEAD = "refs/tidemark/head"
_LOCK_SECONDS = 1_800
_BRANCH_NAME = re.compile(rb"^ref: refs/heads/(.+)\tHEAD$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Blob:
    """A tracked file at the commit that was indexed.

    path: decoded; bytes that are no UTF-8 as surrogates.
    mode: as git writes it, "100644" for a plain file, "120000" for a link.
    size: bytes.
    """

    path: str
    mode: str
    object_id: str
    size: int


class GitClone:
    """The copy in ``folder``, held by one process at a time."""

    def __init__(self, options: GitOptions, folder: Path) -> None:
        self.options = options
        self.folder = folder
        self._bare = folder / "repository.git"
        self.git = GitProgram(options, self._bare)
        self.branch = options.branch
        self.head = ""
        """The commit to index, "" before ``update`` and for a copy that has none."""

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Raises ``TransientError`` while another process works on the copy."""
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(self.folder / "lock", timeout=_LOCK_SECONDS):
                yield
        except Timeout:
            raise TransientError(
                f"Another process holds the copy of {self.options.url}.", "Wait for its end."
            ) from None

    def update(self) -> None:
        """Bring the copy up to date. When that fails, ``head`` is the commit that it had."""
        if not (self._bare / "HEAD").exists():
            self._recreate()
        self.head = self._commit_of(_HEAD)
        self.branch = self.options.branch or self._default_branch()
        source = self._remote_reference()
        try:
            self._fetch(source)
        except BrokenCopyError:
            self._recreate()
            self._fetch(source)
        self.head = self._commit_of(self.options.branch if self.options.is_commit else _HEAD)
        if not self.head:
            raise PermanentError(
                f"{self.options.url} has no commit {self.options.branch}.",
                "It must be reachable from a branch.",
            )
        if self.options.is_commit:
            self.git.local("update-ref", _HEAD, self.head)

    def blobs(self) -> Iterator[Blob]:
        """Stream the tracked files of the folder, in git's order; not what submodules hold."""
        folder = self.options.folder.strip("/")
        tree = f"{self.head}:{folder}" if folder else self.head
        with self.git.stream("ls-tree", "-r", "-l", "-z", "--full-tree", tree) as process:
            for record in records(process.stdout, b"\0"):
                about, _, path = record.partition(b"\t")
                mode, kind, object_id, size = about.decode("ascii").split()
                if kind == "blob":
                    name = path.decode("utf-8", "surrogateescape")
                    yield Blob(name, mode, object_id, int(size))
            if process.wait():
                raise PermanentError(
                    f"The folder {folder!r} is not in {self.options.url} at {self.branch}."
                    if folder
                    else f"The copy of {self.options.url} cannot be read.",
                    "Check the folder; a broken copy is made anew when its folder is deleted: "
                    f"{self.folder}.",
                )

    @contextmanager
    def reader(self) -> Iterator["BlobReader"]:
        """Reads many blobs through one process."""
        with self.git.stream("cat-file", "--batch", writes=True) as process:
            yield BlobReader(process)

    def _recreate(self) -> None:
        shutil.rmtree(self._bare, ignore_errors=True)
        self.git.local("init", "--quiet", "--bare", "--template=", str(self._bare))

    def _remote_reference(self) -> str:
        """What to fetch. Raises ``PermanentError`` when the remote has no such branch or tag."""
        address, branch = self.options.remote.address, self.options.branch
        if self.options.is_commit:
            return "+refs/heads/*:refs/tidemark/heads/*"
        if not branch:
            output = self.git.remote("ls-remote", "--symref", "--", address, "HEAD")
            match = _BRANCH_NAME.search(output)
            self.branch = match[1].decode("utf-8", "replace") if match else "HEAD"
            if not output.strip():
                raise PermanentError(
                    f"{self.options.url} has no commit yet.", "Push one, or name another branch."
                )
            (self.folder / "branch").write_text(self.branch, encoding="utf-8")
            return f"+HEAD:{_HEAD}"
        names = [f"refs/heads/{branch}", f"refs/tags/{branch}"]
        output = self.git.remote("ls-remote", "--", address, *names)
        listed = {
            line.partition(b"\t")[2].decode("utf-8", "replace") for line in output.splitlines()
        }
        for name in names:
            if name in listed:
                return f"+{name}:{_HEAD}"
        raise PermanentError(
            f"{self.options.url} has no branch or tag {branch!r}.", "Check its name."
        )

    def _fetch(self, reference: str) -> None:
        self.git.remote(
            "fetch", "--quiet", "--prune", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head",
            "--", self.options.remote.address, reference,
        )  # fmt: skip

    def _commit_of(self, name: str) -> str:
        with suppress(TidemarkError):
            output = self.git.local("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
            return output.decode("ascii").strip()
        return ""

    def _default_branch(self) -> str:
        with suppress(OSError):
            return (self.folder / "branch").read_text(encoding="utf-8") or "HEAD"
        return "HEAD"


class BlobReader:
    """Asks a running ``git cat-file --batch`` for blobs."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process

    def read(self, object_id: str) -> bytes:
        """Raises ``PermanentError`` for one that the copy does not have."""
        asked, answer = self._process.stdin, self._process.stdout
        if asked is None or answer is None:
            raise PermanentError("git was not started to be asked.")
        try:
            asked.write(f"{object_id}\n".encode("ascii"))
            asked.flush()
            head = answer.readline().split()
            content = answer.read(int(head[2]) + 1) if len(head) == 3 else b""
        except (OSError, ValueError) as error:
            raise TransientError("git ended while it was read from.", "Run again.") from error
        if len(head) != 3 or len(content) != int(head[2]) + 1:
            raise PermanentError(
                "The copy of the repository lacks a file's content.",
                "Delete the copy's folder; it is made anew.",
            )
        return content[:-1]


_LINK_MODE = "120000"
_LFS_POINTER = re.compile(
    rb"version https?://(?:git-lfs\.github\.com|hawser\.github\.com)/spec/[^\n]*\n(?:.*\n)*?oid sha256:"
)
_LFS_POINTER_BYTES = 1_024
"""The most that a pointer may have, by the specification of Git LFS."""
_IN_LFS = (
    "is kept in LFS, which is not read: commit the file itself to the repository, or index a checkout with"
    " its LFS files as a source of files"
)


class GitSource:
    """Lists and reads one branch of a repository (a ``Source``)."""

    def __init__(self, options: GitOptions, cache: Path, clock: Clock = utc_now) -> None:
        """``cache`` is a folder for the copies of repositories, which may share it."""
        self.fingerprint = options.fingerprint
        self._options = options
        key = digest_text(f"{options.remote.address} {options.branch}")[:16]
        name = options.remote.path.rpartition("/")[2][:40]
        safe = "".join(c if c.isascii() and c.isalnum() else "-" for c in name)
        self._folder = cache / f"{safe}-{key}"
        self._clock = clock

    def crawl(self, known: Known, limit: int | None = None) -> Iterator[CrawlItem | CrawlEnd]:
        """Bring the copy up to date, then list it, one file in memory at a time (``Source.crawl``)."""
        problems: list[str] = []
        crawl = _Crawl(self._options, known, self._clock)
        head = ""
        try:
            clone = GitClone(self._options, self._folder)
            with clone.locked():
                try:
                    clone.update()
                except TidemarkError as error:
                    problems.append(str(error))
                if clone.head:
                    yield from crawl.items(clone, limit, problems)
                head = clone.head
        except TidemarkError as error:
            problems.append(str(error))
        except OSError as error:
            problems.append(
                f"The folder {self._folder} cannot be used ({error.strerror}). Check its rights and space."
            )
        end = listing_end(
            problems,
            listed=bool(crawl.listed),
            # An empty branch of a repository that answers is no unmounted share.
            allow_empty=True,
            known=known,
            place=self._options.url,
        )
        yield CrawlEnd(
            complete=end.complete,
            authoritative=True,
            problem=end.problem,
            state=head if end.complete else "",
        )


@dataclass(slots=True)
class _Crawl:
    options: GitOptions
    known: Known
    clock: Clock
    listed: int = 0

    def items(self, clone: GitClone, limit: int | None, problems: list[str]) -> Iterator[CrawlItem]:
        rules = FileRules(self.options.include, self.options.exclude)
        addresses = Addresses.of(self.options, clone.branch)
        folder = self.options.folder.strip("/")
        count = 0
        with ExitStack() as stack:
            changes = stack.enter_context(history(clone.git, clone.folder, clone.head))
            reader = stack.enter_context(clone.reader())
            for blob in clone.blobs():
                if any(map(is_hidden, blob.path.split("/"))) or not rules.lists(blob.path):
                    continue
                path = f"{folder}/{blob.path}" if folder else blob.path
                item = self._item(blob, path, addresses, changes, reader)
                yield item
                self.listed += 1
                count += item.outcome in {Outcome.FETCHED, Outcome.NOT_MODIFIED}
                if count == limit:
                    problems.append(limit_problem(limit))
                    return

    def _item(
        self, blob: Blob, path: str, addresses: Addresses, history: History, reader: BlobReader
    ) -> CrawlItem:
        uri = addresses.uri(path)
        validators = Validators(size=blob.size, revision=blob.object_id)
        item = SourceItem(uri, validators)
        kind = media_type(path)
        if blob.mode == _LINK_MODE:
            return CrawlItem(item, Outcome.EXCLUDED, detail="is a link; links are not followed")
        if kind is None:
            return CrawlItem(item, Outcome.EXCLUDED, detail="has a suffix of no known format")
        if self.known.validators(uri) == validators:
            return CrawlItem(item, Outcome.NOT_MODIFIED)
        if blob.size > self.options.max_bytes:
            return too_large(item, self.options.max_bytes, blob.size)
        try:
            content = reader.read(blob.object_id)
        except TidemarkError as error:
            return CrawlItem(SourceItem(uri), Outcome.FAILED, detail=str(error))
        if blob.size < _LFS_POINTER_BYTES and _LFS_POINTER.match(content):
            return CrawlItem(item, Outcome.EXCLUDED, detail=_IN_LFS)
        change = history.last_change(path)
        raw = RawDocument(
            uri,
            content,
            kind,
            None,
            self.clock(),
            validators,
            modified_at=change.at if change else None,
            link=addresses.link(path, change.commit if change else ""),
        )
        return CrawlItem(item, Outcome.FETCHED, raw)
