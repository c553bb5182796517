"""What the stages ask of the world. Each adapter implements one of these Protocols.

Every method may raise ``TransientError`` (an outage: retry) or ``PermanentError`` (it will fail again);
nothing else. A write may be repeated with the same result. Times are aware and in UTC.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tidemark.domain.chunks import SparseVector
from tidemark.domain.documents import (
    CrawlEnd,
    CrawlItem,
    Definition,
    Inspection,
    PartitionedDocument,
    RawDocument,
    Validators,
)
from tidemark.ports.index import VectorIndex
from tidemark.ports.ledger import Ledger


class Known(Protocol):
    """What a source may know of its last crawl, to ask only for what changed."""

    def validators(self, uri: str) -> Validators | None:
        """The validators of the bytes held for a canonical URI, None when none are held."""

    def uris(self) -> Iterator[str]:
        """Every canonical URI of the source that is indexed or quarantined."""

    def content(self, uri: str) -> tuple[bytes, str] | None:
        """The bytes last fetched for a URI and their media type (to follow links of a page not modified)."""

    def state(self) -> str:
        """``CrawlEnd.state`` of the last crawl whose run was applied whole; "" when there is none."""


class Source(Protocol):
    """A place to crawl."""

    @property
    def fingerprint(self) -> str:
        """Of what decides the bytes fetched; a change makes every item be fetched again."""

    def crawl(self, known: Known, limit: int | None = None) -> Iterator[CrawlItem | CrawlEnd]:
        """Yield every item once, with its outcome, then exactly one CrawlEnd.

        Bytes are held for one item at a time. An item's failure is an outcome; the source being away as
        a whole is a CrawlEnd that is not complete, with the problem. Never raises for either. With
        ``limit``, stops after that many items that have content, and is then not complete.
        """


class Partitioner(Protocol):
    """Bytes to elements, without the boilerplate around the content."""

    @property
    def fingerprint(self) -> str: ...

    def partition(self, raw: RawDocument) -> PartitionedDocument:
        """Clean and partition. Raises ``DocumentError`` naming the hint when the bytes are at fault."""

    def with_boilerplate(self, boilerplate: frozenset[int]) -> "Partitioner":
        """One that also drops these blocks of a site (``Inspection.blocks``), and says so in its fingerprint.

        Without any it is this one, with this fingerprint.
        """


class PageInspector(Protocol):
    """A first look at fetched bytes, an order of magnitude cheaper than partitioning them."""

    def inspect(
        self, raw: RawDocument, boilerplate: frozenset[int] = frozenset()
    ) -> Inspection | None:
        """Look at a page or a text; None for what is neither. Never raises for what it contains.

        ``boilerplate``: blocks of the site that are no part of its text.
        """


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


class CodeParser(Protocol):
    """Finds the definitions in program code."""

    @property
    def fingerprint(self) -> str:
        """Of what decides the definitions found."""

    def definitions(self, code: str, syntax: str) -> list[Definition]:
        """Those of ``code`` and its units, in order, nested ones after the one they are in.

        ``syntax`` is a canonical name ("python"). Code with errors gives what was found in it; a language
        that is not known, and code that cannot be parsed in bounded time, give []. Never raises for code.
        """


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


@dataclass(frozen=True, slots=True)
class ArtifactEntry:
    """One artifact: its size in bytes, and when it was last written (UTC)."""

    key: str
    size: int
    written_at: datetime


class ArtifactStore(Protocol):
    """Immutable values by key, e.g. "raw/<hash>". A key is written whole or not at all."""

    def write(self, key: str, data: bytes) -> None:
        """Write atomically. A key that exists with these bytes keeps them, and counts as written now."""

    def read(self, key: str) -> bytes:
        """Raises ``KeyError`` when there is no such key."""

    def exists(self, key: str) -> bool: ...

    def delete(self, key: str, *, written_before: datetime | None = None) -> bool:
        """Is it gone? Missing is fine. With a time, what was written since then stays."""

    def keys(self, prefix: str = "") -> Iterator[str]:
        """Stream the keys that start with ``prefix``."""

    def entries(self, prefix: str = "") -> Iterator[ArtifactEntry]:
        """Stream what ``keys`` names, with size and age; one deleted on the way may be left out."""

    def discard_unfinished(
        self, written_before: datetime, *, dry_run: bool = False
    ) -> tuple[int, int]:
        """Delete what writers left unfinished that died before a time; how many, and their bytes."""

    def writer(self, key: str) -> AbstractContextManager["LineWriter"]:
        """Stream lines to a key, which appears, atomically, when the context ends without an error."""

    def lines(self, key: str) -> Iterator[str]:
        """Stream the lines of a key, without their ends. Raises ``KeyError`` when there is none."""


class LineWriter(Protocol):
    def line(self, text: str) -> None: ...


class Progress(Protocol):
    """Told of the work as it goes; for a bar, a log line or nothing."""

    def stage(self, name: str, total: int | None) -> None:
        """A stage begins; ``total`` items are ahead, None when unknown."""

    def advance(self, count: int = 1, detail: str = "") -> None: ...


Clock = Callable[[], datetime]


def quiet() -> Progress:
    """A Progress that says nothing."""
    return _Quiet()


class _Quiet:
    def stage(self, name: str, total: int | None) -> None: ...

    def advance(self, count: int = 1, detail: str = "") -> None: ...


__all__ = [
    "ArtifactEntry",
    "ArtifactStore",
    "Clock",
    "CodeParser",
    "Embedder",
    "Known",
    "Ledger",
    "LexicalEncoder",
    "LineWriter",
    "PageInspector",
    "Partitioner",
    "Progress",
    "Source",
    "Tokenizer",
    "VectorIndex",
    "quiet",
]
