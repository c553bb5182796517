"""The vector index on a Qdrant server, through qdrant-client."""

import os
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING
from uuid import UUID

from tidemark.adapters import qdrant_requests as ask
from tidemark.adapters.vector_layout import (
    DENSE,
    LEXICAL,
    MORE_POINT_KEYS,
    MORE_SECTION_KEYS,
    PAGE,
    POINT_KEYS,
    RRF_K,
    SECTION_KEYS,
    Layout,
    Where,
    fusion_depth,
    last_of_each,
    pages,
)
from tidemark.domain.errors import ConfigurationError, PermanentError
from tidemark.domain.model import PointWrite, SparseVector, StoredPoint

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
        self._timeout = timeout
        self._make = client_factory or (lambda: _connect(url or "", api_key, timeout))
        self._client: QdrantClient | None = None
        self._pid = os.getpid()
        self._guard = threading.Lock()

    def session(self) -> AbstractContextManager[None]:
        """Nothing to hold: the client keeps its connections between calls."""
        return nullcontext()

    def close(self) -> None:
        """Let go of the connections; the next call makes new ones."""
        with self._guard:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def ensure(self, generation: int, dimension: int) -> None:
        from qdrant_client import models

        points, sections = self._layout.points(generation), self._layout.sections(generation)
        # Sections first: a generation exists as soon as its points have a place.
        self._create(sections, (*SECTION_KEYS, *MORE_SECTION_KEYS), vectors_config={})
        self._create(
            points,
            (*POINT_KEYS, *MORE_POINT_KEYS),
            vectors_config={
                DENSE: models.VectorParams(size=dimension, distance=models.Distance.COSINE)
            },
            sparse_vectors_config={
                LEXICAL: models.SparseVectorParams(modifier=models.Modifier.IDF)
            },
        )
        with self._asking(f"reading the configuration of {points}") as client:
            vectors = client.get_collection(points).config.params.vectors
        dense = vectors.get(DENSE) if isinstance(vectors, dict) else None
        if dense is None:
            raise PermanentError(
                f"Collection {points} at {self._server} has no vector named {DENSE!r}.",
                "It was not made by Tidemark: choose another index name.",
            )
        if dense.size != dimension:
            raise self._layout.other_dimension(generation, dense.size, dimension)

    def generations(self) -> list[int]:
        with self._asking("listing collections") as client:
            names = [found.name for found in client.get_collections().collections]
        numbers = (self._layout.generation_of(name) for name in names)
        return sorted(number for number in numbers if number is not None)

    def live(self) -> int | None:
        target = self._aliases().get(self._layout.live_points)
        return None if target is None else self._layout.generation_of(target)

    def switch(self, generation: int) -> None:
        from qdrant_client import models

        if generation not in self.generations():
            raise self._layout.missing(generation)
        wanted = {
            self._layout.live_points: self._layout.points(generation),
            self._layout.live_sections: self._layout.sections(generation),
        }
        deletions = [
            models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias))
            for alias in wanted.keys() & self._aliases().keys()
        ]
        creations = [
            models.CreateAliasOperation(
                create_alias=models.CreateAlias(collection_name=target, alias_name=alias)
            )
            for alias, target in wanted.items()
        ]
        with self._asking(f"switching to {wanted[self._layout.live_points]}") as client:
            # One request: no search ever meets a missing or a half switched name.
            client.update_collection_aliases([*deletions, *creations])

    def drop(self, generation: int) -> None:
        if generation == self.live():
            raise self._layout.is_live(generation)
        for name in (self._layout.points(generation), self._layout.sections(generation)):
            with self._asking(f"deleting {name}") as client:
                client.delete_collection(name)

    def upsert_points(self, generation: int, points: Sequence[PointWrite]) -> None:
        self._upsert(self._layout.points(generation), points, vectors=True)

    def upsert_sections(self, generation: int, sections: Sequence[PointWrite]) -> None:
        self._upsert(self._layout.sections(generation), sections, vectors=False)

    def set_payloads(self, generation: int, points: Sequence[PointWrite]) -> None:
        name = self._layout.points(generation)
        for run in ask.requests(last_of_each(points)):
            with self._asking(f"updating payloads in {name}") as client:
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
            with self._asking(f"reading {name}") as client:
                records = client.retrieve(
                    name, [str(i) for i in page], with_payload=False, with_vectors=[DENSE]
                )
            found |= {UUID(str(record.id)): ask.dense(record) for record in records}
        return found

    def get_sections(self, generation: int, ids: Sequence[UUID]) -> list[StoredPoint]:
        return self._get(self._layout.sections(generation), ids)

    def scan_points(self, generation: int, where: Where | None = None) -> Iterator[StoredPoint]:
        return self._scan(self._layout.points(generation), where)

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
        with self._asking(f"searching {name}") as client:
            found = client.query_points(
                name, query=list(vector), using=DENSE, limit=k, query_filter=ask.conditions(where)
            )
        return [ask.stored(hit) for hit in found.points]

    def search_lexical(
        self, generation: int, vector: SparseVector, k: int, where: Where | None = None
    ) -> list[StoredPoint]:
        name = self._layout.points(generation)
        with self._asking(f"searching {name}") as client:
            found = client.query_points(
                name,
                query=ask.sparse(vector),
                using=LEXICAL,
                limit=k,
                query_filter=ask.conditions(where),
            )
        return [ask.stored(hit) for hit in found.points]

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
        with self._asking(f"searching {name}") as client:
            found = client.query_points(
                name, prefetch=lists, query=models.RrfQuery(rrf=models.Rrf(k=RRF_K)), limit=k
            )
        return [ask.stored(hit) for hit in found.points]

    def _create(
        self,
        name: str,
        keys: Sequence[str],
        *,
        vectors_config: "dict[str, models.VectorParams]",
        sparse_vectors_config: "dict[str, models.SparseVectorParams] | None" = None,
    ) -> None:
        from qdrant_client import models

        with self._asking(f"creating {name}") as client:
            if not client.collection_exists(name):
                client.create_collection(
                    name,
                    vectors_config=vectors_config,
                    sparse_vectors_config=sparse_vectors_config,
                )
            for key in set(keys) - client.get_collection(name).payload_schema.keys():
                with warnings.catch_warnings():
                    # The client's embedded modes have no payload indexes and say so each time.
                    warnings.filterwarnings("ignore", message="Payload indexes have no effect")
                    client.create_payload_index(
                        name, key, models.PayloadSchemaType.KEYWORD, wait=True
                    )

    def _aliases(self) -> dict[str, str]:
        with self._asking("listing aliases") as client:
            found = client.get_aliases().aliases
        return {alias.alias_name: alias.collection_name for alias in found}

    def _upsert(self, name: str, points: Sequence[PointWrite], *, vectors: bool) -> None:
        for run in ask.requests(last_of_each(points)):
            with self._asking(f"writing to {name}") as client:
                structs = [ask.point_struct(point, vectors=vectors) for point in run]
                client.upsert(name, points=structs, wait=True)

    def _delete(self, name: str, ids: Sequence[UUID]) -> None:
        from qdrant_client import models

        for page in pages(ids, DELETE_BATCH):
            with self._asking(f"deleting from {name}") as client:
                client.delete(name, models.PointIdsList(points=[str(i) for i in page]), wait=True)

    def _get(self, name: str, ids: Sequence[UUID]) -> list[StoredPoint]:
        found: list[StoredPoint] = []
        for page in pages(list(dict.fromkeys(ids))):
            with self._asking(f"reading {name}") as client:
                records = client.retrieve(name, [str(i) for i in page], with_payload=True)
            found.extend(ask.stored(record) for record in records)
        return found

    def _scan(self, name: str, where: Where | None) -> Iterator[StoredPoint]:
        offset: models.ExtendedPointId | None = None
        while True:
            with self._asking(f"scanning {name}") as client:
                records, offset = client.scroll(
                    name, ask.conditions(where), limit=PAGE, offset=offset, with_payload=True
                )
            yield from map(ask.stored, records)
            if offset is None:
                return

    def _count(self, name: str, where: Where | None) -> int:
        with self._asking(f"counting {name}") as client:
            return client.count(name, ask.conditions(where), exact=True).count

    @contextmanager
    def _asking(self, doing: str) -> "Iterator[QdrantClient]":
        with ask.translated(doing, self._server):
            yield self._connected()

    def _connected(self) -> "QdrantClient":
        with self._guard:
            if self._client is None or self._pid != os.getpid():
                # Sockets that a parent process also reads from would mix up the answers.
                self._client, self._pid = self._make(), os.getpid()
            return self._client


def _connect(url: str, api_key: str | None, timeout: int) -> "QdrantClient":
    from qdrant_client import QdrantClient

    # The version check would ask the server before the first call does, and warn if it is away.
    return QdrantClient(url=url, api_key=api_key, timeout=timeout, check_compatibility=False)
