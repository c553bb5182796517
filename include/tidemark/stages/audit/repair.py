"""Repair: every kind of difference is healed by the least work, source by source, and looked at again.

Documents are written again from their snapshots by the ordinary stages, which ask the index what it holds and
embed only what it has no good vector for. What belongs to no document is deleted by id. All of it is done
under the locks of the source and of the documents, so that it may run beside anything, and notes of what is
being written are left in the ledger, so that the next run goes on where a repair was killed.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from uuid import UUID

from tidemark.domain.chunks import PointWrite
from tidemark.domain.decide import Action, Target
from tidemark.domain.errors import PermanentError, TidemarkError
from tidemark.domain.hashing import Canonical
from tidemark.domain.records import DocumentRecord, DocumentStatus, RunStatus
from tidemark.ports import VectorIndex
from tidemark.stages.audit.compare import WINDOW, compare_some, pages
from tidemark.stages.audit.counting import counted
from tidemark.stages.audit.drift import Drift, Kind, Named, Stray, What
from tidemark.stages.audit.given import AuditDependencies
from tidemark.stages.audit.reconcile import advance
from tidemark.stages.audit.run_audit import repair as write_again
from tidemark.stages.audit.scope import Scope
from tidemark.stages.audit.sums import document_of
from tidemark.stages.crawl import with_site_boilerplate
from tidemark.stages.job import Dependencies, Job, target
from tidemark.stages.plan.plan import PlanSummary
from tidemark.stages.process.payloads import read_indexed
from tidemark.stages.report import begin, finish, from_ledger

TURNS = 3
"""What is left is tried again: a point that two documents laid claim to is right after the second turn."""
NAMED = 20
"""Documents that could not be healed, as far as they are named; all are counted."""

_EMBED_ANEW = (Kind.WRONG_MODEL, Kind.NOT_FOUND)
"""Kinds for which no vector of the document is to be trusted."""


@dataclass(slots=True)
class Repaired:
    """What was healed and how; the fields are those of ``AuditReport``. documents: healed, by source."""

    documents: Counter[str] = field(default_factory=Counter)
    did: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    failed: dict[str, str] = field(default_factory=dict)
    failures: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    waiting: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Writer:
    """What documents of the source are written with."""

    job: Job
    deps: Dependencies
    target: Target


@dataclass(frozen=True, slots=True)
class _Healing:
    """The repair of one source. writer: None for one of which no document is to be written."""

    given: AuditDependencies
    scope: Scope
    source: str
    repaired: Repaired
    writer: _Writer | None = None
    in_step: bool = True


def repair_sources(
    given: AuditDependencies,
    scope: Scope,
    drift: Drift,
    generation: int | None,
    sources: Iterable[str],
) -> Repaired:
    """Heal what was found, source by source; one that cannot be healed leaves the others to be.

    ``generation``: where documents are written, None when there is none under the configured model.
    ``sources``: those with differences, and those whose tide marks are to be put in step again.
    """
    repaired = Repaired()
    # For all sources first, or one would delete as its own too much what is another's.
    _adopt_strays(given, drift)
    for source in sources:
        given.progress.stage(f"repair {source}", drift.count(source))
        try:
            with _locked(given, source):
                _heal_source(given, scope, drift, generation, source, repaired)
        except TidemarkError as error:
            repaired.skipped[source] = str(error)
            repaired.left += drift.counts(source) - drift.served(source)
    _remove_loose(given, drift, repaired)
    return repaired


def _locked(given: AuditDependencies, source: str) -> AbstractContextManager[None]:
    if not source:
        return nullcontext()  # Points that name no source are no run's.
    return given.ledger.lock(source, wait_seconds=given.wait_seconds)


def out_of_step(given: AuditDependencies, source: str, generation: int | None) -> bool:
    """Do the tide marks of the stores disagree, as after one of them was restored from a backup?

    ``generation``: the one that the next run writes. A source that was never written to it has its marks
    where its documents are.
    """
    if generation is None:
        return False
    mark = given.ledger.sources.epoch(source)
    found = given.index.epochs(generation, source)
    if found == (mark, mark):
        return False
    return any(found) or not _in_step_elsewhere(given, source, generation, mark)


def _in_step_elsewhere(given: AuditDependencies, source: str, generation: int, mark: str) -> bool:
    ledger, index = given.ledger, given.index
    existing = index.generations()
    holding = [n for n in existing if ledger.documents.counts(source, n).chunks]
    if generation in holding:
        return False
    # A source whose documents are all gone has marks and nothing else.
    return any(index.epochs(n, source) == (mark, mark) for n in holding or existing)


def _heal_source(
    given: AuditDependencies,
    scope: Scope,
    drift: Drift,
    generation: int | None,
    source: str,
    repaired: Repaired,
) -> None:
    known = next(drift.documents(source), None) is not None
    if not known and not given.will_run(source):
        _heal(_Healing(given, scope, source, repaired), drift, TURNS)
        return
    if generation is None:
        raise PermanentError(
            "There is no generation under the configured model to repair it in.",
            f"Run `tidemark index {source}`, which begins one.",
        )
    job, deps = given.hand(source)
    deps = with_site_boilerplate(job, replace(deps, index=counted(deps.index, repaired.did)))
    writer = _Writer(job, deps, target(job, deps, generation))
    in_step = not out_of_step(given, source, generation)
    begin(job, deps, "repair")
    status = RunStatus.FAILED
    try:
        if in_step:
            advance(deps.ledger, given.index, source, generation, job.run_id)
        healing = _Healing(given, scope, source, repaired, writer, in_step)
        left = _heal(healing, drift, TURNS)
        # Not before all that differs is healed or noted: the marks say that the stores can be believed.
        advance(deps.ledger, given.index, source, generation, job.run_id)
        status = RunStatus.FAILED if left else RunStatus.SUCCESS
    finally:
        _note_failures(writer, repaired)
        summary = from_ledger(job, deps.ledger, PlanSummary())
        finish(job, deps, replace(summary, status=status.value))


def _heal(healing: _Healing, drift: Drift, turns: int) -> int:
    """Heal what was found in the source, and look at it again. How many documents are left."""
    source, repaired = healing.source, healing.repaired
    if healing.writer is not None:
        _adopt_strays(healing.given, drift)
        for page in pages(drift.documents(source), WINDOW):
            _write_again(healing, healing.writer, drift, page)
    for page in pages(drift.orphans(source), WINDOW):
        _remove_orphans(healing, drift, page)
    with Drift() as left:
        compare_some(healing.scope, drift.concerned(source), left)
        remaining = left.count()
        repaired.documents[source] += drift.count(source) - remaining
        if remaining and turns > 1:
            return _heal(healing, left, turns - 1)
        repaired.left += left.counts() - left.served()
        repaired.waiting[source] = sum(1 for _ in left.orphans())
    return remaining


def _write_again(healing: _Healing, writer: _Writer, drift: Drift, page: Sequence[Named]) -> None:
    ledger, job = writer.deps.ledger, writer.job
    records = ledger.documents.by_id([named.document_id for named in page])
    todo = {key: r for key, r in records.items() if not _has_failed(writer, r)}
    # As in any run: killed from here on, the next one asks the index what it holds of them.
    ledger.writes.open_intent(
        job.run_id, healing.source, {key: record.uri for key, record in todo.items()}
    )
    anew = drift.of_kinds(_EMBED_ANEW, todo)
    for keys, how in ((todo.keys() - anew, job), (anew, replace(job, force=True))):
        if keys:
            done = write_again(how, writer.deps, writer.target, [todo[key] for key in keys])
            healing.repaired.did["vectors_made"] += done.chunks.embedded
            healing.repaired.did["vectors_reused"] += done.chunks.kept
    healing.given.progress.advance(len(page), page[-1].uri)


def _has_failed(writer: _Writer, record: DocumentRecord) -> bool:
    """In this repair; it would fail again."""
    quarantined = record.status is DocumentStatus.QUARANTINED
    return quarantined and record.last_run_id == writer.job.run_id


def _note_failures(writer: _Writer, repaired: Repaired) -> None:
    for event in writer.deps.ledger.runs.events(writer.job.run_id):
        if event.action == Action.QUARANTINE.value:
            repaired.failures += 1
            if len(repaired.failed) < NAMED:
                repaired.failed[event.uri] = event.detail


def _adopt_strays(given: AuditDependencies, drift: Drift) -> None:
    """Give points and sections the name of their document back; what else is wrong, the writing finds."""
    for page in pages(drift.strays(), WINDOW):
        with given.ledger.lock_documents([stray.document_id for stray in page]):
            existing = set(given.index.generations())
            for stray in page:
                if stray.generation in existing:
                    _adopt(given.index, stray)


def _adopt(index: VectorIndex, stray: Stray) -> None:
    points = stray.what is What.POINTS
    look_up = index.get_points if points else index.get_sections
    for found in look_up(stray.generation, [stray.id]):
        named: dict[str, Canonical] = {
            **found.payload,
            "document_id": str(stray.document_id),
            "source": stray.source,
        }
        write = PointWrite(stray.id, named)
        if points:
            index.set_payloads(stray.generation, [write])
        else:
            index.upsert_sections(stray.generation, [write])


def _remove_orphans(healing: _Healing, drift: Drift, page: Sequence[Named]) -> None:
    """Delete, by id, what documents have where they should have nothing.

    A document that the ledger does not know is left to the next run where a backup of the ledger may have
    forgotten it, or where its first write was cut short: it may be healthy, and its vectors are good.
    """
    ledger, writer = healing.given.ledger, healing.writer
    keys = [named.document_id for named in page]
    with ledger.lock_documents(keys):
        # What was in a generation that the repair has dropped is gone with it.
        existing = set(healing.given.index.generations())
        records = ledger.documents.by_id(keys)
        unknown = set(keys) - records.keys() - ledger.tombstones.by_id(keys).keys()
        forgotten = {*ledger.writes.pending(among=keys)} if healing.in_step else set(keys)
        may_return = unknown & forgotten if healing.given.will_run(healing.source) else set()
        for named in page:
            key = named.document_id
            if writer is not None and key in may_return:
                ledger.writes.open_intent(writer.job.run_id, healing.source, {key: named.uri})
                continue
            _clear(healing, existing.intersection(drift.places(key)), key, records.get(key))
            if key not in records:
                ledger.writes.close_intent([key])


def _clear(
    healing: _Healing, generations: Iterable[int], key: UUID, record: DocumentRecord | None
) -> None:
    index, scope = counted(healing.given.index, healing.repaired.did), healing.scope
    for generation in generations:
        own = record is not None and generation == record.generation
        if own or (record is not None and scope.serves(generation, record)):
            continue
        held = read_indexed(index, generation, key)
        index.delete_points(generation, list(held.points))
        index.delete_sections(generation, list(held.sections))


def _remove_loose(given: AuditDependencies, drift: Drift, repaired: Repaired) -> None:
    """Delete points and sections that name no document, if they still do not."""
    index = counted(given.index, repaired.did)
    for what in What:
        points = what is What.POINTS
        look_up = index.get_points if points else index.get_sections
        delete = index.delete_points if points else index.delete_sections
        for page in pages(drift.loose(what), 500):
            for generation in {generation for generation, _ in page} & set(index.generations()):
                ids = [key for number, key in page if number == generation]
                found = look_up(generation, ids)
                delete(generation, [p.point_id for p in found if document_of(p) is None])
