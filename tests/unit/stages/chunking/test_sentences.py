"""Sentences, and the last resort of cutting by tokens."""

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.embedder import WordTokenizer
from tidemark.stages.chunking import sentences
from tidemark.stages.chunking.packing import Sizes, Split, pack
from tidemark.stages.chunking.sentences import clause_spans, sentence_spans
from tidemark.stages.chunking.splits import cut_by_tokens, is_grapheme_boundary
from unit.stages.chunking.sentence_cases import CASES


def split(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(
    "sentence",
    [
        "Dr. Smith went to Washington D.C. on Jan. 5th.",
        "It costs 3.50 euros, i.e. more than before.",
        "See Fig. 3 and No. 7 of the list.",
        "J. R. Hartley wrote it.",
        "Open https://example.com/a.b?c=d and wait.",
        "Well ... it depends.",
        "He works at Yahoo! and likes it.",
        "Version 2.0.1 is out.",
        "Das gilt z. B. bei Regen.",
        "1. Remove the cover.",
    ],
)
def test_a_stop_that_ends_nothing_is_passed_over(sentence: str) -> None:
    assert split(sentence) == [sentence]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        ("The price is 5. The rest is free.", ["The price is 5.", "The rest is free."]),
        ("Ropes, lamps, etc. Bring them.", ["Ropes, lamps, etc.", "Bring them."]),
        ("一は赤い。二は青い！三は？", ["一は赤い。", "二は青い！", "三は？"]),
        ("यह पहला है। यह दूसरा है।", ["यह पहला है।", "यह दूसरा है।"]),
        ("هل هذا؟ نعم هذا.", ["هل هذا؟", "نعم هذا."]),
        ("First part\n\nsecond part", ["First part", "second part"]),
    ],
)
def test_sentences_end_at_the_stops_of_their_script(text: str, expected: list[str]) -> None:
    assert split(text) == expected


def test_a_text_of_white_space_has_no_sentence() -> None:
    assert sentence_spans(" \n ") == []


def test_a_cut_prefers_white_space() -> None:
    text = "alpha beta gamma delta epsilon zeta"
    pieces = [text[s:e] for s, e in cut_by_tokens(text, 3, WordTokenizer())]
    assert pieces == ["alpha beta gamma", "delta epsilon zeta"]


def test_pieces_are_balanced() -> None:
    text = " ".join(f"w{n}" for n in range(21))
    sizes = [len(text[s:e].split()) for s, e in cut_by_tokens(text, 20, WordTokenizer())]
    assert sizes == [11, 10]


@pytest.mark.parametrize("cluster", ["e\u0301", "👩‍🚀", "👍🏽", "🇫🇷", "각", "नि"])
def test_what_a_reader_sees_as_one_character_is_not_parted(cluster: str) -> None:
    inside = range(1, len(cluster))
    assert not any(is_grapheme_boundary(cluster, place) for place in inside)
    assert is_grapheme_boundary(cluster + cluster, len(cluster))


def test_packing_prefers_the_cheap_boundary() -> None:
    splits = [Split(n, n + 1, n, n, 10, cost) for n, cost in enumerate([0, 5, 5, 0, 5, 5])]
    assert pack(splits, Sizes(30, 45, 3)) == [(0, 3), (3, 6)]


def test_packing_keeps_under_the_limit_whatever_the_cost() -> None:
    splits = [Split(n, n + 1, n, n, 10, 100.0) for n in range(9)]
    for start, end in pack(splits, Sizes(20, 25, 3)):
        assert (end - start) * 10 <= 25


@pytest.mark.parametrize(("between", "expected"), CASES, ids=lambda v: v[0][:40] if v else None)
def test_the_sentences_of_many_languages_and_kinds(between: str, expected: list[str]) -> None:
    assert split(between.join(expected)) == expected


def test_the_table_of_sentences_is_large() -> None:
    assert len(CASES) >= 120


