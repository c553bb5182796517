"""The full audit of an index, or of one source, with its repair: what the command and the DAG call."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from time import perf_counter
from typing import Any

from tidemark.domain.records import AuditRecord, GenerationStatus
from tidemark.stages.audit.compare import (
    AuditDependencies,
    Compared,
    Comparison,
    Scope,
    scope_of,
)
from tidemark.stages.audit.drift import KINDS, Collection, DocumentName, Drift, Kind, Owner
from tidemark.stages.audit.epochs import epochs_differ
from tidemark.stages.audit.generations import (
    GenerationFindings,
    check_generations,
    repair_generations,
)
from tidemark.stages.audit.repair import Repaired, repair_sources
from tidemark.stages.audit.sample import Sampler, not_found
from tidemark.stages.generations import current_generation, ensure_generation
from tidemark.stages.job import embed_fingerprint

EXAMPLES = 5
"""URIs named of each kind."""


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit has found and what its repair did: for a person, a script, a task, the ledger.

    checked: points of the ledger that were compared, of ``documents`` documents.
    counts: what was found, by kind. sources: the same by source, of those with anything.
    repaired: documents healed. did: what that took. left: what is still wrong, by kind.
    tombstoned: removed documents that have points or sections left.
    served: documents that are wrong in the live generation, from which searches are answered until the one
        that is being built, where they are right, is live; after a repair, those that still are.
    sampled: documents that were searched for.
    examples: the first URIs of each kind.
    notes: of the kinds that are not about documents, what is wrong, in words.
    out_of_step: sources whose stores have different epochs; their next run compares everything anew.
    failed: documents that could not be healed, and why, the first few of ``failures``.
    skipped: sources that were not healed, or not all through, and why.
    waiting: per source the documents that the ledger does not know and whose fate its next run decides.
    seconds: wall.
    """

    source: str | None
    checked: int = 0
    documents: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    repair: bool = False
    repaired: int = 0
    tombstoned: int = 0
    served: int = 0
    sampled: int = 0
    sources: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    examples: Mapping[str, list[str]] = field(default_factory=dict)
    notes: Mapping[str, list[str]] = field(default_factory=dict)
    out_of_step: tuple[str, ...] = ()
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
        values = asdict(self)
        for name in ("checked", "documents", "counts", "repair", "seconds"):
            del values[name]
        values["out_of_step"] = list(self.out_of_step)
        return {"source": values.pop("source"), **self.flat(), **values}

    def sentence(self) -> str:
        """One line for a log or a note."""
        what = self.source or "all sources"
        checked = f"{what}: {self.checked} points of {self.documents} documents checked"
        searched = f", {self.sampled} documents searched for" if self.sampled else ""
        if self.clean:
            return f"{checked}{searched}, nothing to report."
        parts = [f"{checked}{searched}; {words(self.counts)}."]
        if self.repair:
            parts.append(f"Repaired {self.repaired} documents.")
            parts.append(f"Left: {words(self.left)}." if any(self.left.values()) else "Clean now.")
        return " ".join(parts)


