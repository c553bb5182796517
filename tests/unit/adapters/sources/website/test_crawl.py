"""The website source against a site over loopback: what is asked, what is said of it."""

import random

import pytest
from sites import Page, Site, crawl_site, links

from fakes.source import MemoryKnown


def test_it_follows_links_within_the_start_pages_scope_and_no_others(site: Site) -> None:
    site.pages.update(
        {
            "/docs/": links("a", "/docs/b?x=1", "/blog/", "https://elsewhere.invalid/docs/"),
            "/docs/a": "a",
            "/docs/b?x=1": "b",
            "/blog/": "blog",
        }
    )
    crawled = crawl_site(site, url=f"{site.origin}/docs/")
    assert list(crawled.outcomes(site.origin)) == ["/docs/", "/docs/a", "/docs/b?x=1"]
    assert site.requests["/blog/"] == 0
    assert crawled.end.complete


def test_a_start_page_without_a_slash_opens_what_is_below_it(site: Site) -> None:
    site.pages.update(
        {
            "/docs": Page(location="/docs/", status=301),
            "/docs/": links("a", "/docs-old"),
            "/docs/a": "a",
            "/docs-old": "x",
        }
    )
    crawled = crawl_site(site, url=f"{site.origin}/docs")
    assert crawled.outcomes(site.origin) == {
        "/docs/": "fetched", "/docs/a": "fetched", "/docs": "alias",
    }  # fmt: skip
    assert crawled.end.complete


def test_patterns_decide_what_is_asked_for_but_a_start_page_is_always_read(site: Site) -> None:
    site.pages.update({"/": links("/a/1", "/a/old/2", "/b"), "/a/1": "1", "/a/old/2": "2"})
    crawled = crawl_site(site, include=("/a/",), exclude=("old/", "/a/old/"))
    assert crawled.outcomes(site.origin) == {"/": "excluded", "/a/1": "fetched"}
    assert site.requests.keys() == {"/robots.txt", "/", "/a/1"}


def test_answers_that_come_in_any_order_give_one_and_the_same_listing(site: Site) -> None:
    chance = random.Random(7)
    site.pages["/"] = links(*(f"/{n}" for n in range(20)))
    for n in range(20):
        site.pages[f"/{n}"] = Page(links(f"/{n}/1", "/shared?x=1", f"/{n - 1}"))
        site.pages[f"/{n}/1"] = Page("<link rel=canonical href=/shared>" if n % 3 else "page")
    site.pages["/shared"] = "shared"
    listings = []
    for _ in range(3):
        for page in site.pages.values():
            if isinstance(page, Page):
                page.delay = chance.random() / 100
        listings.append(crawl_site(site, concurrency=8))
    first, *others = [[(u, i.outcome, i.target) for u, i in x.items.items()] for x in listings]
    assert others == [first, first]


def test_depth_is_counted_in_links_from_the_start(site: Site) -> None:
    site.pages.update({"/": links("/1"), "/1": links("/2"), "/2": links("/3"), "/3": "3"})
    crawled = crawl_site(site, max_depth=2)
    assert list(crawled.outcomes(site.origin)) == ["/", "/1", "/2"]
    assert crawled.end.complete


def test_a_site_with_more_pages_than_allowed_is_listed_incompletely(site: Site) -> None:
    site.pages.update({"/": links("/1", "/2", "/3"), "/1": "1", "/2": "2", "/3": "3"})
    crawled = crawl_site(site, max_pages=3)
    assert len(crawled.items) == 3
    assert "max_pages" in crawled.end.problem
    assert crawl_site(site, max_pages=4).end.complete


def test_a_page_that_stands_for_itself_counts_as_one_of_those_allowed(site: Site) -> None:
    site.pages.update({"/": links("/1"), "/1": "<link rel=canonical href='/2'>"})
    crawled = crawl_site(site, max_pages=1)
    assert list(crawled.outcomes(site.origin)) == ["/"]
    assert crawled.end.problem.count("max_pages") == 1


