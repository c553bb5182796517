"""What a document was, when, and why it was cut or embedded again."""

from datetime import datetime, timedelta
from io import StringIO

import pytest
from kills import Fuse, KilledError, Killing
from rich.console import Console
from worlds import SOURCE, World, page

from tidemark.cli.explain import explanations
from tidemark.domain.errors import DocumentError
from tidemark.domain.identity import document_id
from tidemark.domain.profile import Profile
from tidemark.stages.explain import Explanation, explain, recall
from tidemark.stages.job import raw_key

A = "https://example.org/a"


def explained(world: World) -> Explanation:
    (found,) = explain(world.ledger, A, [document_id(SOURCE, A)])
    return found


def changed(world: World, text: str) -> datetime:
    """Index another text; when that was done."""
    world.documents[A] = page("A", text)
    world.run()
    return world.now


@pytest.fixture
def world() -> World:
    return World()


def test_each_writing_of_a_document_is_a_version_with_its_reason(world: World) -> None:
    changed(world, "Alpha stands.")
    changed(world, "Beta stands.")
    world.profile = Profile(target_tokens=12, max_tokens=16, min_tokens=0)
    world.run()
    world.run()
    assert [v.reason for v in explained(world).versions] == ["config", "content", "new"]
    hashes = [v.raw_hash for v in explained(world).versions]
    assert hashes[0] == hashes[1] != hashes[2]


def test_each_event_says_when_its_run_began(world: World) -> None:
    first = changed(world, "Alpha stands.")
    second = changed(world, "Beta stands.")
    found = explained(world)
    told = found.as_dict()["events"]
    assert isinstance(told, list)
    minutes = [str(event["began_at"])[:16] for event in told if isinstance(event, dict)]
    assert minutes == [f"{when:%Y-%m-%dT%H:%M}" for when in (second, first)]
    drawn = StringIO()
    Console(file=drawn, width=140).print(explanations(A, [found]))
    assert f"{second:%Y-%m-%d %H:%M}" in drawn.getvalue()


def test_bytes_that_changed_around_the_content_are_a_version_too(world: World) -> None:
    changed(world, "Alpha stands.")
    world.documents[A] = str(world.documents[A]) + "\n\n\n\n"
    world.run()
    assert [v.reason for v in explained(world).versions] == ["furniture", "new"]


def test_a_failure_is_no_version(world: World) -> None:
    changed(world, "Alpha stands.")
    world.documents[A] = b"\xff broken"
    world.run()
    assert [v.reason for v in explained(world).versions] == ["new"]


def test_it_can_be_told_what_was_live_at_any_moment(world: World) -> None:
    before = world.now
    first = changed(world, "Alpha stands.")
    second = changed(world, "Beta stands.")
    found = explained(world)
    assert found.at(before) is None
    for moment, text in ((first, "Alpha stands."), (second, "Beta stands.")):
        version = found.at(moment)
        assert version is not None
        content, as_then = recall(world.artifacts, world.partitioner, version)
        assert [e.text for e in content.elements][-1] == text
        assert as_then


def test_nothing_was_live_while_it_was_gone(world: World) -> None:
    first = changed(world, "Alpha stands.")
    del world.documents[A]
    world.source.gone[A] = "404"
    world.run()
    gone = world.now
    world.source.gone.clear()
    back = changed(world, "Alpha stands.")
    found = explained(world)
    assert [v.reason for v in found.versions] == ["restored", "gone", "new"]
    assert found.at(first) is not None
    assert found.at(gone) is None
    assert found.at(back) is not None


def test_without_its_elements_it_is_read_again_from_its_bytes(world: World) -> None:
    moment = changed(world, "Alpha stands.")
    changed(world, "Beta stands.")
    for key in list(world.artifacts.keys("elements/")):
        world.artifacts.delete(key)
    version = explained(world).at(moment)
    assert version is not None
    content, as_then = recall(world.artifacts, world.partitioner, version)
    assert [e.text for e in content.elements][-1] == "Alpha stands."
    assert not as_then


def test_a_snapshot_that_is_gone_is_said_to_be(world: World) -> None:
    moment = changed(world, "Alpha stands.")
    version = explained(world).at(moment)
    assert version is not None
    for key in [*world.artifacts.keys("elements/"), raw_key(version.raw_hash)]:
        world.artifacts.delete(key)
    with pytest.raises(DocumentError, match="TIDEMARK_HISTORY_DAYS"):
        recall(world.artifacts, world.partitioner, version)


