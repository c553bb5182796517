"""A page loses its boilerplate and nothing else."""

from collections.abc import Iterable
from datetime import UTC, datetime

import pytest

from tidemark.adapters.partition.html.cleaner import clean_html, page_title, parse_content
from tidemark.adapters.partition.html.reader import elements_of
from tidemark.adapters.partition.html.tree import text_of
from tidemark.domain.documents import Element, ElementKind, RawDocument
from tidemark.domain.errors import DocumentError

PROSE = "The gauge measures the height of the water every second and sends a mean each minute. "
ARTICLE = f"<h1>Gauges</h1> <p>{PROSE * 4}</p>"


def page(body: str, head: str = "") -> str:
    return f"<!doctype html><html lang='en-GB'><head>{head}</head><body>{body}</body></html>"


def text(html: str) -> str:
    return text_of(clean_html(html, "page").root)


def content(inner: str) -> str:
    return text(page(f"<main>{ARTICLE}{inner}</main>"))


@pytest.mark.parametrize(
    "boilerplate",
    [
        "<nav><a href='/'>FURNITURE</a></nav>",
        "<header><a href='/'>FURNITURE</a></header>",
        "<footer><p>FURNITURE 2026, all rights reserved.</p></footer>",
        "<div role='navigation'><a href='/a'>FURNITURE</a></div>",
        "<div role='search'>FURNITURE</div>",
        "<aside><ul><li><a href='/a'>FURNITURE</a></li></ul></aside>",
        "<div class='cookie-banner'><p>FURNITURE: we use cookies.</p></div>",
        "<div id='cookieConsent'>FURNITURE</div>",
        "<a class='skip-link' href='#main'>Skip to content FURNITURE</a>",
        "<ol class='breadcrumb'><li><a href='/'>FURNITURE</a></li></ol>",
        "<div class='md-sidebar'><p>FURNITURE</p></div>",
        "<div class='pagination'><a href='2'>FURNITURE</a></div>",
        "<div class='prev-next'><a href='2'>FURNITURE</a></div>",
        "<p hidden>FURNITURE</p>",
        "<p style='color: red; display: none'>FURNITURE</p>",
        "<span aria-hidden='true'>FURNITURE</span>",
        "<script>FURNITURE</script><style>FURNITURE</style><template>FURNITURE</template>",
        "<form><label>FURNITURE</label><input><button>Go</button></form>",
        "<div class='share'><a href='x'>FURNITURE</a></div>",
    ],
)
@pytest.mark.parametrize("place", ["outside", "inside"])
def test_boilerplate_goes_wherever_it_stands(boilerplate: str, place: str) -> None:
    inner, outer = (boilerplate, "") if place == "inside" else ("", boilerplate)
    found = text(page(f"{outer}<main>{ARTICLE}{inner}</main>"))
    assert "FURNITURE" not in found
    assert found.startswith("Gauges The gauge measures")


@pytest.mark.parametrize(
    "block",
    [
        "<aside class='note'><p>CONTENT</p></aside>",
        "<div class='admonition warning'><p>CONTENT</p></div>",
        "<aside role='doc-footnote'><p>CONTENT</p></aside>",
        "<footer><section class='footnotes'><ol><li>CONTENT</li></ol></section></footer>",
        "<details><summary>More</summary><p>CONTENT</p></details>",
        "<figure><img src='x.png'><figcaption>CONTENT</figcaption></figure>",
        "<blockquote><p>Quoted.</p><footer>CONTENT</footer></blockquote>",
        "<dl><dt>Term</dt><dd>CONTENT</dd></dl>",
        "<pre class='nav'>CONTENT</pre>",
        "<table class='menu'><tr><td>Soup</td><td>CONTENT</td></tr></table>",
        "<section id='navigation'><h2>Navigation</h2><p>CONTENT</p></section>",
        "<div id='search'><h2>Search</h2><p>CONTENT</p></div>",
        "<h2>See also</h2><ul><li><a href='/a'>CONTENT</a></li><li><a href='/b'>B</a></li></ul>",
        "<div role='tabpanel' hidden><p>CONTENT</p></div>",
        "<p>See <a href='/edit'>edit this page</a> for CONTENT</p>",
        "<header><h2>CONTENT</h2></header>",
    ],
)
def test_content_stays_though_it_looks_like_boilerplate(block: str) -> None:
    assert "CONTENT" in content(block)


