"""robots.txt by RFC 9309, item by item, as the crawler obeys it."""

from collections.abc import Iterator
from typing import Any

import pytest
from sites import Page, Site, crawl_site

ASKED = ("/a", "/a/b", "/a/b.html", "/c?x=1", "/d.pdf", "/d.pdf?v=2", "/caf%C3%A9", "/e")


@pytest.fixture
def site() -> Iterator[Site]:
    with Site(dict.fromkeys(ASKED, "text")) as running:
        running.pages["/"] = "".join(f"<a href='{path}'>x</a>" for path in ASKED)
        yield running


def allowed(site: Site, rules: str | Page, **options: Any) -> list[str]:
    """Which of the paths are asked for under these rules."""
    site.forget()
    site.pages["/robots.txt"] = rules if isinstance(rules, Page) else Page(rules)
    crawl_site(site, **options)
    return [path for path in ASKED if site.requests[path]]


@pytest.mark.parametrize(
    ("rules", "denied"),
    [
        ("User-agent: *\nDisallow: /a", {"/a", "/a/b", "/a/b.html"}),
        ("User-agent: *\nDisallow: /a$", {"/a"}),
        ("User-agent: *\nDisallow: /*.html", {"/a/b.html"}),
        ("User-agent: *\nDisallow: /*.pdf$", {"/d.pdf"}),
        ("User-agent: *\nDisallow: /a*b", {"/a/b", "/a/b.html"}),
        ("User-agent: *\nDisallow: /*?", {"/c?x=1", "/d.pdf?v=2"}),
        ("User-agent: *\nDisallow: /caf%c3%a9", {"/caf%C3%A9"}),
        ("User-agent: *\nDisallow: /café", {"/caf%C3%A9"}),
        ("User-agent: *\nDisallow:", set()),
        ("User-agent: *\nDisallow: /a # a comment\n\nAllow: /a/b", {"/a"}),
    ],
)
def test_patterns_match_from_the_start_with_wildcards_and_ends(
    site: Site, rules: str, denied: set[str]
) -> None:
    assert set(ASKED) - set(allowed(site, rules)) == denied


def test_the_longest_match_decides_whatever_the_order(site: Site) -> None:
    rules = "User-agent: *\nAllow: /a/b.html\nDisallow: /a\nAllow: /a/b\nDisallow: /a/b.h"
    assert set(ASKED) - set(allowed(site, rules)) == {"/a"}


def test_of_two_equally_long_matches_the_allowing_one_wins(site: Site) -> None:
    assert "/e" in allowed(site, "User-agent: *\nDisallow: /e\nAllow: /e")


def test_the_group_of_this_robot_replaces_that_of_all(site: Site) -> None:
    rules = "User-agent: *\nDisallow: /\n\nUser-agent: TIDEMARK\nDisallow: /e"
    assert set(ASKED) - set(allowed(site, rules)) == {"/e"}


def test_groups_with_the_same_name_and_lists_of_names_are_one_group(site: Site) -> None:
    rules = (
        "User-agent: other\nUser-agent: tidemark\nDisallow: /e\n\n"
        "User-agent: *\nDisallow: /\n\nUser-agent: tidemark\nDisallow: /d.pdf\n"
    )
    assert set(ASKED) - set(allowed(site, rules)) == {"/e", "/d.pdf", "/d.pdf?v=2"}


def test_rules_for_other_robots_only_are_none_for_this_one(site: Site) -> None:
    assert allowed(site, "User-agent: otherbot\nDisallow: /") == list(ASKED)


def test_the_name_obeyed_is_the_first_word_of_the_user_agent(site: Site) -> None:
    rules = "User-agent: docs-robot\nDisallow: /e\n\nUser-agent: *\nDisallow: /a"
    denied = set(ASKED) - set(allowed(site, rules, user_agent="Docs-Robot/2.0 (test)"))
    assert denied == {"/e"}


@pytest.mark.parametrize("ending", ["\r\n", "\r", "\n"])
def test_every_kind_of_line_end_and_a_mark_at_the_beginning_are_read(
    site: Site, ending: str
) -> None:
    rules = "\ufeffUser-agent: *\nDisallow: /e\n".replace("\n", ending)
    assert "/e" not in allowed(site, rules)


def test_what_stands_after_500_kib_is_not_read(site: Site) -> None:
    filler = "# filler\n" * 60_000
    assert "/e" in allowed(site, f"User-agent: *\n{filler}Disallow: /e\n")
    assert "/a" not in allowed(site, f"User-agent: *\nDisallow: /a\n{filler}Disallow: /e\n")


def test_garbage_is_no_rule(site: Site) -> None:
    assert allowed(site, Page(b"\x00\xff\xfe<html>Disallow", media_type="text/html")) == list(ASKED)


@pytest.mark.parametrize(("hops", "is_read"), [(1, True), (5, True), (6, False)])
def test_five_redirects_are_followed_and_more_mean_that_there_is_none(
    site: Site, hops: int, is_read: bool
) -> None:
    for hop in range(1, hops):
        site.pages[f"/r{hop}"] = Page(location=f"/r{hop + 1}")
    site.pages[f"/r{hops}"] = "User-agent: *\nDisallow: /e"
    assert ("/e" not in allowed(site, Page(location="/r1"))) is is_read


def test_it_is_asked_for_once_a_crawl(site: Site) -> None:
    allowed(site, "User-agent: *\nDisallow: /e", concurrency=8)
    assert site.requests["/robots.txt"] == 1


def test_robots_txt_itself_is_always_allowed(site: Site) -> None:
    site.pages["/"] = "<a href='/robots.txt'>rules</a>"
    crawled = crawl_site(site)
    assert crawled.end.complete
