"""One collection of Qdrant's engine embedded in this process (qdrant-edge-py).

Measured with 384 dimensions, texts of 90 words and their lexical vectors, on 2 cores:
- The write-ahead log alone keeps every acknowledged write over a kill -9, so nothing is flushed
  after each write (32 ms for 200 points); closing flushes (0.4 s after 20,000 points), which keeps
  them over a power cut too, and every FLUSH_AFTER points, which bounds the log.
- Each keyword index adds 13 ms to opening and closing, so only those that pay are made: a search of
  20,000 points filtered by a key with an index takes 0.7 to 4.4 ms, by one without 260 ms.
- A scan reads some 16,000 points a second without and 11,000 with their dense vectors.
- Closing offers the engine to tidy up: 0.1 ms when there is nothing to do (see edge_settings).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast
from uuid import UUID

from qdrant_edge import (
    CountRequest,
    EdgeShard,
    FieldCondition,
    Filter,
    Fusion,
    HasIdCondition,
    KeywordIndexParams,
    MatchAny,
    Memory,
    PayloadSchemaType,
    Point,
    Prefetch,
    Query,
    QueryRequest,
    Record,
    ScrollRequest,
    UpdateOperation,
)
from qdrant_edge import SparseVector as EdgeVector

from tidemark.adapters.index.layout import (
    DENSE,
    LEXICAL,
    OTHER_SETTINGS_HINT,
    PAGE,
    RESERVED_FROM,
    RRF_K,
    Where,
    fusion_depth,
    is_reserved,
    pages,
)
from tidemark.adapters.index.qdrant_edge.folder import config
from tidemark.domain.chunks import PointWrite, SparseVector, StoredPoint
from tidemark.domain.errors import PermanentError, RefusedError, TransientError

FLUSH_AFTER = 5_000
"""Points written since the last flush."""

WRITE_BATCH = 500
"""Points handed over at a time: each is copied into the engine's form."""

OPENING = "opening "
SAID = 200
"""Characters of the engine's message that are shown of a collection that cannot be opened."""

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
        with _translated(f"creating {path}"):
            path.mkdir(parents=True)
            return cls(EdgeShard.create(str(path), config(dimension)), path)

    @classmethod
    def load(
        cls, path: Path, dimension: int | None = None, *, adjust: bool = False
    ) -> "EdgeCollection":
        """Open it as it is, or (``adjust``) with the present settings, which it then keeps.

        Raises ``PermanentError`` when they cannot be had in place.
        """
        with _translated(f"opening {path}"):
            wanted = config(dimension) if adjust else None
            return cls(EdgeShard.load(str(path), wanted), path)

    def index_keys(self, keys: Sequence[str]) -> None:
        """Create the keyword indexes that are missing, in place of those of another type."""
        with _translated(f"indexing the payload of {self._path}"):
            found = self._shard.info().payload_schema
            for key in keys:
                if key in found and found[key].data_type == PayloadSchemaType.Keyword:
                    continue
                if key in found:
                    self._shard.update(UpdateOperation.delete_field_index(key))
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
            return [point for record in records if (point := _stored(record)) is not None]

    def reserved(self, reserved_id: UUID) -> dict[str, object] | None:
        """The payload of what is kept under a reserved id, None when there is nothing."""
        with _translated(f"reading {self._path}"):
            records = self._shard.retrieve([reserved_id], with_payload=True, with_vector=False)
            return dict(records[0].payload or {}) if records else None

    def vectors(self, ids: Sequence[UUID]) -> dict[UUID, tuple[float, ...]]:
        """The dense vectors of those that exist and have one."""
        with _translated(f"reading {self._path}"):
            records = self._shard.retrieve(
                list(dict.fromkeys(ids)), with_payload=False, with_vector=[DENSE]
            )
            points = [point for record in records if (point := _stored(record)) is not None]
        return {point.point_id: point.dense for point in points if point.dense is not None}

    def page(
        self, where: Where | None, offset: UUID | None, *, vectors: bool = False
    ) -> tuple[list[StoredPoint], UUID | None]:
        """Some points in the order of their ids, and where the next ones start (None: no more)."""
        with _translated(f"scanning {self._path}"):
            records, after = self._shard.scroll(
                ScrollRequest(
                    limit=PAGE,
                    # Numbers, which no point of ours has for an id, come before all others.
                    offset=offset or UUID(int=0),
                    filter=_filter(where),
                    with_payload=True,
                    with_vector=[DENSE, LEXICAL] if vectors else False,
                )
            )
            found = [point for record in records if (point := _stored(record)) is not None]
            return found, None if after is None else UUID(str(after))

    def count(self, where: Where | None) -> int:
        with _translated(f"counting {self._path}"):
            found = self._shard.count(CountRequest(exact=True, filter=_filter(where)))
            # What is reserved has no key that a filter names.
            return found if where else found - self._reserved_count()

    def _reserved_count(self) -> int:
        count, offset = 0, RESERVED_FROM
        while True:
            records, after = self._shard.scroll(
                ScrollRequest(limit=PAGE, offset=offset, with_payload=False, with_vector=False)
            )
            reserved = [record for record in records if is_reserved(UUID(str(record.id)))]
            count += len(reserved)
            if after is None or len(reserved) < len(records):
                return count
            offset = UUID(str(after))

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
                StoredPoint(hit.id, hit.payload or {}, hit.score)
                for hit in self._shard.query(request)
                if isinstance(hit.id, UUID)
            ]


def _damaged(path: Path, error: Exception) -> PermanentError:
    """What cannot be opened though the disk can be read is not mended by waiting."""
    said = " ".join(str(error).split())
    if len(said) > SAID:
        said = f"{said[:SAID]} …"
    return PermanentError(
        f"The collection in {path.parent} cannot be opened: {said}",
        "If the disk is well, its files are damaged: move that folder away and run `tidemark index "
        "--all`, which builds the collection again from the stored snapshots.",
    )


@contextmanager
def _translated(doing: str) -> Iterator[None]:
    """Translate the engine's errors, which are all bare ``Exception`` and tell apart by text only."""
    try:
        yield
    except (TypeError, ValueError, OverflowError) as error:
        raise RefusedError(f"The index engine refused, {doing}: {error}.") from error
    except OSError as error:
        raise TransientError(
            f"The index failed, {doing}: {error}.", "Check the disk and try again."
        ) from error
    except Exception as error:
        message = f"The index engine failed, {doing}: {error}."
        if "config is incompatible" in str(error):
            raise PermanentError(message, OTHER_SETTINGS_HINT) from error
        if "WouldBlock" in str(error):
            raise TransientError(
                message, "Another program has the collection open without the lock: end it."
            ) from error
        if any(sign in str(error) for sign in _OUTAGE) and not doing.startswith(OPENING):
            raise TransientError(message, "Check the disk and its free space.") from error
        if doing.startswith(OPENING):
            raise _damaged(Path(doing.removeprefix(OPENING)), error) from error
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


def _stored(record: Record) -> StoredPoint | None:
    """A point as it is kept, however damaged; None for what is none of ours or is reserved."""
    if not isinstance(record.id, UUID) or is_reserved(record.id):
        return None
    named = record.vector if isinstance(record.vector, dict) else {}
    vector, words = named.get(DENSE), named.get(LEXICAL)
    dense = tuple(cast("list[float]", vector)) if isinstance(vector, list) else None
    lexical = None
    if isinstance(words, EdgeVector):
        lexical = SparseVector(tuple(words.indices), tuple(words.values))
    return StoredPoint(record.id, record.payload or {}, dense=dense, lexical=lexical)