def test_a_table_of_contents_of_the_page_goes_with_its_label() -> None:
    links = "".join(f"<li><a href='#s{n}'>Part {n}</a></li>" for n in range(5))
    found = content(f"<p>On this page</p><ul>{links}</ul><p>Kept.</p>")
    assert "On this page" not in found
    assert "Part 3" not in found
    assert found.endswith("Kept.")


def test_a_button_like_link_goes_and_the_same_words_in_a_sentence_stay() -> None:
    found = content(
        "<div><a href='/e'>Edit this page</a></div><p>To help, edit this page and save it.</p>"
    )
    assert found.count("dit this page") == 1


def test_a_page_that_is_only_a_list_of_links_keeps_them() -> None:
    links = "".join(f"<li><a href='/{n}'>Chapter {n}</a></li>" for n in range(9))
    assert "Chapter 8" in text(page(f"<h1>Guides</h1><ul>{links}</ul>"))
    assert "Chapter 8" in text(page(f"<h1>Guides</h1><div class='toc'><ul>{links}</ul></div>"))
    assert "Chapter 8" in text(page(f"<nav><ul>{links}</ul></nav>"))


def test_a_page_without_landmarks_loses_its_blocks_of_links() -> None:
    menu = "<div>" + "".join(f"<a href='/{n}'>Menu {n}</a> " for n in range(8)) + "</div>"
    found = text(page(f"{menu}<div>{ARTICLE}</div>"))
    assert "Menu 3" not in found


def test_a_form_around_the_whole_page_is_no_reason_to_drop_it() -> None:
    assert "The gauge measures" in text(page(f"<form action='/'><div>{ARTICLE}</div></form>"))


def test_an_empty_main_does_not_hide_the_content_beside_it() -> None:
    assert "The gauge measures" in text(page(f"<main></main><div>{ARTICLE}</div>"))


def test_the_heading_above_the_main_content_comes_along() -> None:
    html = page(
        f"<div><h1>Gauges</h1></div><main> <p>{PROSE * 4}</p></main>",
        "<title>Gauges - Harbour</title>",
    )
    assert text(html).startswith("Gauges The gauge measures")


def test_a_site_name_as_a_heading_gives_way_to_that_of_the_page() -> None:
    html = page(f"<div><h1><a href='/'>Harbour site</a></h1></div><div>{ARTICLE}</div>")
    assert text(html).startswith("Gauges")
    assert clean_html(html, "page").title == "Gauges"


@pytest.mark.parametrize(
    ("body", "title", "expected"),
    [
        ("<h1>Gauges<a class='headerlink' href='#g'>¶</a></h1>", "Gauges — Harbour 2.1", "Gauges"),
        ("<h1>Gauges</h1>", "", "Gauges"),
        ("<h2>Gauges</h2>", "Gauges | Harbour", "Gauges"),
        ("<p>x</p>", "Gauges | Harbour", "Gauges | Harbour"),
        ("<p>x</p>", "", ""),
    ],
)
def test_the_title_is_that_of_the_page_and_not_of_the_site(
    body: str, title: str, expected: str
) -> None:
    root = clean_html(page(body), "page").root
    assert page_title(title, "", root) == expected


def test_the_declared_name_of_the_site_is_taken_off_the_title() -> None:
    root = clean_html(page("<p>x</p>"), "page").root
    assert page_title("Gauges | Harbour", "Harbour", root) == "Gauges"


