"""What the reader of pages makes of their blocks."""

from collections.abc import Iterable
from datetime import UTC, datetime

import pytest

from tidemark.adapters.partition.html.cleaner import clean_html, parse_content
from tidemark.adapters.partition.html.reader import elements_of
from tidemark.domain.documents import Element, ElementKind, RawDocument

PROSE = "The gauge measures the height of the water every second and sends a mean each minute. "
ARTICLE = f"<h1>Gauges</h1> <p>{PROSE * 4}</p>"


def page(body: str) -> str:
    return f"<!doctype html><html lang='en-GB'><body>{body}</body></html>"


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


def texts(elements: Iterable[Element], kind: ElementKind) -> list[str]:
    return [e.text for e in elements if e.kind is kind]


def test_code_keeps_its_lines_without_numbers_and_buttons() -> None:
    code = (
        "<div class='highlight'><table class='highlighttable'><tr><td class='linenos'><pre>1\n2</pre></td>"
        "<td class='code'><pre><button>Copy</button><code>def f():\n    pass</code></pre></td></tr>"
        "</table></div>"
    )
    elements = list(elements_of(clean_html(page(f"<main>{ARTICLE}{code}</main>"), "page").root))
    assert texts(elements, ElementKind.CODE) == ["def f():\n    pass"]
    assert not texts(elements, ElementKind.TABLE)


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
    from tidemark.adapters.partition.partitioner import DocumentPartitioner

    content = before.replace("{}", character).encode()
    raw = RawDocument(
        "file:///gauges", content, media_type, "utf-8", datetime(2026, 1, 1, tzinfo=UTC)
    )
    document = DocumentPartitioner().partition(raw)
    found = " ".join(element.text for element in document.elements)
    assert character not in found
    assert "mast" in found


def elements(markup: str) -> list[tuple[str, str]]:
    return [(e.kind.value, e.text) for e in elements_of(parse_content(page(markup), "page"))]


def test_a_table_within_code_is_lines_of_it() -> None:
    rows = "".join(f"<tr><td>line {n}</td></tr>" for n in range(2))
    assert elements(f"<pre><code><table>{rows}</table></code></pre>") == [
        ("code", "line 0\nline 1")
    ]


def test_a_list_counts_from_one_where_its_start_is_no_number() -> None:
    assert elements("<ol start='²'><li>a<p>more</p><li value='x'>b</ol>") == [
        ("list_item", "1. a"),
        ("text", "more"),
        ("list_item", "2. b"),
    ]


def test_a_caption_stays_one_after_a_block_within_it() -> None:
    markup = "<figure><figcaption>Fig. 1 <div>The pier</div> in June</figcaption></figure>"
    assert elements(markup) == [("caption", text) for text in ("Fig. 1", "The pier", "in June")]
