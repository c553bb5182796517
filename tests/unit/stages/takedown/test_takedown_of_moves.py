"""A document that a run is moving while it is taken down does not stay at its new address."""

import pytest
from takedowns import holders, live_uris, meant, run_until, stores_of, taken_down
from worlds import SOURCE, World, page

from tidemark.domain.identity import document_id
from tidemark.stages.takedown.takedown import unblock

A, B, C, D = (f"https://example.org/{name}" for name in "abcd")
SECRET = "The tide tables of the hidden harbour."
HOW = ("gone", "redirected", "not listed")
STAGES = ("crawled", "planned", "processed")


def moved(how: str, text: str | None = None) -> World:
    """A world in which A stands at C from the next run on."""
    world = World()
    world.documents[A] = page("A", SECRET, "It rises.")
    world.documents[B] = page("B", "Another gauge.", "It falls.")
    world.run()
    world.documents[C] = text or world.documents[A]
    del world.documents[A]
    if how == "gone":
        world.source.gone[A] = "404"
    elif how == "redirected":
        world.source.moved[A] = C
    else:
        world.source.authoritative = True
    return world


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("stage", STAGES)
def test_it_goes_from_where_it_was_moving_to(how: str, stage: str) -> None:
    world = moved(how)
    run_until(world, stage, lambda: taken_down(world, A))
    assert live_uris(world) == {B}
    for _ in range(2):
        world.run()
        assert live_uris(world) == {B}
        assert list(world.ledger.documents.by_uri(C)) == []
        assert world.audit().clean
    assert list(holders(world, SECRET)) == []
    unblock(stores_of(world), meant(world, A))
    world.run()
    assert live_uris(world) == {B, C}


@pytest.mark.parametrize("stage", ["planned", "processed"])
def test_it_goes_too_when_it_changes_on_its_way(stage: str) -> None:
    world = moved("redirected", page("A", SECRET, "It rises twice."))
    run_until(world, stage, lambda: taken_down(world, A))
    assert live_uris(world) == {B}
    assert list(holders(world, SECRET)) == []
    world.run()
    assert live_uris(world) == {B}
    tombstone = world.ledger.tombstones.by_id([document_id(SOURCE, C)])[document_id(SOURCE, C)]
    assert (tombstone.title, tombstone.expired, tombstone.taken_down) == ("", True, True)
    [own] = world.ledger.tombstones.by_uri(A)
    assert tombstone.run_id == own.run_id, "undone as one"


@pytest.mark.parametrize("how", HOW)
def test_a_run_that_died_after_the_copy_was_written_leaves_none_behind(how: str) -> None:
    world = moved(how)
    with pytest.raises(RuntimeError):
        run_until(world, "processed", lambda: _die(world))
    world.run()
    assert live_uris(world) == {B}


def _die(world: World) -> None:
    taken_down(world, A)
    raise RuntimeError("killed")


@pytest.mark.parametrize("stage", STAGES)
def test_a_twin_stays_while_what_was_moved_goes(stage: str) -> None:
    world = moved("gone")
    del world.source.gone[A]
    world.documents[A] = world.documents[D] = world.documents.pop(C)
    world.run()
    assert live_uris(world) == {A, B, D}
    world.documents[C] = world.documents.pop(A)
    world.source.moved[A] = C
    run_until(world, stage, lambda: taken_down(world, A))
    world.run()
    expected = {B, D} if stage != "crawled" else {B, C, D}
    assert live_uris(world) == expected, "before the plan nothing tells a copy of the twin from it"


def test_an_old_move_from_an_address_is_no_part_of_what_stands_there_now() -> None:
    world = moved("redirected")
    world.run()
    world.source.moved.clear()
    world.documents[A] = world.documents[C]
    world.run(judge=False)
    assert live_uris(world) == {A, B, C}
    taken_down(world, A)
    assert live_uris(world) == {B, C}
