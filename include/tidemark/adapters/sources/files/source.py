"""The files source: the documents in a folder or a store, unchanged ones told without reading them.

This is the local one; stores are held to the same rules.

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
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from fsspec.utils import get_protocol

from tidemark.adapters.sources.files.options import FilesOptions
from tidemark.adapters.sources.files.store import ChangedError, Entry, Location, Store
from tidemark.adapters.sources.selection import (
    FileRules,
    FolderWalk,
    LocalEntry,
    is_hidden,
    limit_problem,
    listing_end,
    media_type,
    quoted,
    too_large,
    utc_now,
)
from tidemark.domain.connections import INDEX, S3, SFTP, WEBDAV
from tidemark.domain.documents import (
    CrawlEnd,
    CrawlItem,
    Outcome,
    RawDocument,
    SourceItem,
    Validators,
)
from tidemark.domain.errors import TidemarkError, TransientError
from tidemark.ports.progress import Clock
from tidemark.ports.source import Known

# Which store a URL means.
#
# s3, s3a                                        an S3 bucket, on AWS or any server that speaks S3
# gs, gcs · abfs, abfss, az                      Google and Azure buckets, through fsspec
# sftp, ssh                                      a folder on an SSH server
# webdav, dav, webdav+http · webdavs, davs, ...  a WebDAV folder over HTTP · over HTTPS
# http, https                                    a folder that a web server shows as a page of links
# zip://folder/in/it::URL                        a zip archive: a local one, or one in a bucket
# any other of fsspec's                          as fsspec's package for it reads it
#
# Credentials never stand in the URL. Packages that only one kind of store needs are imported by it.


@contextmanager
def open_store(location: Location) -> Iterator[Store]:
    """Open the store of a location that was checked.

    Raises ``TidemarkError`` when it is away, and ``ConfigurationError`` for a package that is missing.
    """
    store = _store(location)
    try:
        yield store
    finally:
        store.close()


def _store(location: Location) -> Store:
    protocol = get_protocol(location.url)
    if protocol == "zip":
        from tidemark.adapters.sources.files.zip_store import ZipStore

        return ZipStore(location)
    if protocol in S3:
        from tidemark.adapters.sources.files.s3_store import S3Store

        return S3Store(location)
    if protocol in SFTP:
        from tidemark.adapters.sources.files.sftp_store import SftpStore

        return SftpStore(location)
    if protocol in INDEX:
        from tidemark.adapters.sources.files.http_store import HttpIndexStore

        return HttpIndexStore(location)
    if protocol in WEBDAV:
        from tidemark.adapters.sources.files.http_store import WebdavStore

        scheme = WEBDAV[protocol]
        url = scheme + location.url[len(protocol) :]
        return WebdavStore(Location(url, location.credentials, location.allow_private))
    from tidemark.adapters.sources.files.fsspec_store import FsspecStore

    return FsspecStore(location)


# Files in a store behind a network or in an archive, under the rules of a local folder.
#
# entry                                        outcome
# -------------------------------------------  ----------------------------------------------------
# listed with the validators held              NOT_MODIFIED, not opened
# the server says so to a conditional request  NOT_MODIFIED
# readable                                     FETCHED
# refused, broken, changes at every read       FAILED; the listing stays complete, for it is named
# larger than max_bytes, and not as held       TOO_LARGE, not read further than to see it
# a link, a bomb (``zip_store.py``)           EXCLUDED
# vanished between listing and reading         GONE
# no document's suffix, hidden                 as in a local folder
# a folder that cannot be listed               the listing is incomplete
# the store away, refused or not there         the listing is incomplete
# ten reads in a row fail by an outage         the listing is incomplete and ends there
# nothing wanted, though documents are known   the listing is incomplete (``allow_empty``)

READS = 3
"""How often a file that changes while it is read is read."""
_OUTAGES_IN_A_ROW = 10


class RemoteFiles:
    """One crawl over one store."""

    def __init__(self, options: FilesOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self._rules = FileRules(options.include, options.exclude)
        self._problems: list[str] = []
        self._listed = self._outages = 0

    def crawl(self, known: Known, limit: int | None) -> Iterator[CrawlItem | CrawlEnd]:
        """See ``Source.crawl``."""
        place = self._options.location
        try:
            with open_store(self._location()) as store:
                place = store.place
                yield from self._items(store, known, limit)
        except TidemarkError as error:
            self._problems.append(str(error))
        yield listing_end(
            self._problems,
            listed=bool(self._listed),
            allow_empty=self._options.allow_empty,
            known=known,
            place=place,
        )

    def _location(self) -> Location:
        return Location(
            self._options.location, self._options.credentials, self._options.allow_private
        )

    def _items(self, store: Store, known: Known, limit: int | None) -> Iterator[CrawlItem]:
        count = 0
        for entry in store.entries(self._problems):
            item = self._item(store, entry, known)
            if item is not None:
                yield item
                self._listed += 1
                count += item.outcome in {Outcome.FETCHED, Outcome.NOT_MODIFIED}
            if count == limit:
                self._problems.append(limit_problem(limit))
                return
            if self._outages == _OUTAGES_IN_A_ROW:
                detail = item.detail if item else ""
                self._problems.append(f"{self._outages} files in a row could not be read: {detail}")
                return

    def _item(self, store: Store, entry: Entry, known: Known) -> CrawlItem | None:
        """The outcome of one entry, None for one that is not listed."""
        # What is refused is told even if it is hidden: ".." is how a name leads out.
        hidden = not entry.refused and any(map(is_hidden, entry.relative.split("/")))
        if hidden or not self._rules.lists(entry.relative):
            return None
        uri = self._uri(entry)
        kind = media_type(entry.relative)
        refused = entry.refused or ("" if kind else "has a suffix of no known format")
        if refused or kind is None:
            return CrawlItem(SourceItem(uri), Outcome.EXCLUDED, detail=refused)
        try:
            item = self._read(store, replace(entry, uri=uri), kind, known)
        except FileNotFoundError:
            return CrawlItem(SourceItem(uri), Outcome.GONE, detail="was deleted meanwhile")
        except TidemarkError as error:
            self._outages += isinstance(error, TransientError)
            return CrawlItem(SourceItem(uri), Outcome.FAILED, detail=str(error))
        self._outages = 0
        return item

    def _read(self, store: Store, entry: Entry, kind: str, known: Known) -> CrawlItem:
        """Raises ``FileNotFoundError`` for what vanished, ``TidemarkError`` for what cannot be read."""
        held = known.validators(entry.uri)
        max_bytes = self._options.max_bytes
        for attempt in range(READS):
            if attempt:
                entry = replace(store.refresh(entry), uri=entry.uri)
            item = SourceItem(entry.uri, entry.validators)
            if entry.validators and entry.validators == held:
                return CrawlItem(item, Outcome.NOT_MODIFIED)
            if (entry.size or 0) > max_bytes:
                return too_large(item, max_bytes, entry.size)
            try:
                body = store.read(entry, max_bytes, held)
            except ChangedError:
                continue
            if body is None:
                return CrawlItem(SourceItem(entry.uri, held or Validators()), Outcome.NOT_MODIFIED)
            if body.size is not None or len(body.content) > max_bytes:
                return too_large(SourceItem(entry.uri, body.validators), max_bytes, body.size)
            raw = RawDocument(
                entry.uri,
                body.content,
                kind,
                None,
                self._clock(),
                body.validators,
                body.modified_at,
            )
            return CrawlItem(SourceItem(entry.uri, body.validators), Outcome.FETCHED, raw)
        return CrawlItem(SourceItem(entry.uri), Outcome.FAILED, detail="changes while it is read")

    def _uri(self, entry: Entry) -> str:
        if self._options.base_uri:
            return f"{self._options.base_uri.rstrip('/')}/{quoted(entry.relative)}"
        return entry.uri


class FilesSource:
    """Lists and reads one place (a ``Source``); what is not in it any more is gone."""

    def __init__(self, options: FilesOptions, clock: Clock = utc_now) -> None:
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
            item = self._item(root, entry, known)
            if item is not None:
                yield item
                listed += 1
                count += item.outcome in {Outcome.FETCHED, Outcome.NOT_MODIFIED}
            if count == limit:
                walk.problems.append(limit_problem(limit))
                break
        yield listing_end(
            walk.problems,
            listed=bool(listed),
            allow_empty=self._options.allow_empty,
            known=known,
            place=root,
        )

    def _item(self, root: str, entry: LocalEntry, known: Known) -> CrawlItem | None:
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

    def _uri(self, root: str, entry: LocalEntry) -> str:
        if self._options.base_uri:
            return f"{self._options.base_uri.rstrip('/')}/{quoted(entry.relative)}"
        return "file://" + quoted(root if entry.path == root else f"{root}/{entry.relative}")


def _entries(root: str, walk: FolderWalk) -> Iterator[LocalEntry]:
    try:
        mode = os.stat(root).st_mode  # noqa: PTH116 - a path with any bytes in it
    except OSError as error:
        walk.problems.append(
            f"{root} cannot be read ({error.strerror}): is the share mounted, the path right?"
        )
        return
    if stat.S_ISREG(mode):
        yield LocalEntry(os.path.basename(root), root)  # noqa: PTH119 - as above
    else:
        yield from walk.entries()


def _validators(path: str) -> Validators:
    status = os.stat(path)  # noqa: PTH116 - a path with any bytes in it
    return Validators(size=status.st_size, mtime=status.st_mtime)
