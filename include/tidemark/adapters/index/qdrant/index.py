"""The vector index on a Qdrant server, through qdrant-client."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING
from uuid import UUID

from tidemark.adapters.index.layout import (
    BUILT_UNDER,
    DENSE,
    LEXICAL,
    MARK,
    MORE_POINT_KEYS,
    MORE_SECTION_KEYS,
    PAGE,
    POINT_KEYS,
    RRF_K,
    SECTION_KEYS,
    CollectionLostError,
    Layout,
    Where,
    built_under_id,
    fusion_depth,
    last_of_each,
    mark_id,
    mark_of,
    pages,
    said,
)
from tidemark.adapters.index.qdrant import collections
from tidemark.adapters.index.qdrant import requests as ask
from tidemark.adapters.index.qdrant.collections import Connection, connect
from tidemark.domain.chunks import PointWrite, SparseVector, StoredPoint
from tidemark.domain.errors import ConfigurationError, PermanentError

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models

DELETE_BATCH = 1_000
"""Ids a request: deletes by filter over much data time out, these do not."""

TIMEOUT = 60
"""Seconds to wait for an answer."""


class QdrantServerIndex:
    """Implements VectorIndex. Threads and forked processes may share it.

    Give either ``url`` (with ``api_key`` where the server wants one) or ``client_factory``, which makes
    a client when one is first needed, and again in a forked process. timeout: seconds for one answer.
    """

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        name: str = "tidemark",
        *,
        client_factory: "Callable[[], QdrantClient] | None" = None,
        timeout: int = TIMEOUT,
    ) -> None:
        if (url is None) == (client_factory is None):
            raise ConfigurationError(
                "A Qdrant index needs a URL or a client factory, and not both."
            )
        self._layout = Layout(name)
        self._server = ask.where_is(url) if url else "the given client"
        self._connection = Connection(
            client_factory or (lambda: connect(url or "", api_key, timeout))
        )

    def session(self) -> AbstractContextManager[None]:
        """Nothing to hold: the client keeps its connections between calls."""
        return nullcontext()

    def close(self) -> None:
        """Let go of the connections; the next call makes new ones."""
        self._connection.close()

    def ensure(self, generation: int, dimension: int, embed_fingerprint: str = "") -> None:
        points, sections = self._layout.points(generation), self._layout.sections(generation)
        # Sections first: a generation exists as soon as its points have a place.
        with self._asking(f"preparing {sections}") as client:
            collections.ready_sections(client, sections, (*SECTION_KEYS, *MORE_SECTION_KEYS))
        with self._asking(f"preparing {points}") as client:
            keys = (*POINT_KEYS, *MORE_POINT_KEYS)
            collections.ready_points(client, self._layout, generation, dimension, keys)
        if embed_fingerprint and not self._reserved(points, built_under_id(), BUILT_UNDER):
            kept = PointWrite(built_under_id(), {BUILT_UNDER: embed_fingerprint})
            self._upsert(points, [kept], vectors=False)

    def built_under(self, generation: int) -> str:
        return self._reserved(self._layout.points(generation), built_under_id(), BUILT_UNDER)

    def dimension(self, generation: int) -> int:
        name = self._layout.points(generation)
        with self._asking_of(name, "reading the settings of") as client:
            return collections.dimension_of(self._layout, name, client.get_collection(name))

    def mark(self, generation: int, source: str, mark: str) -> None:
        for name in (self._layout.points(generation), self._layout.sections(generation)):
            with suppress(CollectionLostError):
                self._upsert(name, [mark_of(source, mark)], vectors=False)

    def marks(self, generation: int, source: str) -> tuple[str, str]:
        return (
            self._reserved(self._layout.points(generation), mark_id(source), MARK),
            self._reserved(self._layout.sections(generation), mark_id(source), MARK),
        )

    def generations(self) -> list[int]:
        return self._layout.generations(self._names())

    def incomplete(self) -> dict[int, str]:
        return self._layout.incomplete(self._names())

    def _names(self) -> list[str]:
        with self._asking("listing collections") as client:
            return [found.name for found in client.get_collections().collections]

    def live(self) -> int | None:
        return self._behind(self._layout.live_points, self._layout.points)

    def live_sections(self) -> int | None:
        return self._behind(self._layout.live_sections, self._layout.sections)

    def _behind(self, alias: str, named: Callable[[int], str]) -> int | None:
        """The generation whose collection of this kind a name is over."""
        target = self._aliases().get(alias)
        number = None if target is None else self._layout.generation_of(target)
        return number if number is not None and named(number) == target else None

    def switch(self, generation: int) -> None:
        from qdrant_client import models

        wanted = {
            self._layout.live_points: self._layout.points(generation),
            self._layout.live_sections: self._layout.sections(generation),
        }
        names = self._names()
        if (problem := self._layout.absent(wanted[self._layout.live_points], names)) is not None:
            raise problem
        deletions = [
            models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias))
            for alias in wanted.keys() & self._aliases().keys()
        ]
        creations = [
            models.CreateAliasOperation(
                create_alias=models.CreateAlias(collection_name=target, alias_name=alias)
            )
            for alias, target in wanted.items()
            # No name can be over sections that are lost; the points are served all the same.
            if target in names
        ]
        with self._asking(f"switching to {wanted[self._layout.live_points]}") as client:
            # One request: no search ever meets a missing or a half switched name.
            client.update_collection_aliases([*deletions, *creations])

    def drop(self, generation: int) -> None:
        if generation == self.live():
            raise self._layout.is_live(generation)
        for name in (self._layout.points(generation), self._layout.sections(generation)):
            with self._asking(f"deleting {name}") as client:
                if client.collection_exists(name):
                    client.delete_collection(name)

    def upsert_points(self, generation: int, points: Sequence[PointWrite]) -> None:
        self._upsert(self._layout.points(generation), points, vectors=True)

    def upsert_sections(self, generation: int, sections: Sequence[PointWrite]) -> None:
        self._upsert(self._layout.sections(generation), sections, vectors=False)

    def set_payloads(self, generation: int, points: Sequence[PointWrite]) -> None:
        name = self._layout.points(generation)
        for run in ask.requests(last_of_each(points)):
            with self._asking_of(name, "updating payloads in") as client:
                client.batch_update_points(name, [ask.overwrite(point) for point in run], wait=True)

    def delete_points(self, generation: int, ids: Sequence[UUID]) -> None:
        self._delete(self._layout.points(generation), ids)

    def delete_sections(self, generation: int, ids: Sequence[UUID]) -> None:
        self._delete(self._layout.sections(generation), ids)

    def get_points(self, generation: int, ids: Sequence[UUID]) -> list[StoredPoint]:
        return self._get(self._layout.points(generation), ids)

    def get_vectors(self, generation: int, ids: Sequence[UUID]) -> dict[UUID, tuple[float, ...]]:
        name = self._layout.points(generation)
        found: dict[UUID, tuple[float, ...]] = {}
        for page in pages(list(dict.fromkeys(ids))):
            records: Sequence[models.Record] = []
            with suppress(CollectionLostError), self._asking_of(name, "reading") as client:
                records = client.retrieve(
                    name, [str(i) for i in page], with_payload=False, with_vectors=[DENSE]
                )
            for point in ask.points(records):
                if point.dense is not None:
                    found[point.point_id] = point.dense
        return found

    def get_sections(self, generation: int, ids: Sequence[UUID]) -> list[StoredPoint]:
        return self._get(self._layout.sections(generation), ids)

    def scan_points(
        self, generation: int, where: Where | None = None, *, vectors: bool = False
    ) -> Iterator[StoredPoint]:
        return self._scan(self._layout.points(generation), where, vectors=vectors)

    def scan_sections(self, generation: int, where: Where | None = None) -> Iterator[StoredPoint]:
        return self._scan(self._layout.sections(generation), where)

    def count_points(self, generation: int, where: Where | None = None) -> int:
        return self._count(self._layout.points(generation), where)

    def count_sections(self, generation: int, where: Where | None = None) -> int:
        return self._count(self._layout.sections(generation), where)

    def search_dense(
        self, generation: int, vector: Sequence[float], k: int, where: Where | None = None
    ) -> list[StoredPoint]:
        name = self._layout.points(generation)
        with self._asking_of(name, "searching") as client:
            found = client.query_points(
                name, query=list(vector), using=DENSE, limit=k, query_filter=ask.conditions(where)
            )
        return ask.points(found.points)

    def search_lexical(
        self, generation: int, vector: SparseVector, k: int, where: Where | None = None
    ) -> list[StoredPoint]:
        name = self._layout.points(generation)
        with self._asking_of(name, "searching") as client:
            found = client.query_points(
                name,
                query=ask.sparse(vector),
                using=LEXICAL,
                limit=k,
                query_filter=ask.conditions(where),
            )
        return ask.points(found.points)

    def search_hybrid(
        self,
        generation: int,
        vector: Sequence[float],
        lexical: SparseVector,
        k: int,
        where: Where | None = None,
    ) -> list[StoredPoint]:
        from qdrant_client import models

        name, matching, depth = (
            self._layout.points(generation),
            ask.conditions(where),
            fusion_depth(k),
        )
        lists = [
            models.Prefetch(query=list(vector), using=DENSE, limit=depth, filter=matching),
            models.Prefetch(query=ask.sparse(lexical), using=LEXICAL, limit=depth, filter=matching),
        ]
        with self._asking_of(name, "searching") as client:
            found = client.query_points(
                name, prefetch=lists, query=models.RrfQuery(rrf=models.Rrf(k=RRF_K)), limit=k
            )
        return ask.points(found.points)

    def _aliases(self) -> dict[str, str]:
        with self._asking("listing aliases") as client:
            found = client.get_aliases().aliases
        return {alias.alias_name: alias.collection_name for alias in found}

    def _upsert(self, name: str, points: Sequence[PointWrite], *, vectors: bool) -> None:
        for run in ask.requests(last_of_each(points)):
            with self._asking_of(name, "writing to") as client:
                structs = [ask.point_struct(point, vectors=vectors) for point in run]
                client.upsert(name, points=structs, wait=True)

    def _delete(self, name: str, ids: Sequence[UUID]) -> None:
        from qdrant_client import models

        for page in pages(ids, DELETE_BATCH):
            with suppress(CollectionLostError), self._asking_of(name, "deleting from") as client:
                client.delete(name, models.PointIdsList(points=[str(i) for i in page]), wait=True)

    def _get(self, name: str, ids: Sequence[UUID]) -> list[StoredPoint]:
        found: list[StoredPoint] = []
        for page in pages(list(dict.fromkeys(ids))):
            with suppress(CollectionLostError), self._asking_of(name, "reading") as client:
                records = client.retrieve(name, [str(i) for i in page], with_payload=True)
                found.extend(ask.points(records))
        return found

    def _scan(
        self, name: str, where: Where | None, *, vectors: bool = False
    ) -> Iterator[StoredPoint]:
        offset: models.ExtendedPointId | None = None
        while True:
            records: Sequence[models.Record] = []
            after: models.ExtendedPointId | None = None
            with suppress(CollectionLostError), self._asking_of(name, "scanning") as client:
                records, after = client.scroll(
                    name,
                    ask.conditions(where),
                    limit=PAGE,
                    offset=offset,
                    with_payload=True,
                    with_vectors=[DENSE, LEXICAL] if vectors else False,
                )
            yield from ask.points(records)
            if (offset := after) is None:
                return

    def _count(self, name: str, where: Where | None) -> int:
        with suppress(CollectionLostError), self._asking_of(name, "counting") as client:
            found = client.count(name, ask.conditions(where), exact=True).count
            # What is reserved has no key that a filter names.
            return found if where else found - ask.reserved_count(client, name)
        return 0

    def _reserved(self, name: str, reserved_id: UUID, key: str) -> str:
        """The text kept under a reserved id, "" when it, or the collection, is not there."""
        with self._asking(f"reading {name}") as client:
            if not client.collection_exists(name):
                return ""
            records = client.retrieve(name, [str(reserved_id)], with_payload=True)
        return said(records[0].payload, key) if records else ""

    @contextmanager
    def _asking(self, doing: str) -> "Iterator[QdrantClient]":
        with ask.translated(doing, self._server):
            yield self._connection.client()

    @contextmanager
    def _asking_of(self, name: str, doing: str) -> "Iterator[QdrantClient]":
        """Ask something of a collection; where that fails because it is not there, say so."""
        try:
            with self._asking(f"{doing} {name}") as client:
                yield client
        except PermanentError as error:
            if (problem := self._layout.absent(name, self._names())) is not None:
                raise problem from error
            raise
