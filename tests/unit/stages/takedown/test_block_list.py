"""What was taken down stays out: as a new version of others, in every source, and when it was cut short."""

from dataclasses import replace
from datetime import timedelta

import pytest
from takedowns import (
    holders,
    killed_takedown,
    live_uris,
    meant,
    reasons,
    run_until,
    stores_of,
    taken_down,
)
from worlds import SOURCE, World, page

from fakes.inspector import MarkInspector
from fakes.source import MemorySource
from tidemark.domain.identity import document_id
from tidemark.domain.records import RunSummary
from tidemark.pipeline import run_source, with_blocks
from tidemark.stages.explain import explain
from tidemark.stages.takedown.requests import unfinished
from tidemark.stages.takedown.takedown import unblock

A, B, C, D = (f"https://example.org/{name}" for name in "abcd")
SECRET = "The tide tables of the hidden harbour."
LONG = [f"{SECRET} Its page number {n} says something of its own at length." for n in range(12)]


@pytest.fixture
def world() -> World:
    made = World()
    made.inspector = MarkInspector()
    made.documents[A] = page("A", *LONG)
    made.documents[B] = page("B", "Another gauge.", "It falls.")
    made.run()
    return made


# As a new version of another document


@pytest.mark.parametrize("change", ["", "\n"], ids=["its bytes", "its text"])
def test_an_existing_document_does_not_become_what_was_taken_down(
    world: World, change: str
) -> None:
    secret = str(world.documents[A]) + change
    taken_down(world, A)
    good, world.documents[B] = world.documents[B], secret
    for _ in range(2):
        summary = world.run()
        assert summary.status == "success"
        assert live_uris(world) == {B}
        assert list(holders(world, SECRET)) == []
        assert [line for line in summary.attention if line.startswith(f"{B}: keep (taken_down)")]
    [told] = explain(world.ledger, B, [document_id(SOURCE, B)])
    assert f"Its newer version is kept out: it {'has the text of' if change else 'is'} {A}" in (
        told.sentence()
    )
    assert world.audit().clean
    world.documents[C] = world.documents[D] = secret
    world.run()
    assert live_uris(world) == {B}
    world.documents[B] = str(good) + "\n\nAnd more."
    world.run()
    assert reasons(world, B)[:2] == ("update", "content")
    [told] = explain(world.ledger, B, [document_id(SOURCE, B)])
    assert "kept out" not in told.sentence()


@pytest.mark.parametrize("known", [True, False], ids=["at the crawl", "once partitioned"])
def test_its_last_good_version_comes_along_when_the_model_changes(
    world: World, known: bool
) -> None:
    from fakes.embedder import HashEmbedder

    secret = str(world.documents[A])
    taken_down(world, A)
    world.documents[B] = secret if known else secret + "\n"
    world.inspector = MarkInspector() if known else None
    world.embedder = replace(world.embedder, inner=HashEmbedder(32))
    world.run()
    assert world.index.live() == world.generation
    assert live_uris(world) == {B}
    assert list(holders(world, SECRET)) == []
    assert world.audit().clean


@pytest.mark.parametrize("change", ["", "\n"], ids=["its bytes", "its text"])
def test_a_document_that_had_the_same_before_keeps_it(world: World, change: str) -> None:
    world.documents[C] = str(world.documents[A]) + change
    world.run(judge=False)
    taken_down(world, A)
    world.documents[C] = str(world.documents[C]) + "\n" * bool(change)
    world.run(judge=False, force=True)
    assert live_uris(world) == {B, C}


def test_a_document_that_has_other_bytes_does_not_take_those_that_a_twin_may_keep(
    world: World,
) -> None:
    world.documents[C] = twin = world.documents[A]
    world.run(judge=False)
    taken_down(world, A)
    world.documents[B] = twin
    world.run(judge=False)
    assert reasons(world, B)[:2] == ("keep", "taken_down")


# In every source


def other(world: World, **documents: str) -> RunSummary:
    """A run of the same site declared under another name."""
    source = MemorySource(media_type="text/markdown", authoritative=False, clock=lambda: world.now)
    source.documents.update({f"https://example.org/{k}": v for k, v in documents.items()})
    world.now += timedelta(hours=1)
    job = replace(world.job(), source="other")
    return run_source(job, replace(world.deps(), source=source), "test")


