"""Stores that are no longer of one time: a backup of one was restored, or a part of it was lost."""

from copy import deepcopy

import pytest
from worlds import SOURCE, CountingEmbedder, World, page

from fakes.embedder import HashEmbedder
from fakes.index import MemoryIndex
from fakes.ledger import MemoryLedger
from tidemark.domain.records import GenerationStatus
from tidemark.stages.audit.epochs import epochs_agree

A, B, C = (f"https://example.org/{name}" for name in "abc")


def filled() -> World:
    world = World()
    world.documents[A] = page("A", "Alpha stands.", "Beta stands.")
    world.documents[B] = page("B", "Gamma stands.")
    world.run()
    return world


def is_whole(world: World) -> None:
    assert world.audit().clean
    assert epochs_agree(world.ledger, world.index, SOURCE, world.generation)
    assert world.ledger.writes.pending(SOURCE) == {}
    summary = world.run()
    assert not summary.changed
    assert summary.reconciled == 0


def test_a_run_whose_epochs_agree_compares_nothing() -> None:
    world = filled()
    summary = world.run()
    assert summary.reconciled == 0
    assert "differed" not in summary.sentence()


def test_an_index_restored_from_a_backup_is_made_right_by_one_run() -> None:
    world = filled()
    backup = deepcopy(world.index)
    world.documents[A] = page("A", "Omega stands.", "Beta stands.")
    del world.documents[B]
    world.source.gone[B] = "404"
    world.documents[C] = page("C", "Delta stands.")
    world.run()
    world.index = backup
    summary = world.run()
    assert summary.status == "success"
    assert summary.reconciled == 3, "one to write again, one to add, one to remove"
    assert "differed between ledger and index" in summary.sentence()
    assert world.texts() == ["Omega stands.", "Beta stands.", "Delta stands."]
    assert len(world.embedder.texts) == 2, "what the backup has is not embedded again"
    is_whole(world)


def test_an_index_lost_begun_anew_and_then_restored_is_taken_up_with_all_that_it_has() -> None:
    world = filled()
    backup = deepcopy(world.index)
    world.lose_index()
    world.run()
    assert world.index.live() == 2
    world.documents[A] = page("A", "Omega stands.", "Beta stands.")
    world.index = backup
    summary = world.run()
    assert summary.status == "success"
    assert (world.index.live(), world.index.generations()) == (1, [1])
    assert world.embedder.texts == [text for text in world.embedder.texts if "Omega" in text]
    assert world.texts() == ["Omega stands.", "Beta stands.", "Gamma stands."]
    is_whole(world)


def test_a_run_that_begins_a_lost_index_anew_says_what_the_index_still_lacks() -> None:
    world = filled()
    world.run(source="another")
    world.lose_index()
    summary = world.run()
    assert summary.status == "success"
    told = summary.sentence()
    assert "No search finds 2 documents that the ledger knows" in told
    assert "another (not declared) (2)" in told
    assert "tidemark index --all" in told
    assert "No search finds" not in world.run(source="another").sentence()
    assert "No search finds" not in world.run().sentence()


def test_a_run_that_fails_while_the_index_is_lost_says_so() -> None:
    world = filled()
    world.run(source="another")
    world.lose_index()
    world.run(source="another")
    world.source.away = "It does not answer."
    summary = world.run()
    assert summary.status == "failed"
    assert "No search finds 2 documents that the ledger knows" in summary.waiting
    assert f"lost or set back: {SOURCE}" in summary.waiting


def test_a_ledger_restored_from_a_backup_is_made_right_by_one_run() -> None:
    world = filled()
    backup = deepcopy(world.ledger)
    world.documents[A] = page("A", "Omega stands.", "Beta stands.")
    world.documents[C] = page("C", "Delta stands.")
    world.run()
    world.ledger = backup
    summary = world.run()
    assert summary.status == "success"
    assert world.texts() == ["Omega stands.", "Beta stands.", "Gamma stands.", "Delta stands."]
    assert world.embedder.texts == [], "the index has all of it"
    is_whole(world)


def test_a_ledger_that_was_lost_is_built_again_from_the_index_without_embedding() -> None:
    world = filled()
    world.ledger = MemoryLedger()
    summary = world.run()
    assert summary.documents == {"add": 2}
    assert world.embedder.texts == []
    assert world.generation == 1
    assert world.ledger.generations.all("tidemark")[0].status is GenerationStatus.LIVE
    is_whole(world)


