"""What a takedown is about: which document a URI means, and everything that is known to be of it.

While a takedown is carried out its order is kept in the artifact store: the ledger's rows, which name what
is to be deleted, are gone before all of that is. A takedown that was cut short is taken up from there.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from tidemark.domain.decide import DUPLICATE_FROM, ELSEWHERE, Reason
from tidemark.domain.documents import Anomaly, Observation
from tidemark.domain.identity import document_id
from tidemark.domain.records import DocumentRecord, Tombstone
from tidemark.ports import ArtifactStore, Ledger, VectorIndex
from tidemark.stages.job import Stores

FOLDER = "takedowns/"


@dataclass(frozen=True, slots=True)
class Found:
    """A document that a URI means."""

    source: str
    uri: str
    document_id: UUID


@dataclass(frozen=True, slots=True)
class Order:
    """A takedown.

    run_id: what its events, tombstones and tide mark are told by.
    ordered_at: when it was first written down.
    uris: the document's address and its others, by the id that each has.
    own_bytes: by id, the bytes that stood there last, where there are such.
    kept_out, texts: hashes of all bytes and of all main texts that were its own, which are to stay out.
    graves: documents of the source that were removed before, and had the same bytes; what could restore them
        goes too.
    raws: hashes of all bytes that were ever fetched of it.
    counts: what the stores had of it before the first attempt, flat.
    everywhere: it is to be kept out of every source, and not of its own only.
    """

    run_id: str
    ordered_at: datetime
    found: Found
    uris: dict[UUID, str]
    own_bytes: dict[UUID, str] = field(default_factory=dict)
    kept_out: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()
    graves: frozenset[UUID] = frozenset()
    raws: frozenset[str] = frozenset()
    counts: dict[str, int] = field(default_factory=dict)
    everywhere: bool = False

    @property
    def key(self) -> str:
        return f"{FOLDER}{self.run_id}.json"

    @property
    def ids(self) -> list[UUID]:
        """Its own id last: its row is what leads to the others."""
        own = self.found.document_id
        return [*(key for key in self.uris if key != own), own]

    def with_fetched(self, fetched: Mapping[str, Observation]) -> "Order":
        """With what runs fetched of it, by the hash of the bytes.

        A page that was not believed is not its own: others may well be answered with the same.
        """
        believed = {raw for raw, observed in fetched.items() if observed.anomaly is None}
        own = self.kept_out | believed
        texts = (
            observed.text_hash
            for raw, observed in fetched.items()
            if raw in own and observed.anomaly is None and _is_long(observed.text_length)
        )
        return replace(
            self,
            kept_out=own,
            texts=self.texts | set(filter(None, texts)),
            raws=self.raws | fetched.keys(),
        )

    def encoded(self) -> bytes:
        found = self.found
        return json.dumps(
            {
                "run_id": self.run_id,
                "ordered_at": self.ordered_at.isoformat(),
                "found": [found.source, found.uri, str(found.document_id)],
                "uris": {str(key): uri for key, uri in self.uris.items()},
                "own_bytes": {str(key): raw for key, raw in self.own_bytes.items()},
                "kept_out": sorted(self.kept_out),
                "texts": sorted(self.texts),
                "graves": sorted(map(str, self.graves)),
                "raws": sorted(self.raws),
                "counts": self.counts,
                "everywhere": self.everywhere,
            }
        ).encode()

    @classmethod
    def decoded(cls, data: bytes) -> "Order":
        told = json.loads(data)
        source, uri, key = told["found"]
        return cls(
            told["run_id"],
            datetime.fromisoformat(told["ordered_at"]),
            Found(source, uri, UUID(key)),
            {UUID(k): uri for k, uri in told["uris"].items()},
            {UUID(k): raw for k, raw in told["own_bytes"].items()},
            frozenset(told["kept_out"]),
            frozenset(told["texts"]),
            frozenset(map(UUID, told["graves"])),
            frozenset(told["raws"]),
            told["counts"],
            told["everywhere"],
        )


def unfinished(artifacts: ArtifactStore) -> Iterator[Order]:
    """The takedowns that were begun and not finished."""
    for key in list(artifacts.keys(FOLDER)):
        try:
            written = artifacts.read(key)
        except KeyError:
            continue  # Finished meanwhile.
        yield Order.decoded(written)


def find(
    stores: Stores, uris: Iterable[str], names: Collection[str], source: str | None = None
) -> list[Found]:
    """The documents that one of some spellings of a URI means, in any source or in one.

    names: of all sources that are known. An address that leads to a document means that document; one that
    only the index, or a removal, knows is found too.
    """
    found: dict[UUID, Found] = {}
    for uri in uris:
        for one in _known(stores, uri, names):
            if source in (None, one.source):
                found.setdefault(one.document_id, one)
    return sorted(found.values(), key=lambda one: (one.source, one.uri))


def _known(stores: Stores, uri: str, names: Collection[str]) -> Iterator[Found]:
    ledger = stores.ledger
    seen: set[str] = set()
    for record in ledger.documents.by_uri(uri):
        seen.add(record.source)
        yield Found(record.source, record.uri, record.document_id)
    for alias in ledger.sources.aliases_by_uri([uri]):
        target = ledger.documents.get(alias.document_id)
        if target is not None and alias.source not in seen:
            seen.add(alias.source)
            yield Found(target.source, target.uri, target.document_id)
    orders = [order for order in unfinished(stores.artifacts) if uri in order.uris.values()]
    for found in (order.found for order in orders):
        if found.source not in seen:
            seen.add(found.source)
            yield found
    for stone in ledger.tombstones.by_uri(uri):
        if stone.source not in seen:
            seen.add(stone.source)
            yield Found(stone.source, stone.uri, stone.document_id)
    rest = {document_id(name, uri): name for name in names if name not in seen}
    half = ledger.writes.pending(among=list(rest)).keys() | set(_indexed(stores.index, rest))
    yield from (Found(rest[key], uri, key) for key in sorted(half))


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


def order_of(stores: Stores, found: Found, run_id: str, *, everywhere: bool = False) -> Order:
    """Everything that is known to be of a document, and what an attempt that was cut short knew.

    Without what only the listings of runs tell (``Order.with_fetched``). What was ordered everywhere before
    stays so.
    """
    order = Order(
        run_id,
        stores.clock(),
        found,
        {found.document_id: found.uri},
        everywhere=everywhere,
    )
    for begun in unfinished(stores.artifacts):
        if found.document_id in begun.uris:
            order = replace(
                begun,
                uris=order.uris | begun.uris,
                own_bytes=order.own_bytes | begun.own_bytes,
                kept_out=order.kept_out | begun.kept_out,
                texts=order.texts | begun.texts,
                graves=order.graves | begun.graves,
                raws=order.raws | begun.raws,
                everywhere=order.everywhere or begun.everywhere,
            )
    order = _with_addresses(stores.ledger, order)
    raws = order.raws | set(_raws(stores.ledger, order))
    order = replace(
        order,
        raws=frozenset(raws),
        kept_out=order.kept_out | set(_own_raws(stores.ledger, order)),
        texts=order.texts | set(_own_texts(stores.ledger, order)),
        everywhere=order.everywhere or any(s.everywhere for s in _standing(stores.ledger, order)),
    )
    return _with_old_addresses(stores.ledger, order)


def _with_addresses(ledger: Ledger, order: Order) -> Order:
    """With the other addresses that lead to the document, and those taken down with it."""
    source, own = order.found.source, order.found.document_id
    uris, own_bytes = dict(order.uris), dict(order.own_bytes)
    for alias in ledger.sources.aliases_of(own):
        key = document_id(alias.source, alias.uri)
        uris[key] = alias.uri
        if alias.raw_hash:
            own_bytes[key] = alias.raw_hash
    stones = ledger.tombstones.by_id(list(uris))
    takedowns = {stone.run_id for stone in stones.values() if stone.taken_down}
    if takedowns:
        for stone in ledger.tombstones.blocking(source):
            if stone.run_id in takedowns:
                uris[stone.document_id] = stone.uri
                stones[stone.document_id] = stone
    for key, stone in stones.items():
        if stone.raw_hash:
            own_bytes.setdefault(key, stone.raw_hash)
    for key, record in ledger.documents.by_id(list(uris)).items():
        if bytes_ := record.raw_hash or record.fetched_raw_hash:
            own_bytes[key] = bytes_
    return replace(order, uris=uris, own_bytes=own_bytes)


def _with_old_addresses(ledger: Ledger, order: Order) -> Order:
    """With the addresses at which the same bytes stood before they went elsewhere, or were removed."""
    uris, own_bytes, graves = dict(order.uris), dict(order.own_bytes), set(order.graves)
    for stone in ledger.tombstones.by_raw(order.found.source, sorted(order.raws)):
        if stone.reason in ELSEWHERE:
            uris.setdefault(stone.document_id, stone.uri)
            own_bytes.setdefault(stone.document_id, stone.raw_hash or "")
        elif stone.document_id not in uris:
            graves.add(stone.document_id)
    first = ledger.documents.get(order.found.document_id)
    for record in ledger.documents.by_raw(order.found.source, sorted(order.raws)):
        # A run is moving it, and has not come to removing it from where it was. One that moved on before
        # another document took its old address is not this one.
        if first is None or record.first_seen < first.first_seen or record.document_id in uris:
            continue
        if any(has_moved_from(ledger, record, uri) for uri in order.uris.values()):
            uris[record.document_id] = record.uri
            own_bytes[record.document_id] = record.raw_hash or ""
    return replace(order, uris=uris, own_bytes=own_bytes, graves=frozenset(graves))


def has_moved_from(ledger: Ledger, record: DocumentRecord, uri: str) -> bool:
    """Did a document come to be by moving from an address?"""
    if record.reason != Reason.MOVED.value:
        return False
    told = f"from {uri}"
    return any(
        (version.reason, version.uri) == (Reason.MOVED.value, record.uri)
        and (version.detail == told or version.detail.startswith(f"{told}; "))
        for version in ledger.versions.of(record.document_id)
    )


def _raws(ledger: Ledger, order: Order) -> Iterator[str]:
    yield from filter(None, order.own_bytes.values())
    for record in ledger.documents.by_id(order.ids).values():
        yield from filter(None, (record.raw_hash, record.fetched_raw_hash))
        if record.failure is not None and record.failure.raw_hash:
            yield record.failure.raw_hash
    for key in order.ids:
        yield from (version.raw_hash for version in ledger.versions.of(key))


def _own_raws(ledger: Ledger, order: Order) -> Iterator[str]:
    """The hashes of bytes that are the document's own, and no wall that stood before it."""
    yield from filter(None, order.own_bytes.values())
    for record in ledger.documents.by_id(order.ids).values():
        yield from filter(None, (record.raw_hash, record.failure and record.failure.raw_hash))
        if record.fetched_raw_hash and _is_believed(record):
            yield record.fetched_raw_hash
    for key in order.ids:
        yield from (version.raw_hash for version in ledger.versions.of(key))
    for stone in _standing(ledger, order):
        yield from stone.kept_out


