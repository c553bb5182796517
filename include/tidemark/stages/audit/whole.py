"""The audit of an index as a whole, or of one source, with its repair: what the commands and the DAG call."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from time import perf_counter

from tidemark.domain.records import AuditRecord, GenerationStatus
from tidemark.stages.audit.compare import Seen, compare_all, compare_some
from tidemark.stages.audit.drift import KINDS, Drift, Kind, Named, What
from tidemark.stages.audit.findable import Findable, search_for
from tidemark.stages.audit.generations import (
    GenerationFindings,
    look_at_generations,
    repair_generations,
)
from tidemark.stages.audit.given import AuditDependencies
from tidemark.stages.audit.repair import Repaired, out_of_step, repair_sources
from tidemark.stages.audit.report import AuditReport
from tidemark.stages.audit.sampling import Sampled, Sampler
from tidemark.stages.audit.scope import Scope, scope_of
from tidemark.stages.generations import current_generation, ensure_generation
from tidemark.stages.job import embed_fingerprint

EXAMPLES = 5
"""URIs named of each kind."""


@dataclass(frozen=True, slots=True)
class _Found:
    """What one look at everything has found, beside the drift of documents."""

    seen: Seen
    generations: GenerationFindings
    findable: Findable


def audit_index(
    given: AuditDependencies,
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
    embed = embed_fingerprint(given.embedder, given.lexical)
    current = current_generation(given.ledger, given.index, given.index_name, embed)
    scope = _scope(given, current)
    sampler = Sampler(sample, seed or f"{given.clock():%Y-%m-%d}", current)
    with Drift() as drift:
        seen = compare_all(scope, source, drift, sampler)
        generations = GenerationFindings()
        if source is None:
            generations = look_at_generations(
                given.ledger, given.index, given.index_name, embed,
                seen.models.keys(), given.settle_seconds,
            )  # fmt: skip
        findable = _search(given, current, sampler.chosen())
        for missed in findable.missed:
            drift.differs(Named(missed.document_id, missed.source, missed.uri), {Kind.NOT_FOUND: 1})
        found = _Found(seen, generations, findable)
        report = _report(given, source, current, drift, found)
        repaired = Repaired()
        if repair:
            report, repaired = _repair(given, current, drift, found, report)
        report = replace(report, seconds=perf_counter() - started)
        _keep(given, report, seen, drift, repaired)
    return report


def audited_generations(given: AuditDependencies, current: int | None) -> set[int]:
    """Those that the ledger wants, and the one that the next run writes."""
    wanted = {
        record.number
        for record in given.ledger.generations.all(given.index_name)
        if record.status is not GenerationStatus.RETIRED
    }
    return wanted if current is None else wanted | {current}


def _scope(given: AuditDependencies, current: int | None) -> Scope:
    wanted = audited_generations(given, current)
    scope = scope_of(given.ledger, given.index, wanted, given.index_name)
    return replace(scope, progress=given.progress)


def _search(
    given: AuditDependencies, generation: int | None, sample: Iterable[Sampled]
) -> Findable:
    if generation is None:
        return Findable()
    return search_for(given.ledger, given.index, generation, given.embedder, given.lexical, sample)


def _report(
    given: AuditDependencies, source: str | None, current: int | None, drift: Drift, found: _Found
) -> AuditReport:
    counts = drift.counts() + _of_generations(found.generations)
    names = [source] if source is not None else given.ledger.sources.names()
    return AuditReport(
        source=source,
        checked=found.seen.checked,
        documents=found.seen.documents,
        counts=dict(counts),
        sources={name: dict(drift.counts(name)) for name in drift.sources()},
        examples={
            kind.value: uris for kind in KINDS if (uris := drift.examples(kind.value, EXAMPLES))
        },
        notes=_notes(found.generations),
        tombstoned=drift.tombstoned(),
        served=drift.count_served(),
        sampled=found.findable.sampled,
        out_of_step=tuple(name for name in names if out_of_step(given, name, current)),
    )


def _of_generations(found: GenerationFindings) -> Counter[str]:
    counts = {
        Kind.DEAD_GENERATIONS.value: len(found.dead),
        Kind.LIVE_NAME.value: int(bool(found.live_name)),
        Kind.WRONG_MODEL.value: len(found.mixed),
    }
    return Counter({kind: n for kind, n in counts.items() if n})


def _notes(found: GenerationFindings) -> dict[str, list[str]]:
    notes = {
        Kind.DEAD_GENERATIONS.value: [f"generation {number}" for number in found.dead],
        Kind.LIVE_NAME.value: [found.live_name] if found.live_name else [],
        Kind.WRONG_MODEL.value: list(found.mixed.values()),
        Kind.MISSING_POINTS.value: _lost(found, What.POINTS),
        Kind.MISSING_SECTIONS.value: _lost(found, What.SECTIONS),
    }
    return {kind: told for kind, told in notes.items() if told}


def _lost(found: GenerationFindings, what: What) -> list[str]:
    return [
        f"generation {number} has lost its collection of {lost}"
        for number, lost in found.incomplete.items()
        if lost == what.value and number not in found.dead
    ]


def _repair(
    given: AuditDependencies, current: int | None, drift: Drift, found: _Found, report: AuditReport
) -> tuple[AuditReport, Repaired]:
    did, left = repair_generations(
        given.ledger, given.index, given.index_name, found.generations, found.seen.models,
        embed_fingerprint(given.embedder, given.lexical),
    )  # fmt: skip
    if current is None and not given.index.generations() and drift.count():
        # The index is lost as a whole: it is begun anew, as a run would.
        current = ensure_generation(
            given.ledger, given.index, given.index_name, given.embedder, given.lexical, given.clock
        )
    names = sorted({*drift.to_repair(), *report.out_of_step})
    repaired = repair_sources(given, _scope(given, current), drift, current, names)
    again = _search(given, current, found.findable.missed)
    served, kinds = _served_wrong(_scope(given, current), drift, current)
    remaining = Counter({**repaired.left, Kind.NOT_FOUND.value: len(again.missed)}) + kinds
    return replace(
        report,
        repair=True,
        served=served,
        repaired=repaired.documents.total(),
        did={name: n for name, n in sorted((repaired.did + did).items()) if n},
        left=dict(+(remaining + _of_generations(left))),
        failed=repaired.failed,
        failures=repaired.failures,
        skipped=repaired.skipped,
        waiting=dict(+repaired.waiting),
    ), repaired


def _served_wrong(scope: Scope, drift: Drift, current: int | None) -> tuple[int, Counter[str]]:
    """What of the findings is wrong in the live generation, which a repair that writes another leaves be."""
    if scope.live in (None, current):
        return 0, Counter()
    with Drift() as left:
        compare_some(scope, {*drift.served_documents(), *drift.concerned()}, left)
        return left.count_served(), left.served()


def _keep(
    given: AuditDependencies, report: AuditReport, seen: Seen, drift: Drift, repaired: Repaired
) -> None:
    """One row for each source, and one for all where all were audited."""
    now = given.clock()
    names = {*seen.points, *filter(None, drift.sources())}
    if report.source is not None:
        names.add(report.source)
    for name in sorted(names):
        counts = drift.counts(name)
        findings = {"checked": seen.points[name], **{kind.value: counts[kind] for kind in KINDS}}
        # What is left after a repair is not told source by source.
        left = {k: n for k, n in findings.items() if n and k != "checked"}
        unknown = report.repair and any(report.left.values())
        told = None if unknown else {} if report.repair else left
        given.ledger.generations.save_audit(
            AuditRecord(name, now, findings, repaired.documents[name], told)
        )
    if report.source is None:
        left = {k: n for k, n in (report.left if report.repair else report.counts).items() if n}
        given.ledger.generations.save_audit(
            AuditRecord(None, now, report.flat(), report.repaired, left)
        )
