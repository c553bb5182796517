"""Killed at any port call, before it or after it, the next clean run makes the index right again."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import World, page

from fakes.ledger import PARTS
from tidemark.domain.profile import Profile

pytestmark = pytest.mark.slow

URIS = [f"https://example.org/{name}" for name in "abc"]
PARAGRAPHS = [
    "The tide rises.",
    "The tide falls.",
    "A gauge hangs.",
    "A mast stands.",
    "Nothing moves.",
]
WRITES = {"save_aliases", "drop_aliases", "save_state", "expire", "delete",
          "upsert_points", "upsert_sections", "set_payloads", "delete_points", "delete_sections",
          "open_intent", "close_intent", "commit", "update", "remove", "mark_seen", "mark_missing", "write",
          "embed", "switch", "ensure", "record_events", "save"}  # fmt: skip


class KilledError(BaseException):
    """Stands in for SIGKILL: nothing may catch it and go on."""


class Killing:
    """A port whose calls that write are counted, and cut short at the one that is chosen."""

    def __init__(self, inner: Any, counter: "Counter") -> None:
        self._inner = inner
        self._counter = counter

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if name in PARTS and not callable(value):
            return Killing(value, self._counter)
        if name not in WRITES:
            return value

        def call(*args: Any, **kwargs: Any) -> Any:
            self._counter.tick(before=True)
            result = value(*args, **kwargs)
            self._counter.tick(before=False)
            return result

        return call


class Counter:
    def __init__(self, at: int | None) -> None:
        self.at = at
        self.ticks = 0

    def tick(self, *, before: bool) -> None:
        if self.ticks == self.at:
            raise KilledError(f"killed {'before' if before else 'after'} write {self.ticks // 2}")
        self.ticks += 1


def killed_run(world: World, at: int | None, **job: object) -> int:
    """A run that dies at a write (``None``: never); how many ticks it came to."""
    counter = Counter(at)
    whole = (world.ledger, world.index, world.artifacts, world.embedder)
    world.ledger, world.index, world.artifacts, world.embedder = (
        Killing(port, counter)
        for port in whole  # type: ignore[assignment]
    )
    try:
        world.run(**job)
    except KilledError:
        pass
    finally:
        world.ledger, world.index, world.artifacts, world.embedder = whole
    return counter.ticks


def apply(world: World, state: dict[str, list[str]]) -> None:
    """Make the source hold exactly these documents."""
    world.source.documents.clear()
    world.source.gone.clear()
    for uri in URIS:
        if uri in state:
            world.documents[uri] = page(uri[-1], *state[uri])
        else:
            world.source.gone[uri] = "404"


def assert_right(world: World, state: dict[str, list[str]]) -> None:
    """The index holds what a fresh index of the same source would hold, and the audit agrees."""
    fresh = World()
    fresh.profile = world.profile
    apply(fresh, state)
    fresh.run()

    def held(of: World, scan: str) -> dict[str, dict[str, object]]:
        points = getattr(of.index, scan)(of.generation)
        volatile = ("fetched_at", "generation")
        return {
            str(p.point_id): {k: v for k, v in p.payload.items() if k not in volatile}
            for p in points
        }

    assert held(world, "scan_points") == held(fresh, "scan_points")
    assert held(world, "scan_sections") == held(fresh, "scan_sections")
    findings = world.audit()
    assert findings.clean, findings.counts()
    assert world.ledger.writes.pending("docs") == {}


states = st.dictionaries(
    st.sampled_from(URIS), st.lists(st.sampled_from(PARAGRAPHS), min_size=1, max_size=3), max_size=3
)


@settings(max_examples=60, deadline=None)
@given(before=states, during=states, after=states, data=st.data())
def test_a_run_killed_anywhere_is_made_good_by_the_next(
    before: dict[str, list[str]],
    during: dict[str, list[str]],
    after: dict[str, list[str]],
    data: st.DataObject,
) -> None:
    """Also when the source has changed again since, or back to what it was before."""
    trial = World()
    apply(trial, before)
    trial.run()
    apply(trial, during)
    ticks = killed_run(trial, None)

    world = World()
    apply(world, before)
    world.run()
    apply(world, during)
    killed_run(world, data.draw(st.integers(0, max(ticks - 1, 0))))
    final = data.draw(st.sampled_from([before, during, after]))
    apply(world, final)
    world.run()
    assert_right(world, final)
    assert world.run().chunks.embedded == 0, "and then there is nothing left to do"


@pytest.mark.parametrize(
    "disturb",
    [
        lambda world: setattr(
            world, "profile", Profile(target_tokens=12, max_tokens=16, min_tokens=0)
        ),
        lambda world: None,
    ],
    ids=["re-chunked", "forced"],
)
def test_every_kill_point_of_a_rewriting_run_converges(disturb: Callable[[World], None]) -> None:
    state = {URIS[0]: PARAGRAPHS[:3], URIS[1]: PARAGRAPHS[2:]}

    def begun() -> World:
        world = World()
        apply(world, state)
        world.run()
        disturb(world)
        return world

    force = begun().profile == World().profile
    total = killed_run(begun(), None, force=force)
    assert total > 10
    for at in range(total):
        world = begun()
        killed_run(world, at, force=force)
        live = {str(p.payload["source_uri"]).partition("#")[0] for p in world.index.scan_points(1)}
        assert live == set(state), "a healthy document is never missing"
        world.run()
        assert_right(world, state)


@settings(max_examples=30, deadline=None)
@given(state=states, victims=st.data())
def test_the_audit_finds_and_repairs_whatever_was_done_to_the_index(
    state: dict[str, list[str]], victims: st.DataObject
) -> None:
    from tidemark.stages.audit.repair import rewrite
    from tidemark.stages.job import target

    world = World()
    apply(world, state)
    world.run()
    points = [p.point_id for p in world.index.scan_points(1)]
    sections = [p.point_id for p in world.index.scan_sections(1)]
    lost = victims.draw(st.lists(st.sampled_from(points), unique=True)) if points else []
    lost_sections = (
        victims.draw(st.lists(st.sampled_from(sections), unique=True)) if sections else []
    )
    world.index.delete_points(1, lost)
    world.index.delete_sections(1, lost_sections)
    findings = world.audit()
    assert findings.counts["missing_points"] == len(lost)
    assert findings.counts["missing_sections"] == len(lost_sections)
    job, deps = world.job(), world.deps()
    world.embedder.texts.clear()
    assert not findings.orphans
    records = world.ledger.documents.by_id(list(findings.documents)).values()
    rewrite(job, deps, target(job, deps, 1), records)
    assert len(world.embedder.texts) == len(lost), "points that are there keep their vectors"
    assert_right(world, state)


@pytest.mark.parametrize("had_a_good_version", [True, False])
def test_a_write_cut_short_and_then_a_broken_document_leave_the_last_good_version_or_nothing(
    had_a_good_version: bool,
) -> None:
    good = {URIS[0]: PARAGRAPHS[:2], URIS[1]: PARAGRAPHS[2:]}
    newer = {URIS[0]: PARAGRAPHS[1:4], URIS[1]: PARAGRAPHS[2:]}

    def begun() -> World:
        world = World()
        if had_a_good_version:
            apply(world, good)
            world.run()
        apply(world, newer)
        return world

    total = killed_run(begun(), None)
    for at in range(total):
        world = begun()
        killed_run(world, at)
        committed = {
            d.uri: d.raw_hash for d in world.ledger.documents.stream() if d.raw_hash is not None
        }
        newest = World()
        apply(newest, newer)
        newest.run()
        is_new = committed.get(URIS[0]) in {d.raw_hash for d in newest.ledger.documents.stream()}
        world.documents[URIS[0]] = b"\xff broken"
        world.run()
        expected = newer if is_new else (good if had_a_good_version else {URIS[1]: good[URIS[1]]})
        assert_right(world, expected)
        assert world.run().status == "success"
