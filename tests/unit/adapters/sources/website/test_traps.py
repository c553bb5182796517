"""What is taken for a trap, and what a crawl of a site with one says."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sites import Page, Site, crawl_site

from fakes.source import MemoryKnown
from tidemark.adapters.sources.website.frontier import CrawlTraps
from tidemark.adapters.sources.website.state import CrawlState

NEXT_YEAR = datetime.now(UTC).year + 1


@pytest.fixture
def traps() -> Iterator[CrawlTraps]:
    with CrawlState() as state:
        yield CrawlTraps(state, queries=3, repeats=3)


@pytest.mark.parametrize(
    "path",
    [
        "/a/a/a/a", "/a/a/a/a/page.html", "/x/docs/docs/docs/docs/y", "/a/b/a/b/a/b/a/b/",
        "/" + "/".join(map(str, range(40))), "/calendar/2199/04", "/events?month=2199-04",
        "/agenda/day?year=1512&day=3",
    ],
)  # fmt: skip
def test_it_knows_a_trap_by_its_spelling(traps: CrawlTraps, path: str) -> None:
    assert traps.catches(f"https://example.org{path}")


@pytest.mark.parametrize(
    "path",
    [
        "/", "/a/a/a", "/a/a/a/b", "/aa/aaa/aaaa/aaaaa", "/2011/11/11/11-things", "/a/b/a/b/a/b",
        "/a/b/c/a/d/a/e/a", "/calendar/2019/04", f"/events/{NEXT_YEAR}-01", "/rfc/2822/10",
        "/products/4711-12", "/?q=1", "/calendars-of-the-year-2199",
    ],
)  # fmt: skip
def test_it_leaves_ordinary_pages_alone(traps: CrawlTraps, path: str) -> None:
    assert not traps.catches(f"https://example.org{path}")


def test_only_so_many_query_strings_of_one_path_are_wanted(traps: CrawlTraps) -> None:
    caught = [traps.catches(f"https://example.org/list?page={n}") for n in range(5)]
    assert caught == [False, False, False, True, True]
    assert not traps.catches("https://example.org/list")
    assert list(traps.examples) == ["queries https://example.org/list"]
    uri, why = traps.examples["queries https://example.org/list"]
    assert uri == "https://example.org/list?page=3"
    assert "max_queries" in why


# In a crawl


class Endless(dict[str, "str | Page"]):
    """A site on which every path has a page with a wrong relative link, and a list without end."""

    def get(self, path: str, default: Any = None) -> Any:  # type: ignore[override]
        if path.startswith("/robots.txt"):
            return None
        number = int(path.partition("=")[2] or 0)
        links = [f"/list?page={number + step}" for step in (1, 2)]
        if "?" not in path:
            links.append("more/index.html")
        return "".join(f"<a href='{link}'>on</a>" for link in links)


def test_a_site_full_of_traps_is_crawled_to_its_end_and_the_listing_is_complete() -> None:
    with Site(Endless()) as site:
        crawled = crawl_site(site, max_queries=20, max_depth=10_000)
    assert crawled.end.complete
    said = crawled.outcomes(site.origin)
    assert list(said.values()).count("fetched") == 20 + 4
    # One for each trap says what was left out, and how to have it all the same.
    told = [item for item in crawled.items.values() if item.outcome.value == "excluded"]
    assert len(told) == 2
    assert any("max_queries" in item.detail for item in told)
    assert any("max_repeats" in item.detail for item in told)


def test_a_document_known_from_before_is_never_taken_for_a_trap(site: Site) -> None:
    paths = [f"/list?page={n}" for n in range(6)]
    site.pages["/"] = "".join(f"<a href='{path}'>x</a>" for path in paths)
    site.pages["/list"] = "a page"
    known = MemoryKnown()
    assert len(crawl_site(site, known, max_queries=6).items) == 7
    crawled = crawl_site(site, known, max_queries=2)
    assert set(crawled.outcomes().values()) == {"not_modified"}
    assert len(crawled.items) == 7


def test_a_bound_on_query_strings_lets_the_same_ones_in_every_time(site: Site) -> None:
    paths = [f"/list?page={n}" for n in range(6)]
    site.pages["/"] = "".join(f"<a href='{path}'>x</a>" for path in paths)
    site.pages["/list"] = "a page"
    known = MemoryKnown()
    first = crawl_site(site, known, max_queries=3)
    site.pages["/"] = "".join(f"<a href='{path}'>x</a>" for path in reversed(paths))
    second = crawl_site(site, known, max_queries=3)
    documents = {u for u, item in first.items.items() if item.outcome.value == "fetched"}
    assert {u for u, i in second.items.items() if i.outcome.value != "excluded"} == documents
