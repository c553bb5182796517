"""The vectors of a window of documents: carried over where they exist, else embedded together."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from tidemark.domain.errors import ConfigurationError, DocumentError, PermanentError
from tidemark.domain.model import Chunk
from tidemark.domain.plan import Target
from tidemark.stages.index import Vectors
from tidemark.stages.job import Tools
from tidemark.stages.keepsakes import vectors_of
from tidemark.stages.prepare import Meter, Prepared

PROBE = "A text that every model reads."


@dataclass(frozen=True, slots=True)
class Embedded:
    """vectors: of all new chunks of the documents that could be embedded, by chunk.

    carried: chunks whose vectors were there before, under another address or under their own.
    failed: documents with a text that the model refuses, by document.
    """

    vectors: Vectors = field(default_factory=dict)
    carried: frozenset[UUID] = frozenset()
    failed: dict[UUID, DocumentError] = field(default_factory=dict)


def vectors_for(tools: Tools, target: Target, window: Sequence[Prepared], meter: Meter) -> Embedded:
    """The vectors of all new chunks of some documents.

    One document's fault leaves the others alone. Raises what the embedder raises when it cannot embed
    anything at all: then the fault is not theirs.
    """
    chunks = {chunk.chunk_id: chunk for prepared in window for chunk in prepared.new_chunks()}
    if not chunks:
        return Embedded()
    dense: dict[UUID, tuple[float, ...]] = {}
    for prepared in window:
        dense |= _carried(tools, target, prepared)
    carried = frozenset(dense)
    missing = [chunk for key, chunk in chunks.items() if key not in carried]
    failed: dict[UUID, DocumentError] = {}
    if missing:
        with meter.stage("embed", len(missing)):
            try:
                dense |= _embed(tools, missing)
            except ConfigurationError:
                raise
            except PermanentError as error:
                made, failed = _one_by_one(tools, window, carried, error)
                dense |= made
    whole = {key: chunk for key, chunk in chunks.items() if key in dense}
    lexical = tools.lexical.encode([chunk.embed_text for chunk in whole.values()])
    vectors = {key: (dense[key], sparse) for key, sparse in zip(whole, lexical, strict=True)}
    return Embedded(vectors, carried, failed)


def _embed(tools: Tools, chunks: Sequence[Chunk]) -> dict[UUID, tuple[float, ...]]:
    made = tools.embedder.embed([chunk.embed_text for chunk in chunks])
    return {chunk.chunk_id: vector for chunk, vector in zip(chunks, made, strict=True)}


def _one_by_one(
    tools: Tools, window: Sequence[Prepared], carried: frozenset[UUID], error: PermanentError
) -> tuple[dict[UUID, tuple[float, ...]], dict[UUID, DocumentError]]:
    """Find the documents whose texts the model refuses, after it has refused all together."""
    dense: dict[UUID, tuple[float, ...]] = {}
    failed: dict[UUID, DocumentError] = {}
    for prepared in window:
        missing = [c for c in prepared.new_chunks() if c.chunk_id not in carried]
        try:
            if missing:
                dense |= _embed(tools, missing)
        except ConfigurationError:
            raise
        except PermanentError as own:
            decision = prepared.version.planned.decision
            failed[decision.document_id] = DocumentError(
                "embed",
                f"A text of {decision.uri} could not be embedded: {own.message}",
                own.cure or "Give it a profile with smaller chunks, or exclude it.",
            )
    if not dense:
        # All that is to be embedded is refused: is it these few texts, or the model?
        try:
            tools.embedder.embed([PROBE])
        except PermanentError:
            raise error from None
    return dense, failed


def _carried(tools: Tools, target: Target, prepared: Prepared) -> dict[UUID, tuple[float, ...]]:
    """Vectors that are there: of points of which another part is written again, and of a document that moved
    or came back, for those of its texts that stayed the same.
    """
    reusable = list(prepared.reusable)
    there = tools.index.get_vectors(target.generation, reusable) if reusable else {}
    origin = prepared.version.planned.decision.origin
    if origin is None or not prepared.new:
        return there
    hashes = {
        c.chunk_id: prepared.chunk_records[c.chunk_id].embed_hash for c in prepared.new_chunks()
    }
    known = vectors_of(tools, target, origin, hashes.values())
    return {chunk: known[h] for chunk, h in hashes.items() if h in known} | there
