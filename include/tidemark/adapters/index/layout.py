"""How an index is laid out in collections, shared by every adapter of VectorIndex."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar
from uuid import UUID, uuid5

from tidemark.domain.chunks import PointWrite, SparseVector, StoredPoint
from tidemark.domain.errors import ConfigurationError, PermanentError

Where: TypeAlias = Mapping[str, str | list[str]]
"""Equality on payload keys, all of them; a list means any of its values."""

POINTS = "points"
SECTIONS = "sections"

DENSE = "dense"
LEXICAL = "lexical"

POINT_KEYS = ("document_id", "section_id", "source", "labels")
"""What chunks are mostly filtered by: each gets a keyword index everywhere."""

SECTION_KEYS = ("document_id", "source")
"""What sections are mostly filtered by."""

MORE_POINT_KEYS = ("source_uri", "kinds", "language")
MORE_SECTION_KEYS = ("source_uri", "parent_section_id")
"""Filters that are also indexed where an index costs nothing until it is used."""

RRF_K = 60
"""A hit at rank r (from 0) of one of the fused lists adds 1 / (RRF_K + r) to its score."""

PAGE = 256
"""Points a page when reading, so that a scan holds well under a megabyte of texts."""

_RESERVED = int.from_bytes(b"tidemark", "big")
"""The first half of the ids of what is kept in a collection and is no point.

Ids of points are of version 5, which these are not: no point can have one, whatever is in its payload.
In a scan, which goes by id, they are all in one place.
"""

RESERVED_FROM = UUID(int=_RESERVED << 64)
"""The first of them."""

EPOCH = "tidemark_mark"
"""The key of an epoch; a point's payload has none like it."""

BUILT_UNDER = "tidemark_embed_fingerprint"
"""The key of the fingerprint that a generation was made under."""

OTHER_SETTINGS_HINT = (
    "If the collection is not Tidemark's, set TIDEMARK_INDEX_NAME to another name; if it is, delete it and "
    "run `tidemark audit --repair`, which makes it again and fills it."
)

_NAMESPACE = UUID("5b0c6a3e-1f6d-5d0b-9a53-0d1f3c1c7f52")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

T = TypeVar("T")


class CollectionLostError(PermanentError):
    """One of the two collections of a generation is not there, and the other one is.

    Reading finds nothing then and deleting has nothing to do; searching and writing fail with this.
    """


class Identified(Protocol):
    @property
    def point_id(self) -> UUID: ...


P = TypeVar("P", bound=Identified)


def is_reserved(point_id: UUID) -> bool:
    """Is this the id of something that is no point?"""
    return point_id.int >> 64 == _RESERVED


def epoch_id(source: str) -> UUID:
    """Where a source's epoch is kept, in each collection."""
    return _reserved(f"mark {source}")


def epoch_point(source: str, epoch: str) -> PointWrite:
    """An epoch as it is kept: without vectors, and with none of the keys that points are filtered by."""
    return PointWrite(epoch_id(source), {EPOCH: epoch, "tidemark_source": source})


def built_under_id() -> UUID:
    """Where a generation's fingerprint is kept, in its collection of points."""
    return _reserved("built under")


def _reserved(name: str) -> UUID:
    return UUID(int=RESERVED_FROM.int | uuid5(_NAMESPACE, name).int & (1 << 64) - 1)


def stored_point(
    key: object, payload: dict[str, Any] | None, vector: object, score: float = 0.0
) -> StoredPoint | None:
    """A point as it is kept, however damaged; None for what is reserved or has no id of ours."""
    if isinstance(key, int):
        return None
    point_id = key if isinstance(key, UUID) else UUID(str(key))
    if is_reserved(point_id):
        return None
    named = vector if isinstance(vector, dict) else {}
    numbers: Any = named.get(DENSE)
    words: Any = named.get(LEXICAL)
    dense = tuple(numbers) if isinstance(numbers, list) else None
    lexical = None
    if hasattr(words, "indices"):
        lexical = SparseVector(tuple(words.indices), tuple(words.values))
    return StoredPoint(point_id, payload or {}, score, dense, lexical)


