"""What the ledger remembers."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from tidemark.domain.chunks import Fingerprints
from tidemark.domain.documents import Validators
from tidemark.domain.hashing import Canonical, as_json


class DocumentStatus(StrEnum):
    INDEXED = "indexed"
    QUARANTINED = "quarantined"
    """Failed by its own fault; its last good version, if it had one, is still live."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a document is quarantined.

    stage: "size", "fetch", "partition", "chunk", "embed" or "index".
    raw_hash, fingerprint: what was tried, and the fingerprint of the stages up to the one that failed
        (``Fingerprints.up_to``); it is tried again when either changes.
    media_type, charset: of the bytes that were tried; the document's own are of its live version.
    stranded: the live version cannot be written again either, for its snapshot is lost; no run can bring it
        into another generation.
    """

    stage: str
    message: str
    hint: str
    raw_hash: str
    fingerprint: str
    first_at: datetime
    last_at: datetime
    attempts: int = 1
    media_type: str = ""
    charset: str | None = None
    stranded: bool = False


@dataclass(frozen=True, slots=True)
class HeldVersion:
    """A newer version that was not believed; what was live before still is.

    reason: a ``Suspicion``'s value.
    text_hash: of its text, to tell whether it is the same one run after run.
    runs: how many runs in a row have met it, the last of them ``run_id``.
    """

    reason: str
    detail: str
    text_hash: str
    since: datetime
    runs: int
    run_id: str


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """One row of the ledger's ``document`` table.

    fetched_raw_hash: of the bytes that ``validators`` describe (the last fetched).
    raw_hash, content_hash, fingerprints, generation: of the indexed version; None before the first.
    fetched_at: when the indexed version was fetched (UTC).
    missing_since, missing_runs: since when, and for how many complete crawls, it was not reached.
    reason: why it was last written.
    text_hash, text_length: of the live version's main text as its inspection measured it, None when it was
        not inspected.
    modified_at, link: of the live version (``RawDocument``).
    suspect: the newer version that is not believed, None when there is none.
    checksum: of its points and sections as they were written (``domain.hashing``); None when the vectors
        of some are not known.
    """

    document_id: UUID
    source: str
    uri: str
    title: str
    media_type: str
    charset: str | None
    status: DocumentStatus
    validators: Validators
    fetch_fingerprint: str
    fetched_raw_hash: str
    raw_hash: str | None
    content_hash: str | None
    fingerprints: Fingerprints | None
    generation: int | None
    sections: int
    chunks: int
    reason: str
    first_seen: datetime
    last_seen: datetime
    fetched_at: datetime
    indexed_at: datetime | None
    missing_since: datetime | None = None
    missing_runs: int = 0
    last_run_id: str = ""
    failure: Failure | None = None
    text_hash: str | None = None
    text_length: int | None = None
    modified_at: datetime | None = None
    link: str = ""
    suspect: HeldVersion | None = None
    checksum: str | None = None


@dataclass(frozen=True, slots=True)
class DocumentCounts:
    """How many documents there are, how many of them have an indexed version, and what that comes to.

    held: with a newer version that is not believed.
    """

    documents: int = 0
    indexed: int = 0
    quarantined: int = 0
    held: int = 0
    sections: int = 0
    chunks: int = 0


@dataclass(frozen=True, slots=True)
class VersionRecord:
    """What was live of a document from ``indexed_at`` on, and why it came to be.

    A document has one for each run that wrote it anew, whether its bytes had changed or the way they are cut;
    they are kept for as long as their snapshots are.
    """

    document_id: UUID
    run_id: str
    source: str
    uri: str
    title: str
    action: str
    reason: str
    detail: str
    raw_hash: str
    content_hash: str | None
    media_type: str
    charset: str | None
    fingerprints: Fingerprints
    generation: int | None
    sections: int
    chunks: int
    fetched_at: datetime
    modified_at: datetime | None
    indexed_at: datetime


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """What the ledger knows of one point: enough to diff and to audit without reading the index.

    vector_hash: of its vectors (``hashing.vectors_hash``), None when it is not known, and only the first
        part of it where the lexical vector is not.
    """

    point_id: UUID
    section_id: UUID
    chunk_index: int
    embed_hash: str
    payload_hash: str
    token_count: int
    vector_hash: str | None = None


@dataclass(frozen=True, slots=True)
class SectionRecord:
    section_id: UUID
    parent_section_id: UUID | None
    ordinal: int
    heading_path: tuple[str, ...]
    payload_hash: str


@dataclass(frozen=True, slots=True)
class Sighting:
    """A document that was seen and needs no work: what to remember of it."""

    document_id: UUID
    validators: Validators
    fetch_fingerprint: str
    fetched_raw_hash: str
    suspect: HeldVersion | None = None


class AliasKind(StrEnum):
    """Why another address shows a document."""

    ALIAS = "alias"
    """It redirects there, or names it as canonical."""
    DUPLICATE = "duplicate"
    """Its page has the same text."""
    MOVED = "moved"
    """The document stood there before."""


@dataclass(frozen=True, slots=True)
class Alias:
    """Another address of a document.

    validators, raw_hash, media_type, charset, text_hash, text_length, fetched_at: of a DUPLICATE's own bytes,
        so that it is not fetched again while unchanged, and can stand for itself once the other is gone.
    """

    source: str
    uri: str
    document_id: UUID
    kind: AliasKind
    seen_at: datetime
    validators: Validators = Validators()
    raw_hash: str | None = None
    media_type: str = ""
    charset: str | None = None
    text_hash: str | None = None
    text_length: int | None = None
    fetched_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class SourceState:
    """What is remembered of a source as a whole.

    state: ``CrawlEnd.state`` of the last crawl that was applied whole.
    boilerplate: digests of the blocks that are on most of its pages.
    furniture_pages: how many pages that was learnt from.
    """

    source: str
    state: str = ""
    boilerplate: tuple[int, ...] = ()
    boilerplate_pages: int = 0


TAKEN_DOWN = "taken_down"
"""The reason of a removal on request (``decide.Reason.TAKEN_DOWN``)."""


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The record of a removed document.

    Its snapshot, elements and vectors stay until ``expired``: should it come back, it does for nothing.

    blocked_raws, blocked_texts: of one that was taken down, the hashes of all bytes and of all main texts
        that were its own; nothing of what they said.
    all_sources: it was taken down from every source, those that are not known yet included.
    """

    document_id: UUID
    source: str
    uri: str
    title: str
    raw_hash: str | None
    removed_at: datetime
    reason: str
    run_id: str
    expired: bool = False
    blocked_raws: tuple[str, ...] = ()
    blocked_texts: tuple[str, ...] = ()
    all_sources: bool = False

    @property
    def taken_down(self) -> bool:
        """Was it removed on request, so that it is blocked?"""
        return self.reason == TAKEN_DOWN

    def moved_to(self, document_id: UUID, uri: str, raw_hash: str, now: datetime) -> "Tombstone":
        """That of the same document at the address, and with the bytes, that it was moving to."""
        return replace(self, document_id=document_id, uri=uri, raw_hash=raw_hash, removed_at=now)


