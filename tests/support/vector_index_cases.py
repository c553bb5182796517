"""The adapters of VectorIndex that must all behave alike, and the points the contract is tried with."""

import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import pytest

from tidemark.domain.chunks import PointWrite, SparseVector
from tidemark.domain.hashing import Canonical
from tidemark.ports.index import VectorIndex

DIMENSION = 4
GENERATION = 1


@contextmanager
def memory(folder: Path) -> Iterator[VectorIndex]:
    from fakes.index import MemoryIndex

    yield MemoryIndex()


@contextmanager
def client_in_memory(folder: Path) -> Iterator[VectorIndex]:
    from qdrant_client import QdrantClient

    from tidemark.adapters.index.qdrant import QdrantServerIndex

    index = QdrantServerIndex(client_factory=lambda: QdrantClient(":memory:"))
    yield index
    index.close()


@contextmanager
def client_in_folder(folder: Path) -> Iterator[VectorIndex]:
    from qdrant_client import QdrantClient

    from tidemark.adapters.index.qdrant import QdrantServerIndex

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        index = QdrantServerIndex(client_factory=lambda: QdrantClient(path=str(folder / "client")))
        yield index
        index.close()


@contextmanager
def edge(folder: Path) -> Iterator[VectorIndex]:
    from tidemark.adapters.index.qdrant_edge import QdrantEdgeIndex

    yield QdrantEdgeIndex(folder / "edge", "tidemark", lock_timeout=10.0)


@contextmanager
def server(folder: Path) -> Iterator[VectorIndex]:
    from qdrant_http import serving

    from tidemark.adapters.index.qdrant import QdrantServerIndex

    with serving(folder / "server") as http:
        index = QdrantServerIndex(http.url, timeout=20)
        yield index
        index.close()


ADAPTERS: dict[str, Callable[[Path], AbstractContextManager[VectorIndex]]] = {
    "memory": memory,
    "client-memory": client_in_memory,
    "client-path": client_in_folder,
    "edge": edge,
    "server": server,
}
"""Each opens an index in a folder; all but those in memory find there again what they had."""

LASTING = ("client-path", "edge", "server")


def adapters(names: Iterable[str] = ADAPTERS) -> list[Any]:
    """For a parametrised fixture."""
    return [
        pytest.param(name, marks=() if name == "memory" else pytest.mark.services) for name in names
    ]


def identity(number: int) -> UUID:
    return uuid5(NAMESPACE_URL, str(number))


def direction(degrees: float) -> tuple[float, ...]:
    """A vector of length 1, so many degrees away from the first axis."""
    angle = math.radians(degrees)
    return (math.cos(angle), math.sin(angle), 0.0, 0.0)


def words(*tokens: int) -> SparseVector:
    return SparseVector(tokens, (1.0,) * len(tokens))


def point(
    number: int, degrees: float = 0.0, *, tokens: tuple[int, ...] = (1,), **payload: Canonical
) -> PointWrite:
    """The point of a chunk; its payload holds its number and what is given."""
    return PointWrite(
        identity(number), {"number": number, **payload}, direction(degrees), words(*tokens)
    )


def section(number: int, **payload: Canonical) -> PointWrite:
    return PointWrite(identity(number), {"number": number, **payload})
