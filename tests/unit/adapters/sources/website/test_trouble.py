"""The website source against sites that fail, refuse, lie, or must not be told secrets."""

import gzip
import threading
import tracemalloc
from datetime import UTC, datetime
from time import monotonic, sleep
from typing import Any

import pytest
from sites import Page, Site, crawl_site, links, website

from fakes.source import MemoryKnown
from tidemark.adapters.sources.website.crawl import OUTAGES_IN_A_ROW
from tidemark.adapters.sources.website.http import Fetcher
from tidemark.adapters.sources.website.options import WebsiteOptions
from tidemark.adapters.sources.website.sitemaps import SitemapReader
from tidemark.adapters.sources.website.transport import LoopThread
from tidemark.domain.documents import CrawlItem

# The start page


@pytest.mark.parametrize(
    ("page", "told"),
    [
        (Page(status=404), "answers 404"),
        (Page(status=500), "answered 500"),
        (Page(status=403), "answered 403"),
        (Page(""), "answered nothing"),
        (Page("x", delay=1.5), "no answer in time"),
        (Page("{}", media_type="application/json"), "no document"),
        (Page(location="https://login.invalid/"), "out of the source's scope"),
        (Page(location="/"), "too many times"),
        (Page("x", declared_length=10), "no valid HTTP"),
    ],
)
def test_a_start_page_that_gives_no_page_ends_the_crawl_with_nothing_said_of_anything(
    site: Site, page: Page, told: str
) -> None:
    site.pages.update({"/": links("/a"), "/a": "a"})
    known = MemoryKnown()
    crawl_site(site, known)
    site.forget()
    site.pages["/"] = page
    crawled = crawl_site(site, known, timeout=0.2)
    assert crawled.items == {}
    assert told in crawled.end.problem
    assert site.requests["/a"] == 0


def test_nothing_is_reached_at_a_private_address_without_permission(site: Site) -> None:
    site.pages["/"] = "x"
    crawled = crawl_site(site, allow_private=False)
    assert crawled.items == {}
    assert "allow_private" in crawled.end.problem
    assert site.seen == []


def test_one_start_page_away_does_not_hide_the_others_nor_judge_the_absent(site: Site) -> None:
    site.pages.update({"/a/": links("1"), "/a/1": "1", "/b/": links("1", "2"), "/b/1": "1"})
    site.pages["/b/2"] = "2"
    start, seeds = f"{site.origin}/a/", (f"{site.origin}/b/",)
    known = MemoryKnown()
    assert len(crawl_site(site, known, url=start, seeds=seeds).items) == 5
    site.pages["/b/"] = Page(status=502)
    del site.pages["/b/2"]
    crawled = crawl_site(site, known, url=start, seeds=seeds)
    assert crawled.outcomes(site.origin) == {"/a/": "not_modified", "/a/1": "not_modified"}
    assert not crawled.end.complete


# Single pages


@pytest.mark.parametrize("status", [401, 403, 500, 502, 503, 429, 418])
def test_a_refusal_or_an_outage_is_evidence_of_nothing(site: Site, status: int) -> None:
    site.pages.update({"/": links("/a", "/b"), "/a": "a", "/b": "b"})
    known = MemoryKnown()
    crawl_site(site, known)
    site.pages["/a"] = Page(status=status)
    crawled = crawl_site(site, known)
    assert crawled.outcomes(site.origin) == {
        "/": "not_modified", "/a": "failed", "/b": "not_modified",
    }  # fmt: skip
    assert f"answered {status}" in crawled.items[site.url + "a"].detail
    # It is named and so protected, and its held links are followed: the listing lacks nothing.
    assert crawled.end.complete


def test_an_emptied_answer_is_not_an_emptied_page(site: Site) -> None:
    site.pages.update({"/": links("/a"), "/a": ""})
    assert crawl_site(site).outcomes(site.origin)["/a"] == "failed"


def test_a_body_that_breaks_off_is_not_a_shorter_page(site: Site) -> None:
    site.pages.update({"/": links("/a"), "/a": Page("only the beginning", declared_length=500)})
    assert crawl_site(site).outcomes(site.origin)["/a"] == "failed"


