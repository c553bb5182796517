"""Takedown: remove one document from everywhere, on request, and block it from coming back.

The order of the steps is what makes it safe to kill and to repeat:

1. the request itself, with every name and hash that is to go, is written down; 2. the points and sections of
every generation go; 3. a tombstone takes the place of the ledger's rows, for each address of the document,
its own last; 4. its history is forgotten, so that nothing of it counts as in use any more; 5. snapshots,
elements and vectors go, unless another document shares them, and the embedding cache is emptied, for it
cannot be told whose its vectors are; 6. the written request goes. From 1 on every run blocks it, and the next
one over its source finishes what was cut short.

What blocks it are hashes: of every version's bytes, also of those that failed, and of their main texts.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID, uuid4

from tidemark.domain.blocks import WAYS, BlockList, Match, blocking_text
from tidemark.domain.decide import Action, Reason
from tidemark.domain.documents import CrawlEnd, Observation, Outcome
from tidemark.domain.hashing import Canonical
from tidemark.domain.identity import document_id
from tidemark.domain.records import RunDocument, Tombstone
from tidemark.ports.artifacts import ArtifactEntry, ArtifactStore
from tidemark.ports.ledger import Ledger
from tidemark.stages.audit.epochs import new_epoch, write_epoch
from tidemark.stages.codec import decode_elements, decode_listing_line
from tidemark.stages.discard import discard_snapshots, discard_vectors, keys_of
from tidemark.stages.job import Stores, raw_key
from tidemark.stages.takedown.requests import DocumentRef, TakedownRequest, gather, unfinished


class _Artifacts:
    """What artifacts tell of a document beyond the ledger; each is read once, for listings are long.

    fetched: what runs have fetched from its addresses, indexed or not, by the hash of its bytes; an
    observation that was believed, if any was. targets: where its addresses have been seen to lead.
    """

    def __init__(self, stores: Stores, source: str) -> None:
        self._stores = stores
        self._source = source
        self._uris: set[str] = set()
        self._listings: dict[str, tuple[int, datetime]] = {}
        self._elements: dict[str, str] = {}
        self.fetched: dict[str, Observation] = {}
        self.targets: set[str] = set()

    def read_listings(self, uris: Collection[str]) -> None:
        """Read what the listings of the source's runs say of some addresses."""
        if not self._uris.issuperset(uris):
            self._uris.update(uris)
            self._listings.clear()
        for entry in self._unread():
            try:
                for observed in self._about(entry.key):
                    self._note(observed)
            except KeyError:
                continue  # Housekeeping was quicker.

    def texts(self, raw_hashes: Collection[str]) -> set[str]:
        """The hashes of the texts that some bytes were partitioned into, as the block list knows them."""
        artifacts = self._stores.artifacts
        keys = list(keys_of(artifacts, "elements", set(raw_hashes)))
        for key in keys:
            if key not in self._elements:
                try:
                    self._elements[key] = blocking_text(decode_elements(artifacts.read(key)))
                except KeyError:
                    continue
        return {self._elements[key] for key in keys if self._elements.get(key)}

    def _note(self, observed: Observation) -> None:
        before = self.fetched.get(observed.raw_hash or "")
        if observed.raw_hash and (before is None or before.anomaly):
            self.fetched[observed.raw_hash] = observed
        if observed.outcome is Outcome.MOVED:
            self.targets.add(observed.target)

    def _unread(self) -> Iterator[ArtifactEntry]:
        for entry in self._stores.artifacts.entries("runs/"):
            stamp = entry.size, entry.written_at
            if not entry.key.endswith("/listing.jsonl") or self._listings.get(entry.key) == stamp:
                continue
            self._listings[entry.key] = stamp
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


@dataclass(frozen=True, slots=True)
class TakedownResult:
    """What was taken down.

    before, after: what each store had of it, counted; keys as in ``proof``, generations after a dot.
    kept: what stays because another document shares it, in words.
    addresses: where it is blocked, its own address first.
    all_sources: it is blocked in every source, and not in its own only.
    """

    document: DocumentRef
    before: Mapping[str, int]
    after: Mapping[str, int]
    kept: Sequence[str]
    addresses: Sequence[str]
    all_sources: bool = False

    def names(self) -> list[str]:
        """The stores that were counted, in one order."""
        return list(dict.fromkeys([*self.before, *self.after]))

    def proof(self) -> dict[str, Canonical]:
        """Counts before and after, by store, those of the index by generation."""
        proof: dict[str, dict[str, Canonical]] = {"points": {}, "sections": {}}
        others: dict[str, Canonical] = {}
        for name in self.names():
            store, _, generation = name.partition(".")
            counts: list[Canonical] = [self.before.get(name, 0), self.after.get(name, 0)]
            proof.get(store, others)[generation or store] = counts
        return {**proof, **others}

    def as_dict(self) -> dict[str, Canonical]:
        return {
            "source": self.document.source,
            "uri": self.document.uri,
            "document_id": str(self.document.document_id),
            "proof": self.proof(),
            "kept": list(self.kept),
            "kept_out": list(self.addresses),
        }


