"""What a run keeps out: documents that were taken down, by address, bytes and text.

Also those whose takedown was begun and not finished: its order is written down before anything is removed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from tidemark.domain.documents import CrawlItem, Inspection, Observation, Outcome
from tidemark.domain.identity import document_id
from tidemark.domain.records import TAKEN_DOWN, DocumentRecord, Tombstone
from tidemark.ports import ArtifactStore, Ledger
from tidemark.stages.takedown.requests import Order, unfinished


class Live(Protocol):
    """The version of a document that is live; a ``DocumentRecord`` tells it too."""

    @property
    def raw_hash(self) -> str | None: ...
    @property
    def text_hash(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class KeptOut:
    """The documents that were taken down from a source, asked for once a crawl.

    live: what is live of the document at a URI, None for nothing.
    begun: ids in takedowns that are not finished; what the ledger still has of them is on its way out.
    """

    ledger: Ledger
    source: str
    live: Callable[[str], Live | None]
    by_uri: dict[str, Tombstone] = field(default_factory=dict)
    by_raw: dict[str, Tombstone] = field(default_factory=dict)
    by_text: dict[str, Tombstone] = field(default_factory=dict)
    begun: frozenset[UUID] = frozenset()

    @classmethod
    def of(
        cls,
        ledger: Ledger,
        artifacts: ArtifactStore,
        source: str,
        live: Callable[[str], Live | None],
    ) -> "KeptOut":
        orders = orders_over(artifacts, source)
        stones = [
            *ledger.tombstones.blocking(source),
            *(s for order in orders for s in _stones(order)),
        ]
        return cls(
            ledger,
            source,
            live,
            {stone.uri: stone for stone in stones},
            {raw: stone for stone in stones for raw in (*stone.kept_out, stone.raw_hash) if raw},
            {text: stone for stone in stones for text in stone.texts},
            frozenset(key for order in orders for key in (*order.uris, *order.graves)),
        )

    def by_address(self, found: CrawlItem) -> Observation | None:
        """The observation of an item that is kept out for where it is, or leads; else None."""
        uri = found.raw.uri if found.raw else found.item.uri
        if uri in self.by_uri:
            return _excluded(uri, self.told(uri), uri)
        if found.target in self.by_uri and self.live(uri) is None:
            return _excluded(uri, _told("leads to", self.by_uri[found.target]))
        return None

    def by_content(self, uri: str, raw_hash: str, seen: Inspection | None) -> Observation | None:
        """The observation of bytes that are kept out, to be asked before they are stored; else None.

        Kept out under any address and as any version, except where a document has had the same all along. A
        new one is let in that another rightly has: it may be that one, renamed.
        """
        text = seen.text_hash if seen is not None and seen.anomaly is None else ""
        stone, how, same_text = self.by_raw.get(raw_hash), "is", ""
        if stone is None:
            stone, how, same_text = self.by_text.get(text), "has the text of", text
        if stone is None:
            return None
        live = self.live(uri)
        if live is None:
            stays = self._others_have(raw_hash, same_text)
        else:
            stays = live.raw_hash == raw_hash or bool(text and live.text_hash == text)
        return None if stays else _excluded(uri, _told(how, stone), stone.uri)

    def again(self, observed: Observation) -> Observation:
        """What was observed, if it is not kept out by a takedown since."""
        if not self.by_uri or observed.outcome is Outcome.EXCLUDED:
            return observed
        if observed.uri in self.by_uri:
            return _excluded(observed.uri, self.told(observed.uri), observed.uri)
        if observed.outcome is not Outcome.FETCHED or not observed.raw_hash:
            return observed
        seen = None
        if observed.text_hash and not observed.anomaly:
            seen = Inspection(observed.text_hash, observed.text_length or 0)
        return self.by_content(observed.uri, observed.raw_hash, seen) or observed

    def told(self, uri: str) -> str:
        """Why a document is kept out that was taken down itself."""
        stone = self.by_uri[uri]
        by = "" if stone.source == self.source else f" from every source, as one of {stone.source},"
        return f"was taken down{by} on {_day(stone)}"

    def _others_have(self, raw_hash: str, text_hash: str) -> bool:
        """Has another document these bytes, or this text, or had one these bytes that may come back?"""
        ledger, source = self.ledger, self.source
        found: Iterable[DocumentRecord | Tombstone] = (
            *ledger.documents.by_raw(source, [raw_hash]),
            *ledger.tombstones.by_raw(source, [raw_hash]),
            *(ledger.documents.by_text(source, [text_hash]) if text_hash else ()),
        )
        return any(self._is_free(one) for one in found)

    def _is_free(self, one: DocumentRecord | Tombstone) -> bool:
        return one.document_id not in self.begun and one.uri not in self.by_uri


def orders_over(artifacts: ArtifactStore, source: str) -> list[Order]:
    """The takedowns from a source, or from all, that were begun and not finished."""
    return [o for o in unfinished(artifacts) if o.everywhere or o.found.source == source]


def _stones(order: Order) -> Iterable[Tombstone]:
    """An order as what it will leave."""
    own = order.found.document_id
    for key, uri in order.uris.items():
        yield Tombstone(
            key,
            order.found.source,
            uri,
            "",
            order.own_bytes.get(key) or None,
            order.ordered_at,
            TAKEN_DOWN,
            order.run_id,
            expired=True,
            kept_out=tuple(order.kept_out) if key == own else (),
            texts=tuple(order.texts) if key == own else (),
            everywhere=order.everywhere,
        )


def keeper(ledger: Ledger, source: str, uri: str) -> Tombstone | None:
    """The takedown for which an address is left out that was not taken down itself, in this source."""
    stones = ledger.tombstones.blocking(source)
    for stone in stones:
        if stone.uri == uri and stone.source != source:
            return stone
    for event in ledger.runs.events_of(document_id(source, uri), limit=1):
        for stone in stones:
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
