"""A page loses its boilerplate and nothing else."""

import pytest

from tidemark.adapters.partition.html.cleaner import clean_html, page_title
from tidemark.adapters.partition.html.tree import text_of
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


# Pages with hardly a word of their own.

CHAPTERS = "".join(f"<li><a href='/{n}'>Chapter {n} of the guide</a></li>" for n in range(60))


def short(body: str) -> str:
    return text(page(body, "<title>Guide</title>"))


def test_a_heading_alone_in_its_article_is_the_page() -> None:
    sidebar = f"<div class='md-sidebar'><nav><label>Guide</label><ul>{CHAPTERS}</ul></nav></div>"
    body = (
        f"<header>Guide</header><main>{sidebar}<article><h1>404 - Not found</h1></article></main>"
    )
    assert short(body) == "404 - Not found"


def test_a_heading_alone_in_the_main_part_is_the_page() -> None:
    assert short(f"<nav><ul>{CHAPTERS}</ul></nav><main><h1>Tides</h1></main>") == "Tides"


def test_a_list_of_links_in_the_main_part_stays_with_its_heading() -> None:
    assert "Chapter 59" in short(f"<main><h1>Guides</h1><nav><ul>{CHAPTERS}</ul></nav></main>")
    assert "Chapter 59" in short(f"<main><h1>Guides</h1><ul>{CHAPTERS}</ul></main>")


def test_text_beside_a_main_part_that_is_a_heading_alone_stays() -> None:
    prose = "The gauge measures the height of the water every second. " * 8
    assert prose.strip() in short(f"<main><h1>Tides</h1></main><div><p>{prose}</p></div>")


def test_an_excerpt_in_a_list_of_one_keeps_to_itself() -> None:
    post = (
        "<article><header><ul><li>May 3</li></ul></header><h2>New</h2><p>It is here.</p></article>"
    )
    found = short(f"<nav><ul>{CHAPTERS}</ul></nav><main><div><h1>2022</h1>{post}</div></main>")
    assert "It is here." in found
    assert "Chapter" not in found
