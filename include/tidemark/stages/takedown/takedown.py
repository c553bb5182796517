"""Takedown: remove one document from everywhere, by order, and keep it out.

The order of the steps is what makes it safe to kill and to repeat:

1. the order itself, with every name and hash that is to go, is written down; 2. the points and sections of
every generation go; 3. a tombstone takes the place of the ledger's rows, for each address of the document,
its own last; 4. its history is forgotten, so that nothing of it counts as in use any more; 5. snapshots,
elements and vectors go, unless another document shares them, and the embedding cache is emptied, for it
cannot be told whose its vectors are; 6. the written order goes. From 1 on every run keeps it out.

What keeps it out are hashes: of every version's bytes, also of those that failed, and of their main texts.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol
from uuid import UUID, uuid4

from tidemark.domain.decide import Action, Reason
from tidemark.domain.documents import CrawlEnd, Observation
from tidemark.domain.hashing import Canonical
from tidemark.domain.records import TAKEN_DOWN, RunDocument, Tombstone
from tidemark.ports import ArtifactEntry
from tidemark.stages.audit.reconcile import fresh_mark, put_mark
from tidemark.stages.codec import decode_listing_line
from tidemark.stages.job import Stores, raw_key
from tidemark.stages.sweep.discard import discard_snapshots, discard_vectors, keys_of
from tidemark.stages.takedown.requests import Found, Order, order_of, stones_of, unfinished

# What runs have fetched from some addresses, as far as their listings are there: indexed or not.


class Listings:
    """The listings of a source's runs, each read once for the same addresses: they are long."""

    def __init__(self, stores: Stores, source: str) -> None:
        self._stores = stores
        self._source = source
        self._uris: set[str] = set()
        self._read: dict[str, tuple[int, datetime]] = {}
        self._fetched: dict[str, Observation] = {}

    def fetched(self, uris: set[str]) -> dict[str, Observation]:
        """By the hash of its bytes, what was fetched from addresses; one that was believed, if any was."""
        if not uris <= self._uris:
            self._uris |= uris
            self._read.clear()
        for entry in self._unread():
            try:
                for observed in self._about(entry.key):
                    before = self._fetched.get(observed.raw_hash or "")
                    if observed.raw_hash and (before is None or before.anomaly):
                        self._fetched[observed.raw_hash] = observed
            except KeyError:
                continue  # Housekeeping was quicker.
        return dict(self._fetched)

    def _unread(self) -> Iterator[ArtifactEntry]:
        for entry in self._stores.artifacts.entries("runs/"):
            stamp = entry.size, entry.written_at
            if not entry.key.endswith("/listing.jsonl") or self._read.get(entry.key) == stamp:
                continue
            self._read[entry.key] = stamp
            run = self._stores.ledger.runs.get(entry.key.split("/")[1])
            if run is None or run.source == self._source:
                yield entry

    def _about(self, key: str) -> Iterator[Observation]:
        quoted = [json.dumps(uri, ensure_ascii=False) for uri in self._uris]
        for line in self._stores.artifacts.lines(key):
            # Decoded only where it may be one of them.
            if any(uri in line for uri in quoted):
                observed = decode_listing_line(line)
                if not isinstance(observed, CrawlEnd) and observed.uri in self._uris:
                    yield observed


class VectorCache(Protocol):
    """Vectors by the hash of their text, of no known document."""

    def count(self) -> int: ...

    def clear(self) -> int:
        """Forget all; how many."""


class NoCache:
    """Where nothing is cached."""

    def count(self) -> int:
        return 0

    def clear(self) -> int:
        return 0


@dataclass(frozen=True, slots=True)
class TakenDown:
    """What was taken down.

    before, after: what each store had of it, counted; keys as in ``proof``, generations after a dot.
    kept: what stays because another document shares it, in words.
    addresses: where it is kept out, its own address first.
    everywhere: it is kept out of every source, and not of its own only.
    """

    found: Found
    before: Mapping[str, int]
    after: Mapping[str, int]
    kept: Sequence[str]
    addresses: Sequence[str]
    everywhere: bool = False

    def names(self) -> list[str]:
        """The stores that were counted, in one order."""
        return sorted({*self.before, *self.after}, key=_place)

    def proof(self) -> dict[str, Canonical]:
        """Counts before and after, by store, those of the index by generation."""
        proof: dict[str, dict[str, Canonical] | list[Canonical]] = {"points": {}, "sections": {}}
        for name in self.names():
            counts: list[Canonical] = [self.before.get(name, 0), self.after.get(name, 0)]
            store, _, generation = name.partition(".")
            held = proof.setdefault(store, counts)
            if isinstance(held, dict):
                held[generation] = counts
        return dict(proof)

    def as_dict(self) -> dict[str, Canonical]:
        return {
            "source": self.found.source,
            "uri": self.found.uri,
            "document_id": str(self.found.document_id),
            "proof": self.proof(),
            "kept": list(self.kept),
            "kept_out": list(self.addresses),
        }


