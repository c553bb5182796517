"""What every embedder and its tokenizer do."""

import json
import shutil
from math import isclose, sqrt
from pathlib import Path
from subprocess import run
from sys import executable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.embedder import HashEmbedder, WordTokenizer
from tidemark.adapters.embedding.models import DEFAULT_MODEL, read_card, resolve_model
from tidemark.adapters.embedding.sentence_transformers import SentenceTransformersEmbedder
from tidemark.adapters.embedding.tokenizer import HuggingFaceTokenizer
from tidemark.domain.errors import PermanentError
from tidemark.ports.embedding import Embedder, Tokenizer

TEXTS = [
    "Refunds within thirty days.",
    "",
    "The gauge on the pier.",
    "Refunds within thirty days!",
    "深い",
]


@pytest.fixture(scope="module", params=["hash", pytest.param("model", marks=pytest.mark.model)])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    return HashEmbedder() if request.param == "hash" else SentenceTransformersEmbedder(threads=1)


@pytest.fixture(scope="module", params=["words", "model"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return WordTokenizer() if request.param == "words" else real_tokenizer()


def real_tokenizer() -> HuggingFaceTokenizer:
    return HuggingFaceTokenizer(resolve_model(DEFAULT_MODEL))


def dot(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_each_text_gets_a_vector_of_length_one(embedder: Embedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert len(vectors) == len(TEXTS)
    for vector in vectors:
        assert len(vector) == embedder.dimension
        assert isclose(sqrt(dot(vector, vector)), 1.0, abs_tol=1e-5)


def test_vectors_come_in_the_order_of_the_texts(embedder: Embedder) -> None:
    texts = [f"number {n} " + "and so on " * (n * 7 % 20) for n in range(20)]
    together = embedder.embed(texts)
    for text, vector in zip(texts, together, strict=True):
        assert dot(embedder.embed([text])[0], vector) > 0.999


def test_like_texts_are_nearer_than_unlike_ones(embedder: Embedder) -> None:
    refund, _, gauge, refund_too, _ = embedder.embed(TEXTS)
    assert dot(refund, refund_too) > dot(refund, gauge)


def test_no_text_gives_no_vector(embedder: Embedder) -> None:
    assert embedder.embed([]) == []


def test_a_text_over_the_limit_is_refused_and_not_cut(embedder: Embedder) -> None:
    with pytest.raises(PermanentError, match=r"30[02] tokens") as caught:
        embedder.embed(["short", "word " * 300])
    assert caught.value.hint


def test_counts_are_those_of_the_tokens_and_the_special_ones(tokenizer: Tokenizer) -> None:
    for text in TEXTS:
        assert tokenizer.count([text]) == [len(tokenizer.spans(text)) + tokenizer.special_tokens]


def test_spans_point_into_the_text_in_order(tokenizer: Tokenizer) -> None:
    text = "The gauge's unbelievable depth: 3.50 m!"
    spans = tokenizer.spans(text)
    assert spans == sorted(spans)
    covered = {place for start, end in spans for place in range(start, end)}
    assert covered == {place for place, character in enumerate(text) if not character.isspace()}


def test_long_texts_are_counted_whole(tokenizer: Tokenizer) -> None:
    assert tokenizer.count(["word " * 5000]) == [5000 + tokenizer.special_tokens]


ODD = st.text("ab AB.,é\u0301\u200b\u00a0\u2028\x1c\x1f\t\n深い[SEP]👩‍🚀#", max_size=80)


@settings(deadline=None)
@given(st.lists(st.one_of(ODD, st.text(max_size=60)), max_size=4))
def test_counting_by_words_gives_what_the_library_counts(texts: list[str]) -> None:
    tokenizer = real_tokenizer_once()
    clean = [text.encode("utf-8", "ignore").decode() for text in texts]
    assert tokenizer.count(clean) == [len(tokenizer.spans(text)) + 2 for text in clean]


_ONCE: list[HuggingFaceTokenizer] = []


def real_tokenizer_once() -> HuggingFaceTokenizer:
    if not _ONCE:
        _ONCE.append(real_tokenizer())
    return _ONCE[0]


def test_fingerprint_and_dimension_are_known_without_loading_the_model() -> None:
    program = (
        "import sys\n"
        "from tidemark.adapters.embedding.sentence_transformers import SentenceTransformersEmbedder\n"
        "embedder = SentenceTransformersEmbedder()\n"
        "assert embedder.dimension == 384 and len(embedder.fingerprint) == 16\n"
        "embedder.tokenizer.count(['x'])\n"
        "heavy = {'torch', 'transformers', 'sentence_transformers'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    assert run([executable, "-c", program], check=False).returncode == 0


@pytest.fixture
def model_copy(tmp_path: Path) -> Path:
    """A model's folder with its small files and a stand-in for its weights."""
    source = resolve_model(DEFAULT_MODEL)
    folder = tmp_path / "model"
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("*.safetensors", "vocab.txt"))
    (folder / "model.safetensors").write_bytes(b"w" * 500_000)
    return folder


def test_the_fingerprint_follows_the_weights_and_the_configuration(model_copy: Path) -> None:
    before = read_card(model_copy)
    weights = bytearray((model_copy / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (model_copy / "model.safetensors").write_bytes(weights)
    other_weights = read_card(model_copy)
    config = model_copy / "sentence_bert_config.json"
    config.write_text(json.dumps({"max_seq_length": 128}))
    other_limit = read_card(model_copy)
    assert len({card.digest for card in (before, other_weights, other_limit)}) == 3
    assert (before.max_tokens, other_limit.max_tokens) == (256, 128)
    assert HuggingFaceTokenizer(model_copy).max_tokens == 128


def test_a_copy_of_the_same_model_elsewhere_has_the_same_fingerprint(model_copy: Path) -> None:
    other = model_copy.with_name("elsewhere")
    shutil.copytree(model_copy, other)
    assert read_card(other) == read_card(model_copy)


def test_a_folder_that_is_no_model_is_refused_with_a_cure(tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match=r"config\.json"):
        SentenceTransformersEmbedder(str(tmp_path))
    with pytest.raises(PermanentError, match="no model folder"):
        resolve_model(str(tmp_path / "missing" / "model"))
    with pytest.raises(PermanentError, match="tokenizer"):
        HuggingFaceTokenizer(tmp_path)
