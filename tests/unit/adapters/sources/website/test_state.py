import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemark.adapters.sources.website.frontier import Frontier, Scope, Target, Traps
from tidemark.adapters.sources.website.options import WebsiteOptions
from tidemark.adapters.sources.website.state import How, Mark, Trail


@pytest.fixture
def trail() -> Iterator[Trail]:
    with Trail() as made:
        yield made


def frontier(trail: Trail, **options: object) -> Frontier:
    told = WebsiteOptions(url="https://example.org/", **options)  # type: ignore[arg-type]
    return Frontier(Scope(told), trail, Traps(trail, queries=1_000, repeats=3), told.max_depth)


def test_its_file_is_gone_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with Trail() as trail:
        trail.mark("https://example.org/", Mark.SEEN)
        assert len(list(tmp_path.glob("tidemark-crawl-*"))) == 1
    assert list(tmp_path.iterdir()) == []


def test_marks_add_up_and_what_was_never_heard_of_has_none(trail: Trail) -> None:
    trail.remember(["a", "b", "a"])
    trail.mark("a", Mark.SEEN)
    trail.mark("c", Mark.SAID)
    assert trail.marks("a") == Mark.KNOWN | Mark.SEEN
    assert trail.marks("c") == Mark.SAID
    assert trail.marks("d") == 0


def test_the_unreached_are_those_known_and_neither_asked_for_nor_listed(trail: Trail) -> None:
    trail.remember(f"{n:04}" for n in range(1_200))
    trail.mark("0003", Mark.SETTLED)
    trail.mark("0700", Mark.SAID)
    trail.mark("new", Mark.SEEN)
    assert list(trail.unreached()) == [f"{n:04}" for n in range(1_200) if n not in {3, 700}]


def led(trail: Trail, *ways: tuple[str, How, str]) -> None:
    for uri, how, leads in ways:
        trail.mark(uri, Mark.SETTLED)
        trail.lead(uri, how, leads)


def test_a_way_ends_at_a_document_and_tells_whether_it_is_for_good(trail: Trail) -> None:
    led(trail, ("a", How.PERMANENT, "b"), ("b", How.CANONICAL, "c"), ("x", How.TEMPORARY, "a"))
    trail.mark("c", Mark.DOCUMENT)
    route = trail.route("a")
    assert (route.end, route.document, route.permanent, route.circle) == ("c", True, True, False)
    assert not trail.route("x").permanent


def test_a_way_in_a_circle_comes_to_its_end(trail: Trail) -> None:
    led(trail, ("a", How.TEMPORARY, "b"), ("b", How.TEMPORARY, "c"), ("c", How.TEMPORARY, "b"))
    assert trail.route("a").circle
    assert not trail.route("a").through
    assert trail.route("b").through
    assert not trail.route("b").document


def test_those_that_lead_elsewhere_may_be_settled_while_they_are_read(trail: Trail) -> None:
    led(trail, *((f"{n:04}", How.PERMANENT, "z") for n in range(1_100)))
    read = []
    for lead in trail.leading():
        trail.mark(lead.uri, Mark.SAID)
        read.append(lead.uri)
    assert read == [f"{n:04}" for n in range(1_100)]
    assert list(trail.leading()) == []


def test_a_long_waiting_line_keeps_its_order_and_every_field(trail: Trail) -> None:
    line = frontier(trail)
    wanted = [
        Target(
            f"https://example.org/{n}", f"https://example.org/{n}#x", n % 7, "from", n % 3,
            probe=n % 2 == 0, own=n % 5 == 0, afresh=n % 11 == 0,
        )
        for n in range(5_500)
    ]  # fmt: skip
    for target in wanted[:3_000]:
        line.again(target)
    taken = [line.take() for _ in range(1_500)]
    for target in wanted[3_000:]:
        line.again(target)
    assert len(line) == 4_000
    taken += [line.take() for _ in range(4_000)]
    assert taken == wanted
    with pytest.raises(IndexError):
        line.take()


@pytest.mark.slow
def test_a_url_is_taken_in_once_whatever_was_forgotten_in_between(trail: Trail) -> None:
    line = frontier(trail)
    links = tuple(f"https://example.org/{n}" for n in range(50_000))
    for _ in range(2):
        line.follow(links, 1, "https://example.org/")
    assert len(line) == 50_000


def test_start_pages_come_before_all_others(trail: Trail) -> None:
    line = frontier(trail)
    line.offer(Target("https://example.org/a", "https://example.org/a"))
    line.offer(Target("https://example.org/", "https://example.org/", seed=True))
    assert line.take().seed


def test_too_deep_a_link_is_passed_over_until_it_is_found_nearer(trail: Trail) -> None:
    line = frontier(trail, max_depth=2)
    line.follow(("https://example.org/a",), 3, "")
    assert len(line) == 0
    line.follow(("https://example.org/a",), 2, "")
    assert len(line) == 1


def test_a_known_document_counts_while_the_known_ones_are_read(trail: Trail) -> None:
    traps = Traps(trail, queries=3, repeats=3)

    def known() -> Iterator[str]:
        for n in range(3):
            uri = f"https://example.org/list?page={n}"
            traps.count(uri)
            yield uri

    trail.remember(known())
    assert traps.catches("https://example.org/list?page=4")
    assert not traps.catches("https://example.org/other?page=4")