def test_an_outage_that_passes_is_not_noticed(site: Site) -> None:
    site.pages.update({"/": links("/a"), "/a": Page("a", failures=2)})
    crawled = crawl_site(site, request_retries=2)
    assert crawled.outcomes(site.origin)["/a"] == "fetched"
    assert site.requests["/a"] == 3


def test_it_comes_back_when_the_server_says(site: Site) -> None:
    page = Page("a", failures=1, failure_status=429, headers={"Retry-After": "1"})
    site.pages.update({"/": links("/a"), "/a": page})
    started = monotonic()
    assert crawl_site(site, request_retries=1).outcomes(site.origin)["/a"] == "fetched"
    assert monotonic() - started >= 1


def test_while_the_server_wants_quiet_no_other_page_is_asked_for_either(site: Site) -> None:
    site.pages.update({"/busy": Page("x", failures=1, headers={"Retry-After": "1"}), "/a": "a"})
    options = WebsiteOptions(
        url=site.url, delay=0.0, allow_private=True, request_retries=1, concurrency=2
    )
    fetcher = Fetcher(options)
    with LoopThread(fetcher.aclose) as loop:
        busy = loop.submit(fetcher.get(site.url + "busy"))
        while not site.requests["/busy"]:
            sleep(0.005)
        sleep(0.2)
        started = monotonic()
        assert loop.run(fetcher.get(site.url + "a")).body == b"a"
        assert monotonic() - started > 0.5
        assert busy.result().body == b"x"


def test_leaving_a_crawl_does_not_wait_for_what_the_crawl_waits_for(site: Site) -> None:
    site.pages.update({"/": links("/0", "/1"), "/0": Page("x", delay=0.2)})
    site.pages["/1"] = Page(status=503, headers={"Retry-After": "60"})
    running = website(site.url, request_retries=1, concurrency=2).crawl(MemoryKnown())
    for _ in range(2):
        next(running)
    started = monotonic()
    running.close()  # type: ignore[attr-defined]  # a generator
    assert monotonic() - started < 10


def test_it_does_not_wait_for_ever(site: Site) -> None:
    site.pages.update({"/": links("/a"), "/a": Page(status=503, headers={"Retry-After": "86400"})})
    crawled = crawl_site(site, request_retries=5)
    assert site.requests["/a"] == 1
    assert "86400" in crawled.items[site.url + "a"].detail


def test_a_site_that_dies_in_the_middle_loses_nothing_and_is_soon_left_alone(site: Site) -> None:
    site.pages["/"] = links(*(f"/{n}" for n in range(200)))
    site.pages.update({f"/{n}": f"page {n}" for n in range(200)})
    known = MemoryKnown()
    crawl_site(site, known)
    site.pages["/"] = links(*(f"/{n}" for n in range(200))) + "changed"
    site.on_request = lambda path: site.close() if path == "/50" else None
    crawled = crawl_site(site, known, concurrency=1)
    said = list(crawled.outcomes().values())
    assert said.count("failed") == OUTAGES_IN_A_ROW
    assert "gone" not in said
    assert "stopped answering" in crawled.end.problem


# Manners


def test_it_gives_its_name_and_a_contact(site: Site) -> None:
    site.pages["/"] = "x"
    crawl_site(site, user_agent="Example/2", contact="https://example.org/bot")
    assert {headers["user-agent"] for _, headers in site.seen} == {
        "Example/2 (+https://example.org/bot)"
    }


def test_it_asks_for_no_more_at_once_than_told(site: Site) -> None:
    site.pages["/"] = links(*(f"/{n}" for n in range(12)))
    site.pages.update({f"/{n}": Page("x", delay=0.02) for n in range(12)})
    crawl_site(site, concurrency=3)
    assert site.most_at_once == 3


def test_it_keeps_the_delay_between_requests(site: Site) -> None:
    site.pages.update({"/": links("/a"), "/a": "a"})
    started = monotonic()
    crawl_site(site, delay=0.1, concurrency=4)
    assert monotonic() - started >= 0.2


