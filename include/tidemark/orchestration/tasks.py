"""The tasks of an index DAG. Each takes one step of ``tidemark.pipeline``; XCom carries keys and counts.

The pipeline is imported inside the tasks, so that parsing a DAG file stays in milliseconds.
"""

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Context, get_current_context, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from tidemark.domain.errors import PermanentError
from tidemark.domain.guards import Breach
from tidemark.orchestration.dags import source_asset

if TYPE_CHECKING:
    from tidemark.orchestration.context import RunContext
    from tidemark.pipeline import RunResult
    from tidemark.stages.job import Dependencies, Job

log = logging.getLogger(__name__)

MAPPED = re.compile(r"_\d+$")
"""What Airflow puts after the name of a mapped task."""


@contextmanager
def _run(source: str, *, locked: bool = False) -> "Iterator[tuple[RunContext, Job, Dependencies]]":
    """The running DAG run and what its steps are given, under the source's lock where that is asked for.

    An error that will not pass by itself fails the task at once; others are retried by Airflow.
    """
    from tidemark.orchestration.context import current_run, job_and_deps, open_container

    try:
        run = current_run(source)
        container = open_container()
        job, deps = job_and_deps(container, run)
        if not locked:
            yield run, job, deps
            return
        wait = container.settings.lock_timeout
        with deps.ledger.lock(source, run_id=run.run_id, wait_seconds=wait):
            yield run, job, deps
    except PermanentError as error:
        raise AirflowFailException(str(error)) from error


@task
def crawl(source: str) -> dict[str, Any]:
    """List the source and fetch what changed; a backfill lists the ledger's documents instead."""
    from tidemark import pipeline

    with _run(source) as (run, job, deps):
        summary = pipeline.crawl(job, deps, run.trigger, run.note)
    log.info("Crawled %s: %s, %.1f s", source, summary.outcomes, summary.seconds)
    if summary.problem:
        log.warning("The listing is incomplete, so nothing will be deleted: %s", summary.problem)
    return asdict(summary)


@task
def plan(source: str) -> list[str]:
    """Decide for each document what to do, and why; returns the keys of the batches of work."""
    from tidemark import pipeline
    from tidemark.stages.report import totals

    with _run(source) as (run, job, deps):
        planned = pipeline.plan(job, deps)
    log.info(
        "Plan for %s: %s (reasons: %s)", source, totals(planned.actions), totals(planned.reasons)
    )
    log.info("Ahead: about %d chunks, %.0f s", planned.estimate.chunks, planned.estimate.seconds)
    if planned.reconciled:
        log.warning(
            "%d documents differ between ledger and index, as after a backup was restored. They are looked "
            "at anew: what is missing is written, what nobody knows is removed.",
            planned.reconciled,
        )
    for breach in planned.breaches:
        log.warning("%s", breach.sentence())
    ti = get_current_context()["ti"]
    ti.xcom_push("summary", {**planned.as_dict(), "seconds": planned.seconds})
    ti.xcom_push("generation", planned.generation)
    return [] if run.dry_run else list(planned.batches)


def _generation() -> int:
    """The generation that the plan was made for."""
    return int(get_current_context()["ti"].xcom_pull(task_ids="plan", key="generation"))


@task(map_index_template="{{ batch_name }}")
def process(source: str, batch: str) -> dict[str, Any]:
    """Partition, chunk, embed and upsert the documents of one batch."""
    from tidemark import pipeline
    from tidemark.orchestration.context import note_task
    from tidemark.stages.report import batch_sentence

    context = get_current_context()
    context["batch_name"] = batch.rsplit("/", 1)[-1].removesuffix(".jsonl")  # type: ignore[typeddict-unknown-key]
    with _run(source, locked=True) as (run, job, deps):
        done = pipeline.process(job, deps, _generation(), batch)
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
    from tidemark import pipeline
    from tidemark.orchestration.context import current_run

    run = current_run(source)
    if run.dry_run:
        raise AirflowSkipException("A dry run changes nothing.")
    failed = failed_tasks(get_current_context()["ti"], run) - {"process"}
    if failed:
        raise AirflowSkipException(
            f"There is no plan to carry out: {', '.join(sorted(failed))} failed."
        )
    with _run(source, locked=True) as (_, job, deps):
        swept = pipeline.sweep(job, deps, _generation())
    log.info("Swept %s: %s, %d points removed", source, swept.documents, swept.removed_chunks)
    return asdict(swept)


@task
def audit(source: str) -> dict[str, Any]:
    """Compare the ledger with the index: what this run touched, and the source's counts."""
    from tidemark import pipeline
    from tidemark.stages.report import totals

    with _run(source) as (_, job, deps):
        findings = pipeline.audit(job, deps, _generation())
    log.info("Audited %d points of %s", findings.checked, source)
    if not findings.clean:
        raise AirflowFailException(
            f"The index differs from the ledger: {totals(findings.counts)}. "
            f"Run `tidemark audit {source} --repair`."
        )
    return {"checked": findings.checked}


