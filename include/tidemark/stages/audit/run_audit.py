"""Audit: is the index what the ledger says? Both ways, streaming, and repaired on demand.

One pass over the index adds up a checksum per document; one pass over the ledger's documents compares them.
Only what differs is compared piece by piece (``stages.auditing``). This module is what a run needs of it.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from uuid import UUID

from tidemark.domain.decide import Action, Decision, Reason, Target
from tidemark.domain.records import DocumentRecord
from tidemark.ports import Ledger, VectorIndex
from tidemark.stages.audit.compare import PAGE, compare_all, compare_some, pages
from tidemark.stages.audit.drift import Drift, Kind
from tidemark.stages.audit.scope import scope_of
from tidemark.stages.codec import Planned
from tidemark.stages.job import Dependencies, Job
from tidemark.stages.process.payloads import read_indexed
from tidemark.stages.process.process import BatchSummary, process


@dataclass(frozen=True, slots=True)
class AuditFindings:
    """checked: points compared. The rest count what is wrong, as ``Kind`` names it.

    documents: the ids of those to repair. orphans: of those that should have nothing in the index.
    """

    checked: int = 0
    missing_points: int = 0
    extra_points: int = 0
    stale_payload: int = 0
    missing_sections: int = 0
    extra_sections: int = 0
    documents: frozenset[UUID] = field(default_factory=frozenset)
    orphans: frozenset[UUID] = field(default_factory=frozenset)
    wrong_vectors: int = 0
    wrong_model: int = 0

    @property
    def clean(self) -> bool:
        return not any(self.counts().values())

    def counts(self) -> dict[str, int]:
        return {
            Kind.MISSING_POINTS.value: self.missing_points,
            Kind.EXTRA_POINTS.value: self.extra_points,
            Kind.STALE_PAYLOAD.value: self.stale_payload,
            Kind.MISSING_SECTIONS.value: self.missing_sections,
            Kind.EXTRA_SECTIONS.value: self.extra_sections,
            Kind.WRONG_VECTORS.value: self.wrong_vectors,
            Kind.WRONG_MODEL.value: self.wrong_model,
        }

    def __add__(self, other: "AuditFindings") -> "AuditFindings":
        summed = {kind: n + other.counts()[kind] for kind, n in self.counts().items()}
        return AuditFindings(
            checked=self.checked + other.checked,
            documents=self.documents | other.documents,
            orphans=self.orphans | other.orphans,
            **summed,
        )


def audit(
    ledger: Ledger,
    index: VectorIndex,
    generation: int,
    source: str | None = None,
    documents: Iterable[UUID] | None = None,
    undecided: AbstractSet[UUID] = frozenset(),
) -> AuditFindings:
    """Compare the ledger with a generation, for all documents of a source, or for those given.

    ``undecided``: those that are left out (see the function of that name).

    Takes the locks of documents that seem to differ, for as long as each is looked at: not to be called
    with the index held open, or another process may wait for both the other way round.
    """
    scope = replace(scope_of(ledger, index, [generation]), undecided=frozenset(undecided))
    with Drift() as drift:
        if documents is None:
            seen = compare_all(scope, source, drift)
        else:
            seen = compare_some(scope, documents, drift)
        counts = drift.counts()
        return AuditFindings(
            checked=seen.checked,
            missing_points=counts[Kind.MISSING_POINTS],
            extra_points=counts[Kind.EXTRA_POINTS],
            stale_payload=counts[Kind.STALE_PAYLOAD],
            missing_sections=counts[Kind.MISSING_SECTIONS],
            extra_sections=counts[Kind.EXTRA_SECTIONS],
            documents=frozenset(named.document_id for named in drift.documents()),
            orphans=frozenset(named.document_id for named in drift.orphans()),
            wrong_vectors=counts[Kind.WRONG_VECTORS],
            wrong_model=counts[Kind.WRONG_MODEL],
        )


def undecided(ledger: Ledger, source: str) -> set[UUID]:
    """Documents whose write was cut short, or that the ledger has lost, and that no run could reach since.

    The index may hold something of them. Whether that is to stay cannot be told before they are seen again.
    """
    begun = ledger.writes.pending(source)
    live = {r.document_id for r in _records(ledger, begun) if r.raw_hash is not None}
    return begun.keys() - live


def counts_agree(ledger: Ledger, index: VectorIndex, generation: int, source: str) -> bool:
    """The cheap check of every run: as many points and sections of the source as the ledger has.

    Documents whose write was cut short are not counted on either side.
    """
    begun = ledger.writes.pending(source)
    known = [r for r in _records(ledger, begun) if r.generation == generation]
    counts = ledger.documents.counts(source, generation)
    points = counts.chunks - sum(r.chunks for r in known)
    sections = counts.sections - sum(r.sections for r in known)
    where: dict[str, str | list[str]] = {"source": source}
    with index.session():
        found_points = index.count_points(generation, where)
        found_sections = index.count_sections(generation, where)
        for page in pages(iter(begun), PAGE):
            these: dict[str, str | list[str]] = {**where, "document_id": [str(key) for key in page]}
            found_points -= index.count_points(generation, these)
            found_sections -= index.count_sections(generation, these)
    return (found_points, found_sections) == (points, sections)


def _records(ledger: Ledger, keys: Iterable[UUID]) -> Iterator[DocumentRecord]:
    for page in pages(iter(keys), PAGE):
        yield from ledger.documents.by_id(page).values()


def remove_orphans(index: VectorIndex, generation: int, orphans: Iterable[UUID]) -> None:
    """Delete, by id, the points and sections of documents that the ledger does not have."""
    with index.session():
        for document in orphans:
            held = read_indexed(index, generation, document)
            index.delete_points(generation, list(held.points))
            index.delete_sections(generation, list(held.sections))


def repair(
    job: Job, deps: Dependencies, target: Target, records: Iterable[DocumentRecord]
) -> BatchSummary:
    """Write documents again from their snapshots. Points that are there keep their vectors."""
    return process(job, deps, target, (_to_repair(record) for record in records))


def _to_repair(record: DocumentRecord) -> Planned:
    decision = Decision(
        record.document_id,
        record.uri,
        Action.UPDATE,
        Reason.REPAIR,
        record.raw_hash,
        snapshot=True,
    )
    return Planned(decision, None)