def count_reserved(scroll: Callable[[UUID], tuple[Sequence[Any], object]]) -> int:
    """How much in a collection is no point of ours but kept beside them.

    scroll: gives the records from an id on, and the id where the next ones start, None for no more.
    """
    count, offset = 0, RESERVED_FROM
    while True:
        records, after = scroll(offset)
        reserved = [record for record in records if is_reserved(UUID(str(record.id)))]
        count += len(reserved)
        if after is None or len(reserved) < len(records):
            return count
        offset = UUID(str(after))


def text_under(payload: Mapping[str, object] | None, key: str) -> str:
    """The text under a key of something reserved, "" when it is not there."""
    text = (payload or {}).get(key)
    return text if isinstance(text, str) else ""


def fusion_depth(k: int) -> int:
    """How many hits of each list are fused to answer with ``k``: deep enough that both lists count."""
    return max(100, 5 * k)


def pages(items: Sequence[T], size: int = PAGE) -> Iterator[Sequence[T]]:
    """Cut a sequence into runs of at most ``size``."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def last_of_each(points: Iterable[P]) -> list[P]:
    """Drop all but the last write of each id, as if they had been made one after the other."""
    return list({point.point_id: point for point in points}.values())


@dataclass(frozen=True, slots=True)
class Layout:
    """The collections of the index ``name``: a pair for each generation, behind a pair of aliases."""

    name: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or "__" in self.name:
            raise ConfigurationError(
                f"{self.name!r} cannot name an index.",
                "Use letters, digits, '.', '-' and single '_', starting with a letter or a digit.",
            )

    @property
    def live_points(self) -> str:
        return self.name

    @property
    def live_sections(self) -> str:
        return f"{self.name}__sections"

    def points(self, generation: int) -> str:
        return f"{self.name}__g{generation}"

    def sections(self, generation: int) -> str:
        return f"{self.name}__sections__g{generation}"

    def both(self, generation: int) -> tuple[str, str]:
        """Its collections of points and of sections."""
        return self.points(generation), self.sections(generation)

    def generation_of(self, collection: str) -> int | None:
        """The number in the name of a collection of points or of sections, None for any other."""
        match = re.fullmatch(re.escape(self.name) + r"(?:__sections)?__g(\d+)", collection)
        return int(match[1]) if match else None

    def generations(self, collections: Iterable[str]) -> list[int]:
        """The generations of which any collection is there, ascending."""
        numbers = {self.generation_of(name) for name in collections}
        return sorted(number for number in numbers if number is not None)

    def incomplete(self, collections: Iterable[str]) -> dict[int, str]:
        """Which collection, "points" or "sections", is not there, by generation that has the other one."""
        names = set(collections)
        lost: dict[int, str] = {}
        for number in self.generations(names):
            if self.points(number) not in names:
                lost[number] = POINTS
            elif self.sections(number) not in names:
                lost[number] = SECTIONS
        return lost

    def missing(self, generation: int) -> PermanentError:
        return PermanentError(
            f"Index {self.name!r} has no generation {generation}.",
            "Index a source first, which creates it, or name one of those that `tidemark status` lists.",
        )

    def absent(self, collection: str, names: Collection[str]) -> PermanentError | None:
        """What is wrong with a collection when these are those that exist; None when it is one of them.

        ``CollectionLostError`` when the other one of its generation is there.
        """
        number = self.generation_of(collection)
        if collection in names or number is None:
            return None
        points, sections = self.points(number), self.sections(number)
        if not {points, sections} & set(names):
            return self.missing(number)
        what = POINTS if collection == points else SECTIONS
        return CollectionLostError(
            f"Generation {number} of index {self.name!r} has lost its collection of {what}.",
            "Run `tidemark audit --repair`, which makes it again and fills it.",
        )

    def other_dimension(self, generation: int, size: int, asked: int) -> PermanentError:
        return PermanentError(
            f"Generation {generation} of index {self.name!r} holds vectors of {size} numbers, "
            f"the embedder makes {asked}.",
            "Set TIDEMARK_EMBEDDING_MODEL back to the model it was built with, or index every source once "
            "with the new one: that fills a new generation.",
        )

    def other_settings(self, collection: str, what: str) -> PermanentError:
        return PermanentError(
            f"Collection {collection} {what}, which cannot be changed in place.",
            OTHER_SETTINGS_HINT,
        )

    def is_live(self, generation: int) -> PermanentError:
        return PermanentError(
            f"Generation {generation} of index {self.name!r} is the live one and is not dropped.",
            "Switch to another generation first.",
        )
