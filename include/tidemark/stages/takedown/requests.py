"""Takedown requests: which document a URI means, and everything that is known to be of it.

While a takedown is carried out its request is kept in the artifact store: the ledger's rows, which name what
is to be deleted, are gone before all of that is. A takedown that was cut short is taken up from there.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from tidemark.domain.decide import DUPLICATE_FROM, ELSEWHERE
from tidemark.domain.documents import Anomaly, Observation
from tidemark.domain.identity import document_id
from tidemark.domain.records import TAKEN_DOWN, Alias, DocumentRecord, Tombstone
from tidemark.ports.artifacts import ArtifactStore
from tidemark.ports.index import VectorIndex
from tidemark.ports.ledger import Ledger
from tidemark.stages.job import Stores
from tidemark.stages.sweep import has_moved_from

FOLDER = "takedowns/"


@dataclass(frozen=True, slots=True)
class DocumentRef:
    """A document that a URI means."""

    source: str
    uri: str
    document_id: UUID

    @classmethod
    def at(cls, source: str, uri: str) -> "DocumentRef":
        return cls(source, uri, document_id(source, uri))


@dataclass(frozen=True, slots=True)
class TakedownRequest:
    """A takedown.

    run_id: what its events, tombstones and epoch are told by.
    requested_at: when it was first written down.
    uris: the document's address and its others, by the id that each has.
    blocked_raws, blocked_texts: hashes of all bytes and of all main texts that were its own.
    removed_twins: documents of the source that were removed before, and had the same bytes; what could
        restore them goes too.
    raws: hashes of all bytes that were ever fetched of it.
    counts: what the stores had of it before the first attempt, flat.
    all_sources: it is to be blocked in every source, and not in its own only.
    """

    run_id: str
    requested_at: datetime
    document: DocumentRef
    uris: dict[UUID, str]
    blocked_raws: frozenset[str] = frozenset()
    blocked_texts: frozenset[str] = frozenset()
    removed_twins: frozenset[UUID] = frozenset()
    raws: frozenset[str] = frozenset()
    counts: dict[str, int] = field(default_factory=dict)
    all_sources: bool = False

    @property
    def key(self) -> str:
        return f"{FOLDER}{self.run_id}.json"

    @property
    def ids(self) -> list[UUID]:
        """Its own id last: its row is what leads to the others."""
        own = self.document.document_id
        return [*(key for key in self.uris if key != own), own]

    @property
    def all_ids(self) -> list[UUID]:
        return [*self.ids, *self.removed_twins]

    def joined(self, other: "TakedownRequest") -> "TakedownRequest":
        """With what another one of the same document knows."""
        return replace(
            self,
            uris=self.uris | other.uris,
            blocked_raws=self.blocked_raws | other.blocked_raws,
            blocked_texts=self.blocked_texts | other.blocked_texts,
            removed_twins=self.removed_twins | other.removed_twins,
            raws=self.raws | other.raws,
            all_sources=self.all_sources or other.all_sources,
        )

    def with_fetched(self, fetched: Mapping[str, Observation]) -> "TakedownRequest":
        """With what runs fetched of it, by the hash of the bytes.

        A page that was not believed is not its own: others may well be answered with the same.
        """
        believed = {raw: o for raw, o in fetched.items() if o.anomaly is None}
        return replace(
            self,
            blocked_raws=self.blocked_raws | believed.keys(),
            blocked_texts=self.blocked_texts | _texts(believed.values()),
            raws=self.raws | fetched.keys(),
        )

    def tombstone(self, key: UUID, before: Tombstone | None, now: datetime) -> Tombstone:
        """What blocks one of its addresses; that of the document itself, all that was its own.

        before: the tombstone that the address has; one of a takedown keeps its time.
        """
        standing = before if before is not None and before.taken_down else None
        own = key == self.document.document_id
        return Tombstone(
            key,
            self.document.source,
            self.uris[key],
            "",
            None,
            standing.removed_at if standing else now,
            TAKEN_DOWN,
            standing.run_id if standing else self.run_id,
            expired=True,
            blocked_raws=tuple(sorted(self.blocked_raws)) if own else (),
            blocked_texts=tuple(sorted(self.blocked_texts)) if own else (),
            all_sources=self.all_sources,
        )

    def encoded(self) -> bytes:
        ref = self.document
        values = {
            "run_id": self.run_id,
            "ordered_at": self.requested_at.isoformat(),
            "found": [ref.source, ref.uri, str(ref.document_id)],
            "uris": {str(key): uri for key, uri in self.uris.items()},
            "kept_out": sorted(self.blocked_raws),
            "texts": sorted(self.blocked_texts),
            "graves": sorted(map(str, self.removed_twins)),
            "raws": sorted(self.raws),
            "counts": self.counts,
            "everywhere": self.all_sources,
        }
        return json.dumps(values).encode()

    @classmethod
    def decoded(cls, data: bytes) -> "TakedownRequest":
        values = json.loads(data)
        source, uri, key = values["found"]
        # Requests of before have the bytes of each address beside the others.
        raws = [*values["kept_out"], *values.get("own_bytes", {}).values()]
        return cls(
            values["run_id"],
            datetime.fromisoformat(values["ordered_at"]),
            DocumentRef(source, uri, UUID(key)),
            {UUID(k): uri for k, uri in values["uris"].items()},
            frozenset(filter(None, raws)),
            frozenset(values["texts"]),
            frozenset(map(UUID, values["graves"])),
            frozenset(values["raws"]),
            values["counts"],
            values["everywhere"],
        )


def _texts(texts: Iterable[DocumentRecord | Alias | Observation]) -> set[str]:
    """The hashes of those that are long enough: shorter ones may be equal by chance."""
    return {t.text_hash for t in texts if t.text_hash and (t.text_length or 0) >= DUPLICATE_FROM}


def unfinished(artifacts: ArtifactStore, source: str | None = None) -> Iterator[TakedownRequest]:
    """The takedowns that were begun and not finished; of a source, those from it and from all."""
    for key in list(artifacts.keys(FOLDER)):
        try:
            request = TakedownRequest.decoded(artifacts.read(key))
        except KeyError:
            continue  # Finished meanwhile.
        if source is None or request.all_sources or request.document.source == source:
            yield request


# Which document is meant.


def find(
    stores: Stores, uris: Iterable[str], names: Collection[str], source: str | None = None
) -> list[DocumentRef]:
    """The documents that one of some spellings of a URI means, in any source or in one.

    names: of all sources that are known. An address that leads to a document means that document; one that
    only the index, or a removal, knows is found too.
    """
    documents: dict[UUID, DocumentRef] = {}
    for uri in uris:
        for ref in _meant(stores, uri, names):
            if source in (None, ref.source):
                documents.setdefault(ref.document_id, ref)
    return sorted(documents.values(), key=lambda ref: (ref.source, ref.uri))


def _meant(stores: Stores, uri: str, names: Collection[str]) -> Iterator[DocumentRef]:
    """In each source what knows the address best: the first of what ``_named`` tells of it."""
    known: dict[str, DocumentRef] = {}
    for source, ref in _named(stores, uri):
        if known.setdefault(source, ref) is ref:
            yield ref
    rest = {document_id(name, uri): name for name in names if name not in known}
    half = stores.ledger.writes.pending(among=list(rest)).keys() | set(_indexed(stores.index, rest))
    yield from (DocumentRef(rest[key], uri, key) for key in sorted(half))


def _named(stores: Stores, uri: str) -> Iterator[tuple[str, DocumentRef]]:
    ledger = stores.ledger
    for record in ledger.documents.by_uri(uri):
        yield record.source, _ref(record)
    for alias in ledger.sources.aliases_by_uri([uri]):
        target = ledger.documents.get(alias.document_id)
        if target is not None:
            yield alias.source, _ref(target)
    for request in unfinished(stores.artifacts):
        if uri in request.uris.values():
            yield request.document.source, request.document
    for tombstone in ledger.tombstones.by_uri(uri):
        yield tombstone.source, _ref(tombstone)


def _ref(one: DocumentRecord | Tombstone) -> DocumentRef:
    return DocumentRef(one.source, one.uri, one.document_id)


def _indexed(index: VectorIndex, ids: Iterable[UUID]) -> Iterator[UUID]:
    with index.session():
        generations = index.generations()
        for key in ids:
            where: dict[str, str | list[str]] = {"document_id": str(key)}
            if any(
                count(generation, where)
                for generation in generations
                for count in (index.count_points, index.count_sections)
            ):
                yield key


# What is of it.


def gather(
    stores: Stores, request: TakedownRequest, targets: Iterable[str] = ()
) -> TakedownRequest:
    """A request with everything that the ledger knows to be of its document, and what earlier attempts knew.

    Without what only artifacts tell. What was taken down from all sources before stays so. targets: where
    its address has been seen to lead.
    """
    ledger, source, own = stores.ledger, request.document.source, request.document.document_id
    for begun in unfinished(stores.artifacts):
        if own in begun.uris:
            request = begun.joined(request)
    aliases = ledger.sources.aliases_of(own)
    uris = request.uris | {document_id(alias.source, alias.uri): alias.uri for alias in aliases}
    tombstones = ledger.tombstones.by_id(list(uris))
    takedowns = {t.run_id for t in tombstones.values() if t.taken_down}
    if takedowns:
        # The addresses that were taken down with it.
        together = ledger.tombstones.blocking(source)
        tombstones |= {
            t.document_id: t for t in together if t.run_id in takedowns and t.source == source
        }
        uris |= {key: t.uri for key, t in tombstones.items()}
    records = list(ledger.documents.by_id(list(uris)).values())
    raws = {alias.raw_hash or "" for alias in aliases}
    raws |= {tombstone.raw_hash or "" for tombstone in tombstones.values()}
    raws |= {version.raw_hash for key in uris for version in ledger.versions.of(key)}
    for record in records:
        raws |= {record.raw_hash or record.fetched_raw_hash}
        raws |= {record.failure.raw_hash} if record.failure else set()
    fetched = {r.fetched_raw_hash: r for r in records}
    # An interstitial that stood before it is none of its own.
    blocked = raws | {raw for raw, record in fetched.items() if _is_believed(record)}
    standing = [tombstone for tombstone in tombstones.values() if tombstone.taken_down]
    request = replace(
        request,
        uris=uris,
        raws=(request.raws | raws | fetched.keys()) - {""},
        blocked_raws=request.blocked_raws.union(blocked, *(t.blocked_raws for t in standing))
        - {""},
        blocked_texts=request.blocked_texts.union(
            _texts([*records, *aliases]), *(t.blocked_texts for t in standing)
        ),
        all_sources=request.all_sources or any(t.all_sources for t in standing),
    )
    return _with_old_addresses(ledger, request, targets)


def _with_old_addresses(
    ledger: Ledger, request: TakedownRequest, targets: Iterable[str]
) -> TakedownRequest:
    """With the addresses at which the same bytes stood before they went elsewhere, or were removed.

    And with the one that a run is moving it to, while it has not come to removing it from where it was.
    """
    source, raws = request.document.source, sorted(request.raws)
    uris, twins = dict(request.uris), set(request.removed_twins)
    for tombstone in ledger.tombstones.by_raw(source, raws):
        if tombstone.reason in ELSEWHERE:
            uris.setdefault(tombstone.document_id, tombstone.uri)
        elif tombstone.document_id not in uris:
            twins.add(tombstone.document_id)
    first = ledger.documents.get(request.document.document_id)
    if first is not None:
        moving = {record.document_id: record for record in ledger.documents.by_raw(source, raws)}
        moving |= ledger.documents.by_id([document_id(source, target) for target in targets])
        for key, record in moving.items():
            # One that moved on before another document took its old address is not this one.
            if key in uris or record.first_seen < first.first_seen:
                continue
            if any(has_moved_from(ledger, record, uri) for uri in request.uris.values()):
                uris[key] = record.uri
    return replace(request, uris=uris, removed_twins=frozenset(twins))


def _is_believed(record: DocumentRecord) -> bool:
    return record.suspect is None or record.suspect.reason == Anomaly.SHRUNK.value