def test_the_language_is_the_one_that_the_page_declares() -> None:
    assert clean_html(page(ARTICLE), "page").language == "en"
    assert clean_html("<p>x</p>", "page").language is None


def test_a_page_that_is_nested_without_end_is_refused_with_its_name() -> None:
    deep = page("<div>" * 400 + "x")
    with pytest.raises(DocumentError, match=r"gauge\.html nests HTML elements"):
        clean_html(deep, "gauge.html")


def test_a_heading_is_reached_by_its_permalink_its_id_or_its_section() -> None:
    html = page(
        "<main><h1 id='own'>A</h1><h2>B<a class='headerlink' href='#link'>¶</a></h2>"
        "<section id='around'><div><h2>C</h2></div><p>x</p></section><a id='before'></a><h2>D</h2>"
        "<h2><a name='inner'></a>E</h2><section id='far'><p>y</p><h2>F</h2></section></main>"
    )
    elements = elements_of(clean_html(html, "page").root)
    anchors = {e.text: e.anchor for e in elements if e.kind is ElementKind.TITLE}
    assert anchors == {
        "A": "own",
        "B": "link",
        "C": "around",
        "D": "before",
        "E": "inner",
        "F": None,
    }


def table_of(rows: str) -> str:
    root = clean_html(page(f"<main>{ARTICLE}<table>{rows}</table></main>"), "page").root
    return texts(elements_of(root), ElementKind.TABLE)[0]


def texts(elements: Iterable[Element], kind: ElementKind) -> list[str]:
    return [e.text for e in elements if e.kind is kind]


def test_a_cell_over_several_rows_is_said_in_each() -> None:
    head = "<tr><th>Place</th><th>Depth</th></tr>"
    rows = f"{head}<tr><td rowspan=2>Pier</td><td>3 m</td></tr><tr><td>4 m</td></tr>"
    assert table_of(rows) == "Place\tDepth\nPier\t3 m\nPier\t4 m"


def test_a_heading_over_several_columns_names_each_of_them() -> None:
    rows = "<tr><th colspan=2>Depth</th></tr><tr><th>low</th><th>high</th></tr><tr><td>1</td><td>2</td></tr>"
    assert table_of(rows) == "Depth\tDepth\nlow\thigh\n1\t2"


def test_spans_that_ask_for_billions_of_cells_are_bounded() -> None:
    cell = "<td colspan=99999 rowspan=99999>" + "x" * 999 + "</td>"
    assert len(table_of(f"<tr>{cell}</tr>" + "<tr><td>y</td><td>z</td></tr>" * 300)) < 2_000_000


def test_code_keeps_its_lines_without_numbers_and_buttons() -> None:
    code = (
        "<div class='highlight'><table class='highlighttable'><tr><td class='linenos'><pre>1\n2</pre></td>"
        "<td class='code'><pre><button>Copy</button><code>def f():\n    pass</code></pre></td></tr>"
        "</table></div>"
    )
    elements = list(elements_of(clean_html(page(f"<main>{ARTICLE}{code}</main>"), "page").root))
    assert texts(elements, ElementKind.CODE) == ["def f():\n    pass"]
    assert not texts(elements, ElementKind.TABLE)


def test_a_short_page_in_a_long_navigation_keeps_its_text_and_drops_the_navigation() -> None:
    links = "".join(
        f"<li><a href='/{n}'>Widget number {n} of the site</a></li>" for n in range(200)
    )
    page = clean_html(
        f"<html><head><title>Show - Site</title></head><body><nav><ul>{links}</ul></nav>"
        "<main><article><h1>Show</h1><p>Sent when shown.</p></article></main></body></html>",
        "show",
    )
    text = "".join(page.root.itertext())
    assert "Sent when shown." in text
    assert "Widget number" not in text


def test_a_heading_below_the_first_text_is_not_the_title_of_the_page() -> None:
    page = clean_html(
        "<html><head><title>ScreenResume - Site</title></head><body><main><p>Sent to a screen that has "
        "been made active.</p><h1>refresh_styles</h1><p>Should it refresh?</p></main></body></html>",
        "resume",
    )
    assert page.title == "ScreenResume"


