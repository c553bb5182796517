"""A document that is taken down is gone from every store, and stays out."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from kills import Fuse, killed
from takedowns import holders, live_uris, meant, run_until, stores_of, taken_down
from worlds import SOURCE, World, page

from fakes.embedder import HashEmbedder
from fakes.inspector import MarkInspector
from fakes.source import MemorySource
from tidemark.domain.chunks import PointWrite, SparseVector
from tidemark.domain.documents import (
    CrawlEnd,
    CrawlItem,
    Outcome,
    PartitionedDocument,
    RawDocument,
    SourceItem,
)
from tidemark.domain.errors import DocumentError
from tidemark.domain.hashing import digest
from tidemark.domain.identity import document_id
from tidemark.stages.generations import ensure_generation
from tidemark.stages.job import raw_key
from tidemark.stages.takedown.requests import DocumentRef, find, unfinished
from tidemark.stages.takedown.takedown import take_down, unblock

A, B, C, D, E = (f"https://example.org/{name}" for name in "abcde")
SECRET = "The tide tables of the hidden harbour."
LONG = [f"{SECRET} Its page number {n} says something of its own at length." for n in range(12)]


@pytest.fixture
def world() -> World:
    made = World()
    made.documents[A] = page("A", SECRET, "It rises.")
    made.documents[B] = page("B", "Another gauge.", "It falls.")
    made.run()
    return made


Yielded = CrawlItem | CrawlEnd


class Crawling:
    """A source whose crawl is told otherwise."""

    def __init__(
        self, inner: MemorySource, change: Callable[[Iterator[Yielded]], Iterator[Yielded]]
    ):
        self.inner, self.change = inner, change

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def crawl(self, *arguments: Any) -> Iterator[Yielded]:
        return self.change(self.inner.crawl(*arguments))


def crawling(world: World, change: Callable[[Iterator[Yielded]], Iterator[Yielded]]) -> None:
    world.source = Crawling(world.source, change)  # type: ignore[assignment]


class Cache:
    def __init__(self) -> None:
        self.held = 7

    def count(self) -> int:
        return self.held

    def clear(self) -> int:
        self.held = 0
        return 7


def assert_gone(world: World, uri: str = A) -> None:
    key = document_id(SOURCE, uri)
    assert list(holders(world, SECRET)) == []
    assert world.ledger.documents.get(key) is None
    assert world.ledger.documents.chunks(key) == []
    assert world.ledger.versions.of(key) == []
    assert world.ledger.writes.pending(SOURCE) == {}
    assert list(unfinished(world.artifacts)) == []
    [tombstone] = [s for s in world.ledger.tombstones.blocking(SOURCE) if s.document_id == key]
    assert (tombstone.title, tombstone.expired, tombstone.taken_down) == ("", True, True)


def test_it_is_removed_from_every_store_and_the_counts_prove_it(world: World) -> None:
    cache = Cache()
    done = taken_down(world, A, cache=cache)
    assert_gone(world)
    proof = done.as_dict()["proof"]
    assert proof == {
        "points": {"g1": [2, 0]},
        "sections": {"g1": [3, 0]},
        "raw": [1, 0],
        "elements": [1, 0],
        "vectors": [0, 0],
        "cached_vectors": [7, 0],
        "ledger_rows": [1 + 3 + 2 + 1, 0],
    }
    assert live_uris(world) == {B}
    assert world.audit().clean


def test_the_next_crawl_does_not_bring_it_back_and_stores_nothing_of_it(world: World) -> None:
    taken_down(world, A)
    summary = world.run()
    assert summary.status == "success"
    assert live_uris(world) == {B}
    assert_gone(world)
    told = [e for e in world.ledger.runs.events_of(document_id(SOURCE, A)) if e.action == "skip"]
    assert told[0].reason == "taken_down"
    assert f"was taken down on {world.now:%Y-%m-%d}" in told[0].detail


def test_it_does_not_come_in_under_another_address(world: World) -> None:
    taken_down(world, A)
    world.documents[C] = world.documents[A]
    world.run()
    assert live_uris(world) == {B}
    assert_gone(world)
    [told] = world.ledger.runs.events_of(document_id(SOURCE, C))
    assert (told.action, told.reason) == ("skip", "taken_down")
    assert f"is {A}, which was taken down" in told.detail
    del world.documents[A]
    summary = world.run()
    assert [line for line in summary.attention if C in line and f"is {A}" in line]
    assert not world.ledger.tombstones.by_id([document_id(SOURCE, C)]), "C itself is free"


def test_an_address_with_a_document_of_its_own_keeps_it(world: World) -> None:
    taken_down(world, A)
    world.documents[B] = world.documents[A]
    world.run()
    assert live_uris(world) == {B}


def test_what_leads_to_it_is_left_out_without_a_nag(world: World) -> None:
    taken_down(world, A)
    lead = CrawlItem(SourceItem(C), Outcome.ALIAS, target=A)
    crawling(world, lambda inner: iter([lead, *inner]))
    summary = world.run()
    assert [line for line in summary.attention if C in line] == []
    assert world.ledger.runs.events_of(document_id(SOURCE, C))[0].reason == "excluded"


class Choosy:
    """A partitioner that one document is too much for."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.fingerprint = inner, inner.fingerprint

    def with_boilerplate(self, boilerplate: frozenset[int]) -> "Choosy":
        return self

    def partition(self, raw: RawDocument) -> PartitionedDocument:
        if b"BROKEN" in raw.content:
            raise DocumentError("partition", "It is broken.", "Mend it.")
        done: PartitionedDocument = self.inner.partition(raw)
        return done


