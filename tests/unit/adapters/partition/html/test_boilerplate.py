"""Each kind of boilerplate goes from a page, and what stands on most pages of a site; content stays."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.adapters.partition.html.boilerplate import PAGE_BLOCKS, blocks_of
from tidemark.adapters.partition.html.cleaner import clean_html
from tidemark.adapters.partition.html.tree import text_of
from tidemark.domain.boilerplate import (
    LEAST_PAGES,
    LONGEST,
    MOST_BLOCKS,
    MOST_PAGES,
    block_of,
    detect_boilerplate,
)

PROSE = "The gauge measures the height of the water every second and sends a mean each minute. "
LINKS = "".join(f"<li><a href='/{n}'>OUTER {n}</a></li>" for n in range(5))
PARTS = "".join(f"<li><a href='#{n}'>OUTER {n}</a></li>" for n in range(5))

BOILERPLATE: dict[str, list[str]] = {
    "the navigation": [
        f"<nav><ul>{LINKS}</ul></nav>",
        f"<div role='navigation'><ul>{LINKS}</ul></div>",
        f"<div class='navbar'><ul>{LINKS}</ul></div>",
        f"<ul class='nav-menu'>{LINKS}</ul>",
    ],
    "a sidebar": [
        f"<aside class='sidebar'><ul>{LINKS}</ul></aside>",
        f"<div class='sphinxsidebar'><h3>OUTER</h3><ul>{LINKS}</ul></div>",
        f"<div id='sidebar'><p>OUTER</p><ul>{LINKS}</ul></div>",
        "<div class='md-sidebar'><label>OUTER</label></div>",
    ],
    "a table of contents": [
        f"<div class='toc'><p>Contents</p><ul>{PARTS}</ul></div>",
        f"<div class='contents topic'><p>OUTER</p><ul>{PARTS}</ul></div>",
        f"<p>On this page</p><ul>{PARTS}</ul>",
        f"<div role='doc-toc'><ol>{PARTS}</ol></div>",
    ],
    "breadcrumbs": [
        "<ol class='breadcrumb'><li><a href='/'>OUTER</a></li><li>OUTER</li></ol>",
        "<nav aria-label='breadcrumb'><a href='/'>OUTER</a></nav>",
        "<div class='breadcrumbs'>OUTER » OUTER</div>",
    ],
    "a box about cookies": [
        "<div class='cookie-banner'><h3>OUTER</h3><p>We use cookies.</p><button>OK</button></div>",
        "<div id='onetrust-consent-sdk'><p>OUTER</p></div>",
        "<div role='alertdialog'><p>OUTER</p></div>",
        "<div class='gdpr-notice'><p>OUTER</p></div>",
        "<div id='cookieConsent'>OUTER</div>",
    ],
    "a header of the site": [
        "<header><a href='/'>OUTER</a></header>",
        "<div role='banner'><p>OUTER</p></div>",
        "<div class='masthead'><p>OUTER</p></div>",
    ],
    "a footer of the site": [
        "<footer><p>OUTER</p></footer>",
        "<div role='contentinfo'><p>OUTER</p></div>",
        "<div class='site-footer'><p>OUTER</p></div>",
        "<div id='colophon'><p>OUTER</p></div>",
    ],
    "a link to edit the page": [
        "<div><a class='edit-page' href='/e'>OUTER</a></div>",
        "<p><a href='/e'>Edit this page</a></p>",
        "<div><a href='/e'>Edit this page on GitHub</a></div>",
        "<li><a href='/e'>Show source</a></li>",
    ],
    "related links": [
        f"<div class='related'><ul>{LINKS}</ul></div>",
        f"<div class='related-topics'><h3>OUTER</h3><ul>{LINKS}</ul></div>",
        f"<aside><h3>OUTER</h3><ul>{LINKS}</ul></aside>",
        "<div class='prev-next'><a href='/n'>OUTER</a></div>",
    ],
    "buttons to share": [
        "<div class='share-buttons'><a href='x'>OUTER</a></div>",
        "<div class='sharedaddy sd-sharing'><h3>OUTER</h3></div>",
        "<ul class='social-links'><li><a href='x'>OUTER</a></li></ul>",
    ],
    "a form for comments": [
        "<div id='respond' class='comment-respond'><h3>OUTER</h3><form></form></div>",
        "<form><label>OUTER</label><input><button>Go</button></form>",
        "<form><label>OUTER</label><textarea></textarea><button>Send</button></form>",
        "<div class='md-feedback'><p>OUTER</p></div>",
    ],
    "what nobody is shown": [
        "<p hidden>OUTER</p>",
        "<p style='color: red; display: none'>OUTER</p>",
        "<span aria-hidden='true'>OUTER</span>",
        "<script>OUTER</script><style>OUTER</style><template>OUTER</template>",
    ],
    "a search, and what leads to other pages": [
        "<div role='search'>OUTER</div>",
        "<div class='pagination'><a href='2'>OUTER</a></div>",
    ],
    "a link to skip to the content": [
        "<a class='skip-link' href='#c'>OUTER</a>",
        "<div><a href='#c'>Skip to main content</a></div>",
        "<a class='visually-hidden skip-to-content' href='#c'>OUTER</a>",
    ],
}
SAID = ("OUTER", "Edit this", "Show source", "Skip to", "On this page")


@pytest.mark.parametrize("what", BOILERPLATE)
@pytest.mark.parametrize("place", ["before the main part", "after the main part", "within it"])
def test_it_drops(what: str, place: str) -> None:
    for markup in BOILERPLATE[what]:
        before, after, within = (
            markup if place == where else ""
            for where in ("before the main part", "after the main part", "within it")
        )
        own = f"<h1>Gauges</h1><p>{PROSE * 3}</p>{within}<h2>Use</h2><p>Kept to the end.</p>"
        html = f"<html><body>{before}<main>{own}</main>{after}</body></html>"
        found = text_of(clean_html(html, "page").root)
        assert not any(word in found for word in SAID), markup
        assert found.startswith("Gauges")
        assert found.endswith("Kept to the end.")


# What stands on most pages of a site; what the pages of a reference merely have in common stays.

NOTICE = "This handbook is kept by the harbour office; send what is wrong to the desk on the second floor."


def page(number: int, inner: str) -> str:
    said = PROSE.replace("water", f"basin {number}") * 3
    own = f"<p>Gauge {number} stands at pier {number * 7}. {said}</p>"
    return f"<html><body><div><h1>Gauge {number}</h1>{own}{inner}</div></body></html>"


def boilerplate_of(pages: list[str]) -> frozenset[int]:
    return detect_boilerplate(blocks_of(clean_html(html, "page").root) for html in pages)


def cleaned(pages: list[str]) -> list[str]:
    known = boilerplate_of(pages)
    return [text_of(clean_html(html, "page", boilerplate=known).root) for html in pages]


def site(inner: str, pages: int = 20, on: float = 1.0) -> list[str]:
    return [page(n, inner if n < on * pages else "") for n in range(pages)]


@pytest.mark.parametrize(
    "block",
    [
        f"<p>{NOTICE}</p>",
        f"<div><p>{NOTICE}</p><p>Yes</p><p>No</p></div>",
        f"<section><h3>Help</h3><p>{NOTICE}</p></section>",
        f"<ul><li>{NOTICE}</li><li>Call 17.</li></ul>",
        "<p>Made with care at the harbour</p>",
    ],
)
def test_a_block_on_every_page_goes_wherever_it_stands(block: str) -> None:
    for found in cleaned(site(block)):
        assert "harbour" not in found
        assert "Yes" not in found
        assert "stands at pier" in found


def test_a_block_goes_from_the_pages_that_have_it_when_those_are_most() -> None:
    assert all(NOTICE not in found for found in cleaned(site(f"<p>{NOTICE}</p>", on=0.6)))
    assert any(NOTICE in found for found in cleaned(site(f"<p>{NOTICE}</p>", on=0.4)))


@pytest.mark.parametrize(
    "block",
    [
        "<h2>See also</h2>",
        "<h2>What this gauge can be asked for, and what it answers when it is asked for it</h2>",
        "<p>Parameters:</p>",
        "<p>The parameters that this gauge takes:</p>",
        "<p>Returns</p>",
        "<h2>Messages</h2><p>No messages.</p>",
        f"<pre>{NOTICE}</pre>",
        f"<table><tr><th>Name</th><th>Meaning</th></tr><tr><td>depth</td><td>{NOTICE}</td></tr></table>",
        f"<dl><dt>depth</dt><dd>{NOTICE}</dd></dl>",
        f"<div><h1>{NOTICE}</h1></div>",
    ],
)
def test_what_a_reference_has_on_every_page_stays(block: str) -> None:
    expected = [text_of(clean_html(html, "page").root) for html in site(block)]
    assert cleaned(site(block)) == expected


def test_a_stock_line_on_most_pages_stays() -> None:
    line = "<h2>Messages</h2><p>This gauge sends no messages.</p>"
    assert any("sends no messages" in found for found in cleaned(site(line, on=0.8)))


def test_the_same_words_with_inline_code_are_the_same_block() -> None:
    pages = site(f"<p>{NOTICE.replace('desk', '<code>desk</code>')}</p>")
    assert all("handbook" not in found for found in cleaned(pages))


def test_a_small_site_has_no_boilerplate_of_its_own() -> None:
    assert boilerplate_of(site(f"<p>{NOTICE}</p>", pages=LEAST_PAGES - 1)) == frozenset()
    assert len(boilerplate_of(site(f"<p>{NOTICE}</p>", pages=LEAST_PAGES))) == 1


def test_a_page_never_loses_more_than_half_of_its_text() -> None:
    known = boilerplate_of(site(f"<p>{NOTICE}</p>"))
    short = (
        f"<html><body><div><h1>Gauge</h1><p>Out of order.</p><p>{NOTICE}</p></div></body></html>"
    )
    assert NOTICE in text_of(clean_html(short, "page", boilerplate=known).root)


def test_pages_that_all_say_the_same_keep_it() -> None:
    same = "<html><body><h1>Gauges</h1>" + f"<p>{NOTICE}</p><p>{PROSE * 2}</p></body></html>"
    assert all(NOTICE in found for found in cleaned([same] * 20))


def test_without_known_boilerplate_nothing_changes() -> None:
    html = page(1, f"<p>{NOTICE}</p>")
    assert text_of(clean_html(html, "page", boilerplate=frozenset()).root) == text_of(
        clean_html(html, "page").root
    )


def test_text_around_a_dropped_block_stays() -> None:
    pages = [page(n, f"before {n} <div>{NOTICE}</div> after {n}") for n in range(9)]
    for number, found in enumerate(cleaned(pages)):
        assert found.endswith(f"before {number} after {number}")


def test_a_long_page_tells_the_blocks_of_its_beginning_and_end() -> None:
    paragraphs = "".join(f"<p>{n} {PROSE}</p>" for n in range(2000))
    blocks = blocks_of(clean_html(page(1, paragraphs + f"<p>{NOTICE}</p>"), "page").root)
    assert len(blocks) == PAGE_BLOCKS
    assert block_of(NOTICE) in blocks


@given(st.text())
def test_a_block_is_a_number_that_every_store_can_hold(text: str) -> None:
    number = block_of(" ".join(text.split()))
    assert number is None or (0 <= number < 2**62 and json.loads(json.dumps(number)) == number)


def test_labels_and_whole_pages_are_no_blocks() -> None:
    assert block_of("Parameters") is None
    assert block_of("これはとても短い") is None
    assert (
        block_of("この手引きは港務所が管理しています。誤りは二階の窓口までお知らせください。")
        is not None
    )
    assert block_of("x" * (LONGEST + 1)) is None


@given(st.lists(st.lists(st.integers(0, 40)).map(tuple), max_size=40))
def test_what_is_learned_is_on_at_least_half_of_the_pages(pages: list[tuple[int, ...]]) -> None:
    for block in detect_boilerplate(pages):
        on = sum(block in blocks for blocks in pages)
        assert on >= max(LEAST_PAGES, len(pages) * (0.9 if block & 1 else 0.5))


def test_what_is_learned_is_bounded_and_the_same_in_any_order() -> None:
    pages = [tuple(range(0, 4000, 2))] * 10
    found = detect_boilerplate(pages)
    assert len(found) == MOST_BLOCKS
    assert found == detect_boilerplate([tuple(reversed(blocks)) for blocks in pages])


def test_it_reads_no_more_pages_than_it_says() -> None:
    read = 0

    def pages() -> Iterator[tuple[int, ...]]:
        nonlocal read
        while True:
            read += 1
            yield (2,)

    assert detect_boilerplate(pages()) == {2}
    assert read == MOST_PAGES
