"""What the stages ask of a model: its tokens, its dense vectors, and the sparse ones beside them."""

from collections.abc import Sequence
from typing import Protocol

from tidemark.domain.chunks import SparseVector


class Tokenizer(Protocol):
    """The embedder's own tokenizer, usable without loading the model."""

    @property
    def fingerprint(self) -> str:
        """Of the vocabulary and its rules."""

    @property
    def max_tokens(self) -> int:
        """What the model reads, with special tokens."""

    @property
    def special_tokens(self) -> int:
        """How many of them every text gets."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text with special tokens, untruncated."""

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Character offsets of each token of ``text``, without special tokens, in order."""


class Embedder(Protocol):
    """Texts to dense vectors of length 1."""

    @property
    def fingerprint(self) -> str:
        """Of the model and what shapes its vectors; known without loading the model."""

    @property
    def dimension(self) -> int: ...

    def embed(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        """One vector a text, in order. Raises ``PermanentError`` for a text over the model's limit."""


class LexicalEncoder(Protocol):
    """Texts to sparse vectors for keyword search (BM25 weights, IDF applied by the index)."""

    @property
    def fingerprint(self) -> str: ...

    def encode(self, texts: Sequence[str]) -> list[SparseVector]: ...

    def encode_query(self, text: str) -> SparseVector: ...


class VectorCache(Protocol):
    """Vectors of texts by the hash of each, so that it cannot be told of which document."""

    def count(self) -> int: ...

    def clear(self) -> int:
        """Forget all; how many."""
