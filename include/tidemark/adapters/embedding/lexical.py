"""Sparse vectors for keyword search: BM25 by Qdrant's own code, the same form on a server and embedded."""

from collections.abc import Sequence

from qdrant_edge import Bm25, Bm25Config
from qdrant_edge import SparseVector as EdgeVector

from tidemark.domain.chunks import SparseVector
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.hashing import fingerprint

AVERAGE_TOKENS = 100.0
"""Words, without stop words, of an average chunk: longer chunks weigh each word less."""

_PROBE = "The engineers' re-indexed documents, RFC 9110 §8.8, snake_case: naïve Übung 東京 don't"
"""A text that meets the tokenizer, the stop words, the stemmer and the hashing of tokens."""


class Bm25Encoder:
    """Implements LexicalEncoder.

    language: whose stop words and stemmer are used ("english", "german", ...). Raises
    ``ConfigurationError`` for one that is not known.
    """

    def __init__(self, language: str = "english", average_tokens: float = AVERAGE_TOKENS) -> None:
        try:
            self._bm25 = Bm25(Bm25Config(language=language, avg_len=average_tokens))
        except ValueError as error:
            raise ConfigurationError(
                f"BM25 cannot work with language {language!r} and {average_tokens} tokens: {error}.",
                "Use the English name of a language in lower case, e.g. 'german'.",
            ) from error
        # What an upgrade may change without notice is how a text becomes tokens and numbers: a probe
        # tells exactly that, where the package's version would re-embed everything at each release.
        probe = self._bm25.embed_document(_PROBE)
        self.fingerprint = fingerprint(
            "bm25",
            {
                "language": language,
                "average_tokens": average_tokens,
                "probe": [
                    [i, round(v, 6)] for i, v in zip(probe.indices, probe.values, strict=True)
                ],
            },
        )

    def encode(self, texts: Sequence[str]) -> list[SparseVector]:
        """One vector a text, in order; one without words gives an empty vector."""
        return [_vector(self._bm25.embed_document(_encodable(text))) for text in texts]

    def encode_query(self, text: str) -> SparseVector:
        """Each word of a question once, with weight 1."""
        return _vector(self._bm25.embed_query(_encodable(text)))


def _encodable(text: str) -> str:
    """Half of a surrogate pair is no word and would stop the encoder."""
    return text.encode("utf-8", "replace").decode()


def _vector(vector: EdgeVector) -> SparseVector:
    return SparseVector(tuple(vector.indices), tuple(vector.values))