def words(counts: Mapping[str, int]) -> str:
    """Counts as words, largest first."""
    ordered = sorted(Counter(counts).items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{n} {kind.replace('_', ' ')}" for kind, n in ordered if n) or "none"


def audit_index(
    deps: AuditDependencies,
    source: str | None = None,
    *,
    repair: bool = False,
    sample: int = 0,
    seed: str = "",
) -> AuditReport:
    """Compare ledger and index, both ways, heal what is asked for, and keep the result in the ledger.

    ``source``: only this one; then the generations as such are not looked at. ``sample``: so many documents
    are searched for, which loads the model; ``seed`` chooses them, the day when it is "".
    """
    started = perf_counter()
    embed = embed_fingerprint(deps.embedder, deps.lexical)
    current = current_generation(deps.ledger, deps.index, deps.index_name, embed)
    sampler = Sampler(sample, seed or f"{deps.clock():%Y-%m-%d}", current)
    with Drift() as drift:
        comparison = Comparison(_scope(deps, current), drift)
        compared = comparison.compare_all(source, sampler.see)
        generations = GenerationFindings()
        if source is None:
            generations = check_generations(deps, compared.models.keys())
        chosen = sampler.chosen()
        missed = not_found(deps, current, chosen)
        for document in missed:
            drift.differs(document, {Kind.NOT_FOUND: 1})
        names = [source] if source is not None else deps.ledger.sources.names()
        report = AuditReport(
            source=source,
            checked=compared.points.total(),
            documents=compared.documents,
            counts=dict(drift.counts() + _counts(generations)),
            sources={name: dict(drift.counts(name)) for name in drift.sources()},
            examples={
                kind.value: uris for kind in KINDS if (uris := drift.examples(kind.value, EXAMPLES))
            },
            notes=_notes(generations),
            tombstoned=drift.count_documents(owner=Owner.TOMBSTONED),
            served=drift.count_documents(owner=Owner.SERVED),
            sampled=len(chosen),
            out_of_step=tuple(
                name for name in names if epochs_differ(deps.ledger, deps.index, name, current)
            ),
        )
        repaired = Repaired()
        if repair:
            did, left = repair_generations(deps, generations, compared.models)
            repaired.did += did
            repaired.left += _counts(left)
            report = _repair(deps, current, drift, missed, report, repaired)
        report = replace(report, seconds=perf_counter() - started)
        _save(deps, report, compared, drift, repaired)
    return report


def _scope(deps: AuditDependencies, current: int | None) -> Scope:
    """The generations that the ledger wants, and the one that the next run writes."""
    wanted = {
        record.number
        for record in deps.ledger.generations.all(deps.index_name)
        if record.status is not GenerationStatus.RETIRED
    }
    if current is not None:
        wanted.add(current)
    scope = scope_of(deps.ledger, deps.index, wanted, deps.index_name)
    return replace(scope, progress=deps.progress)


def _counts(found: GenerationFindings) -> Counter[str]:
    counts = {
        Kind.DEAD_GENERATIONS.value: len(found.dead),
        Kind.LIVE_NAME.value: int(bool(found.alias.problem)),
        Kind.WRONG_MODEL.value: len(found.mixed),
    }
    return +Counter(counts)


def _notes(found: GenerationFindings) -> dict[str, list[str]]:
    lost = {
        collection: [
            f"generation {number} has lost its collection of {collection.value}"
            for number, what in found.incomplete.items()
            if what == collection.value and number not in found.dead
        ]
        for collection in Collection
    }
    notes = {
        Kind.DEAD_GENERATIONS.value: [f"generation {number}" for number in found.dead],
        Kind.LIVE_NAME.value: [found.alias.problem] if found.alias.problem else [],
        Kind.WRONG_MODEL.value: list(found.mixed.values()),
        Kind.MISSING_POINTS.value: lost[Collection.POINTS],
        Kind.MISSING_SECTIONS.value: lost[Collection.SECTIONS],
    }
    return {kind: lines for kind, lines in notes.items() if lines}


def _repair(
    deps: AuditDependencies,
    current: int | None,
    drift: Drift,
    missed: list[DocumentName],
    report: AuditReport,
    repaired: Repaired,
) -> AuditReport:
    if current is None and not deps.index.generations() and drift.count_documents():
        # The index is lost as a whole: it is begun anew, as a run would.
        current = ensure_generation(
            deps.ledger, deps.index, deps.index_name, deps.embedder, deps.lexical, deps.clock
        )
    names = sorted({*drift.sources(to_repair=True), *report.out_of_step})
    repair_sources(deps, _scope(deps, current), drift, current, names, repaired)
    repaired.left[Kind.NOT_FOUND.value] = len(not_found(deps, current, missed))
    served, scope = 0, _scope(deps, current)
    if scope.live not in (None, current):
        # What is wrong in the live generation, a repair that writes another one leaves be.
        with Drift() as left:
            Comparison(scope, left).compare_some(drift.concerned(served=True))
            served = left.count_documents(owner=Owner.SERVED)
            repaired.left += left.counts(served=True)
    return replace(
        report,
        repair=True,
        served=served,
        repaired=repaired.documents.total(),
        did={name: n for name, n in sorted(repaired.did.items()) if n},
        left=dict(+repaired.left),
        failed=repaired.failed,
        failures=repaired.failures,
        skipped=repaired.skipped,
        waiting=dict(+repaired.waiting),
    )


def _save(
    deps: AuditDependencies,
    report: AuditReport,
    compared: Compared,
    drift: Drift,
    repaired: Repaired,
) -> None:
    """One row for each source, and one for all where all were audited."""
    now = deps.clock()
    left: dict[str, int] | None
    for name in sorted({*compared.points, *filter(None, drift.sources()), report.source or ""}):
        if not name:
            continue
        counts = drift.counts(name)
        findings = {kind.value: counts[kind.value] for kind in KINDS}
        if not report.repair:
            left = {kind: n for kind, n in findings.items() if n}
        else:
            # What is left after a repair is not told source by source.
            left = None if any(report.left.values()) else {}
        checked = {"checked": compared.points[name]}
        deps.ledger.generations.save_audit(
            AuditRecord(name, now, {**checked, **findings}, repaired.documents[name], left)
        )
    if report.source is None:
        left = {k: n for k, n in (report.left if report.repair else report.counts).items() if n}
        deps.ledger.generations.save_audit(
            AuditRecord(None, now, report.flat(), report.repaired, left)
        )
