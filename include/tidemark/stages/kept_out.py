"""What a crawl keeps out: documents that were taken down, at their addresses and by their bytes."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tidemark.domain.hashing import digest
from tidemark.domain.model import CrawlItem, Observation, Outcome
from tidemark.domain.records import Tombstone
from tidemark.ports import Ledger


@dataclass(frozen=True, slots=True)
class KeptOut:
    """The documents of a source that were taken down, asked for once a crawl.

    has_document: does a URI have a document of its own, with a live version?
    """

    has_document: Callable[[str], bool]
    by_uri: dict[str, Tombstone] = field(default_factory=dict)
    by_raw: dict[str, Tombstone] = field(default_factory=dict)

    @classmethod
    def of(cls, ledger: Ledger, source: str, has_document: Callable[[str], bool]) -> "KeptOut":
        stones = ledger.taken_down(source)
        return cls(
            has_document,
            {stone.uri: stone for stone in stones},
            {stone.raw_hash: stone for stone in stones if stone.raw_hash},
        )

    def excluded(self, found: CrawlItem) -> Observation | None:
        """The observation of an item that is kept out, before anything of it is stored; else None.

        Bytes that were taken down are kept out under another address too, unless that has a document.
        """
        uri = found.raw.uri if found.raw else found.item.uri
        if uri in self.by_uri:
            return _excluded(uri, f"was taken down on {_day(self.by_uri[uri])}")
        if found.target in self.by_uri and not self.has_document(uri):
            day = _day(self.by_uri[found.target])
            return _excluded(uri, f"leads to {found.target}, which was taken down on {day}")
        if found.raw is None or not self.by_raw:
            return None
        stone = self.by_raw.get(digest(found.raw.content))
        if stone is None or self.has_document(uri):
            return None
        return _excluded(uri, f"is {stone.uri}, which was taken down on {_day(stone)}")


def _excluded(uri: str, detail: str) -> Observation:
    return Observation(uri, Outcome.EXCLUDED, detail=detail)


def _day(stone: Tombstone) -> str:
    return f"{stone.removed_at:%Y-%m-%d}"
