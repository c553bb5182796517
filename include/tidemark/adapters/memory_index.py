"""The vector index in plain Python: exact, slow, and forgotten with the process. For tests."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from uuid import UUID

from tidemark.adapters.vector_layout import RRF_K, Layout, Where, fusion_depth
from tidemark.domain.errors import PermanentError
from tidemark.domain.hashing import Canonical
from tidemark.domain.model import PointWrite, SparseVector, StoredPoint


@dataclass(slots=True)
class _Generation:
    dimension: int
    points: dict[UUID, PointWrite] = field(default_factory=dict)
    sections: dict[UUID, PointWrite] = field(default_factory=dict)


class MemoryIndex:
    """Implements VectorIndex; raises only ``PermanentError``."""

    def __init__(self, name: str = "tidemark") -> None:
        self._layout = Layout(name)
        self._generations: dict[int, _Generation] = {}
        self._live: int | None = None

    def session(self) -> AbstractContextManager[None]:
        return nullcontext()

    def ensure(self, generation: int, dimension: int) -> None:
        found = self._generations.setdefault(generation, _Generation(dimension))
        if found.dimension != dimension:
            raise self._layout.other_dimension(generation, found.dimension, dimension)

    def generations(self) -> list[int]:
        return sorted(self._generations)

    def live(self) -> int | None:
        return self._live

    def switch(self, generation: int) -> None:
        self._of(generation)
        self._live = generation

    def drop(self, generation: int) -> None:
        if generation == self._live:
            raise self._layout.is_live(generation)
        self._generations.pop(generation, None)

    def upsert_points(self, generation: int, points: Sequence[PointWrite]) -> None:
        target = self._of(generation)
        for point in points:
            if point.dense is not None and len(point.dense) != target.dimension:
                raise PermanentError(
                    f"Point {point.point_id} has {len(point.dense)} numbers, "
                    f"generation {generation} holds {target.dimension}."
                )
        target.points.update({point.point_id: point for point in points})

    def upsert_sections(self, generation: int, sections: Sequence[PointWrite]) -> None:
        self._of(generation).sections.update({point.point_id: point for point in sections})

    def set_payloads(self, generation: int, points: Sequence[PointWrite]) -> None:
        stored = self._of(generation).points
        for point in points:
            if point.point_id in stored:
                stored[point.point_id] = replace(stored[point.point_id], payload=point.payload)

    def delete_points(self, generation: int, ids: Sequence[UUID]) -> None:
        stored = self._of(generation).points
        for point_id in ids:
            stored.pop(point_id, None)

    def delete_sections(self, generation: int, ids: Sequence[UUID]) -> None:
        stored = self._of(generation).sections
        for section_id in ids:
            stored.pop(section_id, None)

    def get_points(self, generation: int, ids: Sequence[UUID]) -> list[StoredPoint]:
        return _get(self._of(generation).points, ids)

    def get_vectors(self, generation: int, ids: Sequence[UUID]) -> dict[UUID, tuple[float, ...]]:
        points = self._of(generation).points
        return {i: dense for i in ids if i in points and (dense := points[i].dense) is not None}

    def get_sections(self, generation: int, ids: Sequence[UUID]) -> list[StoredPoint]:
        return _get(self._of(generation).sections, ids)

    def scan_points(self, generation: int, where: Where | None = None) -> Iterator[StoredPoint]:
        return map(_stored, _matching(self._of(generation).points, where))

    def scan_sections(self, generation: int, where: Where | None = None) -> Iterator[StoredPoint]:
        return map(_stored, _matching(self._of(generation).sections, where))

    def count_points(self, generation: int, where: Where | None = None) -> int:
        return len(_matching(self._of(generation).points, where))

    def count_sections(self, generation: int, where: Where | None = None) -> int:
        return len(_matching(self._of(generation).sections, where))

    def search_dense(
        self, generation: int, vector: Sequence[float], k: int, where: Where | None = None
    ) -> list[StoredPoint]:
        target = self._of(generation)
        if len(vector) != target.dimension:
            raise PermanentError(
                f"The query has {len(vector)} numbers, generation {generation} holds "
                f"{target.dimension}.",
                "Search with the model the generation was built with.",
            )

        def score(point: PointWrite) -> float | None:
            return None if point.dense is None else _cosine(vector, point.dense)

        return _best(_matching(target.points, where), score, k)

    def search_lexical(
        self, generation: int, vector: SparseVector, k: int, where: Where | None = None
    ) -> list[StoredPoint]:
        stored = self._of(generation).points
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

    def search_hybrid(
        self,
        generation: int,
        vector: Sequence[float],
        lexical: SparseVector,
        k: int,
        where: Where | None = None,
    ) -> list[StoredPoint]:
        depth = fusion_depth(k)
        scores: dict[UUID, float] = {}
        for hits in (
            self.search_dense(generation, vector, depth, where),
            self.search_lexical(generation, lexical, depth, where),
        ):
            for rank, hit in enumerate(hits):
                scores[hit.point_id] = scores.get(hit.point_id, 0.0) + 1 / (RRF_K + rank)
        stored = self._of(generation).points
        return _best([stored[i] for i in scores], lambda point: scores[point.point_id], k)

    def _of(self, generation: int) -> _Generation:
        try:
            return self._generations[generation]
        except KeyError:
            raise self._layout.missing(generation) from None


def _stored(point: PointWrite, score: float = 0.0) -> StoredPoint:
    return StoredPoint(point.point_id, dict(point.payload), score)


def _get(stored: Mapping[UUID, PointWrite], ids: Sequence[UUID]) -> list[StoredPoint]:
    return [_stored(stored[i]) for i in dict.fromkeys(ids) if i in stored]


def _matching(stored: Mapping[UUID, PointWrite], where: Where | None) -> list[PointWrite]:
    return [p for p in stored.values() if _matches(p.payload, where or {})]


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
