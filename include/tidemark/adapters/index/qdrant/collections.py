"""The collections of an index on a Qdrant server: made, checked, and brought up to date in place.

What must be as it is here: the size and the distance of the vector ``dense``, the weighing (IDF) of the
sparse vector ``lexical``, and keyword indexes on what is filtered by. A server changes the last two in
place; the others need a new generation. Optimizer, graph, quantization, placement on disk and replication
are the operator's to tune: they are left as they are found.
"""

import os
import threading
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tidemark.adapters.index.layout import DENSE, LEXICAL, Layout

if TYPE_CHECKING:
    from qdrant_client import QdrantClient, models


def ready_sections(client: "QdrantClient", name: str, keys: Sequence[str]) -> None:
    """Make the collection where it is missing, and the keyword indexes that it lacks."""
    _index_keys(client, name, keys, _found_or_made(client, name, None))


def ready_points(
    client: "QdrantClient", layout: Layout, generation: int, dimension: int, keys: Sequence[str]
) -> None:
    """Make the collection where it is missing; check it and bring it up to date where it is there.

    Raises ``PermanentError`` where it would have to be made anew. Costs one question when all is well.
    """
    name = layout.points(generation)
    found = _found_or_made(client, name, dimension)
    size = dimension_of(layout, name, found)
    if size != dimension:
        raise layout.other_dimension(generation, size, dimension)
    _weigh(client, layout, name, found)
    _index_keys(client, name, keys, found)


def dimension_of(layout: Layout, name: str, found: "models.CollectionInfo") -> int:
    """How long its dense vectors are. Raises ``PermanentError`` when they are none of ours."""
    from qdrant_client import models

    vectors = found.config.params.vectors
    dense = vectors.get(DENSE) if isinstance(vectors, dict) else None
    if dense is None:
        raise layout.other_settings(name, f"has no vector named {DENSE!r}")
    if dense.distance != models.Distance.COSINE:
        raise layout.other_settings(name, f"compares vectors by {dense.distance}, not by Cosine")
    if dense.multivector_config is not None:
        raise layout.other_settings(name, "holds many vectors for one point")
    return dense.size


def _weigh(
    client: "QdrantClient", layout: Layout, name: str, found: "models.CollectionInfo"
) -> None:
    from qdrant_client import models

    lexical = (found.config.params.sparse_vectors or {}).get(LEXICAL)
    if lexical is None:
        # It could be added, but then the points that are there would have none.
        raise layout.other_settings(name, f"has no sparse vector named {LEXICAL!r}")
    if lexical.modifier != models.Modifier.IDF:
        weighed = lexical.model_copy(update={"modifier": models.Modifier.IDF})
        client.update_collection(name, sparse_vectors_config={LEXICAL: weighed})


def _found_or_made(
    client: "QdrantClient", name: str, dimension: int | None
) -> "models.CollectionInfo":
    if not client.collection_exists(name):
        try:
            _make(client, name, dimension)
        except Exception:
            # Another process may have made it since the question; if not, that is what failed.
            if not client.collection_exists(name):
                raise
    return client.get_collection(name)


def _make(client: "QdrantClient", name: str, dimension: int | None) -> None:
    from qdrant_client import models

    if dimension is None:
        client.create_collection(name, vectors_config={})
        return
    client.create_collection(
        name,
        vectors_config={
            DENSE: models.VectorParams(size=dimension, distance=models.Distance.COSINE)
        },
        sparse_vectors_config={LEXICAL: models.SparseVectorParams(modifier=models.Modifier.IDF)},
    )


def _index_keys(
    client: "QdrantClient", name: str, keys: Sequence[str], found: "models.CollectionInfo"
) -> None:
    from qdrant_client import models

    for key in keys:
        index = found.payload_schema.get(key)
        if index is not None and index.data_type == models.PayloadSchemaType.KEYWORD:
            continue
        if index is not None:
            client.delete_payload_index(name, key, wait=True)
        with warnings.catch_warnings():
            # The client's embedded modes have no payload indexes and say so each time.
            warnings.filterwarnings("ignore", message="Payload indexes have no effect")
            client.create_payload_index(name, key, models.PayloadSchemaType.KEYWORD, wait=True)


# One client of a Qdrant server for all threads of a process, and another one after a fork.


class Connection:
    """Makes its client when it is first asked for."""

    def __init__(self, make: "Callable[[], QdrantClient]") -> None:
        self._make = make
        self._client: QdrantClient | None = None
        self._pid = os.getpid()
        self._guard = threading.Lock()

    def client(self) -> "QdrantClient":
        with self._guard:
            if self._client is None or self._pid != os.getpid():
                # Sockets that a parent process also reads from would mix up the answers.
                self._client, self._pid = self._make(), os.getpid()
            return self._client

    def close(self) -> None:
        """Let go of the connections; the next call makes new ones."""
        with self._guard:
            client, self._client = self._client, None
        if client is not None:
            client.close()


def connect(url: str, api_key: str | None, timeout: int) -> "QdrantClient":
    """timeout: seconds for one answer."""
    from qdrant_client import QdrantClient

    # The version check would ask the server before the first call does, and warn if it is away.
    return QdrantClient(url=url, api_key=api_key, timeout=timeout, check_compatibility=False)