@pytest.mark.parametrize("which", ["first", "replaced", "broken"])
def test_no_bytes_that_were_ever_its_own_come_back_by_renaming(which: str) -> None:
    world = World()
    world.partitioner.inner = Choosy(world.partitioner.inner)
    versions = {
        "first": page("A", SECRET, "At first."),
        "replaced": page("A", SECRET, "Then."),
        "broken": page("A", SECRET, "BROKEN at last."),
    }
    for version in versions.values():
        world.documents[A] = version
        world.run()
    taken_down(world, A)
    del world.documents[A]
    world.documents[C] = versions[which]
    world.run()
    assert live_uris(world) == set()
    assert list(world.ledger.documents.stream()) == []
    assert_gone(world)


@pytest.mark.parametrize("indexed", [True, False], ids=["live text", "text of a duplicate"])
def test_the_same_text_in_other_bytes_does_not_come_back_either(indexed: bool) -> None:
    world = World()
    world.inspector = MarkInspector()
    world.documents[A] = page("A", *LONG)
    if not indexed:
        world.documents[C] = page("A", *LONG) + "\n\n"
    world.run()
    taken_down(world, A)
    world.documents[D] = page("A", *LONG) + "\n"
    summary = world.run()
    assert live_uris(world) == set()
    assert_gone(world)
    [told] = world.ledger.runs.events_of(document_id(SOURCE, D))
    assert f"has the text of {A}" in told.detail
    assert [line for line in summary.attention if D in line]
    unblock(stores_of(world), meant(world, A))
    world.run()
    assert A in live_uris(world)


def test_the_text_of_a_replaced_version_stays_out_too() -> None:
    world = World()
    world.inspector = MarkInspector()
    world.documents[A] = page("A", *LONG)
    world.run()
    world.documents[A] = page("A", *LONG, "And more.")
    world.run()
    taken_down(world, A)
    world.documents[D] = page("A", *LONG) + "\n"
    world.run()
    assert live_uris(world) == set()


def test_a_stub_of_equal_text_is_another_document() -> None:
    world = World()
    world.inspector = MarkInspector()
    world.documents[A] = page("A", "Soon.")
    world.run()
    taken_down(world, A)
    world.documents[D] = page("A", "Soon.") + "\n"
    world.run()
    assert live_uris(world) == {D}


def test_a_wall_that_stood_before_it_is_not_its_own() -> None:
    world = World()
    world.inspector = MarkInspector()
    world.documents[A] = page("A", *LONG)
    world.run()
    wall = page("Wall", *LONG[:3], "SUSPECT login_wall page")
    world.documents[A] = wall
    world.run()
    done = taken_down(world, A)
    assert (done.before["raw"], done.after["raw"]) == (2, 0)
    world.documents[D] = wall
    world.run()
    assert world.ledger.runs.events_of(document_id(SOURCE, D))[0].reason == "login_wall"


def test_an_innocent_twin_may_be_renamed(world: World) -> None:
    world.documents[C] = world.documents[A]
    world.run(judge=False)
    taken_down(world, A)
    world.documents[D] = world.documents.pop(C)
    world.source.gone[C] = "404"
    world.run(judge=False)
    assert live_uris(world) == {B, D}
    assert world.audit().clean


def test_an_innocent_twin_that_was_away_for_a_run_comes_back_elsewhere(world: World) -> None:
    world.documents[C] = twin = world.documents[A]
    world.run(judge=False)
    taken_down(world, A)
    del world.documents[C]
    world.source.gone[C] = "404"
    world.run()
    world.documents[D] = twin
    world.run()
    assert live_uris(world) == {B, D}


