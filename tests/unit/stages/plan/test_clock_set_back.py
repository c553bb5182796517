"""A clock that was in the future for a while, and is right again: what it left behind decides nothing."""

from datetime import timedelta

import pytest
from worlds import World, page

from fakes.embedder import HashEmbedder
from tidemark import pipeline

A, B, C = (f"https://example.org/{name}" for name in "abc")
AHEAD = timedelta(days=365)


@pytest.fixture
def world() -> World:
    """Its last run, at a time in the future, has seen and written everything."""
    made = World()
    made.documents.update({A: page("A", "The first text."), B: page("B", "It stays.")})
    made.run()
    made.now += AHEAD
    made.documents[A] = page("A", "The text of the future.")
    made.documents[C] = page("C", "It goes in the future.")
    made.run()
    del made.documents[C]
    made.source.gone[C] = "404"
    made.run()
    made.now -= AHEAD
    return made


def test_what_was_edited_since_is_indexed(world: World) -> None:
    world.documents[A] = page("A", "The right text.")
    assert world.run().documents == {"update": 1, "keep": 1, "skip": 1}
    assert world.texts() == ["The right text.", "It stays."]


def test_what_is_gone_is_removed(world: World) -> None:
    del world.documents[B]
    world.source.gone[B] = "404"
    assert world.run().documents["remove"] == 1
    assert world.texts() == ["The text of the future."]


def test_what_was_removed_in_the_future_comes_back(world: World) -> None:
    world.source.gone.clear()
    world.documents[C] = page("C", "It is back.")
    assert world.run().documents == {"restore": 1, "keep": 2}
    assert "It is back." in world.texts()


def test_a_forced_run_and_another_model_get_through(world: World) -> None:
    world.documents[A] = page("A", "The right text.")
    assert world.run(force=True).reasons["forced"] == 2
    world.embedder.inner = HashEmbedder(24)
    world.run()
    assert world.index.generations() == [2]


def test_a_generation_of_the_future_goes_live_all_the_same() -> None:
    world = World()
    world.documents.update({A: page("A", "The first text.")})
    names = ("docs", "other", "third")
    for name in names:
        world.run(source=name)
    world.now += AHEAD
    world.embedder.inner = HashEmbedder(24)
    world.run(declared=names)
    world.now -= AHEAD
    for name in names[1:]:
        world.run(source=name, declared=names)
    assert world.index.generations() == [2]


@pytest.mark.parametrize("gone", [False, True])
def test_a_task_that_wakes_up_late_still_decides_nothing(world: World, gone: bool) -> None:
    """Of a run under the right clock, when a later one under the same clock has seen more."""
    if gone:
        del world.documents[B]
        world.source.gone[B] = "404"
    else:
        world.documents[B] = page("B", "An older text.")
    world.now += timedelta(hours=1)
    job, deps = world.job(), world.deps()
    pipeline.crawl(job, deps, "test")
    plan = pipeline.plan(job, deps)
    world.source.gone.pop(B, None)
    world.documents[B] = page("B", "The latest text.")
    world.run()
    for key in plan.batches:
        pipeline.process(job, deps, plan.generation, key)
    pipeline.sweep(job, deps, plan.generation)
    assert "The latest text." in world.texts()