def _own_texts(ledger: Ledger, order: Order) -> Iterator[str]:
    for record in ledger.documents.by_id(order.ids).values():
        if record.text_hash and _is_long(record.text_length):
            yield record.text_hash
    for alias in ledger.sources.aliases_of(order.found.document_id):
        if alias.text_hash and _is_long(alias.text_length):
            yield alias.text_hash
    for stone in _standing(ledger, order):
        yield from stone.texts


def _standing(ledger: Ledger, order: Order) -> Iterator[Tombstone]:
    stones = ledger.tombstones.by_id(order.ids).values()
    return (stone for stone in stones if stone.taken_down)


def _is_believed(record: DocumentRecord) -> bool:
    return record.suspect is None or record.suspect.reason == Anomaly.SHRUNK.value


def _is_long(text_length: int | None) -> bool:
    """Shorter texts may be equal by chance."""
    return (text_length or 0) >= DUPLICATE_FROM


def stones_of(ledger: Ledger, found: Found) -> list[Tombstone]:
    """What a takedown left to keep a document and its other addresses out."""
    own = ledger.tombstones.by_id([found.document_id]).get(found.document_id)
    if own is None or not own.taken_down:
        return []
    return [
        stone for stone in ledger.tombstones.blocking(found.source) if stone.run_id == own.run_id
    ]
