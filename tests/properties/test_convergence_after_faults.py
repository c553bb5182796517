"""What the machine of ``test_convergence_machine`` has found, each kind of fault once and by name."""

from copy import deepcopy
from typing import Any

import pytest
from site_model import URIS, Page, Setup, lay_out, run
from worlds import SOURCE, World

from fakes.ledger import MemoryLedger
from tidemark.domain.chunks import PointWrite
from tidemark.domain.errors import PermanentError
from tidemark.domain.identity import document_id
from tidemark.domain.records import DocumentStatus
from tidemark.stages.codec import read_plan
from tidemark.stages.job import plan_key
from tidemark.stages.sweep import sweep

A, B, C = URIS[:3]
ONE, TWO = Setup(), Setup(dimension=24)
FIRST = Page(paragraphs=("A gauge hangs.", "A mast stands."))
SECOND = Page(paragraphs=("The tide rises.", "The tide falls."))


def world_of(site: dict[str, Page], setup: Setup = ONE) -> World:
    world = World()
    show(world, site, setup)
    run(world, setup)
    return world


def show(world: World, site: dict[str, Page], setup: Setup = ONE) -> None:
    """A site shows this, and the next run is an hour later."""
    from datetime import timedelta

    world.now += timedelta(hours=1)
    setup.apply(world)
    lay_out(world, site)
    world.embedder.texts.clear()


def addresses(world: World, generation: int | None = None) -> set[str]:
    points = world.index.scan_points(generation or world.index.live() or 0)
    return {str(point.payload["source_uri"]).partition("#")[0] for point in points}


def test_a_model_that_was_tried_and_given_up_leaves_nothing_of_what_it_passed_by() -> None:
    """Back in the generation of before, which still has the version of before."""
    world = world_of({A: FIRST, B: FIRST})
    show(world, {A: SECOND, B: FIRST}, TWO)
    run(world, TWO, declared=(SOURCE, "another"))
    assert world.index.live() == 1, "it waits for the other source"
    show(world, {A: SECOND, B: FIRST}, ONE)
    summary = run(world, ONE)
    assert (summary.status, summary.findings) == ("success", {})
    assert len(world.embedder.texts) == 2, "what the generation has is not embedded again"
    assert world.audit().clean


def test_an_outage_does_not_remove_what_a_lost_ledger_does_not_know() -> None:
    world = world_of({A: FIRST, B: SECOND})
    world.ledger = MemoryLedger()
    show(world, {A: FIRST})
    world.source.failing[B] = "answers 503"
    summary = run(world, ONE)
    assert (summary.status, summary.findings) == ("success", {})
    assert addresses(world) == {A, B}
    show(world, {A: FIRST, B: SECOND})
    assert run(world, ONE).status == "success"
    assert world.embedder.texts == [], "it was there all the time"
    assert world.audit().clean
    assert world.ledger.writes.pending(SOURCE) == {}


def test_what_is_gone_goes_with_a_lost_ledger_all_the_same() -> None:
    world = world_of({A: FIRST, B: SECOND, C: FIRST})
    world.ledger = MemoryLedger()
    show(world, {A: FIRST, C: Page("gone")})
    assert run(world, ONE).status == "success"
    assert addresses(world) == {A}
    assert world.audit().clean


def test_a_document_too_large_that_a_lost_ledger_does_not_know_leaves_nothing() -> None:
    world = world_of({A: FIRST, B: SECOND})
    world.ledger = MemoryLedger()
    show(world, {A: FIRST, B: Page("too_large")})
    summary = run(world, ONE)
    assert (summary.status, summary.findings) == ("success", {})
    assert addresses(world) == {A}
    assert world.ledger.writes.pending(SOURCE) == {}


