import pytest

from tidemark.adapters.sources.website.pages import Directives, header_directives, read_page

URL = "https://example.org/docs/page.html"


def facts(html: str, charset: str | None = None):
    return read_page(html.encode(), charset, URL, "Tidemark")


def test_it_finds_each_link_once_in_order_and_canonical() -> None:
    page = facts(
        "<a href='b'>b</a><a href='/a#x'>a</a><area href='../c/'><a href='b#top'>again</a>"
        "<a href='#here'>here</a><a href='mailto:someone@example.org'>mail</a><a>none</a>"
        "<a href='https://other.example/?utm_source=x'>other</a>"
    )
    assert page.links == (
        "https://example.org/docs/b",
        "https://example.org/a",
        "https://example.org/c/",
        "https://other.example/",
    )


def test_links_are_relative_to_the_base_that_the_page_declares() -> None:
    page = facts("<base href='/v2/'><a href='b'>b</a>")
    assert page.links == ("https://example.org/v2/b",)


def test_it_follows_no_link_that_asks_not_to_be_followed() -> None:
    assert facts("<a rel='noopener NoFollow' href='b'>b</a><a href='c'>c</a>").links == (
        "https://example.org/docs/c",
    )
    assert facts("<meta name=Robots content='index, NOFOLLOW'><a href='c'>c</a>").links == ()


def test_the_pages_of_a_series_are_links_and_other_link_elements_are_not() -> None:
    page = facts("<link rel=next href='p2'><link rel=stylesheet href='s.html'>")
    assert page.links == ("https://example.org/docs/p2",)


@pytest.mark.parametrize(
    ("html", "noindex"),
    [
        ("<meta name='robots' content='noindex'>", True),
        ("<meta name='ROBOTS' content='nofollow,none'>", True),
        ("<meta name='tidemark' content='noindex'>", True),
        ("<meta name='otherbot' content='noindex'>", False),
        ("<meta name='description' content='noindex'>", False),
    ],
)
def test_it_reads_what_a_page_says_to_robots(html: str, noindex: bool) -> None:
    assert facts(html).directives.noindex is noindex


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("noindex", Directives(noindex=True)),
        ("noarchive, NOFOLLOW", Directives(nofollow=True)),
        ("none", Directives(noindex=True, nofollow=True)),
        ("otherbot: noindex, nofollow", Directives()),
        ("otherbot: noindex, tidemark: nofollow", Directives(nofollow=True)),
        ("unavailable_after: 25 Jun 2030 15:00:00 GMT, noindex", Directives(noindex=True)),
        ("max-snippet: 5, noindex", Directives(noindex=True)),
        ("otherbot: nofollow\nnoindex", Directives(noindex=True)),
        ("Tidemark: none", Directives(noindex=True, nofollow=True)),
        ("tidemark-news: none", Directives()),
        ("", Directives()),
    ],
)
def test_it_reads_what_a_header_says_to_robots(header: str, expected: Directives) -> None:
    assert header_directives(header, "Tidemark") == expected


def test_it_knows_which_page_is_meant() -> None:
    assert facts("<link rel=canonical href='/docs/page'>").canonical == (
        "https://example.org/docs/page"
    )
    assert facts(f"<link rel=canonical href='{URL}#top'>").canonical is None
    assert facts("<link rel=canonical href=''>").canonical is None


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0; url=../new/", "https://example.org/new/"),
        ("0;URL='/new'", "https://example.org/new"),
        ("30; url=/news", None),
        ("0", None),
    ],
)
def test_a_page_that_refreshes_at_once_means_another(content: str, target: str | None) -> None:
    assert facts(f'<meta http-equiv="Refresh" content="{content}">').canonical == target


def test_broken_markup_and_unknown_charsets_do_not_hide_links() -> None:
    page = read_page(b"<p><a href=b><div><a href='c\xff", "x-unheard-of", URL, "Tidemark")
    assert page.links[0] == "https://example.org/docs/b"
    assert read_page(b"", None, URL, "Tidemark").links == ()


LINK = "<meta charset={}><a href='/straße'>on</a>"


@pytest.mark.parametrize(
    ("content", "charset"),
    [
        (LINK.format("x").encode(), "utf-8"),
        (LINK.format("utf-8").encode("iso-8859-1"), "iso-8859-1"),
        (b"\xef\xbb\xbf" + LINK.format("x").encode(), "iso-8859-1"),
        (LINK.format("x").encode("utf-16"), None),
        (b"\xfe\xff" + LINK.format("x").encode("utf-16-be"), "utf-8"),
        (LINK.format("windows-1252").encode("cp1252"), None),
        (LINK.format("utf-8").encode(), None),
        (LINK.format("utf-8").encode(), "x-unheard-of"),
    ],
)
def test_links_are_read_by_mark_then_header_then_what_the_page_says(
    content: bytes, charset: str | None
) -> None:
    page = read_page(content, charset, URL, "Tidemark")
    assert page.links == ("https://example.org/stra%C3%9Fe",)