class RunStatus(StrEnum):
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run over one source; ``summary`` is JSON (domain.summary), None while it runs."""

    run_id: str
    source: str
    trigger: str
    status: RunStatus
    started_at: datetime
    finished_at: datetime | None
    note: str
    summary: str | None


@dataclass(frozen=True, slots=True)
class RunDocument:
    """What one run did to one document, and why.

    seconds: wall time of this document's own work.
    """

    run_id: str
    document_id: UUID
    uri: str
    action: str
    reason: str
    detail: str = ""
    seconds: float = 0.0
    chunks_added: int = 0
    chunks_kept: int = 0
    chunks_removed: int = 0


class GenerationStatus(StrEnum):
    BUILDING = "building"
    LIVE = "live"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class GenerationRecord:
    """One physical pair of collections, built under one embedding fingerprint.

    dimension: length of the dense vectors.
    """

    index_name: str
    number: int
    embed_fingerprint: str
    dimension: int
    status: GenerationStatus
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One audit, of a source or (None) of the whole index.

    findings: counts by kind, the differences and what was checked. repaired: documents healed.
    left: what was still wrong when it ended, by kind; None where that was not kept.
    """

    source: str | None
    audited_at: datetime
    findings: dict[str, int]
    repaired: int
    left: dict[str, int] | None = None


@dataclass(frozen=True, slots=True)
class ChunkCounts:
    """Points written, left and deleted. ``embedded`` counts the texts the model was given."""

    embedded: int = 0
    kept: int = 0
    removed: int = 0

    def __add__(self, other: "ChunkCounts") -> "ChunkCounts":
        return ChunkCounts(
            self.embedded + other.embedded, self.kept + other.kept, self.removed + other.removed
        )


