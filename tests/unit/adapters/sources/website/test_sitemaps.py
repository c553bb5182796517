"""What is read out of one sitemap file, in pieces of any size."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.adapters.sources.website.http import BrokenEncodingError
from tidemark.adapters.sources.website.sitemaps import Listed, NoSitemapError, listed_in

URLSET = (
    "<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'"
    " xmlns:i='http://www.google.com/schemas/sitemap-image/1.1'>"
    "<url><loc> https://example.org/a?x=1&y=2&amp;z=3 </loc><lastmod>2026-03-01</lastmod>"
    "<i:image><i:loc>https://example.org/a.png</i:loc></i:image></url>"
    "<url><loc><![CDATA[https://example.org/b?p&q]]></loc></url></urlset>"
)
ENTRIES = [
    Listed("https://example.org/a?x=1&y=2&z=3", is_sitemap=False, modified="2026-03-01"),
    Listed("https://example.org/b?p&q", is_sitemap=False),
]


def read(text: str | bytes, size: int = 10_000) -> list[Listed]:
    data = text.encode() if isinstance(text, str) else text

    def pieces() -> Iterator[bytes]:
        for start in range(0, len(data), size):
            yield data[start : start + size]

    return list(listed_in(pieces()))


@given(st.integers(1, 400))
def test_it_reads_the_same_in_pieces_of_any_size(size: int) -> None:
    padded = URLSET.replace("</urlset>", "<!--" + " " * 5_000 + "-->" + "</urlset>")
    assert read(padded, size)[0] == ENTRIES[0]
    assert len(read(padded, size)) == 2


@pytest.mark.parametrize("prefix", ["", "s:"])
def test_namespaces_and_their_prefixes_do_not_matter(prefix: str) -> None:
    index = (
        f"<{prefix}sitemapindex xmlns{':s' if prefix else ''}='urn:any'><{prefix}sitemap>"
        f"<{prefix}loc>https://example.org/1.xml</{prefix}loc></{prefix}sitemap></{prefix}sitemapindex>"
    )
    assert read(index) == [Listed("https://example.org/1.xml", is_sitemap=True)]


def test_a_text_has_a_url_a_line() -> None:
    text = "\ufeffhttps://example.org/a\r\n\r\n  https://example.org/b  \nno url\nHTTPS://example.org/c"
    urls = [listed.url for listed in read(text, 7)]
    assert urls == ["https://example.org/a", "https://example.org/b", "HTTPS://example.org/c"]


def test_a_feed_lists_its_entries_with_their_dates() -> None:
    rss = (
        "<rss version='2.0'><channel><link>https://example.org/</link><item><title>One</title>"
        "<link>https://example.org/1</link><pubDate>Sun, 01 Mar 2026 10:00:00 GMT</pubDate></item>"
        "</channel></rss>"
    )
    atom = (
        "<feed xmlns='http://www.w3.org/2005/Atom'><link href='https://example.org/'/><entry>"
        "<link rel='edit' href='https://example.org/edit'/><link href='https://example.org/1'/>"
        "<updated>2026-03-01T10:00:00Z</updated></entry></feed>"
    )
    assert read(rss) == [
        Listed("https://example.org/1", is_sitemap=False, modified="Sun, 01 Mar 2026 10:00:00 GMT")
    ]
    assert read(atom) == [
        Listed("https://example.org/1", is_sitemap=False, modified="2026-03-01T10:00:00Z")
    ]


@pytest.mark.parametrize("other", ["", "<!doctype html><p>home", "null", "{}", "Not found"])
def test_what_is_no_sitemap_is_known_at_its_head(other: str) -> None:
    with pytest.raises(NoSitemapError):
        read(other)


def test_one_that_breaks_off_gives_what_came_before() -> None:
    found: list[str] = []
    entries = listed_in(iter([URLSET[:-40].encode()]))
    with pytest.raises(BrokenEncodingError):
        found.extend(listed.url for listed in entries)
    assert found == [ENTRIES[0].url]


def test_utf_16_is_read_too() -> None:
    text = URLSET.replace("&y=2", "").replace("<?xml version='1.0'?>", "")
    assert read(text.encode("utf-16"))[0].url == "https://example.org/a?x=1&z=3"