def test_a_document_that_moves_takes_its_history_along(world: World) -> None:
    first = changed(world, "Alpha stands.")
    moved = "https://example.org/moved"
    world.documents[moved] = world.documents.pop(A)
    world.source.moved[A] = moved
    world.run()
    (found,) = explain(world.ledger, moved, [document_id(SOURCE, moved)])
    assert [v.reason for v in found.versions] == ["moved", "new"]
    then, now = found.at(first), found.at(world.now)
    assert then is not None
    assert now is not None
    assert (then.uri, now.uri) == (A, moved)


def test_a_run_that_was_killed_is_not_said_to_run_for_ever(world: World) -> None:
    from tidemark.domain.records import RunRecord, RunStatus

    for run_id, trigger in (("dead", "cli"), ("airflow", "airflow:manual")):
        world.ledger.runs.save(
            RunRecord(run_id, SOURCE, trigger, RunStatus.RUNNING, world.now, None, "", None)
        )
    changed(world, "Alpha stands.")
    dead, airflow = world.ledger.runs.get("dead"), world.ledger.runs.get("airflow")
    assert dead is not None
    assert airflow is not None
    assert (dead.status, dead.note) == (RunStatus.FAILED, "It was killed.")
    assert airflow.status is RunStatus.RUNNING, "between two of its tasks there is no process"


# Of what moves

C, D = "https://example.org/c", "https://example.org/d"


def move(world: World, before: str, now: str) -> datetime:
    world.source.authoritative = True
    world.documents[now] = world.documents.pop(before)
    world.run()
    return world.now


def at(world: World, uri: str, moment: datetime) -> str | None:
    """Where it stood at a moment, by what is told of an address."""
    told = explain(world.ledger, uri, [document_id(SOURCE, uri)])
    version = told[0].at(moment)
    return version.uri if version else None


@pytest.mark.parametrize("redirected", [True, False])
def test_the_history_of_a_document_that_moved_outlives_the_grace_of_its_old_address(
    world: World, redirected: bool
) -> None:
    first = changed(world, "Alpha stands.")
    second = changed(world, "Beta stands.")
    if redirected:
        world.source.moved[A] = C
    move(world, A, C)
    for _ in range(5):
        world.now += timedelta(days=10)
        world.run()
    for moment, text in ((first, "Alpha stands."), (second, "Beta stands.")):
        [told, *_] = explain(world.ledger, C, [document_id(SOURCE, C)])
        version = told.at(moment)
        assert version is not None
        content, _ = recall(world.artifacts, world.partitioner, version)
        assert [e.text for e in content.elements][-1] == text


def test_the_history_of_a_document_that_moved_ends_as_that_of_any_other(world: World) -> None:
    first = changed(world, "Alpha stands.")
    move(world, A, C)
    last = world.ledger.versions.of(document_id(SOURCE, C))[0]
    assert world.ledger.versions.drop(first) == 0
    assert world.ledger.versions.drop(world.now + timedelta(days=400)) == 1
    assert list(world.ledger.versions.stream()) == [last]


def test_a_document_that_moves_again_and_again_is_one(world: World) -> None:
    first = changed(world, "Alpha stands.")
    second, third = move(world, A, C), move(world, C, D)
    for uri in (A, C, D):
        found = [at(world, uri, moment) for moment in (first, second, third)]
        assert found == [A, C, D]
        sentence = explain(world.ledger, uri, [])[0].sentence()
        assert uri == D or f"has moved from this address to {D}" in sentence
    assert {a.uri for a in world.ledger.sources.aliases_of(document_id(SOURCE, D))} == {A, C}
    changed(world, "Another document.")
    assert at(world, D, first) == A
    assert at(world, A, first) is None


def test_a_document_that_moves_to_and_fro_is_one(world: World) -> None:
    moments = [changed(world, "Alpha stands.")]
    for before, now in ((A, C), (C, A), (A, C), (C, D), (D, A)):
        moments.append(move(world, before, now))
    assert [at(world, A, moment) for moment in moments] == [A, C, A, C, D, A]
    assert {a.uri for a in world.ledger.sources.aliases(SOURCE)} == {C, D}
    assert world.audit().clean


def test_killed_in_the_middle_of_a_move_nothing_of_its_history_is_lost() -> None:
    def moved(fuse: Fuse) -> World:
        world = World()
        changed(world, "Alpha stands.")
        move(world, A, C)
        ledger, artifacts = world.ledger, world.artifacts
        world.ledger = Killing(ledger, fuse)
        try:
            move(world, C, D)
        except KilledError:
            world.ledger, world.artifacts = ledger, artifacts
            world.run()
        return world

    whole = Fuse()
    moved(whole)
    assert whole.ticks > 10
    for tick in range(whole.ticks):
        world = moved(Fuse(tick))
        uris = {v.uri for v in world.ledger.versions.of(document_id(SOURCE, D))}
        assert uris == {A, C, D}, tick
        assert {a.uri for a in world.ledger.sources.aliases(SOURCE)} == {A, C}, tick
