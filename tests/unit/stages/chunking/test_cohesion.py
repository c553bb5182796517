"""What belongs together, as the cost of a boundary between two neighbours."""

import pytest

from tidemark.domain.documents import Element, ElementKind
from tidemark.stages.chunking.cohesion import (
    caption_of,
    coherent,
    cohesion_cost,
    is_question,
    leaning,
    sentence_cohesion,
)
from tidemark.stages.chunking.packing import INSEPARABLE

TEXT, ITEM, TABLE, CODE = (
    ElementKind.TEXT,
    ElementKind.LIST_ITEM,
    ElementKind.TABLE,
    ElementKind.CODE,
)
CAPTION, TERM, DEFINITION, FORMULA = (
    ElementKind.CAPTION,
    ElementKind.TERM,
    ElementKind.DEFINITION,
    ElementKind.FORMULA,
)
LONG = "The harbour office keeps the gauge in order and reads it once a day. " * 4


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Element(TEXT, "Bring these:"), Element(ITEM, "a rope", 1)),
        (Element(TEXT, "Bring these to the wall"), Element(ITEM, "a rope", 1)),
        (Element(TEXT, f"{LONG}It takes:"), Element(ITEM, "a rope", 1)),
        (Element(TERM, "Datum"), Element(DEFINITION, "The level from which depths are counted.")),
        (Element(CAPTION, "Depths"), Element(TABLE, "Place | Depth\nBar | 3")),
        (Element(TABLE, "Place | Depth"), Element(CAPTION, "Table 3: Depths by place.")),
        (Element(TABLE, "Place | Depth"), Element(TEXT, "Table 3. Depths by place.")),
        (Element(TEXT, "Table 3: Depths by place."), Element(TABLE, "Place | Depth")),
        (Element(CODE, "x = 1"), Element(TEXT, "Listing 2 — The first line.")),
        (Element(FORMULA, "h = a + b"), Element(TEXT, "Figure 2. The sum of both.")),
        (Element(TABLE, "a | b"), Element(TEXT, "Abbildung 4: Tiefen.")),
        (Element(TEXT, "How long may I stay?"), Element(TEXT, "Three days.")),
        (Element(TEXT, "How long may I stay?"), Element(TABLE, "Place | Days")),
        (Element(ITEM, "May I fish?", 1), Element(TEXT, "Yes, between the bollards.")),
        (Element(TEXT, "Q: May I fish"), Element(TEXT, "A: Yes.")),
        (Element(TEXT, "Frage: Darf ich angeln"), Element(TEXT, "Antwort: Ja.")),
        (Element(TEXT, "何時までですか？"), Element(TEXT, "六時までです。")),
        (Element(TEXT, "3.2"), Element(TEXT, LONG)),
        (Element(TEXT, "3.2."), Element(TEXT, LONG)),
        (Element(TEXT, "(a)"), Element(TEXT, LONG)),
        (Element(TEXT, "§ 4"), Element(TEXT, LONG)),
        (Element(TEXT, "Article 5."), Element(TEXT, LONG)),
        (Element(TEXT, "Places kept free"), Element(TEXT, LONG)),
        (Element(TEXT, "Note:"), Element(TEXT, LONG)),
        (Element(TEXT, "Warning!"), Element(TEXT, LONG)),
        (Element(TEXT, "Hinweis:"), Element(CODE, "x = 1")),
        (Element(TEXT, f"{LONG}Run this:"), Element(CODE, "make")),
        (Element(TEXT, LONG), Element(TEXT, "This does not apply to digital goods.")),
        (Element(TEXT, LONG), Element(TEXT, "Except where the officer says so.")),
        (Element(TEXT, LONG), Element(TEXT, "Exceptions: vessels of the harbour.")),
        (Element(ITEM, "a rope", 1), Element(TEXT, "These rules do not apply at night.")),
        (Element(TEXT, LONG), Element(TEXT, "Das gilt nicht für Gäste.")),
        (Element(TEXT, LONG), Element(TEXT, "Cela ne s'applique pas aux hôtes.")),
        (Element(TEXT, LONG), Element(TEXT, "Salvo que se indique otra cosa.")),
        (
            Element(ITEM, "(c) the fairway.", 1),
            Element(TEXT, "The last condition does not apply in May."),
        ),
        (Element(ITEM, "(a) any boat", 1), Element(ITEM, "(b) unless told otherwise", 1)),
        (Element(TABLE, "Place | Days"), Element(TEXT, "This does not apply to guests.")),
        (Element(CODE, "x = 1"), Element(TEXT, "Except on Windows, where y is set.")),
        (Element(DEFINITION, "The level of the sea."), Element(DEFINITION, "A date.")),
        (Element(TERM, "Datum"), Element(TERM, "Chart datum")),
        (Element(TABLE, "Place | Depth"), Element(TEXT, "Table: Depths by place")),
        (Element(TABLE, "Place | Depth"), Element(CAPTION, "Depths by place, in metres.")),
        (Element(TEXT, LONG), Element(CAPTION, "Figure 1: The lid, with four screws")),
        (Element(ITEM, "turn it", 1), Element(CAPTION, "The lid as it is seen from above.")),
        (Element(CAPTION, "Warning"), Element(TEXT, LONG)),
        (Element(CAPTION, "Before you begin"), Element(TEXT, LONG)),
        (Element(CAPTION, "Did you know?"), Element(TEXT, LONG)),
        (Element(TEXT, LONG), Element(TEXT, "ยกเว้นวันหยุดราชการ")),
        (Element(TEXT, LONG), Element(TEXT, "ただし、祝日は除く。")),
        (Element(TEXT, LONG), Element(TEXT, "本条不适用于数字商品。")),
        (Element(TEXT, LONG), Element(TEXT, "다만, 휴일은 예외로 한다.")),
        (Element(TEXT, LONG), Element(TEXT, "باستثناء أيام العطل.")),
        (Element(TEXT, LONG), Element(TEXT, "यह नियम लागू नहीं होता।")),
        (Element(TEXT, LONG), Element(TEXT, "Это правило не распространяется на гостей.")),
        (Element(TEXT, LONG), Element(TEXT, "Nie dotyczy to gości.")),
        (Element(TEXT, LONG), Element(TEXT, "Diese Regel gilt nicht für Gäste.")),
    ],
)
def test_these_are_not_parted_while_both_fit(before: Element, after: Element) -> None:
    assert coherent(before, after)
    assert cohesion_cost(before, after) == INSEPARABLE


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (Element(TEXT, LONG), Element(TEXT, LONG)),
        (Element(TEXT, LONG), Element(ITEM, "a rope", 1)),
        (Element(TEXT, "A short one that ends."), Element(TEXT, LONG)),
        (Element(TEXT, "All is well. 🎉"), Element(TEXT, LONG)),
        (Element(TEXT, "He said “go.”"), Element(TEXT, LONG)),
        (Element(TABLE, "a | b"), Element(TEXT, "The table is old.")),
        (Element(TABLE, "a | b"), Element(CAPTION, "Note")),
        (Element(CODE, "x = 1"), Element(TEXT, "Listing all of them takes long.")),
        (Element(TEXT, "May I fish?"), Element(TEXT, "May I dive?")),
        (Element(CAPTION, "Figure 1: The lid with its screws"), Element(TEXT, LONG)),
        (Element(CAPTION, "The lid as it is seen from above."), Element(TEXT, LONG)),
        (Element(DEFINITION, "The level of the sea."), Element(TERM, "Draught")),
        (Element(TEXT, LONG), Element(TEXT, "แต่ละห้องมีกุญแจ")),
        (Element(TEXT, "In 1990 it rained."), Element(TEXT, "The keepers left.")),
    ],
)
def test_these_may_be_parted(before: Element, after: Element) -> None:
    assert not coherent(before, after)
    assert cohesion_cost(before, after) < 0.5