# What stops, brackets and line ends are made of, more often than chance would have it.
messy = st.lists(
    st.one_of(
        st.text(max_size=12),
        st.sampled_from(
            [". ", "! ", "? ", "... ", "。", "」", "「", "(", ")", "`", '"', ' " ', "\n", "\n\n", "\n- ",
             "1. ", "\n2. ", "Dr. ", "U.S. ", "e.g. ", "Q: ", "The ", "a) ", "།", "|", "; ", " \u0e01\u0e02 ",
             "\r\n", "\f", "»", "“"]
        ),
    ),
    max_size=30,
).map("".join)  # fmt: skip


@given(messy)
def test_sentences_cover_every_visible_character_once_and_in_order(text: str) -> None:
    for spans in (sentence_spans(text), clause_spans(text)):
        position = 0
        for start, end in spans:
            assert position <= start < end <= len(text)
            assert not text[position:start].strip()
            assert not text[start].isspace()
            assert not text[end - 1].isspace()
            position = end
        assert not text[position:].strip()


CLEAR = ["The gate is shut.", "Nobody may pass it!", "Is it open again?", "We shall wait (for a while).",
         "It costs 3.50 euros.", "“That is dear.”", "They left at noon."]  # fmt: skip


@given(
    st.lists(st.sampled_from(CLEAR), min_size=1, max_size=12), st.sampled_from([" ", "\n", "  "])
)
def test_clear_sentences_come_back_as_they_were_joined(parts: list[str], between: str) -> None:
    assert split(between.join(parts)) == parts


@given(st.lists(st.sampled_from(CLEAR), min_size=2, max_size=8), st.integers(0, 7))
def test_an_edit_moves_no_boundary_but_its_own(parts: list[str], place: int) -> None:
    place %= len(parts)
    edited = [*parts[:place], "A new one came in.", *parts[place + 1 :]]
    assert split(" ".join(edited)) == edited


@pytest.mark.parametrize(
    "unit",
    ["a.b ", "A. ", "(a. ", "1. ", '" . ', "`a ", "… ", "x" * 50 + ". ", "。」", "word ", "\nAb. ", "Q: \n",
     "ก ", "[1] ", "\n", "\n\n", " ", ". . "],
)  # fmt: skip
def test_the_work_grows_with_the_text_and_not_faster(unit: str) -> None:
    def looks(times: int) -> int:
        """Characters that the reader of stops was shown, at most, in a text of so many units."""
        seen = 0
        reader = sentences._Reader
        original = reader.end_of_sentence

        def counted(self: sentences._Reader, start: int, stop: object, end: int) -> int | None:
            nonlocal seen
            seen += 1
            return original(self, start, stop, end)  # type: ignore[arg-type]

        with patch.object(reader, "end_of_sentence", counted):
            sentence_spans(unit * times)
        return seen

    assert looks(4000) <= 4 * looks(1000) + 8


@pytest.mark.parametrize(
    ("sentence", "clauses"),
    [
        (
            "The buyer pays within thirty days; the seller delivers at noon: that is agreed.",
            ["The buyer pays within thirty days;", "the seller delivers at noon:", "that is agreed."],
        ),
        (
            "It came to 1,000 euros in all, which was more than they had, as it were.",
            ["It came to 1,000 euros in all,", "which was more than they had, as it were."],
        ),
        (
            "The wall stands firm (it is old, mossy, and thick) — nobody climbs it at night.",
            ["The wall stands firm (it is old, mossy, and thick) —", "nobody climbs it at night."],
        ),
        ("今日は天気がとても良いので散歩に行きました、公園には人がたくさんいました。",
         ["今日は天気がとても良いので散歩に行きました、", "公園には人がたくさんいました。"]),
        ("Ropes, lamps, nails", ["Ropes, lamps, nails"]),
    ],
)  # fmt: skip
def test_a_long_sentence_is_cut_at_its_clauses(sentence: str, clauses: list[str]) -> None:
    assert [sentence[start:end] for start, end in clause_spans(sentence)] == clauses


def test_a_long_stretch_without_stops_is_cut_at_its_spaces() -> None:
    text = "ผมไปตลาดกับเพื่อนในตอนเช้าแล้วกลับบ้าน " * 8
    pieces = split(text)
    assert len(pieces) > 1
    assert max(map(len, pieces)) <= 160
    assert "".join("".join(pieces).split()) == "".join(text.split())
