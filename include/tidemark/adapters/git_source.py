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
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tidemark.adapters.files_rules import FileRules, end_of, limited, media_type
from tidemark.adapters.files_walk import is_hidden
from tidemark.adapters.git_clone import Blob, BlobReader, GitClone
from tidemark.adapters.git_history import History, history
from tidemark.adapters.git_options import Addresses, GitOptions
from tidemark.adapters.size_bound import too_large
from tidemark.domain.errors import TidemarkError
from tidemark.domain.hashing import digest_text
from tidemark.domain.model import (
    CrawlEnd,
    CrawlItem,
    Outcome,
    RawDocument,
    SourceItem,
    Validators,
)
from tidemark.ports import Clock, Known

__all__ = ["GitOptions", "GitSource"]

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


def _utc_now() -> datetime:
    return datetime.now(UTC)


class GitSource:
    """Lists and reads one branch of a repository (a ``Source``)."""

    def __init__(self, options: GitOptions, cache: Path, clock: Clock = _utc_now) -> None:
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
            with clone.held():
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
        end = end_of(
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
                found = self._item(blob, path, addresses, changes, reader)
                yield found
                self.listed += 1
                count += found.outcome in {Outcome.FETCHED, Outcome.NOT_MODIFIED}
                if count == limit:
                    problems.append(limited(limit))
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