def test_a_cost_grows_with_how_much_the_second_leans_on_the_first() -> None:
    costs = [
        cohesion_cost(Element(TEXT, LONG), Element(TEXT, text))
        for text in (
            "The office opens at nine.",
            "They are read once a day.",
            "However, the gauge is old.",
            "This does not apply at night.",
        )
    ]
    assert costs == sorted(costs)
    assert len(set(costs)) == 4
    assert (costs[0], costs[-1]) == (0.0, INSEPARABLE)


def test_a_caption_between_a_text_and_a_table_belongs_to_the_table() -> None:
    caption, table = Element(CAPTION, "Figure 1. Depths"), Element(TABLE, "a | b")
    assert cohesion_cost(Element(TEXT, LONG), caption, table) < 0.5
    assert coherent(caption, table)
    assert coherent(Element(TEXT, LONG), caption, Element(TEXT, LONG))


def test_a_table_has_the_caption_above_it_else_the_one_below_it_that_is_no_others() -> None:
    above, table = Element(CAPTION, "Depths"), Element(TABLE, "a | b")
    below, words = Element(TEXT, "Table 2: Depths"), Element(TEXT, LONG)
    assert caption_of([above, table, below], 1) == 0
    assert caption_of([below, table], 1) == 0
    assert caption_of([words, table, below, words], 1) == 2
    assert caption_of([table, below], 0) == 1
    assert caption_of([table, below, table], 0) is None
    assert caption_of([words, table, words], 1) is None
    assert caption_of([table, Element(CAPTION, "Note")], 0) is None
    assert caption_of([above, words], 1) is None


