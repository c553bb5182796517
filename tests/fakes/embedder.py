"""A tokenizer and an embedder without a model: deterministic, in microseconds, for tests and trials.

Texts that share words get near vectors, which is enough to try a search end to end; it is no measure of
quality.
"""

import re
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from math import sqrt

from tidemark.domain.errors import PermanentError
from tidemark.domain.hashing import fingerprint

_TOKEN = re.compile(r"\w+|[^\w\s]")


class WordTokenizer:
    """Words and signs as tokens, with two special tokens as BERT has."""

    def __init__(self, max_tokens: int = 256) -> None:
        self.max_tokens = max_tokens
        self.special_tokens = 2
        self.fingerprint = fingerprint("tokenizer", {"kind": "words", "max_tokens": max_tokens})

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(_TOKEN.findall(text)) + self.special_tokens for text in texts]

    def spans(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in _TOKEN.finditer(text)]


class HashEmbedder:
    """A bag of hashed words, normalised to length 1."""

    def __init__(self, dimension: int = 64, max_tokens: int = 256) -> None:
        self.dimension = dimension
        self.tokenizer = WordTokenizer(max_tokens)
        self.fingerprint = fingerprint(
            "embed", {"kind": "hash", "dimension": dimension, "max_tokens": max_tokens}
        )

    def embed(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        for text, tokens in zip(texts, self.tokenizer.count(texts), strict=True):
            if tokens > self.tokenizer.max_tokens:
                raise PermanentError(
                    f"A text of {tokens} tokens is over the {self.tokenizer.max_tokens} that the embedder "
                    f"reads: {text[:60]!r}.",
                    "Lower the profile's max_tokens.",
                )
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> tuple[float, ...]:
        values = [0.0] * self.dimension
        values[0] = 1e-3  # a text without a word has a direction too
        for word, count in Counter(_TOKEN.findall(text.casefold())).items():
            hashed = int.from_bytes(
                blake2b(word.encode("utf-8", "replace"), digest_size=8).digest()
            )
            values[hashed % self.dimension] += count if hashed >> 63 else -count
        length = sqrt(sum(value * value for value in values))
        return tuple(value / length for value in values)