def test_it_is_kept_out_of_a_source_that_was_not_known_then(world: World) -> None:
    secret = str(world.documents[A])
    taken_down(world, A, all_sources=True)
    other(world, a=secret, c=secret, d=secret + "\n", e=page("E", "Its own."))
    assert live_uris(world) == {B, "https://example.org/e"}
    assert list(holders(world, SECRET)) == []
    told = explain(world.ledger, A, [document_id(name, A) for name in (SOURCE, "other")])
    assert len(told) == 2
    assert all("kept out" in one.sentence() for one in told)
    assert "of every source" in told[0].sentence()
    unblock(stores_of(world), meant(world, A))
    other(world, a=secret)
    assert A in live_uris(world)


def test_taken_down_from_one_source_it_comes_in_from_another(world: World) -> None:
    secret = str(world.documents[A])
    taken_down(world, A)
    other(world, a=secret)
    assert live_uris(world) == {A, B}
    world.run()
    [point] = {p.payload["source"] for p in world.index.scan_points(1) if SECRET in repr(p.payload)}
    assert point == "other"


def test_ordered_everywhere_later_it_goes_from_the_other_source_by_its_next_run(
    world: World,
) -> None:
    secret = str(world.documents[A])
    other(world, a=secret, e=page("E", "Its own."))
    taken_down(world, A)
    taken_down(world, A, all_sources=True)
    assert [s.all_sources for s in world.ledger.tombstones.blocking("other")] == [True]
    taken_down(world, A)
    assert [s.all_sources for s in world.ledger.tombstones.blocking("other")] == [True], (
        "it stays so"
    )
    other(world, a=secret, e=page("E", "Its own."))
    assert world.ledger.runs.recent("other")[0].note == f"It finished the takedown of {A}."
    assert live_uris(world) == {B, "https://example.org/e"}
    assert list(holders(world, SECRET)) == []
    tombstones = world.ledger.tombstones.by_uri(A)
    assert [(s.title, s.expired, s.taken_down) for s in tombstones] == [("", True, True)] * 2
    assert world.ledger.versions.of(document_id("other", A)) == []
    unblock(stores_of(world), meant(world, A))
    assert world.ledger.tombstones.by_uri(A) == [], "what was ordered as one is undone as one"


# Cut short


def test_a_takedown_that_was_cut_short_counts_from_when_it_was_written_down(world: World) -> None:
    secret = str(world.documents[A])
    for at in range(1, 8):
        made = World()
        made.inspector = MarkInspector()
        made.documents.update({A: secret, B: page("B", "Else.")})
        made.run()
        killed_takedown(made, A, at)
        assert list(unfinished(made.artifacts))
        made.documents[C] = secret
        summary = made.run()
        assert summary.status == "success"
        assert live_uris(made) == {B}
        assert made.ledger.writes.pending(SOURCE) == {}
        assert made.audit().clean
        assert made.ledger.runs.recent()[0].note == f"It finished the takedown of {A}."
        assert list(unfinished(made.artifacts)) == []
        assert list(holders(made, SECRET)) == []
        made.run()
        assert made.ledger.runs.recent()[0].note == ""
        assert live_uris(made) == {B}


@pytest.mark.parametrize("stage", ["crawled", "planned", "processed"])
def test_one_that_is_cut_short_beside_a_run_is_finished_by_its_sweep(stage: str) -> None:
    for at in range(1, 8):
        world = World()
        world.documents.update({A: page("A", *LONG), B: page("B", "Else.")})
        world.run()
        world.documents[A] = page("A", *LONG, "And more.")
        run_until(world, stage, lambda: killed_takedown(world, A, at))  # noqa: B023
        assert live_uris(world) == {B}
        assert list(holders(world, SECRET)) == []
        assert list(unfinished(world.artifacts)) == []
        assert world.audit().clean


def test_one_that_was_cut_short_is_not_healed_where_its_source_does_not_name_it(
    world: World,
) -> None:
    killed_takedown(world, A, 6)
    del world.documents[A]
    world.run()
    assert live_uris(world) == {B}
    assert world.ledger.documents.get(document_id(SOURCE, A)) is None


def test_one_that_was_cut_short_can_be_undone(world: World) -> None:
    killed_takedown(world, A, 1)
    assert unblock(stores_of(world), meant(world, A)) == [A]
    world.run()
    assert live_uris(world) == {A, B}
    assert world.audit().clean


def test_no_repair_writes_what_is_being_taken_down(world: World) -> None:
    from tidemark.stages.audit.repair import rewrite
    from tidemark.stages.job import target

    killed_takedown(world, A, 6)
    assert live_uris(world) == {B}
    record = world.ledger.documents.get(document_id(SOURCE, A))
    assert record is not None
    job, deps = world.job(), world.deps()
    job = with_blocks(job, deps)
    rewrite(job, deps, target(job, deps, world.generation), [record])
    assert live_uris(world) == {B}
