"""A whole Tidemark on in-memory ports, with counters at the ports that cost something."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count

from fakes.artifacts import MemoryArtifacts
from fakes.embedder import HashEmbedder, WordTokenizer
from fakes.index import MemoryIndex
from fakes.ledger import MemoryLedger
from fakes.partitioner import MemoryPartitioner
from fakes.source import MemorySource
from tidemark.domain.chunks import SparseVector
from tidemark.domain.documents import PartitionedDocument, RawDocument
from tidemark.domain.hashing import digest_text
from tidemark.domain.profile import Profile, ProfileChoice
from tidemark.domain.records import RunSummary
from tidemark.pipeline import run_source
from tidemark.ports.artifacts import ArtifactStore
from tidemark.ports.embedding import Embedder, LexicalEncoder
from tidemark.ports.index import VectorIndex
from tidemark.ports.ledger import Ledger
from tidemark.ports.partition import PageInspector, Partitioner
from tidemark.stages.audit.compare import AuditFindings, compare_source
from tidemark.stages.generations import current_generation
from tidemark.stages.job import Dependencies, Job, embed_fingerprint
from tidemark.stages.search import Searcher

START = datetime(2026, 1, 1, tzinfo=UTC)
SOURCE = "docs"


@dataclass
class CountingPartitioner:
    """Counts the documents partitioned."""

    inner: Partitioner
    calls: Counter[str] = field(default_factory=Counter)

    @property
    def fingerprint(self) -> str:
        return self.inner.fingerprint

    def partition(self, raw: RawDocument) -> PartitionedDocument:
        self.calls[raw.uri] += 1
        return self.inner.partition(raw)

    def with_boilerplate(self, boilerplate: frozenset[int]) -> Partitioner:
        return (
            replace(self, inner=self.inner.with_boilerplate(boilerplate)) if boilerplate else self
        )


@dataclass
class CountingEmbedder:
    """Records the texts embedded; ``before`` may raise, to stand in for an outage or a kill."""

    inner: Embedder
    texts: list[str] = field(default_factory=list)
    before: Callable[[Sequence[str]], None] | None = None

    @property
    def fingerprint(self) -> str:
        return self.inner.fingerprint

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    def embed(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        if self.before is not None:
            self.before(texts)
        self.texts += texts
        return self.inner.embed(texts)


class WordLexical:
    """A lexical encoder without a vendor: hashed words with their counts."""

    fingerprint = "words"

    def encode(self, texts: Sequence[str]) -> list[SparseVector]:
        return [self.encode_query(text) for text in texts]

    def encode_query(self, text: str) -> SparseVector:
        counts = Counter(int(digest_text(word)[:7], 16) for word in text.lower().split())
        return SparseVector(tuple(counts), tuple(float(n) for n in counts.values()))


class World:
    """One source and its index; each call of ``run`` is a run an hour after the last."""

    def __init__(
        self,
        ledger: Ledger | None = None,
        index: VectorIndex | None = None,
        artifacts: ArtifactStore | None = None,
        another_index: Callable[[], VectorIndex] = lambda: MemoryIndex("tidemark"),
    ) -> None:
        self.now = START
        self._another_index = another_index
        self.source = MemorySource(
            media_type="text/markdown", authoritative=False, clock=lambda: self.now
        )
        self.ledger: Ledger = ledger or MemoryLedger()
        self.index: VectorIndex = index or MemoryIndex("tidemark")
        self.artifacts: ArtifactStore = artifacts or MemoryArtifacts()
        self.partitioner = CountingPartitioner(MemoryPartitioner())
        self.embedder = CountingEmbedder(HashEmbedder())
        self.lexical: LexicalEncoder = WordLexical()
        self.inspector: PageInspector | None = None
        self.profile = Profile(target_tokens=40, max_tokens=64, min_tokens=4)
        self._numbers = count(1)

    @property
    def documents(self) -> dict[str, str | bytes]:
        return self.source.documents

    def deps(self) -> Dependencies:
        return Dependencies(
            ledger=self.ledger,
            artifacts=self.artifacts,
            index=self.index,
            source=self.source,
            partitioner=self.partitioner,
            tokenizer=WordTokenizer(),
            embedder=self.embedder,
            lexical=self.lexical,
            inspector=self.inspector,
            clock=self._clock,
        )

    def job(self, **changes: object) -> Job:
        job = Job(
            SOURCE,
            f"run-{next(self._numbers):04d}",
            ProfileChoice(self.profile),
            labels=("test",),
        )
        return replace(job, **changes)  # type: ignore[arg-type]

    def run(self, **changes: object) -> RunSummary:
        """One run; the counters tell of this run alone."""
        self.now += timedelta(hours=1)
        self.source.fetched.clear()
        self.partitioner.calls.clear()
        self.embedder.texts.clear()
        # Opened once: an embedded engine takes longer to open than all that is done with it here.
        with self.index.session():
            return run_source(self.job(**changes), self.deps(), "test")

    def _clock(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now

    @property
    def generation(self) -> int:
        embed = embed_fingerprint(self.embedder, self.lexical)
        number = current_generation(self.ledger, self.index, "tidemark", embed)
        assert number is not None
        return number

    def lose_index(self) -> None:
        """An empty index in its place, as after a disk was replaced."""
        self.index = self._another_index()

    def audit(self) -> AuditFindings:
        return compare_source(self.ledger, self.index, self.generation)

    def searcher(self) -> Searcher:
        return Searcher(self.ledger, self.index, "tidemark", self.embedder, self.lexical)

    def texts(self) -> list[str]:
        """The texts of all points, in the order of their documents."""
        points = sorted(
            self.index.scan_points(self.generation),
            key=lambda p: (str(p.payload["source_uri"]), p.payload["chunk_index"]),
        )
        return [str(point.payload["text"]) for point in points]


def page(title: str, *paragraphs: str) -> str:
    """A document with one section a paragraph."""
    sections = [f"## Part {i}\n\n{text}" for i, text in enumerate(paragraphs, 1)]
    return "\n\n".join([f"# {title}", *sections])
