"""Documents that move, double and come back: killed anywhere, the next clean run makes the index right."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import SOURCE, World, page

from fakes.inspector import MarkInspector
from properties.test_convergence import PARAGRAPHS, killed_run
from tidemark.domain.decide import ELSEWHERE

pytestmark = pytest.mark.slow

URIS = [f"https://example.org/{name}" for name in ("a", "b", "c", "longer-d")]
LONG = [f"A line, the number {n}, that every page has as its own." for n in range(6)]

layouts = st.dictionaries(st.sampled_from(URIS), st.sampled_from(PARAGRAPHS[:3]), max_size=4)
"""Which page stands at which address; equal pages are duplicates."""


def arrange(
    world: World, layout: dict[str, str], before: dict[str, str], *, redirects: bool
) -> None:
    """Lay the site out; a page that left its address redirects to the new one, or answers 404."""
    world.source.documents.clear()
    world.source.gone.clear()
    world.source.moved.clear()
    for uri, words in layout.items():
        world.documents[uri] = page("A page", words, *LONG)
    for uri, words in before.items():
        now = sorted(u for u, w in layout.items() if w == words)
        if uri not in layout:
            if redirects and now:
                world.source.moved[uri] = now[0]
            else:
                world.source.gone[uri] = "answers 404"


def assert_right(world: World, layout: dict[str, str]) -> None:
    """Each text stands in the index once, at one of its addresses, whole, and the audit agrees."""
    held: dict[str, set[str]] = {}
    for point in world.index.scan_points(world.generation):
        for words in PARAGRAPHS[:3]:
            if words in str(point.payload["text"]):
                held.setdefault(words, set()).add(str(point.payload["source_uri"]))
    assert held.keys() == set(layout.values())
    for words, uris in held.items():
        at = {u for u, w in layout.items() if w == words}
        assert uris <= at
    live = {d.uri for d in world.ledger.documents.stream(SOURCE)}
    assert live == {uri for uris in held.values() for uri in uris}
    findings = world.audit()
    assert findings.clean, findings.counts()
    assert world.ledger.writes.pending(SOURCE) == {}
    for alias in world.ledger.sources.aliases(SOURCE):
        assert alias.uri not in live
        assert world.ledger.documents.get(alias.document_id) is not None


def begun(layout: dict[str, str]) -> World:
    world = World()
    world.inspector = MarkInspector()
    arrange(world, layout, {}, redirects=False)
    world.run()
    return world


@settings(max_examples=40, deadline=None)
@given(before=layouts, after=layouts, redirects=st.booleans(), data=st.data())
def test_a_site_laid_out_anew_under_a_run_that_is_killed_is_right_after_the_next(
    before: dict[str, str], after: dict[str, str], redirects: bool, data: st.DataObject
) -> None:
    trial = begun(before)
    arrange(trial, after, before, redirects=redirects)
    ticks = killed_run(trial, None, accept=frozenset("*"))
    world = begun(before)
    arrange(world, after, before, redirects=redirects)
    killed_run(world, data.draw(st.integers(0, max(ticks - 1, 0))), accept=frozenset("*"))
    live = {
        words
        for p in world.index.scan_points(world.generation)
        for words in set(before.values()) & set(after.values())
        if words in str(p.payload["text"])
    }
    stayed = {w for w in set(before.values()) & set(after.values()) if keeps(before, after, w)}
    assert stayed <= live, "what stays where it was is never missing"
    for _ in range(2):
        world.run(accept=frozenset("*"))
    assert_right(world, after)
    assert world.run().chunks.embedded == 0


def keeps(before: dict[str, str], after: dict[str, str], words: str) -> bool:
    return all(after.get(uri) == w for uri, w in before.items() if w == words)


@settings(max_examples=15, deadline=None)
@given(layout=layouts, days=st.integers(0, 60))
def test_a_site_that_goes_and_comes_back_is_whole_again_whenever_it_does(
    layout: dict[str, str], days: int
) -> None:
    world = begun(layout)
    arrange(world, {}, layout, redirects=False)
    world.run()
    assert list(world.index.scan_points(world.generation)) == []
    world.now += timedelta(days=days)
    world.run()
    arrange(world, layout, {}, redirects=False)
    world.run()
    assert bool(world.embedder.texts) == (bool(layout) and days >= 30)
    assert_right(world, layout)


def test_the_reasons_for_having_no_document_are_those_of_an_alias() -> None:
    from tidemark.domain.records import AliasKind

    assert {reason.value for reason in ELSEWHERE} == {kind.value for kind in AliasKind}
