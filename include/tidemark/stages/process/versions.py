"""Which version of a document a decision is about: what was fetched, what is held, or what is live."""

from datetime import datetime

from tidemark.domain.decide import Decision, Reason, Target
from tidemark.domain.documents import PartitionedDocument, RawDocument
from tidemark.domain.errors import DocumentError
from tidemark.domain.records import DocumentRecord, VersionRecord
from tidemark.ports import ArtifactStore, Partitioner
from tidemark.stages.codec import Planned, decode_elements
from tidemark.stages.job import Dependencies, Job, is_later, raw_key
from tidemark.stages.process.prepare import Version, elements_key


def version_of(
    deps: Dependencies, planned: Planned, record: DocumentRecord | None, in_flight: bool
) -> Version | None:
    """The version to index; None when a later run has seen a newer one, or removed the document."""
    decision, observed = planned.decision, planned.observed
    if decision.snapshot:
        if record is None or record.raw_hash != decision.raw_hash:
            return None
        return as_indexed(planned, record, in_flight=in_flight)
    if observed is None or decision.raw_hash is None:
        return None
    if observed.raw_hash is None:
        return _not_modified(planned, record, in_flight=in_flight)
    fetched_at = observed.fetched_at
    if fetched_at is None:
        raise AssertionError(f"{observed.uri} was fetched at no time")
    if _is_older(deps, decision, record, fetched_at):
        return None
    return Version(
        planned,
        decision.raw_hash,
        observed.media_type or "application/octet-stream",
        observed.charset,
        observed.validators,
        _first_fetched(record or _origin(deps, decision), decision.raw_hash, fetched_at),
        record,
        in_flight,
        text_hash=observed.text_hash,
        text_length=observed.text_length,
        modified_at=observed.modified_at,
        link=observed.link,
    )


def as_indexed(planned: Planned, record: DocumentRecord, *, in_flight: bool) -> Version:
    """The version that the ledger has as live."""
    return Version(
        planned,
        record.raw_hash or "",
        record.media_type,
        record.charset,
        record.validators,
        record.fetched_at,
        record,
        in_flight,
        text_hash=record.text_hash,
        text_length=record.text_length,
        modified_at=record.modified_at,
        link=record.link,
    )


def _origin(deps: Dependencies, decision: Decision) -> DocumentRecord | None:
    """The record of the document that this one is under another address."""
    if decision.reason is not Reason.MOVED or decision.origin is None:
        return None
    return deps.ledger.document(decision.origin)


def _not_modified(
    planned: Planned, record: DocumentRecord | None, *, in_flight: bool
) -> Version | None:
    """What the ledger knows of the bytes last fetched holds for them still."""
    if record is None or record.fetched_raw_hash != planned.decision.raw_hash:
        return None
    failure = record.failure
    failed = failure is not None and failure.raw_hash == record.fetched_raw_hash
    return Version(
        planned,
        record.fetched_raw_hash,
        failure.media_type if failure and failed and failure.media_type else record.media_type,
        failure.charset if failure and failed else record.charset,
        record.validators,
        failure.first_at if failure and failed else record.fetched_at,
        record,
        in_flight,
        text_hash=record.text_hash,
        text_length=record.text_length,
        modified_at=record.modified_at,
        link=record.link,
    )


def _is_older(
    deps: Dependencies, decision: Decision, record: DocumentRecord | None, fetched_at: datetime
) -> bool:
    """Was the document indexed from later bytes, or removed, after these were fetched?"""
    if record is None:
        stone = deps.ledger.tombstones_by_id([decision.document_id]).get(decision.document_id)
        # What was taken down stays out, however late this run fetched it.
        return stone is not None and (
            stone.taken_down or is_later(stone.removed_at, fetched_at, deps.clock)
        )
    other = record.raw_hash not in (None, decision.raw_hash)
    return other and is_later(record.fetched_at, fetched_at, deps.clock)


def _first_fetched(record: DocumentRecord | None, raw_hash: str, fetched_at: datetime) -> datetime:
    """When these bytes were first fetched: equal bytes fetched again are not a new version."""
    if record is not None and record.raw_hash == raw_hash:
        return record.fetched_at
    return fetched_at


def is_done(job: Job, record: DocumentRecord, version: Version, target: Target) -> bool:
    """Has an earlier attempt of this run indexed the version already?"""
    return (
        record.last_run_id == job.run_id
        and record.raw_hash == version.raw_hash
        and record.fingerprints == target.fingerprints
        and record.generation == target.generation
        and not version.in_flight
    )


# History: what a document was at some time, from the snapshot of that version.


def recall(
    artifacts: ArtifactStore, partitioner: Partitioner, version: VersionRecord
) -> tuple[PartitionedDocument, bool]:
    """The content of a version, and whether it is read as it was then.

    It is, where its elements are still kept; else its snapshot is read with today's parser. Raises
    ``DocumentError`` when that is gone too, or cannot be read.
    """
    try:
        key = elements_key(version, version.fingerprints.partition)
        return decode_elements(artifacts.read(key)), True
    except KeyError:
        pass  # Only the snapshot is kept for as long as the version.
    try:
        content = artifacts.read(raw_key(version.raw_hash))
    except KeyError:
        raise DocumentError(
            "fetch",
            f"The snapshot of {version.uri} from {version.fetched_at:%Y-%m-%d %H:%M} UTC is gone.",
            "TIDEMARK_HISTORY_DAYS says for how long those of replaced versions are kept.",
        ) from None
    raw = RawDocument(version.uri, content, version.media_type, version.charset, version.fetched_at)
    return partitioner.partition(raw), False