def test_a_short_page_whose_main_part_holds_the_sidebar_too_drops_the_sidebar() -> None:
    links = "".join(
        f"<li><a href='/{n}'>Widget number {n} of the site</a></li>" for n in range(200)
    )
    page = clean_html(
        "<html><head><title>Show - Site</title></head><body><main><div class='md-sidebar'><nav><label>"
        f"Navigation</label><ul>{links}</ul></nav></div><div class='md-content'><article><h1>Show</h1>"
        "<p>Sent when it is shown first.</p></article></div></main></body></html>",
        "show",
    )
    text = "".join(page.root.itertext())
    assert "Sent when it is shown first." in text
    assert "Widget number" not in text


ILLEGAL = [
    ("\x01", ""), ("\b", ""), ("\x1b", ""), ("\ufffe", ""), ("\uffff", ""), ("\ud800", ""),
    ("\x0b", " "), ("\x0c", " "), ("&#27;", ""), ("&#x8;", ""), ("&#11;", " "), ("&#xFFFF;", ""),
]  # fmt: skip


@pytest.mark.parametrize(("character", "left"), ILLEGAL)
@pytest.mark.parametrize("whole_page", [True, False])
def test_characters_that_are_not_xml_go_and_the_page_stays(
    character: str, left: str, whole_page: bool
) -> None:
    inner = (
        f"<h2 id='a{character}b'>C{character}D</h2><pre>e{character}f</pre>"
        f"<p>g <b>h</b>i{character}j <span @click='k{character}l'>m</span></p>"
        f"<table><tr><th>n{character}o</th><th>p</th></tr><tr><td>q</td><td>r</td></tr></table>"
    )
    html = page(f"<main>{ARTICLE}{inner}</main>")
    root = clean_html(html, "page").root if whole_page else parse_content(html, "page")
    elements = list(elements_of(root))
    (heading,) = (e for e in elements if e.level == 2)
    assert (heading.anchor, heading.text) == (f"a{left}b", f"C{left}D")
    assert texts(elements, ElementKind.CODE) == [f"e{left}f"]
    assert f"g hi{left}j m" in texts(elements, ElementKind.TEXT)
    assert f"n{left}o" in texts(elements, ElementKind.TABLE)[0]


@pytest.mark.model
@pytest.mark.parametrize("character", ["\x01", "\b", "\x0b", "\x0c", "\x1b", "\uffff"])
@pytest.mark.parametrize(
    ("media_type", "before"),
    [
        ("text/html", "<h1>Gauges</h1><pre>a{}b</pre><p>The mast a{}b.</p>"),
        ("text/markdown", "# Gauges a{}b\n\nThe mast a{}b.\n\n```\na{}b\n```\n"),
        ("text/plain", "Gauges a{}b\n\nThe mast a{}b stands there.\n"),
        ("text/x-rst", "Gauges\n======\n\nThe mast a{}b::\n\n    a{}b\n"),
        ("message/rfc822", "Subject: Gauges\nContent-Type: text/plain\n\nThe mast a{}b stands.\n"),
        (
            "message/rfc822",
            "Subject: Gauges\nContent-Type: text/html\n\n<pre>The mast a{}b</pre>\n",
        ),
    ],
)
def test_a_control_character_quarantines_no_document(
    media_type: str, before: str, character: str
) -> None:
    from tidemark.adapters.partition.partitioner import UnstructuredPartitioner

    content = before.replace("{}", character).encode()
    raw = RawDocument(
        "file:///gauges", content, media_type, "utf-8", datetime(2026, 1, 1, tzinfo=UTC)
    )
    document = UnstructuredPartitioner().partition(raw)
    found = " ".join(element.text for element in document.elements)
    assert character not in found
    assert "mast" in found
