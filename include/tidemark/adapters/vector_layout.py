"""How an index is laid out in collections, shared by every adapter of VectorIndex."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar
from uuid import UUID

from tidemark.domain.errors import ConfigurationError, PermanentError

Where: TypeAlias = Mapping[str, str | list[str]]
"""Equality on payload keys, all of them; a list means any of its values."""

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

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

T = TypeVar("T")


class Identified(Protocol):
    @property
    def point_id(self) -> UUID: ...


P = TypeVar("P", bound=Identified)


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
    """The collections of the index ``name``: a pair for each generation, behind a pair of live names."""

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

    def generation_of(self, collection: str) -> int | None:
        """The number in the name of a collection of points, None for any other collection."""
        found = re.fullmatch(re.escape(self.name) + r"__g(\d+)", collection)
        return int(found[1]) if found else None

    def missing(self, generation: int) -> PermanentError:
        return PermanentError(
            f"Index {self.name!r} has no generation {generation}.",
            "Index a source first, which creates it, or name one of those that `tidemark status` lists.",
        )

    def other_dimension(self, generation: int, found: int, asked: int) -> PermanentError:
        return PermanentError(
            f"Generation {generation} of index {self.name!r} holds vectors of {found} numbers, "
            f"the embedder makes {asked}.",
            "Build a new generation (the rebuild_index DAG) or set the model it was built with.",
        )

    def is_live(self, generation: int) -> PermanentError:
        return PermanentError(
            f"Generation {generation} of index {self.name!r} is the live one and is not dropped.",
            "Switch to another generation first.",
        )
