"""What a crawl keeps out: documents that were taken down, by address, bytes and text."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tidemark.domain.identity import document_id
from tidemark.domain.inspection import Inspection
from tidemark.domain.model import CrawlItem, Observation, Outcome
from tidemark.domain.records import Tombstone
from tidemark.ports import Ledger


@dataclass(frozen=True, slots=True)
class KeptOut:
    """The documents of a source that were taken down, asked for once a crawl.

    has_document: does a URI have a document of its own, with a live version?
    """

    ledger: Ledger
    source: str
    has_document: Callable[[str], bool]
    by_uri: dict[str, Tombstone] = field(default_factory=dict)
    by_raw: dict[str, Tombstone] = field(default_factory=dict)
    by_text: dict[str, Tombstone] = field(default_factory=dict)

    @classmethod
    def of(cls, ledger: Ledger, source: str, has_document: Callable[[str], bool]) -> "KeptOut":
        stones = ledger.taken_down(source)
        return cls(
            ledger,
            source,
            has_document,
            {stone.uri: stone for stone in stones},
            {raw: stone for stone in stones for raw in (*stone.kept_out, stone.raw_hash) if raw},
            {text: stone for stone in stones for text in stone.texts},
        )

    def by_address(self, found: CrawlItem) -> Observation | None:
        """The observation of an item that is kept out for where it is, or leads; else None."""
        uri = found.raw.uri if found.raw else found.item.uri
        if uri in self.by_uri:
            return _excluded(uri, f"was taken down on {_day(self.by_uri[uri])}")
        if found.target in self.by_uri and not self.has_document(uri):
            return _excluded(uri, _told("leads to", self.by_uri[found.target]))
        return None

    def by_content(self, uri: str, raw_hash: str, seen: Inspection | None) -> Observation | None:
        """The observation of bytes that are kept out, to be asked before they are stored; else None.

        Kept out under any address, unless that has a document, or another document rightly has the same.
        """
        stone = self.by_raw.get(raw_hash)
        if stone is not None and not self.has_document(uri) and not self._others_have(raw_hash):
            return _excluded(uri, _told("is", stone), stone.uri)
        if seen is None or seen.suspicion is not None:
            return None
        stone = self.by_text.get(seen.text_hash)
        if stone is None or self.has_document(uri) or self._others_have(raw_hash):
            return None
        if self.ledger.documents_by_text(self.source, [seen.text_hash]):
            return None
        return _excluded(uri, _told("has the text of", stone), stone.uri)

    def _others_have(self, raw_hash: str) -> bool:
        """Has another document these bytes, or had one that was there after the takedown?"""
        ledger, source = self.ledger, self.source
        return bool(
            ledger.documents_by_raw(source, [raw_hash])
            or ledger.tombstones_by_raw(source, [raw_hash])
        )


def keeper(ledger: Ledger, source: str, uri: str) -> Tombstone | None:
    """The takedown for which the last crawl left out an address that was not taken down itself."""
    for event in ledger.events(document_id(source, uri), limit=1):
        for stone in ledger.taken_down(source):
            if stone.uri != uri and event.detail in {_told(how, stone) for how in _WAYS}:
                return stone
    return None


_WAYS = ("is", "leads to", "has the text of")


def _told(how: str, stone: Tombstone) -> str:
    return f"{how} {stone.uri}, which was taken down on {_day(stone)}"


def _excluded(uri: str, detail: str, target: str = "") -> Observation:
    return Observation(uri, Outcome.EXCLUDED, detail=detail, target=target)


def _day(stone: Tombstone) -> str:
    return f"{stone.removed_at:%Y-%m-%d}"
