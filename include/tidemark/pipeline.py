"""One run over one source: its steps, in their order, written once.

``crawl → plan → (approve) → process[batch]* → sweep → audit → report``. The command line takes them all in
one process (``run_source``); under Airflow each is a task, and what one leaves for the next travels by XCom.
Each step may be repeated, and may be killed at any moment.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import uuid4

from tidemark.domain.errors import TidemarkError, TransientError
from tidemark.domain.records import DocumentRecord, RunStatus, RunSummary
from tidemark.stages import report as reports
from tidemark.stages.audit.compare import AuditFindings
from tidemark.stages.audit.epochs import begin_epoch, close_epoch, reconcile
from tidemark.stages.crawl import (
    CrawlSummary,
    LedgerSource,
    remember_state,
    with_site_boilerplate,
)
from tidemark.stages.crawl import crawl as crawl_source
from tidemark.stages.generations import ensure_generation, planned_generation
from tidemark.stages.job import Dependencies, Job, embed_fingerprint, target
from tidemark.stages.plan.plan import PlanSummary, make_plan
from tidemark.stages.process.process import BatchSummary, process_batch
from tidemark.stages.sweep import SweepSummary
from tidemark.stages.sweep import sweep as sweep_source
from tidemark.stages.takedown.takedown import block_list, finish_takedowns

FAILED_IN_A_ROW = 2
"""Batches that an outage ends, one after the other, until the rest is not tried any more."""
WITHOUT_BYTES = frozenset({"fetch", "size"})
"""Stages after whose failure there are no bytes in store to try again."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """What the steps of a run left for its report; None for a step that did not end.

    failure: what went wrong, in words. held: a guard was passed, and no person has approved the plan.
    """

    crawl: CrawlSummary | None = None
    plan: PlanSummary | None = None
    batches: Sequence[BatchSummary] = ()
    sweep: SweepSummary | None = None
    audit: AuditFindings | None = None
    failure: str = ""
    held: bool = False


def new_run_id(source: str, deps: Dependencies) -> str:
    """A run id that sorts by time, unique over sources and machines."""
    return f"{source}__cli__{deps.clock():%Y%m%dT%H%M%S}__{uuid4().hex[:8]}"


def run_source(job: Job, deps: Dependencies, trigger: str, note: str = "") -> RunSummary:
    """Run one source from its crawl to its report, holding the source's lock.

    A run that fails is a summary too, with what happened. Raises ``SourceBusyError`` when another run
    holds the lock.
    """
    with deps.ledger.lock(job.source):
        reports.mark_dead_runs_failed(job, deps)
        try:
            return report(job, deps, _steps(job, deps, trigger, note))
        except TidemarkError as error:
            summary = reports.failed(job, str(error))
            with suppress(TidemarkError):  # which may be what this run failed of
                summary = reports.with_pending_generation(job, deps, summary)
            reports.finish(job, deps, summary)
            return summary
        except BaseException as error:
            # Also for Ctrl-C: the ledger must not say for ever that the run is running.
            reports.finish(job, deps, reports.failed(job, str(error) or type(error).__name__))
            raise


def _steps(job: Job, deps: Dependencies, trigger: str, note: str) -> RunResult:
    crawled = crawl(job, deps, trigger, note)
    planned = plan(job, deps)
    if planned.breaches and not job.approved:
        return RunResult(crawled, planned, held=True)
    batches, failure = _process_all(job, deps, planned)
    swept = sweep(job, deps, planned.generation)
    findings = audit(job, deps, planned.generation)
    return RunResult(crawled, planned, batches, swept, findings, failure)


def _process_all(
    job: Job, deps: Dependencies, planned: PlanSummary
) -> tuple[list[BatchSummary], str]:
    """Process all batches; one that an outage ends leaves the others to be tried. What failed, in words."""
    deps.progress.stage("process", planned.work)
    done: list[BatchSummary] = []
    failed = in_a_row = 0
    last = ""
    for key in planned.batches:
        try:
            done.append(process(job, deps, planned.generation, key))
            in_a_row = 0
        except TransientError as error:
            failed, in_a_row, last = failed + 1, in_a_row + 1, str(error)
            if in_a_row == FAILED_IN_A_ROW:
                failed = len(planned.batches) - len(done)
                break
    if not failed:
        return done, ""
    count = len(planned.batches)
    return done, f"{failed} of {count} batches failed; the next run goes on there. {last}"


def crawl(job: Job, deps: Dependencies, trigger: str, note: str = "") -> CrawlSummary:
    """Note that the run has begun, finish what takedowns left, list the source and fetch what changed."""
    reports.begin(job, deps, trigger, note)
    if not job.dry_run and (finished := finish_takedowns(deps.stores, job.source)):
        told = f"It finished the takedown of {', '.join(finished)}."
        reports.begin(job, deps, trigger, f"{note} {told}".strip())
    return crawl_source(with_blocks(job, deps), deps)


def with_blocks(job: Job, deps: Dependencies) -> Job:
    """The job, knowing what was taken down by now."""
    return replace(job, blocks=block_list(deps.ledger, deps.artifacts, job.source))


def plan(job: Job, deps: Dependencies) -> PlanSummary:
    """Decide for each document what to do, and why.

    Applied (no dry run), it makes sure of the generation to write to, finds what a restored store has lost,
    and begins an epoch before anything is written.
    """
    job, deps = with_blocks(job, deps), with_site_boilerplate(job, deps)
    if job.dry_run:
        embed = embed_fingerprint(deps.embedder, deps.lexical)
        generation = planned_generation(deps.ledger, deps.index, job.index_name, embed)
        return replace(make_plan(job, deps, target(job, deps, generation)), generation=generation)
    generation = ensure_generation(
        deps.ledger, deps.index, job.index_name, deps.embedder, deps.lexical, deps.clock
    )
    reconciled = reconcile(job, deps, generation)
    planned = make_plan(job, deps, target(job, deps, generation))
    if planned.writes:
        begin_epoch(deps.ledger, deps.index, job.source, generation, job.run_id)
    return replace(planned, generation=generation, reconciled=reconciled)


def process(job: Job, deps: Dependencies, generation: int, batch: str) -> BatchSummary:
    """Partition, chunk, embed and write the documents of one batch."""
    job, deps = with_blocks(job, deps), with_site_boilerplate(job, deps)
    return process_batch(job, deps, target(job, deps, generation), batch)


def sweep(job: Job, deps: Dependencies, generation: int) -> SweepSummary:
    """Remove documents that are gone, with their points and sections; note those seen and missed.

    What a takedown beside this run could not reach yet goes first.
    """
    finish_takedowns(deps.stores, job.source)
    swept = sweep_source(job, with_site_boilerplate(job, deps), generation)
    close_epoch(job, deps, generation)
    return swept


def audit(job: Job, deps: Dependencies, generation: int) -> AuditFindings:
    """Compare the ledger with the index: what this run touched, and the source's counts."""
    return reports.audit_run(job, deps, generation)


