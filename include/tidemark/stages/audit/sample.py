"""Can it be found? A sample of documents is searched, each for a sentence of its own.

Everything may be where the ledger says and searches miss it all the same: an engine's index that is broken,
vectors of one model searched with another. Only a search tells.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from heapq import heappush, heappushpop, nlargest
from itertools import islice, zip_longest
from uuid import UUID

from tidemark.domain.chunks import StoredPoint
from tidemark.domain.records import DocumentRecord
from tidemark.stages.audit.compare import AuditDependencies
from tidemark.stages.audit.drift import DocumentName

AMONG = 10
"""It must come back among the first so many."""
TRIES = 3
"""Sentences that are tried before a document counts as not found."""
LONGEST = 200
"""Characters of a sentence that are searched for: within what any model reads at once."""

_ENDS = re.compile(r"(?<=[.!?。！？])\s+|\n+")


class Sampler:
    """Keeps the ``size`` documents of each source that come first in an order that the seed decides.

    A document is in the sample of a seed whatever else there is, as far as there is room: the samples of
    two days differ, those of one day do not. Only those that are live in ``generation`` are taken.
    """

    def __init__(self, size: int, seed: str, generation: int | None) -> None:
        self._size = size
        self._seed = seed.encode()
        self._generation = generation
        # By source, the one that comes last at the top.
        self._kept: dict[str, list[tuple[int, DocumentName]]] = {}

    def see(self, record: DocumentRecord) -> None:
        if record.generation != self._generation or not record.chunks or not self._size:
            return
        kept = self._kept.setdefault(record.source, [])
        hashed = blake2b(self._seed + record.document_id.bytes, digest_size=8).digest()
        rank = -int.from_bytes(hashed, "big")
        if len(kept) == self._size and rank <= kept[0][0]:
            return
        entry = (rank, DocumentName(record.document_id, record.source, record.uri))
        (heappush if len(kept) < self._size else heappushpop)(kept, entry)

    def chosen(self) -> list[DocumentName]:
        """The sample: a document of each source in turn, until there are enough."""
        ordered = [sorted(kept, key=lambda one: -one[0]) for _, kept in sorted(self._kept.items())]
        in_turn = (one[1] for turn in zip_longest(*ordered) for one in turn if one is not None)
        return list(islice(in_turn, self._size))


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    content_hash: str


def not_found(
    deps: AuditDependencies, generation: int | None, sample: Sequence[DocumentName]
) -> list[DocumentName]:
    """Those of a sample that no search brings back, by vectors and words together. Loads the model."""
    if generation is None or not sample:
        return []
    at_once = _found_at_once(deps, generation, sample)
    doubtful = [document for document in sample if document.document_id not in at_once]
    return [one for one in doubtful if not _is_found(deps, generation, one.document_id)]


def _found_at_once(
    deps: AuditDependencies, generation: int, sample: Iterable[DocumentName]
) -> set[UUID]:
    """Those that their longest sentence brings back: as good as always all of them."""
    with deps.index.session():
        longest = {
            document.document_id: sentences[0]
            for document in sample
            if (sentences := _sentences(deps, generation, document.document_id))
        }
    vectors = deps.embedder.embed([s.text for s in longest.values()]) if longest else []
    with deps.index.session():
        return {
            document
            for (document, sentence), vector in zip(longest.items(), vectors, strict=True)
            if _brings_back(deps, generation, document, sentence, vector)
        }


def _is_found(deps: AuditDependencies, generation: int, document: UUID) -> bool:
    """By any of its sentences. Under its lock: what a run writes or removes at the moment is not missed."""
    with deps.ledger.lock_documents([document]):
        record = deps.ledger.documents.get(document)
        if record is None or record.generation != generation or not record.chunks:
            return True
        sentences = _sentences(deps, generation, document)
        if not sentences:
            # None of its chunks has a word to be searched by, if it has any chunk.
            return deps.index.count_points(generation, {"document_id": str(document)}) > 0
        vectors = deps.embedder.embed([sentence.text for sentence in sentences])
        return any(
            _brings_back(deps, generation, document, sentence, vector)
            for sentence, vector in zip(sentences, vectors, strict=True)
        )


def _brings_back(
    deps: AuditDependencies,
    generation: int,
    document: UUID,
    sentence: _Sentence,
    vector: Sequence[float],
) -> bool:
    """Does it find the document, or one that says exactly the same?

    A sentence that all have which come back is not the document's own, and tells nothing.
    """
    words = deps.lexical.encode_query(sentence.text)
    payloads = [
        hit.payload for hit in deps.index.search(generation, AMONG, dense=vector, lexical=words)
    ]
    if any(
        payload.get("document_id") == str(document)
        or payload.get("content_hash") == sentence.content_hash
        for payload in payloads
    ):
        return True
    texts = [" ".join(str(payload.get("text") or "").split()) for payload in payloads]
    return len(texts) == AMONG and all(sentence.text in text for text in texts)


def _sentences(deps: AuditDependencies, generation: int, document: UUID) -> list[_Sentence]:
    """The longest sentences of a document, at most one of each chunk: they tell it from others."""
    points = deps.index.scan_points(generation, {"document_id": str(document)})
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
    words, _, _ = sentence[: LONGEST + 1].rpartition(" ")
    return words or sentence[:LONGEST]
