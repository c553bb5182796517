"""When a person is asked, and what the question says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.domain.guards import NAMED, Breach, Census, Guards, Sort
from tidemark.orchestration.tasks import question


def census(sort: Sort, count: int) -> Census:
    made = Census()
    for n in range(count):
        made.add(sort, f"https://example.org/{n}")
    return made


@pytest.mark.parametrize(
    ("gone", "live", "asked"), [(10, 40, False), (11, 40, True), (4, 15, False), (5, 15, True)]
)
def test_a_share_asks_when_it_is_passed_by_enough_documents(
    gone: int, live: int, asked: bool
) -> None:
    assert bool(census(Sort.GONE, gone).breaches(Guards(), live)) is asked


def test_a_number_asks_however_few_they_are() -> None:
    (breach,) = census(Sort.SHRUNK, 3).breaches(Guards(shrunk_documents=2), 10_000)
    assert breach.sentence() == (
        "3 of 10000 live documents (0 %) have shrunk at once; the guard is 2 documents."
    )


def test_a_first_run_is_not_asked_about() -> None:
    assert census(Sort.CHANGED, 50).breaches(Guards(), 0) == ()


@given(st.integers(0, 500), st.integers(1, 500))
def test_a_hundred_percent_never_asks(count: int, live: int) -> None:
    guards = Guards(changed_percent=100, shrunk_percent=100, gone_percent=100)
    assert census(Sort.GONE, min(count, live)).breaches(guards, live) == ()


def test_a_breach_names_the_first_documents_and_survives_json() -> None:
    (breach,) = census(Sort.GONE, 60).breaches(Guards(), 60)
    assert len(breach.uris) == NAMED
    assert Breach.from_dict(breach.as_dict()) == breach


def test_the_question_lists_what_it_is_about_and_reads_no_address_as_markdown() -> None:
    breach = Breach(Sort.GONE, 2, 4, "25 %", ("https://x/`a`", "https://x/[b](c)"))
    text = question([breach], {"documents": {"remove": 2, "keep": 2}})
    assert "2 of 4 live documents (50 %) are gone at once; the guard is 25 %." in text
    assert "- `https://x/%60a%60`" in text
    assert "- `https://x/[b](c)`" in text
    assert "2 keep, 2 remove" in text


def test_the_question_says_how_many_it_does_not_name() -> None:
    text = question([Breach(Sort.SHRUNK, 30, 40, "20 %", ("https://x/a",))], {"documents": {}})
    assert "30 of 40 live documents (75 %) have shrunk at once" in text
    assert "and 29 more" in text


@pytest.mark.parametrize(("gone", "live", "asked"), [(4, 4, True), (3, 3, False), (3, 4, False)])
def test_losing_nearly_all_of_a_small_source_is_asked_about_too(
    gone: int, live: int, asked: bool
) -> None:
    assert bool(census(Sort.GONE, gone).breaches(Guards(), live)) is asked
