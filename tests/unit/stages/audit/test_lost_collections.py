"""A generation that lost one of its collections, or was dropped by half, and aliases over the wrong one."""

from datetime import timedelta

import pytest
from audits import Audited
from store_losses import What, lose, move_sections_alias
from worlds import SOURCE, CountingEmbedder, World, page

from fakes.embedder import HashEmbedder
from fakes.index import MemoryIndex
from tidemark.domain.errors import PermanentError
from tidemark.stages.audit.audit import AuditReport
from tidemark.stages.generations import planned_generation
from tidemark.stages.housekeeping import Retention, collect_garbage
from tidemark.stages.job import Stores, embed_fingerprint
from tidemark.stages.search import search
from tidemark.stages.takedown.requests import find
from tidemark.stages.takedown.takedown import take_down

A, B = "https://example.org/a", "https://example.org/b"
SECRET = "The tide rises in the hidden harbour."
LOST: tuple[What, What] = ("points", "sections")


class HalfDropping(MemoryIndex):
    """An index whose drops are killed halfway."""

    half = True

    def drop(self, generation: int) -> None:
        if not self.half:
            super().drop(generation)
            return
        lose(self, generation, "points")
        raise KeyboardInterrupt


def kinds(report: AuditReport) -> dict[str, int]:
    return {kind: n for kind, n in report.counts.items() if n}


def texts(world: World) -> list[str]:
    index = world.index
    return [
        str(found.payload)
        for generation in index.generations()
        for scan in (index.scan_points, index.scan_sections)
        for found in scan(generation)
    ]


def filled(index: MemoryIndex | None = None) -> World:
    world = World(index=index)
    world.documents[A] = page("A", SECRET)
    world.documents[B] = page("B", "Another gauge.")
    world.run()
    return world


def half_dropped() -> World:
    """The model changed, and the run that dropped the old generation was killed in the middle of it."""
    world = filled(HalfDropping())
    world.embedder = CountingEmbedder(HashEmbedder(24))
    with pytest.raises(KeyboardInterrupt):
        world.run()
    world.index.half = False  # type: ignore[attr-defined]
    assert world.index.live() == 2
    assert world.index.incomplete() == {1: "points"}
    return world


def stores(world: World) -> Stores:
    return Stores(world.ledger, world.artifacts, world.index, lambda: world.now)


# A drop that was killed


def test_a_takedown_reaches_what_a_killed_drop_left() -> None:
    world = half_dropped()
    [found] = find(stores(world), [A], [SOURCE])
    proof = take_down(stores(world), found).proof()
    sections = proof["sections"]
    assert isinstance(sections, dict)
    assert sections["g1"] == [2, 0]
    assert not any(SECRET in text for text in texts(world))


def test_an_audit_drops_what_a_killed_drop_left() -> None:
    world = half_dropped()
    audited = Audited(world)
    audited.names = {"docs"}
    # Killed before the ledger's row: it still calls the old one live.
    assert kinds(audited.audit()) == {"live_name": 1}
    report = audited.audit(repair=True)
    assert not report.differs
    assert world.index.generations() == [2]
    assert audited.audit().clean


def test_housekeeping_drops_what_a_killed_drop_left_once_a_run_was_there() -> None:
    world = half_dropped()
    world.run()
    world.now += timedelta(days=3)
    embed = embed_fingerprint(world.embedder, world.lexical)
    collect_garbage(stores(world), Retention(), "tidemark", embed, [SOURCE])
    assert world.index.generations() == [2]
    assert world.audit().clean


def test_the_number_of_what_a_killed_drop_left_is_not_given_again() -> None:
    world = filled()
    world.index.ensure(7, 24, "another model")
    lose(world.index, 7, "points")
    assert planned_generation(world.ledger, world.index, "tidemark", "a third model") == 8


# A collection that is lost


