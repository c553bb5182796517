"""The vector index in a local folder, on Qdrant's engine embedded in the process (qdrant-edge-py).

FOLDER/NAME__g3/            a collection: collection.json and the engine's own files in shard/
FOLDER/NAME__sections__g3/  its sections
FOLDER/NAME.live.json       the generation behind the aliases, replaced as a whole
FOLDER/NAME.lock, .holder   who may open collections now (see edge_folder)

A folder with one of these names is complete: it is made, and removed, under another name.

Measured with 384 dimensions, texts of 90 words and their lexical vectors, on 2 cores:
- The write-ahead log alone keeps every acknowledged write over a kill -9, so nothing is flushed
  after each write (32 ms for 200 points); closing flushes (0.4 s after 20,000 points), which keeps
  them over a power cut too, and every FLUSH_AFTER points, which bounds the log.
- Each keyword index adds 13 ms to opening and closing, so only those that pay are made: a search of
  20,000 points filtered by a key with an index takes 0.7 to 4.4 ms, by one without 260 ms.
- A scan reads some 16,000 points a second without and 11,000 with their dense vectors.
- Closing offers the engine to tidy up: 0.1 ms when there is nothing to do (see edge_folder).
"""

import json
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
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

from tidemark.adapters.index.edge_folder import (
    POLL,
    CollectionFile,
    EdgeFolder,
    config,
    local_files,
    replace_file,
    settings,
)
from tidemark.adapters.index.layout import (
    DENSE,
    EPOCH,
    LEXICAL,
    OTHER_SETTINGS_HINT,
    PAGE,
    POINT_KEYS,
    RRF_K,
    SECTION_KEYS,
    CollectionLostError,
    Layout,
    Where,
    count_reserved,
    epoch_id,
    epoch_point,
    fusion_depth,
    last_of_each,
    pages,
    stored_point,
    text_under,
)
from tidemark.domain.chunks import PointWrite, SparseVector, StoredPoint
from tidemark.domain.errors import PermanentError, RefusedError, TransientError

LOCK_TIMEOUT = 120.0
"""Seconds to wait for other processes."""

SCAN_SECONDS = 5.0
"""So long a scan holds the index open at a time; then whoever waits is let in, and it goes on."""

FLUSH_AFTER = 5_000
"""Points written since the last flush."""

WRITE_BATCH = 500
"""Points handed over at a time: each is copied into the engine's form."""

OPENING = "opening "
SHOWN = 200
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
            known = self._shard.info().payload_schema
            for key in keys:
                if key in known and known[key].data_type == PayloadSchemaType.Keyword:
                    continue
                if key in known:
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
            return _stored_points(records)

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
            points = _stored_points(records)
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
            points = _stored_points(records)
            return points, None if after is None else UUID(str(after))

    def count(self, where: Where | None) -> int:
        with _translated(f"counting {self._path}"):
            count = self._shard.count(CountRequest(exact=True, filter=_filter(where)))
            if where:
                return count  # What is reserved has no key that a filter names.
            return count - count_reserved(
                lambda start: self._shard.scroll(
                    ScrollRequest(limit=PAGE, offset=start, with_payload=False, with_vector=False)
                )
            )

    def search(
        self,
        k: int,
        dense: Sequence[float] | None,
        lexical: SparseVector | None,
        where: Where | None,
    ) -> list[StoredPoint]:
        """By one of the vectors or, in one request, by both."""
        queries = []
        if dense is not None:
            queries.append(Query.Nearest(list(dense), using=DENSE))
        if lexical is not None:
            queries.append(Query.Nearest(_sparse(lexical), using=LEXICAL))
        matching = _filter(where)
        if len(queries) == 1:
            request = QueryRequest(k, query=queries[0], filter=matching, with_payload=True)
        else:
            lists = [Prefetch(fusion_depth(k), query=query, filter=matching) for query in queries]
            # The stubs make Fusion.Rrf a class beside Fusion, the engine makes it one of its variants.
            fused = cast(Fusion, Fusion.Rrf(k=RRF_K))
            request = QueryRequest(k, query=fused, prefetches=lists, with_payload=True)
        with _translated(f"searching {self._path}"):
            return [
                StoredPoint(hit.id, hit.payload or {}, hit.score)
                for hit in self._shard.query(request)
                if isinstance(hit.id, UUID)
            ]

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


