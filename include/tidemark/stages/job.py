"""What a run is given: which source, how, and the tools to do it with."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from tidemark.domain.blocks import BlockList
from tidemark.domain.chunks import Fingerprints
from tidemark.domain.decide import Target
from tidemark.domain.guards import Guards
from tidemark.domain.hashing import fingerprint
from tidemark.domain.profile import ProfileChoice
from tidemark.ports.artifacts import ArtifactStore
from tidemark.ports.embedding import Embedder, LexicalEncoder, Tokenizer, VectorCache
from tidemark.ports.index import VectorIndex
from tidemark.ports.ledger import Ledger
from tidemark.ports.partition import CodeParser, PageInspector, Partitioner
from tidemark.ports.progress import Clock, Progress, quiet
from tidemark.ports.source import Source
from tidemark.stages.chunking.chunk import chunk_fingerprint

PAYLOAD_VERSION = 3
"""Raised when points of an unchanged chunk get another payload than before."""


def utc_now() -> datetime:
    return datetime.now(UTC)


def is_later(seen: datetime, than: datetime, clock: Clock) -> bool:
    """Was something seen after a moment? Not what was seen later than now: then the clock was set back."""
    return than < seen <= clock()


@dataclass(frozen=True, slots=True)
class Job:
    """One run over one source.

    run_id: unique over all sources; also the folder of the run's artifacts.
    profile: which chunking profile each document gets.
    gone_after: complete crawls without it until a page counts as gone.
    batch_documents, batch_bytes: bounds of one mapped task.
    limit: documents with content to look at, at most; None for all.
    declared: names of all declared sources that have runs; a new generation goes live when each has been
        indexed. disabled: of those that have none.
    guards: how much may change at once before a person is asked; ``approved`` when one has said yes.
    accept: URIs whose doubtful new version is to be believed; "*" for all.
    grace_days: for how long a removed document can be restored for nothing.
    judge: doubt versions that are suspected, and keep equal pages once; for websites.
    dry_run: plan only; nothing is remembered.
    detect_boilerplate: the crawl sees the source as it is, not a part of what is stored of it.
    blocks: what was taken down and is not to come in again, as of when a step of the run begins.
    """

    source: str
    run_id: str
    profile: ProfileChoice = ProfileChoice()
    labels: tuple[str, ...] = ()
    gone_after: int = 2
    index_name: str = "tidemark"
    batch_documents: int = 200
    batch_bytes: int = 16 * 1024 * 1024
    force: bool = False
    limit: int | None = None
    declared: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    guards: Guards = Guards()
    approved: bool = False
    accept: frozenset[str] = frozenset()
    grace_days: int = 30
    judge: bool = True
    dry_run: bool = False
    detect_boilerplate: bool = True
    blocks: BlockList = field(default_factory=BlockList)


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The ports a run works with. Constructing them loads nothing heavy.

    sentence_embedder: of the profiles that cut by meaning; it may remember what it embedded.
    inspector: looks at fetched documents before they are planned; None measures nothing.
    vector_cache: what is kept of texts beside the stores, None for nothing.
    """

    ledger: Ledger
    artifacts: ArtifactStore
    index: VectorIndex
    source: Source
    partitioner: Partitioner
    tokenizer: Tokenizer
    embedder: Embedder
    lexical: LexicalEncoder
    code_parser: CodeParser | None = None
    sentence_embedder: Embedder | None = None
    inspector: PageInspector | None = None
    vector_cache: VectorCache | None = None
    clock: Clock = utc_now
    progress: Progress = field(default_factory=quiet)

    @property
    def stores(self) -> "Stores":
        return Stores(self.ledger, self.artifacts, self.index, self.clock, self.vector_cache)


def fingerprints(job: Job, deps: Dependencies) -> Fingerprints:
    """The fingerprints that a healthy document of this source has now."""
    return Fingerprints(
        fetch=deps.source.fingerprint,
        partition=deps.partitioner.fingerprint,
        chunk=fingerprint(
            "chunk",
            {
                "chunks": chunk_fingerprint(
                    job.profile,
                    deps.tokenizer.fingerprint,
                    code=deps.code_parser.fingerprint if deps.code_parser else "",
                ),
                "payload": PAYLOAD_VERSION,
                "labels": list(job.labels),
            },
        ),
        embed=embed_fingerprint(deps.embedder, deps.lexical),
    )


def embed_fingerprint(embedder: Embedder, lexical: LexicalEncoder) -> str:
    """Of both vectors of a point: what a generation is built under."""
    return fingerprint("embed", {"dense": embedder.fingerprint, "lexical": lexical.fingerprint})


def target(job: Job, deps: Dependencies, generation: int) -> Target:
    """What the plan compares the ledger with."""
    return Target(
        fingerprints(job, deps), generation, job.gone_after, job.force, job.accept, job.judge
    )


def listing_key(run_id: str) -> str:
    return f"runs/{run_id}/listing.jsonl"


def boilerplate_key(run_id: str) -> str:
    return f"runs/{run_id}/furniture.json"


def plan_key(run_id: str) -> str:
    return f"runs/{run_id}/plan.jsonl"


def batch_key(run_id: str, number: int) -> str:
    return f"runs/{run_id}/batch-{number:05d}.jsonl"


def raw_key(raw_hash: str) -> str:
    return f"raw/{raw_hash}"


# The stores, for the work on them that is no run over a source.


@dataclass(frozen=True, slots=True)
class Stores:
    """What upkeep works on; constructing them loads nothing heavy.

    vector_cache: what is kept of texts beside them, None for nothing.
    """

    ledger: Ledger
    artifacts: ArtifactStore
    index: VectorIndex
    clock: Clock = utc_now
    vector_cache: VectorCache | None = None