def test_a_removed_document_that_a_backup_brought_back_goes_also_when_the_listing_is_cut_short() -> (
    None
):
    world = filled()
    backup = deepcopy(world.index)
    del world.documents[B]
    world.source.gone[B] = "404"
    world.run()
    world.index = backup
    world.source.gone.clear()
    world.source.incomplete = "The second half could not be listed."
    world.run()
    assert world.texts() == ["Alpha stands.", "Beta stands."]
    is_whole(world)


def test_a_document_that_nobody_knows_stays_while_the_listing_is_cut_short() -> None:
    """It may be one of those that were not listed."""
    world = filled()
    world.ledger = MemoryLedger()
    del world.documents[B]
    world.source.incomplete = "The second half could not be listed."
    world.run()
    assert "Gamma stands." in world.texts()
    world.source.incomplete = ""
    world.run()
    assert "Gamma stands." not in world.texts()
    is_whole(world)


def test_an_unlisted_document_that_a_backup_set_back_is_made_right_from_its_snapshot() -> None:
    world = filled()
    backup = deepcopy(world.index)
    world.documents[B] = page("B", "Omega stands.")
    world.run()
    world.index = backup
    del world.documents[B]
    world.source.incomplete = "The second half could not be listed."
    world.run()
    assert world.texts() == ["Alpha stands.", "Beta stands.", "Omega stands."]
    is_whole(world)


def test_points_that_were_lost_or_put_there_are_noticed_by_their_number() -> None:
    world = filled()
    (victim, *_) = world.index.scan_points(1)
    world.index.delete_points(1, [victim.point_id])
    summary = world.run()
    assert summary.reconciled == 1
    assert len(world.embedder.texts) == 1
    is_whole(world)


def test_one_of_the_two_collections_restored_alone_is_noticed() -> None:
    world = filled()
    backup = deepcopy(world.index)
    world.documents[B] = page("B", "Omega stands.")
    world.run()
    assert isinstance(world.index, MemoryIndex)
    assert isinstance(backup, MemoryIndex)
    world.index.stored[1].sections = backup.stored[1].sections
    assert world.run().reconciled == 1
    is_whole(world)


def test_a_ledger_of_before_another_model_takes_the_new_generation_as_it_is() -> None:
    world = filled()
    backup = deepcopy(world.ledger)
    world.embedder = CountingEmbedder(HashEmbedder(dimension=32))
    world.run()
    assert world.generation == 2
    world.ledger = backup
    summary = world.run()
    assert summary.status == "success"
    assert world.generation == 2
    assert world.embedder.texts == []
    statuses = {g.number: g.status for g in world.ledger.generations.all("tidemark")}
    assert statuses == {1: GenerationStatus.RETIRED, 2: GenerationStatus.LIVE}
    is_whole(world)


@pytest.mark.parametrize("store", ["ledger", "index"])
def test_a_dry_run_heals_nothing(store: str) -> None:
    from tidemark.pipeline import plan_source

    world = filled()
    backup = deepcopy(getattr(world, store))
    world.documents[A] = page("A", "Omega stands.")
    world.run()
    setattr(world, store, backup)
    before = world.ledger.sources.epoch(SOURCE)
    plan_source(world.job(), world.deps())
    assert world.ledger.sources.epoch(SOURCE) == before
    assert world.ledger.writes.pending(SOURCE) == {}


def test_a_lost_alias_comes_back_over_what_the_ledger_calls_live() -> None:
    world = filled()
    assert isinstance(world.index, MemoryIndex)
    world.embedder = CountingEmbedder(HashEmbedder(dimension=32))
    world.run(declared=(SOURCE, "another"))
    assert world.index.live() == 1, "another source is not in the new generation yet"
    world.index.points_live = None
    world.run(declared=(SOURCE, "another"))
    assert world.index.live() == 1


def test_what_was_removed_does_not_come_back_in_the_live_generation_while_another_is_built() -> (
    None
):
    world = filled()
    world.embedder = CountingEmbedder(HashEmbedder(dimension=32))
    both = {"declared": (SOURCE, "another")}
    world.run(**both)
    assert isinstance(world.index, MemoryIndex)
    backup = world.index.stored[1].copy()
    del world.documents[B]
    world.source.gone[B] = "404"
    world.run(**both)
    world.index.stored[1] = backup
    world.run(**both)
    left = {str(p.payload["source_uri"]) for p in world.index.scan_points(1)}
    assert left == {A}