def test_one_pages_cookies_do_not_decide_what_the_next_one_shows(site: Site) -> None:
    site.pages.update({"/": Page(links("/a"), headers={"Set-Cookie": "seen=1"}), "/a": "a"})
    crawl_site(site)
    assert all("cookie" not in headers for _, headers in site.seen)


def test_it_reads_compressed_pages(site: Site) -> None:
    site.pages["/"] = Page(
        gzip.compress(links("/a").encode()), headers={"Content-Encoding": "gzip"}
    )
    site.pages["/a"] = "a"
    crawled = crawl_site(site)
    raw = crawled.items[site.url].raw
    assert raw is not None
    assert raw.content == links("/a").encode()
    assert "/a" in crawled.outcomes(site.origin)


def test_leaving_a_crawl_early_leaves_no_thread_behind(site: Site) -> None:
    site.pages["/"] = links(*(f"/{n}" for n in range(30)))
    site.pages.update({f"/{n}": Page("x", delay=0.05) for n in range(30)})
    running = website(site.url, concurrency=4, delay=0.01).crawl(MemoryKnown())
    found = [next(running) for _ in range(3)]
    assert all(isinstance(item, CrawlItem) for item in found)
    running.close()  # type: ignore[attr-defined]  # a generator
    assert not [t for t in threading.enumerate() if t.name.startswith("crawl")]
    asked = site.requests.total()
    assert asked < 15


# robots.txt


def test_robots_txt_is_obeyed_by_the_longest_match(site: Site) -> None:
    site.pages.update(
        {
            "/robots.txt": Page(
                "User-agent: *\nDisallow: /\n\n"
                "User-agent: tidemark\nDisallow: /private\nAllow: /private/open$\n",
                media_type="text/plain",
            ),
            "/": links("/private/a", "/private/open"),
            "/private/a": "a",
            "/private/open": "open",
        }
    )
    crawled = crawl_site(site)
    assert crawled.outcomes(site.origin) == {
        "/": "fetched", "/private/a": "excluded", "/private/open": "fetched",
    }  # fmt: skip
    assert site.requests["/private/a"] == 0
    assert crawled.end.complete


def test_a_known_page_that_robots_txt_now_disallows_is_excluded(site: Site) -> None:
    site.pages.update({"/": links("/a"), "/a": "a"})
    known = MemoryKnown()
    crawl_site(site, known)
    site.pages.update({"/": "no link", "/robots.txt": "User-agent: *\nDisallow: /a"})
    assert crawl_site(site, known).outcomes(site.origin)["/a"] == "excluded"


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_a_site_without_readable_robots_txt_may_be_crawled(site: Site, status: int) -> None:
    site.pages.update({"/robots.txt": Page(status=status), "/": "x"})
    assert crawl_site(site).end.complete


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_site_whose_robots_txt_is_away_may_not(site: Site, status: int) -> None:
    site.pages.update({"/robots.txt": Page(status=status), "/": "x"})
    crawled = crawl_site(site)
    assert crawled.items == {}
    assert "robots.txt" in crawled.end.problem
    assert site.requests["/"] == 0


def test_a_start_page_that_robots_txt_disallows_is_a_problem_to_solve(site: Site) -> None:
    site.pages.update({"/robots.txt": "User-agent: *\nDisallow: /", "/": "x"})
    assert "disallowed by robots.txt" in crawl_site(site).end.problem


def test_the_crawl_delay_of_robots_txt_is_kept(site: Site) -> None:
    site.pages.update(
        {"/robots.txt": "User-agent: *\nCrawl-delay: 0.2", "/": links("/a"), "/a": "a"}
    )
    started = monotonic()
    crawl_site(site)
    assert monotonic() - started >= 0.4


