"""The vector index in a local folder, on Qdrant's engine embedded in the process.

FOLDER/NAME__g3/            a collection: collection.json and the engine's own files in shard/
FOLDER/NAME__sections__g3/  its sections
FOLDER/NAME.live.json       the generation behind the live names, replaced as a whole
FOLDER/NAME.lock, .holder   who may open collections now (see edge_folder)

A folder with one of these names is complete: it is made, and removed, under another name.
"""

import json
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from uuid import UUID

from tidemark.adapters.index.layout import (
    MARK,
    POINT_KEYS,
    SECTION_KEYS,
    CollectionLostError,
    Layout,
    Where,
    last_of_each,
    mark_id,
    mark_of,
    said,
)
from tidemark.adapters.index.qdrant_edge.folder import (
    POLL,
    CollectionFile,
    EdgeFolder,
    local_files,
    replace_file,
    settings,
)
from tidemark.adapters.index.qdrant_edge.shard import EdgeCollection
from tidemark.domain.chunks import PointWrite, SparseVector, StoredPoint
from tidemark.domain.errors import PermanentError

LOCK_TIMEOUT = 120.0
"""Seconds to wait for other processes."""

SCAN_SECONDS = 5.0
"""So long a scan holds the index open at a time; then whoever waits is let in, and it goes on."""


class QdrantEdgeIndex:
    """Implements VectorIndex. Threads may share it; processes may share its folder.

    lock_timeout: seconds to wait for the processes that have the index open, then ``TransientError``.

    Opening costs 0.1 to 0.4 s with tens of thousands of points, so calls that belong together belong
    in one `session`; while it lasts, no other process gets in.
    """

    def __init__(
        self, folder: Path, name: str = "tidemark", lock_timeout: float = LOCK_TIMEOUT
    ) -> None:
        self._layout = Layout(name)
        self._folder = EdgeFolder.at(folder, name)
        self._timeout = lock_timeout

    def session(self) -> AbstractContextManager[None]:
        return self._folder.session(self._timeout)

    def ensure(self, generation: int, dimension: int, embed_fingerprint: str = "") -> None:
        points, sections = self._layout.points(generation), self._layout.sections(generation)
        with self._alone():
            self._sweep()
            found = CollectionFile.read(self._path(points))
            if found.dimension not in (None, dimension):
                raise self._layout.other_dimension(generation, found.dimension or 0, dimension)
            # Sections first: a generation exists as soon as its points have a place.
            self._ready(sections, CollectionFile(None, "", settings(None)))
            built_under = found.embed_fingerprint or embed_fingerprint
            self._ready(points, CollectionFile(dimension, built_under, settings(dimension)))
            self._collection(sections).index_keys(SECTION_KEYS)
            self._collection(points).index_keys(POINT_KEYS)

    def built_under(self, generation: int) -> str:
        return CollectionFile.read(self._path(self._layout.points(generation))).embed_fingerprint

    def dimension(self, generation: int) -> int:
        name = self._layout.points(generation)
        path = self._path(name)
        self._must_exist(name)
        found = CollectionFile.read(path).dimension
        if found is None:
            raise PermanentError(
                f"{path / 'collection.json'} does not say how long the vectors are.",
                "Index a source (tidemark index SOURCE), which writes it anew.",
            )
        return found

    def mark(self, generation: int, source: str, mark: str) -> None:
        with self._alone():
            if generation not in self.generations():
                raise self._layout.missing(generation)
            for opened in (self._points, self._sections):
                with suppress(CollectionLostError), opened(generation) as collection:
                    collection.upsert([mark_of(source, mark)], vectors=False)

    def marks(self, generation: int, source: str) -> tuple[str, str]:
        with self._alone():
            return (
                self._mark(self._layout.points(generation), source),
                self._mark(self._layout.sections(generation), source),
            )

    def _mark(self, name: str, source: str) -> str:
        if not self._path(name).is_dir():
            return ""
        return said(self._collection(name).reserved(mark_id(source)), MARK)

    def generations(self) -> list[int]:
        return self._layout.generations(self._names())

    def incomplete(self) -> dict[int, str]:
        return self._layout.incomplete(self._names())

    def _names(self) -> list[str]:
        with local_files(self._folder.folder):
            return [path.name for path in self._folder.folder.iterdir() if path.is_dir()]

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
        return number if self._path(self._layout.points(number)).is_dir() else None

    def live_sections(self) -> int | None:
        return self.live()  # One file says both.

    def switch(self, generation: int) -> None:
        with self._alone():
            self._must_exist(self._layout.points(generation))
            replace_file(self._live_path, json.dumps({"generation": generation}))

    def drop(self, generation: int) -> None:
        with self._alone():
            if generation == self.live():
                raise self._layout.is_live(generation)
            for name in (self._layout.points(generation), self._layout.sections(generation)):
                self._folder.close(name)
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

    def search_dense(
        self, generation: int, vector: Sequence[float], k: int, where: Where | None = None
    ) -> list[StoredPoint]:
        with self._points(generation) as collection:
            return collection.dense(vector, k, where)

    def search_lexical(
        self, generation: int, vector: SparseVector, k: int, where: Where | None = None
    ) -> list[StoredPoint]:
        with self._points(generation) as collection:
            return collection.lexical(vector, k, where)

    def search_hybrid(
        self,
        generation: int,
        vector: Sequence[float],
        lexical: SparseVector,
        k: int,
        where: Where | None = None,
    ) -> list[StoredPoint]:
        with self._points(generation) as collection:
            return collection.hybrid(vector, lexical, k, where)

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
                            found, offset = collection.page(where, offset, vectors=vectors)
                    except CollectionLostError:
                        return
                    yield from found
                    if offset is None:
                        return
                    if time.monotonic() > let_go_at:
                        break
            # Longer than others sleep between two looks at the lock: one of them takes it.
            time.sleep(2 * POLL)

    def _points(self, generation: int) -> AbstractContextManager[EdgeCollection]:
        return self._using(self._layout.points(generation))

    def _sections(self, generation: int) -> AbstractContextManager[EdgeCollection]:
        return self._using(self._layout.sections(generation))

    @contextmanager
    def _using(self, name: str) -> Iterator[EdgeCollection]:
        with self._alone():
            self._must_exist(name)
            yield self._collection(name)

    def _must_exist(self, name: str) -> None:
        if self._path(name).is_dir():
            return
        if (problem := self._layout.absent(name, self._names())) is not None:
            raise problem

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """In a session, and no other thread."""
        with self.session(), self._folder.guard:
            yield

    def _collection(self, name: str) -> EdgeCollection:
        return self._folder.opened(name, lambda: EdgeCollection.load(self._path(name) / "shard"))

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
        found = CollectionFile.read(path)
        if found == wanted:
            return
        if (found.dimension, found.settings) != (wanted.dimension, wanted.settings):
            self._folder.close(name)
            EdgeCollection.load(path / "shard", wanted.dimension, adjust=True).close()
        wanted.write(path)

    def _sweep(self) -> None:
        """Remove what was being made or removed when its process ended."""
        for left in self._folder.folder.glob(f".{self._layout.name}__*"):
            with local_files(left):
                shutil.rmtree(left)

    def _path(self, name: str) -> Path:
        return self._folder.folder / name

    def _discarded(self, name: str) -> Path:
        return self._folder.folder / f".{name}.{uuid.uuid4().hex}"

    @property
    def _live_path(self) -> Path:
        return self._folder.folder / f"{self._layout.name}.live.json"
