"""One whole run in this process: the same stages as the DAG, without a scheduler."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from uuid import uuid4

from tidemark.domain.decide import Target
from tidemark.domain.errors import TidemarkError, TransientError
from tidemark.domain.records import DocumentRecord, RunStatus
from tidemark.domain.summary import RunSummary
from tidemark.stages.audit.reconcile import advance, reconcile
from tidemark.stages.crawl import crawl, remember_state, with_site_boilerplate
from tidemark.stages.generations import ensure_generation, planned_generation
from tidemark.stages.job import Dependencies, Job, embed_fingerprint, target
from tidemark.stages.plan.backfill import LedgerSource
from tidemark.stages.plan.plan import PlanSummary, make_plan
from tidemark.stages.process.process import BatchSummary, process_batch
from tidemark.stages.report import (
    audit_run,
    begin,
    finish,
    held,
    mark_dead_runs_failed,
    planned_only,
    summarise,
    with_quarantine,
    with_takedowns,
    with_waiting,
)
from tidemark.stages.sweep.sweep import sweep

FAILED_IN_A_ROW = 2
"""Batches that an outage ends, one after the other, until the rest is not tried any more."""


def new_run_id(source: str, deps: Dependencies) -> str:
    """A run id that sorts by time, unique over sources and machines."""
    return f"{source}__cli__{deps.clock():%Y%m%dT%H%M%S}__{uuid4().hex[:8]}"


def plan_source(job: Job, deps: Dependencies) -> tuple[RunSummary, PlanSummary]:
    """Crawl and plan; the index and the documents' rows stay as they are."""
    job = replace(job, dry_run=True)
    crawled = crawl(job, deps)
    deps = with_site_boilerplate(job, deps)
    embed = embed_fingerprint(deps.embedder, deps.lexical)
    generation = planned_generation(deps.ledger, deps.index, job.index_name, embed)
    plan = make_plan(job, deps, target(job, deps, generation))
    return planned_only(job, crawled, plan), plan


def run_source(job: Job, deps: Dependencies, trigger: str, note: str = "") -> RunSummary:
    """Run one source from its crawl to its report, holding the source's lock.

    A run that fails is a summary too, with what happened. Raises ``SourceBusyError`` when another run
    holds the lock.
    """
    with deps.ledger.lock(job.source):
        mark_dead_runs_failed(job, deps)
        begin(job, deps, trigger, note)
        try:
            summary = _stages(job, deps)
        except TidemarkError as error:
            summary = _failed(job, error)
            with suppress(TidemarkError):  # which may be what this run failed of
                summary = with_waiting(job, deps, summary)
        except BaseException as error:
            # Also for Ctrl-C: the ledger must not say for ever that the run is running.
            finish(job, deps, _failed(job, error))
            raise
        finish(job, deps, summary)
    return summary


def _failed(job: Job, error: BaseException) -> RunSummary:
    return RunSummary(
        job.source,
        job.run_id,
        RunStatus.FAILED.value,
        complete=False,
        problem=str(error) or type(error).__name__,
    )


def _stages(job: Job, deps: Dependencies) -> RunSummary:
    crawled = crawl(job, deps)
    deps = with_site_boilerplate(job, deps)
    generation = ensure_generation(
        deps.ledger, deps.index, job.index_name, deps.embedder, deps.lexical, deps.clock
    )
    reconciled = reconcile(job, deps, generation)
    goal = target(job, deps, generation)
    plan = replace(make_plan(job, deps, goal), reconciled=reconciled)
    if plan.breaches and not job.approved:
        return held(job, crawled, plan)
    if plan.writes:
        advance(deps.ledger, deps.index, job.source, generation, job.run_id)
    work = sum(plan.actions.get(action, 0) for action in ("add", "update", "restore"))
    deps.progress.stage("process", work)
    batches, failure = _process(job, deps, goal, plan.batches)
    swept = sweep(job, deps, generation)
    findings = audit_run(job, deps, generation)
    summary = summarise(job, deps.ledger, crawled, plan, batches, swept, findings)
    summary = with_quarantine(job, deps.ledger, summary)
    summary = with_takedowns(job, deps.artifacts, summary)
    summary = with_waiting(job, deps, summary)
    if failure or summary.findings:
        found = f"The audit found differences; run `tidemark audit {job.source} --repair`."
        told = (failure, summary.problem, found if summary.findings else "")
        problem = " ".join(filter(None, told))
        return replace(summary, status=RunStatus.FAILED.value, problem=problem)
    remember_state(job, deps, crawled.state)
    return summary


def _process(
    job: Job, deps: Dependencies, goal: Target, keys: Sequence[str]
) -> tuple[list[BatchSummary], str]:
    """Process all batches; one that an outage ends leaves the others to be tried. What failed, in words."""
    done: list[BatchSummary] = []
    failed = in_a_row = 0
    last = ""
    for key in keys:
        try:
            done.append(process_batch(job, deps, goal, key))
            in_a_row = 0
        except TransientError as error:
            failed, in_a_row, last = failed + 1, in_a_row + 1, str(error)
            if in_a_row == FAILED_IN_A_ROW:
                failed = len(keys) - len(done)
                break
    if not failed:
        return done, ""
    return done, f"{failed} of {len(keys)} batches failed; the next run goes on there. {last}"


# Retry: documents in quarantine are tried again from their stored bytes, whatever they failed under.

WITHOUT_BYTES = frozenset({"fetch", "size"})
"""Stages after whose failure there are no bytes in store."""


def can_retry(record: DocumentRecord) -> bool:
    """Are there bytes in store to try again? Else the next crawl fetches them."""
    return record.failure is not None and record.failure.stage not in WITHOUT_BYTES


def retry(job: Job, deps: Dependencies, records: Sequence[DocumentRecord]) -> RunSummary:
    """Run a source over some of its documents in quarantine alone; nothing is fetched or removed.

    Raises ``SourceBusyError`` when another run holds the source.
    """
    wanted = {record.document_id for record in records}
    deps.ledger.release(list(wanted))
    source = LedgerSource(
        deps.ledger,
        job.source,
        lambda record: record.document_id in wanted,
        deps.source.fingerprint,
    )
    # How many there are in quarantine is what the source's own runs are judged by.
    guards = replace(job.guards, quarantined_percent=100.0, quarantined_documents=None)
    job = replace(job, detect_boilerplate=False, guards=guards)
    return run_source(job, replace(deps, source=source), "retry")