def _damaged(path: Path, error: Exception) -> PermanentError:
    """What cannot be opened though the disk can be read is not mended by waiting."""
    message = " ".join(str(error).split())
    if len(message) > SHOWN:
        message = f"{message[:SHOWN]} …"
    return PermanentError(
        f"The collection in {path.parent} cannot be opened: {message}",
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


def _stored_points(records: Iterable[Record]) -> list[StoredPoint]:
    points = (stored_point(r.id, r.payload, r.vector) for r in records)
    return [point for point in points if point is not None]


class QdrantEdgeIndex:
    """Implements VectorIndex. Threads may share it; processes may share its folder.

    lock_timeout: seconds to wait for the processes that have the index open, then ``TransientError``.

    Opening costs 0.1 to 0.4 s with tens of thousands of points, so calls that belong together belong
    in one `session`; while it lasts, no other process gets in.
    """

    def __init__(
        self, folder: Path, name: str = "tidemark", lock_timeout: float = LOCK_TIMEOUT
    ) -> None:
        self.layout = Layout(name)
        self.folder = folder
        self._shared = EdgeFolder.at(folder, name)
        self._timeout = lock_timeout

    def session(self) -> AbstractContextManager[None]:
        return self._shared.session(self._timeout)

    def ensure(self, generation: int, dimension: int, embed_fingerprint: str = "") -> None:
        points, sections = self.layout.both(generation)
        with self._alone():
            self._sweep()
            known = CollectionFile.read(self._path(points))
            if known.dimension not in (None, dimension):
                raise self.layout.other_dimension(generation, known.dimension or 0, dimension)
            # Sections first: a generation exists as soon as its points have a place.
            self._ready(sections, CollectionFile(None, "", settings(None)))
            built_under = known.embed_fingerprint or embed_fingerprint
            self._ready(points, CollectionFile(dimension, built_under, settings(dimension)))
            self._collection(sections).index_keys(SECTION_KEYS)
            self._collection(points).index_keys(POINT_KEYS)

    def built_under(self, generation: int) -> str:
        return CollectionFile.read(self._path(self.layout.points(generation))).embed_fingerprint

    def dimension(self, generation: int) -> int:
        name = self.layout.points(generation)
        path = self._path(name)
        self._must_exist(name)
        known = CollectionFile.read(path).dimension
        if known is None:
            raise PermanentError(
                f"{path / 'collection.json'} does not say how long the vectors are.",
                "Index a source (tidemark index SOURCE), which writes it anew.",
            )
        return known

    def write_epoch(self, generation: int, source: str, epoch: str) -> None:
        with self._alone():
            if generation not in self.generations():
                raise self.layout.missing(generation)
            for opened in (self._points, self._sections):
                with suppress(CollectionLostError), opened(generation) as collection:
                    collection.upsert([epoch_point(source, epoch)], vectors=False)

    def epochs(self, generation: int, source: str) -> tuple[str, str]:
        points, sections = self.layout.both(generation)
        with self._alone():
            return self._epoch(points, source), self._epoch(sections, source)

    def _epoch(self, name: str, source: str) -> str:
        if not self._path(name).is_dir():
            return ""
        return text_under(self._collection(name).reserved(epoch_id(source)), EPOCH)

    def generations(self) -> list[int]:
        return self.layout.generations(self._names())

    def incomplete(self) -> dict[int, str]:
        return self.layout.incomplete(self._names())

    def _names(self) -> list[str]:
        with local_files(self.folder):
            return [path.name for path in self.folder.iterdir() if path.is_dir()]

    def live(self) -> int | None:
        try:
            number = int(json.loads(self._live_path.read_text())["generation"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise PermanentError(
                f"{self._live_path} does not name the live generation: {error}.",
                "Run `tidemark audit --repair`, which puts the live name right again.",
            ) from error
        return number if self._path(self.layout.points(number)).is_dir() else None

    def live_sections(self) -> int | None:
        return self.live()  # One file says both.

    def switch(self, generation: int) -> None:
        with self._alone():
            self._must_exist(self.layout.points(generation))
            replace_file(self._live_path, json.dumps({"generation": generation}))

    def drop(self, generation: int) -> None:
        with self._alone():
            if generation == self.live():
                raise self.layout.is_live(generation)
            for name in self.layout.both(generation):
                self._shared.close(name)
                if self._path(name).is_dir():
                    with local_files(self._path(name)):
                        self._path(name).rename(self._discarded(name))
            self._sweep()

    def upsert_points(self, generation: int, points: Sequence[PointWrite]) -> None:
        with self._points(generation) as collection:
            collection.upsert(last_of_each(points), vectors=True)

    def upsert_sections(self, generation: int, sections: Sequence[PointWrite]) -> None:
        with self._sections(generation) as collection:
            collection.upsert(last_of_each(sections), vectors=False)

    def set_payloads(self, generation: int, points: Sequence[PointWrite]) -> None:
        with self._points(generation) as collection:
            collection.overwrite(last_of_each(points))

    def delete_points(self, generation: int, ids: Sequence[UUID]) -> None:
        self._delete(lambda: self._points(generation), ids)

    def delete_sections(self, generation: int, ids: Sequence[UUID]) -> None:
        self._delete(lambda: self._sections(generation), ids)

    def get_points(self, generation: int, ids: Sequence[UUID]) -> list[StoredPoint]:
        with suppress(CollectionLostError), self._points(generation) as collection:
            return collection.get(ids)
        return []

    def get_vectors(self, generation: int, ids: Sequence[UUID]) -> dict[UUID, tuple[float, ...]]:
        with suppress(CollectionLostError), self._points(generation) as collection:
            return collection.vectors(ids)
        return {}

    def get_sections(self, generation: int, ids: Sequence[UUID]) -> list[StoredPoint]:
        with suppress(CollectionLostError), self._sections(generation) as collection:
            return collection.get(ids)
        return []

    def scan_points(
        self, generation: int, where: Where | None = None, *, vectors: bool = False
    ) -> Iterator[StoredPoint]:
        """Stream matching points. The index is open while one is looked at, but for moments in between."""
        return self._scan(lambda: self._points(generation), where, vectors=vectors)

    def scan_sections(self, generation: int, where: Where | None = None) -> Iterator[StoredPoint]:
        """Stream matching sections, as ``scan_points``."""
        return self._scan(lambda: self._sections(generation), where)

    def count_points(self, generation: int, where: Where | None = None) -> int:
        with suppress(CollectionLostError), self._points(generation) as collection:
            return collection.count(where)
        return 0

    def count_sections(self, generation: int, where: Where | None = None) -> int:
        with suppress(CollectionLostError), self._sections(generation) as collection:
            return collection.count(where)
        return 0

    def search(
        self,
        generation: int,
        k: int,
        *,
        dense: Sequence[float] | None = None,
        lexical: SparseVector | None = None,
        where: Where | None = None,
    ) -> list[StoredPoint]:
        with self._points(generation) as collection:
            return collection.search(k, dense, lexical, where)

    def _delete(
        self, opened: Callable[[], AbstractContextManager[EdgeCollection]], ids: Sequence[UUID]
    ) -> None:
        with self._alone():
            # What a killed process had begun to remove holds texts that are to be gone, too.
            self._sweep()
            with suppress(CollectionLostError), opened() as collection:
                collection.delete(ids)

    def _scan(
        self,
        opened: Callable[[], AbstractContextManager[EdgeCollection]],
        where: Where | None,
        *,
        vectors: bool = False,
    ) -> Iterator[StoredPoint]:
        offset: UUID | None = None
        while True:
            with self.session():
                let_go_at = time.monotonic() + SCAN_SECONDS
                while True:
                    try:
                        with opened() as collection:
                            points, offset = collection.page(where, offset, vectors=vectors)
                    except CollectionLostError:
                        return
                    yield from points
                    if offset is None:
                        return
                    if time.monotonic() > let_go_at:
                        break
            # Longer than others sleep between two looks at the lock: one of them takes it.
            time.sleep(2 * POLL)

    def _points(self, generation: int) -> AbstractContextManager[EdgeCollection]:
        return self._using(self.layout.points(generation))

    def _sections(self, generation: int) -> AbstractContextManager[EdgeCollection]:
        return self._using(self.layout.sections(generation))

    @contextmanager
    def _using(self, name: str) -> Iterator[EdgeCollection]:
        with self._alone():
            self._must_exist(name)
            yield self._collection(name)

    def _must_exist(self, name: str) -> None:
        if self._path(name).is_dir():
            return
        if (problem := self.layout.absent(name, self._names())) is not None:
            raise problem

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """In a session, and no other thread."""
        with self.session(), self._shared.guard:
            yield

    def _collection(self, name: str) -> EdgeCollection:
        return self._shared.opened(name, lambda: EdgeCollection.load(self._path(name) / "shard"))

    def _ready(self, name: str, wanted: CollectionFile) -> None:
        """Make a collection that is missing; bring one that is there up to date."""
        path = self._path(name)
        if not path.is_dir():
            # Under another name first, so that it has its own only when it is whole.
            unfinished = self._discarded(name)
            EdgeCollection.create(unfinished / "shard", wanted.dimension).close()
            wanted.write(unfinished)
            with local_files(unfinished):
                unfinished.rename(path)
            return
        known = CollectionFile.read(path)
        if known == wanted:
            return
        if (known.dimension, known.settings) != (wanted.dimension, wanted.settings):
            self._shared.close(name)
            EdgeCollection.load(path / "shard", wanted.dimension, adjust=True).close()
        wanted.write(path)

    def _sweep(self) -> None:
        """Remove what was being made or removed when its process ended."""
        for left in self.folder.glob(f".{self.layout.name}__*"):
            with local_files(left):
                shutil.rmtree(left)

    def _path(self, name: str) -> Path:
        return self.folder / name

    def _discarded(self, name: str) -> Path:
        return self.folder / f".{name}.{uuid.uuid4().hex}"

    @property
    def _live_path(self) -> Path:
        return self.folder / f"{self.layout.name}.live.json"
