"""The embedder's own tokenizer through the ``tokenizers`` library, without loading the model."""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import Encoding, Tokenizer

from tidemark.adapters.embedding.models import max_tokens_of
from tidemark.domain.errors import PermanentError
from tidemark.domain.hashing import digest, fingerprint

_KNOWN_WORDS = 200_000
# White space to Python and not to the tokenizer, which drops it and joins the words around it.
_UNLIKE = re.compile("[\x0b\x0c\x1c-\x1f\x85]")


class HuggingFaceTokenizer:
    """Counts tokens as the model will read them, untruncated.

    BERT's tokenizers never join two words, so there the tokens of a text are the sum of its words', and
    words repeat: each is looked up once.
    """

    def __init__(self, model_path: str | Path) -> None:
        folder = Path(model_path)
        file = folder / "tokenizer.json" if folder.is_dir() else folder
        try:
            definition = file.read_bytes()
        except OSError as error:
            raise PermanentError(
                f"The model at {folder} has no tokenizer.json.", "Save it with a fast tokenizer."
            ) from error
        # The library's threads and a later fork do not go together; one thread is fast enough here.
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        try:
            self._tokenizer = Tokenizer.from_buffer(definition)
        except Exception as error:
            raise PermanentError(
                f"{file} is no tokenizer: {error}.", "Fetch the model again."
            ) from error
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.max_tokens = max_tokens_of(file.parent)
        self.special_tokens = self._tokenizer.num_special_tokens_to_add(is_pair=False)
        self._words = _Words(self._tokenizer) if _joins_no_words(definition) else None
        self.fingerprint = fingerprint(
            "tokenizer", {"definition": digest(definition), "max_tokens": self.max_tokens}
        )

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text with special tokens."""
        if self._words is None or any(_UNLIKE.search(text) for text in texts):
            return [len(encoding) for encoding in self._encode(texts, special=True)]
        lookup = self._words.__getitem__
        return [sum(map(lookup, text.split())) + self.special_tokens for text in texts]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Character ranges of the tokens, without special ones."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).offsets)

    def _encode(self, texts: Sequence[str], *, special: bool) -> list[Encoding]:
        return list(self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=special))


class _Words(dict[str, int]):
    """Tokens of each word met so far; emptied when it is full, so that memory stays bounded."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__()
        self._tokenizer = tokenizer

    def __missing__(self, word: str) -> int:
        if len(self) >= _KNOWN_WORDS:
            self.clear()
        tokens = len(self._tokenizer.encode(word, add_special_tokens=False))
        if len(word) <= 64:
            self[word] = tokens
        return tokens


def _joins_no_words(definition: bytes) -> bool:
    parsed: dict[str, Any] = json.loads(definition)
    parts = [
        (parsed.get(name) or {}).get("type") for name in ("model", "pre_tokenizer", "normalizer")
    ]
    return parts == ["WordPiece", "BertPreTokenizer", "BertNormalizer"]
