"""The lexical encoder: which texts share words, and whether that may change unseen."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.adapters.embedding.lexical import Bm25Encoder
from tidemark.domain.chunks import SparseVector
from tidemark.domain.errors import ConfigurationError

ENCODER = Bm25Encoder()


def words(text: str) -> set[int]:
    return set(ENCODER.encode([text])[0].indices)


def test_forms_of_a_word_meet_and_stop_words_are_left_out() -> None:
    assert words("Scheduler") == words("the schedulers")
    assert words("scheduling a task") & words("task") == words("Task")
    assert words("the of and") == set()


def test_a_question_finds_the_words_of_a_text_each_once() -> None:
    query = ENCODER.encode_query("retries, retries and more delays")
    text = words("A task retries after a delay.")
    assert len(set(query.indices) & text) == 2
    assert set(query.values) == {1.0}


def test_names_with_punctuation_meet_their_parts() -> None:
    assert words("max_map_length") >= words("map length")
    assert words("asyncio.run()") >= words("asyncio")


def test_a_repeated_word_weighs_more_and_a_longer_text_less() -> None:
    once, twice = ENCODER.encode(["kettle", "kettle kettle"])
    assert twice.values[0] > once.values[0]
    long = dict(zip(*_pairs("kettle " + " ".join(f"filler{n}" for n in range(300))), strict=True))
    assert long[once.indices[0]] < once.values[0]


def _pairs(text: str) -> tuple[tuple[int, ...], tuple[float, ...]]:
    vector = ENCODER.encode([text])[0]
    return vector.indices, vector.values


def test_texts_keep_their_order_and_empty_ones_their_place() -> None:
    assert ENCODER.encode([]) == []
    vectors = ENCODER.encode(["kettle", "", "teapot"])
    assert vectors[1] == SparseVector((), ())
    assert [set(v.indices) for v in vectors] == [words("kettle"), set(), words("teapot")]
    assert ENCODER.encode_query("") == SparseVector((), ())


def test_the_fingerprint_is_that_of_the_options() -> None:
    assert Bm25Encoder().fingerprint == ENCODER.fingerprint
    others = [Bm25Encoder("german"), Bm25Encoder(average_tokens=50.0)]
    assert len({ENCODER.fingerprint, *(other.fingerprint for other in others)}) == 3


def test_the_form_of_the_vectors_has_not_changed() -> None:
    """A stored index was written in this form. If this fails, an upgrade re-embeds everything."""
    assert ENCODER.encode_query("engineers") == SparseVector((856081220,), (1.0,))


@pytest.mark.parametrize("language", ["klingon", "English", ""])
def test_an_unknown_language_is_refused_with_the_cure(language: str) -> None:
    with pytest.raises(ConfigurationError, match="lower case"):
        Bm25Encoder(language)


@given(st.text())
def test_any_text_gives_one_positive_weight_for_each_of_its_words(text: str) -> None:
    for vector in (ENCODER.encode([text])[0], ENCODER.encode_query(text)):
        assert len(vector.indices) == len(vector.values) == len(set(vector.indices))
        assert all(value > 0 for value in vector.values)
        assert all(0 <= index < 2**32 for index in vector.indices)


def test_half_a_surrogate_pair_does_not_stop_a_document() -> None:
    assert words("kettle \ud800") >= words("kettle")
