"""The order of a run is written once: step by step, as under Airflow, it is the run of one process."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest
from worlds import World, page

from tidemark import pipeline
from tidemark.domain.errors import TransientError
from tidemark.domain.records import ChunkCounts, RunStatus, RunSummary
from tidemark.stages.crawl import CrawlSummary
from tidemark.stages.plan.plan import PlanSummary
from tidemark.stages.process.process import BatchSummary
from tidemark.stages.sweep import SweepSummary

A, B, C = (f"https://example.org/{name}" for name in "abc")


def through_json(value: Any) -> Any:
    """As XCom hands a value from one task to the next."""
    return json.loads(json.dumps(value))


def step_by_step(world: World, **changes: object) -> RunSummary:
    """One run, each step with a job and dependencies of its own, results handed on as JSON."""
    job = world.job(**changes)
    crawled = through_json(asdict(pipeline.crawl(job, world.deps(), "airflow:manual")))
    planned = pipeline.plan(job, world.deps())
    told = through_json({**planned.as_dict(), "seconds": planned.seconds})
    batches = [
        through_json(asdict(pipeline.process(job, world.deps(), planned.generation, key)))
        for key in planned.batches
    ]
    swept = through_json(asdict(pipeline.sweep(job, world.deps(), planned.generation)))
    assert pipeline.audit(job, world.deps(), planned.generation).clean
    result = pipeline.RunResult(
        CrawlSummary(**crawled),
        PlanSummary.from_dict(told),
        [BatchSummary(**{**batch, "chunks": ChunkCounts(**batch["chunks"])}) for batch in batches],
        SweepSummary(**swept),
    )
    return pipeline.report(job, world.deps(), result)


def at_once(world: World, **changes: object) -> RunSummary:
    return pipeline.run_source(world.job(**changes), world.deps(), "cli")


def without_times(summary: RunSummary) -> RunSummary:
    return replace(summary, seconds=dict.fromkeys(summary.seconds, 0.0))


@pytest.mark.parametrize("run", [step_by_step, at_once])
def test_a_run_adds_changes_and_removes(run: Callable[..., RunSummary]) -> None:
    world = World()
    world.documents.update({A: page("A", "Alpha."), B: page("B", "Beta.")})
    assert run(world).documents == {"add": 2}
    world.documents.update({A: page("A", "Alpha, edited."), C: page("C", "Gamma.")})
    del world.documents[B]
    world.source.authoritative = True
    second = run(world)
    assert second.documents == {"update": 1, "add": 1, "remove": 1}
    assert run(world).documents == {"keep": 2}


def test_step_by_step_or_at_once_the_summary_is_the_same() -> None:
    summaries = []
    for run in (step_by_step, at_once):
        world = World()
        world.documents.update({A: page("A", "Alpha."), B: page("B", "Beta.")})
        first = run(world)
        world.documents[A] = page("A", "Alpha, edited.")
        summaries.append([without_times(first), without_times(run(world))])
    assert summaries[0] == summaries[1]


def test_a_failed_step_is_in_the_report_and_the_next_crawl_is_told_nothing() -> None:
    world = World()
    world.documents[A] = page("A", "Alpha.")
    job = world.job()
    crawled = replace(pipeline.crawl(job, world.deps(), "airflow:manual"), state="here")
    planned = pipeline.plan(job, world.deps())
    failed = pipeline.RunResult(crawled, planned, failure="process failed; see its log.")
    summary = pipeline.report(job, world.deps(), failed)
    assert (summary.status, summary.problem) == ("failed", "process failed; see its log.")
    assert world.ledger.sources.state(job.source).state == ""
    run = world.ledger.runs.get(job.run_id)
    assert run is not None
    assert run.status is RunStatus.FAILED


def test_a_plan_that_waits_for_a_person_is_not_applied() -> None:
    world = World()
    world.documents.update({f"{A}{n}": page(str(n), f"Text {n}.") for n in range(10)})
    at_once(world)
    world.documents.clear()
    world.documents[A] = page("A", "Alpha.")
    world.source.authoritative = True
    summary = at_once(world)
    assert summary.held
    assert summary.guards
    assert len(list(world.ledger.documents.stream())) == 10
    assert at_once(world, approved=True).documents["remove"] == 10


def test_an_outage_in_every_batch_ends_the_run_and_names_how_many_are_left() -> None:
    world = World()
    world.documents.update({f"{A}{n}": page(str(n), f"Text {n}.") for n in range(4)})

    def away(_texts: object) -> None:
        raise TransientError("The model is away.", "Wait.")

    world.embedder.before = away
    summary = at_once(world, batch_documents=1)
    assert summary.status == "failed"
    assert summary.problem.startswith("4 of 4 batches failed; the next run goes on there.")
    world.embedder.before = None
    assert at_once(world).documents == {"add": 4}
