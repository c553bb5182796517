"""Reconcile: are the ledger and the index of one time? A run asks this before it plans.

Each run that writes puts a fresh tide mark for its source into the ledger and into the index, before its
first write and after its last. A store that is restored from a backup comes back with the mark of that time,
so the marks disagree, and what the ledger says of the index cannot be trusted. Then the source is compared as
a whole, and every document that differs is noted as one whose write was cut short. For those a run asks the
index itself what it holds, embeds what is not there, and deletes what nobody knows.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from urllib.parse import urldefrag
from uuid import UUID, uuid4

from tidemark.domain.decide import ELSEWHERE, Reason
from tidemark.ports import Ledger, VectorIndex
from tidemark.stages.audit.run_audit import audit, counts_agree
from tidemark.stages.job import Dependencies, Job

PAGE = 500


def in_step(ledger: Ledger, index: VectorIndex, source: str, generation: int) -> bool:
    """Do ledger and index have the same mark and, but for writes that were cut short, the same counts?

    The mark is compared in the generation that searches are answered from too, while another is being built.
    """
    mark = ledger.sources.epoch(source)
    with index.session():
        if any(index.epochs(n, source) != (mark, mark) for n in _marked(index, generation)):
            return False
        return counts_agree(ledger, index, generation, source)


def _marked(index: VectorIndex, generation: int) -> list[int]:
    """The generations that have a source's mark: the one that is written, and the live one."""
    live = index.live()
    return [generation] if live in (None, generation) else [generation, live]


def reconcile(job: Job, deps: Dependencies, generation: int) -> int:
    """Note all documents of the source that differ between ledger and index; how many.

    0, and next to no work, when the stores are in step. Safe to repeat, safe to kill: the marks agree again
    only after all is noted.
    """
    if in_step(deps.ledger, deps.index, job.source, generation):
        return 0
    deps.progress.stage("compare", None)
    # Not in a session: the audit waits for documents that are being written, whose writer wants the index.
    found = audit(deps.ledger, deps.index, generation, job.source)
    wrong = found.documents | found.orphans
    for other in _marked(deps.index, generation)[1:]:
        wrong |= _to_go(deps, other, job.source)
    noted, differing = 0, iter(wrong)
    while page := list(islice(differing, PAGE)):
        uris = dict(_addresses(deps, generation, page))
        deps.ledger.writes.open_intent(job.run_id, job.source, uris)
        noted += len(uris)
    advance(deps.ledger, deps.index, job.source, generation, job.run_id)
    return noted


def _to_go(deps: Dependencies, live: int, source: str) -> frozenset[UUID]:
    """What nobody knows of in the live generation while another is built: it must not wait for that.

    What only stands elsewhere now does wait: it is there in the generation that is built.
    """
    orphans = audit(deps.ledger, deps.index, live, source).orphans
    graves = deps.ledger.tombstones.by_id(list(orphans))
    moved = {key for key, grave in graves.items() if Reason(grave.reason) in ELSEWHERE}
    return orphans - moved


def advance(ledger: Ledger, index: VectorIndex, source: str, generation: int, run_id: str) -> None:
    """Put a fresh mark into both stores: to be done before the first of a run's writes.

    A kill between the two makes the next run compare the source.
    """
    put_mark(ledger, index, source, _marked(index, generation), fresh_mark(run_id))


def fresh_mark(run_id: str) -> str:
    """A mark unlike any before, also when a run is run again."""
    return f"{run_id} {uuid4().hex[:12]}"


def put_mark(
    ledger: Ledger, index: VectorIndex, source: str, generations: Iterable[int], mark: str
) -> None:
    """Put one mark into the ledger and into some generations."""
    ledger.sources.write_epoch(source, mark)
    for generation in generations:
        index.write_epoch(generation, source, mark)


def close(job: Job, deps: Dependencies, generation: int) -> None:
    """A fresh mark after the last of a run's writes, if it has written.

    So that a store that is restored from a backup taken in the middle of a run is told from one of its end.
    """
    if deps.ledger.sources.epoch(job.source).startswith(f"{job.run_id} "):
        advance(deps.ledger, deps.index, job.source, generation, "after " + job.run_id)


def _addresses(
    deps: Dependencies, generation: int, documents: Iterable[UUID]
) -> Iterator[tuple[UUID, str]]:
    wanted = list(documents)
    known = deps.ledger.documents.by_id(wanted)
    graves = deps.ledger.tombstones.by_id([key for key in wanted if key not in known])
    with deps.index.session():
        for key in wanted:
            found = known.get(key) or graves.get(key)
            yield key, found.uri if found else _address_in_index(deps.index, generation, key)


def _address_in_index(index: VectorIndex, generation: int, document: UUID) -> str:
    """The address that the points of a document name, which the ledger does not know."""
    where: dict[str, str | list[str]] = {"document_id": str(document)}
    scans = [
        scan(number, where)
        for number in _marked(index, generation)
        for scan in (index.scan_points, index.scan_sections)
    ]
    for scan in scans:
        for point in scan:
            return urldefrag(str(point.payload.get("source_uri", ""))).url
    return ""
