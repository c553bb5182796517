"""Audit: is the index what the ledger says? Both ways, streaming, and repaired on demand."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from uuid import UUID

from tidemark.domain.hashing import digest_of
from tidemark.domain.model import StoredPoint
from tidemark.domain.plan import Action, Decision, Reason, Target
from tidemark.domain.records import DocumentRecord
from tidemark.ports import Ledger, VectorIndex
from tidemark.stages.codec import Planned
from tidemark.stages.job import Job, Tools
from tidemark.stages.payloads import read_indexed
from tidemark.stages.process import BatchSummary, process

PAGE = 100


@dataclass(frozen=True, slots=True)
class AuditFindings:
    """checked: points compared. The rest count what is wrong; ``documents`` are the ids to repair.

    missing_points, missing_sections: in the ledger, not in the index.
    extra_points, extra_sections: in the index, not in the ledger.
    stale_payload: in both, with another payload than the ledger's.
    """

    checked: int = 0
    missing_points: int = 0
    extra_points: int = 0
    stale_payload: int = 0
    missing_sections: int = 0
    extra_sections: int = 0
    documents: frozenset[UUID] = field(default_factory=frozenset)
    orphans: frozenset[UUID] = field(default_factory=frozenset)
    repaired: int = 0

    @property
    def clean(self) -> bool:
        return not any(self.counts().values())

    def counts(self) -> dict[str, int]:
        return {
            "missing_points": self.missing_points,
            "extra_points": self.extra_points,
            "stale_payload": self.stale_payload,
            "missing_sections": self.missing_sections,
            "extra_sections": self.extra_sections,
        }


def audit(
    ledger: Ledger,
    index: VectorIndex,
    generation: int,
    source: str | None = None,
    documents: Iterable[UUID] | None = None,
) -> AuditFindings:
    """Compare the ledger with the index, for all documents of a source, or for those given."""
    counts: Counter[str] = Counter()
    broken: set[UUID] = set()
    orphans: set[UUID] = set()
    with index.session():
        for page in _pages(_records(ledger, source, documents)):
            _compare(ledger, index, generation, page, counts, broken)
        if documents is None:
            _find_orphans(ledger, index, generation, source, counts, orphans)
    return AuditFindings(
        checked=counts["checked"],
        missing_points=counts["missing_points"],
        extra_points=counts["extra_points"],
        stale_payload=counts["stale_payload"],
        missing_sections=counts["missing_sections"],
        extra_sections=counts["extra_sections"],
        documents=frozenset(broken),
        orphans=frozenset(orphans),
    )


def counts_agree(ledger: Ledger, index: VectorIndex, generation: int, source: str) -> bool:
    """The cheap check of every run: as many points and sections of the source as the ledger has."""
    where: dict[str, str | list[str]] = {"source": source}
    with index.session():
        return index.count_points(generation, where) == ledger.count_chunks(
            source, generation
        ) and index.count_sections(generation, where) == ledger.count_sections(source, generation)


def _records(
    ledger: Ledger, source: str | None, documents: Iterable[UUID] | None
) -> Iterator[DocumentRecord]:
    if documents is None:
        return ledger.documents(source)
    return iter(ledger.documents_by_id(list(documents)).values())


def _pages(records: Iterator[DocumentRecord]) -> Iterator[list[DocumentRecord]]:
    while page := list(islice(records, PAGE)):
        yield page


def _compare(
    ledger: Ledger,
    index: VectorIndex,
    generation: int,
    page: Sequence[DocumentRecord],
    counts: Counter[str],
    broken: set[UUID],
) -> None:
    """Check that what the ledger names is in the index, with the payloads the ledger knows."""
    live = [r for r in page if r.generation == generation]
    existing = set(index.generations())
    for record in page:
        if record.generation is not None and record.generation not in existing:
            # Its whole generation is gone, and no run has written it again.
            counts["checked"] += record.chunks
            counts["missing_points"] += record.chunks
            counts["missing_sections"] += record.sections
            broken.add(record.document_id)
    where: dict[str, str | list[str]] = {"document_id": [str(r.document_id) for r in live]}
    if not live:
        return
    points = _by_document(index.scan_points(generation, where))
    sections = _by_document(index.scan_sections(generation, where))
    for record in live:
        key = record.document_id
        found = Counter(
            _differences(
                {c.point_id: c.payload_hash for c in ledger.chunks(key)},
                points.get(key, {}),
                "points",
            )
        ) + Counter(
            _differences(
                {s.section_id: s.payload_hash for s in ledger.sections(key)},
                sections.get(key, {}),
                "sections",
            )
        )
        counts.update(found)
        counts["checked"] += record.chunks
        if found:
            broken.add(key)


def _by_document(points: Iterable[StoredPoint]) -> dict[UUID, dict[UUID, str]]:
    found: dict[UUID, dict[UUID, str]] = {}
    for point in points:
        document = UUID(str(point.payload["document_id"]))
        found.setdefault(document, {})[point.point_id] = digest_of(point.payload)
    return found


def _differences(expected: dict[UUID, str], found: dict[UUID, str], what: str) -> dict[str, int]:
    differences = {
        f"missing_{what}": sum(1 for key in expected if key not in found),
        f"extra_{what}": sum(1 for key in found if key not in expected),
        "stale_payload": sum(1 for key, h in expected.items() if found.get(key, h) != h),
    }
    return {name: count for name, count in differences.items() if count}


def _find_orphans(
    ledger: Ledger,
    index: VectorIndex,
    generation: int,
    source: str | None,
    counts: Counter[str],
    orphans: set[UUID],
) -> None:
    """Find points and sections of documents that the ledger does not have in this generation."""
    where: dict[str, str | list[str]] | None = {"source": source} if source else None
    for name, scan in (
        ("extra_points", index.scan_points(generation, where)),
        ("extra_sections", index.scan_sections(generation, where)),
    ):
        while page := list(islice(scan, PAGE * 10)):
            owners = [UUID(str(point.payload["document_id"])) for point in page]
            known = ledger.documents_by_id(list(set(owners)))
            for owner in owners:
                record = known.get(owner)
                if record is None or record.generation != generation:
                    counts[name] += 1
                    orphans.add(owner)


def remove_orphans(index: VectorIndex, generation: int, orphans: Iterable[UUID]) -> None:
    """Delete, by id, the points and sections of documents that the ledger does not have."""
    with index.session():
        for document in orphans:
            held = read_indexed(index, generation, document)
            index.delete_points(generation, list(held.points))
            index.delete_sections(generation, list(held.sections))


def repair(
    job: Job, tools: Tools, target: Target, records: Iterable[DocumentRecord]
) -> BatchSummary:
    """Write documents again from their snapshots. Points that are there keep their vectors."""
    return process(job, tools, target, (_to_repair(record) for record in records))


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