@task(trigger_rule="all_done")
def report(source: str) -> dict[str, Any]:
    """Write the run's summary, set its note, update the asset; red when a task before it was."""
    from tidemark import pipeline
    from tidemark.orchestration.context import note_run

    context = get_current_context()
    with _run(source) as (run, job, deps):
        summary = pipeline.report(job, deps, run_result(context["ti"], run))
        sentence = summary.sentence()
        text = f"{run.note}\n\n{sentence}" if run.note else sentence
        note_run(run.dag_id, run.airflow_run_id, text)
    log.info("%s", sentence)
    for line in summary.attention:
        log.warning("%s", line)
    if summary.status != "success":
        raise AirflowFailException(sentence)
    context["outlet_events"][source_asset(source)].extra = json.loads(json.dumps(summary.as_dict()))
    return dict(summary.as_dict())


def run_result(ti: Any, run: "RunContext") -> "RunResult":
    """What the tasks of a DAG run left behind."""
    from tidemark.domain.records import ChunkCounts
    from tidemark.pipeline import RunResult
    from tidemark.stages.crawl import CrawlSummary
    from tidemark.stages.plan.plan import PlanSummary
    from tidemark.stages.process.process import BatchSummary
    from tidemark.stages.sweep import SweepSummary

    crawled = ti.xcom_pull(task_ids="crawl")
    planned = ti.xcom_pull(task_ids="plan", key="summary")
    swept = ti.xcom_pull(task_ids="sweep")
    # A list of names, or the only result of a single batch would come without its list.
    batches = [batch for batch in ti.xcom_pull(task_ids=["process"]) or [] if batch is not None]
    failed = failed_tasks(ti, run)
    return RunResult(
        CrawlSummary(**crawled) if crawled else None,
        PlanSummary.from_dict(planned) if planned else None,
        [BatchSummary(**{**batch, "chunks": ChunkCounts(**batch["chunks"])}) for batch in batches],
        SweepSummary(**swept) if swept else None,
        failure=f"{', '.join(sorted(failed))} failed; see its log." if failed else "",
        held="approve" in failed,
    )


def failed_tasks(ti: Any, run: "RunContext") -> set[str]:
    """Names of the tasks of this run that failed by themselves; a mapped one by its name alone."""
    states = ti.get_task_states(dag_id=run.dag_id, run_ids=[run.airflow_run_id])
    return {
        MAPPED.sub("", name)
        for name, state in states.get(run.airflow_run_id, {}).items()
        if state == "failed" and not name.startswith("report")
    }


# Approval: a plan that passes a guard waits for a person, in Airflow's own list of required actions.

PATIENCE = timedelta(hours=20)
"""Shorter than a day: an unanswered question must not keep the next day's run from asking again."""


class GuardOperator(ApprovalOperator):
    """Lets a plan pass that is within the source's guards; asks about any other.

    Rejected, or not answered in time, the run fails and nothing of it is applied.
    """

    def __init__(self, *, source: str, **arguments: Any) -> None:
        super().__init__(
            subject=f"Apply the plan for {source}?",
            body="",
            fail_on_reject=True,
            response_timeout=PATIENCE,
            retries=0,
            **arguments,
        )
        self.source = source

    def execute(self, context: Context) -> Any:
        """Ask, where a guard was passed and whoever started the run has not approved it already."""
        from tidemark.orchestration.context import current_run

        run = current_run(self.source)
        planned = context["ti"].xcom_pull(task_ids="plan", key="summary") or {}
        breaches = [Breach.from_dict(data) for data in planned.get("guards", ())]
        if not breaches:
            return None
        for breach in breaches:
            self.log.warning("%s", breach.sentence())
        if run.approved or run.dry_run or run.interval is not None:
            self.log.info("It was approved when it was started.")
            return None
        self.subject = f"Apply the plan for {self.source}? {breaches[0].sentence()}"
        self.body = question(breaches, planned)
        return super().execute(context)


def question(breaches: Iterable[Breach], planned: Mapping[str, Any]) -> str:
    """What a person must know to decide, in Markdown."""
    actions = ", ".join(f"{n} {action}" for action, n in sorted(planned["documents"].items()))
    told = (
        f"The plan: {actions}. Nothing of it has been done. **Approve** applies all of it; **Reject** "
        "leaves the index as it is, and the next run asks again if it still finds this."
    )
    parts = [told]
    for breach in breaches:
        listed = "\n".join(f"- `{_quoted(uri)}`" for uri in breach.uris)
        more = breach.documents - len(breach.uris)
        rest = f"\n- and {more} more" if more > 0 else ""
        parts.append(f"**{breach.sentence()}**\n\n{listed}{rest}")
    return "\n\n".join(parts)


def _quoted(uri: str) -> str:
    """An address as code: nothing in it is read as Markdown."""
    return uri.replace("`", "%60")
