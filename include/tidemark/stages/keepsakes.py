"""Vectors that outlive their points: of a document that moved, or that was removed and comes back.

A vector belongs to a text and a model, not to an address. Before points are deleted their vectors are put
aside; they are used again wherever equal texts of the same origin are to be embedded.
"""

from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterable
from uuid import UUID

from tidemark.domain.checksums import agree, vector_hash
from tidemark.domain.plan import Target
from tidemark.domain.records import ChunkRecord
from tidemark.ports import ArtifactStore
from tidemark.stages.job import Tools

PAGE = 500
Dense = tuple[float, ...]


def put_aside(tools: Tools, document: UUID, generation: int, embed_fingerprint: str) -> None:
    """Keep the vectors of a document's points under its id, before they are deleted."""
    chunks = tools.ledger.chunks(document)
    if not chunks:
        return
    with tools.artifacts.writer(vectors_key(document, embed_fingerprint)) as kept:
        for start in range(0, len(chunks), PAGE):
            page = {c.point_id: c for c in chunks[start : start + PAGE]}
            vectors = tools.index.get_vectors(generation, list(page))
            for point, vector in vectors.items():
                if _is_right(vector, page[point]):
                    kept.line(f"{page[point].embed_hash} {_encoded(vector)}")


def vectors_of(
    tools: Tools, target: Target, origin: UUID, embed_hashes: Iterable[str]
) -> dict[str, Dense]:
    """The vectors of a document's texts by ``ChunkRecord.embed_hash``: from its points, else put aside."""
    wanted = set(embed_hashes)
    points = {c.point_id: c for c in tools.ledger.chunks(origin) if c.embed_hash in wanted}
    found: dict[str, Dense] = {}
    # A generation holds the vectors of one model: those of another are in another.
    for start in range(0, len(points), PAGE):
        page = list(points)[start : start + PAGE]
        for point, vector in tools.index.get_vectors(target.generation, page).items():
            if _is_right(vector, points[point]):
                found[points[point].embed_hash] = vector
    if len(found) < len(wanted):
        key = vectors_key(origin, target.fingerprints.embed)
        found = _read(tools.artifacts, key, wanted) | found
    return found


def _is_right(vector: Dense, chunk: ChunkRecord) -> bool:
    """Is it what was written, as far as that is known? What has gone wrong in the index goes nowhere else."""
    return agree(chunk.vector_hash, vector_hash(vector))


def vectors_key(document: UUID, embed_fingerprint: str) -> str:
    return f"vectors/{document}.{embed_fingerprint}"


def _read(artifacts: ArtifactStore, key: str, wanted: set[str]) -> dict[str, Dense]:
    found: dict[str, Dense] = {}
    try:
        for line in artifacts.lines(key):
            embed_hash, _, encoded = line.partition(" ")
            if embed_hash in wanted:
                found[embed_hash] = _decoded(encoded)
    except KeyError:
        return {}
    return found


def _encoded(vector: Dense) -> str:
    return b64encode(array("f", vector).tobytes()).decode()


def _decoded(text: str) -> Dense:
    vector = array("f")
    vector.frombytes(b64decode(text))
    return tuple(vector)
