"""A source whose site is a dict: for tests, and for anything that has its documents at hand."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from tidemark.domain.documents import (
    CrawlEnd,
    CrawlItem,
    Outcome,
    RawDocument,
    SourceItem,
    Validators,
)
from tidemark.domain.hashing import digest
from tidemark.ports.progress import Clock
from tidemark.ports.source import Known


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class MemorySource:
    """Yields its ``documents`` in their order; everything may be changed between crawls.

    documents: text or bytes by canonical URI.
    media_types: by URI, where it is not ``media_type``.
    failing, gone, excluded, too_large: URIs with the detail to tell; they come before ``documents``.
    moved, aliases: URIs with the URI of the document that they lead to; they come before ``documents`` too.
    state: what the end of a complete crawl says of it.
    away: the problem with the source as a whole; nothing is listed then.
    incomplete: a problem that cuts the listing off after the documents.
    with_etags: without, the source has no validators and hands over all bytes every time.
    fetched: how often the bytes of a URI were handed over.
    crawls: how often it was crawled.
    """

    documents: dict[str, str | bytes] = field(default_factory=dict)
    media_type: str = "text/html"
    media_types: dict[str, str] = field(default_factory=dict)
    failing: dict[str, str] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)
    excluded: dict[str, str] = field(default_factory=dict)
    too_large: dict[str, str] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    state: str = ""
    away: str = ""
    incomplete: str = ""
    authoritative: bool = True
    with_etags: bool = True
    fingerprint: str = "memory"
    clock: Clock = _utc_now
    fetched: Counter[str] = field(default_factory=Counter)
    crawls: int = 0

    def crawl(self, known: Known, limit: int | None = None) -> Iterator[CrawlItem | CrawlEnd]:
        """See ``Source.crawl``."""
        self.crawls += 1
        if self.away:
            yield CrawlEnd(complete=False, authoritative=self.authoritative, problem=self.away)
            return
        told = self._told()
        yield from told.values()
        documents = {uri: body for uri, body in self.documents.items() if uri not in told}
        count = 0
        for uri, body in documents.items():
            if count == limit:
                break
            count += 1
            yield self._item(uri, body.encode() if isinstance(body, str) else body, known)
        problem = self.incomplete
        if limit is not None and count >= limit:
            problem = f"It was limited to {limit:,} documents."
        yield CrawlEnd(
            complete=not problem,
            authoritative=self.authoritative,
            problem=problem,
            state=self.state,
        )

    def _told(self) -> dict[str, CrawlItem]:
        outcomes: list[tuple[Outcome, Mapping[str, str]]] = [
            (Outcome.GONE, self.gone),
            (Outcome.EXCLUDED, self.excluded),
            (Outcome.TOO_LARGE, self.too_large),
            (Outcome.FAILED, self.failing),
        ]
        leading = [(Outcome.MOVED, self.moved), (Outcome.ALIAS, self.aliases)]
        return {
            uri: CrawlItem(SourceItem(uri), outcome, detail=detail)
            for outcome, items in outcomes
            for uri, detail in items.items()
        } | {
            uri: CrawlItem(SourceItem(uri), outcome, target=target)
            for outcome, found in leading
            for uri, target in found.items()
        }

    def _item(self, uri: str, content: bytes, known: Known) -> CrawlItem:
        validators = Validators(etag=f'"{digest(content)[:16]}"' if self.with_etags else None)
        item = SourceItem(uri, validators)
        if self.with_etags and known.validators(uri) == validators:
            return CrawlItem(item, Outcome.NOT_MODIFIED)
        self.fetched[uri] += 1
        media_type = self.media_types.get(uri, self.media_type)
        raw = RawDocument(uri, content, media_type, None, self.clock(), validators)
        return CrawlItem(item, Outcome.FETCHED, raw)


class MemoryKnown:
    """What a source may know, learnt from the items of crawls; empty at first."""

    def __init__(self) -> None:
        self._held: dict[str, RawDocument] = {}
        self._too_large: set[str] = set()

    def remember(self, found: CrawlItem) -> None:
        """Take over what an item says, as a run that applies it would."""
        self._too_large.discard(found.item.uri)
        if found.outcome is Outcome.TOO_LARGE:
            self._too_large.add(found.item.uri)
        elif found.raw is not None:
            self._held[found.raw.uri] = found.raw
        elif found.outcome in {Outcome.GONE, Outcome.EXCLUDED, Outcome.MOVED, Outcome.ALIAS}:
            self._held.pop(found.item.uri, None)

    def validators(self, uri: str) -> Validators | None:
        held = self._held.get(uri)
        if uri in self._too_large:
            # Another version than the one held was met last.
            return None
        return held.validators if held and held.validators else None

    def uris(self) -> Iterator[str]:
        return iter(tuple({**self._held, **dict.fromkeys(self._too_large)}))

    def content(self, uri: str) -> tuple[bytes, str] | None:
        held = self._held.get(uri)
        return (held.content, held.media_type) if held else None

    def state(self) -> str:
        return ""
