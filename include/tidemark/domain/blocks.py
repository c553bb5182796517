"""The block list: what was taken down from a source, and is not to come back to it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from uuid import UUID

from tidemark.domain.decide import DUPLICATE_FROM
from tidemark.domain.documents import CrawlItem, Observation, Outcome, PartitionedDocument
from tidemark.domain.hashing import digest_text
from tidemark.domain.records import DocumentRecord, Tombstone


@dataclass(frozen=True, slots=True)
class Match:
    """Why something is blocked: what it has in common (``how``) with which takedown."""

    how: str
    tombstone: Tombstone

    @property
    def sentence(self) -> str:
        tombstone = self.tombstone
        return (
            f"{self.how} {tombstone.uri}, which was taken down on {tombstone.removed_at:%Y-%m-%d}"
        )


IS, LEADS_TO, MOVED_FROM, HAS_TEXT_OF = WAYS = ("is", "leads to", "moved from", "has the text of")


@dataclass(frozen=True, slots=True)
class BlockList:
    """What was taken down from a source: a value, made for each step of a run.

    by_uri, by_raw, by_text: the takedown that blocks an address, the hash of bytes or of a main text.
    pending: ids of documents whose takedown is not finished; what the ledger has of them is on its way out.
    """

    source: str = ""
    by_uri: dict[str, Tombstone] = field(default_factory=dict)
    by_raw: dict[str, Tombstone] = field(default_factory=dict)
    by_text: dict[str, Tombstone] = field(default_factory=dict)
    pending: frozenset[UUID] = frozenset()

    @classmethod
    def of(
        cls, source: str, tombstones: Iterable[Tombstone], pending: Iterable[UUID] = ()
    ) -> "BlockList":
        tombstones = list(tombstones)
        return cls(
            source,
            {tombstone.uri: tombstone for tombstone in tombstones},
            {
                raw: tombstone
                for tombstone in tombstones
                for raw in (*tombstone.blocked_raws, tombstone.raw_hash)
                if raw
            },
            {text: tombstone for tombstone in tombstones for text in tombstone.blocked_texts},
            frozenset(pending),
        )

    def reason(self, uri: str) -> str:
        """Why a document is blocked that was taken down itself."""
        tombstone = self.by_uri[uri]
        by = (
            ""
            if tombstone.source == self.source
            else f" from every source, as one of {tombstone.source},"
        )
        return f"was taken down{by} on {tombstone.removed_at:%Y-%m-%d}"

    def at_address(self, item: CrawlItem, *, is_live: bool) -> Observation | None:
        """The observation of an item that is blocked for where it is, or leads; else None.

        is_live: a document is live at its address.
        """
        uri = item.raw.uri if item.raw else item.item.uri
        if uri in self.by_uri:
            return excluded(uri, self.reason(uri), uri)
        if item.target in self.by_uri and not is_live:
            return excluded(uri, Match(LEADS_TO, self.by_uri[item.target]).sentence)
        return None

    def match(self, raw_hash: str, texts: Iterable[str]) -> Match | None:
        """Which takedown bytes, or what they say, are of."""
        if raw_hash in self.by_raw:
            return Match(IS, self.by_raw[raw_hash])
        known = (self.by_text[text] for text in texts if text in self.by_text)
        return next((Match(HAS_TEXT_OF, tombstone) for tombstone in known), None)

    def is_free(self, one: DocumentRecord | Tombstone) -> bool:
        """Was neither its address taken down nor, as yet unfinished, the document itself?"""
        return one.document_id not in self.pending and one.uri not in self.by_uri


def excluded(uri: str, detail: str, target: str = "") -> Observation:
    """What is observed in place of what is blocked; ``target``: what was taken down, where that is it."""
    return Observation(uri, Outcome.EXCLUDED, detail=detail, target=target)


def blocking_text(document: PartitionedDocument) -> str:
    """The hash by which the text of a document is blocked, whatever its format; "" for a short one.

    As inspections measure it: white space is folded. Short texts may be equal by chance.
    """
    text = " ".join(word for element in document.elements for word in element.text.split())
    return digest_text(text) if len(text) >= DUPLICATE_FROM else ""
