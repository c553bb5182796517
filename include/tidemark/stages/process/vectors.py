"""The vectors of a window of documents: reused where they exist, else embedded together.

A vector belongs to a text and a model, not to an address. Before points are deleted their vectors go to an
archive; they are used again wherever equal texts of the same origin are to be embedded: for a document
that moved, or that was removed and comes back.
"""

from array import array
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from tidemark.domain.chunks import Chunk, SparseVector
from tidemark.domain.errors import ConfigurationError, DocumentError, PermanentError
from tidemark.domain.hashing import agree, vector_hash
from tidemark.domain.records import ChunkRecord
from tidemark.ports.artifacts import ArtifactStore
from tidemark.stages.job import Dependencies
from tidemark.stages.process.prepare import Context, Prepared

PAGE = 500
PROBE = "A text that every model reads."
Dense = tuple[float, ...]
Vectors = dict[UUID, tuple[Dense, SparseVector]]
"""Dense and lexical vectors by point."""


def archive_vectors(
    deps: Dependencies, document: UUID, generation: int, embed_fingerprint: str
) -> None:
    """Keep the vectors of a document's points under its id, before they are deleted."""
    chunks = deps.ledger.documents.chunks(document)
    if not chunks:
        return
    with deps.artifacts.writer(vectors_key(document, embed_fingerprint)) as kept:
        for start in range(0, len(chunks), PAGE):
            page = {c.point_id: c for c in chunks[start : start + PAGE]}
            vectors = deps.index.get_vectors(generation, list(page))
            for point, vector in vectors.items():
                if _is_right(vector, page[point]):
                    kept.line(f"{page[point].embed_hash} {_encoded(vector)}")


def vectors_of(ctx: Context, origin: UUID, embed_hashes: Iterable[str]) -> dict[str, Dense]:
    """The vectors of a document's texts by ``ChunkRecord.embed_hash``: from its points, else archived."""
    wanted = set(embed_hashes)
    points = {
        c.point_id: c for c in ctx.deps.ledger.documents.chunks(origin) if c.embed_hash in wanted
    }
    found: dict[str, Dense] = {}
    # A generation holds the vectors of one model: those of another are in another.
    for start in range(0, len(points), PAGE):
        page = list(points)[start : start + PAGE]
        for point, vector in ctx.deps.index.get_vectors(ctx.target.generation, page).items():
            if _is_right(vector, points[point]):
                found[points[point].embed_hash] = vector
    if len(found) < len(wanted):
        key = vectors_key(origin, ctx.target.fingerprints.embed)
        found = _read(ctx.deps.artifacts, key, wanted) | found
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


@dataclass(frozen=True, slots=True)
class Embedded:
    """vectors: of all new chunks of the documents that could be embedded, by chunk.

    reused: chunks whose vectors were there before, under another address or under their own.
    failed: documents with a text that the model refuses, by document.
    """

    vectors: Vectors = field(default_factory=dict)
    reused: frozenset[UUID] = frozenset()
    failed: dict[UUID, DocumentError] = field(default_factory=dict)


def vectors_for(ctx: Context, window: Sequence[Prepared]) -> Embedded:
    """The vectors of all new chunks of some documents.

    One document's fault leaves the others alone. Raises what the embedder raises when it cannot embed
    anything at all: then the fault is not theirs.
    """
    chunks = {chunk.chunk_id: chunk for prepared in window for chunk in prepared.new_chunks()}
    if not chunks:
        return Embedded()
    dense: dict[UUID, Dense] = {}
    for prepared in window:
        dense |= _reusable(ctx, prepared)
    reused = frozenset(dense)
    missing = [chunk for key, chunk in chunks.items() if key not in reused]
    failed: dict[UUID, DocumentError] = {}
    if missing:
        with ctx.meter.stage("embed", len(missing)):
            try:
                dense |= _embed(ctx, missing)
            except ConfigurationError:
                raise
            except PermanentError as error:
                made, failed = _one_by_one(ctx, window, reused, error)
                dense |= made
    whole = {key: chunk for key, chunk in chunks.items() if key in dense}
    lexical = ctx.deps.lexical.encode([chunk.embed_text for chunk in whole.values()])
    vectors = {key: (dense[key], sparse) for key, sparse in zip(whole, lexical, strict=True)}
    return Embedded(vectors, reused, failed)


def _embed(ctx: Context, chunks: Sequence[Chunk]) -> dict[UUID, Dense]:
    made = ctx.deps.embedder.embed([chunk.embed_text for chunk in chunks])
    return {chunk.chunk_id: vector for chunk, vector in zip(chunks, made, strict=True)}


def _one_by_one(
    ctx: Context, window: Sequence[Prepared], reused: frozenset[UUID], error: PermanentError
) -> tuple[dict[UUID, Dense], dict[UUID, DocumentError]]:
    """Find the documents whose texts the model refuses, after it has refused all together."""
    dense: dict[UUID, Dense] = {}
    failed: dict[UUID, DocumentError] = {}
    for prepared in window:
        missing = [c for c in prepared.new_chunks() if c.chunk_id not in reused]
        try:
            if missing:
                dense |= _embed(ctx, missing)
        except ConfigurationError:
            raise
        except PermanentError as own:
            version = prepared.version
            failed[version.document_id] = DocumentError(
                "embed",
                f"A text of {version.uri} could not be embedded: {own.message}",
                own.hint or "Give it a profile with smaller chunks, or exclude it.",
            )
    if not dense:
        # All that is to be embedded is refused: is it these few texts, or the model?
        try:
            ctx.deps.embedder.embed([PROBE])
        except PermanentError:
            raise error from None
    return dense, failed


def _reusable(ctx: Context, prepared: Prepared) -> dict[UUID, Dense]:
    """Vectors that are there: of points of which another part is written again, and of a document that moved
    or came back, for those of its texts that stayed the same.
    """
    reusable = list(prepared.reusable)
    there = ctx.deps.index.get_vectors(ctx.target.generation, reusable) if reusable else {}
    origin = prepared.version.planned.decision.origin
    if origin is None or not prepared.new:
        return there
    hashes = {
        c.chunk_id: prepared.chunk_records[c.chunk_id].embed_hash for c in prepared.new_chunks()
    }
    known = vectors_of(ctx, origin, hashes.values())
    return {chunk: known[h] for chunk, h in hashes.items() if h in known} | there
