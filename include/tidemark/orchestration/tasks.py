"""The tasks of an index DAG. Each runs one stage; XCom carries keys and counts.

Heavy imports happen inside the tasks, so that parsing a DAG file stays in milliseconds.
"""

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Context, get_current_context, task
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from tidemark.domain.errors import PermanentError
from tidemark.domain.guards import Breach, Sort
from tidemark.domain.records import RunStatus
from tidemark.domain.summary import ChunkCounts, RunSummary
from tidemark.orchestration.context import RunContext, current_run, job_and_deps, open_container
from tidemark.orchestration.dags import source_asset
from tidemark.orchestration.notes import note_run
from tidemark.stages.crawl import CrawlSummary, remember_state
from tidemark.stages.plan.plan import PlanSummary
from tidemark.stages.process.process import BatchSummary
from tidemark.stages.report import (
    finish,
    held,
    planned_only,
    summarise,
    with_quarantine,
    with_takedowns,
    with_waiting,
)
from tidemark.stages.sweep.sweep import SweepSummary

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
    from tidemark.orchestration.context import current_run, job_and_deps, open_container
    from tidemark.stages import crawl as stage
    from tidemark.stages.report import begin

    with _final_errors():
        run = current_run(source)
        job, deps = job_and_deps(open_container(), run)
        begin(job, deps, run.trigger, run.note)
        summary = stage.crawl(job, deps)
    log.info("Crawled %s: %s, %.1f s", source, summary.outcomes, summary.seconds)
    if summary.problem:
        log.warning("The listing is incomplete, so nothing will be deleted: %s", summary.problem)
    return asdict(summary)


@task
def plan(source: str) -> list[str]:
    """Decide for each document what to do, and why; returns the keys of the batches of work."""
    from tidemark.orchestration.context import current_run, job_and_site_deps, open_container
    from tidemark.stages.audit.reconcile import advance, reconcile
    from tidemark.stages.generations import ensure_generation, planned_generation
    from tidemark.stages.job import embed_fingerprint, target
    from tidemark.stages.plan.plan import make_plan
    from tidemark.stages.report import totals

    with _final_errors():
        run = current_run(source)
        job, deps = job_and_site_deps(open_container(), run)
        if run.dry_run:
            generation = planned_generation(
                deps.ledger,
                deps.index,
                job.index_name,
                embed_fingerprint(deps.embedder, deps.lexical),
            )
        else:
            generation = ensure_generation(
                deps.ledger,
                deps.index,
                job.index_name,
                deps.embedder,
                deps.lexical,
                deps.clock,
            )
        reconciled = 0 if run.dry_run else reconcile(job, deps, generation)
        planned = make_plan(job, deps, target(job, deps, generation))
        if planned.writes and not run.dry_run:
            advance(deps.ledger, deps.index, source, generation, job.run_id)
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
    from tidemark.orchestration.context import current_run, job_and_site_deps, open_container
    from tidemark.orchestration.notes import note_task
    from tidemark.stages.job import target
    from tidemark.stages.process.process import process_batch
    from tidemark.stages.report import batch_sentence

    context = get_current_context()
    context["batch_name"] = batch.rsplit("/", 1)[-1].removesuffix(".jsonl")  # type: ignore[typeddict-unknown-key]
    with _final_errors():
        run = current_run(source)
        container = open_container()
        job, deps = job_and_site_deps(container, run)
        with deps.ledger.lock(
            source, run_id=run.run_id, wait_seconds=container.settings.lock_timeout
        ):
            done = process_batch(job, deps, target(job, deps, _generation()), batch)
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
    from tidemark.orchestration.context import current_run, job_and_site_deps, open_container
    from tidemark.stages.sweep import sweep as stage

    with _final_errors():
        run = current_run(source)
        if run.dry_run:
            raise AirflowSkipException("A dry run changes nothing.")
        before = failed_tasks(get_current_context()["ti"], run)
        if before - {"process"}:
            raise AirflowSkipException(
                f"There is no plan to carry out: {', '.join(sorted(before))} failed."
            )
        container = open_container()
        job, deps = job_and_site_deps(container, run)
        with deps.ledger.lock(
            source, run_id=run.run_id, wait_seconds=container.settings.lock_timeout
        ):
            swept = stage.sweep(job, deps, _generation())
    log.info("Swept %s: %s, %d points removed", source, swept.documents, swept.removed_chunks)
    return asdict(swept)


