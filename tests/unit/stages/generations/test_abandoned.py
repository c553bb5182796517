"""A model that is tried and set back leaves nothing behind, and nothing is lost on the way."""

from dataclasses import replace

import pytest
from audits import Audited
from worlds import CountingEmbedder

from fakes.embedder import HashEmbedder
from tidemark.domain.records import GenerationStatus, RunRecord, RunStatus
from tidemark.pipeline import run_source
from tidemark.stages.generations import ensure_generation


@pytest.fixture
def tried() -> Audited:
    """Another model was tried: what it has indexed is in generation 2, the live one is the first."""
    audited = Audited().fill()
    model(audited, 32)
    run(audited, "docs")
    assert (audited.world.index.live(), audited.world.index.generations()) == (1, [1, 2])
    return audited


def model(audited: Audited, dimension: int = 64) -> None:
    audited.world.embedder = CountingEmbedder(HashEmbedder(dimension))


def run(audited: Audited, *sources: str) -> None:
    for name in sources:
        job, deps = audited.job_factory(name)
        # With a third source that is declared and never indexed, the new generation waits for ever.
        job = replace(job, declared=("docs", "wiki", "third"))
        summary = run_source(job, deps, "test")
        assert (summary.status, summary.findings) == ("success", {})


def only_the_live_one_is_left(audited: Audited) -> bool:
    world = audited.world
    told = {g.number: g.status for g in world.ledger.generations.all("tidemark")}
    retired = {status for number, status in told.items() if number != 1}
    return world.index.generations() == [1] and retired <= {GenerationStatus.RETIRED}


def test_a_model_set_back_is_forgotten_one_clean_run_later(tried: Audited) -> None:
    held = tried.world.index.count_points(1)
    model(tried)
    run(tried, "docs")
    assert only_the_live_one_is_left(tried)
    assert tried.audit().clean
    assert tried.world.index.count_points(1) == held
    assert tried.world.embedder.texts == [], "the live generation had them all"


def test_a_generation_that_a_run_began_and_wrote_nothing_to_goes_too(tried: Audited) -> None:
    model(tried, 16)
    tried.world.source.away = "It does not answer."
    run_source(*tried.job_factory("wiki"), "test")
    model(tried)
    tried.world.source.away = ""
    run(tried, "wiki", "docs")
    assert only_the_live_one_is_left(tried)


def test_while_some_documents_are_in_it_nothing_is_lost_and_nothing_called_drift(
    tried: Audited,
) -> None:
    run(tried, "wiki")
    model(tried)
    for name, left in (("docs", [1, 2]), ("wiki", [1])):
        run(tried, name)
        assert tried.world.index.generations() == left
        report = tried.audit()
        assert (report.clean, report.differs) == (True, False), report
        assert report.checked == tried.world.index.count_points(1)


def test_edited_on_the_way_each_document_is_found_as_it_is(tried: Audited) -> None:
    """Through both models: what the other generation has of old is put right when it is written again."""
    uri = "https://docs.example.org/0"
    for dimension, text in ((64, "The second text."), (32, "The third."), (64, "The last text.")):
        tried.world.source.documents[uri] = text
        model(tried, dimension)
        run(tried, "docs")
        assert tried.audit().clean
    found = tried.world.index.scan_points(1, {"source": "docs"})
    assert "The last text." in {p.payload["text"] for p in found}
    assert only_the_live_one_is_left(tried)


@pytest.mark.parametrize("trigger", ["cli", "airflow: scheduled"])
def test_what_a_run_of_another_model_has_just_begun_stays_while_it_runs(
    tried: Audited, trigger: str
) -> None:
    world = tried.world
    model(tried)
    run(tried, "docs")
    began = RunRecord("other-1", "third", trigger, RunStatus.RUNNING, world.now, None, "", None)
    world.ledger.runs.save(began)
    deps = world.deps()
    with world.ledger.lock("third"):
        number = ensure_generation(
            deps.ledger, deps.index, "tidemark", HashEmbedder(32), deps.lexical, deps.clock
        )
        run(tried, "docs", "wiki")
        assert world.index.generations() == [1, number]
        assert tried.audit().clean
    world.ledger.runs.save(replace(began, status=RunStatus.FAILED, finished_at=world.now))
    run(tried, "wiki")
    assert only_the_live_one_is_left(tried)


def test_two_environments_that_alternate_take_nothing_from_each_other(tried: Audited) -> None:
    """One indexes ``docs`` under the first model, the other ``wiki`` under the second."""
    for _ in range(3):
        model(tried)
        run(tried, "docs")
        model(tried, 32)
        run(tried, "wiki")
        world = tried.world
        assert world.index.live() == 1
        documents = {r.uri: r.generation for r in world.ledger.documents.stream()}
        existing = world.index.generations()
        assert set(documents.values()) <= set(existing)
        assert tried.audit().clean


def test_a_switch_that_was_killed_before_it_dropped_the_old_is_ended_by_the_next_run(
    tried: Audited,
) -> None:
    world = tried.world
    run_source(*tried.job_factory("wiki"), "test")
    assert world.index.generations() == [2]
    world.index.ensure(1, 64, "of old")
    run_source(*tried.job_factory("docs"), "test")
    assert world.index.generations() == [2]
