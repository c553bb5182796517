"""What a reader sees as one thing stays one, and what they see apart stays apart, in each format."""

import re
from datetime import UTC, datetime
from itertools import product

import pytest
from reading import GOLDEN_DOCUMENTS, read

from tidemark.adapters.partition.partitioner import DocumentPartitioner
from tidemark.domain.documents import Element, ElementKind, PartitionedDocument, RawDocument

pytestmark = pytest.mark.model


def partition(text: str, media_type: str) -> PartitionedDocument:
    raw = RawDocument(
        "file:///docs/a", text.encode(), media_type, None, datetime(2026, 1, 1, tzinfo=UTC)
    )
    return DocumentPartitioner().partition(raw)


def kinds(text: str, media_type: str) -> list[tuple[str, str]]:
    return [(e.kind.value, e.text) for e in partition(text, media_type).elements]


def rst(text: str) -> list[tuple[str, str]]:
    return kinds(f"Title\n=====\n\n{text}", "text/x-rst")[1:]


def markdown(text: str) -> list[tuple[str, str]]:
    return kinds(f"# Title\n\n{text}", "text/markdown")[1:]


def html(body: str) -> list[tuple[str, str]]:
    return kinds(f"<html><body><main><h1>T</h1>{body}</main></body></html>", "text/html")[1:]


DESCRIBING = (
    "class function method attribute data module exception option envvar setting py:class py:function "
    "py:method py:attribute c:macro js:function confval autoclass"
)


@pytest.mark.parametrize(
    ("directive", "body"),
    list(product(DESCRIBING.split(), ["", "\n\n   It holds jobs."])),
)
def test_a_described_object_keeps_its_signature(directive: str, body: str) -> None:
    found = rst(f"Text.\n\n.. {directive}:: Queue(name, maxsize=0){body}\n\nMore.\n")
    said = [("definition", "It holds jobs.")] if body else []
    assert found == [
        ("text", "Text."),
        ("term", "Queue(name, maxsize=0)"),
        *said,
        ("text", "More."),
    ]


def test_fields_and_members_belong_to_their_object() -> None:
    found = rst(
        ".. class:: Queue(name, \\\n              size=0)\n\n   A queue.\n\n   :param name: in *logs*.\n"
        "   :raises Full: when full.\n\n   .. method:: put(job)\n\n      Add.\n\n"
        "      :param job: what to do.\n"
    )
    assert found == [
        ("term", "Queue(name, size=0)"),
        ("definition", "A queue."),
        ("definition", "param name: in logs."),
        ("definition", "raises Full: when full."),
        ("term", "put(job)"),
        ("definition", "Add."),
        ("definition", "param job: what to do."),
    ]


def test_a_class_of_style_sheets_is_still_one() -> None:
    assert rst(".. class:: special\n\nText.\n") == [("text", "Text.")]


def test_a_mark_for_references_is_not_said_twice() -> None:
    assert rst(".. setting:: FOO\n\nFOO\n---\n\nText.\n") == [("title", "FOO"), ("text", "Text.")]


def test_headings_within_a_directive_are_kept() -> None:
    found = rst(".. note::\n\n   Text.\n\n.. setting:: FOO\n\n   BAR\n   ^^^\n\n   Text of it.\n")
    assert ("title", "BAR") in found
    assert ("definition", "Text of it.") in found or ("text", "Text of it.") in found


def test_highlight_names_the_language_of_the_blocks_below_it() -> None:
    text = (
        "T\n=\n\n::\n\n   a\n\n.. highlight:: sh\n\nB::\n\n   b\n\n.. code-block:: python\n\n   c\n\n"
        ".. code-block:: none\n\n   d\n\n.. highlight:: none\n\nE::\n\n   e\n"
    )
    code = [e for e in partition(text, "text/x-rst").elements if e.kind is ElementKind.CODE]
    assert [(e.text, e.syntax) for e in code] == [
        ("a", ""),
        ("b", "bash"),
        ("c", "python"),
        ("d", ""),
        ("e", ""),
    ]


