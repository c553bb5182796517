"""Sites that break in every way a site can: nothing is ever taken for gone, and the next crawl heals."""

import gzip
from collections.abc import Iterator
from typing import Any

import pytest
from sites import Crawled, Page, Site, crawl_site, links

from fakes.source import MemoryKnown

pytestmark = pytest.mark.slow

NAMES = [f"/{n}" for n in range(12)]


@pytest.fixture
def site() -> Iterator[Site]:
    with Site({"/": links(*NAMES)}) as running:
        running.pages.update({name: f"The text of page {name}." for name in NAMES})
        running.pages["/1"] = links("/below")
        running.pages["/below"] = "Only page 1 leads here."
        yield running


def crawl(site: Site, known: MemoryKnown, **options: Any) -> Crawled:
    return crawl_site(site, known, **{"timeout": 0.5, **options})


CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"
FAULTS = {
    "is away": Page(status=503),
    "answers 500": Page(status=500),
    "asks to come back much later": Page(status=429, headers={"Retry-After": "9999"}),
    "answers slowly": Page("x", delay=1.0),
    "sends byte by byte for ever": Page("x" * 1_000, drip=0.1),
    "breaks off before its declared length": Page("The text", declared_length=500),
    "breaks off between two chunks": Page(raw=CHUNKED + b"5\r\nhello\r\n"),
    "breaks off in a chunk": Page(raw=CHUNKED + b"50\r\nhello"),
    "breaks off in its headers": Page(raw=b"HTTP/1.1 200 OK\r\nContent-Ty"),
    "hangs up": Page(raw=b""),
    "speaks no HTTP": Page(raw=b"220 mail.example ESMTP\r\n\r\n"),
    "sends something else than gzip": Page("plain", headers={"Content-Encoding": "gzip"}),
    "sends half of its gzip": Page(
        gzip.compress(b"The text" * 99)[:-20], headers={"Content-Encoding": "gzip"}
    ),
    "uses an encoding never asked for": Page("x", headers={"Content-Encoding": "compress"}),
    "answers nothing": Page(""),
    "redirects to nothing": Page(location="", status=302),
    "redirects to another protocol": Page(location="ftp://example.org/", status=301),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_page_loses_nothing_and_hides_nothing_when_it(site: Site, fault: str) -> None:
    known = MemoryKnown()
    before = crawl(site, known)
    assert len(before.items) == 14
    whole, site.pages["/1"] = site.pages["/1"], FAULTS[fault]
    # One that sends byte by byte is given up after ten timeouts.
    crawled = crawl(site, known, timeout=0.15 if "byte" in fault else 0.5)
    said = crawled.outcomes(site.origin)
    assert said.pop("/1") == "failed"
    assert set(said.values()) == {"not_modified"}
    assert len(said) == 13
    # What it links to was found by the bytes held of it: the listing lacks nothing.
    assert crawled.end.complete
    site.pages["/1"] = whole
    healed = crawl(site, known)
    assert set(healed.outcomes().values()) == {"not_modified"}
    assert healed.end.complete


def test_a_page_never_met_before_that_is_away_leaves_the_listing_incomplete(site: Site) -> None:
    site.pages["/1"] = Page(status=500)
    crawled = crawl(site, MemoryKnown())
    assert not crawled.end.complete
    assert "/1 answered 500" in crawled.end.problem


@pytest.mark.parametrize("status", [400, 401, 403, 418, 451])
def test_a_page_never_met_before_that_is_refused_does_not(site: Site, status: int) -> None:
    site.pages["/1"] = Page(status=status)
    crawled = crawl(site, MemoryKnown())
    assert crawled.outcomes(site.origin)["/1"] == "failed"
    assert crawled.end.complete


def test_the_server_dies_in_mid_crawl_and_the_next_crawl_heals() -> None:
    pages: dict[str, str | Page] = {"/": links(*(f"/{n}" for n in range(100)))}
    pages.update({f"/{n}": f"page {n}" for n in range(100)})
    known = MemoryKnown()
    with Site(pages) as site:
        crawl(site, known)
        port = site.port
        site.on_request = lambda path: site.close() if path == "/40" else None
        crawled = crawl(site, known)
    assert set(crawled.outcomes().values()) == {"not_modified", "failed"}
    assert not crawled.end.complete
    with Site(pages, port=port) as site:
        healed = crawl(site, known)
    assert list(healed.outcomes().values()) == ["not_modified"] * 101
    assert healed.end.complete


def test_a_site_that_flips_between_200_and_500_loses_nothing_in_many_crawls(site: Site) -> None:
    known = MemoryKnown()
    crawl(site, known)
    count = 0

    def flip(path: str) -> None:
        nonlocal count
        count += 1
        if path in NAMES:
            site.pages[path] = (
                Page(status=500) if count % 2 else f"Another text of {path}, {count}."
            )

    site.on_request = flip
    for _ in range(4):
        crawled = crawl(site, known, concurrency=1)
        said = crawled.outcomes(site.origin)
        assert "gone" not in said.values()
        assert {"/", *NAMES} <= said.keys()
    site.on_request = None
    site.pages.update({name: f"The text of page {name}." for name in NAMES})
    healed = crawl(site, known)
    assert healed.end.complete
    assert set(healed.outcomes().values()) <= {"fetched", "not_modified"}


def test_a_flipping_page_is_fetched_when_it_is_asked_again(site: Site) -> None:
    site.pages["/1"] = Page("back again", failures=1, failure_status=500)
    crawled = crawl(site, MemoryKnown(), request_retries=1)
    assert crawled.outcomes(site.origin)["/1"] == "fetched"


def test_a_robots_txt_that_goes_away_says_nothing_of_any_page(site: Site) -> None:
    known = MemoryKnown()
    crawl(site, known)
    site.pages["/robots.txt"] = Page(status=500)
    crawled = crawl(site, known)
    assert crawled.items == {}
    assert not crawled.end.complete
    del site.pages["/robots.txt"]
    assert crawl(site, known).end.complete


def test_a_sitemap_that_goes_away_leaves_the_listing_incomplete_until_it_is_back(
    site: Site,
) -> None:
    url = f"<url><loc>{site.url}orphan</loc></url>"
    site.pages.update({"/sitemap.xml": f"<urlset>{url}</urlset>", "/orphan": "An orphan."})
    known = MemoryKnown()
    assert crawl(site, known, use_sitemap=True).end.complete
    whole, site.pages["/sitemap.xml"] = site.pages["/sitemap.xml"], Page(status=502)
    crawled = crawl(site, known, use_sitemap=True)
    assert "/orphan" not in crawled.outcomes(site.origin)
    assert not crawled.end.complete
    site.pages["/sitemap.xml"] = whole
    healed = crawl(site, known, use_sitemap=True)
    assert healed.outcomes(site.origin)["/orphan"] == "not_modified"
    assert healed.end.complete