def take_down(
    stores: Stores, document: DocumentRef, *, all_sources: bool = False, run_id: str = ""
) -> TakedownResult:
    """Remove a document from every store and block it in its source, or in every one.

    Idempotent; repeated, it finishes what was cut short. Raises ``TransientError`` when a store is away, and
    when a run has been writing the document for too long. run_id: of the takedown that it is a part of.
    """
    ledger, artifacts = stores.ledger, stores.artifacts
    now = stores.clock()
    run_id = run_id or f"{document.source}__takedown__{now:%Y%m%dT%H%M%S}__{uuid4().hex[:8]}"
    kept_artifacts = _Artifacts(stores, document.source)
    request = TakedownRequest(
        run_id, now, document, {document.document_id: document.uri}, all_sources=all_sources
    )
    with _locked(stores, request, kept_artifacts) as request, stores.index.session():
        counts = _count(stores, request)
        before = {name: max(request.counts.get(name, 0), count) for name, count in counts.items()}
        request = replace(request, counts=before)
        artifacts.write(request.key, request.encoded())
        _remove_rows(stores, request)
    # What a run beside this one has fetched in the meantime is among its listings only now.
    kept_artifacts.read_listings(request.uris.values())
    request = replace(request, raws=request.raws | kept_artifacts.fetched.keys())
    # Others that were removed before, and had the same bytes, had the same title too.
    ledger.tombstones.clear_titles(document.source, sorted(request.raws))
    kept = request.raws - discard_snapshots(ledger, artifacts, request.raws)
    discard_vectors(artifacts, request.all_ids)
    if stores.vector_cache is not None:
        stores.vector_cache.clear()
    with stores.index.session():
        after = _count(stores, request)
    _drop_requests(artifacts, document)
    return TakedownResult(
        document,
        before,
        after,
        [_shared(raw) for raw in sorted(kept) if artifacts.exists(raw_key(raw))],
        [request.uris[key] for key in reversed(request.ids)],
        request.all_sources,
    )


def preview(stores: Stores, document: DocumentRef) -> dict[str, int]:
    """What each store has of a document that may be taken down (keys as in ``TakedownResult``)."""
    request = TakedownRequest("", stores.clock(), document, {document.document_id: document.uri})
    with stores.index.session():
        return _count(stores, gather(stores, request))


def finish_takedowns(stores: Stores, source: str) -> list[str]:
    """Take down what is to be gone from a source and is not; the addresses.

    These are documents whose takedown was cut short, and those of this source at the address of one that was
    taken down from all.
    """
    finished: dict[str, None] = {}
    for request in list(unfinished(stores.artifacts, source)):
        take_down(stores, request.document, all_sources=request.all_sources)
        finished[request.document.uri] = None
    blocking = {tombstone.uri: tombstone for tombstone in stores.ledger.tombstones.blocking(source)}
    ids = [document_id(source, uri) for uri in blocking]
    for record in stores.ledger.documents.by_id(ids).values():
        tombstone = blocking[record.uri]
        ref = DocumentRef(source, record.uri, record.document_id)
        # Under the same name, so that they are unblocked as one.
        take_down(stores, ref, all_sources=tombstone.all_sources, run_id=tombstone.run_id)
        finished[record.uri] = None
    return list(finished)


def unblock(stores: Stores, document: DocumentRef) -> list[str]:
    """Let the next crawl index a document again that was taken down; its addresses, [] for none.

    Its bytes are gone: it is fetched anew.
    """
    tombstones, uris = stores.ledger.tombstones, []
    own = tombstones.by_id([document.document_id]).get(document.document_id)
    if own is not None and own.taken_down:
        together = [t for t in tombstones.blocking(document.source) if t.run_id == own.run_id]
        # Its own last: it is what leads to the others.
        for tombstone in sorted(together, key=lambda one: one.document_id == own.document_id):
            tombstones.unblock(tombstone.document_id)
            uris.append(tombstone.uri)
    return list(dict.fromkeys([*uris, *_drop_requests(stores.artifacts, document)]))


def _drop_requests(artifacts: ArtifactStore, document: DocumentRef) -> list[str]:
    """Forget the requests to take a document down; the addresses that they named."""
    uris: list[str] = []
    for request in unfinished(artifacts):
        if document.document_id in request.uris:
            uris += request.uris.values()
            artifacts.delete(request.key)
    return uris


# What is blocked.


def block_list(ledger: Ledger, artifacts: ArtifactStore, source: str) -> BlockList:
    """What was taken down from a source, or is in takedowns that are not finished."""
    requests = list(unfinished(artifacts, source))
    requested = [r.tombstone(key, None, r.requested_at) for r in requests for key in r.ids]
    pending = [key for request in requests for key in request.all_ids]
    return BlockList.of(source, [*ledger.tombstones.blocking(source), *requested], pending)


