"""The comparison: is the index what the ledger says? Both ways, streaming.

One pass over the index adds up a checksum per document, one pass over the ledger's documents compares them.
Whatever looks wrong is compared again piece by piece, under the lock of the document: what a run is writing
at the moment is between two states for the ledger as for the index, and is no finding.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeVar
from urllib.parse import urldefrag
from uuid import UUID

from tidemark.domain.chunks import StoredPoint
from tidemark.domain.decide import ELSEWHERE, Action
from tidemark.domain.errors import PermanentError
from tidemark.domain.hashing import (
    agree,
    checksum,
    digest_of,
    digest_text,
    vector_hash,
    vectors_hash,
)
from tidemark.domain.records import (
    DocumentRecord,
    DocumentStatus,
    GenerationStatus,
    Tombstone,
)
from tidemark.ports.embedding import Embedder, LexicalEncoder
from tidemark.ports.index import VectorIndex
from tidemark.ports.ledger import Ledger
from tidemark.ports.progress import Clock, Progress, quiet
from tidemark.stages.audit.drift import (
    Checksums,
    Collection,
    DocumentName,
    Drift,
    Kind,
    Owner,
    document_of,
    look_up,
    source_of,
)
from tidemark.stages.job import Dependencies, Job, utc_now
from tidemark.stages.process.payloads import checksum_of

PAGE = 500
WINDOW = 32
"""Documents compared piece by piece under one lock, as many as a run writes under one."""
SETTLE_SECONDS = 1.0
"""A run that puts the alias over another generation takes a moment for it: what is wrong is looked at twice,
this far apart."""

_NOTHING = checksum([])
_OF_DOCUMENTS = (
    Kind.MISSING_POINTS,
    Kind.EXTRA_POINTS,
    Kind.STALE_PAYLOAD,
    Kind.MISSING_SECTIONS,
    Kind.EXTRA_SECTIONS,
    Kind.WRONG_VECTORS,
    Kind.WRONG_MODEL,
)
T = TypeVar("T")


def pages(items: Iterable[T], size: int) -> Iterator[list[T]]:
    iterator = iter(items)
    while page := list(islice(iterator, size)):
        yield page


@dataclass(frozen=True, slots=True)
class AuditDependencies:
    """What an audit of the index works with.

    job_factory: job (with a run id of its own) and dependencies of a source. Raises ``ConfigurationError``
        when it cannot be made a run of.
    will_run: is it a source whose next run will come?
    wait_seconds: how long a repair waits for a source that a run holds.
    settle_seconds: between two looks at the generations.
    """

    ledger: Ledger
    index: VectorIndex
    index_name: str
    embedder: Embedder
    lexical: LexicalEncoder
    job_factory: Callable[[str], tuple[Job, Dependencies]]
    will_run: Callable[[str], bool]
    clock: Clock = utc_now
    progress: Progress = field(default_factory=quiet)
    wait_seconds: float = 60.0
    settle_seconds: float = SETTLE_SECONDS


# What is compared with what


@dataclass(frozen=True, slots=True)
class Scope:
    """What is compared with what.

    generations: those whose points and sections are read as a whole.
    existing: all that the index has. live: the one that searches are, or are to be, answered from.
    full: documents in any other generation are looked at too, piece by piece.
    models: what each generation is built under, as far as the index, or else the ledger, says.
    undecided: documents that are not looked at: what becomes of them a later run decides.
    """

    ledger: Ledger
    index: VectorIndex
    generations: tuple[int, ...]
    existing: frozenset[int]
    live: int | None
    models: Mapping[int, str]
    full: bool = False
    progress: Progress = field(default_factory=quiet)
    undecided: frozenset[UUID] = frozenset()

    def covers(self, generation: int) -> bool:
        """Are the documents of a generation looked at? Not those of others that exist, for a run."""
        return self.full or generation in self.generations or generation not in self.existing

    def serves(self, generation: int, record: DocumentRecord) -> bool:
        """Is it right that this generation has a version of a document whose newest is in another one?

        It is while that other one is being built: searches are still answered from here. It is as well when
        that one is gone: until the document is written again, this version is all that there is.
        """
        return generation == self.live and record.generation not in (None, generation)

    def leaves(self, generation: int, record: DocumentRecord) -> bool:
        """Is it no matter what this generation still has of a document that is in another one?

        It is not while nobody is answered from here: whoever writes the document here again asks what there
        is of it, and a generation that was abandoned goes as a whole.
        """
        return (
            generation != self.live
            and record.generation != generation
            and record.generation in self.existing
        )

    def of_other_model(self, record: DocumentRecord) -> bool:
        """Was a document embedded by another model than its generation is built under?"""
        if record.generation is None or record.fingerprints is None:
            return False
        model = self.models.get(record.generation)
        return bool(model) and model != record.fingerprints.embed


def scope_of(
    ledger: Ledger, index: VectorIndex, generations: Iterable[int], index_name: str | None = None
) -> Scope:
    """The scope of an audit of some generations as things are now; with ``index_name``, of a full one."""
    existing = frozenset(index.generations())
    records = ledger.generations.all(index_name) if index_name is not None else []
    recorded = {record.number: record.embed_fingerprint for record in records}
    models = {n: index.built_under(n) or recorded.get(n, "") for n in existing}
    chosen = tuple(sorted(existing.intersection(generations)))
    live_in_ledger = {r.number for r in records if r.status is GenerationStatus.LIVE} & existing
    # An alias that is lost, damaged or moved is a finding of its own: what is served is no drift by it.
    live = max(live_in_ledger) if live_in_ledger else _alias(index)
    if live is not None and index.incomplete().get(live) == Collection.POINTS.value:
        # Half dropped after a switch: what is served is where the alias is.
        live = _alias(index) or live
    return Scope(ledger, index, chosen, existing, live, models, index_name is not None)


def _alias(index: VectorIndex) -> int | None:
    """The generation behind the alias; None also when that is damaged."""
    try:
        return index.live()
    except PermanentError:
        return None


# The comparison


@dataclass(slots=True)
class Compared:
    """points: of the ledger that were compared, by source. documents: how many.

    models: by what the documents of each generation were embedded.
    """

    points: Counter[str] = field(default_factory=Counter)
    documents: int = 0
    models: dict[int, set[str]] = field(default_factory=dict)

    def add(self, record: DocumentRecord) -> None:
        self.documents += 1
        self.points[record.source] += record.chunks
        if record.generation is not None and record.fingerprints is not None:
            self.models.setdefault(record.generation, set()).add(record.fingerprints.embed)


@dataclass(slots=True)
class _Held:
    """What the index holds of one document: hashes by id; that of the vectors is None without a dense one.

    altered: points whose text is not the one that their own ``content_hash`` is of.
    """

    points: dict[UUID, str] = field(default_factory=dict)
    vectors: dict[UUID, str | None] = field(default_factory=dict)
    sections: dict[UUID, str] = field(default_factory=dict)
    source: str = ""
    uri: str = ""
    altered: int = 0

    def add(self, point: StoredPoint, collection: Collection) -> None:
        self.source = self.source or source_of(point)
        self.uri = self.uri or urldefrag(str(point.payload.get("source_uri") or "")).url
        payload_hash = digest_of(point.payload)
        if collection is Collection.SECTIONS:
            self.sections[point.point_id] = payload_hash
            return
        self.points[point.point_id] = payload_hash
        hashed = vectors_hash(point.dense, point.lexical) if point.dense else None
        self.vectors[point.point_id] = hashed
        text = point.payload.get("text")
        known = isinstance(text, str) and digest_text(text) == point.payload.get("content_hash")
        self.altered += not known


def _name(record: DocumentRecord) -> DocumentName:
    return DocumentName(record.document_id, record.source, record.uri)


def _read(index: VectorIndex, generation: int, documents: Iterable[UUID]) -> dict[UUID, _Held]:
    held = {key: _Held() for key in documents}
    where: dict[str, str | list[str]] = {"document_id": [str(key) for key in held]}
    for collection, found in (
        (Collection.POINTS, index.scan_points(generation, where, vectors=True)),
        (Collection.SECTIONS, index.scan_sections(generation, where)),
    ):
        for point in found:
            # One found by an index of payloads that are lost has none, and is missing.
            document = document_of(point)
            if document in held:
                held[document].add(point, collection)
    return held


class Comparison:
    """Compares documents; what differs goes to ``drift``."""

    def __init__(self, scope: Scope, drift: Drift) -> None:
        self._scope = scope
        self._drift = drift
        self._ledger = scope.ledger
        self._index = scope.index

    # By checksum

    def compare_all(
        self, source: str | None = None, see: Callable[[DocumentRecord], None] = lambda _: None
    ) -> Compared:
        """Compare all documents (of a source), both ways. A clean index costs one pass over it.

        ``see`` is shown each record in passing.
        """
        compared, progress = Compared(), self._scope.progress
        with Checksums() as checksums:
            progress.stage("read the index", None)
            for generation in self._scope.generations:
                checksums.read(self._index, generation, source)
            progress.stage("compare", self._ledger.documents.counts(source).indexed)
            for page in pages(self._ledger.documents.stream(source), PAGE):
                held = checksums.take([record.document_id for record in page])
                for record in page:
                    see(record)
                    checksums.suspect(self._suspicions(record, held, compared))
                progress.advance(len(page), page[-1].uri)
            checksums.suspect(checksums.left())
            for window in pages(checksums.suspects(), WINDOW):
                self.compare_pieces(window)
            for unowned in pages(checksums.unowned(), PAGE):
                self._compare_unowned(unowned)
        return compared

    def _suspicions(
        self, record: DocumentRecord, held: Mapping[tuple[int, UUID], str], compared: Compared
    ) -> Iterator[tuple[UUID, int | None]]:
        """Does anything speak against a document? Its own row and checksum are all that is looked at."""
        scope, key = self._scope, record.document_id
        if record.generation is not None and scope.covers(record.generation):
            compared.add(record)
            there = held.get((record.generation, key), _NOTHING)
            same = record.generation in scope.generations and there == record.checksum
            if not same or scope.of_other_model(record):
                yield key, None
        for number in scope.generations:
            if number == record.generation or scope.leaves(number, record):
                continue
            # No checksum tells of a version that is served until the newest is live: it is looked at itself.
            if scope.full if scope.serves(number, record) else (number, key) in held:
                yield key, number

    def _compare_unowned(self, page: Iterable[tuple[int, Collection, UUID]]) -> None:
        """Points and sections that name no document, as far as they are still there and still do not."""
        ids: dict[tuple[int, Collection], list[UUID]] = defaultdict(list)
        for generation, collection, key in page:
            ids[generation, collection].append(key)
        for (number, kind), keys in ids.items():
            for point in look_up(self._index, number, kind, keys):
                if document_of(point) is None:
                    only, source = [point.point_id], source_of(point)
                    self._drift.is_extra(number, kind, only, Owner.NOBODY, None, source)

    # Piece by piece

    def compare_some(self, documents: Iterable[UUID]) -> Compared:
        """Compare some documents, piece by piece, wherever they are."""
        compared = Compared()
        for window in pages(documents, WINDOW):
            for record in self._ledger.documents.by_id(window).values():
                if record.generation is not None:
                    compared.add(record)
            beside = [(key, number) for key in window for number in self._scope.generations]
            self.compare_pieces([*((key, None) for key in window), *beside])
        return compared

    def compare_pieces(self, suspects: Sequence[tuple[UUID, int | None]]) -> None:
        """Compare documents piece by piece, with the ledger and the index as they are now.

        Each is compared in the generation that it is live in, and looked at in the one named with it.
        """
        scope = self._scope
        suspects = [(key, number) for key, number in suspects if key not in scope.undecided]
        keys = list(dict.fromkeys(key for key, _ in suspects))
        with self._ledger.lock_documents(keys):
            records = self._ledger.documents.by_id(keys)
            wanted: dict[int, set[UUID]] = defaultdict(set)
            for key, record in records.items():
                if record.generation in scope.existing:
                    wanted[record.generation].add(key)
                elif record.generation is not None:
                    # Its whole generation is gone, and no run has written it again.
                    chunks, sections = record.chunks, record.sections
                    gone = {Kind.MISSING_POINTS: chunks, Kind.MISSING_SECTIONS: sections}
                    self._drift.differs(_name(record), gone)
            for key, number in suspects:
                if number is not None and (
                    key not in records or scope.full or not scope.serves(number, records[key])
                ):
                    wanted[number].add(key)
            # Opened once for all of them, and only now: never is a lock waited for with the index held open.
            with self._index.session():
                for generation, documents in wanted.items():
                    for key, held in _read(self._index, generation, documents).items():
                        self._compare_one(generation, key, records.get(key), held)

    def _compare_one(
        self, generation: int, key: UUID, record: DocumentRecord | None, held: _Held
    ) -> None:
        if record is not None and record.generation == generation:
            self._compare_live(generation, record, held)
        elif record is not None and self._scope.serves(generation, record):
            self._compare_served(generation, record, held)
        elif owned := self._should_be_gone(generation, key, record, held):
            name, owner = owned
            self._drift.is_extra(generation, Collection.POINTS, held.points, owner, name)
            self._drift.is_extra(generation, Collection.SECTIONS, held.sections, owner, name)

    def _compare_live(self, generation: int, record: DocumentRecord, held: _Held) -> None:
        """Compare a document with the points and sections that the ledger has of it, both ways."""
        name, drift = _name(record), self._drift
        chunks = {c.point_id: c for c in self._ledger.documents.chunks(record.document_id)}
        sections = {s.section_id: s for s in self._ledger.documents.sections(record.document_id)}
        self._find_misattributed(generation, name, Collection.POINTS, chunks, held)
        self._find_misattributed(generation, name, Collection.SECTIONS, sections, held)
        points_there = chunks.keys() & held.points.keys()
        sections_there = sections.keys() & held.sections.keys()
        counts = {
            Kind.MISSING_POINTS: len(chunks) - len(points_there),
            Kind.MISSING_SECTIONS: len(sections) - len(sections_there),
            Kind.STALE_PAYLOAD: sum(held.points[k] != chunks[k].payload_hash for k in points_there)
            + sum(held.sections[k] != sections[k].payload_hash for k in sections_there),
            Kind.WRONG_VECTORS: sum(
                (vector := held.vectors[k]) is None or not agree(chunks[k].vector_hash, vector)
                for k in points_there
            ),
            Kind.WRONG_MODEL: int(self._scope.of_other_model(record)),
        }
        drift.differs(name, counts)
        points_extra = held.points.keys() - chunks.keys()
        sections_extra = held.sections.keys() - sections.keys()
        drift.is_extra(generation, Collection.POINTS, points_extra, Owner.KNOWN, name)
        drift.is_extra(generation, Collection.SECTIONS, sections_extra, Owner.KNOWN, name)
        if any(counts.values()) or points_extra or sections_extra:
            return
        known = [replace(chunk, vector_hash=held.vectors[key]) for key, chunk in chunks.items()]
        total = checksum_of(known, sections.values())
        if total is not None and total != record.checksum:
            # From now on one checksum tells that it is as it was written.
            hashes = {c.point_id: c.vector_hash for c in known if c.vector_hash is not None}
            self._ledger.writes.record_vectors(record.document_id, hashes, total, record.checksum)

    def _find_misattributed(
        self,
        generation: int,
        name: DocumentName,
        collection: Collection,
        ids: Iterable[UUID],
        held: _Held,
    ) -> None:
        """Add what is there under its id, and whose payload does not name its document."""
        points = collection is Collection.POINTS
        hashes = held.points if points else held.sections
        missing = [key for key in ids if key not in hashes]
        if not missing:
            return
        found = look_up(self._index, generation, collection, missing)
        hashes |= {point.point_id: digest_of(point.payload) for point in found}
        ids = [point.point_id for point in found]
        self._drift.is_misattributed(generation, collection, ids, name)
        if points:
            vectors = self._index.get_vectors(generation, missing)
            for key in ids:
                held.vectors[key] = vector_hash(vectors[key]) if vectors.get(key) else None

    def _compare_served(self, generation: int, record: DocumentRecord, held: _Held) -> None:
        """Is the version whole that searches find of a document whose newest is in a generation being built?

        The ledger's rows are of the newest. Of this one its history tells how much there was, as long as it
        is kept, and the points themselves tell whether their texts are what they were.
        """
        there = len(held.points), len(held.sections)
        points, sections = self._served_counts(generation, record) or there
        counts = {
            Kind.MISSING_POINTS: max(0, points - there[0]),
            Kind.EXTRA_POINTS: max(0, there[0] - points),
            Kind.MISSING_SECTIONS: max(0, sections - there[1]),
            Kind.EXTRA_SECTIONS: max(0, there[1] - sections),
            Kind.STALE_PAYLOAD: held.altered,
            Kind.WRONG_VECTORS: sum(vector is None for vector in held.vectors.values()),
        }
        self._drift.differs(_name(record), counts, Owner.SERVED)

    def _served_counts(self, generation: int, record: DocumentRecord) -> tuple[int, int] | None:
        """How many points and sections a generation has of a document, None when nothing tells."""
        if record.status is DocumentStatus.QUARANTINED:
            # Its last good version may have been cut anew since, which no history tells of.
            return None
        for version in self._ledger.versions.of(record.document_id):
            if version.uri != record.uri:
                return None  # From here on it stood elsewhere, as another document.
            if version.action == Action.REMOVE.value:
                # It is back since, and never was here again; only as another document could it have stayed.
                return None if version.reason in ELSEWHERE else (0, 0)
            if version.generation == generation:
                return version.chunks, version.sections
        return None

    def _should_be_gone(
        self, generation: int, key: UUID, record: DocumentRecord | None, held: _Held
    ) -> tuple[DocumentName, Owner] | None:
        """Whose is what a generation holds of a document that the ledger does not have there?

        None where it may stay.
        """
        if record is not None:
            leaves = self._scope.leaves(generation, record)
            return None if leaves else (_name(record), Owner.ELSEWHERE)
        tombstone = self._ledger.tombstones.by_id([key]).get(key)
        if tombstone is None:
            return DocumentName(key, held.source, held.uri), Owner.UNKNOWN
        if self._scope.full and self._stands_for_another(generation, tombstone):
            return None
        return DocumentName(key, tombstone.source, tombstone.uri), Owner.TOMBSTONED

    def _stands_for_another(self, generation: int, tombstone: Tombstone) -> bool:
        """Is it what searches still find of a document that moved, until its new generation is live?"""
        if tombstone.reason not in ELSEWHERE:
            return False
        aliases = self._ledger.sources.aliases_by_uri([tombstone.uri], tombstone.source)
        moved = self._ledger.documents.get(aliases[0].document_id) if aliases else None
        return moved is not None and self._scope.serves(generation, moved)


# For a run


@dataclass(frozen=True, slots=True)
class AuditFindings:
    """checked: points compared. counts: what is wrong, by ``Kind``.

    documents: the ids of those to repair. orphans: of those that should have nothing in the index.
    """

    checked: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    documents: frozenset[UUID] = frozenset()
    orphans: frozenset[UUID] = frozenset()

    @property
    def clean(self) -> bool:
        return not any(self.counts.values())


def compare_source(
    ledger: Ledger,
    index: VectorIndex,
    generation: int,
    source: str | None = None,
    documents: Iterable[UUID] | None = None,
    undecided: AbstractSet[UUID] = frozenset(),
) -> AuditFindings:
    """Compare the ledger with a generation, for all documents of a source, or for those given.

    ``undecided``: those that are left out (see the function of that name).

    Takes the locks of documents that seem to differ, for as long as each is looked at: not to be called
    with the index held open, or another process may wait for both the other way round.
    """
    scope = replace(scope_of(ledger, index, [generation]), undecided=frozenset(undecided))
    with Drift() as drift:
        comparison = Comparison(scope, drift)
        compared = (
            comparison.compare_all(source)
            if documents is None
            else comparison.compare_some(documents)
        )
        counts = drift.counts()
        return AuditFindings(
            compared.points.total(),
            {kind.value: counts[kind.value] for kind in _OF_DOCUMENTS},
            frozenset(name.document_id for name in drift.documents()),
            frozenset(name.document_id for name in drift.orphans()),
        )


def undecided(ledger: Ledger, source: str) -> set[UUID]:
    """Documents whose write was cut short, or that the ledger has lost, and that no run could reach since.

    The index may hold something of them. Whether that is to stay cannot be told before they are seen again.
    """
    pending = ledger.writes.pending(source)
    live = {r.document_id for r in _records(ledger, pending) if r.raw_hash is not None}
    return pending.keys() - live


def counts_agree(ledger: Ledger, index: VectorIndex, generation: int, source: str) -> bool:
    """The cheap check of every run: as many points and sections of the source as the ledger has.

    Documents whose write was cut short are not counted on either side.
    """
    pending = ledger.writes.pending(source)
    known = [r for r in _records(ledger, pending) if r.generation == generation]
    counts = ledger.documents.counts(source, generation)
    points = counts.chunks - sum(r.chunks for r in known)
    sections = counts.sections - sum(r.sections for r in known)
    where: dict[str, str | list[str]] = {"source": source}
    with index.session():
        points_there = index.count_points(generation, where)
        sections_there = index.count_sections(generation, where)
        for page in pages(pending, PAGE):
            these: dict[str, str | list[str]] = {**where, "document_id": [str(key) for key in page]}
            points_there -= index.count_points(generation, these)
            sections_there -= index.count_sections(generation, these)
    return (points_there, sections_there) == (points, sections)


def _records(ledger: Ledger, keys: Iterable[UUID]) -> Iterator[DocumentRecord]:
    for page in pages(keys, PAGE):
        yield from ledger.documents.by_id(page).values()