def test_a_list_is_parted_between_its_outer_items_first() -> None:
    def cost(before: int, after: int) -> float:
        return cohesion_cost(Element(ITEM, "a rope", before), Element(ITEM, "a lamp", after))

    assert cost(1, 1) < cost(2, 2) < cost(1, 2)
    assert cost(2, 1) == cost(1, 1)
    assert coherent(Element(ITEM, "a rope", 1), Element(ITEM, "a lamp", 1))


def test_a_sentence_over_a_page_break_holds_together() -> None:
    before, after = (
        Element(TEXT, f"{LONG}It is kept by"),
        Element(TEXT, "the office of the harbour."),
    )
    assert cohesion_cost(before, after) >= 1.0


@pytest.mark.parametrize(
    "text",
    [
        "This does not apply to digital goods.",
        "However, it rained.",
        "Except on Sundays.",
        "Unless told otherwise, wait.",
        "But not at night.",
        "Otherwise call the office.",
        "In that case wait.",
        "These are kept dry.",
        "It includes the rope.",
        "They must be dry.",
        "Exceptions:",
        "Note that it is wet.",
        "“This is why we wait.”",
        "Allerdings nur bei Regen.",
        "Es sei denn, es regnet.",
        "Cependant, il pleut.",
        "Sin embargo, llueve.",
        "Tuttavia piove.",
        "No entanto, chove.",
        "Dit geldt niet bij regen.",
        "After that you may have to show it.",
        "Electric cars are exempt while they are charged.",
        "Shop windows on the ground floor are not.",
        "Fahrzeuge über 3 t sind ausgeschlossen.",
        "มิฉะนั้นทางศูนย์จะเก็บค่าธรรมเนียม",
        "但是门已关闭。",
        "しかし、門は閉まっている。",
        "Однако ворота закрыты.",
        "ولكن الباب مغلق.",
    ],
)
def test_a_text_that_begins_so_leans_on_the_one_before(text: str) -> None:
    assert leaning(text) > 0


@pytest.mark.parametrize(
    "text",
    ["The gate is shut.", "Butter is sold.", "Exceptional tides rise.", "Itinerary", "Theory is dear.", "",
     "Unlessons are none.", "Note the time.", "Notes from the pier", "Die Preise steigen.",
     "Le port est vieux.",
     "The dock is old.", "Ale is sold here.", "To negotiate, call us.", "You need not wait for the others."],
)  # fmt: skip
def test_a_text_that_begins_otherwise_stands_alone(text: str) -> None:
    assert not leaning(text)


def test_sentences_hold_their_exceptions_and_answers() -> None:
    rule = "Refunds are given within 30 days."
    assert sentence_cohesion(rule, "This does not apply to digital goods.") == INSEPARABLE
    assert sentence_cohesion("Is it open?", "It is.") > 1.0
    assert sentence_cohesion("Take these:", "ropes and lamps.") == INSEPARABLE
    assert sentence_cohesion("3.1", "The buyer pays.") == INSEPARABLE
    assert (
        sentence_cohesion(rule, "However, the fee is kept.")
        > sentence_cohesion(rule, "It is paid.")
        > 0
    )
    assert sentence_cohesion(rule, "The office pays them.") == 0.0


@pytest.mark.parametrize(
    "text", ["May I?", "Q: May I", "Question 3: may I", "“May I?”", "نعم؟", "Frage 2: Darf ich"]
)
def test_a_question_is_known(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize(
    "text", ["You may.", "Quay: a wall", f"{LONG}May I?", "A: yes", "P. and D. wrote it.", ""]
)
def test_other_texts_are_no_questions(text: str) -> None:
    assert not is_question(text)
