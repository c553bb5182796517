"""Can it be found? A sample of documents is searched, each for a sentence of its own.

Everything may be where the ledger says and searches miss it all the same: an engine's index that is broken,
vectors of one model searched with another. Only a search tells.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nlargest
from uuid import UUID

from tidemark.domain.chunks import StoredPoint
from tidemark.ports import Embedder, Ledger, LexicalEncoder, VectorIndex
from tidemark.stages.audit.sampling import Sampled

AMONG = 10
"""It must come back among the first so many."""
TRIES = 3
"""Sentences that are tried before a document counts as not found."""
LONGEST = 200
"""Characters of a sentence that are searched for: within what any model reads at once."""

_ENDS = re.compile(r"(?<=[.!?。！？])\s+|\n+")


@dataclass(frozen=True, slots=True)
class Findable:
    """sampled: how many documents were searched for. missed: those that no search brought back."""

    sampled: int = 0
    missed: tuple[Sampled, ...] = ()


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    content_hash: str


@dataclass(frozen=True, slots=True)
class _Searching:
    ledger: Ledger
    index: VectorIndex
    generation: int
    embedder: Embedder
    lexical: LexicalEncoder


def search_for(
    ledger: Ledger,
    index: VectorIndex,
    generation: int,
    embedder: Embedder,
    lexical: LexicalEncoder,
    sample: Iterable[Sampled],
) -> Findable:
    """Search for each document of a sample, by vectors and words together. Loads the model."""
    searching = _Searching(ledger, index, generation, embedder, lexical)
    documents = list(sample)
    found = _found_at_once(searching, documents)
    doubtful = [document for document in documents if document.document_id not in found]
    missed = tuple(document for document in doubtful if not _is_found(searching, document))
    return Findable(len(documents), missed)


def _found_at_once(searching: _Searching, documents: Sequence[Sampled]) -> set[UUID]:
    """Those that their longest sentence brings back: as good as always all of them."""
    with searching.index.session():
        longest = {
            document.document_id: sentences[0]
            for document in documents
            if (sentences := _sentences(searching, document.document_id))
        }
    vectors = searching.embedder.embed([s.text for s in longest.values()]) if longest else []
    with searching.index.session():
        return {
            document
            for (document, sentence), vector in zip(longest.items(), vectors, strict=True)
            if _brings_back(searching, document, sentence, vector)
        }


def _is_found(searching: _Searching, document: Sampled) -> bool:
    """By any of its sentences. Under its lock: what a run writes or removes at the moment is not missed."""
    key, generation = document.document_id, searching.generation
    with searching.ledger.lock_documents([key]):
        record = searching.ledger.documents.get(key)
        if record is None or record.generation != generation or not record.chunks:
            return True
        sentences = _sentences(searching, key)
        if not sentences:
            # None of its chunks has a word to be searched by, if it has any chunk.
            return searching.index.count_points(generation, {"document_id": str(key)}) > 0
        vectors = searching.embedder.embed([sentence.text for sentence in sentences])
        return any(
            _brings_back(searching, key, sentence, vector)
            for sentence, vector in zip(sentences, vectors, strict=True)
        )


def _sentences(searching: _Searching, document: UUID) -> list[_Sentence]:
    where: dict[str, str | list[str]] = {"document_id": str(document)}
    return own_sentences(searching.index.scan_points(searching.generation, where))


def _brings_back(
    searching: _Searching, document: UUID, sentence: _Sentence, vector: Sequence[float]
) -> bool:
    words = searching.lexical.encode_query(sentence.text)
    hits = searching.index.search_hybrid(searching.generation, vector, words, AMONG)
    return any(_answers(hit, document, sentence) for hit in hits) or _is_everywhere(hits, sentence)


def own_sentences(points: Iterable[StoredPoint]) -> list[_Sentence]:
    """The longest sentences of a document, at most one of each chunk: they tell it from others."""
    return nlargest(TRIES, _longest_of_each(points), key=lambda sentence: len(sentence.text))


def _longest_of_each(points: Iterable[StoredPoint]) -> Iterator[_Sentence]:
    for point in points:
        sentences = (_cut(s) for s in _ENDS.split(str(point.payload.get("text") or "")))
        longest = max(sentences, key=len, default="")
        if any(character.isalnum() for character in longest):
            yield _Sentence(longest, str(point.payload.get("content_hash")))


def _cut(sentence: str) -> str:
    sentence = " ".join(sentence.split())
    if len(sentence) <= LONGEST:
        return sentence
    whole, _, _ = sentence[: LONGEST + 1].rpartition(" ")
    return whole or sentence[:LONGEST]


def _answers(hit: StoredPoint, document: UUID, sentence: _Sentence) -> bool:
    """Is it the document, or one that says exactly the same?"""
    same_text = hit.payload.get("content_hash") == sentence.content_hash
    return hit.payload.get("document_id") == str(document) or same_text


def _is_everywhere(hits: Sequence[StoredPoint], sentence: _Sentence) -> bool:
    """Does all that came back have the sentence? Then it is not the document's own, and tells nothing."""
    texts = [" ".join(str(hit.payload.get("text") or "").split()) for hit in hits]
    return len(texts) == AMONG and all(sentence.text in text for text in texts)
