"""Which lines of a plain text, or of a text called Markdown, head what is under them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.adapters.partition.html.tree import HEADINGS, text_of
from tidemark.adapters.partition.text.markdown import read_markdown
from tidemark.adapters.partition.text.plain import read_plain_text

BODY = "The buyer pays within thirty days of the invoice, by transfer to the account that it names."
LONG = "The pier was built of oak and stood for a hundred years in all weathers. " * 4


def headings(text: str) -> list[tuple[int, str]]:
    return [(int(e.tag[1]), e.text) for e in read_plain_text(text).iter(*HEADINGS)]


def markdown_headings(text: str) -> list[tuple[int, str]]:
    root = read_markdown(text, "a.md", 100).root
    return [(int(e.tag[1]), text_of(e)) for e in root.iter(*HEADINGS)]


def test_numbered_clauses_nest_by_their_depth() -> None:
    text = (
        f"1. Definitions\n\n{BODY}\n\n2. Charges\n\n2.1 Rent\n{BODY}\n\n2.1.1 When due\n\n{BODY}\n"
    )
    assert headings(text) == [
        (1, "1. Definitions"),
        (1, "2. Charges"),
        (2, "2.1 Rent"),
        (3, "2.1.1 When due"),
    ]


def test_clauses_need_no_blank_line_between_them() -> None:
    text = f"1. Definitions\n{BODY}\n2. Payment\n{BODY}\n3. Term\n{BODY}\n"
    assert headings(text) == [(1, "1. Definitions"), (1, "2. Payment"), (1, "3. Term")]


def test_articles_sections_and_schedules_have_their_ranks() -> None:
    text = (
        f"SERVICE AGREEMENT\n\nbetween two\n\nARTICLE IV\nTERM AND END\n\n{BODY}\n\n"
        f"Section 3. Notice\n\n{BODY}\n\nSection 4.\n{BODY}\n\nARTICLE V - Costs\n\n5.1 Fees\n\n{BODY}\n\n"
        f"Schedule A\n\n{BODY}\n"
    )
    assert headings(text) == [
        (1, "SERVICE AGREEMENT"),
        (2, "ARTICLE IV TERM AND END"),
        (3, "Section 3. Notice"),
        (3, "Section 4."),
        (2, "ARTICLE V - Costs"),
        (4, "5.1 Fees"),
        (2, "Schedule A"),
    ]


def test_paragraph_signs_head_what_is_under_them() -> None:
    text = f"Mietvertrag\n\n§ 1 Gegenstand\n\n{BODY}\n\n§ 5 Haftung\n{BODY}\n\n§ 5 gilt für alle.\n"
    assert headings(text) == [(1, "Mietvertrag"), (2, "§ 1 Gegenstand"), (2, "§ 5 Haftung")]


@pytest.mark.parametrize(
    "text",
    [
        "Do this:\n\n1. Open the valve\n2. Press the button\n3. Wait\n",
        "Do this:\n\n1. Open the valve\n\n2. Press the button\n\n3. Wait\n\nThen go.\n",
        "Do this:\n\n1. Open the valve of the pump and\n   close it again.\n2. Press it.\n\n   It moves.\n",
        f"{BODY}\n30 Days later it was paid, and all was well with the two of them again for good.\n",
        "2.3 The Supplier shall deliver the goods to the Buyer at the harbour of Merrow\nbefore noon.\n\nx\n",
        f"Section 3 of the Act applies\n\n{BODY}\n",
        f"Article 5. The buyer shall pay.\n\n{BODY}\n",
        f"1. Scope ........ 3\n2. Rules ........ 4\n\n{BODY}\n",
        f"7. Odd one\n\n{BODY}\n\n3. Another odd one\n\n{BODY}\n",
        f"{BODY}\n\n== Not closed\n\na == b ==\n\n    == set deeper ==\n\nx\n",
        f"{BODY}\n\n--- a/file.txt\n+++ b/file.txt\n\nx\n",
        f"{BODY}\n\n= x =\n\n{BODY}\n",
    ],
)
def test_what_only_looks_like_a_heading_is_none(text: str) -> None:
    assert headings(text) == []


def test_a_table_of_contents_takes_no_heading_from_the_text() -> None:
    text = f"Contents\n\n1. Scope\n2. Rules\n3. Fees\n\n1. Scope\n\n{BODY}\n\n2. Rules\n\n{BODY}\n"
    assert [name for _, name in headings(text)][-2:] == ["1. Scope", "2. Rules"]


WIKI = (
    " = Old pier = \n The pier is old . \n = = History = = \n It was built in 1900 . \n It burned . \n"
    " = = = Fire = = = \n It burned for days . \n = New pier = \n == Use == \n It is used .\n"
)
WIKI_HEADINGS = [(1, "Old pier"), (2, "History"), (3, "Fire"), (1, "New pier"), (2, "Use")]


def test_wiki_headings_keep_their_levels_in_plain_text_and_in_markdown() -> None:
    assert headings(WIKI) == WIKI_HEADINGS
    assert markdown_headings(WIKI) == WIKI_HEADINGS


def test_rulers_with_a_word_are_headings_in_both() -> None:
    text = "Some words .\n==== Front\nIn front .\n==== Body ====\nIts text .\n==== Refs\nLast .\n"
    assert [name for _, name in headings(text)] == ["Front", "Body", "Refs"]
    assert [name for _, name in markdown_headings(text)] == ["Front", "Body", "Refs"]


def test_a_short_line_above_an_unwrapped_one_heads_it() -> None:
    text = f"==== Body\nResults\nGrowth in spring\n{LONG}\n\nDiscussion\n{LONG}\n\nFigure 2 Depths\n{LONG}\n"
    expected = [(1, "Body"), (2, "Results"), (3, "Growth in spring"), (2, "Discussion")]
    assert headings(text) == expected
    assert markdown_headings(text) == expected


def test_long_lines_are_paragraphs_of_their_own() -> None:
    root = read_plain_text(f"{LONG}\n{LONG}\n")
    assert len(root) == 2
    root = read_markdown(f"== Piers ==\n{LONG}\n{LONG}\n", "a.md", 100).root
    assert len(list(root.iter("p"))) == 2


def test_markdown_code_keeps_what_looks_like_a_wiki_heading() -> None:
    text = (
        "# Title\n\n```\n== code ==\n```\n\n    == indented ==\n\n<pre>\n== raw ==\n</pre>\n\n"
        '== Real ==\n\nx\n\n=== "Tab"\n\n    In the tab.\n\n~~~\n==== Body\n~~~\n'
    )
    assert markdown_headings(text) == [(1, "Title"), (2, "Real")]
    assert "== raw ==" in text_of(read_markdown(text, "a.md", 100).root)


def test_words_in_angle_brackets_stay_when_they_are_no_tags() -> None:
    text = (
        "Use git switch <branch> or `git <branch>` or <b>bold</b>, <Card>in</Card><br> a Vec<T>.\n"
    )
    shown = text_of(read_markdown(text, "a.md", 100).root)
    assert shown == "Use git switch <branch> or git <branch> or bold, in a Vec<T>."


@pytest.mark.parametrize("suffix", ["", "\n"])
def test_a_closing_hash_of_a_wiki_heading_is_kept(suffix: str) -> None:
    assert markdown_headings(f"== C # ==\n\nText.\n\n== F # =={suffix}") == [(2, "C #"), (2, "F #")]


words = st.lists(
    st.sampled_from(["Pier", "old", "the", "1.", "2.1", "Stone.", "wall,", "A"]), min_size=1
)
line = st.one_of(
    words.map(" ".join),
    words.map(lambda w: f"== {' '.join(w)} =="),
    words.map(lambda w: f"==== {' '.join(w)}"),
    st.integers(1, 9).map(lambda n: f"{n}. Scope"),
    st.integers(1, 9).map(lambda n: f"1.{n} Charges"),
    st.sampled_from(
        ["", "", "ARTICLE IV", "TERM AND END", "Section 3.", "§ 5 Haftung", "Schedule A", LONG]
    ),
)


@given(st.lists(line, max_size=25).map("\n".join))
def test_no_word_is_lost_or_invented(text: str) -> None:
    def letters(shown: str) -> str:
        return re.sub(r"[\W_]+", "", shown)

    assert letters("".join(read_plain_text(text).itertext())) == letters(text)