def take_down(
    stores: Stores, cache: VectorCache, found: Found, *, everywhere: bool = False
) -> TakenDown:
    """Remove a document from every store and keep it out of its source, or of every one.

    Idempotent; repeated, it finishes what was cut short. Raises ``TransientError`` when a store is away, and
    when a run has been writing the document for too long.
    """
    run_id = f"{found.source}__takedown__{stores.clock():%Y%m%dT%H%M%S}__{uuid4().hex[:8]}"
    listings = Listings(stores, found.source)
    first = order_of(stores, found, run_id, everywhere=everywhere)
    with _locked(stores, first, listings) as order, stores.index.session():
        counts = _count(stores, cache, order)
        before = {name: max(order.counts.get(name, 0), count) for name, count in counts.items()}
        order = replace(order, counts=before)
        stores.artifacts.write(order.key, order.encoded())
        _remove_rows(stores, order)
    # What a run beside this one has fetched in the meantime is among its listings only now.
    fetched = listings.fetched(set(order.uris.values()))
    order = replace(order, raws=order.raws | fetched.keys())
    # Others that were removed before, and had the same bytes, had the same title too.
    stores.ledger.tombstones.clear_titles(found.source, sorted(order.raws))
    kept = order.raws - discard_snapshots(stores.ledger, stores.artifacts, order.raws)
    discard_vectors(stores.artifacts, [*order.ids, *order.graves])
    cache.clear()
    with stores.index.session():
        after = _count(stores, cache, order)
    for begun in unfinished(stores.artifacts):
        if found.document_id in begun.uris:
            stores.artifacts.delete(begun.key)
    return TakenDown(
        found,
        before,
        after,
        [_shared(raw) for raw in sorted(kept) if stores.artifacts.exists(raw_key(raw))],
        [order.uris[key] for key in reversed(order.ids)],
        order.everywhere,
    )


def would_remove(stores: Stores, cache: VectorCache, found: Found) -> dict[str, int]:
    """What each store has of a document that may be taken down (keys as in ``TakenDown``); writes nothing."""
    order = order_of(stores, found, f"{found.source}__takedown__dry")
    with stores.index.session():
        return _count(stores, cache, order)


def lift(stores: Stores, found: Found) -> list[str]:
    """Let the next crawl index a document again that was taken down; its addresses, [] for none.

    Its bytes are gone: it is fetched anew.
    """
    stones = stones_of(stores.ledger, found)
    lifted = {stone.uri: None for stone in stones}
    for stone in sorted(stones, key=lambda one: one.document_id == found.document_id):
        stores.ledger.tombstones.unblock(stone.document_id)
    for begun in unfinished(stores.artifacts):
        if found.document_id in begun.uris:
            lifted |= dict.fromkeys(begun.uris.values())
            stores.artifacts.delete(begun.key)
    return list(lifted)


@contextmanager
def _locked(stores: Stores, order: Order, listings: Listings) -> Iterator[Order]:
    """The order, with the locks of all ids in it held, so that no run writes them meanwhile."""
    while True:
        # Before the locks: runs wait for those, and listings are long.
        fetched = listings.fetched(set(order.uris.values()))
        with stores.ledger.lock_documents([*order.ids, *order.graves]):
            now = order_of(stores, order.found, order.run_id, everywhere=order.everywhere)
            if now.uris.keys() <= order.uris.keys() and now.graves <= order.graves:
                yield now.with_fetched(fetched)
                return
        order = now  # It got another address while its lock was waited for.