def report(job: Job, deps: Dependencies, result: RunResult) -> RunSummary:
    """Sum the run up, keep the summary, and what the next crawl is to be told if all was applied."""
    summary = _summary(job, deps, result)
    found = f"The audit found differences; run `tidemark audit {job.source} --repair`."
    problems = [result.failure, summary.problem, found if summary.findings else ""]
    if not summary.held and (result.failure or summary.findings):
        problem = " ".join(filter(None, problems))
        summary = replace(summary, status=RunStatus.FAILED.value, problem=problem)
    elif result.crawl is not None and not summary.held and not job.dry_run:
        remember_state(job, deps, result.crawl.state)
    reports.finish(job, deps, summary)
    return summary


def _summary(job: Job, deps: Dependencies, result: RunResult) -> RunSummary:
    if result.crawl is None or result.plan is None:
        return reports.failed(job, "")
    if job.dry_run:
        return reports.planned_only(job, result.crawl, result.plan)
    if result.held:
        return reports.held(job, result.crawl, result.plan)
    swept = result.sweep or SweepSummary()
    summary = reports.summarise(
        job, deps.ledger, result.crawl, result.plan, result.batches, swept, result.audit
    )
    summary = reports.with_quarantine(job, deps.ledger, summary)
    return reports.with_pending_generation(job, deps, summary)


def plan_source(job: Job, deps: Dependencies) -> tuple[RunSummary, PlanSummary]:
    """Crawl and plan; the index and the documents' rows stay as they are."""
    job = replace(job, dry_run=True)
    crawled = crawl_source(with_blocks(job, deps), deps)
    planned = plan(job, deps)
    return reports.planned_only(job, crawled, planned), planned


def from_snapshots(
    job: Job, deps: Dependencies, wanted: Callable[[DocumentRecord], bool]
) -> tuple[Job, Dependencies]:
    """A run over some of the ledger's documents, from stored bytes: nothing is fetched or removed."""
    source = LedgerSource(deps.ledger, job.source, wanted, deps.source.fingerprint)
    return replace(job, detect_boilerplate=False), replace(deps, source=source)


def backfill(
    job: Job, deps: Dependencies, start: datetime, end: datetime
) -> tuple[Job, Dependencies]:
    """A run over the documents whose live version was first fetched in [start, end)."""
    return from_snapshots(job, deps, lambda record: start <= record.fetched_at < end)


def can_retry(record: DocumentRecord) -> bool:
    """Are there bytes in store to try again? Else the next crawl fetches them."""
    return record.failure is not None and record.failure.stage not in WITHOUT_BYTES


def retry(job: Job, deps: Dependencies, records: Sequence[DocumentRecord]) -> RunSummary:
    """Run a source over some of its documents in quarantine alone, whatever they failed under.

    Raises ``SourceBusyError`` when another run holds the source.
    """
    wanted = {record.document_id for record in records}
    deps.ledger.writes.requeue(list(wanted))
    # How many there are in quarantine is what the source's own runs are judged by.
    guards = replace(job.guards, quarantined_percent=100.0, quarantined_documents=None)
    job, deps = from_snapshots(job, deps, lambda record: record.document_id in wanted)
    return run_source(replace(job, guards=guards), deps, "retry")