NOTES = [
    '<aside class="footnote" role="doc-footnote"><span class="label">[1]</span><p>See it.</p></aside>',
    '<dl class="footnote"><dt class="label"><span>1</span></dt><dd><p>See it.</p></dd></dl>',
    '<table class="docutils footnote"><tr><td class="label">[1]</td><td>See it.</td></tr></table>',
    '<div class="footnote"><hr><ol><li id="fn:1"><p>See it.</p></li></ol></div>',
    '<section class="footnotes"><ol><li id="fn1" class="footnote-item"><p>See it.</p></li></ol></section>',
]


@pytest.mark.parametrize("note", NOTES)
def test_the_mark_of_a_note_stays_with_its_text(note: str) -> None:
    assert html(f'<p>Said.<sup><a href="#fn1">1</a></sup> More.</p>{note}') == [
        ("text", "Said.[1] More."),
        ("text", "[1] See it."),
    ]


def test_notes_of_restructured_text_begin_with_their_marks() -> None:
    found = rst("Said [1]_ and [CIT]_.\n\n.. [1] One.\n.. [CIT] Two.\n")
    assert found[1:] == [("text", "[1] One."), ("text", "[CIT] Two.")]


def test_notes_of_markdown_are_not_numbered_into_another_list() -> None:
    found = markdown("Said.[^b] More[^a].\n\n1. one\n2. two\n\n[^a]: Note *a*.\n[^b]: Note b.\n")
    assert found == [
        ("text", "Said.[1] More[2]."),
        ("list_item", "1. one"),
        ("list_item", "2. two"),
        ("text", "[1] Note b."),
        ("text", "[2] Note a."),
    ]


def test_two_terms_over_one_definition_are_both_terms() -> None:
    assert markdown("Kerning\nTracking\n: Adjusting space.\n\nWidow\n: A line.\n") == [
        ("term", "Kerning"),
        ("term", "Tracking"),
        ("definition", "Adjusting space."),
        ("term", "Widow"),
        ("definition", "A line."),
    ]


def test_a_wrapped_paragraph_over_a_colon_is_no_row_of_terms() -> None:
    text = "This is a sentence, which ends.\nAnd this is one more.\n: what is this"
    assert [kind for kind, _ in markdown(text)].count("term") <= 1


def test_questions_in_bold_stay_paragraphs_of_their_own() -> None:
    assert markdown("**Is it free?**\n\nYes.\n\n**For how long?**\n\nFor ever.\n") == [
        ("text", "Is it free?"),
        ("text", "Yes."),
        ("text", "For how long?"),
        ("text", "For ever."),
    ]


def test_formulas_and_typed_bullets_of_markdown() -> None:
    assert markdown(
        "Thus:\n\n$$\na_1 * b * c < d\n$$\n\n注意。\n・夜間\n・燃料\n\n• one\n• two\n"
    ) == [
        ("text", "Thus:"),
        ("formula", "a_1 * b * c < d"),
        ("text", "注意。"),
        ("list_item", "夜間"),
        ("list_item", "燃料"),
        ("list_item", "one"),
        ("list_item", "two"),
    ]


def test_code_of_markdown_is_left_as_it_is() -> None:
    text = "```\n・a\n$$\nx\n$$\nA\nB\n: c\n```\n"
    assert markdown(text) == [("code", "・a\n$$\nx\n$$\nA\nB\n: c")]


def test_a_numbered_paragraph_at_a_table_is_its_caption() -> None:
    table = "<table><tr><th>A</th><th>B</th></tr><tr><td>1</td><td>2</td></tr></table>"
    found = html(f"<p>Text.</p>{table}<p>Table 3: The letters</p><p>Table talk: text.</p>")
    assert [kind for kind, _ in found] == ["text", "table", "caption", "text"]


def test_units_below_a_header_belong_to_it() -> None:
    rows = (
        "<tr><th></th><th>Height</th><th>Heat</th></tr><tr><td></td><td>in m</td><td>°C</td></tr>"
        "<tr><td>Pier</td><td>3</td><td>7</td></tr>"
    )
    page = f"<html><body><main><h1>T</h1><table>{rows}</table></main></body></html>"
    table = partition(page, "text/html").elements[-1]
    assert (table.text, table.header_rows) == ("\tHeight\tHeat\n\tin m\t°C\nPier\t3\t7", 2)