def test_robots_txt_may_be_elsewhere_and_secrets_do_not_follow_it_there(site: Site) -> None:
    with Site({"/robots.txt": "User-agent: *\nDisallow: /a"}) as elsewhere:
        site.pages.update(
            {"/robots.txt": Page(location=f"{elsewhere.url}robots.txt"), "/": links("/a")}
        )
        crawled = crawl_site(site, headers={"Authorization": "Bearer hush"})
        assert crawled.outcomes(site.origin)["/a"] == "excluded"
        assert all(headers["authorization"] == "Bearer hush" for _, headers in site.seen)
        assert [path for path, _ in elsewhere.seen] == ["/robots.txt"]
        assert "authorization" not in elsewhere.seen[0][1]


# Sitemaps


SITEMAP = (
    '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{}</urlset>'
)


def sitemap(site: Site, *paths: str) -> str:
    return SITEMAP.format("".join(f"<url><loc> {site.origin}{path} </loc></url>" for path in paths))


def test_pages_that_only_the_sitemap_names_are_found(site: Site) -> None:
    site.pages.update({"/": "home", "/orphan": "orphan", "/sitemap.xml": sitemap(site, "/orphan")})
    crawled = crawl_site(site, use_sitemap=True)
    assert crawled.outcomes(site.origin) == {"/": "fetched", "/orphan": "fetched"}
    assert crawled.end.complete


def test_it_reads_declared_indexes_and_compressed_sitemaps(site: Site) -> None:
    index = (
        f"<sitemapindex><sitemap><loc>{site.origin}/one.xml.gz</loc></sitemap>"
        f"<sitemap><loc>{site.origin}/two.xml</loc></sitemap>"
        f"<sitemap><loc>{site.origin}/index.xml</loc></sitemap></sitemapindex>"
    )
    site.pages.update(
        {
            "/robots.txt": f"Sitemap: {site.origin}/index.xml",
            "/index.xml": index,
            "/one.xml.gz": Page(
                gzip.compress(sitemap(site, "/1").encode()), media_type="application/gzip"
            ),
            "/two.xml": sitemap(site, "/2?a=1&b=2"),
            "/": "home",
            "/1": "1",
            "/2?a=1&b=2": "2",
        }
    )
    crawled = crawl_site(site, use_sitemap=True)
    assert list(crawled.outcomes(site.origin)) == ["/", "/1", "/2?a=1&b=2"]
    assert site.requests["/sitemap.xml"] == 0
    assert crawled.end.complete


@pytest.mark.parametrize("body", ["<h1>Not found</h1>", "<!doctype html><p>home", "null"])
def test_a_site_that_has_no_sitemap_needs_none(site: Site, body: str) -> None:
    site.pages.update({"/": "home", "/sitemap.xml": body})
    assert crawl_site(site, use_sitemap=True).end.complete


NO_SITEMAPS = [
    Page("<!doctype html><h1>Welcome</h1>"), Page(""), Page(status=401), Page(status=403),
    Page(location="/"), Page(location="/login"), Page(location="http://127.0.0.1:1/login"),
    Page(status=204), Page("{}", media_type="application/json"),
]  # fmt: skip


@pytest.mark.parametrize("answer", NO_SITEMAPS)
def test_a_guessed_sitemap_that_broke_hides_what_only_it_leads_to(site: Site, answer: Page) -> None:
    site.pages.update({"/": "home", "/login": "log in", "/orphan": "orphan"})
    site.pages["/sitemap.xml"] = sitemap(site, "/orphan")
    known = MemoryKnown()
    assert crawl_site(site, known, use_sitemap=True).end.complete
    site.pages["/sitemap.xml"] = answer
    crawled = crawl_site(site, known, use_sitemap=True)
    assert "/orphan" not in crawled.outcomes(site.origin)
    assert "use_sitemap" in crawled.end.problem
    assert "/sitemap.xml" in crawled.end.problem


@pytest.mark.parametrize("answer", [Page(status=404), Page(status=410)])
def test_a_guessed_sitemap_that_is_gone_hides_nothing(site: Site, answer: Page) -> None:
    site.pages.update({"/": "home", "/orphan": "orphan", "/sitemap.xml": sitemap(site, "/orphan")})
    known = MemoryKnown()
    crawl_site(site, known, use_sitemap=True)
    site.pages["/sitemap.xml"] = answer
    assert crawl_site(site, known, use_sitemap=True).end.complete


