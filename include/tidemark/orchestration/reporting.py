"""From what the tasks of a DAG run left behind to the run's summary."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tidemark.domain.records import RunStatus
from tidemark.domain.summary import ChunkCounts, RunSummary
from tidemark.orchestration.approval import breach_of
from tidemark.orchestration.context import RunContext, current_run, job_and_tools, workshop
from tidemark.orchestration.notes import note_run
from tidemark.stages.crawl import CrawlSummary
from tidemark.stages.plan import PlanSummary
from tidemark.stages.process import BatchSummary
from tidemark.stages.report import (
    finish,
    held,
    planned_only,
    summarise,
    with_quarantine,
    with_takedowns,
    with_waiting,
)
from tidemark.stages.site import remember_state
from tidemark.stages.sweep import SweepSummary

MAPPED = re.compile(r"_\d+$")
"""What Airflow puts after the name of a mapped task."""


def report_run(source: str, context: Mapping[str, Any]) -> RunSummary:
    """Summarise the DAG run, write the summary to the ledger and to the run's note."""
    run = current_run(source)
    job, tools = job_and_tools(workshop(), run)
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
                tools.ledger,
                crawl,
                plan,
                _batches(ti),
                SweepSummary(**swept) if swept else SweepSummary(),
                None,
            )
            summary = with_quarantine(job, tools.ledger, summary)
            summary = with_takedowns(job, tools.artifacts, summary)
            summary = with_waiting(job, tools, summary)
    if not failed and not run.dry_run and run.interval is None and crawled is not None:
        remember_state(job, tools, crawled["state"])
    if failed and not summary.held:
        summary = replace(
            summary,
            status=RunStatus.FAILED.value,
            problem=f"{', '.join(sorted(failed))} failed; see its log. {summary.problem}".strip(),
        )
    finish(job, tools, summary)
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
