"""A page that is not what its address stands for is suspected; an honest page never is."""

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemark.adapters.inspection.inspector import DocumentInspector
from tidemark.domain.documents import Anomaly, Inspection, RawDocument
from unit.adapters.inspection.inspector_pages import ANOMALIES, HONEST, NAV, PROSE, framed, page

CORPORA = Path(__file__).parents[5] / "shared" / "corpora"


def raw(
    html: str | bytes, media_type: str = "text/html", charset: str | None = "utf-8"
) -> RawDocument:
    content = html.encode() if isinstance(html, str) else html
    return RawDocument("https://a.example/x", content, media_type, charset, datetime.now(UTC))


def inspect(html: str | bytes) -> Inspection:
    found = DocumentInspector().inspect(raw(html))
    assert found is not None
    return found


@pytest.mark.parametrize("name", ANOMALIES)
def test_it_suspects(name: str) -> None:
    expected, html = ANOMALIES[name]
    found = inspect(html)
    assert (found.anomaly, bool(found.detail)) == (expected, True)


@pytest.mark.parametrize("name", HONEST)
def test_it_believes(name: str) -> None:
    found = inspect(HONEST[name])
    assert (found.anomaly, found.detail) == (None, "")


@pytest.mark.parametrize("name", ANOMALIES)
def test_it_believes_an_article_that_has_the_same_words_and_much_text(name: str) -> None:
    _, html = ANOMALIES[name]
    article = f"<article><h2>Tides</h2><p>{PROSE * 60}</p></article>"
    place = "<main>" if "<main>" in html else "<body>"
    assert inspect(html.replace(place, place + article, 1)).anomaly is None


def test_the_evidence_quotes_what_the_page_calls_itself_and_what_it_says() -> None:
    html = framed(
        "Page not found", "<h1>Page not found</h1><p>The page you requested does not exist.</p>"
    )
    detail = inspect(html).detail
    assert "“Page not found”" in detail
    assert "“page you requested does not exist”" in detail
    assert re.search(r"\d+ characters of text", detail)
    assert len(detail) < 300


def test_pages_that_differ_in_boilerplate_alone_have_one_text() -> None:
    body = f"<main><h1>Gauges</h1><p>{PROSE * 4}</p></main>"
    one, other = (
        inspect(page("Gauges", NAV + body)),
        inspect(page("Gauges", f"<nav>Menu</nav>\n {body}")),
    )
    assert one.text_hash == other.text_hash
    assert one.text_length == other.text_length == len(f"Gauges {PROSE * 4}".strip())
    assert inspect(page("Gauges", NAV + body.replace("water", "lake"))).text_hash != one.text_hash


def test_blocks_are_numbers_that_json_and_a_database_can_hold() -> None:
    blocks = inspect(
        page("Gauges", f"<main><h1>Gauges</h1><p>{PROSE}</p><p>{PROSE * 3}</p></main>")
    ).blocks
    assert len(blocks) == 2
    assert all(0 < block < 2**63 for block in blocks)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"   ", b"\0\1\2binary", b"<", b"<html", b"<!-- comment -->", b"</p></p>", b"<html></html>",
        b"<title>404", b"\xff\xfe<\0p\0>\0x\0", b"<h1>caf\xe9</h1>",
        "<p>\ufffe&#0;&#x1f;&#99999999999;</p>".encode(),
        b"<form><input type=password><form><form>", b"<table><tr><td>" * 40, b"&#xD800;<p>x",
    ],
)  # fmt: skip
def test_it_never_raises_for_what_a_page_holds(content: bytes) -> None:
    found = DocumentInspector().inspect(raw(content, charset=None))
    assert found is None or found.text_length >= 0


def test_a_page_nested_without_end_is_left_to_the_partitioner_to_refuse() -> None:
    assert DocumentInspector().inspect(raw("<div>" * 5000 + "x")) is None


def test_the_boilerplate_of_the_site_is_no_part_of_the_text_and_can_be_learned_again() -> None:
    notice = (
        "<p>This handbook is kept by the harbour office on the second floor of the old mill.</p>"
    )
    html = page("Gauges", f"<main><h1>Gauges</h1><p>{PROSE * 3}</p>{notice}</main>")
    plain, known = inspect(html.replace(notice, "")), inspect(html)
    boilerplate = frozenset(known.blocks) - frozenset(plain.blocks)
    found = DocumentInspector().inspect(raw(html), boilerplate)
    assert found is not None
    assert found.blocks == known.blocks
    assert found.text_hash == plain.text_hash != known.text_hash
    assert found.text_length == plain.text_length


_PIECES = st.sampled_from(
    [
        *("<p>", "</p>", "<main>", "<h1>404", "<form>", "<input type=password>", "<table>", "<td>"),
        *("<title>", "&#0;", "<![CDATA[", "<!--", "-->", "<svg>", "<math>", "Not found", "</body>"),
        *("<a href='#'>", "é", "<base>", ">"),
    ]
)


@given(st.lists(_PIECES, max_size=40).map("".join))
@settings(max_examples=150, deadline=None)
def test_it_never_raises_for_a_broken_page(html: str) -> None:
    found = DocumentInspector().inspect(raw(html))
    assert found is None or found.text_length >= 0


@pytest.mark.skipif(not CORPORA.is_dir(), reason="the corpora are not here")
@pytest.mark.parametrize("folder", ["sites/textual", "sites/mkdocs", "mix500"])
def test_no_page_of_real_documentation_is_suspected(folder: str) -> None:
    pages = sorted((CORPORA / folder).rglob("*.html"))
    assert pages
    step = max(1, len(pages) // 25)
    for path in pages[::step]:
        found = DocumentInspector().inspect(raw(path.read_bytes()))
        expected = Anomaly.SOFT_404 if path.name == "404.html" else None
        assert found is not None
        assert found.anomaly is expected, (path.name, found.detail)
