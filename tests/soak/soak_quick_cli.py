"""`tidemark` without the time that its model takes; everything else is what a user runs.

    SOAK_TEXTS=FILE python soak_quick_cli.py index SOURCE …

Each text that is embedded is first written to the file, so that a text embedded twice is seen, whoever is
killed in between: one line a text, the process, then the text's hash, then the document it names.
"""

import os
from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any

import soak_tight  # noqa: F401 (it makes a kind of store known)
from soak_corpus import DOCUMENT

from fakes.embedder import HashEmbedder
from tidemark.cli import main
from tidemark.wiring import Container


class WrittenDown(HashEmbedder):
    """A hash embedder that writes down what it is given, before it does it."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def embed(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        lines = [f"{os.getpid()} {_hash(text)} {_document(text)}\n" for text in texts]
        os.write(self._file, "".join(lines).encode())
        return super().embed(texts)


def _hash(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()


def _document(text: str) -> str:
    named = DOCUMENT.search(text)
    return named[0] if named else "-"


def _replace(name: str, value: cached_property[Any]) -> None:
    value.__set_name__(Container, name)
    setattr(Container, name, value)


_replace("embedder", cached_property(lambda container: WrittenDown(os.environ["SOAK_TEXTS"])))
_replace("tokenizer", cached_property(lambda container: container.embedder.tokenizer))

if __name__ == "__main__":
    main()