def blocking_tombstone(ledger: Ledger, source: str, uri: str) -> Tombstone | None:
    """The takedown for which an address is blocked that was not taken down itself, in this source."""
    tombstones = ledger.tombstones.blocking(source)
    for tombstone in tombstones:
        if tombstone.uri == uri and tombstone.source != source:
            return tombstone
    for event in ledger.runs.events_of(document_id(source, uri), limit=1):
        for tombstone in tombstones:
            reasons = {Match(how, tombstone).sentence for how in WAYS}
            if tombstone.uri != uri and event.detail in reasons:
                return tombstone
    return None


# The steps.


@contextmanager
def _locked(
    stores: Stores, request: TakedownRequest, artifacts: _Artifacts
) -> Iterator[TakedownRequest]:
    """The request with all that is known, and the locks of all its ids, so that no run writes them."""
    request = gather(stores, request)
    while True:
        # Before the locks: runs wait for those, and listings are long.
        artifacts.read_listings(request.uris.values())
        artifacts.texts(request.blocked_raws)
        with stores.ledger.lock_documents(request.all_ids):
            now = gather(stores, request, artifacts.targets)
            if set(now.all_ids) <= set(request.all_ids):
                now = now.with_fetched(artifacts.fetched)
                texts = now.blocked_texts | artifacts.texts(now.blocked_raws)
                yield replace(now, blocked_texts=texts)
                return
        request = now  # It got another address while its lock was waited for.


def _remove_rows(stores: Stores, request: TakedownRequest) -> None:
    ledger = stores.ledger
    tombstones = ledger.tombstones.by_id(request.ids)
    records = ledger.documents.by_id(request.ids)
    pending = ledger.writes.pending(among=request.ids)
    new = [
        key
        for key in request.ids
        if key in records
        or key in pending
        or key not in tombstones
        or not _blocks_all(tombstones[key], request)
    ]
    if new:
        uris = {key: request.uris[key] for key in new}
        ledger.writes.open_intent(request.run_id, request.document.source, uris)
    _begin_epoch(stores, request)
    for key in request.ids:
        removed = _remove_points(stores, key)
        if key in new:
            ledger.writes.remove(
                request.tombstone(key, tombstones.get(key), stores.clock()),
                RunDocument(
                    request.run_id, key, request.uris[key], Action.REMOVE.value,
                    Reason.TAKEN_DOWN.value, "by order", chunks_removed=removed,
                ),
            )  # fmt: skip
    ledger.versions.forget(request.all_ids)
    ledger.tombstones.expire(list(request.removed_twins))


def _blocks_all(tombstone: Tombstone, request: TakedownRequest) -> bool:
    """Does it block already all that the request knows?"""
    if not tombstone.taken_down or tombstone.all_sources != request.all_sources:
        return False
    return tombstone.document_id != request.document.document_id or (
        request.blocked_raws <= set(tombstone.blocked_raws)
        and request.blocked_texts <= set(tombstone.blocked_texts)
    )


def _begin_epoch(stores: Stores, request: TakedownRequest) -> None:
    """A fresh epoch where ledger and index agree; where they do not, they stay as they are."""
    source = request.document.source
    epoch = stores.ledger.sources.epoch(source)
    agreeing = [
        generation
        for generation in stores.index.generations()
        if stores.index.epochs(generation, source) == (epoch, epoch)
    ]
    if agreeing:
        write_epoch(stores.ledger, stores.index, source, agreeing, new_epoch(request.run_id))


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


def _count(stores: Stores, request: TakedownRequest) -> dict[str, int]:
    """What each store has of it now, asked of the store itself."""
    index, where = stores.index, _of(request.ids)
    counts = {f"points.g{n}": index.count_points(n, where) for n in index.generations()}
    counts |= {f"sections.g{n}": index.count_sections(n, where) for n in index.generations()}
    artifacts, ledger, cache = stores.artifacts, stores.ledger, stores.vector_cache
    names = {str(key) for key in request.all_ids}
    counts["raw"] = sum(artifacts.exists(raw_key(raw)) for raw in request.raws)
    counts["elements"] = sum(1 for _ in keys_of(artifacts, "elements", set(request.raws)))
    counts["vectors"] = sum(1 for _ in keys_of(artifacts, "vectors", names))
    counts["cached_vectors"] = cache.count() if cache is not None else 0
    counts["ledger_rows"] = len(ledger.documents.by_id(request.ids)) + sum(
        len(rows)
        for key in request.ids
        for rows in (
            ledger.documents.sections(key), ledger.documents.chunks(key), ledger.versions.of(key),
            ledger.sources.aliases_of(key),
        )
    )  # fmt: skip
    return counts


def _shared(raw_hash: str) -> str:
    return f"{raw_key(raw_hash)} and its elements: another document has the very same bytes"
