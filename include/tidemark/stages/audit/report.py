"""What an audit has found and what its repair did: for a person, a script, a task, the ledger."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tidemark.stages.audit.drift import KINDS


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What was compared, what was wrong, what was done about it, and what is left.

    checked: points of the ledger that were compared, of ``documents`` documents.
    counts: what was found, by kind. sources: the same by source, of those with anything.
    examples: the first URIs of each kind.
    notes: of the kinds that are not about documents, what is wrong, in words.
    tombstoned: removed documents that have points or sections left.
    served: documents that are wrong in the live generation, from which searches are answered until the one
        that is being built, where they are right, is live; after a repair, those that still are.
    sampled: documents that were searched for.
    out_of_step: sources whose stores have different tide marks; their next run compares everything anew.
    repaired: documents healed. did: what that took. left: what is still wrong, by kind.
    failed: documents that could not be healed, and why, the first few of ``failures``.
    skipped: sources that were not healed, or not all through, and why.
    waiting: per source the documents that the ledger does not know and whose fate its next run decides.
    seconds: wall.
    """

    source: str | None
    checked: int = 0
    documents: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    sources: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    examples: Mapping[str, list[str]] = field(default_factory=dict)
    notes: Mapping[str, list[str]] = field(default_factory=dict)
    tombstoned: int = 0
    served: int = 0
    sampled: int = 0
    out_of_step: tuple[str, ...] = ()
    repair: bool = False
    repaired: int = 0
    did: Mapping[str, int] = field(default_factory=dict)
    left: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    failures: int = 0
    skipped: Mapping[str, str] = field(default_factory=dict)
    waiting: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def clean(self) -> bool:
        """Was nothing wrong at all?"""
        return not any(self.counts.values())

    @property
    def differs(self) -> bool:
        """Is anything still wrong?"""
        return any(self.left.values()) if self.repair else not self.clean

    @property
    def drift(self) -> int:
        """How many differences there are now."""
        return sum((self.left if self.repair else self.counts).values())

    def flat(self) -> dict[str, int]:
        """Counts by kind, with what was checked: what the ledger keeps."""
        return {
            "checked": self.checked,
            **{kind.value: self.counts.get(kind.value, 0) for kind in KINDS},
        }

    def as_dict(self) -> dict[str, Any]:
        """JSON values. What has nothing to tell is 0 or empty."""
        return {
            "source": self.source,
            **self.flat(),
            "repaired": self.repaired,
            "tombstoned": self.tombstoned,
            "served": self.served,
            "sampled": self.sampled,
            "sources": {name: dict(counts) for name, counts in self.sources.items()},
            "examples": dict(self.examples),
            "notes": dict(self.notes),
            "out_of_step": list(self.out_of_step),
            "did": dict(self.did),
            "left": dict(self.left),
            "failed": dict(self.failed),
            "failures": self.failures,
            "skipped": dict(self.skipped),
            "waiting": dict(self.waiting),
        }

    def sentence(self) -> str:
        """One line for a log or a note."""
        what = self.source or "all sources"
        told = f"{what}: {self.checked} points of {self.documents} documents checked"
        searched = f", {self.sampled} documents searched for" if self.sampled else ""
        if self.clean:
            return f"{told}{searched}, nothing to report."
        parts = [f"{told}{searched}; {words(self.counts)}."]
        if self.repair:
            parts.append(f"Repaired {self.repaired} documents.")
            parts.append(f"Left: {words(self.left)}." if any(self.left.values()) else "Clean now.")
        return " ".join(parts)


def words(counts: Mapping[str, int]) -> str:
    """Counts as words, largest first."""
    ordered = sorted(Counter(counts).items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{n} {kind.replace('_', ' ')}" for kind, n in ordered if n) or "none"
