"""Remove one document: because it is gone, or because it stands elsewhere now."""

from dataclasses import replace

from tidemark.domain.decide import ELSEWHERE, Action, Reason
from tidemark.domain.identity import document_id
from tidemark.domain.records import (
    Alias,
    AliasKind,
    DocumentRecord,
    RunDocument,
    Tombstone,
)
from tidemark.ports import Ledger
from tidemark.stages.codec import Planned
from tidemark.stages.job import Dependencies, Job, is_later
from tidemark.stages.process.payloads import read_indexed
from tidemark.stages.process.vectors import archive_vectors


def remove(job: Job, deps: Dependencies, planned: Planned, generation: int) -> int | None:
    """Remove one document from every generation, then from the ledger; how many points it had.

    None when a later run has seen it, so that this plan is out of date and decides nothing any more, and
    when what its address leads to is not indexed after all: then it stays as it is.
    """
    planned = _as_moved(job, deps, planned)
    document, target = planned.decision.document_id, planned.decision.target
    ids = [document, document_id(job.source, target)] if target else [document]
    with deps.ledger.lock_documents(ids):
        record = deps.ledger.documents.get(document)
        run = deps.ledger.runs.get(job.run_id)
        if record and run and is_later(record.last_seen, run.started_at, deps.clock):
            deps.ledger.runs.record_events([_superseded(job, planned, record)])
            return None
        end = _end(job, deps, planned)
        if record is not None and record.raw_hash and target and not _is_live(end):
            deps.ledger.runs.record_events([_not_there_yet(job, planned, record)])
            return None
        if record is not None and planned.decision.reason is Reason.TAKEN_DOWN:
            return None  # Undone meanwhile; or its takedown was cut short, and the next run finishes it.
        # The note first: were this cut short, a document that came back must not pass as unchanged.
        deps.ledger.writes.open_intent(job.run_id, job.source, {document: planned.decision.uri})
        if record is not None and planned.decision.reason not in ELSEWHERE:
            _keep_vectors(deps, record)
        removed = _delete_points(job, deps, planned, generation)
        alias = replace(alias_of(job, planned, deps), document_id=end.document_id) if end else None
        _forget(job, deps, planned, record, removed, alias)
    return removed


def _as_moved(job: Job, deps: Dependencies, planned: Planned) -> Planned:
    """What is gone as moved, where a run that died had it written at its new address already."""
    decision, ledger = planned.decision, deps.ledger
    if decision.reason is not Reason.GONE or planned.observed is not None:
        return planned
    record = ledger.documents.get(decision.document_id)
    if record is None or record.raw_hash is None:
        return planned
    for other in ledger.documents.by_raw(job.source, [record.raw_hash]):
        if other.first_seen >= record.first_seen and has_moved_from(ledger, other, record.uri):
            moved = replace(decision, reason=Reason.MOVED, target=other.uri)
            return replace(planned, decision=moved)
    return planned


def has_moved_from(ledger: Ledger, record: DocumentRecord, uri: str) -> bool:
    """Did a document come to be by moving from an address?"""
    if record.reason != Reason.MOVED.value:
        return False
    detail = f"from {uri}"
    return any(
        (version.reason, version.uri) == (Reason.MOVED.value, record.uri)
        and (version.detail == detail or version.detail.startswith(f"{detail}; "))
        for version in ledger.versions.of(record.document_id)
    )


def _keep_vectors(deps: Dependencies, record: DocumentRecord) -> None:
    if record.fingerprints is None or record.generation not in deps.index.generations():
        return
    if record.generation is not None:
        with deps.index.session():
            archive_vectors(deps, record.document_id, record.generation, record.fingerprints.embed)


def _end(job: Job, deps: Dependencies, planned: Planned) -> DocumentRecord | None:
    """The document that an address leads to, which may itself have become another address meanwhile."""
    target = planned.decision.target
    if not target:
        return None
    found = deps.ledger.documents.get(document_id(job.source, target))
    if found is None and (aliases := deps.ledger.sources.aliases_by_uri([target], job.source)):
        found = deps.ledger.documents.get(aliases[0].document_id)
    # One that is led back to has nowhere to go.
    leads_back = found is not None and found.document_id == planned.decision.document_id
    return None if leads_back else found


def _is_live(record: DocumentRecord | None) -> bool:
    return record is not None and record.raw_hash is not None


def _not_there_yet(job: Job, planned: Planned, record: DocumentRecord) -> RunDocument:
    return RunDocument(
        job.run_id,
        record.document_id,
        record.uri,
        Action.KEEP.value,
        Reason.UNREACHABLE.value,
        f"leads to {planned.decision.target}, which is not indexed",
        chunks_kept=record.chunks,
    )


def _superseded(job: Job, planned: Planned, record: DocumentRecord) -> RunDocument:
    return RunDocument(
        job.run_id,
        record.document_id,
        record.uri,
        Action.KEEP.value,
        Reason.SUPERSEDED.value,
        "a later run has seen it",
        chunks_kept=record.chunks,
    )


def _delete_points(job: Job, deps: Dependencies, planned: Planned, generation: int) -> int:
    """Delete what any generation has of a document; how many points the one that is written had.

    Of one that stands elsewhere now searches are answered from the live generation until this one is live:
    there it goes with that generation, or with the document that it has become.
    """
    removed, document = 0, planned.decision.document_id
    with deps.index.session():
        live = deps.index.live()
        building = live not in (None, generation)
        moved = building and planned.decision.reason in ELSEWHERE
        before = [
            document_id(job.source, alias.uri)
            for alias in (deps.ledger.sources.aliases_of(document) if building else [])
        ]
        for number in deps.index.generations():
            if moved and number == live:
                continue
            for one in (document, *before):
                held = read_indexed(deps.index, number, one)
                deps.index.delete_points(number, list(held.points))
                deps.index.delete_sections(number, list(held.sections))
                removed += len(held.points) if number == generation else 0
    return removed


def _removal(job: Job, planned: Planned, removed: int) -> RunDocument:
    decision = planned.decision
    return RunDocument(
        job.run_id,
        decision.document_id,
        decision.uri,
        decision.action.value,
        decision.reason.value,
        decision.detail,
        chunks_removed=removed,
    )


def _forget(
    job: Job,
    deps: Dependencies,
    planned: Planned,
    record: DocumentRecord | None,
    removed: int,
    alias: Alias | None,
) -> None:
    decision, event = planned.decision, _removal(job, planned, removed)
    if record is None:
        # Only the remains of a write that was cut short: there is no document to remember.
        deps.ledger.writes.close_intent([decision.document_id])
        deps.ledger.runs.record_events([event])
        deps.ledger.sources.save_aliases([alias] if alias else [])
        return
    deps.ledger.writes.remove(
        Tombstone(
            record.document_id,
            record.source,
            record.uri,
            record.title,
            record.raw_hash,
            deps.clock(),
            decision.reason.value,
            job.run_id,
        ),
        event,
        alias,
    )


def alias_of(job: Job, planned: Planned, deps: Dependencies) -> Alias:
    """What an address is from now on that leads to another one."""
    decision, observed = planned.decision, planned.observed
    target = document_id(job.source, decision.target)
    kind = AliasKind(decision.reason.value)
    now = deps.clock()
    if kind is not AliasKind.DUPLICATE or observed is None:
        return Alias(job.source, decision.uri, target, kind, now)
    return Alias(
        job.source,
        decision.uri,
        target,
        kind,
        now,
        observed.validators,
        observed.raw_hash,
        observed.media_type or "",
        observed.charset,
        observed.text_hash,
        observed.text_length,
        observed.fetched_at,
    )
