"""The vector index in plain Python: exact, slow, and forgotten with the process. For tests."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from uuid import UUID

from tidemark.adapters.index.layout import RRF_K, Layout, Where, fusion_depth
from tidemark.domain.chunks import PointWrite, SparseVector, StoredPoint
from tidemark.domain.errors import PermanentError
from tidemark.domain.hashing import Canonical


@dataclass(slots=True)
class _Collection:
    """What one collection holds; its epochs are part of it, so that a copy of it has those of its time."""

    points: dict[UUID, PointWrite] = field(default_factory=dict)
    epochs: dict[str, str] = field(default_factory=dict)

    def copy(self) -> "_Collection":
        return _Collection(dict(self.points), dict(self.epochs))


@dataclass(slots=True)
class _Generation:
    """One of the collections may be lost (None), as on a server."""

    dimension: int
    embed_fingerprint: str = ""
    points: _Collection | None = field(default_factory=_Collection)
    sections: _Collection | None = field(default_factory=_Collection)

    def copy(self) -> "_Generation":
        return replace(
            self,
            points=self.points and self.points.copy(),
            sections=self.sections and self.sections.copy(),
        )


class MemoryIndex:
    """Implements VectorIndex; raises only ``PermanentError``."""

    def __init__(self, name: str = "tidemark") -> None:
        self._layout = Layout(name)
        self.stored: dict[int, _Generation] = {}
        self.points_live: int | None = None
        self.sections_live: list[int | None] = []
        """What the name of the sections is over, where it is not over the same generation."""

    def __deepcopy__(self, memo: object) -> "MemoryIndex":
        """Another one with the same points, which are shared: they are frozen."""
        copy = MemoryIndex(self._layout.name)
        copy.stored = {number: held.copy() for number, held in self.stored.items()}
        copy.points_live, copy.sections_live = self.points_live, list(self.sections_live)
        return copy

    def session(self) -> AbstractContextManager[None]:
        return nullcontext()

    def ensure(self, generation: int, dimension: int, embed_fingerprint: str = "") -> None:
        held = self.stored.setdefault(generation, _Generation(dimension))
        if held.points is None:
            held.points, held.dimension, held.embed_fingerprint = _Collection(), dimension, ""
        if held.dimension != dimension:
            raise self._layout.other_dimension(generation, held.dimension, dimension)
        held.sections = held.sections or _Collection()
        held.embed_fingerprint = held.embed_fingerprint or embed_fingerprint

    def built_under(self, generation: int) -> str:
        held = self.stored.get(generation)
        return "" if held is None or held.points is None else held.embed_fingerprint

    def dimension(self, generation: int) -> int:
        self._points(generation)
        return self._of(generation).dimension

    def write_epoch(self, generation: int, source: str, epoch: str) -> None:
        held = self._of(generation)
        for collection in (held.points, held.sections):
            if collection is not None:
                collection.epochs[source] = epoch

    def epochs(self, generation: int, source: str) -> tuple[str, str]:
        held = self.stored.get(generation)
        if held is None:
            return "", ""
        points, sections = held.points or _Collection(), held.sections or _Collection()
        return points.epochs.get(source, ""), sections.epochs.get(source, "")

    def generations(self) -> list[int]:
        return sorted(self.stored)

    def incomplete(self) -> dict[int, str]:
        return self._layout.incomplete(self._names())

    def _names(self) -> list[str]:
        all_held = self.stored.items()
        points = [self._layout.points(n) for n, held in all_held if held.points is not None]
        return points + [
            self._layout.sections(n) for n, held in all_held if held.sections is not None
        ]

    def live(self) -> int | None:
        held = self.stored.get(self.points_live) if self.points_live is not None else None
        return self.points_live if held is not None and held.points is not None else None

    def live_sections(self) -> int | None:
        return self.sections_live[0] if self.sections_live else self.live()

    def switch(self, generation: int) -> None:
        self._points(generation)
        self.points_live = generation
        self.sections_live = []

    def drop(self, generation: int) -> None:
        if generation == self.live():
            raise self._layout.is_live(generation)
        self.stored.pop(generation, None)

    def lose(self, generation: int, what: str) -> None:
        """Forget its "points" or its "sections", as a person deletes a collection."""
        held = self.stored.get(generation)
        if held is not None:
            setattr(held, what, None)
            if held.points is held.sections is None:
                del self.stored[generation]

    def upsert_points(self, generation: int, points: Sequence[PointWrite]) -> None:
        stored, dimension = self._points(generation), self.dimension(generation)
        for point in points:
            if point.dense is not None and len(point.dense) != dimension:
                raise PermanentError(
                    f"Point {point.point_id} has {len(point.dense)} numbers, "
                    f"generation {generation} holds {dimension}."
                )
        stored.update({point.point_id: point for point in points})

    def upsert_sections(self, generation: int, sections: Sequence[PointWrite]) -> None:
        self._sections(generation).update({point.point_id: point for point in sections})

    def set_payloads(self, generation: int, points: Sequence[PointWrite]) -> None:
        stored = self._points(generation)
        for point in points:
            if point.point_id in stored:
                stored[point.point_id] = replace(stored[point.point_id], payload=point.payload)

    def delete_points(self, generation: int, ids: Sequence[UUID]) -> None:
        stored = _held(self._of(generation).points)
        for point_id in ids:
            stored.pop(point_id, None)

    def delete_sections(self, generation: int, ids: Sequence[UUID]) -> None:
        stored = _held(self._of(generation).sections)
        for section_id in ids:
            stored.pop(section_id, None)

    def get_points(self, generation: int, ids: Sequence[UUID]) -> list[StoredPoint]:
        return _get(_held(self._of(generation).points), ids)

    def get_vectors(self, generation: int, ids: Sequence[UUID]) -> dict[UUID, tuple[float, ...]]:
        points = _held(self._of(generation).points)
        return {i: dense for i in ids if i in points and (dense := points[i].dense) is not None}

    def get_sections(self, generation: int, ids: Sequence[UUID]) -> list[StoredPoint]:
        return _get(_held(self._of(generation).sections), ids)

    def scan_points(
        self, generation: int, where: Where | None = None, *, vectors: bool = False
    ) -> Iterator[StoredPoint]:
        held = _matching(_held(self._of(generation).points), where)
        return (_stored(point, vectors=vectors) for point in held)

    def scan_sections(self, generation: int, where: Where | None = None) -> Iterator[StoredPoint]:
        return map(_stored, _matching(_held(self._of(generation).sections), where))

    def count_points(self, generation: int, where: Where | None = None) -> int:
        return len(_matching(_held(self._of(generation).points), where))

    def count_sections(self, generation: int, where: Where | None = None) -> int:
        return len(_matching(_held(self._of(generation).sections), where))

    def search(
        self,
        generation: int,
        k: int,
        *,
        dense: Sequence[float] | None = None,
        lexical: SparseVector | None = None,
        where: Where | None = None,
    ) -> list[StoredPoint]:
        if lexical is None:
            return self._nearest(generation, dense or (), k, where)
        if dense is None:
            return self._matching(generation, lexical, k, where)
        depth = fusion_depth(k)
        scores: dict[UUID, float] = {}
        for hits in (
            self._nearest(generation, dense, depth, where),
            self._matching(generation, lexical, depth, where),
        ):
            for rank, hit in enumerate(hits):
                scores[hit.point_id] = scores.get(hit.point_id, 0.0) + 1 / (RRF_K + rank)
        stored = self._points(generation)
        return _best([stored[i] for i in scores], lambda point: scores[point.point_id], k)

    def _nearest(
        self, generation: int, vector: Sequence[float], k: int, where: Where | None
    ) -> list[StoredPoint]:
        stored, dimension = self._points(generation), self.dimension(generation)
        if len(vector) != dimension:
            raise PermanentError(
                f"The query has {len(vector)} numbers, generation {generation} holds {dimension}.",
                "Search with the model the generation was built with.",
            )

        def score(point: PointWrite) -> float | None:
            return None if point.dense is None else _cosine(vector, point.dense)

        return _best(_matching(stored, where), score, k)

    def _matching(
        self, generation: int, vector: SparseVector, k: int, where: Where | None
    ) -> list[StoredPoint]:
        stored = self._points(generation)
        query = dict(zip(vector.indices, vector.values, strict=True))
        indexed = [set(p.lexical.indices) for p in stored.values() if p.lexical is not None]
        weights = {
            token: value * _idf(len(stored), sum(token in tokens for tokens in indexed))
            for token, value in query.items()
        }

        def score(point: PointWrite) -> float | None:
            if point.lexical is None or weights.keys().isdisjoint(point.lexical.indices):
                return None
            pairs = zip(point.lexical.indices, point.lexical.values, strict=True)
            return sum(weights.get(token, 0.0) * value for token, value in pairs)

        return _best(_matching(stored, where), score, k)

    def _of(self, generation: int) -> _Generation:
        try:
            return self.stored[generation]
        except KeyError:
            raise self._layout.missing(generation) from None

    def _points(self, generation: int) -> dict[UUID, PointWrite]:
        """Raises ``PermanentError`` when they are lost."""
        return self._there(self._layout.points(generation), self._of(generation).points)

    def _sections(self, generation: int) -> dict[UUID, PointWrite]:
        return self._there(self._layout.sections(generation), self._of(generation).sections)

    def _there(self, name: str, held: _Collection | None) -> dict[UUID, PointWrite]:
        if (problem := self._layout.absent(name, self._names())) is not None:
            raise problem
        return _held(held)


def _held(held: _Collection | None) -> dict[UUID, PointWrite]:
    return {} if held is None else held.points


def _stored(point: PointWrite, score: float = 0.0, *, vectors: bool = False) -> StoredPoint:
    dense, lexical = (point.dense, point.lexical) if vectors else (None, None)
    if lexical is not None and not lexical.indices:
        lexical = None
    return StoredPoint(point.point_id, dict(point.payload), score, dense, lexical)


def _get(stored: Mapping[UUID, PointWrite], ids: Sequence[UUID]) -> list[StoredPoint]:
    return [_stored(stored[i]) for i in dict.fromkeys(ids) if i in stored]


def _matching(stored: Mapping[UUID, PointWrite], where: Where | None) -> list[PointWrite]:
    # A copy, for another thread may be writing.
    return [p for p in list(stored.values()) if _matches(p.payload, where or {})]


def _matches(payload: Mapping[str, Canonical], where: Where) -> bool:
    for key, wanted in where.items():
        value = payload.get(key)
        values = value if isinstance(value, list) else [value]
        any_of = wanted if isinstance(wanted, list) else [wanted]
        if not any(one in any_of for one in values):
            return False
    return True


def _best(
    points: Sequence[PointWrite], score: Callable[[PointWrite], float | None], k: int
) -> list[StoredPoint]:
    scored = [_stored(p, s) for p in points if (s := score(p)) is not None]
    return sorted(scored, key=lambda hit: -hit.score)[: max(k, 0)]


def _cosine(a: Sequence[float], b: Sequence[float]) -> float:
    norm = math.hypot(*a) * math.hypot(*b)
    return sum(x * y for x, y in zip(a, b, strict=True)) / norm if norm else 0.0


def _idf(points: int, having: int) -> float:
    """The IDF that Qdrant applies."""
    return math.log((points - having + 0.5) / (having + 0.5) + 1)