@task
def audit(source: str) -> dict[str, Any]:
    """Compare the ledger with the index: what this run touched, and the source's counts."""
    from tidemark.orchestration.context import current_run, job_and_site_deps, open_container
    from tidemark.stages.report import audit_run, totals

    with _final_errors():
        run = current_run(source)
        job, deps = job_and_site_deps(open_container(), run)
        findings = audit_run(job, deps, _generation())
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
        breaches = [breach_of(found) for found in planned.get("guards", ())]
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


def breach_of(found: Mapping[str, Any]) -> Breach:
    """A breach from its JSON form."""
    values = {**found, "sort": Sort(found["sort"]), "uris": tuple(found["uris"])}
    return Breach(**values)


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


# From what the tasks of a DAG run left behind to the run's summary.

MAPPED = re.compile(r"_\d+$")
"""What Airflow puts after the name of a mapped task."""


def report_run(source: str, context: Mapping[str, Any]) -> RunSummary:
    """Summarise the DAG run, write the summary to the ledger and to the run's note."""
    run = current_run(source)
    job, deps = job_and_deps(open_container(), run)
    ti = context["ti"]
    crawled = _pull(ti, "crawl", None)
    planned = _pull(ti, "plan", "summary")
    failed = failed_tasks(ti, run)
    if crawled is None or planned is None:
        summary = RunSummary(source, run.run_id, RunStatus.FAILED.value, complete=False)
    else:
        crawl, plan = CrawlSummary(**crawled), _plan(planned)
        if run.dry_run:
            summary = planned_only(job, crawl, plan)
        elif "approve" in failed:
            summary = held(job, crawl, plan)
        else:
            swept = _pull(ti, "sweep", None)
            summary = summarise(
                job,
                deps.ledger,
                crawl,
                plan,
                _batches(ti),
                SweepSummary(**swept) if swept else SweepSummary(),
                None,
            )
            summary = with_quarantine(job, deps.ledger, summary)
            summary = with_takedowns(job, deps.artifacts, summary)
            summary = with_waiting(job, deps, summary)
    if not failed and not run.dry_run and run.interval is None and crawled is not None:
        remember_state(job, deps, crawled["state"])
    if failed and not summary.held:
        summary = replace(
            summary,
            status=RunStatus.FAILED.value,
            problem=f"{', '.join(sorted(failed))} failed; see its log. {summary.problem}".strip(),
        )
    finish(job, deps, summary)
    text = summary.sentence() if not run.note else f"{run.note}\n\n{summary.sentence()}"
    note_run(run.dag_id, run.airflow_run_id, text)
    return summary


def _pull(ti: Any, task_id: str, key: str | None) -> Any:
    return ti.xcom_pull(task_ids=task_id, key=key) if key else ti.xcom_pull(task_ids=task_id)


def _plan(planned: dict[str, Any]) -> PlanSummary:
    return PlanSummary(
        actions=planned["documents"],
        reasons=planned["reasons"],
        complete=planned["complete"],
        problem=planned["problem"],
        seconds=planned["seconds"],
        breaches=tuple(breach_of(found) for found in planned["guards"]),
        reconciled=planned["reconciled"],
    )


def _batches(ti: Any) -> Iterable[BatchSummary]:
    # A list of names, or the only result of a single batch would come without its list.
    for done in ti.xcom_pull(task_ids=["process"]) or []:
        if done is not None:
            yield BatchSummary(**{**done, "chunks": ChunkCounts(**done["chunks"])})


def failed_tasks(ti: Any, run: RunContext) -> set[str]:
    """Names of the tasks of this run that failed by themselves; a mapped one by its name alone."""
    states = ti.get_task_states(dag_id=run.dag_id, run_ids=[run.airflow_run_id])
    return {
        MAPPED.sub("", name)
        for name, state in states.get(run.airflow_run_id, {}).items()
        if state == "failed" and not name.startswith("report")
    }