@pytest.mark.parametrize("answer", NO_SITEMAPS)
def test_a_guess_that_meets_no_sitemap_is_no_matter_while_links_reach_all_or_the_rest_is_gone(
    site: Site, answer: Page
) -> None:
    site.pages.update({"/": links("/1", "/2"), "/1": "1", "/2": "2", "/sitemap.xml": answer})
    known = MemoryKnown()
    for _ in range(2):
        assert crawl_site(site, known, use_sitemap=True).end.complete
    site.pages["/"] = links("/1")
    del site.pages["/2"]
    crawled = crawl_site(site, known, use_sitemap=True)
    assert crawled.outcomes(site.origin)["/2"] == "gone"
    assert crawled.end.complete


@pytest.mark.parametrize("place", ["http://elsewhere.example/s.xml", "http://10.0.0.1/s.xml"])
@pytest.mark.parametrize("inner", [False, True])
def test_a_sitemap_on_another_host_is_not_passed_over_silently(
    site: Site, place: str, inner: bool
) -> None:
    site.pages.update({"/": "home", "/orphan": "orphan", "/sitemap.xml": sitemap(site, "/orphan")})
    known = MemoryKnown()
    crawl_site(site, known, use_sitemap=True)
    index = f"<sitemapindex><sitemap><loc>{place}</loc></sitemap></sitemapindex>"
    site.pages["/index.xml"] = index
    site.pages["/robots.txt"] = f"Sitemap: {f'{site.origin}/index.xml' if inner else place}"
    end = crawl_site(site, known, use_sitemap=True).end
    assert f"{place} is on another host" in end.problem
    site.pages["/"] = links("/orphan")
    assert crawl_site(site, known, use_sitemap=True).end.complete


def test_a_sitemap_that_is_away_or_breaks_off_makes_the_listing_incomplete(site: Site) -> None:
    site.pages.update({"/": "home", "/1": "1", "/sitemap.xml": Page(status=503)})
    assert not crawl_site(site, use_sitemap=True).end.complete
    site.pages["/sitemap.xml"] = sitemap(site, "/1", "/2")[:-40]
    crawled = crawl_site(site, use_sitemap=True)
    assert crawled.outcomes(site.origin)["/1"] == "fetched"
    assert "cannot be read to its end" in crawled.end.problem


def test_a_declared_sitemap_that_is_missing_makes_the_listing_incomplete(site: Site) -> None:
    site.pages.update({"/": "home", "/robots.txt": f"Sitemap: {site.origin}/missing.xml"})
    assert "missing.xml answers 404" in crawl_site(site, use_sitemap=True).end.problem


def test_a_sitemap_may_be_a_text_or_a_feed_where_robots_txt_names_it(site: Site) -> None:
    feed = f"<rss><channel><item><link>{site.origin}/2</link></item></channel></rss>"
    site.pages.update(
        {
            "/robots.txt": f"Sitemap: {site.origin}/urls.txt\nSitemap: {site.origin}/feed.rss",
            "/urls.txt": Page(f"{site.origin}/1\n", media_type="text/plain"),
            "/feed.rss": Page(feed, media_type="application/rss+xml"),
            "/": "home",
            "/1": "1",
            "/2": "2",
        }
    )
    crawled = crawl_site(site, use_sitemap=True)
    assert crawled.outcomes(site.origin) == dict.fromkeys(["/", "/1", "/2"], "fetched")
    assert crawled.end.complete