def _remove_rows(stores: Stores, order: Order) -> None:
    ledger, source = stores.ledger, order.found.source
    stones = ledger.tombstones.by_id(order.ids)
    records = ledger.documents.by_id(order.ids)
    begun = ledger.writes.pending(among=order.ids)
    new = [
        key
        for key in order.ids
        if key in records or key in begun or key not in stones or not _stands(stones[key], order)
    ]
    if new:
        ledger.writes.open_intent(order.run_id, source, {key: order.uris[key] for key in new})
    _advance(stores, order)
    for key in order.ids:
        removed = _remove_points(stores, key)
        if key in new:
            ledger.writes.remove(
                _stone(order, key, stones.get(key), stores.clock()),
                RunDocument(
                    order.run_id, key, order.uris[key], Action.REMOVE.value, Reason.TAKEN_DOWN.value,
                    "by order", chunks_removed=removed,
                ),
            )  # fmt: skip
    ledger.versions.forget([*order.ids, *order.graves])
    ledger.tombstones.expire(list(order.graves))


def _stands(stone: Tombstone, order: Order) -> bool:
    """Does it keep out already all that the order knows?"""
    if stone.everywhere != order.everywhere:
        return False
    if stone.document_id != order.found.document_id:
        return stone.taken_down
    whole = order.kept_out <= set(stone.kept_out) and order.texts <= set(stone.texts)
    return stone.taken_down and whole


def _stone(order: Order, key: UUID, before: Tombstone | None, now: datetime) -> Tombstone:
    """What keeps an address out; that of the document itself, all that was its own."""
    standing = before if before is not None and before.taken_down else None
    own = key == order.found.document_id
    return Tombstone(
        key,
        order.found.source,
        order.uris[key],
        "",
        order.own_bytes.get(key) or None,
        standing.removed_at if standing else now,
        TAKEN_DOWN,
        standing.run_id if standing else order.run_id,
        expired=True,
        kept_out=tuple(sorted(order.kept_out)) if own else (),
        texts=tuple(sorted(order.texts)) if own else (),
        everywhere=order.everywhere,
    )


def _advance(stores: Stores, order: Order) -> None:
    """A fresh tide mark where ledger and index are in step; where they are not, they stay out of it."""
    source, mark = order.found.source, stores.ledger.sources.epoch(order.found.source)
    in_step = [
        generation
        for generation in stores.index.generations()
        if stores.index.epochs(generation, source) == (mark, mark)
    ]
    if in_step:
        put_mark(stores.ledger, stores.index, source, in_step, fresh_mark(order.run_id))


def _remove_points(stores: Stores, document: UUID) -> int:
    """Delete all that any generation has of a document; how many points the live one had."""
    index, where = stores.index, _of([document])
    removed, live = 0, index.live()
    for generation in index.generations():
        points = [point.point_id for point in index.scan_points(generation, where)]
        index.delete_points(generation, points)
        sections = [section.point_id for section in index.scan_sections(generation, where)]
        index.delete_sections(generation, sections)
        removed += len(points) if generation == live else 0
    return removed


def _of(documents: Sequence[UUID]) -> dict[str, str | list[str]]:
    return {"document_id": [str(document) for document in documents]}


_STORES = ("points", "sections", "raw", "elements", "vectors", "cached_vectors", "ledger_rows")


def _place(name: str) -> tuple[int, str]:
    store = name.partition(".")[0]
    return _STORES.index(store) if store in _STORES else len(_STORES), name


def _count(stores: Stores, cache: VectorCache, order: Order) -> dict[str, int]:
    """What each store has of it now, asked of the store itself."""
    counts: dict[str, int] = {}
    where = _of(order.ids)
    for generation in stores.index.generations():
        counts[f"points.g{generation}"] = stores.index.count_points(generation, where)
        counts[f"sections.g{generation}"] = stores.index.count_sections(generation, where)
    artifacts, ledger = stores.artifacts, stores.ledger
    names = {str(key) for key in (*order.ids, *order.graves)}
    counts["raw"] = sum(artifacts.exists(raw_key(raw)) for raw in order.raws)
    counts["elements"] = sum(1 for _ in keys_of(artifacts, "elements", set(order.raws)))
    counts["vectors"] = sum(1 for _ in keys_of(artifacts, "vectors", names))
    counts["cached_vectors"] = cache.count()
    counts["ledger_rows"] = len(ledger.documents.by_id(order.ids)) + sum(
        len(rows)
        for key in order.ids
        for rows in (
            ledger.documents.sections(key), ledger.documents.chunks(key), ledger.versions.of(key),
            ledger.sources.aliases_of(key),
        )
    )  # fmt: skip
    return counts


def _shared(raw_hash: str) -> str:
    return f"{raw_key(raw_hash)} and its elements: another document has the very same bytes"
