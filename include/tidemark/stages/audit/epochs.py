"""Epochs: are the ledger and the index of one time? A run asks this before it plans.

Each run that writes puts a fresh epoch for its source into the ledger and into the index, before its first
write and after its last. A store that is restored from a backup comes back with the epoch of that time, so
the epochs disagree, and what the ledger says of the index cannot be trusted. Then the source is compared as
a whole, and every document that differs is noted as one whose write was cut short. For those a run asks the
index itself what it holds, embeds what is not there, and deletes what nobody knows.
"""

from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import urldefrag
from uuid import UUID, uuid4

from tidemark.domain.decide import ELSEWHERE, Reason
from tidemark.ports.index import VectorIndex
from tidemark.ports.ledger import Ledger
from tidemark.stages.audit.compare import PAGE, compare_source, counts_agree, pages
from tidemark.stages.job import Dependencies, Job


def epochs_agree(ledger: Ledger, index: VectorIndex, source: str, generation: int) -> bool:
    """Do ledger and index have the same epoch and, but for writes that were cut short, the same counts?

    The epoch is compared in the generation that searches are answered from too, while another is being built.
    """
    epoch = ledger.sources.epoch(source)
    with index.session():
        if any(index.epochs(n, source) != (epoch, epoch) for n in _with_epoch(index, generation)):
            return False
        return counts_agree(ledger, index, generation, source)


def epochs_differ(ledger: Ledger, index: VectorIndex, source: str, generation: int | None) -> bool:
    """Do the epochs of the stores disagree where they should not, as after a restored backup?

    ``generation``: the one that the next run writes. A source that was never written to it has its epochs
    where its documents are.
    """
    if generation is None:
        return False
    epoch = ledger.sources.epoch(source)
    there = index.epochs(generation, source)
    if there == (epoch, epoch):
        return False
    existing = index.generations()
    holding = [n for n in existing if ledger.documents.counts(source, n).chunks]
    if any(there) or generation in holding:
        return True
    # A source whose documents are all gone has epochs and nothing else.
    return all(index.epochs(n, source) != (epoch, epoch) for n in holding or existing)


def _with_epoch(index: VectorIndex, generation: int) -> list[int]:
    """The generations that have a source's epoch: the one that is written, and the live one."""
    live = index.live()
    return [generation] if live in (None, generation) else [generation, live]


def reconcile(job: Job, deps: Dependencies, generation: int) -> int:
    """Note all documents of the source that differ between ledger and index; how many.

    0, and next to no work, when the epochs agree. Safe to repeat, safe to kill: they agree again only after
    all is noted.
    """
    ledger, index = deps.ledger, deps.index
    if epochs_agree(ledger, index, job.source, generation):
        return 0
    deps.progress.stage("compare", None)
    # Not in a session: the audit waits for documents that are being written, whose writer wants the index.
    findings = compare_source(ledger, index, generation, job.source)
    differing = findings.documents | findings.orphans
    for live in _with_epoch(index, generation)[1:]:
        differing |= _orphans_to_delete(deps, live, job.source)
    noted = 0
    for page in pages(differing, PAGE):
        uris = dict(_uris(deps, generation, page))
        ledger.writes.open_intent(job.run_id, job.source, uris)
        noted += len(uris)
    begin_epoch(ledger, index, job.source, generation, job.run_id)
    return noted


def _orphans_to_delete(deps: Dependencies, live: int, source: str) -> frozenset[UUID]:
    """What nobody knows of in the live generation while another is built: it must not wait for that.

    What only stands elsewhere now does wait: it is there in the generation that is built.
    """
    orphans = compare_source(deps.ledger, deps.index, live, source).orphans
    tombstones = deps.ledger.tombstones.by_id(list(orphans))
    moved = {key for key, found in tombstones.items() if Reason(found.reason) in ELSEWHERE}
    return orphans - moved


def begin_epoch(
    ledger: Ledger, index: VectorIndex, source: str, generation: int, run_id: str
) -> None:
    """Write a fresh epoch to both stores: to be done before the first of a run's writes.

    A kill between the two makes the next run compare the source.
    """
    write_epoch(ledger, index, source, _with_epoch(index, generation), new_epoch(run_id))


def close_epoch(job: Job, deps: Dependencies, generation: int) -> None:
    """Begin a fresh epoch after the last of a run's writes, if it has written.

    So that a store that is restored from a backup taken in the middle of a run is told from one of its end.
    """
    if deps.ledger.sources.epoch(job.source).startswith(f"{job.run_id} "):
        begin_epoch(deps.ledger, deps.index, job.source, generation, "after " + job.run_id)


def new_epoch(run_id: str) -> str:
    """One unlike any before, also when a run is run again."""
    return f"{run_id} {uuid4().hex[:12]}"


def write_epoch(
    ledger: Ledger, index: VectorIndex, source: str, generations: Iterable[int], epoch: str
) -> None:
    """Write one epoch to the ledger and to some generations."""
    ledger.sources.write_epoch(source, epoch)
    for generation in generations:
        index.write_epoch(generation, source, epoch)


def _uris(
    deps: Dependencies, generation: int, documents: Sequence[UUID]
) -> Iterator[tuple[UUID, str]]:
    known = deps.ledger.documents.by_id(documents)
    tombstones = deps.ledger.tombstones.by_id([key for key in documents if key not in known])
    with deps.index.session():
        for key in documents:
            found = known.get(key) or tombstones.get(key)
            yield key, found.uri if found else _uri_in_index(deps.index, generation, key)


def _uri_in_index(index: VectorIndex, generation: int, document: UUID) -> str:
    """The URI that the points of a document name, which the ledger does not know."""
    where: dict[str, str | list[str]] = {"document_id": str(document)}
    for number in _with_epoch(index, generation):
        for scan in (index.scan_points, index.scan_sections):
            for point in scan(number, where):
                return urldefrag(str(point.payload.get("source_uri", ""))).url
    return ""
