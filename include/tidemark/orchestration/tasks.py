"""The tasks of an index DAG. Each runs one stage; XCom carries keys and counts.

Heavy imports happen inside the tasks, so that parsing a DAG file stays in milliseconds.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from airflow.sdk import get_current_context, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from tidemark.domain.errors import PermanentError
from tidemark.orchestration.declared import source_asset

log = logging.getLogger(__name__)


@contextmanager
def _final_errors() -> Iterator[None]:
    """An error that will not pass by itself fails the task at once; others are retried by Airflow."""
    try:
        yield
    except PermanentError as error:
        raise AirflowFailException(str(error)) from error


@task
def crawl(source: str) -> dict[str, Any]:
    """List the source and fetch what changed; a backfill lists the ledger's documents instead."""
    from tidemark.orchestration.context import current_run, job_and_tools, workshop
    from tidemark.stages import crawl as stage
    from tidemark.stages.report import begin

    with _final_errors():
        run = current_run(source)
        job, tools = job_and_tools(workshop(), run)
        begin(job, tools, run.trigger, run.note)
        summary = stage.crawl(job, tools)
    log.info("Crawled %s: %s, %.1f s", source, summary.outcomes, summary.seconds)
    if summary.problem:
        log.warning("The listing is incomplete, so nothing will be deleted: %s", summary.problem)
    return asdict(summary)


@task
def plan(source: str) -> list[str]:
    """Decide for each document what to do, and why; returns the keys of the batches of work."""
    from tidemark.orchestration.context import current_run, job_and_site_tools, workshop
    from tidemark.stages.generation import ensure_generation, planned_generation
    from tidemark.stages.job import embed_fingerprint, target
    from tidemark.stages.plan import make_plan
    from tidemark.stages.reconcile import advance, reconcile
    from tidemark.stages.report import totals

    with _final_errors():
        run = current_run(source)
        job, tools = job_and_site_tools(workshop(), run)
        if run.dry_run:
            generation = planned_generation(
                tools.ledger,
                tools.index,
                job.index_name,
                embed_fingerprint(tools.embedder, tools.lexical),
            )
        else:
            generation = ensure_generation(
                tools.ledger,
                tools.index,
                job.index_name,
                tools.embedder,
                tools.lexical,
                tools.clock,
            )
        reconciled = 0 if run.dry_run else reconcile(job, tools, generation)
        planned = make_plan(job, tools, target(job, tools, generation))
        if planned.writes and not run.dry_run:
            advance(tools.ledger, tools.index, source, generation, job.run_id)
    log.info(
        "Plan for %s: %s (reasons: %s)", source, totals(planned.actions), totals(planned.reasons)
    )
    log.info("Ahead: about %d chunks, %.0f s", planned.estimate.chunks, planned.estimate.seconds)
    if reconciled:
        log.warning(
            "%d documents differ between ledger and index, as after a backup was restored. They are looked "
            "at anew: what is missing is written, what nobody knows is removed.",
            reconciled,
        )
    for breach in planned.breaches:
        log.warning("%s", breach.sentence())
    ti = get_current_context()["ti"]
    ti.xcom_push(
        "summary", {**planned.as_dict(), "reconciled": reconciled, "seconds": planned.seconds}
    )
    ti.xcom_push("generation", generation)
    return [] if run.dry_run else list(planned.batches)


def _generation() -> int:
    """The generation that the plan was made for."""
    return int(get_current_context()["ti"].xcom_pull(task_ids="plan", key="generation"))


@task(map_index_template="{{ batch_name }}")
def process(source: str, batch: str) -> dict[str, Any]:
    """Partition, chunk, embed and upsert the documents of one batch."""
    from tidemark.orchestration.context import current_run, job_and_site_tools, workshop
    from tidemark.orchestration.notes import note_task
    from tidemark.stages.job import target
    from tidemark.stages.process import process_batch
    from tidemark.stages.report import batch_sentence

    context = get_current_context()
    context["batch_name"] = batch.rsplit("/", 1)[-1].removesuffix(".jsonl")  # type: ignore[typeddict-unknown-key]
    with _final_errors():
        run = current_run(source)
        shop = workshop()
        job, tools = job_and_site_tools(shop, run)
        with tools.ledger.lock(source, run_id=run.run_id, wait_seconds=shop.settings.lock_timeout):
            done = process_batch(job, tools, target(job, tools, _generation()), batch)
    sentence = batch_sentence(done)
    log.info("%s", sentence)
    ti = context["ti"]
    note_task(run.dag_id, run.airflow_run_id, ti.task_id, ti.map_index or 0, sentence)
    return asdict(done)


@task(trigger_rule="all_done")
def sweep(source: str) -> dict[str, Any]:
    """Remove documents that are gone, with their points and sections; note those seen and missed.

    Also when a batch failed: what that was about waits for the next run, the rest need not.
    """
    from tidemark.orchestration.context import current_run, job_and_site_tools, workshop
    from tidemark.orchestration.reporting import failed_tasks
    from tidemark.stages import sweep as stage

    with _final_errors():
        run = current_run(source)
        if run.dry_run:
            raise AirflowSkipException("A dry run changes nothing.")
        before = failed_tasks(get_current_context()["ti"], run)
        if before - {"process"}:
            raise AirflowSkipException(
                f"There is no plan to carry out: {', '.join(sorted(before))} failed."
            )
        shop = workshop()
        job, tools = job_and_site_tools(shop, run)
        with tools.ledger.lock(source, run_id=run.run_id, wait_seconds=shop.settings.lock_timeout):
            swept = stage.sweep(job, tools, _generation())
    log.info("Swept %s: %s, %d points removed", source, swept.documents, swept.removed_chunks)
    return asdict(swept)


@task
def audit(source: str) -> dict[str, Any]:
    """Compare the ledger with the index: what this run touched, and the source's counts."""
    from tidemark.orchestration.context import current_run, job_and_site_tools, workshop
    from tidemark.stages.report import audit_run, totals

    with _final_errors():
        run = current_run(source)
        job, tools = job_and_site_tools(workshop(), run)
        findings = audit_run(job, tools, _generation())
    log.info("Audited %d points of %s", findings.checked, source)
    if not findings.clean:
        raise AirflowFailException(
            f"The index differs from the ledger: {totals(findings.counts())}. "
            f"Run `tidemark audit {source} --repair`."
        )
    return {"checked": findings.checked}


@task(trigger_rule="all_done")
def report(source: str) -> dict[str, Any]:
    """Write the run's summary, set its note, update the asset; red when a task before it was."""
    from tidemark.orchestration.reporting import report_run

    context = get_current_context()
    with _final_errors():
        summary = report_run(source, context)
    log.info("%s", summary.sentence())
    for line in summary.attention:
        log.warning("%s", line)
    if summary.status != "success":
        raise AirflowFailException(summary.sentence())
    context["outlet_events"][source_asset(source)].extra = json.loads(json.dumps(summary.as_dict()))
    return dict(summary.as_dict())
