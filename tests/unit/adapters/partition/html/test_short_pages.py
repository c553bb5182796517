"""A page with hardly a word of its own keeps that word and not the site around it."""

from tidemark.adapters.partition.html.cleaner import clean_html
from tidemark.adapters.partition.html.tree import text_of

LINKS = "".join(f"<li><a href='/{n}'>Chapter {n} of the guide</a></li>" for n in range(60))
HEAD = "<head><title>Guide</title></head>"


def text(body: str) -> str:
    return text_of(clean_html(f"<html>{HEAD}<body>{body}</body></html>", "page").root)


def test_a_heading_alone_in_its_article_is_the_page() -> None:
    sidebar = f"<div class='md-sidebar'><nav><label>Guide</label><ul>{LINKS}</ul></nav></div>"
    body = (
        f"<header>Guide</header><main>{sidebar}<article><h1>404 - Not found</h1></article></main>"
    )
    assert text(body) == "404 - Not found"


def test_a_heading_alone_in_the_main_part_is_the_page() -> None:
    assert text(f"<nav><ul>{LINKS}</ul></nav><main><h1>Tides</h1></main>") == "Tides"


def test_a_list_of_links_in_the_main_part_stays_with_its_heading() -> None:
    assert "Chapter 59" in text(f"<main><h1>Guides</h1><nav><ul>{LINKS}</ul></nav></main>")
    assert "Chapter 59" in text(f"<main><h1>Guides</h1><ul>{LINKS}</ul></main>")


def test_text_beside_a_main_part_that_is_a_heading_alone_stays() -> None:
    prose = "The gauge measures the height of the water every second. " * 8
    assert prose.strip() in text(f"<main><h1>Tides</h1></main><div><p>{prose}</p></div>")


def test_an_excerpt_in_a_list_of_one_keeps_to_itself() -> None:
    post = (
        "<article><header><ul><li>May 3</li></ul></header><h2>New</h2><p>It is here.</p></article>"
    )
    found = text(f"<nav><ul>{LINKS}</ul></nav><main><div><h1>2022</h1>{post}</div></main>")
    assert "It is here." in found
    assert "Chapter" not in found
