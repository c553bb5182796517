"""The files source: the documents in a folder or a store, unchanged ones told without reading them.

This is the local one; ``adapters/remote_files.py`` holds stores to the same rules.

    entry                                   outcome
    --------------------------------------  ---------------------------------------------------------
    same size and mtime as held             NOT_MODIFIED, not opened
    readable                                FETCHED
    cannot be read, changes while read      FAILED; the listing stays complete, for it is named
    larger than max_bytes, and not as held  TOO_LARGE, not opened
    a link that leads out of the root       EXCLUDED
    no document's suffix                    not listed (EXCLUDED when an include pattern asks for it)
    hidden, version control, lock files     not listed
    vanished between listing and reading    GONE
    a folder that cannot be listed          the listing is incomplete
    root missing                            the listing is incomplete, and empty
    nothing wanted under the root, though   the listing is incomplete: an unmounted share is an empty
    documents are known                     folder too (``allow_empty`` for one that was emptied)

A document's URI is the ``file://`` URL of its path under the resolved root, which opens in any viewer.
With ``base_uri`` it is that plus the path relative to the root: it survives a move of the folder, and may
be the address under which the files are published.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from fsspec.implementations.local import LocalFileSystem

from tidemark.adapters.files_rules import FileRules, end_of, limited, media_type, quoted
from tidemark.adapters.files_walk import Entry, FolderWalk
from tidemark.adapters.remote_files import READS, RemoteFiles
from tidemark.adapters.remote_stores import check_location
from tidemark.adapters.size_bound import too_large
from tidemark.domain.credentials import Credentials
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.hashing import fingerprint
from tidemark.domain.locations import is_chained, scheme_of
from tidemark.domain.model import (
    CrawlEnd,
    CrawlItem,
    Outcome,
    RawDocument,
    SourceItem,
    Validators,
)
from tidemark.ports import Clock, Known

_ADAPTER_VERSION = 1
"""Raised when the same file would be given other bytes or another media type than before."""


@dataclass(frozen=True, slots=True)
class FilesOptions:
    """A place with files (or a single file) to index.

    path: a local path or ``file://`` URL, a URL of a store (``adapters/remote_stores.py`` names them), or a
        zip archive as ``zip://folder/in/it::URL`` or by its local path.
    include, exclude: patterns over paths relative to it (``adapters/patterns.py``).
    max_bytes: of one file; larger ones are not read.
    base_uri: what URIs start with instead of the place's own URL.
    allow_empty: an empty place means that everything in it was deleted.
    credentials: what opens the store.
    allow_private: a web, WebDAV or SFTP server may be on this machine or in a private network.
    """

    path: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_bytes: int = 50_000_000
    base_uri: str = ""
    allow_empty: bool = False
    credentials: Credentials | None = None
    allow_private: bool = False

    def __post_init__(self) -> None:
        """Raises ``ConfigurationError`` for what could never be read; opens nothing."""
        if not self.path:
            raise ConfigurationError("A files source has no path.", "Give it the path of a folder.")
        if self.max_bytes < 1:
            raise ConfigurationError(f"max_bytes is {self.max_bytes}.", "It must be 1 or more.")
        if not self._is_local:
            check_location(self.path)

    @property
    def _is_local(self) -> bool:
        return not is_chained(self.path) and scheme_of(self.path) in {None, "file", "local"}

    @property
    def is_remote(self) -> bool:
        """Is it read through a store (a zip archive is one) and not as a local folder or file?"""
        return not self._is_local or (
            self.path.lower().endswith(".zip") and not Path(self.root).is_dir()
        )

    @property
    def root(self) -> str:
        """The absolute path of a local place, links in it resolved."""
        local = LocalFileSystem._strip_protocol(self.path)  # noqa: SLF001 - fsspec's way to read its URLs
        return os.path.realpath(str(local))

    @property
    def location(self) -> str:
        """The URL of a store."""
        return self.path if not self._is_local else f"zip://::{Path(self.root).as_uri()}"

    @property
    def fingerprint(self) -> str:
        """Of what decides the bytes handed over: nothing but this adapter."""
        return fingerprint("fetch", {"kind": "files", "version": _ADAPTER_VERSION})


def _utc_now() -> datetime:
    return datetime.now(UTC)


class FilesSource:
    """Lists and reads one place (a ``Source``); what is not in it any more is gone."""

    def __init__(self, options: FilesOptions, clock: Clock = _utc_now) -> None:
        self.fingerprint = options.fingerprint
        self._options = options
        self._clock = clock

    def crawl(self, known: Known, limit: int | None = None) -> Iterator[CrawlItem | CrawlEnd]:
        """Walk it in order of paths, one file in memory at a time (``Source.crawl``)."""
        # Decided at every crawl: a path that ends in .zip may have become a folder.
        if self._options.is_remote:
            return RemoteFiles(self._options, self._clock).crawl(known, limit)
        return _LocalFiles(self._options, self._clock).crawl(known, limit)


class _LocalFiles:
    def __init__(self, options: FilesOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._rules = FileRules(options.include, options.exclude)

    def crawl(self, known: Known, limit: int | None) -> Iterator[CrawlItem | CrawlEnd]:
        root = self._options.root
        walk = FolderWalk(root, self._rules.is_document)
        listed = count = 0
        for entry in _entries(root, walk):
            found = self._item(root, entry, known)
            if found is not None:
                yield found
                listed += 1
                count += found.outcome in {Outcome.FETCHED, Outcome.NOT_MODIFIED}
            if count == limit:
                walk.problems.append(limited(limit))
                break
        yield end_of(
            walk.problems,
            listed=bool(listed),
            allow_empty=self._options.allow_empty,
            known=known,
            place=root,
        )

    def _item(self, root: str, entry: Entry, known: Known) -> CrawlItem | None:
        """The outcome of one entry, None for one that is not listed."""
        if not self._rules.lists(entry.relative) and not (
            entry.refused and self._rules.admits(entry.relative)
        ):
            return None
        item = SourceItem(self._uri(root, entry))
        if entry.refused:
            return CrawlItem(item, Outcome.EXCLUDED, detail=entry.refused)
        kind = media_type(entry.relative)
        if kind is None:
            return CrawlItem(item, Outcome.EXCLUDED, detail="has a suffix of no known format")
        if entry.failure:
            return CrawlItem(item, Outcome.FAILED, detail=entry.failure)
        try:
            return self._read(item.uri, entry.path, kind, known)
        except FileNotFoundError:
            return CrawlItem(item, Outcome.GONE, detail="was deleted while the folder was read")
        except OSError as error:
            return CrawlItem(item, Outcome.FAILED, detail=f"cannot be read ({error.strerror})")

    def _read(self, uri: str, path: str, media_type: str, known: Known) -> CrawlItem:
        for _ in range(READS):
            validators = _validators(path)
            item = SourceItem(uri, validators)
            if known.validators(uri) == validators:
                return CrawlItem(item, Outcome.NOT_MODIFIED)
            if (validators.size or 0) > self._options.max_bytes:
                return too_large(item, self._options.max_bytes, validators.size)
            with open(path, "rb") as file:  # noqa: PTH123 - a path with any bytes in it
                content = file.read(self._options.max_bytes + 1)
            # Bytes read while someone wrote are no version of the file.
            if _validators(path) == validators and len(content) == validators.size:
                changed_at = datetime.fromtimestamp(validators.mtime or 0.0, UTC)
                raw = RawDocument(
                    uri, content, media_type, None, self._clock(), validators, changed_at
                )
                return CrawlItem(item, Outcome.FETCHED, raw)
        return CrawlItem(SourceItem(uri), Outcome.FAILED, detail="changes while it is read")

    def _uri(self, root: str, entry: Entry) -> str:
        if self._options.base_uri:
            return f"{self._options.base_uri.rstrip('/')}/{quoted(entry.relative)}"
        return "file://" + quoted(root if entry.path == root else f"{root}/{entry.relative}")


def _entries(root: str, walk: FolderWalk) -> Iterator[Entry]:
    try:
        mode = os.stat(root).st_mode  # noqa: PTH116 - a path with any bytes in it
    except OSError as error:
        walk.problems.append(
            f"{root} cannot be read ({error.strerror}): is the share mounted, the path right?"
        )
        return
    if stat.S_ISREG(mode):
        yield Entry(os.path.basename(root), root)  # noqa: PTH119 - as above
    else:
        yield from walk.entries()


def _validators(path: str) -> Validators:
    found = os.stat(path)  # noqa: PTH116 - a path with any bytes in it
    return Validators(size=found.st_size, mtime=found.st_mtime)
