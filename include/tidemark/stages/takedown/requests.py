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
from tidemark.domain.records import TAKEN_DOWN, DocumentRecord, Tombstone
from tidemark.ports import ArtifactStore, Ledger, VectorIndex
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
    own_bytes: by id, the bytes that stood there last, where there are such.
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
    own_bytes: dict[UUID, str] = field(default_factory=dict)
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

    def with_fetched(self, fetched: Mapping[str, Observation]) -> "TakedownRequest":
        """With what runs fetched of it, by the hash of the bytes.

        A page that was not believed is not its own: others may well be answered with the same.
        """
        believed = {raw: o for raw, o in fetched.items() if o.anomaly is None}
        texts = {o.text_hash for o in believed.values() if o.text_hash and is_long(o.text_length)}
        return replace(
            self,
            blocked_raws=self.blocked_raws | believed.keys(),
            blocked_texts=self.blocked_texts | texts,
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
            self.own_bytes.get(key) or None,
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
        return json.dumps(
            {
                "run_id": self.run_id,
                "ordered_at": self.requested_at.isoformat(),
                "found": [ref.source, ref.uri, str(ref.document_id)],
                "uris": {str(key): uri for key, uri in self.uris.items()},
                "own_bytes": {str(key): raw for key, raw in self.own_bytes.items()},
                "kept_out": sorted(self.blocked_raws),
                "texts": sorted(self.blocked_texts),
                "graves": sorted(map(str, self.removed_twins)),
                "raws": sorted(self.raws),
                "counts": self.counts,
                "everywhere": self.all_sources,
            }
        ).encode()

    @classmethod
    def decoded(cls, data: bytes) -> "TakedownRequest":
        values = json.loads(data)
        source, uri, key = values["found"]
        return cls(
            values["run_id"],
            datetime.fromisoformat(values["ordered_at"]),
            DocumentRef(source, uri, UUID(key)),
            {UUID(k): uri for k, uri in values["uris"].items()},
            {UUID(k): raw for k, raw in values["own_bytes"].items()},
            frozenset(values["kept_out"]),
            frozenset(values["texts"]),
            frozenset(map(UUID, values["graves"])),
            frozenset(values["raws"]),
            values["counts"],
            values["everywhere"],
        )


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
    for stone in ledger.tombstones.by_uri(uri):
        yield stone.source, _ref(stone)


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

    Without what only the listings of runs tell (``TakedownRequest.with_fetched``). What was taken down from
    all sources before stays so. targets: where its address has been seen to lead.
    """
    ledger = stores.ledger
    for begun in unfinished(stores.artifacts):
        if request.document.document_id in begun.uris:
            request = _merged(begun, request)
    request = _with_addresses(ledger, request)
    records = list(ledger.documents.by_id(request.ids).values())
    aliases = ledger.sources.aliases_of(request.document.document_id)
    stones = [s for s in ledger.tombstones.by_id(request.ids).values() if s.taken_down]
    own = {*request.own_bytes.values()}
    own |= {version.raw_hash for key in request.ids for version in ledger.versions.of(key)}
    own |= {raw for r in records for raw in (r.raw_hash, r.failure and r.failure.raw_hash) if raw}
    raws = own | {record.fetched_raw_hash for record in records}
    # An interstitial that stood before it is none of its own.
    own |= {record.fetched_raw_hash for record in records if _is_believed(record)}
    own |= {raw for stone in stones for raw in stone.blocked_raws}
    texts = {r.text_hash or "" for r in records if is_long(r.text_length)}
    texts |= {a.text_hash or "" for a in aliases if is_long(a.text_length)}
    texts |= {text for stone in stones for text in stone.blocked_texts}
    request = replace(
        request,
        raws=(request.raws | raws) - {""},
        blocked_raws=(request.blocked_raws | own) - {""},
        blocked_texts=(request.blocked_texts | texts) - {""},
        all_sources=request.all_sources or any(stone.all_sources for stone in stones),
    )
    return _with_old_addresses(ledger, request, targets)


def _merged(begun: TakedownRequest, request: TakedownRequest) -> TakedownRequest:
    return replace(
        begun,
        uris=request.uris | begun.uris,
        own_bytes=request.own_bytes | begun.own_bytes,
        blocked_raws=request.blocked_raws | begun.blocked_raws,
        blocked_texts=request.blocked_texts | begun.blocked_texts,
        removed_twins=request.removed_twins | begun.removed_twins,
        raws=request.raws | begun.raws,
        all_sources=request.all_sources or begun.all_sources,
    )


def _with_addresses(ledger: Ledger, request: TakedownRequest) -> TakedownRequest:
    """With the other addresses that lead to the document, and those taken down with it."""
    uris, own_bytes = dict(request.uris), dict(request.own_bytes)
    for alias in ledger.sources.aliases_of(request.document.document_id):
        key = document_id(alias.source, alias.uri)
        uris[key] = alias.uri
        if alias.raw_hash:
            own_bytes[key] = alias.raw_hash
    stones = ledger.tombstones.by_id(list(uris))
    takedowns = {stone.run_id for stone in stones.values() if stone.taken_down}
    if takedowns:
        for stone in ledger.tombstones.blocking(request.document.source):
            if stone.run_id in takedowns and stone.source == request.document.source:
                uris[stone.document_id] = stone.uri
                stones[stone.document_id] = stone
    for key, stone in stones.items():
        if stone.raw_hash:
            own_bytes.setdefault(key, stone.raw_hash)
    for key, record in ledger.documents.by_id(list(uris)).items():
        if raw := record.raw_hash or record.fetched_raw_hash:
            own_bytes[key] = raw
    return replace(request, uris=uris, own_bytes=own_bytes)


def _with_old_addresses(
    ledger: Ledger, request: TakedownRequest, targets: Iterable[str]
) -> TakedownRequest:
    """With the addresses at which the same bytes stood before they went elsewhere, or were removed.

    And with the one that a run is moving it to, while it has not come to removing it from where it was.
    """
    source, raws = request.document.source, sorted(request.raws)
    uris, own_bytes = dict(request.uris), dict(request.own_bytes)
    twins = set(request.removed_twins)
    for stone in ledger.tombstones.by_raw(source, raws):
        if stone.reason in ELSEWHERE:
            uris.setdefault(stone.document_id, stone.uri)
            own_bytes.setdefault(stone.document_id, stone.raw_hash or "")
        elif stone.document_id not in uris:
            twins.add(stone.document_id)
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
                own_bytes[key] = record.raw_hash or ""
    return replace(request, uris=uris, own_bytes=own_bytes, removed_twins=frozenset(twins))


def _is_believed(record: DocumentRecord) -> bool:
    return record.suspect is None or record.suspect.reason == Anomaly.SHRUNK.value


def is_long(text_length: int | None) -> bool:
    """Shorter texts may be equal by chance."""
    return (text_length or 0) >= DUPLICATE_FROM