def test_a_document_too_large_is_in_quarantine_though_its_last_good_version_is_written_again() -> (
    None
):
    world = world_of({A: FIRST, B: SECOND})
    world.lose_index()
    show(world, {A: FIRST, B: Page("too_large")})
    summary = run(world, ONE)
    assert summary.documents == {"update": 1, "quarantine": 1}
    record = world.ledger.documents.get(document_id(SOURCE, B))
    assert record is not None
    assert record.status is DocumentStatus.QUARANTINED
    assert addresses(world) == {A, B}
    assert world.audit().clean
    assert run(world, ONE).documents == {"keep": 2}


def test_a_loss_is_found_also_while_the_note_of_another_write_is_there() -> None:
    """One clean run heals both: what a kill has left, and what somebody has deleted."""
    world = world_of({A: FIRST, B: SECOND})
    world.ledger.writes.open_intent("killed", SOURCE, {document_id(SOURCE, A): A})
    of_b = {"document_id": str(document_id(SOURCE, B))}
    world.index.delete_points(1, [next(iter(world.index.scan_points(1, of_b))).point_id])
    show(world, {A: FIRST, B: SECOND})
    summary = run(world, ONE)
    assert (summary.status, summary.reconciled) == ("success", 1)
    assert len(world.embedder.texts) == 1
    assert world.audit().clean


def test_a_ledger_from_the_middle_of_a_run_is_told_from_one_of_its_end() -> None:
    """Its mark was already that of the run, which wrote more after the copy was taken."""
    world = world_of({A: FIRST, B: SECOND})
    show(world, {A: SECOND, B: SECOND})
    copies: list[Any] = []
    whole = world.ledger.writes.open_intent

    def begin(*told: Any) -> None:
        copies.append(deepcopy(world.ledger))
        whole(*told)

    world.ledger.writes.open_intent = begin  # type: ignore[method-assign]
    run(world, ONE)
    [world.ledger] = copies
    show(world, {A: Page(paragraphs=("Nothing moves.", "A mast stands.")), B: SECOND})
    summary = run(world, ONE)
    assert (summary.status, summary.reconciled) == ("success", 1)
    assert world.audit().clean


def test_a_page_that_moves_while_a_generation_is_built_stays_to_be_found_where_searches_look() -> (
    None
):
    world = world_of({A: FIRST, B: SECOND})
    show(world, {C: FIRST, A: Page("moved", target=C), B: SECOND}, TWO)
    assert run(world, TWO, declared=(SOURCE, "another")).status == "success"
    assert (addresses(world, 1), addresses(world, 2)) == ({A, B}, {C, B})
    show(world, {B: SECOND}, TWO)
    run(world, TWO, declared=(SOURCE, "another"))
    assert (addresses(world, 1), addresses(world, 2)) == ({B}, {B}), "what is gone is gone"
    show(world, {B: SECOND}, TWO)
    run(world, TWO)
    assert (world.index.live(), world.index.generations()) == (2, [2])


def test_a_vector_gone_wrong_is_not_carried_to_another_address() -> None:
    world = world_of({A: FIRST, B: SECOND})
    of_a = {"document_id": str(document_id(SOURCE, A))}
    point = next(iter(world.index.scan_points(1, of_a)))
    world.index.upsert_points(1, [PointWrite(point.point_id, point.payload, (0.25,) * 16)])
    show(world, {B: SECOND, A: Page("gone")})
    run(world, ONE)
    show(world, {B: SECOND, C: FIRST})
    run(world, ONE)
    assert len(world.embedder.texts) == 1, "the other vector of it was good"
    right = world_of({C: FIRST})
    here, there = (
        {p.point_id: p.dense for p in w.index.scan_points(1, vectors=True)} for w in (world, right)
    )
    assert there.items() <= {k: pytest.approx(v) for k, v in here.items()}.items()


def test_a_plan_that_was_thrown_away_is_an_error_with_a_cure() -> None:
    world = world_of({A: FIRST})
    job = ONE.job(world)
    with pytest.raises(PermanentError, match="no longer in the artifact store"):
        list(read_plan(world.artifacts, plan_key(job.run_id)))
    with pytest.raises(PermanentError):
        sweep(job, world.deps(), 1)
