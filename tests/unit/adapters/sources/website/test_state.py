import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemark.adapters.sources.website.frontier import CrawlTraps, Frontier, Scope, Target
from tidemark.adapters.sources.website.options import WebsiteOptions
from tidemark.adapters.sources.website.state import CrawlState, Mark, RedirectKind


@pytest.fixture
def state() -> Iterator[CrawlState]:
    with CrawlState() as state:
        yield state


def frontier(state: CrawlState, **values: object) -> Frontier:
    options = WebsiteOptions(url="https://example.org/", **values)  # type: ignore[arg-type]
    return Frontier(
        Scope(options), state, CrawlTraps(state, queries=1_000, repeats=3), options.max_depth
    )


def test_its_file_is_gone_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with CrawlState() as state:
        state.mark("https://example.org/", Mark.SEEN)
        assert len(list(tmp_path.glob("tidemark-crawl-*"))) == 1
    assert list(tmp_path.iterdir()) == []


def test_marks_add_up_and_what_was_never_heard_of_has_none(state: CrawlState) -> None:
    state.add_known(["a", "b", "a"])
    state.mark("a", Mark.SEEN)
    state.mark("c", Mark.LISTED)
    assert state.marks("a") == Mark.KNOWN | Mark.SEEN
    assert state.marks("c") == Mark.LISTED
    assert state.marks("d") == 0


def test_the_unreached_are_those_known_and_neither_asked_for_nor_listed(state: CrawlState) -> None:
    state.add_known(f"{n:04}" for n in range(1_200))
    state.mark("0003", Mark.SETTLED)
    state.mark("0700", Mark.LISTED)
    state.mark("new", Mark.SEEN)
    assert list(state.unreached()) == [f"{n:04}" for n in range(1_200) if n not in {3, 700}]


def add_redirects(state: CrawlState, *ways: tuple[str, RedirectKind, str]) -> None:
    for uri, kind, target in ways:
        state.mark(uri, Mark.SETTLED)
        state.add_redirect(uri, kind, target)


def test_a_way_ends_at_a_document_and_tells_whether_it_is_for_good(state: CrawlState) -> None:
    add_redirects(
        state,
        ("a", RedirectKind.PERMANENT, "b"),
        ("b", RedirectKind.CANONICAL, "c"),
        ("x", RedirectKind.TEMPORARY, "a"),
    )
    state.mark("c", Mark.DOCUMENT)
    route = state.route("a")
    assert (route.end, route.document, route.permanent, route.circle) == ("c", True, True, False)
    assert not state.route("x").permanent


def test_a_way_in_a_circle_comes_to_its_end(state: CrawlState) -> None:
    add_redirects(
        state,
        ("a", RedirectKind.TEMPORARY, "b"),
        ("b", RedirectKind.TEMPORARY, "c"),
        ("c", RedirectKind.TEMPORARY, "b"),
    )
    assert state.route("a").circle
    assert not state.route("a").through
    assert state.route("b").through
    assert not state.route("b").document


def test_those_that_lead_elsewhere_may_be_settled_while_they_are_read(state: CrawlState) -> None:
    add_redirects(state, *((f"{n:04}", RedirectKind.PERMANENT, "z") for n in range(1_100)))
    read = []
    for redirect in state.redirects():
        state.mark(redirect.uri, Mark.LISTED)
        read.append(redirect.uri)
    assert read == [f"{n:04}" for n in range(1_100)]
    assert list(state.redirects()) == []


def test_a_long_queue_keeps_its_order_and_every_field(state: CrawlState) -> None:
    line = frontier(state)
    wanted = [
        Target(
            f"https://example.org/{n}", f"https://example.org/{n}#x", n % 7, "from", n % 3,
            probe=n % 2 == 0, own=n % 5 == 0, afresh=n % 11 == 0,
        )
        for n in range(5_500)
    ]  # fmt: skip
    for target in wanted[:3_000]:
        line.put(target)
    taken = [line.take() for _ in range(1_500)]
    for target in wanted[3_000:]:
        line.put(target)
    assert len(line) == 4_000
    taken += [line.take() for _ in range(4_000)]
    assert taken == wanted
    with pytest.raises(IndexError):
        line.take()


@pytest.mark.slow
def test_a_url_is_taken_in_once_whatever_was_forgotten_in_between(state: CrawlState) -> None:
    line = frontier(state)
    links = tuple(f"https://example.org/{n}" for n in range(50_000))
    for _ in range(2):
        line.follow(links, 1, "https://example.org/")
    assert len(line) == 50_000


def test_start_pages_come_before_all_others(state: CrawlState) -> None:
    line = frontier(state)
    line.offer(Target("https://example.org/a", "https://example.org/a"))
    line.offer(Target("https://example.org/", "https://example.org/", seed=True))
    assert line.take().seed


def test_too_deep_a_link_is_passed_over_until_it_is_found_nearer(state: CrawlState) -> None:
    line = frontier(state, max_depth=2)
    line.follow(("https://example.org/a",), 3, "")
    assert len(line) == 0
    line.follow(("https://example.org/a",), 2, "")
    assert len(line) == 1


def test_a_known_document_counts_while_the_known_ones_are_read(state: CrawlState) -> None:
    traps = CrawlTraps(state, queries=3, repeats=3)

    def known() -> Iterator[str]:
        for n in range(3):
            uri = f"https://example.org/list?page={n}"
            traps.count(uri)
            yield uri

    state.add_known(known())
    assert traps.catches("https://example.org/list?page=4")
    assert not traps.catches("https://example.org/other?page=4")
