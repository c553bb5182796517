"""What the stages ask of the vector index."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol
from uuid import UUID

from tidemark.domain.chunks import PointWrite, SparseVector, StoredPoint


class VectorIndex(Protocol):
    """Points of chunks and of sections, in numbered generations behind one alias.

    ``generation`` names a pair of collections. Where one of them was lost, or dropped before the process
    ended, reading it finds nothing and deleting from it has nothing to do; searching it and writing to it
    raise ``PermanentError``, which names the hint. Filters are equality on payload keys (``source``,
    ``document_id``, ``section_id``, ...); a list value means any of.
    """

    def session(self) -> AbstractContextManager[None]:
        """Hold the index open for many calls (embedded engines open a folder under a lock). Re-entrant."""

    def ensure(self, generation: int, dimension: int, embed_fingerprint: str = "") -> None:
        """Create the generation's collections and payload indexes where missing; bring settings up to date.

        ``embed_fingerprint``: what its vectors are made by; kept with a generation that is made now, and
        given to one that has none. Raises ``PermanentError`` when the collections exist with another vector
        size, or with settings that only a new generation can change.
        """

    def built_under(self, generation: int) -> str:
        """The ``embed_fingerprint`` of a generation, "" when it has none."""

    def dimension(self, generation: int) -> int:
        """How long the dense vectors of a generation are.

        Raises ``PermanentError`` when its points are lost.
        """

    def write_epoch(self, generation: int, source: str, epoch: str) -> None:
        """Write a source's epoch into each collection of a generation, in place of the one before.

        It is no point: no scan, count, search or look-up ever gives it.
        """

    def epochs(self, generation: int, source: str) -> tuple[str, str]:
        """The epochs in the collection of points and in that of sections, "" where there is none.

        A collection that is restored from a backup has the epoch of that time.
        """

    def generations(self) -> list[int]:
        """Numbers of the generations of which either collection exists, ascending."""

    def incomplete(self) -> Mapping[int, str]:
        """Generations of which one collection is not there; which: "points" or "sections"."""

    def live(self) -> int | None:
        """The generation whose points are behind the alias: the live one."""

    def live_sections(self) -> int | None:
        """The generation whose sections are behind the alias: the same, unless one was moved."""

    def switch(self, generation: int) -> None:
        """Put the alias over a generation, at once.

        Raises ``PermanentError`` when its points are lost.
        """

    def drop(self, generation: int) -> None:
        """Delete a generation's collections. Raises ``PermanentError`` for the live one.

        Safe to kill and to repeat: until both are gone, ``generations`` names it.
        """

    def upsert_points(self, generation: int, points: Sequence[PointWrite]) -> None: ...

    def upsert_sections(self, generation: int, sections: Sequence[PointWrite]) -> None: ...

    def set_payloads(self, generation: int, points: Sequence[PointWrite]) -> None:
        """Replace the payload of existing points, whose vectors stay; ids that do not exist are ignored."""

    def delete_points(self, generation: int, ids: Sequence[UUID]) -> None: ...

    def delete_sections(self, generation: int, ids: Sequence[UUID]) -> None: ...

    def get_points(self, generation: int, ids: Sequence[UUID]) -> list[StoredPoint]:
        """Those that exist, in no order."""

    def get_vectors(self, generation: int, ids: Sequence[UUID]) -> dict[UUID, tuple[float, ...]]:
        """The dense vectors of those points that exist."""

    def get_sections(self, generation: int, ids: Sequence[UUID]) -> list[StoredPoint]:
        """Those that exist, in no order."""

    def scan_points(
        self,
        generation: int,
        where: Mapping[str, str | list[str]] | None = None,
        *,
        vectors: bool = False,
    ) -> Iterator[StoredPoint]:
        """Stream all points that match, in pages; memory does not grow with the collection.

        With ``vectors`` each has its ``dense`` and its ``lexical`` vector, as far as it has them.
        """

    def scan_sections(
        self, generation: int, where: Mapping[str, str | list[str]] | None = None
    ) -> Iterator[StoredPoint]: ...

    def count_points(
        self, generation: int, where: Mapping[str, str | list[str]] | None = None
    ) -> int:
        """Exact."""

    def count_sections(
        self, generation: int, where: Mapping[str, str | list[str]] | None = None
    ) -> int:
        """Exact."""

    def search(
        self,
        generation: int,
        k: int,
        *,
        dense: Sequence[float] | None = None,
        lexical: SparseVector | None = None,
        where: Mapping[str, str | list[str]] | None = None,
    ) -> list[StoredPoint]:
        """The ``k`` best, best first: by cosine, which is the score, or by BM25, or by both.

        Both are fused by reciprocal ranks (k = 60).
        """
