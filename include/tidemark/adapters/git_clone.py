"""A bare copy of one branch of a repository, kept from crawl to crawl.

It has the branch's whole history, since the time of each file's last change is asked for; a shallow copy
would give every file the time of the copy. It holds no working tree.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from tidemark.adapters.git_history import records
from tidemark.adapters.git_options import GitOptions
from tidemark.adapters.git_program import BrokenCopyError, GitProgram
from tidemark.domain.errors import PermanentError, TidemarkError, TransientError

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
    def held(self) -> Iterator[None]:
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
            self._start_anew()
        self.head = self._resolved(_HEAD)
        self.branch = self.options.branch or self._noted_branch()
        source = self._remote_reference()
        try:
            self._fetch(source)
        except BrokenCopyError:
            self._start_anew()
            self._fetch(source)
        self.head = self._resolved(self.options.branch if self.options.is_commit else _HEAD)
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

    def _start_anew(self) -> None:
        shutil.rmtree(self._bare, ignore_errors=True)
        self.git.local("init", "--quiet", "--bare", "--template=", str(self._bare))

    def _remote_reference(self) -> str:
        """What to fetch. Raises ``PermanentError`` when the remote has no such branch or tag."""
        address, branch = self.options.remote.address, self.options.branch
        if self.options.is_commit:
            return "+refs/heads/*:refs/tidemark/heads/*"
        if not branch:
            said = self.git.remote("ls-remote", "--symref", "--", address, "HEAD")
            found = _BRANCH_NAME.search(said)
            self.branch = found[1].decode("utf-8", "replace") if found else "HEAD"
            if not said.strip():
                raise PermanentError(
                    f"{self.options.url} has no commit yet.", "Push one, or name another branch."
                )
            (self.folder / "branch").write_text(self.branch, encoding="utf-8")
            return f"+HEAD:{_HEAD}"
        names = [f"refs/heads/{branch}", f"refs/tags/{branch}"]
        said = self.git.remote("ls-remote", "--", address, *names)
        listed = {line.partition(b"\t")[2].decode("utf-8", "replace") for line in said.splitlines()}
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

    def _resolved(self, name: str) -> str:
        with suppress(TidemarkError):
            said = self.git.local("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
            return said.decode("ascii").strip()
        return ""

    def _noted_branch(self) -> str:
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
