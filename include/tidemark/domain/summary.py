"""What a run did, in a form a person, a DAG and a table can all read."""

from dataclasses import dataclass, field

from tidemark.domain.hashing import Canonical, as_json


@dataclass(frozen=True, slots=True)
class ChunkCounts:
    """Points written, left and deleted. ``embedded`` counts the texts the model was given."""

    embedded: int = 0
    kept: int = 0
    removed: int = 0

    def __add__(self, other: "ChunkCounts") -> "ChunkCounts":
        return ChunkCounts(
            self.embedded + other.embedded, self.kept + other.kept, self.removed + other.removed
        )


CHANGING = ("add", "update", "metadata", "restore", "remove")
"""Actions that change the index."""

TROUBLES = (
    "quarantined", "unreachable", "missing", "soft_404", "login_wall", "consent_wall", "parked",
    "needs_javascript", "shrunk", "repeated_text",
)  # fmt: skip
"""Reasons for which an unchanged document is not simply well."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The summary of one run over one source.

    documents, reasons: how many by action and by reason.
    seconds: wall seconds by stage.
    work: what the stages were asked to do (fetched, partitioned, chunked, embedded).
    complete, problem: whether the listing was complete, and why not.
    findings: the audit's, by kind; empty when clean.
    attention: URIs with what is wrong with them, the first few.
    guards: the guards that were passed, in words.
    reconciled: documents that differed between ledger and index (a store was restored, or lost something).
    quarantined: documents in quarantine when the run ended, ``too_many`` what is said of them when they are
        too many.
    held: it was planned and not applied, because a person must approve it first.
    waiting: what a new generation waits for until it goes live, and the hint; "" when there is none.
    """

    source: str
    run_id: str
    status: str
    documents: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    chunks: ChunkCounts = ChunkCounts()
    seconds: dict[str, float] = field(default_factory=dict)
    work: dict[str, int] = field(default_factory=dict)
    complete: bool = True
    problem: str = ""
    findings: dict[str, int] = field(default_factory=dict)
    attention: tuple[str, ...] = ()
    dry_run: bool = False
    guards: tuple[str, ...] = ()
    held: bool = False
    reconciled: int = 0
    quarantined: int = 0
    too_many: str = ""
    waiting: str = ""

    @property
    def changed(self) -> bool:
        """Did the run change the index?"""
        return any(self.documents.get(action) for action in CHANGING) or bool(
            self.chunks.embedded or self.chunks.removed
        )

    def as_dict(self) -> dict[str, Canonical]:
        return {
            **as_json(self),
            "seconds": {stage: round(s, 3) for stage, s in self.seconds.items()},
        }

    def sentence(self) -> str:
        """One line for a log or a note."""
        healed = ""
        if self.reconciled:
            healed = (
                f" {self.reconciled} documents differed between ledger and index, as after a backup was "
                "restored; they were looked at anew."
            )
        waiting = ""
        if self.quarantined and not self.too_many and not self.held and not self.dry_run:
            waiting = f"Warning: {self.quarantined} in quarantine (`tidemark quarantine`)."
        more = "".join(f" {told}" for told in (self.too_many, waiting, self.waiting) if told)
        return f"{self._done()}{healed}{more}"

    def _done(self) -> str:
        if self.held:
            return f"{self.source}: not applied. {' '.join(self.guards)}"
        if self.status == "failed" and not self.documents:
            return f"{self.source}: failed. {self.problem}"
        if self.dry_run:
            counts = ", ".join(f"{n} {action}" for action, n in sorted(self.documents.items()))
            asked = f" A person must approve: {' '.join(self.guards)}" if self.guards else ""
            return f"{self.source}: dry run; the plan is {counts or 'empty'}.{asked}"
        total = sum(self.seconds.values())
        if not self.changed and not self.problem and not self.documents.get("quarantine"):
            kept = self.documents.get("keep", 0) + self.documents.get("miss", 0)
            troubled = [f"{n} {r}" for r in TROUBLES if (n := self.reasons.get(r))]
            also = f", of which {', '.join(troubled)}" if troubled else ""
            return (
                f"{self.source}: nothing changed ({kept} documents checked{also}, {total:.1f} s)."
            )
        counts = ", ".join(f"{n} {action}" for action, n in sorted(self.documents.items()))
        line = (
            f"{self.source}: {counts or 'no documents'}; {self.chunks.embedded} chunks embedded, "
            f"{self.chunks.kept} kept, {self.chunks.removed} removed; {total:.1f} s."
        )
        return f"{line} Incomplete: {self.problem}" if self.problem else line


def add_seconds(total: dict[str, float], part: dict[str, float]) -> dict[str, float]:
    """Add up seconds by stage."""
    return {k: total.get(k, 0.0) + part.get(k, 0.0) for k in [*total, *(set(part) - set(total))]}
