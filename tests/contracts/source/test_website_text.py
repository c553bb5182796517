"""From the wire to readable text: content encoding, then charset, whoever names it, or nobody."""

import gzip
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from sites import Page, Site, crawl_site

from tidemark.adapters.decoding import decode

TEXT = "<p>Größe und Maß, façade and naïveté: „quoted“ – and so on.</p>"


def read(site: Site, page: Page) -> str:
    site.pages["/"] = page
    crawled = crawl_site(site)
    raw = crawled.items[site.url].raw
    assert raw is not None
    return decode(raw.content, raw.charset, raw.uri)


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [("gzip", gzip.compress), ("br", brotli.compress), ("zstd", zstandard.compress),
     ("deflate", zlib.compress)],
)  # fmt: skip
def test_every_content_encoding_is_asked_for_and_undone(
    site: Site, encoding: str, encode: Callable[[bytes], bytes]
) -> None:
    page = Page(encode(TEXT.encode()), headers={"Content-Encoding": encoding})
    assert read(site, page) == TEXT
    assert encoding in site.seen[-1][1]["accept-encoding"]


@pytest.mark.parametrize(
    ("content_type", "body"),
    [
        ("text/html; charset=windows-1252", TEXT.encode("cp1252")),
        ('text/html; CHARSET="Windows-1252"', TEXT.encode("cp1252")),
        ("text/html; charset=iso-8859-1", TEXT.encode("cp1252")),
        ("text/html; charset=iso-8859-1", b"\xef\xbb\xbf" + TEXT.encode()),
        ("text/html", TEXT.encode("utf-16")),
        ("text/html", TEXT.encode()),
        ("text/html", TEXT.encode("cp1252")),
    ],
)
def test_the_charset_is_that_of_the_mark_else_the_header_else_what_fits(
    site: Site, content_type: str, body: bytes
) -> None:
    assert read(site, Page(body, media_type=content_type)) == TEXT


def test_the_page_itself_names_its_charset_where_the_header_does_not(site: Site) -> None:
    text = "<meta charset=koi8-r><p>Привет</p>"
    assert read(site, Page(text.encode("koi8-r"), media_type="text/html")) == text
