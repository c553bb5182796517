"""Discard: delete the artifacts of documents that are gone, and nothing that another one shares."""

from collections.abc import Collection, Iterator
from uuid import UUID

from tidemark.ports.artifacts import ArtifactStore
from tidemark.ports.ledger import Ledger
from tidemark.stages.job import raw_key

FEW = 8
"""For more names than this the whole folder is listed once, instead of once for each."""


def discard_snapshots(
    ledger: Ledger, artifacts: ArtifactStore, raw_hashes: Collection[str]
) -> set[str]:
    """Delete the snapshots that nothing in the ledger refers to, and their elements; which ones."""
    unused = set(raw_hashes) - ledger.versions.raw_in_use(sorted(raw_hashes))
    # The snapshot last: as long as it is there, its elements are looked for again.
    for key in keys_of(artifacts, "elements", unused):
        artifacts.delete(key)
    for raw_hash in sorted(unused):
        artifacts.delete(raw_key(raw_hash))
    return unused


def discard_vectors(artifacts: ArtifactStore, documents: Collection[UUID]) -> None:
    """Delete what was put aside of documents, under any model."""
    for key in keys_of(artifacts, "vectors", {str(document) for document in documents}):
        artifacts.delete(key)


def keys_of(artifacts: ArtifactStore, folder: str, names: set[str]) -> Iterator[str]:
    """Stream the keys ``folder/NAME.…`` of some names; they may be deleted meanwhile."""
    if len(names) > FEW:
        yield from (key for key in artifacts.keys(f"{folder}/") if name_of(key) in names)
        return
    for name in sorted(names):
        yield from list(artifacts.keys(f"{folder}/{name}."))


def name_of(key: str) -> str:
    """What a key is of: "raw" in "elements/raw.made_by"."""
    return key.partition("/")[2].partition(".")[0]