def test_a_tombstone_holds_hashes_and_nothing_of_the_text(world: World) -> None:
    world.inspector = MarkInspector()
    world.documents[A] = page("A", *LONG)
    world.run()
    taken_down(world, A)
    [tombstone] = world.ledger.tombstones.blocking(SOURCE)
    assert len(tombstone.blocked_raws) == 2
    assert len(tombstone.blocked_texts) == 2, "as it was inspected, and as it was partitioned"
    assert SECRET not in repr(tombstone)


def test_the_listings_are_read_once_and_under_no_lock(world: World) -> None:
    world.run()
    read: list[tuple[str, bool]] = []
    locked = []
    inner, artifacts = world.ledger.lock_documents, world.artifacts

    @contextmanager
    def lock(ids: Any) -> Iterator[None]:
        with inner(ids):
            locked.append(1)
            yield
            locked.pop()

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(artifacts, name)

        def lines(self, key: str) -> Iterator[str]:
            read.append((key, bool(locked)))
            return artifacts.lines(key)

    world.ledger.lock_documents = lock  # type: ignore[method-assign]
    world.artifacts = Watched()  # type: ignore[assignment]
    taken_down(world, A)
    listings = [key for key in artifacts.keys("runs/") if key.endswith("/listing.jsonl")]
    assert sorted(read) == sorted((key, False) for key in listings)


def test_all_versions_go_and_what_was_fetched_and_never_indexed(world: World) -> None:
    world.documents[A] = page("A", SECRET, "It rises twice.")
    world.run()
    world.inspector = MarkInspector()
    world.documents[A] = page("A", SECRET, "SUSPECT soft_404 page")
    world.run()
    raws = list(world.artifacts.keys("raw/"))
    assert len(raws) == 4
    done = taken_down(world, A)
    assert (done.before["raw"], done.after["raw"]) == (3, 0)
    assert_gone(world)
    assert len(list(world.artifacts.keys("raw/"))) == 1


def test_a_quarantined_document_goes_with_the_bytes_that_failed(world: World) -> None:
    world.documents[C] = b"\xff broken"
    world.run()
    done = taken_down(world, C)
    assert (done.before["raw"], done.after["raw"]) == (1, 0)
    world.run()
    assert world.ledger.documents.get(document_id(SOURCE, C)) is None


def test_bytes_that_another_document_has_too_stay_and_it_says_so(world: World) -> None:
    world.documents[C] = world.documents[A]
    world.run(judge=False)
    assert live_uris(world) == {A, B, C}
    done = taken_down(world, A)
    assert (done.before["raw"], done.after["raw"]) == (1, 1)
    [kept] = done.kept
    assert digest(str(world.documents[A]).encode()) in kept
    assert live_uris(world) == {B, C}
    world.run(judge=False, force=True)
    assert live_uris(world) == {B, C}
    assert world.audit().clean


def test_a_duplicate_leads_to_the_document_and_its_bytes_go_too() -> None:
    world = World()
    world.inspector = MarkInspector()
    world.documents[A] = page("A", *LONG)
    world.documents[C] = page("A", *LONG) + "\n"
    world.run()
    assert [a.uri for a in world.ledger.sources.aliases(SOURCE)] == [C]
    done = taken_down(world, C)
    assert (done.document.uri, done.before["raw"], done.after["raw"]) == (A, 2, 0)
    assert_gone(world, A)
    assert_gone(world, C)
    world.run()
    assert_gone(world, A)
    assert live_uris(world) == set()


def test_an_old_address_leads_to_the_document_that_moved(world: World) -> None:
    world.documents[C] = world.documents.pop(A)
    world.source.moved[A] = C
    world.run()
    assert live_uris(world) == {B, C}
    done = taken_down(world, A)
    assert set(done.addresses) == {A, C}
    assert_gone(world, C)
    del world.source.moved[A]
    world.documents[A] = page("A", SECRET, "It rises.")
    world.run()
    assert_gone(world, A)


def test_a_removed_document_with_the_same_bytes_loses_them_too(world: World) -> None:
    world.documents[C] = world.documents.pop(A)
    world.source.gone[A] = "404"
    world.run()
    assert list(world.artifacts.keys("vectors/"))
    done = taken_down(world, C)
    assert (done.kept, done.after["raw"], done.after["vectors"]) == ([], 0, 0)
    assert_gone(world, C)
    [tombstone] = world.ledger.tombstones.by_uri(A)
    assert (tombstone.expired, tombstone.taken_down) == (True, False)


