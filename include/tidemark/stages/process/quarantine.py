"""Quarantine: a document that fails by its own fault is recorded, and its last good version stays live."""

from dataclasses import replace
from datetime import datetime
from uuid import UUID

from tidemark.domain.decide import Action, Decision, Reason, oversize_mark
from tidemark.domain.documents import Outcome, Validators
from tidemark.domain.errors import DocumentError
from tidemark.domain.records import DocumentRecord, DocumentStatus, Failure, RunDocument
from tidemark.stages.codec import Planned
from tidemark.stages.job import Dependencies, Job, raw_key
from tidemark.stages.process.payloads import read_indexed
from tidemark.stages.process.prepare import Context, Prepared, Version, as_indexed, prepare


def quarantine(ctx: Context, version: Version, error: DocumentError) -> RunDocument:
    """Record a document's own failure; its last good version, if it has one, stays live."""
    job, decision, record, now = ctx.job, version.planned.decision, version.record, ctx.deps.clock()
    before = record.failure if record else None
    if version.snapshot and error.stage == "fetch":
        observed = version.planned.observed
        if observed is not None and observed.outcome is Outcome.TOO_LARGE:
            generation = ctx.target.generation
            return quarantine_unfetched(job, ctx.deps, version.planned, generation, stranded=True)
        # What there is to fetch is the newer version that fails: the lost one does not come back so.
        if record is not None and before is not None and before.stage != "fetch":
            return _strand(ctx, record, before)
    failure = replace(
        _failure(error.stage, error.message, error.hint, before, now),
        raw_hash=version.raw_hash,
        fingerprint=ctx.target.fingerprints.up_to(error.stage),
        media_type=version.media_type,
        charset=version.charset,
    )
    never_indexed = replace(
        _blank(job, decision, now),
        media_type=version.media_type,
        charset=version.charset,
        fetched_raw_hash=version.raw_hash,
        fetched_at=version.fetched_at,
    )
    failed = replace(
        record or never_indexed,
        status=DocumentStatus.QUARANTINED,
        failure=failure,
        # A lost snapshot must be fetched again, so nothing may be known of it.
        validators=Validators() if error.stage == "fetch" else version.validators,
        last_run_id=job.run_id,
        reason=Reason.FAILED.value,
    )
    if not version.snapshot:
        failed = replace(
            failed,
            fetch_fingerprint=ctx.target.fingerprints.fetch,
            fetched_raw_hash=version.raw_hash,
            last_seen=now,
            missing_since=None,
            missing_runs=0,
        )
    event = _event(job, failed, f"{error.stage}: {error}")
    ctx.deps.ledger.writes.update(failed, event)
    return event


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
    record = deps.ledger.documents.get(decision.document_id)
    before = record.failure if record else None
    hint = "Raise TIDEMARK_MAX_DOCUMENT_MEGABYTES, split it, or exclude it."
    failure = replace(
        _failure("size", f"{decision.uri} {observed.detail}.", hint, before, now),
        raw_hash=oversize_mark(observed.detail),
    )
    if record is not None and (stranded or (before is not None and before.stranded)):
        failure = _stranded(record, failure)
    # Nothing is remembered of the version that was not fetched, so that it is looked at each time.
    failed = replace(
        record or _blank(job, decision, now),
        status=DocumentStatus.QUARANTINED,
        failure=failure,
        validators=Validators(),
        last_seen=now,
        missing_since=None,
        missing_runs=0,
        last_run_id=job.run_id,
        reason=Reason.FAILED.value,
    )
    event = _event(job, failed, f"size: {failure.message} {failure.hint}", failed.chunks)
    if written is not None:
        event = replace(
            event,
            chunks_added=written.chunks_added,
            chunks_kept=written.chunks_kept,
            chunks_removed=written.chunks_removed,
        )
    deps.ledger.writes.update(failed, event)
    if failed.raw_hash is None and deps.ledger.writes.pending(among=[failed.document_id]):
        _leave_nothing(deps, generation, failed.document_id)
    return event


def last_good(ctx: Context, version: Version, event: RunDocument) -> Prepared | RunDocument:
    """Of a document that fails: its last good version, whole and in this generation, or nothing at all.

    Needed where a write of it was cut short, or where that version is in another generation.
    """
    record = ctx.deps.ledger.documents.get(version.document_id)
    if record is None or record.raw_hash is None:
        _leave_nothing(ctx.deps, ctx.target.generation, version.document_id)
        return event
    if version.snapshot:
        return event
    good = as_indexed(version.planned, record, in_flight=version.in_flight)
    try:
        outcome = prepare(ctx, replace(good, failed=event))
    except DocumentError as error:
        failure = record.failure
        if error.stage != "fetch" or failure is None or failure.stage == "fetch":
            return event  # A later run tries again.
        return _strand(ctx, record, failure)
    return outcome if isinstance(outcome, Prepared) else event


def _failure(stage: str, message: str, hint: str, before: Failure | None, now: datetime) -> Failure:
    return Failure(
        stage=stage,
        message=message,
        hint=hint,
        raw_hash="",
        fingerprint="",
        first_at=before.first_at if before else now,
        last_at=now,
        attempts=before.attempts + 1 if before else 1,
    )


def _event(job: Job, failed: DocumentRecord, detail: str, kept: int = 0) -> RunDocument:
    return RunDocument(
        job.run_id,
        failed.document_id,
        failed.uri,
        Action.QUARANTINE.value,
        Reason.FAILED.value,
        detail,
        chunks_kept=kept,
    )


def _strand(ctx: Context, record: DocumentRecord, failure: Failure) -> RunDocument:
    """Note that a document that fails has lost the snapshot of its last good version too."""
    failure = _stranded(record, failure)
    detail = f"{failure.stage}: {failure.message} {failure.hint}"
    event = _event(ctx.job, record, detail, record.chunks)
    failed = replace(
        record, failure=failure, last_run_id=ctx.job.run_id, reason=Reason.FAILED.value
    )
    ctx.deps.ledger.writes.update(failed, event)
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


def _blank(job: Job, decision: Decision, now: datetime) -> DocumentRecord:
    """A document of which nothing was ever indexed."""
    return DocumentRecord(
        document_id=decision.document_id,
        source=job.source,
        uri=decision.uri,
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


def _leave_nothing(deps: Dependencies, generation: int, document: UUID) -> None:
    """Delete the remains of a write that was cut short, of a document without a good version."""
    held = read_indexed(deps.index, generation, document)
    deps.index.delete_points(generation, list(held.points))
    deps.index.delete_sections(generation, list(held.sections))
    deps.ledger.writes.close_intent([document])
