"""An index that lost a part of a generation: a collection, or one of its two live names."""

import shutil
from typing import Any, Literal

from fakes.index import MemoryIndex
from tidemark.adapters.index.qdrant.index import QdrantServerIndex
from tidemark.adapters.index.qdrant_edge.index import QdrantEdgeIndex
from tidemark.ports import VectorIndex

What = Literal["points", "sections"]


def lose(index: VectorIndex, generation: int, what: What) -> None:
    """Delete a collection, as a person does, or a drop that is killed halfway."""
    if isinstance(index, MemoryIndex):
        held = index._generations.get(generation)
        if held is not None:
            setattr(held, what, None)
            if held.points is held.sections is None:
                del index._generations[generation]
        return
    assert isinstance(index, QdrantEdgeIndex | QdrantServerIndex)
    name = getattr(index._layout, what)(generation)
    if isinstance(index, QdrantEdgeIndex):
        with index._alone():
            index._folder.close(name)
            shutil.rmtree(index._path(name), ignore_errors=True)
        return
    with index._asking("losing a collection") as client:
        client.delete_collection(name)


def move_sections_name(index: VectorIndex, generation: int | None) -> None:
    """Put the live name of the sections, and not that of the points, elsewhere or nowhere."""
    if isinstance(index, MemoryIndex):
        index._astray = [generation]
        return
    from qdrant_client import models

    assert isinstance(index, QdrantServerIndex)
    alias = index._layout.live_sections
    changes: list[Any] = [
        models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=alias))
    ]
    if generation is not None:
        name = index._layout.sections(generation)
        made = models.CreateAlias(collection_name=name, alias_name=alias)
        changes.append(models.CreateAliasOperation(create_alias=made))
    with index._asking("moving a name") as client:
        client.update_collection_aliases(changes)