@pytest.mark.parametrize("lost", LOST)
def test_an_audit_tells_of_a_lost_collection_and_its_repair_makes_it_again(lost: What) -> None:
    audited = Audited().fill()
    before, index = audited.held(), audited.world.index
    lose(index, 1, lost)
    report = audited.audit()
    kind, count = f"missing_{lost}", len(before[LOST.index(lost)])
    assert report.counts[kind] == count
    assert report.notes[kind] == [f"generation 1 has lost its collection of {lost}"]
    repaired = audited.audit(repair=True)
    assert not repaired.differs
    assert repaired.did["collections_made"] == 1
    assert audited.held() == before
    assert (index.live(), index.built_under(1) != "") == (1, True)
    # Vectors are made anew only where they were lost.
    assert len(audited.world.embedder.texts) == (count if lost == "points" else 0)
    assert repaired.did.get("vectors_made", 0) == len(audited.world.embedder.texts)
    assert audited.audit().clean


@pytest.mark.parametrize("lost", LOST)
def test_a_lost_collection_is_filled_by_the_repair_of_each_source_alone(lost: What) -> None:
    audited = Audited().fill()
    before = audited.held()
    lose(audited.world.index, 1, lost)
    for source in ("docs", "wiki"):
        assert not audited.audit(source, repair=True).differs
    assert audited.held() == before
    assert audited.audit().clean


@pytest.mark.parametrize("lost", LOST)
def test_the_next_run_of_a_source_fills_a_lost_collection_too(lost: What) -> None:
    audited = Audited().fill()
    before = audited.held()
    lose(audited.world.index, 1, lost)
    audited.run()
    assert audited.held() == before
    assert audited.audit().clean


@pytest.mark.parametrize("lost", LOST)
def test_a_takedown_goes_on_with_what_is_there(lost: What) -> None:
    world = filled()
    lose(world.index, 1, lost)
    [found] = find(stores(world), [A], [SOURCE])
    take_down(stores(world), found)
    assert not any(SECRET in text for text in texts(world))
    world.run()
    assert not any(SECRET in text for text in texts(world))
    assert world.audit().clean


def test_a_search_answers_without_sections_and_names_the_cure_without_points() -> None:
    world = filled()
    lose(world.index, 1, "sections")
    [first, *_] = search(world.searcher(), SECRET)
    assert (first.chunk.payload["text"], first.section) == (SECRET, None)
    world = filled()
    lose(world.index, 1, "points")
    with pytest.raises(PermanentError, match=r"lost its collection of points.*audit --repair"):
        search(world.searcher(), SECRET)


def test_what_is_served_while_a_new_generation_is_built_may_lose_its_sections() -> None:
    audited = Audited().fill()
    audited.world.embedder = CountingEmbedder(HashEmbedder(32))
    from tidemark.pipeline import run_source

    assert run_source(*audited.job_factory("docs"), "test").status == "success"
    index = audited.world.index
    assert (index.live(), index.generations()) == (1, [1, 2])
    lose(index, 1, "sections")
    report = audited.audit(repair=True)
    assert report.counts["missing_sections"]
    assert index.incomplete() == {}
    audited.run()
    assert (index.live(), index.generations()) == (2, [2])
    assert audited.audit().clean


# The alias of the sections


@pytest.mark.parametrize("over", [None, 2])
@pytest.mark.parametrize("by", ["audit", "run"])
def test_an_alias_of_the_sections_that_is_wrong_is_found_and_put_right(
    over: int | None, by: str
) -> None:
    audited = Audited().fill()
    index = audited.world.index
    move_sections_alias(index, over)
    report = audited.audit()
    assert kinds(report) == {"live_name": 1}
    assert "sections" in report.notes["live_name"][0]
    if by == "run":
        audited.run()
    else:
        report = audited.audit(repair=True)
        assert not report.differs
        assert report.did == {"live_name_moved": 1}
    assert (index.live(), index.live_sections()) == (1, 1)
    assert audited.audit().clean
