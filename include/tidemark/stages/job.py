"""What a run is given: which source, how, and the tools to do it with."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from tidemark.domain.hashing import fingerprint
from tidemark.domain.model import Fingerprints
from tidemark.domain.plan import Target
from tidemark.domain.profile import ProfileChoice
from tidemark.ports import (
    ArtifactStore,
    Clock,
    CodeParser,
    Embedder,
    Ledger,
    LexicalEncoder,
    Partitioner,
    Progress,
    Source,
    Tokenizer,
    VectorIndex,
    quiet,
)
from tidemark.stages.chunk import chunk_fingerprint

PAYLOAD_VERSION = 2
"""Raised when points of an unchanged chunk get another payload than before."""


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Job:
    """One run over one source.

    run_id: unique over all sources; also the folder of the run's artifacts.
    profile: which chunking profile each document gets.
    gone_after: complete crawls without it until a page counts as gone.
    batch_documents, batch_bytes: bounds of one mapped task.
    limit: documents with content to look at, at most; None for all.
    declared: names of all declared sources; a new generation goes live when each has been indexed.
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


@dataclass(frozen=True, slots=True)
class Tools:
    """The ports a run works with. Constructing them loads nothing heavy.

    sentence_embedder: of the profiles that cut by meaning; it may remember what it embedded.
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
    clock: Clock = utc_now
    progress: Progress = field(default_factory=quiet)


def fingerprints(job: Job, tools: Tools) -> Fingerprints:
    """The fingerprints that a healthy document of this source has now."""
    return Fingerprints(
        fetch=tools.source.fingerprint,
        partition=tools.partitioner.fingerprint,
        chunk=fingerprint(
            "chunk",
            {
                "chunks": chunk_fingerprint(
                    job.profile,
                    tools.tokenizer.fingerprint,
                    code=tools.code_parser.fingerprint if tools.code_parser else "",
                ),
                "payload": PAYLOAD_VERSION,
                "labels": list(job.labels),
            },
        ),
        embed=embed_fingerprint(tools.embedder, tools.lexical),
    )


def embed_fingerprint(embedder: Embedder, lexical: LexicalEncoder) -> str:
    """Of both vectors of a point: what a generation is built under."""
    return fingerprint("embed", {"dense": embedder.fingerprint, "lexical": lexical.fingerprint})


def target(job: Job, tools: Tools, generation: int) -> Target:
    """What the plan compares the ledger with."""
    return Target(fingerprints(job, tools), generation, job.gone_after, job.force)


def listing_key(run_id: str) -> str:
    return f"runs/{run_id}/listing.jsonl"


def plan_key(run_id: str) -> str:
    return f"runs/{run_id}/plan.jsonl"


def batch_key(run_id: str, number: int) -> str:
    return f"runs/{run_id}/batch-{number:05d}.jsonl"


def raw_key(raw_hash: str) -> str:
    return f"raw/{raw_hash}"
