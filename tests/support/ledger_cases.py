"""Records for the tests of the ledger."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from tidemark.domain.chunks import Fingerprints
from tidemark.domain.documents import Validators
from tidemark.domain.identity import document_id, point_ids, section_id
from tidemark.domain.records import (
    ChunkRecord,
    DocumentRecord,
    DocumentStatus,
    Failure,
    HeldVersion,
    RunDocument,
    RunRecord,
    RunStatus,
    SectionRecord,
    Sighting,
    Tombstone,
)
from tidemark.ports.ledger import Ledger

NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
RUN = "run-1"
SOURCE = "handbook"
URI = "https://example.org/a"

SUSPECT = HeldVersion("shrunk", "from 900 to 10 characters", "text-2", NOON, 2, "run-1")
FAILURE = Failure(
    stage="partition",
    message="The file is encrypted.",
    hint="Remove the password.",
    raw_hash="raw-2",
    fingerprint="all-1",
    first_at=NOON,
    last_at=NOON + timedelta(hours=1),
    attempts=2,
    stranded=True,
)


def later(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def document(uri: str = URI, source: str = SOURCE, **changes: Any) -> DocumentRecord:
    """An indexed document."""
    record = DocumentRecord(
        document_id=document_id(source, uri),
        source=source,
        uri=uri,
        title="A title",
        media_type="text/html",
        charset="utf-8",
        status=DocumentStatus.INDEXED,
        validators=Validators(etag='W/"1"', size=2048, mtime=1772366400.123456),
        fetch_fingerprint="fetch-1",
        fetched_raw_hash="raw-1",
        raw_hash="raw-1",
        content_hash="content-1",
        fingerprints=Fingerprints("fetch-1", "partition-1", "chunk-1", "embed-1"),
        generation=1,
        sections=2,
        chunks=3,
        reason="new",
        first_seen=NOON,
        last_seen=NOON,
        fetched_at=NOON,
        indexed_at=later(1),
        last_run_id=RUN,
    )
    return replace(record, **changes)


def quarantined(uri: str = URI, source: str = SOURCE, **changes: Any) -> DocumentRecord:
    """A document that failed before it had any indexed version."""
    return document(
        uri,
        source,
        **{
            "status": DocumentStatus.QUARANTINED,
            "failure": FAILURE,
            "raw_hash": None,
            "content_hash": None,
            "fingerprints": None,
            "generation": None,
            "sections": 0,
            "chunks": 0,
            "indexed_at": None,
            **changes,
        },
    )


def sections_of(record: DocumentRecord, count: int = 2) -> list[SectionRecord]:
    """Sections in document order, each the parent of the next."""
    paths = [tuple(f"Heading {n}" for n in range(depth)) for depth in range(count)]
    ids = [section_id(record.document_id, path, 0) for path in paths]
    return [
        SectionRecord(ids[n], ids[n - 1] if n else None, n, paths[n], f"section-payload-{n}")
        for n in range(count)
    ]


def chunks_of(
    record: DocumentRecord, sections: list[SectionRecord], texts: list[str] | None = None
) -> list[ChunkRecord]:
    """One chunk a text, dealt to the sections in turn."""
    texts = texts if texts is not None else ["one", "two", "three"]
    return [
        ChunkRecord(
            point_id=point,
            section_id=sections[n % len(sections)].section_id,
            chunk_index=n,
            embed_hash=f"embed-{text}",
            payload_hash=f"payload-{text}-{n}",
            token_count=10 + n,
        )
        for n, (point, text) in enumerate(
            zip(point_ids(record.document_id, texts), texts, strict=True)
        )
    ]


def event(record: DocumentRecord, run_id: str = RUN, **changes: Any) -> RunDocument:
    return replace(
        RunDocument(run_id, record.document_id, record.uri, action="add", reason="new"), **changes
    )


def run(run_id: str = RUN, source: str = SOURCE, **changes: Any) -> RunRecord:
    """A run that has not ended."""
    record = RunRecord(run_id, source, "manual", RunStatus.RUNNING, NOON, None, "", None)
    return replace(record, **changes)


def tombstone(record: DocumentRecord, run_id: str = RUN, **changes: Any) -> Tombstone:
    removal = Tombstone(
        record.document_id,
        record.source,
        record.uri,
        record.title,
        record.raw_hash,
        later(60),
        "gone",
        run_id,
    )
    return replace(removal, **changes)


def sighting(key: UUID, **changes: Any) -> Sighting:
    return replace(Sighting(key, Validators(etag='"2"'), "fetch-2", "raw-2"), **changes)


def commit(
    ledger: Ledger,
    record: DocumentRecord,
    run_id: str = RUN,
    *,
    texts: list[str] | None = None,
    **changes: Any,
) -> DocumentRecord:
    """Write a document, of these chunks, and the event that explains it."""
    sections = sections_of(record)
    done = event(record, run_id, **changes)
    ledger.writes.commit(record, sections, chunks_of(record, sections, texts), done)
    return record
