"""What the ledger remembers."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from tidemark.domain.model import Fingerprints, Validators


class DocumentStatus(StrEnum):
    INDEXED = "indexed"
    QUARANTINED = "quarantined"
    """Failed by its own fault; its last good version, if it had one, is still live."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a document is quarantined.

    raw_hash, fingerprint: what was tried; it is tried again when either changes.
    media_type, charset: of the bytes that were tried; the document's own are of its live version.
    """

    stage: str
    message: str
    cure: str
    raw_hash: str
    fingerprint: str
    first_at: datetime
    last_at: datetime
    attempts: int = 1
    media_type: str = ""
    charset: str | None = None


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """One row of the ledger's ``document`` table.

    fetched_raw_hash: of the bytes that ``validators`` describe (the last fetched).
    raw_hash, content_hash, fingerprints, generation: of the indexed version; None before the first.
    fetched_at: when the indexed version was fetched (UTC).
    missing_since, missing_runs: since when, and for how many complete crawls, it was not reached.
    reason: why it was last written.
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


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """What the ledger knows of one point: enough to diff and to audit without reading the index."""

    point_id: UUID
    section_id: UUID
    chunk_index: int
    embed_hash: str
    payload_hash: str
    token_count: int


@dataclass(frozen=True, slots=True)
class SectionRecord:
    section_id: UUID
    parent_section_id: UUID | None
    ordinal: int
    heading_path: tuple[str, ...]
    payload_hash: str


@dataclass(frozen=True, slots=True)
class Touch:
    """A document that was seen and needs no work: what to remember of it."""

    document_id: UUID
    validators: Validators
    fetch_fingerprint: str
    fetched_raw_hash: str


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The record of a removed document; its snapshot stays for as long as housekeeping lets it."""

    document_id: UUID
    source: str
    uri: str
    title: str
    raw_hash: str | None
    removed_at: datetime
    reason: str
    run_id: str


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