MAIL = "From: a@example.org\nTo: b@example.org\nSubject: Basin\n\n"


def test_a_mail_is_told_from_what_it_answers() -> None:
    found = kinds(
        f"{MAIL}Yes.\n\n> May we use the\n> basin?\n\n-- \nOffice\nPier 2\n", "message/rfc822"
    )
    assert found[2:] == [
        ("text", "Yes."),
        ("quote", "May we use the basin?"),
        ("text", "Office\nPier 2"),
    ]


def _letters(elements: tuple[Element, ...]) -> str:
    return re.sub(r"[\W_]+", "", "".join(e.text for e in elements))


@pytest.mark.parametrize(
    "name", sorted(p.name for p in GOLDEN_DOCUMENTS.iterdir() if p.suffix == ".txt")
)
def test_no_letter_of_a_plain_text_is_lost_or_moved(name: str) -> None:
    path = GOLDEN_DOCUMENTS / name
    assert _letters(read(path).elements) == re.sub(r"[\W_]+", "", path.read_text("utf-8"))


BOILERPLATE_ABOVE = """
<a class="skip-link" href="#content">Skip to main content</a>
<div id="cookie-banner" role="region"><h2>Cookies on this site</h2><p>We use some cookies.</p>
<button>Accept</button></div>
<header role="banner"><a href="/">The site</a><form role="search"><label>Search</label><input></form></header>
<nav aria-label="Menu"><ul><li><a href="/a">Benefits</a></li><li><a href="/b">Births</a></li>
<li><a href="/c">Work</a></li></ul></nav>
<div class="breadcrumbs"><ol><li><a href="/">Home</a></li><li><a href="/a">Benefits</a></li></ol></div>
"""
BOILERPLATE_BELOW = """
<aside class="related"><h2>Related content</h2><ul><li><a href="/x">Other help</a></li>
<li><a href="/y">More</a></li></ul></aside>
<div class="feedback"><p>Is this page useful?</p><button>Yes</button><button>No</button></div>
<footer role="contentinfo"><ul><li><a href="/help">Help</a></li><li><a href="/privacy">Privacy</a></li></ul>
<p>All content is available under a licence.</p></footer>
"""


@pytest.mark.parametrize(
    "name", sorted(p.name for p in GOLDEN_DOCUMENTS.iterdir() if p.suffix == ".html")
)
def test_boilerplate_around_a_page_changes_nothing_of_it(name: str) -> None:
    plain = (GOLDEN_DOCUMENTS / name).read_text("utf-8")
    furnished = re.sub(r"(<body[^>]*>)", lambda found: found[0] + BOILERPLATE_ABOVE, plain, count=1)
    furnished = furnished.replace("</body>", f"{BOILERPLATE_BELOW}</body>")
    assert furnished != plain
    assert partition(furnished, "text/html") == partition(plain, "text/html")


@pytest.mark.model
@pytest.mark.parametrize(
    "nested",
    [
        "".join("  " * level + f"- item{level}\n" for level in range(depth))
        for depth in (20, 30, 60, 200, 600)
    ]
    + [">" * depth + " item0" for depth in (40, 60, 300)]
    + ["- " * depth + "item0" for depth in (40, 500)],
)
def test_deep_nesting_in_markdown_is_read_or_refused_and_never_drops_the_rest(nested: str) -> None:
    from datetime import UTC, datetime

    from tidemark.adapters.partition.partitioner import DocumentPartitioner
    from tidemark.domain.documents import RawDocument
    from tidemark.domain.errors import DocumentError

    text = f"# A\n\nPara.\n\n{nested}\n\nAfter.\n\n## Next\n\nAll the rest.\n"
    raw = RawDocument(
        "https://example.org/a.md", text.encode(), "text/markdown", None, datetime.now(UTC)
    )
    try:
        elements = DocumentPartitioner().partition(raw).elements
    except DocumentError as error:
        refused = str(error)
    else:
        refused = ""
    if refused:
        assert "deep" in refused, "the error says what is wrong"
        return
    found = " ".join(element.text for element in elements)
    words = ["Para.", "item0", "After.", "Next", "All the rest."]
    words += [line.split()[-1] for line in nested.split("\n") if "- item" in line]
    assert [word for word in words if word not in found] == []
