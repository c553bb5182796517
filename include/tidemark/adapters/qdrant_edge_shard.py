"""One collection of Qdrant's engine embedded in this process (qdrant-edge-py).

Measured with 384 dimensions, texts of 90 words and their lexical vectors, on 2 cores:
- The write-ahead log alone keeps every acknowledged write over a kill -9, so nothing is flushed
  after each write (32 ms for 200 points); closing flushes (0.4 s after 20,000 points), which keeps
  them over a power cut too, and every FLUSH_AFTER points, which bounds the log.
- Each keyword index adds 13 ms to opening and closing, so only those that pay are made: a search of
  20,000 points filtered by a key with an index takes 0.7 to 4.4 ms, by one without 260 ms.
- No graph is built: it took 28 CPU-seconds for 20,000 points to bring a query from 4.4 to 2.0 ms.
  Search is exact; past some 200,000 points a server is the better home.
- Closing offers the engine to tidy up: 0.1 ms when there is nothing to do. It seals what has grown
  past SEAL_KB into files that need no building when opened (40,000 points: 0.15 s to open, not 0.45 s;
  3.5 s of work once) and drops the dead when they are a fifth. A kill in the middle loses nothing.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast
from uuid import UUID

from qdrant_edge import (
    CountRequest,
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    FieldCondition,
    Filter,
    Fusion,
    HasIdCondition,
    HnswIndexConfig,
    KeywordIndexParams,
    MatchAny,
    Memory,
    Modifier,
    Point,
    Prefetch,
    Query,
    QueryRequest,
    ScrollRequest,
    UpdateOperation,
)
from qdrant_edge import SparseVector as EdgeVector

from tidemark.adapters.vector_layout import DENSE, LEXICAL, PAGE, RRF_K, Where, fusion_depth, pages
from tidemark.domain.errors import PermanentError, TransientError
from tidemark.domain.model import PointWrite, SparseVector, StoredPoint

FLUSH_AFTER = 5_000
"""Points written since the last flush."""

SEAL_KB = 16_000
"""Size in KB of the vectors of a growing segment (some 10,000 points) past which it is sealed."""

WRITE_BATCH = 500
"""Points handed over at a time: each is copied into the engine's form."""

NO_VECTOR = "none"
"""The engine wants a vector in each collection: sections get one that no point ever has."""

_OUTAGE = (
    "Service runtime error",
    "Service internal error",
    "No space left",
    "Out of memory",
    "IO",
)


