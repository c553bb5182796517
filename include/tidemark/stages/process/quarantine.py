"""Quarantine: a document that fails by its own fault is recorded, and its last good version stays live."""

from dataclasses import replace
from datetime import datetime
from uuid import UUID

from tidemark.domain.decide import Action, Reason, Target, oversize_mark
from tidemark.domain.documents import Outcome, Validators
from tidemark.domain.errors import DocumentError
from tidemark.domain.records import DocumentRecord, DocumentStatus, Failure, RunDocument
from tidemark.stages.codec import Planned
from tidemark.stages.job import Dependencies, Job, raw_key
from tidemark.stages.process.payloads import read_indexed
from tidemark.stages.process.prepare import Meter, Prepared, Version, prepare
from tidemark.stages.process.versions import as_indexed


def quarantine(
    job: Job, deps: Dependencies, target: Target, version: Version, error: DocumentError
) -> RunDocument:
    """Record a document's own failure; its last good version, if it has one, stays live."""
    decision, record, now = version.planned.decision, version.record, deps.clock()
    before = record.failure if record else None
    if version.snapshot and error.stage == "fetch":
        if _is_too_large(version.planned):
            return quarantine_unfetched(
                job, deps, version.planned, target.generation, stranded=True
            )
        # What there is to fetch is the newer version that fails: the lost one does not come back so.
        if record is not None and before is not None and before.stage != "fetch":
            return _strand(job, deps, record, before)
    failure = Failure(
        stage=error.stage,
        message=error.message,
        hint=error.hint,
        raw_hash=version.raw_hash,
        fingerprint=target.fingerprints.up_to(error.stage),
        first_at=before.first_at if before else now,
        last_at=now,
        attempts=before.attempts + 1 if before else 1,
        media_type=version.media_type,
        charset=version.charset,
    )
    # A lost snapshot must be fetched again, so nothing may be known of it.
    validators = Validators() if error.stage == "fetch" else version.validators
    event = RunDocument(
        job.run_id,
        decision.document_id,
        decision.uri,
        Action.QUARANTINE.value,
        Reason.FAILED.value,
        f"{error.stage}: {error}",
    )
    failed = replace(
        record or _never_indexed(job, version, now),
        status=DocumentStatus.QUARANTINED,
        failure=failure,
        validators=validators,
        last_run_id=job.run_id,
        reason=Reason.FAILED.value,
    )
    if not version.snapshot:
        failed = replace(
            failed,
            fetch_fingerprint=target.fingerprints.fetch,
            fetched_raw_hash=version.raw_hash,
            last_seen=now,
            missing_since=None,
            missing_runs=0,
        )
    deps.ledger.update_document(failed, event)
    return event


def _is_too_large(planned: Planned) -> bool:
    return planned.observed is not None and planned.observed.outcome is Outcome.TOO_LARGE


def _strand(job: Job, deps: Dependencies, record: DocumentRecord, failure: Failure) -> RunDocument:
    """Note that a document that fails has lost the snapshot of its last good version too."""
    stranded = _stranded(record, failure)
    event = RunDocument(
        job.run_id,
        record.document_id,
        record.uri,
        Action.QUARANTINE.value,
        Reason.FAILED.value,
        f"{stranded.stage}: {stranded.message} {stranded.hint}",
        chunks_kept=record.chunks,
    )
    deps.ledger.update_document(
        replace(record, failure=stranded, last_run_id=job.run_id, reason=Reason.FAILED.value), event
    )
    return event


def _stranded(record: DocumentRecord, failure: Failure) -> Failure:
    if failure.stranded:
        return failure
    hint = (
        f"{failure.hint} Its last good version cannot be written again, for its snapshot is lost too: if "
        f"it cannot be mended, put {raw_key(record.raw_hash or '')} back into the artifact store and run "
        "`tidemark retry`, or give it up with `tidemark takedown`."
    )
    return replace(failure, hint=hint.strip(), stranded=True)


def _never_indexed(job: Job, version: Version, now: datetime) -> DocumentRecord:
    decision = version.planned.decision
    return replace(
        _blank(job, decision.document_id, decision.uri, now),
        media_type=version.media_type,
        charset=version.charset,
        validators=version.validators,
        fetched_raw_hash=version.raw_hash,
        fetched_at=version.fetched_at,
    )


