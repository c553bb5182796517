"""Repair: every kind of difference is healed by the least work, source by source, and looked at again.

Documents are noted as pending and written again from their snapshots by the ordinary stages, which ask the
index what it holds and embed only what it has no good vector for. What belongs to no document is deleted by
id. All of it is done under the locks of the source and of the documents, so that it may run beside anything,
and the next run goes on where a repair was killed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, cast
from uuid import UUID

from tidemark.domain.chunks import PointWrite
from tidemark.domain.decide import Action, Decision, Reason, Target
from tidemark.domain.errors import PermanentError, TidemarkError
from tidemark.domain.records import DocumentRecord, DocumentStatus, RunStatus
from tidemark.ports.index import VectorIndex
from tidemark.stages.audit.compare import (
    PAGE,
    WINDOW,
    AuditDependencies,
    Comparison,
    Scope,
    pages,
)
from tidemark.stages.audit.drift import (
    Collection,
    DocumentName,
    Drift,
    Kind,
    Misattributed,
    document_of,
    look_up,
)
from tidemark.stages.audit.epochs import begin_epoch, epochs_differ
from tidemark.stages.codec import Planned
from tidemark.stages.crawl import with_site_boilerplate
from tidemark.stages.job import Dependencies, Job, target
from tidemark.stages.plan.plan import PlanSummary
from tidemark.stages.process.payloads import read_indexed
from tidemark.stages.process.process import BatchSummary, process
from tidemark.stages.report import begin, finish, from_ledger

TURNS = 3
"""What is left is tried again: a point that two documents laid claim to is right after the second turn."""
NAMED = 20
"""Documents that could not be healed, as far as they are named; all are counted."""
COUNTED = {
    "upsert_points": "points_written",
    "set_payloads": "payloads_set",
    "upsert_sections": "sections_written",
    "delete_points": "points_deleted",
    "delete_sections": "sections_deleted",
}
"""Writes to the index, and the names under which a repair counts them."""

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


def rewrite(
    job: Job, deps: Dependencies, target: Target, records: Iterable[DocumentRecord]
) -> BatchSummary:
    """Write documents again from their snapshots. Points that are there keep their vectors."""
    decisions = (
        Decision(r.document_id, r.uri, Action.UPDATE, Reason.REPAIR, r.raw_hash, snapshot=True)
        for r in records
    )
    return process(job, deps, target, (Planned(decision, None) for decision in decisions))


def repair_sources(
    deps: AuditDependencies,
    scope: Scope,
    drift: Drift,
    generation: int | None,
    sources: Iterable[str],
    repaired: Repaired,
) -> None:
    """Heal what was found, source by source; one that cannot be healed leaves the others to be.

    ``generation``: where documents are written, None when there is none under the configured model.
    ``sources``: those with differences, and those whose epochs are to agree again.
    ``repaired``: what is done and left is added to it.
    """
    # For all sources first, or one would delete as its own too much what is another's.
    _reassign(deps, drift)
    for source in sources:
        deps.progress.stage(f"repair {source}", drift.count_documents(source))
        try:
            with _locked(deps, source):
                _repair_source(deps, scope, drift, generation, source, repaired)
        except TidemarkError as error:
            repaired.skipped[source] = str(error)
            repaired.left += drift.counts(source) - drift.counts(source, served=True)
    _delete_unowned(_counted(deps.index, repaired.did), drift)


def _locked(deps: AuditDependencies, source: str) -> AbstractContextManager[None]:
    if not source:
        return nullcontext()  # Points that name no source are no run's.
    return deps.ledger.lock(source, wait_seconds=deps.wait_seconds)


def _repair_source(
    deps: AuditDependencies,
    scope: Scope,
    drift: Drift,
    generation: int | None,
    source: str,
    repaired: Repaired,
) -> None:
    known = next(drift.documents(source), None) is not None
    if not known and not deps.will_run(source):
        _SourceRepair(deps, scope, source, repaired).heal(drift)
        return
    if generation is None:
        raise PermanentError(
            "There is no generation under the configured model to repair it in.",
            f"Run `tidemark index {source}`, which begins one.",
        )
    ledger, index = deps.ledger, deps.index
    job, run_deps = deps.job_factory(source)
    run_deps = with_site_boilerplate(
        job, replace(run_deps, index=_counted(run_deps.index, repaired.did))
    )
    writer = _Writer(job, run_deps, target(job, run_deps, generation))
    agree = not epochs_differ(ledger, index, source, generation)
    begin(job, run_deps, "repair")
    status = RunStatus.FAILED
    try:
        if agree:
            begin_epoch(ledger, index, source, generation, job.run_id)
        left = _SourceRepair(deps, scope, source, repaired, writer, agree).heal(drift)
        # Not before all that differs is healed or noted: the epochs say that the stores can be believed.
        begin_epoch(ledger, index, source, generation, job.run_id)
        status = RunStatus.FAILED if left else RunStatus.SUCCESS
    finally:
        for event in ledger.runs.events(job.run_id):
            if event.action == Action.QUARANTINE.value:
                repaired.failures += 1
                if len(repaired.failed) < NAMED:
                    repaired.failed[event.uri] = event.detail
        summary = from_ledger(job, ledger, PlanSummary())
        finish(job, run_deps, replace(summary, status=status.value))


@dataclass(frozen=True, slots=True)
class _Writer:
    """What documents of a source are written with."""

    job: Job
    deps: Dependencies
    target: Target

    def write(self, records: Iterable[DocumentRecord], *, force: bool = False) -> BatchSummary:
        return rewrite(replace(self.job, force=force), self.deps, self.target, records)

    def has_failed(self, record: DocumentRecord) -> bool:
        """In this repair; it would fail again."""
        quarantined = record.status is DocumentStatus.QUARANTINED
        return quarantined and record.last_run_id == self.job.run_id


@dataclass(frozen=True, slots=True)
class _SourceRepair:
    """The repair of one source. writer: None for one of which no document is to be written."""

    deps: AuditDependencies
    scope: Scope
    source: str
    repaired: Repaired
    writer: _Writer | None = None
    epochs_agree: bool = True

    def heal(self, drift: Drift, turns: int = TURNS) -> int:
        """Heal what was found in the source, and look at it again. How many documents are left."""
        if self.writer is not None:
            _reassign(self.deps, drift)
            for page in pages(drift.documents(self.source), WINDOW):
                self._write(self.writer, drift, page)
        for page in pages(drift.orphans(self.source), WINDOW):
            self._delete_orphans(drift, page)
        with Drift() as left:
            Comparison(self.scope, left).compare_some(drift.concerned(self.source))
            remaining = left.count_documents()
            self.repaired.documents[self.source] += drift.count_documents(self.source) - remaining
            if remaining and turns > 1:
                return self.heal(left, turns - 1)
            self.repaired.left += left.counts() - left.counts(served=True)
            self.repaired.waiting[self.source] = sum(1 for _ in left.orphans())
        return remaining

    def _write(self, writer: _Writer, drift: Drift, page: Sequence[DocumentName]) -> None:
        ledger, did = self.deps.ledger, self.repaired.did
        records = ledger.documents.by_id([name.document_id for name in page])
        todo = {key: r for key, r in records.items() if not writer.has_failed(r)}
        # As in any run: killed from here on, the next one asks the index what it holds of them.
        pending = {key: record.uri for key, record in todo.items()}
        ledger.writes.open_intent(writer.job.run_id, self.source, pending)
        anew = drift.of_kinds(_EMBED_ANEW, todo)
        for keys, force in ((todo.keys() - anew, writer.job.force), (anew, True)):
            if keys:
                done = writer.write([todo[key] for key in keys], force=force)
                did["vectors_made"] += done.chunks.embedded
                did["vectors_reused"] += done.chunks.kept
        self.deps.progress.advance(len(page), page[-1].uri)

    def _delete_orphans(self, drift: Drift, page: Sequence[DocumentName]) -> None:
        """Delete, by id, what documents have where they should have nothing.

        A document that the ledger does not know is left to the next run where a backup of the ledger may
        have forgotten it, or where its first write was cut short: it may be healthy, with good vectors.
        """
        ledger, index = self.deps.ledger, _counted(self.deps.index, self.repaired.did)
        keys = [name.document_id for name in page]
        with ledger.lock_documents(keys):
            # What was in a generation that the repair has dropped is gone with it.
            existing = set(index.generations())
            records = ledger.documents.by_id(keys)
            may_return: set[UUID] = set()
            if self.writer is not None and self.deps.will_run(self.source):
                may_return = set(keys) - records.keys() - ledger.tombstones.by_id(keys).keys()
                if self.epochs_agree:
                    may_return &= ledger.writes.pending(among=keys).keys()
            for name in page:
                key, record = name.document_id, records.get(name.document_id)
                if self.writer is not None and key in may_return:
                    uris = {key: name.uri}
                    ledger.writes.open_intent(self.writer.job.run_id, self.source, uris)
                    continue
                for generation in existing.intersection(drift.generations_of(key)):
                    if record is not None and (
                        generation == record.generation or self.scope.serves(generation, record)
                    ):
                        continue
                    held = read_indexed(index, generation, key)
                    index.delete_points(generation, list(held.points))
                    index.delete_sections(generation, list(held.sections))
                if record is None:
                    ledger.writes.close_intent([key])


def _reassign(deps: AuditDependencies, drift: Drift) -> None:
    """Give points and sections the name of their document back; what else is wrong, the writing finds."""
    for page in pages(drift.misattributed(), WINDOW):
        with deps.ledger.lock_documents([found.document_id for found in page]):
            existing = set(deps.index.generations())
            for found in page:
                if found.generation in existing:
                    _reassign_one(deps.index, found)


def _reassign_one(index: VectorIndex, found: Misattributed) -> None:
    owner = {"document_id": str(found.document_id), "source": found.source}
    for point in look_up(index, found.generation, found.collection, [found.id]):
        write = PointWrite(found.id, {**point.payload, **owner})
        if found.collection is Collection.POINTS:
            index.set_payloads(found.generation, [write])
        else:
            index.upsert_sections(found.generation, [write])


def _delete_unowned(index: VectorIndex, drift: Drift) -> None:
    """Delete points and sections that name no document, if they still do not."""
    for collection in Collection:
        points = collection is Collection.POINTS
        delete = index.delete_points if points else index.delete_sections
        for page in pages(drift.unowned(collection), PAGE):
            for generation in {number for number, _ in page}.intersection(index.generations()):
                ids = [key for number, key in page if number == generation]
                found = look_up(index, generation, collection, ids)
                delete(generation, [p.point_id for p in found if document_of(p) is None])


class _Counted:
    """The index, with every write of points and sections added to a tally."""

    def __init__(self, index: VectorIndex, tally: Counter[str]) -> None:
        self._index = index
        self._tally = tally

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._index, name)
        return self._counting(method, COUNTED[name]) if name in COUNTED else method

    def _counting(self, method: Callable[..., None], what: str) -> Callable[..., None]:
        def call(generation: int, items: Sequence[object]) -> None:
            method(generation, items)
            self._tally[what] += len(items)

        return call


def _counted(index: VectorIndex, tally: Counter[str]) -> VectorIndex:
    """The same index; what is written through it is counted under the names of a repair's account."""
    return cast(VectorIndex, _Counted(index, tally))
