"""An index that lost a part of a generation: a collection, or one of its two aliases."""

import shutil
from typing import Any, Literal

from fakes.index import MemoryIndex
from tidemark.adapters.index.qdrant import QdrantServerIndex
from tidemark.adapters.index.qdrant_edge import QdrantEdgeIndex
from tidemark.ports.index import VectorIndex

What = Literal["points", "sections"]


def lose(index: VectorIndex, generation: int, what: What) -> None:
    """Delete a collection, as a person does, or a drop that is killed halfway."""
    if isinstance(index, MemoryIndex):
        index.lose(generation, what)
        return
    assert isinstance(index, QdrantEdgeIndex | QdrantServerIndex)
    name = getattr(index.layout, what)(generation)
    if isinstance(index, QdrantEdgeIndex):
        shutil.rmtree(index.folder / name, ignore_errors=True)
        return
    index._connection.client().delete_collection(name)


def move_alias(index: VectorIndex, generation: int | None) -> None:
    """Put the alias elsewhere or nowhere."""
    assert isinstance(index, MemoryIndex)
    index.points_live = generation


def move_sections_alias(index: VectorIndex, generation: int | None) -> None:
    """Put the alias of the sections, and not that of the points, elsewhere or nowhere."""
    if isinstance(index, MemoryIndex):
        index.sections_live = [generation]
        return
    from qdrant_client import models

    assert isinstance(index, QdrantServerIndex)
    alias = index.layout.live_sections
    changes: list[Any] = [
        models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias))
    ]
    if generation is not None:
        name = index.layout.sections(generation)
        made = models.CreateAlias(collection_name=name, alias_name=alias)
        changes.append(models.CreateAliasOperation(create_alias=made))
    index._connection.client().update_collection_aliases(changes)