class EdgeCollection:
    """An open collection. Every method may raise ``TransientError`` or ``PermanentError``."""

    def __init__(self, shard: EdgeShard, path: Path) -> None:
        self._shard = shard
        self._path = path
        self._written = 0
        self._dirty = False

    @classmethod
    def create(cls, path: Path, dimension: int | None) -> "EdgeCollection":
        """Create it at a path that does not exist; ``dimension`` None makes one without vectors."""
        lexical = EdgeSparseVectorParams(modifier=Modifier.Idf, memory=Memory.Cold)
        config = EdgeConfig(
            vectors={DENSE: EdgeVectorParams(size=dimension, distance=Distance.Cosine)}
            if dimension
            else None,
            sparse_vectors={LEXICAL: lexical}
            if dimension
            else {NO_VECTOR: EdgeSparseVectorParams()},
            hnsw_config=HnswIndexConfig(m=0, ef_construct=4, full_scan_threshold=1_000_000),
            id_tracker_memory=Memory.Cold,
            optimizers=EdgeOptimizersConfig(indexing_threshold=SEAL_KB, default_segment_number=2),
        )
        with _translated(f"creating {path}"):
            path.mkdir(parents=True)
            return cls(EdgeShard.create(str(path), config), path)

    @classmethod
    def load(cls, path: Path) -> "EdgeCollection":
        with _translated(f"opening {path}"):
            return cls(EdgeShard.load(str(path)), path)

    def index_keys(self, keys: Sequence[str]) -> None:
        """Create the keyword indexes that are missing."""
        with _translated(f"indexing the payload of {self._path}"):
            for key in set(keys) - self._shard.info().payload_schema.keys():
                schema = KeywordIndexParams(memory=Memory.Cold)
                self._shard.update(UpdateOperation.create_field_index(key, schema))
                self._dirty = True

    def upsert(self, points: Sequence[PointWrite], *, vectors: bool) -> None:
        for page in pages(points, WRITE_BATCH):
            self._write(
                UpdateOperation.upsert_points([_point(point, vectors=vectors) for point in page]),
                len(page),
            )

    def overwrite(self, points: Sequence[PointWrite]) -> None:
        """Replace payloads; ids that do not exist are ignored."""
        for point in points:
            # By filter, because by id the engine refuses ids that do not exist.
            existing = Filter(must=[HasIdCondition({point.point_id})])
            with _translated(f"reading the payload of point {point.point_id}"):
                write = UpdateOperation.overwrite_payload_by_filter(existing, dict(point.payload))
            self._write(write, 1)

    def delete(self, ids: Sequence[UUID]) -> None:
        for page in pages(ids, WRITE_BATCH):
            self._write(UpdateOperation.delete_points(list(page)), len(page))

    def get(self, ids: Sequence[UUID]) -> list[StoredPoint]:
        """Those that exist."""
        with _translated(f"reading {self._path}"):
            records = self._shard.retrieve(
                list(dict.fromkeys(ids)), with_payload=True, with_vector=False
            )
            return [StoredPoint(UUID(str(record.id)), record.payload or {}) for record in records]

    def vectors(self, ids: Sequence[UUID]) -> dict[UUID, tuple[float, ...]]:
        """The dense vectors of those that exist."""
        with _translated(f"reading {self._path}"):
            records = self._shard.retrieve(
                list(dict.fromkeys(ids)), with_payload=False, with_vector=[DENSE]
            )
        return {UUID(str(record.id)): _dense(record.vector) for record in records}

    def page(
        self, where: Where | None, offset: UUID | None
    ) -> tuple[list[StoredPoint], UUID | None]:
        """Some points in the order of their ids, and where the next ones start (None: no more)."""
        with _translated(f"scanning {self._path}"):
            records, after = self._shard.scroll(
                ScrollRequest(
                    limit=PAGE,
                    offset=offset,
                    filter=_filter(where),
                    with_payload=True,
                    with_vector=False,
                )
            )
            found = [StoredPoint(UUID(str(record.id)), record.payload or {}) for record in records]
            return found, None if after is None else UUID(str(after))

    def count(self, where: Where | None) -> int:
        with _translated(f"counting {self._path}"):
            return self._shard.count(CountRequest(exact=True, filter=_filter(where)))

    def dense(self, vector: Sequence[float], k: int, where: Where | None) -> list[StoredPoint]:
        nearest = Query.Nearest(list(vector), using=DENSE)
        return self._query(QueryRequest(k, query=nearest, filter=_filter(where), with_payload=True))

    def lexical(self, vector: SparseVector, k: int, where: Where | None) -> list[StoredPoint]:
        nearest = Query.Nearest(_sparse(vector), using=LEXICAL)
        return self._query(QueryRequest(k, query=nearest, filter=_filter(where), with_payload=True))

    def hybrid(
        self, vector: Sequence[float], lexical: SparseVector, k: int, where: Where | None
    ) -> list[StoredPoint]:
        """Both searches and their fusion in one request."""
        queries = [
            Query.Nearest(list(vector), using=DENSE),
            Query.Nearest(_sparse(lexical), using=LEXICAL),
        ]
        matching = _filter(where)
        lists = [Prefetch(fusion_depth(k), query=query, filter=matching) for query in queries]
        # The stubs make Fusion.Rrf a class beside Fusion, the engine makes it one of its variants.
        fused = cast(Fusion, Fusion.Rrf(k=RRF_K))
        return self._query(QueryRequest(k, query=fused, prefetches=lists, with_payload=True))

    def close(self) -> None:
        """Tidy up where it is due, make every write durable, and let go of the files."""
        with _translated(f"closing {self._path}"):
            try:
                if self._dirty:
                    self._shard.optimize()
                    self._shard.flush()
            finally:
                self._shard.close()

    def _write(self, operation: UpdateOperation, points: int) -> None:
        with _translated(f"writing to {self._path}"):
            self._dirty = True
            self._shard.update(operation)
            self._written += points
            if self._written >= FLUSH_AFTER:
                self._shard.flush()
                self._written = 0

    def _query(self, request: QueryRequest) -> list[StoredPoint]:
        with _translated(f"searching {self._path}"):
            return [
                StoredPoint(UUID(str(hit.id)), hit.payload or {}, hit.score)
                for hit in self._shard.query(request)
            ]


@contextmanager
def _translated(doing: str) -> Iterator[None]:
    """Translate the engine's errors, which are all bare ``Exception`` and tell apart by text only."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        raise PermanentError(f"The index engine refused, {doing}: {error}.") from error
    except OSError as error:
        raise TransientError(
            f"The index failed, {doing}: {error}.", "Check the disk and try again."
        ) from error
    except Exception as error:
        message = f"The index engine failed, {doing}: {error}."
        if "WouldBlock" in str(error):
            raise TransientError(
                message, "Another program has the collection open without the lock: end it."
            ) from error
        if any(sign in str(error) for sign in _OUTAGE):
            raise TransientError(message, "Check the disk and its free space.") from error
        raise PermanentError(message) from error


def _point(point: PointWrite, *, vectors: bool) -> Point:
    named: dict[str, list[float] | EdgeVector | list[list[float]]] = {}
    if vectors and point.dense is not None:
        named[DENSE] = list(point.dense)
    if vectors and point.lexical is not None and point.lexical.indices:
        named[LEXICAL] = _sparse(point.lexical)
    with _translated(f"reading point {point.point_id}"):
        return Point(point.point_id, named, dict(point.payload))


def _sparse(vector: SparseVector) -> EdgeVector:
    return EdgeVector(list(vector.indices), list(vector.values))


def _filter(where: Where | None) -> Filter | None:
    if not where:
        return None
    return Filter(
        must=[
            FieldCondition(key, match=MatchAny([value] if isinstance(value, str) else value))
            for key, value in where.items()
        ]
    )


def _dense(stored: object) -> tuple[float, ...]:
    vector = stored.get(DENSE) if isinstance(stored, dict) else None
    if not isinstance(vector, list):
        raise PermanentError(
            "A point has no dense vector.", "Build the index again in a new home (tidemark index)."
        )
    return tuple(float(x) for x in vector)
