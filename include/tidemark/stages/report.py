"""Report: what the run did, from the ledger and from what the stages measured."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from tidemark.domain.decide import ANOMALIES, Action, Reason
from tidemark.domain.guards import too_many_quarantined
from tidemark.domain.records import ChunkCounts, RunRecord, RunStatus, RunSummary, add_seconds
from tidemark.ports.ledger import Ledger
from tidemark.stages.audit.compare import AuditFindings, compare_source, counts_agree, undecided
from tidemark.stages.crawl import CrawlSummary
from tidemark.stages.generations import pending_generation
from tidemark.stages.job import Dependencies, Job, embed_fingerprint
from tidemark.stages.plan.plan import PlanSummary
from tidemark.stages.process.process import BatchSummary
from tidemark.stages.sweep import COUNTED_ONLY, SweepSummary

ATTENTION = 20
"""Documents named in a summary; the ledger has them all."""

_NEEDS_ATTENTION = {
    (Action.KEEP, Reason.QUARANTINED),
    (Action.KEEP, Reason.UNREACHABLE),
    (Action.SKIP, Reason.UNREACHABLE),
    (Action.QUARANTINE, Reason.FAILED),
    (Action.MISS, Reason.MISSING),
    (Action.KEEP, Reason.TAKEN_DOWN),
    (Action.REMOVE, Reason.TAKEN_DOWN),
    *((action, reason) for action in (Action.KEEP, Action.SKIP) for reason in ANOMALIES),
}
_DEAD_LINK = (Action.SKIP, Reason.GONE)
DEAD_LINKS = 3
"""Links to nothing are the site's to mend: a few are named, after all that is more pressing."""
BLOCKED = 3
"""What was taken down and is still at its source is no news: a few are named."""
_WRITTEN = {Action.METADATA.value, Action.ADD.value, Action.RESTORE.value}


def begin(job: Job, deps: Dependencies, trigger: str, note: str = "") -> None:
    """Write down that the run has begun. One that is run again begins again: it crawls again."""
    now = deps.clock()
    deps.ledger.runs.save(
        RunRecord(job.run_id, job.source, trigger, RunStatus.RUNNING, now, None, note, None)
    )


def mark_dead_runs_failed(job: Job, deps: Dependencies) -> None:
    """Finish what is said to be running: to be called under the source's lock, which none of them has.

    Runs of Airflow, which hold it from task to task only, are left to their own reports.
    """
    for run in deps.ledger.runs.running():
        if run.source == job.source and not run.trigger.startswith("airflow"):
            now = deps.clock()
            note = f"{run.note} It was killed.".strip()
            deps.ledger.runs.save(replace(run, status=RunStatus.FAILED, finished_at=now, note=note))


def audit_run(job: Job, deps: Dependencies, generation: int) -> AuditFindings:
    """The audit of every run: what it touched, exactly, and the source's counts.

    Only when the counts disagree is the whole source compared.
    """
    if not counts_agree(deps.ledger, deps.index, generation, job.source):
        left_out = undecided(deps.ledger, job.source)
        return compare_source(deps.ledger, deps.index, generation, job.source, undecided=left_out)
    touched = (
        event.document_id
        for event in deps.ledger.runs.events(job.run_id)
        if event.chunks_added or event.chunks_removed or event.action in _WRITTEN
    )
    return compare_source(deps.ledger, deps.index, generation, job.source, touched)


def summarise(
    job: Job,
    ledger: Ledger,
    crawled: CrawlSummary,
    plan: PlanSummary,
    batches: Iterable[BatchSummary],
    swept: SweepSummary | None,
    findings: AuditFindings | None,
) -> RunSummary:
    """Add up a run. Documents and chunks come from the ledger, so a retried batch counts once."""
    seconds: dict[str, float] = {"crawl": crawled.seconds, "plan": plan.seconds}
    work: Counter[str] = Counter({"fetch": crawled.outcomes.get("fetched", 0)})
    for batch in batches:
        seconds = add_seconds(seconds, dict(batch.seconds))
        work.update(batch.work)
    if swept is not None:
        seconds["sweep"] = swept.seconds
    return replace(
        from_ledger(job, ledger, plan),
        seconds=seconds,
        work={name: work.get(name, 0) for name in ("fetch", "partition", "chunk", "embed")},
        complete=crawled.complete,
        problem=crawled.problem,
        findings={} if findings is None or findings.clean else dict(findings.counts),
        dry_run=swept is None,
        guards=tuple(breach.sentence() for breach in plan.breaches),
        reconciled=plan.reconciled,
    )


def with_quarantine(job: Job, ledger: Ledger, summary: RunSummary) -> RunSummary:
    """Add how many documents are in quarantine; a run that leaves too many there has failed."""
    counts = ledger.documents.counts(job.source)
    if not counts.quarantined:
        return summary
    too_many = too_many_quarantined(counts.quarantined, counts.documents, job.guards)
    status = RunStatus.FAILED.value if too_many else summary.status
    return replace(summary, quarantined=counts.quarantined, too_many=too_many, status=status)