def test_a_trap_without_documents_ends_too(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidemark.adapters.sources.website.crawl._URLS_AT_LEAST", 10)
    site.pages["/"] = links(*(f"/missing/{n}" for n in range(100)))
    crawled = crawl_site(site, max_pages=5)
    assert len(crawled.items) == 30
    assert not crawled.end.complete


def test_pictures_are_not_asked_for_and_other_media_not_downloaded(site: Site) -> None:
    site.pages.update(
        {
            "/": links("/logo.png", "/data", "/paper.pdf", "/notes.md"),
            "/data": Page("x" * 100_000, media_type="application/json"),
            "/paper.pdf": Page("%PDF-", media_type="application/octet-stream"),
            "/notes.md": Page("# Notes", media_type="text/plain; charset=UTF-8"),
        }
    )
    crawled = crawl_site(site)
    assert site.requests["/logo.png"] == 0
    assert crawled.outcomes(site.origin) == {
        "/": "fetched", "/data": "excluded", "/paper.pdf": "fetched", "/notes.md": "fetched",
    }  # fmt: skip
    notes = crawled.items[site.url + "notes.md"].raw
    assert notes is not None
    assert (notes.media_type, notes.charset) == ("text/markdown", "utf-8")


@pytest.mark.parametrize("declared", [True, False])
def test_a_page_over_the_size_limit_is_told_as_such(site: Site, declared: bool) -> None:
    site.pages.update({"/": links("/big"), "/big": Page("x" * 5_000)})
    if not declared:
        import gzip

        site.pages["/big"] = Page(gzip.compress(b"x" * 5_000), headers={"Content-Encoding": "gzip"})
    crawled = crawl_site(site, max_bytes=1_000)
    assert crawled.outcomes(site.origin)["/big"] == "too_large"
    assert crawled.items[site.url + "big"].detail == (
        "has 5,000 bytes, more than the 1,000 that are fetched"
        if declared
        else "has more than the 1,000 bytes that are fetched"
    )
    assert crawled.end.complete


def test_what_a_page_linked_to_before_it_grew_too_large_is_still_reached(site: Site) -> None:
    site.pages.update({"/": links("/hub"), "/hub": links("/a"), "/a": "a"})
    known = MemoryKnown()
    crawl_site(site, known)
    site.pages["/hub"] = Page(links("/a") + "x" * 5_000, etag="big")
    crawled = crawl_site(site, known, max_bytes=1_000)
    outcomes = crawled.outcomes(site.origin)
    assert (outcomes["/hub"], outcomes["/a"]) == ("too_large", "not_modified")
    assert crawled.items[site.url + "hub"].item.validators.etag == "big"


def test_a_known_page_that_redirects_to_one_that_is_too_large_is_not_lost(site: Site) -> None:
    site.pages.update({"/": links("/old"), "/old": "text"})
    known = MemoryKnown()
    crawl_site(site, known)
    site.pages.update({"/old": Page(status=301, location="/new"), "/new": Page("x" * 5_000)})
    outcomes = crawl_site(site, known, max_bytes=1_000).outcomes(site.origin)
    assert (outcomes["/old"], outcomes["/new"]) == ("failed", "too_large")


def test_a_page_without_an_end_is_too_large(site: Site) -> None:
    site.pages.update({"/": links("/endless"), "/endless": Page("x" * 50_000, endless=True)})
    crawled = crawl_site(site, max_bytes=200_000, timeout=1)
    assert crawled.outcomes(site.origin)["/endless"] == "too_large"


def test_noindex_excludes_a_page_but_not_what_it_links_to(site: Site) -> None:
    site.pages.update(
        {
            "/": links("/meta", "/header"),
            "/meta": "<meta name=robots content=noindex>" + links("/a"),
            "/header": Page(links("/b"), headers={"X-Robots-Tag": "noindex, nofollow"}),
            "/a": "a",
            "/b": "b",
        }
    )
    assert crawl_site(site).outcomes(site.origin) == {
        "/": "fetched", "/meta": "excluded", "/header": "excluded", "/a": "fetched",
    }  # fmt: skip


def test_several_headers_to_robots_are_each_read_by_themselves(site: Site) -> None:
    site.pages["/"] = links("/a", "/b")
    site.pages["/a"] = Page(
        "a", headers={"X-Robots-Tag": "otherbot: nofollow", "x-robots-tag": "noindex"}
    )
    site.pages["/b"] = Page("b", headers={"X-Robots-Tag": "otherbot: noindex"})
    assert crawl_site(site).outcomes(site.origin) == {
        "/": "fetched",
        "/a": "excluded",
        "/b": "fetched",
    }


def test_links_and_pages_that_ask_not_to_be_followed_are_not(site: Site) -> None:
    site.pages.update(
        {
            "/": "<a rel=nofollow href=/1>1</a>" + links("/meta", "/header", "/other"),
            "/meta": "<meta name=robots content=nofollow>" + links("/2"),
            "/header": Page(links("/3"), headers={"X-Robots-Tag": "tidemark: nofollow"}),
            "/other": "<meta name=otherbot content=none>" + links("/4"),
        }
    )
    site.pages.update({f"/{n}": "x" for n in range(1, 5)})
    assert set(crawl_site(site).outcomes(site.origin)) == {"/", "/meta", "/header", "/other", "/4"}


# What the second crawl asks


def test_an_unchanged_page_is_followed_from_its_held_bytes(site: Site) -> None:
    site.pages.update({"/": links("/a"), "/a": links("/b"), "/b": "b"})
    known = MemoryKnown()
    crawl_site(site, known)
    site.forget()
    crawled = crawl_site(site, known)
    assert set(crawled.outcomes().values()) == {"not_modified"}
    assert len(crawled.items) == 3
    assert site.bodies.total() == 0


def test_last_modified_serves_where_there_is_no_etag(site: Site) -> None:
    stamp = "Thu, 01 Jan 2026 00:00:00 GMT"
    site.pages["/"] = Page("x", etag="", last_modified=stamp)
    known = MemoryKnown()
    crawl_site(site, known)
    assert crawl_site(site, known).outcomes(site.origin) == {"/": "not_modified"}
    assert site.seen[-1][1]["if-modified-since"] == stamp


def test_held_bytes_that_are_lost_are_fetched_again(site: Site) -> None:
    class Forgetful(MemoryKnown):
        def content(self, uri: str) -> None:
            return None

    site.pages.update({"/": links("/a"), "/a": "a"})
    known = Forgetful()
    crawl_site(site, known)
    assert crawl_site(site, known).outcomes(site.origin) == {"/": "fetched", "/a": "fetched"}


def test_a_page_that_is_no_longer_linked_and_answers_404_is_gone(site: Site) -> None:
    site.pages.update({"/": links("/a"), "/a": "a"})
    known = MemoryKnown()
    crawl_site(site, known)
    site.pages["/"] = "no more"
    del site.pages["/a"]
    crawled = crawl_site(site, known)
    assert crawled.outcomes(site.origin) == {"/": "fetched", "/a": "gone"}
    assert crawled.end.complete


@pytest.mark.parametrize("etag", [None, ""])
def test_a_page_that_is_no_longer_linked_and_still_answers_is_left_to_the_rule_for_the_absent(
    site: Site, etag: str | None
) -> None:
    site.pages.update({"/": links("/a"), "/a": Page("a" * 100_000, etag=etag)})
    known = MemoryKnown()
    crawl_site(site, known)
    site.pages["/"] = "no more"
    site.forget()
    # It would be too large, were its body read.
    crawled = crawl_site(site, known, max_bytes=50_000)
    assert crawled.outcomes(site.origin) == {"/": "fetched"}
    assert site.requests["/a"] == 1
    assert crawled.end.complete


def test_a_known_page_that_the_patterns_no_longer_admit_is_excluded_unasked(site: Site) -> None:
    site.pages.update({"/": links("/a"), "/a": "a"})
    known = MemoryKnown()
    crawl_site(site, known)
    site.forget()
    crawled = crawl_site(site, known, exclude=("/a",))
    assert crawled.outcomes(site.origin)["/a"] == "excluded"
    assert site.requests["/a"] == 0


def test_a_broken_link_is_told_with_the_page_it_is_on(site: Site) -> None:
    site.pages.update({"/": links("/a"), "/a": links("/missing")})
    crawled = crawl_site(site)
    assert crawled.outcomes(site.origin)["/missing"] == "gone"
    assert crawled.items[site.url + "missing"].detail == f"answers 404; linked from {site.url}a"
    assert crawled.end.complete


# Redirects and canonical addresses


def test_a_redirect_is_an_alias_and_its_target_a_document_once(site: Site) -> None:
    site.pages.update(
        {"/": links("/old", "/older", "/new"), "/old": Page(location="/new"),
         "/older": Page(location="/old"), "/new": "new"}
    )  # fmt: skip
    crawled = crawl_site(site)
    assert crawled.outcomes(site.origin) == {
        "/": "fetched", "/new": "fetched", "/old": "alias", "/older": "alias",
    }  # fmt: skip
    assert crawled.items[site.url + "older"].target == site.url + "new"
    assert site.requests["/new"] == 1
    assert crawled.end.complete


@pytest.mark.parametrize("status", [301, 308])
def test_a_known_page_that_redirects_for_good_has_moved(site: Site, status: int) -> None:
    site.pages.update({"/": links("/old"), "/old": "text"})
    known = MemoryKnown()
    crawl_site(site, known)
    site.pages.update(
        {"/old": Page(location="/between", status=status), "/new": "text",
         "/between": Page(location="/new", status=308)}
    )  # fmt: skip
    crawled = crawl_site(site, known)
    assert crawled.outcomes(site.origin) == {
        "/": "not_modified", "/new": "fetched", "/old": "moved", "/between": "alias",
    }  # fmt: skip
    moved = crawled.items[site.url + "old"]
    assert (moved.target, moved.detail) == (site.url + "new", f"moved to {site.url}new")
    # From now on it is but another address of the document.
    assert crawl_site(site, known).outcomes(site.origin)["/old"] == "alias"


def test_a_known_page_that_nothing_links_to_any_more_can_have_moved_too(site: Site) -> None:
    site.pages.update({"/": links("/old"), "/old": "text"})
    known = MemoryKnown()
    crawl_site(site, known)
    site.pages.update(
        {"/": links("/new"), "/old": Page(location="/new", status=301), "/new": "text"}
    )
    crawled = crawl_site(site, known)
    assert crawled.outcomes(site.origin)["/old"] == "moved"
    assert crawled.items[site.url + "old"].target == site.url + "new"


def test_a_known_page_that_redirects_for_now_is_kept_once_at_its_target(site: Site) -> None:
    site.pages.update({"/": links("/old"), "/old": "text"})
    known = MemoryKnown()
    crawl_site(site, known)
    # One hop that is not for good makes the whole way a temporary one.
    site.pages.update(
        {"/old": Page(location="/between", status=301), "/new": "text",
         "/between": Page(location="/new", status=302)}
    )  # fmt: skip
    crawled = crawl_site(site, known)
    assert crawled.outcomes(site.origin)["/old"] == "alias"
    assert crawled.items[site.url + "old"].target == site.url + "new"
    site.pages["/old"] = "text again"
    assert crawl_site(site, known).outcomes(site.origin)["/old"] == "fetched"


@pytest.mark.parametrize("query", ["", "?next={}"])
def test_known_pages_that_all_redirect_to_one_page_for_now_have_met_a_wall(
    site: Site, query: str
) -> None:
    names = ("/a", "/b", "/c")
    site.pages.update({"/": links(*names)} | dict.fromkeys(names, "text"))
    known = MemoryKnown()
    crawl_site(site, known)
    site.pages.update({n: Page(location="/login" + query.format(n[1:])) for n in names})
    site.pages["/login"] = "Please log in."
    crawled = crawl_site(site, known)
    assert [crawled.outcomes(site.origin)[name] for name in names] == ["failed"] * 3
    assert "login" in crawled.items[site.url + "a"].detail


@pytest.mark.parametrize(
    "login",
    [
        Page(status=500),
        Page(status=403),
        Page("<meta name=robots content=noindex>Log in"),
    ],
)
def test_a_known_page_that_redirects_for_now_to_no_document_has_failed(
    site: Site, login: Page
) -> None:
    site.pages.update({"/": links("/a"), "/a": "text"})
    known = MemoryKnown()
    crawl_site(site, known)
    site.pages.update({"/a": Page(location="/login"), "/login": login})
    assert crawl_site(site, known).outcomes(site.origin)["/a"] == "failed"


def test_a_known_page_that_moved_for_good_to_nowhere_is_not_gone_yet(site: Site) -> None:
    site.pages.update({"/": links("/old"), "/old": "text"})
    known = MemoryKnown()
    crawl_site(site, known)
    site.pages["/old"] = Page(location="/new", status=301)
    assert "/old" not in crawl_site(site, known).outcomes(site.origin)


def test_a_known_page_that_sends_away_for_now_has_failed(site: Site) -> None:
    site.pages.update({"/": links("/a", "/b"), "/a": "text"})
    known = MemoryKnown()
    crawl_site(site, known)
    site.pages["/a"] = Page(location="https://login.invalid/?next=a")
    site.pages["/b"] = Page(location="https://login.invalid/?next=b")
    crawled = crawl_site(site, known)
    assert crawled.outcomes(site.origin) == {"/": "not_modified", "/a": "failed"}
    assert crawled.end.complete


def test_redirects_in_a_circle_and_without_end_are_failures(site: Site) -> None:
    site.pages.update(
        {"/": links("/a", "/c", "/0"), "/a": Page(location="/b"), "/b": Page(location="/a"),
         "/c": Page(location="/c#x")}
    )  # fmt: skip
    site.pages.update({f"/{n}": Page(location=f"/{n + 1}") for n in range(30)})
    crawled = crawl_site(site)
    failed = {u for u, outcome in crawled.outcomes(site.origin).items() if outcome == "failed"}
    assert {"/a", "/b", "/c", "/10"} == failed
    assert crawled.end.complete


def test_a_server_may_insist_on_its_own_spelling(site: Site) -> None:
    site.pages.update(
        {"/": links("/q?b=1&a=2"), "/q?a=2&b=1": Page(location="/q?b=1&a=2"), "/q?b=1&a=2": "q"}
    )
    crawled = crawl_site(site)
    assert crawled.outcomes(site.origin) == {"/": "fetched", "/q?a=2&b=1": "fetched"}


def test_a_page_that_names_another_as_canonical_is_an_alias_of_it(site: Site) -> None:
    site.pages.update(
        {
            "/": links("/page?print=1", "/old/"),
            "/page?print=1": "<link rel=canonical href='/page'>" + links("/b"),
            "/page": "page",
            "/old/": "<meta http-equiv=refresh content='0; url=../page'>",
            "/b": "b",
        }
    )
    known = MemoryKnown()
    for _ in range(2):
        crawled = crawl_site(site, known)
        aliases = {u: i.target for u, i in crawled.items.items() if i.target}
        assert aliases == dict.fromkeys(
            [site.url + "page?print=1", site.url + "old/"], site.url + "page"
        )
        documents = {u for u, o in crawled.outcomes(site.origin).items() if o != "alias"}
        assert documents == {"/", "/page", "/b"}


def test_a_known_page_that_now_names_another_becomes_its_alias(site: Site) -> None:
    site.pages.update({"/": links("/a", "/b"), "/a": "a", "/b": "b"})
    known = MemoryKnown()
    crawl_site(site, known)
    site.pages["/a"] = "<link rel=canonical href='/b'>a"
    assert crawl_site(site, known).outcomes(site.origin)["/a"] == "alias"


def test_a_page_whose_canonical_address_names_another_that_is_lost_leads_to_that_address(
    site: Site,
) -> None:
    site.pages.update(
        {"/": links("/a"), "/a": "<link rel=canonical href='/b'>a",
         "/b": "<link rel=canonical href='/c'>b"}
    )  # fmt: skip
    crawled = crawl_site(site)
    assert crawled.outcomes(site.origin) == {
        "/": "fetched", "/a": "alias", "/b": "fetched", "/c": "gone",
    }  # fmt: skip
    assert crawled.items[site.url + "a"].target == site.url + "b"


@pytest.mark.parametrize("status", [404, 500])
def test_a_canonical_address_that_does_not_work_loses_no_page(site: Site, status: int) -> None:
    site.pages.update(
        {"/": links("/a"), "/a": "<link rel=canonical href='/b'>a", "/b": Page(status=status)}
    )
    assert crawl_site(site).outcomes(site.origin)["/a"] == "fetched"


def test_pages_that_name_each_other_as_canonical_are_both_kept(site: Site) -> None:
    site.pages.update(
        {"/": links("/a"), "/a": "<link rel=canonical href='/b'>a",
         "/b": "<link rel=canonical href='/a'>b"}
    )  # fmt: skip
    known = MemoryKnown()
    for outcome in ("fetched", "not_modified"):
        crawled = crawl_site(site, known)
        assert crawled.outcomes(site.origin) == dict.fromkeys(["/", "/a", "/b"], outcome)


def test_a_canonical_address_elsewhere_is_not_believed(site: Site) -> None:
    site.pages["/"] = "<link rel=canonical href='https://published.invalid/'>home"
    assert crawl_site(site).outcomes(site.origin) == {"/": "fetched"}
