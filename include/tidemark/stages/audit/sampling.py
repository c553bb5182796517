"""A sample of documents, the same for a seed, taken from a stream in passing."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from heapq import heappush, heappushpop
from itertools import zip_longest
from uuid import UUID

from tidemark.domain.records import DocumentRecord


@dataclass(frozen=True, slots=True)
class Sampled:
    """A document to be searched for."""

    document_id: UUID
    source: str
    uri: str


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
        self._kept: dict[str, list[tuple[int, Sampled]]] = {}

    def see(self, record: DocumentRecord) -> None:
        if record.generation != self._generation or not record.chunks or not self._size:
            return
        kept = self._kept.setdefault(record.source, [])
        hashed = blake2b(self._seed + record.document_id.bytes, digest_size=8).digest()
        place = -int.from_bytes(hashed, "big")
        if len(kept) == self._size and place <= kept[0][0]:
            return
        entry = (place, Sampled(record.document_id, record.source, record.uri))
        if len(kept) < self._size:
            heappush(kept, entry)
        else:
            heappushpop(kept, entry)

    def chosen(self) -> Iterator[Sampled]:
        """The sample: a document of each source in turn, until there are enough."""
        ordered = [
            sorted(kept, key=lambda entry: -entry[0]) for _, kept in sorted(self._kept.items())
        ]
        left = self._size
        for turn in zip_longest(*ordered):
            for entry in turn:
                if entry is not None and left:
                    left -= 1
                    yield entry[1]