def with_pending_generation(job: Job, deps: Dependencies, summary: RunSummary) -> RunSummary:
    """Add what a new generation waits for, while there is one, and what a lost index still lacks."""
    embed = embed_fingerprint(deps.embedder, deps.lexical)
    found = pending_generation(
        deps.ledger,
        deps.index,
        job.index_name,
        embed,
        job.declared,
        job.disabled,
        deps.clock,
        job.source,
        doubtful=summary.reconciled > 0 or summary.status == RunStatus.FAILED.value,
    )
    return replace(summary, waiting=found.sentence()) if found else summary


def from_ledger(job: Job, ledger: Ledger, plan: PlanSummary) -> RunSummary:
    """What happened to each document: the run's events, and the plan for those left unchanged."""
    documents: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    chunks = ChunkCounts()
    attention: list[str] = []
    dead: list[str] = []
    blocked: list[str] = []
    dead_links = 0
    for event in ledger.runs.events(job.run_id):
        documents[event.action] += 1
        reasons[event.reason] += 1
        chunks += ChunkCounts(event.chunks_added, event.chunks_kept, event.chunks_removed)
        pair = (Action(event.action), Reason(event.reason))
        # What failed is named once.
        detail = event.detail.replace(event.uri, "it")
        told = f"{event.uri}: {event.action} ({event.reason}) {detail}".strip()
        if pair == _DEAD_LINK:
            dead_links += 1
            if len(dead) < DEAD_LINKS:
                dead.append(told)
        elif pair == (Action.SKIP, Reason.TAKEN_DOWN):
            if len(blocked) < BLOCKED:
                blocked.append(told)
        elif pair in _NEEDS_ATTENTION and len(attention) < ATTENTION:
            attention.append(told)
    for reason in COUNTED_ONLY:
        if count := plan.reasons.get(reason.value, 0):
            documents[Action.KEEP.value] += count
            reasons[reason.value] += count
    return RunSummary(
        source=job.source,
        run_id=job.run_id,
        status=RunStatus.SUCCESS.value,
        documents=dict(documents),
        reasons=dict(reasons),
        chunks=chunks,
        attention=(*attention, *blocked, *dead, *_more_dead_links(dead_links - len(dead))),
    )


def _more_dead_links(count: int) -> list[str]:
    return [f"{count} more links lead nowhere; `tidemark plan` names them all"] if count else []


def planned_only(job: Job, crawled: CrawlSummary, plan: PlanSummary) -> RunSummary:
    """The summary of a dry run: the plan, nothing done."""
    return RunSummary(
        source=job.source,
        run_id=job.run_id,
        status=RunStatus.SUCCESS.value,
        documents=dict(plan.actions),
        reasons=dict(plan.reasons),
        seconds={"crawl": crawled.seconds, "plan": plan.seconds},
        work={"fetch": crawled.outcomes.get("fetched", 0)},
        complete=plan.complete,
        problem=plan.problem,
        dry_run=True,
        guards=tuple(breach.sentence() for breach in plan.breaches),
    )


def failed(job: Job, problem: str) -> RunSummary:
    """The summary of a run of which nothing is known but that it failed, and why."""
    status = RunStatus.FAILED.value
    return RunSummary(job.source, job.run_id, status, complete=False, problem=problem)


def held(job: Job, crawled: CrawlSummary, plan: PlanSummary) -> RunSummary:
    """The summary of a run that waits for a person: planned, nothing done."""
    return replace(
        planned_only(job, crawled, plan),
        status=RunStatus.FAILED.value,
        dry_run=False,
        problem="It was not applied, for a person must approve it.",
        held=True,
    )


def finish(job: Job, deps: Dependencies, summary: RunSummary) -> None:
    """Write down how the run ended."""
    before = deps.ledger.runs.get(job.run_id)
    now = deps.clock()
    deps.ledger.runs.save(
        RunRecord(
            job.run_id,
            job.source,
            before.trigger if before else "",
            RunStatus(summary.status),
            before.started_at if before else now,
            now,
            before.note if before else "",
            json.dumps(summary.as_dict(), sort_keys=True),
        )
    )


def totals(counts: Mapping[str, int]) -> str:
    """Counts as words, largest first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {name}" for name, count in ordered) or "none"


def batch_sentence(done: BatchSummary) -> str:
    """What one batch did, stage by stage, in a line."""
    stages = ", ".join(
        f"{stage} {done.work.get(stage, 0)} ({seconds:.1f} s)"
        for stage, seconds in done.seconds.items()
    )
    return (
        f"Documents: {totals(done.documents)}. Chunks: {done.chunks.embedded} embedded, "
        f"{done.chunks.kept} kept, {done.chunks.removed} removed. "
        f"Stages: {stages or 'none'}."
    )
