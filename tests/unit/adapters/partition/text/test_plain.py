"""What heads a plain text, or one called Markdown; what is an item of a list, how deep, and what is none."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.adapters.partition.html.lines import LINE_END
from tidemark.adapters.partition.html.tree import HEADINGS, text_of
from tidemark.adapters.partition.office.mail import read_mail_text
from tidemark.adapters.partition.text.markdown import read_markdown
from tidemark.adapters.partition.text.plain import items_of, list_ranges, read_plain_text

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


@pytest.mark.parametrize("name", ["Parte", "Annexe"])
def test_a_name_that_begins_with_another_is_read_whole(name: str) -> None:
    text = f"{name} I\nLAS PARTES\n\n{BODY}\n\n{name} II\nLOS PAGOS\n\n{BODY}\n"
    assert headings(text) == [(1, f"{name} I LAS PARTES"), (1, f"{name} II LOS PAGOS")]


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


# Lists and lines.


def levels(text: str) -> list[tuple[int, str]] | None:
    items = items_of(text.split("\n"))
    return None if items is None else [(item.level, " ".join(item.lines)) for item in items]


def blocks(text: str) -> list[tuple[str, str]]:
    elements = [(str(e.tag), e.text or "") for e in read_plain_text(text).iter("*")]
    return [(tag, text.replace(LINE_END, "/").strip()) for tag, text in elements if text.strip()]


def test_letters_hold_numerals_without_any_indentation() -> None:
    assert levels("(a) one;\n(b) two\n(i) inner\n(ii) inner\n(c) three") == [
        (1, "(a) one;"),
        (1, "(b) two"),
        (2, "(i) inner"),
        (2, "(ii) inner"),
        (1, "(c) three"),
    ]


def test_a_letter_that_is_a_numeral_too_counts_on_where_it_can() -> None:
    letters = "\n".join(f"({letter}) item" for letter in "abcdefghij")
    assert [level for level, _ in levels(letters) or []] == [1] * 10


def test_bullets_nest_by_their_indentation_and_by_their_number() -> None:
    assert levels("- a\n  - b\n- c") == [(1, "a"), (2, "b"), (1, "c")]
    assert levels("* a\n** b\n* c") == [(1, "a"), (2, "b"), (1, "c")]


def test_a_wrapped_item_goes_on() -> None:
    assert levels("(a) keep it\nafloat\n(b) go") == [(1, "(a) keep it afloat"), (1, "(b) go")]


@pytest.mark.parametrize(
    "text",
    [
        "It was built under the rule of section\n(b) of the act and stood until\n1990. Then it fell.",
        "The count went up from eleven to\n12. That was the most that anyone had seen.",
        "He came late - and he knew it, for the road\n- the only one - was closed since the flood.",
    ],
)
def test_wrapped_prose_makes_no_items(text: str) -> None:
    assert list_ranges(text.split("\n")) == []


def test_items_in_a_block_are_told_from_the_sentences_around_them() -> None:
    text = "The station takes\n(a) 50 euros, or\n(b) 150 euros.\nIt is paid back later."
    assert blocks(f"1. Deposit\n\n{text}\n\n2. Duties\n\nNone.") == [
        ("h1", "1. Deposit"),
        ("p", "The station takes"),
        ("li", "(a) 50 euros, or"),
        ("li", "(b) 150 euros."),
        ("p", "It is paid back later."),
        ("h1", "2. Duties"),
        ("p", "None."),
    ]


@pytest.mark.parametrize(
    ("line", "item"),
    [("・夜間は", "夜間は"), ("※注意", "※注意"), ("①申請書", "①申請書"), ("●燃料", "燃料"),
     ("（1）目的", "（1） 目的"), ("• pasted", "pasted"), ("•tight", "tight")],
)  # fmt: skip
def test_bullets_need_no_space_in_japanese_and_chinese(line: str, item: str) -> None:
    assert blocks(f"事項。\n\n{line}\n{line}")[-1] == ("li", item)


@pytest.mark.parametrize("items", ["(a) ride there;\n(b) go on.", "\n(a) ride there;\n(b) go on."])
def test_a_number_that_begins_a_sentence_heads_nothing(items: str) -> None:
    text = (
        f"1. Duties\n\n1.1 The customer treats it with care.\n\n1.2 The customer may not\n{items}"
    )
    assert [tag for tag, _ in blocks(text)] == ["h1", "p", "p", "li", "li"]


def test_clauses_of_one_parent_are_treated_alike() -> None:
    long = "1.1 The charge is due in advance, in cash or by card, on the first day of the hire, not later."
    text = f"1. Payment\n\n{long}\n\n1.2 Late payment\n\n1.3 The charge is due when the station says so."
    assert [tag for tag, _ in blocks(text)] == ["h1", "p", "p", "p"]


@pytest.mark.parametrize(
    ("head", "title", "rest"),
    [
        ("MINUTES\nPlanning committee, room 3", "MINUTES", "Planning committee, room 3"),
        ("A history of the\nsalt road", "A history of the salt road", None),
        ("SERVICE\nAGREEMENT", "SERVICE AGREEMENT", None),
    ],
)
def test_a_title_takes_no_line_that_says_something_else(
    head: str, title: str, rest: str | None
) -> None:
    found = blocks(f"{head}\n\nOne line of text.\nAnother line.\n\nMore of it.")
    assert found[0] == ("h1", title)
    assert (("p", rest) in found) == (rest is not None)


def test_an_article_is_one_heading_with_the_title_under_it() -> None:
    for title in ("DEFINITIONS", "Definitions", "TERM AND\nTERMINATION"):
        shown = title.replace("\n", " ")
        assert blocks(f"ARTICLE I\n{title}\n\nThe body.\n\nThe end.")[0] == (
            "h1",
            f"ARTICLE I {shown}",
        )


def test_labelled_and_short_lines_keep_their_ends() -> None:
    present = "Present: the chair, the treasurer and two members of the public from the mill\nApologies: none"
    assert blocks(f"MINUTES\n\n{present}\n\nNone.")[1] == ("p", present.replace("\n", "/"))
    assert blocks("Text.\n\nHarbour office\nPier 2\nLeith\n\nText.")[1] == (
        "p",
        "Harbour office/Pier 2/Leith",
    )


def test_wrapped_prose_loses_its_line_ends() -> None:
    prose = "The road crosses two rivers, which are\nboth deep in spring and dry in the\nautumn."
    assert blocks(f"Text.\n\n{prose}\n\nText.")[1] == ("p", prose.replace("\n", " "))


def test_a_wiki_article_has_its_title_its_headings_and_its_lists() -> None:
    lead = "The salt road is an old trade route of many miles, from a town to the coast."
    text = f"Salt road\n\n{lead}\n\n== Course ==\n\nRivers:\n*the Elder\n## the ford\n"
    assert blocks(text) == [
        ("h1", "Salt road"),
        ("p", lead),
        ("h2", "Course"),
        ("p", "Rivers:"),
        ("li", "the Elder"),
        ("li", "the ford"),
    ]


def test_a_mail_tells_its_text_from_what_it_quotes_and_from_its_signature() -> None:
    root = read_mail_text(
        "Hello all\n\nYes.\n\n> They wrote:\n> May we come?\n>> Once more.\n\nBye,\nthe office\n\n"
        "-- \nHarbour office\nPier 2\n"
    )
    found = [
        (e.tag, next(e.iterancestors()).tag, (e.text or "").replace(LINE_END, "/"))
        for e in root.iter("p", "h1", "h2")
    ]
    assert found == [
        ("p", "div", "Hello all"),
        ("p", "div", "Yes."),
        ("p", "blockquote", "They wrote:/May we come?"),
        ("p", "blockquote", "Once more."),
        ("p", "div", "Bye,/the office"),
        ("p", "div", "Harbour office/Pier 2"),
    ]


spoken = st.lists(
    st.sampled_from(["pier", "Mast", "Salt:", "b.", "的", "ends."]), min_size=1, max_size=5
).map(" ".join)
marks = st.sampled_from(
    [
        "",
        "",
        "- ",
        "* ",
        "** ",
        "(a) ",
        "(b) ",
        "(i) ",
        "(ii) ",
        "1. ",
        "2. ",
        "・",
        "※",
        "① ",
        "  - ",
        "a) ",
        "# ",
        "1、",
    ]
)


@given(
    st.lists(st.one_of(st.just(""), st.tuples(marks, spoken).map("".join)), max_size=20).map(
        "\n".join
    )
)
def test_no_letter_is_lost_or_moved(text: str) -> None:
    def letters(shown: str) -> str:
        return re.sub(r"[\W_]+", "", shown)

    assert letters("".join(map(str, read_plain_text(text).itertext()))) == letters(text)
    assert letters("".join(map(str, read_mail_text(text).itertext()))) == letters(text)
