"""What the stages ask of the world. Each adapter implements one of these Protocols.

Every method may raise ``TransientError`` (an outage: retry) or ``PermanentError`` (it will fail again);
nothing else. A write may be repeated with the same result. Times are aware and in UTC.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol
from uuid import UUID

from tidemark.domain.inspection import Inspection
from tidemark.domain.model import (
    CrawlEnd,
    CrawlItem,
    Definition,
    PartitionedDocument,
    PointWrite,
    RawDocument,
    SparseVector,
    StoredPoint,
    Validators,
)
from tidemark.domain.records import (
    Alias,
    ChunkRecord,
    DocumentRecord,
    GenerationRecord,
    RunDocument,
    RunRecord,
    SectionRecord,
    SourceState,
    Tombstone,
    Touch,
)


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
    """Bytes to elements, without the furniture around the content."""

    @property
    def fingerprint(self) -> str: ...

    def partition(self, raw: RawDocument) -> PartitionedDocument:
        """Clean and partition. Raises ``DocumentError`` naming the cure when the bytes are at fault."""

    def knowing(self, furniture: frozenset[int]) -> "Partitioner":
        """One that also drops these blocks of a site (``Inspection.blocks``), and says so in its fingerprint.

        Without any it is this one, with this fingerprint.
        """


class PageInspector(Protocol):
    """A first look at fetched bytes, an order of magnitude cheaper than partitioning them."""

    def inspect(
        self, raw: RawDocument, furniture: frozenset[int] = frozenset()
    ) -> Inspection | None:
        """Look at a page or a text; None for what is neither. Never raises for what it contains.

        ``furniture``: blocks of the site that are no part of its text.
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


class VectorIndex(Protocol):
    """Points of chunks and of sections, in numbered generations behind one live name.

    ``generation`` names a pair of collections. Filters are equality on payload keys (``source``,
    ``document_id``, ``section_id``, ...); a list value means any of.
    """

    def session(self) -> AbstractContextManager[None]:
        """Hold the index open for many calls (embedded engines open a folder under a lock). Re-entrant."""

    def ensure(self, generation: int, dimension: int) -> None:
        """Create the generation's collections and payload indexes where missing.

        Raises ``PermanentError`` when they exist with another vector size.
        """

    def generations(self) -> list[int]:
        """Numbers of the generations that exist, ascending."""

    def live(self) -> int | None:
        """The generation behind the live name."""

    def switch(self, generation: int) -> None:
        """Put the live name over a generation, at once."""

    def drop(self, generation: int) -> None:
        """Delete a generation's collections. Raises ``PermanentError`` for the live one."""

    def upsert_points(self, generation: int, points: Sequence[PointWrite]) -> None: ...

    def upsert_sections(self, generation: int, sections: Sequence[PointWrite]) -> None: ...

    def set_payloads(self, generation: int, points: Sequence[PointWrite]) -> None:
        """Replace the payload of existing points, whose vectors stay; ids that do not exist are ignored."""

    def delete_points(self, generation: int, ids: Sequence[UUID]) -> None: ...

    def delete_sections(self, generation: int, ids: Sequence[UUID]) -> None: ...

    def get_points(self, generation: int, ids: Sequence[UUID]) -> list[StoredPoint]:
        """Those that exist, in no order."""

    def get_vectors(self, generation: int, ids: Sequence[UUID]) -> dict[UUID, tuple[float, ...]]:
        """The dense vectors of those points that exist."""

    def get_sections(self, generation: int, ids: Sequence[UUID]) -> list[StoredPoint]:
        """Those that exist, in no order."""

    def scan_points(
        self, generation: int, where: Mapping[str, str | list[str]] | None = None
    ) -> Iterator[StoredPoint]:
        """Stream all points that match, in pages; memory does not grow with the collection."""

    def scan_sections(
        self, generation: int, where: Mapping[str, str | list[str]] | None = None
    ) -> Iterator[StoredPoint]: ...

    def count_points(
        self, generation: int, where: Mapping[str, str | list[str]] | None = None
    ) -> int:
        """Exact."""

    def count_sections(
        self, generation: int, where: Mapping[str, str | list[str]] | None = None
    ) -> int:
        """Exact."""

    def search_dense(
        self,
        generation: int,
        vector: Sequence[float],
        k: int,
        where: Mapping[str, str | list[str]] | None = None,
    ) -> list[StoredPoint]:
        """The ``k`` nearest by cosine, best first; score is the cosine."""

    def search_lexical(
        self,
        generation: int,
        vector: SparseVector,
        k: int,
        where: Mapping[str, str | list[str]] | None = None,
    ) -> list[StoredPoint]:
        """The ``k`` best by BM25, best first."""

    def search_hybrid(
        self,
        generation: int,
        vector: Sequence[float],
        lexical: SparseVector,
        k: int,
        where: Mapping[str, str | list[str]] | None = None,
    ) -> list[StoredPoint]:
        """The ``k`` best by reciprocal rank fusion (k = 60) of both, best first."""