@pytest.mark.parametrize("days", [0, 60], ids=["restorable", "expired"])
def test_no_removed_twin_keeps_the_title(world: World, days: int) -> None:
    world.documents[C] = world.documents[A] = page(SECRET, "It rises.")
    world.run(judge=False)
    del world.documents[C]
    world.source.gone[C] = "404"
    world.run(judge=False)
    world.now += timedelta(days=days)
    world.run(judge=False)
    [tombstone] = world.ledger.tombstones.by_uri(C)
    assert (tombstone.title, tombstone.expired) == (SECRET, days > 0)
    taken_down(world, A)
    assert [s.title for uri in (A, C) for s in world.ledger.tombstones.by_uri(uri)] == ["", ""]
    assert_gone(world)


def test_a_removed_document_loses_what_it_could_be_restored_from(world: World) -> None:
    del world.documents[A]
    world.source.gone[A] = "404"
    world.run()
    assert list(world.artifacts.keys("vectors/"))
    done = taken_down(world, A)
    assert (done.before["vectors"], done.after["vectors"]) == (1, 0)
    assert_gone(world)


def test_it_leaves_every_generation(world: World) -> None:
    world.embedder = replace(world.embedder, inner=HashEmbedder(32))
    deps = world.deps()
    number = ensure_generation(
        world.ledger, world.index, "tidemark", deps.embedder, deps.lexical, deps.clock
    )
    point = next(p for p in world.index.scan_points(1) if SECRET in str(p.payload["text"]))
    dense = (1.0, *[0.0] * 31)
    world.index.upsert_points(
        number, [PointWrite(point.point_id, point.payload, dense, SparseVector((), ()))]
    )
    done = taken_down(world, A)
    assert done.as_dict()["proof"]["points"] == {"g1": [2, 0], "g2": [1, 0]}  # type: ignore[index,call-overload]
    assert list(holders(world, SECRET)) == []


def test_doing_it_twice_changes_nothing_more(world: World) -> None:
    taken_down(world, A)
    tombstones = world.ledger.tombstones.blocking(SOURCE)
    again = taken_down(world, A)
    assert set(again.before.values()) == {0}
    assert world.ledger.tombstones.blocking(SOURCE) == tombstones


def test_unblocked_it_is_indexed_again_by_the_next_crawl(world: World) -> None:
    taken_down(world, A)
    ref = meant(world, A)
    assert unblock(stores_of(world), ref) == [A]
    assert unblock(stores_of(world), ref) == []
    world.run()
    assert live_uris(world) == {A, B}
    assert world.audit().clean


def test_nothing_is_known_of_a_stranger_and_it_can_be_kept_out_ahead_of_time(world: World) -> None:
    stores = stores_of(world)
    assert find(stores, [C], [SOURCE]) == []
    take_down(stores, DocumentRef.at(SOURCE, C))
    world.documents[C] = page("C", SECRET)
    world.run()
    assert live_uris(world) == {A, B}
    assert not list(world.ledger.documents.by_uri(C))


def test_a_document_of_one_source_stays_in_the_other(world: World) -> None:
    world.run()
    stores = stores_of(world)
    assert find(stores, [A], [SOURCE], source="another") == []


# Beside a run


@pytest.mark.parametrize("late", [False, True], ids=["fetched before", "fetched after"])
def test_a_run_that_has_planned_to_write_it_does_not_bring_it_back(
    world: World, late: bool
) -> None:
    world.documents[A] = page("A", SECRET, "It rises thrice.")

    def then() -> None:
        if late:
            world.now -= timedelta(days=1)
        taken_down(world, A)

    world.now += timedelta(hours=1)
    run_until(world, "planned", then)
    assert live_uris(world) == {B}
    assert_gone(world)


def test_a_crawl_that_began_before_leaves_bytes_that_a_second_takedown_finds(world: World) -> None:
    world.documents[A] = page("A", SECRET, "Yet another.")
    done = []

    def during(inner: Iterator[Yielded]) -> Iterator[Yielded]:
        for value in inner:
            if not done:
                done.append(taken_down(world, A))
            yield value

    crawling(world, during)
    world.run()
    assert live_uris(world) == {B}
    assert taken_down(world, A).before["raw"] == 1
    assert_gone(world)


def test_a_document_cut_short_in_its_first_write_is_found_and_taken_down(world: World) -> None:
    key = document_id(SOURCE, C)
    world.ledger.writes.open_intent("run-x", SOURCE, {key: C})
    taken_down(world, C)
    assert world.ledger.writes.pending(SOURCE) == {}
    assert world.ledger.tombstones.by_id([key])[key].taken_down