def test_when_a_page_was_changed_is_told_by_its_server_else_by_the_sitemap(site: Site) -> None:
    dates = {"/1": "2026-03-01", "/2": "2026-03-01T12:00:00+02:00", "/3": "soon", "/4": "2026-03"}
    entries = "".join(
        f"<url><loc>{site.origin}{path}</loc><lastmod>{date}</lastmod></url>"
        for path, date in dates.items()
    )
    site.pages.update({path: path for path in dates})
    site.pages["/"] = links("/1", "/5")
    site.pages["/4"] = Page("4", last_modified="Thu, 01 Jan 2026 00:00:00 GMT")
    site.pages.update({"/5": "5", "/sitemap.xml": f"<urlset>{entries}</urlset>"})
    crawled = crawl_site(site, use_sitemap=True)
    told = {u: i.raw.modified_at for u, i in crawled.items.items() if i.raw is not None}
    assert {uri.removeprefix(site.origin): at for uri, at in told.items()} == {
        "/": None,
        "/1": datetime(2026, 3, 1, tzinfo=UTC),
        "/2": datetime(2026, 3, 1, 10, tzinfo=UTC),
        "/3": None,
        "/4": datetime(2026, 1, 1, tzinfo=UTC),
        "/5": None,
    }


def test_a_date_in_a_sitemap_never_keeps_a_page_from_being_asked_for(site: Site) -> None:
    entry = f"<url><loc>{site.origin}/1</loc><lastmod>2020-01-01</lastmod></url>"
    site.pages.update({"/": "home", "/1": "old", "/sitemap.xml": f"<urlset>{entry}</urlset>"})
    known = MemoryKnown()
    crawl_site(site, known, use_sitemap=True)
    site.pages["/1"] = "new"
    assert crawl_site(site, known, use_sitemap=True).outcomes(site.origin)["/1"] == "fetched"


def test_a_large_sitemap_is_read_without_being_held(site: Site) -> None:
    paths = [f"/{n}/{'x' * 200}" for n in range(9_000)]
    site.pages.update({"/": "home", "/sitemap.xml": sitemap(site, *paths)})
    fetcher = Fetcher(WebsiteOptions(url=site.url, delay=0.0, allow_private=True))
    with LoopThread(fetcher.aclose) as loop:
        reader = SitemapReader(fetcher, loop)
        tracemalloc.start()
        count = sum(1 for _ in reader.pages(site.origin, []))
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert count == 9_000
    assert reader.problems == []
    # The site's own answer is in this process too, as text and as bytes.
    assert most < 2_500_000 + len(sitemap(site, *paths))


def test_a_sitemap_cannot_blow_up_or_read_files(site: Site) -> None:
    bomb = (
        "<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'><!ENTITY b '&a;&a;&a;&a;&a;&a;'>"
        "<!ENTITY f SYSTEM 'file:///etc/hostname'>]>"
        f"<urlset><url><loc>{site.origin}/&b;</loc></url><url><loc>{site.origin}/&f;</loc></url>"
        f"<url><loc>{site.origin}/1</loc></url></urlset>"
    )
    site.pages.update({"/": "home", "/1": "1", "/sitemap.xml": bomb})
    crawled = crawl_site(site, use_sitemap=True)
    assert "/1" in crawled.outcomes(site.origin)
    assert not [path for path in site.requests if "aaa" in path]


# Options


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"url": ""}, "url"),
        ({"url": "example.org"}, "an http"),
        ({"url": "ftp://example.org/"}, "an http"),
        ({"url": "https://user:hush@example.org/"}, "headers"),
        ({"max_pages": 0}, "max_pages"),
        ({"concurrency": 0}, "concurrency"),
        ({"timeout": 0}, "timeout"),
        ({"delay": -1}, "delay"),
        ({"headers": {"Authorization": "hush\r\nX: 1"}}, "Authorization"),
    ],
)
def test_a_wrong_option_is_told_at_once_and_without_secrets(
    options: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match=told) as error:
        WebsiteOptions(**{"url": "https://example.org/", **options})
    assert "hush" not in str(error.value)


def test_secrets_are_neither_shown_nor_part_of_the_fingerprint() -> None:
    def options(token: str, language: str) -> WebsiteOptions:
        headers = {"Authorization": token, "Accept-Language": language}
        return WebsiteOptions(url="https://example.org/", headers=headers)

    assert "hush" not in repr(options("hush", "en"))
    assert options("hush", "en").fingerprint == options("renewed", "en").fingerprint
    assert options("hush", "en").fingerprint != options("hush", "de").fingerprint
