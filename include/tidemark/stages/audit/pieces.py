"""A document piece by piece: every point and section of it, ledger against index.

Only what seems to differ is looked at so, and under the lock of the document: what a run is writing at the
moment is between two states for the ledger as for the index, and is no finding.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urldefrag
from uuid import UUID

from tidemark.domain.chunks import StoredPoint
from tidemark.domain.decide import ELSEWHERE, Action
from tidemark.domain.hashing import agree, digest_of, digest_text, vector_hash, vectors_hash
from tidemark.domain.records import DocumentRecord, DocumentStatus, Tombstone
from tidemark.ports import VectorIndex
from tidemark.stages.audit.drift import Drift, Kind, Named, Of, What
from tidemark.stages.audit.scope import Scope
from tidemark.stages.audit.sums import source_of
from tidemark.stages.process.payloads import checksum_of


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

    def note(self, point: StoredPoint) -> None:
        self.source = self.source or source_of(point)
        self.uri = self.uri or urldefrag(str(point.payload.get("source_uri") or "")).url


def look_again(scope: Scope, window: Sequence[tuple[UUID, int | None]], drift: Drift) -> None:
    """Compare documents piece by piece, with the ledger and the index as they are now."""
    window = [(key, number) for key, number in window if key not in scope.undecided]
    keys = list(dict.fromkeys(key for key, _ in window))
    with scope.ledger.lock_documents(keys):
        records = scope.ledger.documents.by_id(keys)
        wanted: dict[int, set[UUID]] = defaultdict(set)
        for record in records.values():
            if record.generation in scope.existing:
                wanted[record.generation].add(record.document_id)
            elif record.generation is not None:
                drift.differs(_named(record), _all_gone(record))
        for key, number in window:
            if number is not None and (
                key not in records or scope.whole or not scope.serves(number, records[key])
            ):
                wanted[number].add(key)
        # Opened once for all of them, and only now: never is a lock waited for with the index held open.
        with scope.index.session():
            for generation, documents in wanted.items():
                held = _held(scope.index, generation, documents)
                for key in documents:
                    found = records.get(key)
                    if found is not None and found.generation == generation:
                        _compare(scope, found, held[key], drift)
                    elif found is not None and scope.serves(generation, found):
                        _look_at_served(scope, generation, found, held[key], drift)
                    else:
                        _is_left(scope, generation, key, found, held[key], drift)


def _named(record: DocumentRecord) -> Named:
    return Named(record.document_id, record.source, record.uri)


def _all_gone(record: DocumentRecord) -> dict[Kind, int]:
    """Of a document whose whole generation is gone, and that no run has written again."""
    return {Kind.MISSING_POINTS: record.chunks, Kind.MISSING_SECTIONS: record.sections}


def _held(index: VectorIndex, generation: int, documents: Iterable[UUID]) -> dict[UUID, _Held]:
    held = {key: _Held() for key in documents}
    where: dict[str, str | list[str]] = {"document_id": [str(key) for key in held]}
    for point in index.scan_points(generation, where, vectors=True):
        if (of := _one_of(held, point)) is None:
            continue  # Found by an index of payloads that are lost: it has none, and is missing.
        of.note(point)
        of.points[point.point_id] = digest_of(point.payload)
        of.altered += _is_altered(point)
        of.vectors[point.point_id] = (
            vectors_hash(point.dense, point.lexical) if point.dense else None
        )
    for section in index.scan_sections(generation, where):
        if (of := _one_of(held, section)) is None:
            continue
        of.note(section)
        of.sections[section.point_id] = digest_of(section.payload)
    return held


def _one_of(held: Mapping[UUID, _Held], point: StoredPoint) -> _Held | None:
    try:
        return held.get(UUID(str(point.payload.get("document_id"))))
    except ValueError:
        return None


def _is_altered(point: StoredPoint) -> bool:
    text = point.payload.get("text")
    return not isinstance(text, str) or digest_text(text) != point.payload.get("content_hash")


def _look_at_served(
    scope: Scope, generation: int, record: DocumentRecord, held: _Held, drift: Drift
) -> None:
    """Is the version whole that searches find of a document whose newest is in a generation being built?

    The ledger's rows are of the newest. Of this one its history tells how much there was, as long as it is
    kept, and the points themselves tell whether their texts are what they were.
    """
    points, sections = _served_once(scope, generation, record) or (
        len(held.points),
        len(held.sections),
    )
    counts = {
        Kind.MISSING_POINTS: max(0, points - len(held.points)),
        Kind.EXTRA_POINTS: max(0, len(held.points) - points),
        Kind.MISSING_SECTIONS: max(0, sections - len(held.sections)),
        Kind.EXTRA_SECTIONS: max(0, len(held.sections) - sections),
        Kind.STALE_PAYLOAD: held.altered,
        Kind.WRONG_VECTORS: sum(vector is None for vector in held.vectors.values()),
    }
    drift.is_served_wrong(_named(record), counts)


def _served_once(scope: Scope, generation: int, record: DocumentRecord) -> tuple[int, int] | None:
    """How many points and sections a generation has of a document, None when nothing tells."""
    if record.status is DocumentStatus.QUARANTINED:
        # Its last good version may have been cut anew since, which no history tells of.
        return None
    for version in scope.ledger.versions.of(record.document_id):
        if version.uri != record.uri:
            return None  # From here on it stood elsewhere, as another document.
        if version.action == Action.REMOVE.value:
            # It is back since, and never was here again; only as another document could it have stayed.
            return None if version.reason in ELSEWHERE else (0, 0)
        if version.generation == generation:
            return version.chunks, version.sections
    return None


def _is_left(
    scope: Scope,
    generation: int,
    key: UUID,
    record: DocumentRecord | None,
    held: _Held,
    drift: Drift,
) -> None:
    """Note what there is of a document that the ledger does not have in a generation."""
    if record is not None:
        if scope.leaves(generation, record):
            return
        named, owner = _named(record), Of.ELSEWHERE
    elif (grave := scope.ledger.tombstones.by_id([key]).get(key)) is not None:
        if scope.whole and _stands_for_another(scope, generation, grave):
            return
        named, owner = Named(key, grave.source, grave.uri), Of.TOMBSTONED
    else:
        named, owner = Named(key, held.source, held.uri), Of.UNKNOWN
    drift.is_extra(generation, What.POINTS, held.points, owner, named)
    drift.is_extra(generation, What.SECTIONS, held.sections, owner, named)


def _stands_for_another(scope: Scope, generation: int, grave: Tombstone) -> bool:
    """Is it what searches still find of a document that moved, until its new generation is live?"""
    if grave.reason not in ELSEWHERE:
        return False
    aliases = scope.ledger.sources.aliases_by_uri([grave.uri], grave.source)
    moved = scope.ledger.documents.get(aliases[0].document_id) if aliases else None
    return moved is not None and scope.serves(generation, moved)


def _compare(scope: Scope, record: DocumentRecord, held: _Held, drift: Drift) -> None:
    generation, named = record.generation, _named(record)
    if generation is None:
        raise AssertionError("only a document that is in a generation can be compared with it")
    chunks = scope.ledger.documents.chunks(record.document_id)
    sections = scope.ledger.documents.sections(record.document_id)
    _find_strays(scope, generation, named, [c.point_id for c in chunks], held, drift)
    _find_stray_sections(scope, generation, named, [s.section_id for s in sections], held, drift)
    counts: Counter[Kind] = Counter()
    for chunk in chunks:
        if chunk.point_id not in held.points:
            counts[Kind.MISSING_POINTS] += 1
            continue
        counts[Kind.STALE_PAYLOAD] += held.points[chunk.point_id] != chunk.payload_hash
        vector = held.vectors[chunk.point_id]
        counts[Kind.WRONG_VECTORS] += vector is None or not agree(chunk.vector_hash, vector)
    for section in sections:
        found = held.sections.get(section.section_id)
        counts[Kind.MISSING_SECTIONS] += found is None
        counts[Kind.STALE_PAYLOAD] += found not in (None, section.payload_hash)
    counts[Kind.WRONG_MODEL] += scope.of_other_model(record)
    drift.differs(named, counts)
    too_many = held.points.keys() - {c.point_id for c in chunks}
    sections_too_many = held.sections.keys() - {s.section_id for s in sections}
    drift.is_extra(generation, What.POINTS, too_many, Of.KNOWN, named)
    drift.is_extra(generation, What.SECTIONS, sections_too_many, Of.KNOWN, named)
    if not (counts.total() or too_many or sections_too_many):
        known = [replace(c, vector_hash=held.vectors[c.point_id]) for c in chunks]
        hashes = {c.point_id: c.vector_hash for c in known if c.vector_hash is not None}
        total = checksum_of(known, sections)
        if total not in (None, record.checksum):
            # From now on one sum tells that it is as it was written.
            scope.ledger.writes.record_vectors(record.document_id, hashes, total, record.checksum)


def _find_strays(
    scope: Scope, generation: int, named: Named, ids: Sequence[UUID], held: _Held, drift: Drift
) -> None:
    """Points that are there under their ids, and whose payloads do not name their document."""
    missing = [key for key in ids if key not in held.points]
    if not missing:
        return
    vectors = scope.index.get_vectors(generation, missing)
    strays = scope.index.get_points(generation, missing)
    for point in strays:
        held.points[point.point_id] = digest_of(point.payload)
        dense = vectors.get(point.point_id)
        held.vectors[point.point_id] = vector_hash(dense) if dense else None
    drift.claim(generation, What.POINTS, [point.point_id for point in strays], named)


def _find_stray_sections(
    scope: Scope, generation: int, named: Named, ids: Sequence[UUID], held: _Held, drift: Drift
) -> None:
    missing = [key for key in ids if key not in held.sections]
    strays = scope.index.get_sections(generation, missing) if missing else []
    for section in strays:
        held.sections[section.point_id] = digest_of(section.payload)
    drift.claim(generation, What.SECTIONS, [section.point_id for section in strays], named)
