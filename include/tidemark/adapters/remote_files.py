"""Files in a store behind a network or in an archive, under the rules of a local folder.

entry                                        outcome
-------------------------------------------  ----------------------------------------------------
listed with the validators held              NOT_MODIFIED, not opened
the server says so to a conditional request  NOT_MODIFIED
readable                                     FETCHED
refused, broken, changes at every read       FAILED; the listing stays complete, for it is named
larger than max_bytes, and not as held       TOO_LARGE, not read further than to see it
a link, a bomb (``remote_zip.py``)           EXCLUDED
vanished between listing and reading         GONE
no document's suffix, hidden                 as in ``adapters/files.py``
a folder that cannot be listed               the listing is incomplete
the store away, refused or not there         the listing is incomplete
ten reads in a row fail by an outage         the listing is incomplete and ends there
nothing wanted, though documents are known   the listing is incomplete (``allow_empty``)
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from tidemark.adapters.files_rules import FileRules, end_of, limited, media_type, quoted
from tidemark.adapters.files_walk import is_hidden
from tidemark.adapters.remote_stores import open_store
from tidemark.adapters.remote_types import ChangedError, Entry, Location, Store
from tidemark.adapters.size_bound import too_large
from tidemark.domain.credentials import Credentials
from tidemark.domain.errors import TidemarkError, TransientError
from tidemark.domain.model import (
    CrawlEnd,
    CrawlItem,
    Outcome,
    RawDocument,
    SourceItem,
    Validators,
)
from tidemark.ports import Clock, Known

READS = 3
"""How often a file that changes while it is read is read."""
_OUTAGES_IN_A_ROW = 10


class Options(Protocol):
    """The part of ``FilesOptions`` that concerns a store."""

    @property
    def location(self) -> str: ...
    @property
    def include(self) -> tuple[str, ...]: ...
    @property
    def exclude(self) -> tuple[str, ...]: ...
    @property
    def max_bytes(self) -> int: ...
    @property
    def base_uri(self) -> str: ...
    @property
    def allow_empty(self) -> bool: ...
    @property
    def allow_private(self) -> bool: ...
    @property
    def credentials(self) -> Credentials | None: ...


class RemoteFiles:
    """One crawl over one store."""

    def __init__(self, options: Options, clock: Clock) -> None:
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
        yield end_of(
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
            found = self._item(store, entry, known)
            if found is not None:
                yield found
                self._listed += 1
                count += found.outcome in {Outcome.FETCHED, Outcome.NOT_MODIFIED}
            if count == limit:
                self._problems.append(limited(limit))
                return
            if self._outages == _OUTAGES_IN_A_ROW:
                detail = found.detail if found else ""
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
            found = self._read(store, replace(entry, uri=uri), kind, known)
        except FileNotFoundError:
            return CrawlItem(SourceItem(uri), Outcome.GONE, detail="was deleted meanwhile")
        except TidemarkError as error:
            self._outages += isinstance(error, TransientError)
            return CrawlItem(SourceItem(uri), Outcome.FAILED, detail=str(error))
        self._outages = 0
        return found

    def _read(self, store: Store, entry: Entry, kind: str, known: Known) -> CrawlItem:
        """Raises ``FileNotFoundError`` for what vanished, ``TidemarkError`` for what cannot be read."""
        held = known.validators(entry.uri)
        max_bytes = self._options.max_bytes
        for attempt in range(READS):
            if attempt:
                entry = replace(store.again(entry), uri=entry.uri)
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