class Ledger(Protocol):
    """What is indexed, by whom, from what."""

    def lock(self, source: str, *, shared: bool = False) -> AbstractContextManager[None]:
        """Hold the source's lock; freed by the death of the process that holds it.

        Exclusive for a whole run in one process, shared for one task of a run made of many. Raises
        ``SourceBusyError`` at once when it cannot be had.
        """

    def lock_documents(self, document_ids: Sequence[UUID]) -> AbstractContextManager[None]:
        """Hold the locks of some documents, so that two runs never write one at the same time.

        Waits for them (a run holds each for the seconds it takes to write it); freed by the death of the
        process that holds them. Not to be nested. Raises ``TransientError`` when it waited too long.
        """

    def documents(self, source: str | None = None) -> Iterator[DocumentRecord]:
        """Stream all documents (of a source), ordered by source, then URI."""

    def document(self, document_id: UUID) -> DocumentRecord | None: ...

    def documents_by_id(self, ids: Sequence[UUID]) -> dict[UUID, DocumentRecord]: ...

    def find_documents(self, uri: str) -> list[DocumentRecord]:
        """Documents with exactly this URI, in any source."""

    def documents_by_text(self, source: str, text_hashes: Sequence[str]) -> list[DocumentRecord]:
        """Documents of a source whose live version has one of these texts, in no order."""

    def documents_by_raw(self, source: str, raw_hashes: Sequence[str]) -> list[DocumentRecord]:
        """Documents of a source whose live version has exactly these bytes, in no order."""

    def tombstones_by_id(self, ids: Sequence[UUID]) -> dict[UUID, Tombstone]: ...

    def tombstones_by_raw(self, source: str, raw_hashes: Sequence[str]) -> list[Tombstone]:
        """Those of a source that had these bytes and are not expired, in no order."""

    def tombstones_before(self, source: str, removed_before: datetime) -> list[Tombstone]:
        """The oldest 1,000 of a source that are not expired and were removed before a time."""

    def expire(self, document_ids: Sequence[UUID]) -> None:
        """Mark tombstones as expired: what they could be restored from is being deleted."""

    def raw_in_use(self, raw_hashes: Sequence[str]) -> set[str]:
        """Those that any document, duplicate or tombstone that is not expired refers to, in any source."""

    def find_tombstones(self, uri: str) -> list[Tombstone]: ...

    def aliases(self, source: str) -> Iterator[Alias]:
        """Stream the other addresses of a source's documents, ordered by URI."""

    def aliases_by_uri(self, source: str, uris: Sequence[str]) -> dict[str, Alias]: ...

    def aliases_of(self, document_id: UUID) -> list[Alias]:
        """Ordered by URI."""

    def find_aliases(self, uri: str) -> list[Alias]:
        """Aliases with exactly this URI, in any source, ordered by source."""

    def save_aliases(self, aliases: Sequence[Alias]) -> None:
        """Upsert by source and URI. One is ignored whose document is not there or whose URI is a document's.

        An alias goes with its document, and when its URI becomes a document.
        """

    def drop_aliases(self, source: str, seen_before: datetime) -> None:
        """Forget the aliases, other than of documents that moved, that were not seen since a time."""

    def source_state(self, source: str) -> SourceState:
        """Empty for a source that nothing is known of."""

    def save_source_state(self, state: SourceState) -> None: ...

    def sections(self, document_id: UUID) -> list[SectionRecord]:
        """In document order."""

    def chunks(self, document_id: UUID) -> list[ChunkRecord]:
        """In document order."""

    def begin(self, run_id: str, source: str, documents: Mapping[UUID, str]) -> None:
        """Note, before their first write to the index, which documents (id to URI) are being written.

        The note of a document is dropped by ``commit_document``, ``remove_document`` and ``settle`` (not
        by ``update_document``); one that is still there tells of a run that died in between.
        """

    def in_flight(self, source: str) -> dict[UUID, str]:
        """Documents whose last write was begun and not finished: id to URI."""

    def settle(self, document_ids: Sequence[UUID]) -> None:
        """Drop the notes of documents that turned out to have nothing to write."""

    def commit_document(
        self,
        record: DocumentRecord,
        sections: Sequence[SectionRecord],
        chunks: Sequence[ChunkRecord],
        event: RunDocument,
    ) -> None:
        """Write all rows of one document in one transaction, replace those it had, drop its tombstone."""

    def update_document(self, record: DocumentRecord, event: RunDocument) -> None:
        """Write the document's own row (quarantine, gate passed); its sections and chunks stay."""

    def remove_document(self, tombstone: Tombstone, event: RunDocument) -> None:
        """Delete all rows of one document and leave the tombstone, in one transaction."""

    def touch(self, run_id: str, seen_at: datetime, touches: Sequence[Touch]) -> None:
        """Note that documents were seen: last_seen, validators, fetched_raw_hash, suspect.

        Clears missing_*.
        """

    def miss(self, run_id: str, seen_at: datetime, document_ids: Sequence[UUID]) -> None:
        """Note that documents were not reached: missing_since where unset, missing_runs + 1.

        Repeating it for the same run changes nothing.
        """

    def start_run(self, run: RunRecord) -> None:
        """Upsert by run_id, which is unique over all sources."""

    def finish_run(self, run: RunRecord) -> None:
        """Upsert by run_id."""

    def run(self, run_id: str) -> RunRecord | None: ...

    def runs(self, source: str | None = None, limit: int = 20) -> list[RunRecord]:
        """Latest first."""

    def record_events(self, events: Sequence[RunDocument]) -> None:
        """Upsert by run_id and document_id."""

    def events(self, document_id: UUID, limit: int = 20) -> list[RunDocument]:
        """What runs did to a document, latest first."""

    def run_events(self, run_id: str) -> Iterator[RunDocument]:
        """Stream what one run did, ordered by URI."""

    def count_chunks(self, source: str, generation: int) -> int: ...

    def count_sections(self, source: str, generation: int) -> int: ...

    def sources(self) -> list[str]:
        """Names of all sources that have documents or runs, sorted."""

    def count_quarantined(self, source: str) -> int: ...

    def count_suspects(self, source: str) -> int:
        """Documents with a newer version that is not believed."""

    def totals(self, source: str | None = None) -> tuple[int, int]:
        """How many documents have an indexed version, and how many chunks they have together."""

    def generations(self, index_name: str) -> list[GenerationRecord]:
        """Ascending by number."""

    def save_generation(self, generation: GenerationRecord) -> None:
        """Upsert by index_name and number."""

    def documents_outside(self, generation: int) -> int:
        """How many documents with an indexed version belong to another generation."""

    def save_audit(
        self, source: str | None, findings: Mapping[str, int], repaired: int
    ) -> None: ...


class ArtifactStore(Protocol):
    """Immutable values by key, e.g. "raw/<hash>". A key is written whole or not at all."""

    def write(self, key: str, data: bytes) -> None:
        """Write atomically; a key that exists with these bytes is left as it is."""

    def read(self, key: str) -> bytes:
        """Raises ``KeyError`` when there is no such key."""

    def exists(self, key: str) -> bool: ...

    def delete(self, key: str) -> None:
        """Missing is fine."""

    def keys(self, prefix: str = "") -> Iterator[str]:
        """Stream the keys that start with ``prefix``."""

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
