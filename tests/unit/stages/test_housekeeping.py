"""What nobody refers to goes, what a run may need stays, and a dry run tells the same."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kills import Fuse, Killing, killed
from worlds import SOURCE, World, page

from fakes.artifacts import MemoryArtifacts
from tidemark import pipeline
from tidemark.domain.hashing import digest
from tidemark.domain.identity import document_id
from tidemark.domain.records import (
    AuditRecord,
    GenerationRecord,
    GenerationStatus,
    RunDocument,
    RunRecord,
    RunStatus,
)
from tidemark.stages.housekeeping import Housekeeping, Retention, collect_garbage
from tidemark.stages.job import Stores, embed_fingerprint, listing_key, raw_key
from tidemark.stages.report import begin, finish, from_ledger
from tidemark.stages.takedown.requests import DocumentRef
from tidemark.stages.takedown.takedown import take_down

A, B, C = (f"https://example.org/{name}" for name in "abc")


@pytest.fixture
def world() -> World:
    made = new_world()
    made.documents[A] = page("A", "The tide rises.")
    made.documents[B] = page("B", "The tide falls.")
    made.run()
    return made


def new_world() -> World:
    made = World(artifacts=MemoryArtifacts(lambda: made.now))
    return made


def stores_of(world: World, fuse: Fuse | None = None) -> Stores:
    fuse = fuse or Fuse()
    ports = [Killing(p, fuse) for p in (world.ledger, world.artifacts, world.index)]
    return Stores(*ports, lambda: world.now)  # type: ignore[arg-type]


def clean(world: World, fuse: Fuse | None = None, **options: object) -> Housekeeping:
    embed = embed_fingerprint(world.embedder, world.lexical)
    options = {"declared": [SOURCE], "retention": Retention(), **options}
    return collect_garbage(stores_of(world, fuse), index_name="tidemark", embed=embed, **options)  # type: ignore[arg-type]


def removed(done: Housekeeping) -> dict[str, int]:
    return {kind: freed.count for kind, freed in done.removed.items() if freed.count}


def cleaned(world: World, **options: object) -> dict[str, int]:
    """What went; a dry run before it must have told the same, and changed nothing."""
    before = state(world)
    dry = clean(world, dry_run=True, **options)
    assert state(world) == before
    done = clean(world, **options)
    assert (dry.removed, dry.notes) == (done.removed, done.notes)
    assert clean(world, dry_run=True, **options).freed_bytes == 0
    return removed(done)


def state(world: World) -> tuple[object, ...]:
    ledger = world.ledger
    return (
        sorted(world.artifacts.entries(), key=lambda e: e.key),
        world.index.generations(),
        list(ledger.documents.stream()),
        list(ledger.versions.stream()),
        ledger.runs.recent(limit=1000),
        ledger.generations.audits(limit=1000),
        [ledger.tombstones.by_uri(uri) for uri in (A, B, C)],
    )


def later(world: World, **by: float) -> None:
    world.now += timedelta(**by)


def garbage(world: World) -> list[str]:
    """Something of every kind that nobody refers to."""
    raw = digest(b"nobody's")
    keys = [raw_key(raw), f"elements/{raw}.x", f"vectors/{uuid4()}.x", "runs/unknown/plan.jsonl"]
    for key in keys:
        world.artifacts.write(key, b"nobody's")
    return keys


def test_what_nobody_refers_to_goes_a_day_later(world: World) -> None:
    keys = garbage(world)
    assert cleaned(world) == {}
    later(world, hours=25)
    assert cleaned(world) == {"raw": 1, "elements": 1, "vectors": 1, "run_files": 1}
    assert not [key for key in keys if world.artifacts.exists(key)]
    world.embedder.texts.clear()
    summary = world.run()
    assert (summary.work["partition"], summary.work["embed"]) == (0, 0)
    assert world.audit().clean


def test_it_says_how_many_bytes_were_freed(world: World) -> None:
    garbage(world)
    later(world, days=2)
    done = clean(world)
    assert done.freed_bytes == 4 * len(b"nobody's")
    assert done.as_dict()["removed"]["raw"] == {"count": 1, "bytes": 8}  # type: ignore[index,call-overload]
    assert done.sentence().startswith("Removed 1 raw, 1 elements")


def test_keys_of_no_known_form_are_left_alone(world: World) -> None:
    for key in ("vectors/notes.txt", "notes/mine", "vectors/none"):
        world.artifacts.write(key, b"x")
    later(world, days=2)
    assert cleaned(world) == {}


def test_what_is_in_the_ledger_stays_however_old(world: World) -> None:
    world.documents[A] = page("A", "The tide rises twice.")
    world.run()
    later(world, days=80)
    assert cleaned(world) == {}
    assert len(list(world.artifacts.keys("raw/"))) == 3, "the replaced version too"


def test_a_replaced_version_goes_with_its_snapshot_after_its_days(world: World) -> None:
    world.documents[A] = page("A", "The tide rises twice.")
    world.run()
    later(world, days=91)
    assert cleaned(world) == {"raw": 1, "elements": 1, "versions": 1}
    assert len(world.ledger.versions.of(document_id(SOURCE, A))) == 1


def test_elements_of_a_parser_of_the_past_go_a_month_later(world: World) -> None:
    record = world.ledger.documents.get(document_id(SOURCE, A))
    assert record is not None
    world.artifacts.write(f"elements/{record.raw_hash}.of-another-parser", b"x")
    later(world, days=29)
    assert cleaned(world) == {}
    later(world, days=2)
    assert cleaned(world) == {"elements": 1}


def test_a_removed_document_keeps_what_restores_it_within_its_grace(world: World) -> None:
    del world.documents[A]
    world.source.gone[A] = "404"
    world.run()
    later(world, days=20)
    assert cleaned(world) == {}
    world.documents[A] = page("A", "The tide rises.")
    del world.source.gone[A]
    assert world.run().chunks.embedded == 0
    later(world, days=2)
    assert cleaned(world) == {"vectors": 1}, "it is live again and needs them no more"


def test_a_source_that_nobody_declares_any_more_expires_too(world: World) -> None:
    del world.documents[A]
    world.source.gone[A] = "404"
    world.run()
    later(world, days=29)
    assert cleaned(world, declared=[]) == {}
    later(world, days=2)
    assert cleaned(world, declared=[SOURCE]) == {}, "that is for its own runs to do"
    found = cleaned(world, declared=[])
    assert found == {"raw": 1, "elements": 1, "vectors": 1, "expired_documents": 1}
    [tombstone] = world.ledger.tombstones.by_uri(A)
    assert tombstone.expired
    assert world.ledger.versions.of(tombstone.document_id) == []


def test_a_source_that_a_run_holds_is_left_for_the_next_time(world: World) -> None:
    del world.documents[A]
    world.source.gone[A] = "404"
    world.run()
    later(world, days=31)
    with world.ledger.lock(SOURCE):
        done = clean(world, declared=[])
    assert removed(done) == {}
    assert SOURCE in done.notes[0]
    assert not world.ledger.tombstones.by_uri(A)[0].expired


def test_tombstones_are_forgotten_after_a_year_but_those_that_keep_out(world: World) -> None:
    del world.documents[A]
    world.source.gone[A] = "404"
    world.run()
    take_down(stores_of(world), DocumentRef.at(SOURCE, B))
    later(world, days=31)
    assert "tombstones" not in cleaned(world, declared=[])
    later(world, days=366)
    assert cleaned(world, declared=[])["tombstones"] == 1
    assert world.ledger.tombstones.by_uri(A) == []
    assert [tombstone.uri for tombstone in world.ledger.tombstones.blocking(SOURCE)] == [B]


def test_old_runs_go_with_their_files_and_the_latest_stay(world: World) -> None:
    for _ in range(22):
        world.run()
    later(world, days=181)
    found = cleaned(world)
    assert found["runs"] == 3
    assert found["run_files"] >= 3
    assert len(world.ledger.runs.recent(SOURCE, limit=100)) == 20
    assert not world.artifacts.exists(listing_key("run-0001"))
    assert world.artifacts.exists(listing_key("run-0023"))


def test_old_audits_go_and_the_latest_stays(world: World) -> None:
    for _ in range(3):
        world.ledger.generations.save_audit(AuditRecord(None, world.now, {"checked": 1}, 0))
        later(world, days=1)
    later(world, days=200)
    assert cleaned(world)["audits"] == 2
    assert len(world.ledger.generations.audits()) == 1


def test_a_run_whose_process_was_killed_is_ended(world: World) -> None:
    run = RunRecord("gone", SOURCE, "cli", RunStatus.RUNNING, world.now, None, "By hand.", None)
    world.ledger.runs.save(run)
    later(world, days=1)
    assert cleaned(world) == {}
    later(world, days=2)
    with world.ledger.lock(SOURCE):
        assert removed(clean(world)) == {}, "somebody is at it still"
    assert cleaned(world) == {"killed_runs": 1}
    ended = world.ledger.runs.get("gone")
    assert ended is not None
    assert (ended.status, ended.note) == (RunStatus.FAILED, "By hand. It was killed.")


@pytest.mark.parametrize("growing", ["runs/long/furniture.json", "raw/of-its-crawl"])
def test_a_run_that_has_written_something_lately_was_not_killed(world: World, growing: str) -> None:
    run = RunRecord("long", SOURCE, "cli", RunStatus.RUNNING, world.now, None, "", None)
    world.ledger.runs.save(run)
    later(world, days=4)
    world.artifacts.write(growing, b"x")
    later(world, hours=23)
    assert cleaned(world) == {}
    later(world, hours=2)
    assert cleaned(world) == {"killed_runs": 1}


def test_bytes_of_other_runs_keep_no_run_alive_for_ever(world: World) -> None:
    run = RunRecord("long", "another", "cli", RunStatus.RUNNING, world.now, None, "", None)
    world.ledger.runs.save(run)
    later(world, days=8)
    world.run(force=True)
    assert cleaned(world) == {"killed_runs": 1}


@pytest.mark.parametrize("status", [RunStatus.RUNNING, RunStatus.FAILED])
@pytest.mark.parametrize("later_runs", [1, 120])
def test_a_later_run_takes_nothing_from_one_that_may_be_taken_up(
    world: World, status: RunStatus, later_runs: int
) -> None:
    begun = RunRecord("dag", SOURCE, "dag", RunStatus.RUNNING, world.now, None, "", None)
    world.ledger.runs.save(begun)
    keys = garbage(world)
    if status is RunStatus.FAILED:
        world.ledger.runs.save(replace(begun, status=status, finished_at=world.now))
    later(world, days=1.5)
    for n in range(later_runs):
        ended = replace(begun, run_id=f"quick-{n}", started_at=world.now, finished_at=world.now)
        world.ledger.runs.save(replace(ended, status=RunStatus.SUCCESS))
    later(world, hours=10)
    assert cleaned(world) == {}
    assert all(world.artifacts.exists(key) for key in keys)


def test_a_run_that_began_long_ago_and_failed_yesterday_may_be_taken_up(world: World) -> None:
    begun = RunRecord("slow", SOURCE, "dag", RunStatus.RUNNING, world.now, None, "", None)
    world.ledger.runs.save(begun)
    garbage(world)
    later(world, days=8)
    world.ledger.runs.save(replace(begun, status=RunStatus.FAILED, finished_at=world.now))
    later(world, days=1)
    assert cleaned(world) == {}


def test_what_a_failed_run_fetched_is_kept_for_a_week_for_it_may_be_taken_up(world: World) -> None:
    run = RunRecord("sad", SOURCE, "cli", RunStatus.RUNNING, world.now, None, "", None)
    world.ledger.runs.save(run)
    garbage(world)
    world.ledger.runs.save(replace(run, status=RunStatus.FAILED, finished_at=world.now))
    later(world, days=6)
    done = clean(world)
    assert removed(done) == {}
    assert "sad" in done.notes[0]
    later(world, days=2)
    assert cleaned(world)["raw"] == 1


def test_dead_generations_are_dropped_and_the_live_and_the_growing_stay(world: World) -> None:
    for number, status in [
        (2, GenerationStatus.RETIRED),
        (3, GenerationStatus.BUILDING),
        (4, None),
    ]:
        world.index.ensure(number, 64, "another")
        if status is not None:
            world.ledger.generations.save(
                GenerationRecord("tidemark", number, "another", 64, status, world.now)
            )
    [record] = [r for r in world.ledger.documents.stream() if r.uri == B]
    event = RunDocument("run", record.document_id, B, "update", "model")
    world.ledger.writes.update(replace(record, generation=3), event)
    assert cleaned(world) == {"generations": 2}
    assert world.index.generations() == [1, 3]


def test_a_generation_that_was_given_up_goes_once_it_is_empty_and_nothing_runs(
    world: World,
) -> None:
    world.index.ensure(2, 24, "another")
    made = GenerationRecord("tidemark", 2, "another", 24, GenerationStatus.BUILDING, world.now)
    world.ledger.generations.save(made)
    run = RunRecord("one", "other", "airflow", RunStatus.RUNNING, world.now, None, "", None)
    world.ledger.runs.save(run)
    assert cleaned(world) == {}
    world.ledger.runs.save(replace(run, status=RunStatus.SUCCESS, finished_at=world.now))
    assert cleaned(world) == {"generations": 1}
    assert world.index.generations() == [1]
    assert world.ledger.generations.all("tidemark")[1].status is GenerationStatus.RETIRED


def test_a_generation_that_only_the_index_knows_stays_while_the_next_run_would_use_it() -> None:
    """The ledger is of a time before it was begun."""
    world = new_world()
    world.documents[A] = page("A", "The tide rises.")
    world.run()
    del world.ledger.tables.generations["tidemark", 1]  # type: ignore[attr-defined]
    assert cleaned(world) == {}


def test_a_takedown_that_was_cut_short_is_told_of(world: World) -> None:
    fuse = Fuse(6)
    found = DocumentRef.at(SOURCE, A)
    killed(lambda _: take_down(stores_of(world, fuse), found), None)
    done = clean(world)
    assert f"`tidemark takedown {A}`" in done.notes[0]


# Beside a run


def steps(world: World) -> Iterator[str]:
    """A run as the tasks of its DAG are: stops after each stage, and between the batches."""
    job, deps = world.job(batch_documents=1), world.deps()
    begin(job, deps, "test")
    yield "begun"
    pipeline.crawl(job, deps, "test")
    yield "crawled"
    plan = pipeline.plan(job, deps)
    for key in plan.batches:
        yield "planned"
        pipeline.process(job, deps, plan.generation, key)
    yield "processed"
    pipeline.sweep(job, deps, plan.generation)
    yield "swept"
    summary = replace(from_ledger(job, world.ledger, plan), status="success")
    finish(job, deps, summary)


def change_a(world: World) -> None:
    world.documents[A] = page("A", "The tide rises higher.")


def bring_back_old_bytes(world: World) -> None:
    """Bytes that lie in the store unused, and old."""
    world.documents[C] = page("C", "The tide stands still.")
    world.artifacts.write(
        raw_key(digest(str(world.documents[C]).encode())), world.documents[C].encode()
    )  # type: ignore[union-attr]


def come_back(world: World) -> None:
    body = world.documents.pop(A)
    world.source.gone[A] = "404"
    world.run()
    del world.source.gone[A]
    world.documents[A] = body


def move(world: World) -> None:
    world.documents[C] = world.documents.pop(A)
    world.source.moved[A] = C


def go(world: World) -> None:
    del world.documents[A]
    world.source.gone[A] = "404"


CHANGES: list[Callable[[World], None]] = [change_a, bring_back_old_bytes, come_back, move, go]


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    changes=st.lists(st.sampled_from(CHANGES[:2] + CHANGES[2:]), max_size=1),
    more=st.sampled_from([None, change_a, bring_back_old_bytes]),
    moments=st.sets(st.sampled_from(["begun", "crawled", "planned", "processed", "swept"])),
    waits=st.sampled_from([0, 30, 47]),
)
def test_a_run_beside_it_needs_nothing_twice(
    changes: list[Callable[[World], None]],
    more: Callable[[World], None] | None,
    moments: set[str],
    waits: float,
) -> None:
    """Housekeeping at any moments of a run, which may last for days while a person is asked."""

    def begun() -> World:
        world = new_world()
        world.documents[A] = page("A", "The tide rises.")
        world.documents[B] = page("B", "The tide falls.")
        world.run()
        for change in changes:
            change(world)
        if more not in (None, *changes) and A in world.documents:
            more(world)  # type: ignore[misc]
        later(world, days=3)
        world.source.fetched.clear()
        world.embedder.texts.clear()
        return world

    alone, beside = begun(), begun()
    for _ in steps(alone):
        pass
    for moment in steps(beside):
        later(beside, hours=waits / 3)
        if moment in moments:
            clean(beside)
    assert beside.source.fetched == alone.source.fetched
    assert beside.embedder.texts == alone.embedder.texts
    assert list(beside.ledger.documents.stream(quarantined=True)) == []
    assert beside.texts() == alone.texts()
    assert beside.audit().clean
    beside.source.fetched.clear()
    beside.embedder.texts.clear()
    again = beside.run()
    assert (again.status, again.work["fetch"], again.work["embed"]) == ("success", 0, 0)


def test_what_is_written_while_the_garbage_is_listed_stays(world: World) -> None:
    """The crawl of a run that begins now fetches the very bytes that are about to be deleted."""
    [raw, *_] = garbage(world)
    later(world, days=2)
    inner = world.ledger.versions.raw_in_use

    def late(raw_hashes: Sequence[str]) -> set[str]:
        used = inner(raw_hashes)
        world.artifacts.write(raw, b"nobody's")
        return used

    world.ledger.versions.raw_in_use = late  # type: ignore[method-assign]
    embed = embed_fingerprint(world.embedder, world.lexical)
    done = collect_garbage(stores_of(world), Retention(), "tidemark", embed, [SOURCE])
    assert world.artifacts.exists(raw)
    assert done.removed["raw"].count == 0


@pytest.mark.slow
def test_killed_at_any_write_and_repeated_it_is_done() -> None:
    def rich_world() -> World:
        world = new_world()
        world.documents.update({A: page("A", "It rises."), B: page("B", "It falls.")})
        world.run()
        world.documents[A] = page("A", "It rises twice.")
        del world.documents[B]
        world.source.gone[B] = "404"
        world.run()
        for _ in range(20):
            world.run()
        garbage(world)
        world.index.ensure(7, 64, "another")
        later(world, days=400)
        return world

    whole = rich_world()
    ticks = killed(lambda fuse: clean(whole, fuse, declared=[]), None)
    clean(whole, declared=[])
    assert ticks > 15
    for at in range(0, ticks, 3):
        world = rich_world()
        killed(lambda fuse, world=world: clean(world, fuse, declared=[]), at)  # type: ignore[misc]
        clean(world, declared=[])
        assert sorted(world.artifacts.keys("raw/")) == sorted(whole.artifacts.keys("raw/"))
        assert removed(clean(world, dry_run=True, declared=[])) == {}
        assert world.audit().clean
        assert world.run().status == "success"


# What each run does for its own source


def test_past_its_grace_a_removed_document_loses_its_history_and_all_its_snapshots() -> None:
    world = new_world()
    world.documents[A] = page("A", "The tide rises.")
    world.run()
    world.documents[A] = page("A", "The tide rises twice.")
    world.documents[B] = page("A", "The tide rises.")
    world.run(judge=False)
    del world.documents[A]
    world.source.gone[A] = "404"
    world.run(judge=False)
    key = document_id(SOURCE, A)
    assert len(world.ledger.versions.of(key)) == 3, "its removal is the last"
    later(world, days=31)
    world.run(judge=False)
    assert world.ledger.versions.of(key) == []
    assert list(world.artifacts.keys("vectors/")) == []
    [shared] = world.artifacts.keys("raw/")
    assert shared == raw_key(digest(page("A", "The tide rises.").encode())), "B has it too"
    assert world.artifacts.read(shared)