CHANGING = ("add", "update", "metadata", "restore", "remove")
"""Actions that change the index."""

TROUBLES = (
    "quarantined", "unreachable", "missing", "soft_404", "login_wall", "consent_wall", "parked",
    "needs_javascript", "shrunk", "repeated_text",
)  # fmt: skip
"""Reasons for which an unchanged document is not simply well."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The summary of one run over one source.

    documents, reasons: how many by action and by reason.
    seconds: wall seconds by stage.
    work: what the stages were asked to do (fetched, partitioned, chunked, embedded).
    complete, problem: whether the listing was complete, and why not.
    findings: the audit's, by kind; empty when clean.
    attention: URIs with what is wrong with them, the first few.
    guards: the guards that were passed, in words.
    reconciled: documents that differed between ledger and index (a store was restored, or lost something).
    quarantined: documents in quarantine when the run ended, ``too_many`` what is said of them when they are
        too many.
    held: it was planned and not applied, because a person must approve it first.
    waiting: what a new generation waits for until it goes live, and the hint; "" when there is none.
    """

    source: str
    run_id: str
    status: str
    documents: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    chunks: ChunkCounts = ChunkCounts()
    seconds: dict[str, float] = field(default_factory=dict)
    work: dict[str, int] = field(default_factory=dict)
    complete: bool = True
    problem: str = ""
    findings: dict[str, int] = field(default_factory=dict)
    attention: tuple[str, ...] = ()
    dry_run: bool = False
    guards: tuple[str, ...] = ()
    held: bool = False
    reconciled: int = 0
    quarantined: int = 0
    too_many: str = ""
    waiting: str = ""

    @property
    def changed(self) -> bool:
        """Did the run change the index?"""
        return any(self.documents.get(action) for action in CHANGING) or bool(
            self.chunks.embedded or self.chunks.removed
        )

    def as_dict(self) -> dict[str, Canonical]:
        return {
            **as_json(self),
            "seconds": {stage: round(s, 3) for stage, s in self.seconds.items()},
        }

    def sentence(self) -> str:
        """One line for a log or a note."""
        healed = ""
        if self.reconciled:
            healed = (
                f" {self.reconciled} documents differed between ledger and index, as after a backup was "
                "restored; they were looked at anew."
            )
        waiting = ""
        if self.quarantined and not self.too_many and not self.held and not self.dry_run:
            waiting = f"Warning: {self.quarantined} in quarantine (`tidemark quarantine`)."
        more = "".join(f" {told}" for told in (self.too_many, waiting, self.waiting) if told)
        return f"{self._done()}{healed}{more}"

    def _done(self) -> str:
        if self.held:
            return f"{self.source}: not applied. {' '.join(self.guards)}"
        if self.status == "failed" and not self.documents:
            return f"{self.source}: failed. {self.problem}"
        if self.dry_run:
            counts = ", ".join(f"{n} {action}" for action, n in sorted(self.documents.items()))
            asked = f" A person must approve: {' '.join(self.guards)}" if self.guards else ""
            return f"{self.source}: dry run; the plan is {counts or 'empty'}.{asked}"
        total = sum(self.seconds.values())
        if not self.changed and not self.problem and not self.documents.get("quarantine"):
            kept = self.documents.get("keep", 0) + self.documents.get("miss", 0)
            troubled = [f"{n} {r}" for r in TROUBLES if (n := self.reasons.get(r))]
            also = f", of which {', '.join(troubled)}" if troubled else ""
            return (
                f"{self.source}: nothing changed ({kept} documents checked{also}, {total:.1f} s)."
            )
        counts = ", ".join(f"{n} {action}" for action, n in sorted(self.documents.items()))
        line = (
            f"{self.source}: {counts or 'no documents'}; {self.chunks.embedded} chunks embedded, "
            f"{self.chunks.kept} kept, {self.chunks.removed} removed; {total:.1f} s."
        )
        return f"{line} Incomplete: {self.problem}" if self.problem else line


def add_seconds(total: dict[str, float], part: dict[str, float]) -> dict[str, float]:
    """Add up seconds by stage."""
    return {k: total.get(k, 0.0) + part.get(k, 0.0) for k in [*total, *(set(part) - set(total))]}
