"""What every ledger makes of a document's row and of the event that explains it: a version."""

from dataclasses import replace
from datetime import datetime

from tidemark.domain.decide import Action
from tidemark.domain.records import DocumentRecord, RunDocument, Tombstone, VersionRecord


def committed_version(record: DocumentRecord, event: RunDocument) -> VersionRecord | None:
    """The version that a document written anew becomes.

    None for one whose last good version was only written again beside a failure: it was live before.
    """
    if event.action == Action.QUARANTINE.value or record.indexed_at is None:
        return None
    return _version(record, event, record.indexed_at)


def updated_version(
    record: DocumentRecord, event: RunDocument, raw_hash_before: str | None
) -> VersionRecord | None:
    """The version that a document becomes whose bytes changed and whose content did not, else None.

    It is live since it was seen, with bytes fetched just before: the record's own times are those of the
    points, which stay as they were.
    """
    if record.raw_hash == raw_hash_before or record.indexed_at is None:
        return None
    since = max(record.indexed_at, record.last_seen)
    version = _version(record, event, since)
    return replace(version, fetched_at=since) if version else None


def removed_version(
    record: DocumentRecord | None, tombstone: Tombstone, event: RunDocument
) -> VersionRecord | None:
    """What tells that from then on nothing of a document was live.

    None where nothing was before, and for one that is taken down: nothing is to be kept of it.
    """
    if record is None or tombstone.taken_down:
        return None
    version = _version(record, event, tombstone.removed_at)
    return replace(version, reason=tombstone.reason, chunks=0, sections=0) if version else None


def _version(
    record: DocumentRecord, event: RunDocument, indexed_at: datetime
) -> VersionRecord | None:
    if record.raw_hash is None or record.fingerprints is None:
        return None
    return VersionRecord(
        document_id=record.document_id,
        run_id=event.run_id,
        source=record.source,
        uri=record.uri,
        title=record.title,
        action=event.action,
        reason=event.reason,
        detail=event.detail,
        raw_hash=record.raw_hash,
        content_hash=record.content_hash,
        media_type=record.media_type,
        charset=record.charset,
        fingerprints=record.fingerprints,
        generation=record.generation,
        sections=record.sections,
        chunks=record.chunks,
        fetched_at=record.fetched_at,
        modified_at=record.modified_at,
        indexed_at=indexed_at,
    )