def _blank(job: Job, document: UUID, uri: str, now: datetime) -> DocumentRecord:
    """A document of which nothing was ever indexed."""
    return DocumentRecord(
        document_id=document,
        source=job.source,
        uri=uri,
        title="",
        media_type="",
        charset=None,
        status=DocumentStatus.QUARANTINED,
        validators=Validators(),
        fetch_fingerprint="",
        fetched_raw_hash="",
        raw_hash=None,
        content_hash=None,
        fingerprints=None,
        generation=None,
        sections=0,
        chunks=0,
        reason=Reason.FAILED.value,
        first_seen=now,
        last_seen=now,
        fetched_at=now,
        indexed_at=None,
    )


def last_good(
    job: Job, deps: Dependencies, target: Target, version: Version, event: RunDocument, meter: Meter
) -> Prepared | RunDocument:
    """Of a document that fails: its last good version, whole and in this generation, or nothing at all.

    Needed where a write of it was cut short, or where that version is in another generation.
    """
    document = version.planned.decision.document_id
    record = deps.ledger.document(document)
    if record is not None and record.raw_hash is not None and not version.snapshot:
        good = as_indexed(version.planned, record, in_flight=version.in_flight)
        good = replace(good, failed=event)
        try:
            outcome = prepare(job, deps, target, good, meter)
        except DocumentError as error:
            failure = record.failure
            if error.stage != "fetch" or failure is None or failure.stage == "fetch":
                return event  # A later run tries again.
            return _strand(job, deps, record, failure)
        if isinstance(outcome, Prepared):
            return outcome
    elif record is None or record.raw_hash is None:
        _leave_nothing(deps, target.generation, document)
    return event


def _leave_nothing(deps: Dependencies, generation: int, document: UUID) -> None:
    """Delete the remains of a write that was cut short, of a document without a good version."""
    held = read_indexed(deps.index, generation, document)
    deps.index.delete_points(generation, list(held.points))
    deps.index.delete_sections(generation, list(held.sections))
    deps.ledger.settle([document])


def quarantine_unfetched(
    job: Job,
    deps: Dependencies,
    planned: Planned,
    generation: int,
    written: RunDocument | None = None,
    *,
    stranded: bool = False,
) -> RunDocument:
    """Record a document that is too large to be fetched; its last good version, if any, stays live.

    ``written``: what it took to put that version right, where it had to be written again. ``stranded``: it
    could not be, for its snapshot is lost.
    """
    decision, observed, now = planned.decision, planned.observed, deps.clock()
    if observed is None:
        raise AssertionError(f"{decision.uri} is too large, and was not observed")
    record = deps.ledger.document(decision.document_id)
    before = record.failure if record else None
    failure = Failure(
        stage="size",
        message=f"{decision.uri} {observed.detail}.",
        hint="Raise TIDEMARK_MAX_DOCUMENT_MEGABYTES, split it, or exclude it.",
        raw_hash=oversize_mark(observed.detail),
        fingerprint="",
        first_at=before.first_at if before else now,
        last_at=now,
        attempts=before.attempts + 1 if before else 1,
    )
    if record is not None and (stranded or (before is not None and before.stranded)):
        failure = _stranded(record, failure)
    known = record or replace(
        _blank(job, decision.document_id, decision.uri, now), validators=Validators()
    )
    # Nothing is remembered of the version that was not fetched, so that it is looked at each time.
    failed = replace(
        known,
        status=DocumentStatus.QUARANTINED,
        failure=failure,
        validators=Validators(),
        last_seen=now,
        missing_since=None,
        missing_runs=0,
        last_run_id=job.run_id,
        reason=Reason.FAILED.value,
    )
    event = RunDocument(
        job.run_id,
        decision.document_id,
        decision.uri,
        Action.QUARANTINE.value,
        Reason.FAILED.value,
        f"size: {failure.message} {failure.hint}",
        chunks_added=written.chunks_added if written else 0,
        chunks_kept=written.chunks_kept if written else known.chunks,
        chunks_removed=written.chunks_removed if written else 0,
    )
    deps.ledger.update_document(failed, event)
    if known.raw_hash is None and deps.ledger.begun([known.document_id]):
        _leave_nothing(deps, generation, known.document_id)
    return event