def test_a_restored_index_does_not_bring_it_back(world: World) -> None:
    before = [(p.point_id, p.payload, p.dense) for p in world.index.scan_points(1, vectors=True)]
    marks = world.index.epochs(1, SOURCE)
    taken_down(world, A)
    assert world.index.epochs(1, SOURCE) != marks, "the takedown is a write like a run's"
    world.index.upsert_points(1, [PointWrite(k, p, d, SparseVector((), ())) for k, p, d in before])
    world.index.write_epoch(1, SOURCE, marks[0])
    assert live_uris(world) == {A, B}
    world.run()
    assert live_uris(world) == {B}
    assert world.audit().clean


def test_stores_that_are_out_of_step_stay_so_for_the_next_run_to_see(world: World) -> None:
    world.index.write_epoch(1, SOURCE, "of a backup")
    taken_down(world, A)
    assert world.index.epochs(1, SOURCE) == ("of a backup", "of a backup")
    assert world.ledger.sources.epoch(SOURCE) != "of a backup"


# Killed


def rich_world() -> World:
    """A document with an older version, a duplicate, an alias and a removed one of the same bytes."""
    world = World()
    world.inspector = MarkInspector()
    world.documents.update(
        {A: page("A", *LONG, "Old."), B: page("B", "Else."), C: page("C", "See.")}
    )
    world.run()
    world.documents[A] = page("A", *LONG)
    world.documents[D] = page("A", *LONG)
    world.source.gone[C] = "404"
    world.run(judge=False)
    world.source.gone[D] = "404"
    del world.source.gone[C]
    world.documents[C] = page("A", *LONG) + "\n"
    world.source.aliases[E] = A
    world.run()
    assert [a.uri for a in world.ledger.sources.aliases(SOURCE)] == [C, E]
    return world


def attempt(world: World, fuse: Fuse, uri: str) -> None:
    stores = stores_of(world, fuse, Cache())
    take_down(stores, find(stores, [uri], [SOURCE])[0])


@pytest.mark.slow
@pytest.mark.parametrize("uri", [A, C])
def test_killed_at_any_write_and_repeated_it_is_done(uri: str) -> None:
    whole = rich_world()
    ticks = killed(lambda fuse: attempt(whole, fuse, uri), None)
    assert ticks > 20
    for at in range(ticks):
        world = rich_world()
        killed(lambda fuse, world=world: attempt(world, fuse, uri), at)  # type: ignore[misc]
        attempt(world, Fuse(), uri)
        assert_gone(world, A)
        assert_gone(world, C)
        assert_gone(world, E)
        assert list(world.artifacts.keys("raw/")) == [raw_key(digest(page("B", "Else.").encode()))]
        assert [
            k for k in world.artifacts.keys("vectors/") if str(document_id(SOURCE, D)) in k
        ] == []


@pytest.mark.slow
def test_killed_at_any_write_the_next_run_leaves_the_index_right() -> None:
    ticks = killed(lambda fuse: attempt(rich_world(), fuse, A), None)
    for at in range(ticks):
        world = rich_world()
        killed(lambda fuse, world=world: attempt(world, fuse, A), at)  # type: ignore[misc]
        world.run()
        assert world.audit().clean
        assert world.ledger.writes.pending(SOURCE) == {}
        # From the moment that the order is written down, it counts.
        assert live_uris(world) == ({B} if at else {A, B}), "never half of it"


def test_a_request_that_an_older_version_has_written_down_is_finished(world: World) -> None:
    key = str(document_id(SOURCE, A))
    written = {
        "run_id": "docs__takedown__20260101T000000__0",
        "ordered_at": "2026-01-01T00:00:00+00:00",
        "found": [SOURCE, A, key],
        "uris": {key: A},
        "own_bytes": {key: "a hash of bytes"},
        "kept_out": ["another"],
        "texts": [],
        "graves": [],
        "raws": [],
        "counts": {},
        "everywhere": True,
    }
    world.artifacts.write(f"takedowns/{written['run_id']}.json", json.dumps(written).encode())
    world.run()
    assert_gone(world)
    [tombstone] = world.ledger.tombstones.blocking("another source")
    assert {"a hash of bytes", "another"} < set(tombstone.blocked_raws)


def test_the_proof_of_one_that_was_cut_short_counts_from_its_beginning() -> None:
    world = rich_world()
    whole = taken_down(rich_world(), A)
    ticks = killed(lambda fuse: attempt(rich_world(), fuse, A), None)
    killed(lambda fuse: attempt(world, fuse, A), ticks - 3)
    again = taken_down(world, A)
    assert again.before["points.g1"] == whole.before["points.g1"] > 0
    assert again.before["raw"] == whole.before["raw"]
    assert set(again.after.values()) == {0}
