"""Guards: how much of a source may change at once before a person is asked.

A redesign, a broken build or a wrong pattern looks like hundreds of honest changes, one page at a time.
Only their number gives it away.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tidemark.domain.hashing import Canonical, as_json

NEARLY_ALL = 90.0
"""Percent of a source, of ``SMALL`` documents at least: losing that is asked about however few they are."""
SMALL = 4
NAMED = 20
"""Documents that a breach names; the stored plan has them all."""


class Sort(StrEnum):
    """What a guard counts."""

    CHANGED = "changed"
    """Their text is another one."""
    SHRUNK = "shrunk"
    """They lost most of their text."""
    GONE = "gone"
    """They would be removed, and stand nowhere else."""


@dataclass(frozen=True, slots=True)
class Guards:
    """Limits for one run over one source; more than that is asked about.

    *_percent: of the documents that are live; 100 never asks.
    *_documents: a number of documents, whatever share they are; None for no such limit.
    quarantined_percent, quarantined_documents: how many documents may be in quarantine before a run that
        left them there counts as failed. Nothing is asked about them: what was live stays live.
    at_least: below so many documents no percentage asks (half of a source of four is two), except when
        nearly all of a source would go.
    """

    changed_percent: float = 60.0
    shrunk_percent: float = 20.0
    gone_percent: float = 25.0
    changed_documents: int | None = None
    shrunk_documents: int | None = None
    gone_documents: int | None = None
    quarantined_percent: float = 20.0
    quarantined_documents: int | None = None
    at_least: int = 5

    def limits(self, sort: Sort) -> tuple[float, int | None]:
        """The share in percent and the number of documents from which on a person is asked."""
        return {
            Sort.CHANGED: (self.changed_percent, self.changed_documents),
            Sort.SHRUNK: (self.shrunk_percent, self.shrunk_documents),
            Sort.GONE: (self.gone_percent, self.gone_documents),
        }[sort]


@dataclass(frozen=True, slots=True)
class Breach:
    """A guard that was passed.

    documents: how many. live: of how many. uris: the first of them.
    """

    sort: Sort
    documents: int
    live: int
    limit: str
    uris: tuple[str, ...] = ()

    def sentence(self) -> str:
        """For a log line or the head of a question."""
        share = f" ({100 * self.documents / self.live:.0f} %)" if self.live else ""
        verb = "are" if self.sort is Sort.GONE else "have"
        word = "gone" if self.sort is Sort.GONE else self.sort.value
        return (
            f"{self.documents} of {self.live} live documents{share} {verb} {word} at once; "
            f"the guard is {self.limit}."
        )

    def as_dict(self) -> dict[str, Canonical]:
        return dict(as_json(self))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Breach":
        """A breach from its JSON form."""
        return cls(**{**data, "sort": Sort(data["sort"]), "uris": tuple(data["uris"])})


@dataclass(slots=True)
class Census:
    """Counts what a plan would do to a source."""

    counts: Counter[Sort] = field(default_factory=Counter)
    uris: dict[Sort, list[str]] = field(default_factory=dict)

    def add(self, sort: Sort, uri: str) -> None:
        self.counts[sort] += 1
        named = self.uris.setdefault(sort, [])
        if len(named) < NAMED:
            named.append(uri)

    def breaches(self, guards: Guards, live: int) -> tuple[Breach, ...]:
        """The guards that are passed, ``live`` documents being indexed now."""
        found = []
        for sort in Sort:
            count = self.counts[sort]
            limit = _limit_passed(count, live, guards, sort)
            if limit:
                found.append(Breach(sort, count, live, limit, tuple(self.uris[sort])))
        return tuple(found)


def too_many_quarantined(count: int, documents: int, guards: Guards) -> str:
    """Why so many of a source's documents in quarantine are too many, "" when they are not."""
    limit = guards.quarantined_documents
    if limit is not None and count > limit:
        return f"{count} documents are in quarantine, more than {limit}."
    share = 100 * count / documents if documents else 0.0
    if count < guards.at_least or share <= guards.quarantined_percent:
        return ""
    return (
        f"{count} of {documents} documents ({share:.0f} %) are in quarantine, more than "
        f"{guards.quarantined_percent:g} %."
    )


def _limit_passed(count: int, live: int, guards: Guards, sort: Sort) -> str:
    percent, documents = guards.limits(sort)
    if documents is not None and count > documents:
        return f"{documents} documents"
    share = 100 * count / live if live else 0.0
    emptied = sort is Sort.GONE and live >= SMALL and share >= NEARLY_ALL
    if (count >= guards.at_least or emptied) and share > percent:
        return f"{percent:g} %"
    return ""
