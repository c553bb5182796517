"""Sentences, and the last resort of cutting by tokens."""

import pytest

from tidemark.adapters.hash_embedder import WordTokenizer
from tidemark.stages.chunking.cuts import cut_by_tokens, is_grapheme_boundary
from tidemark.stages.chunking.packing import Atom, Sizes, pack
from tidemark.stages.chunking.sentences import sentence_spans


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
    atoms = [Atom(n, n + 1, n, n, 10, price) for n, price in enumerate([0, 5, 5, 0, 5, 5])]
    assert pack(atoms, Sizes(30, 45, 3)) == [(0, 3), (3, 6)]


def test_packing_keeps_under_the_limit_whatever_the_price() -> None:
    atoms = [Atom(n, n + 1, n, n, 10, 100.0) for n in range(9)]
    for start, end in pack(atoms, Sizes(20, 25, 3)):
        assert (end - start) * 10 <= 25
