"""What a takedown leaves to runs: what moved or came in while it was carried out, and what was cut short."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from tidemark.domain.decide import DUPLICATE_FROM, Action, Reason
from tidemark.domain.identity import document_id
from tidemark.domain.records import TAKEN_DOWN, DocumentRecord, RunDocument, Tombstone
from tidemark.ports import ArtifactStore, Ledger
from tidemark.stages.job import Dependencies, Job
from tidemark.stages.sweep.discard import discard_snapshots, discard_vectors
from tidemark.stages.takedown.block_list import KeptOut, orders_over
from tidemark.stages.takedown.requests import has_moved_from


def moved_meanwhile(ledger: Ledger, source: str, uri: str, target: str) -> DocumentRecord | None:
    """The document that a run moved from an address to another while it was taken down at the first."""
    key = document_id(source, uri)
    stone = ledger.tombstones.by_id([key]).get(key)
    if not target or stone is None or not stone.taken_down:
        return None
    record = ledger.documents.get(document_id(source, target))
    return record if record is not None and has_moved_from(ledger, record, uri) else None


def record_tombstone(
    deps: Dependencies, record: DocumentRecord, event: RunDocument, ordered: str
) -> None:
    """Put a tombstone in the place of a document whose points are gone; delete all that was kept of it.

    ordered: the address that was taken down, its own or the one it moved from. To be called under the
    document's lock. Raises ``KeyError`` when nothing keeps that address out.
    """
    ledger, key = deps.ledger, record.document_id
    stone = KeptOut.of(ledger, deps.artifacts, record.source, lambda _: None).by_uri[ordered]
    failed = record.failure.raw_hash if record.failure else None
    raws = {record.raw_hash, record.fetched_raw_hash, failed}
    known = {raw for raw in raws if raw} | {v.raw_hash for v in ledger.versions.of(key)}
    texts = {record.text_hash} if (record.text_length or 0) >= DUPLICATE_FROM else set()
    ledger.writes.remove(
        Tombstone(
            key,
            record.source,
            record.uri,
            "",
            record.raw_hash,
            deps.clock(),
            TAKEN_DOWN,
            stone.run_id,
            expired=True,
            kept_out=tuple(sorted({*stone.kept_out, record.raw_hash or ""} - {""})),
            texts=tuple(sorted({*stone.texts, *filter(None, texts)})),
            everywhere=stone.everywhere,
        ),
        event,
    )
    ledger.versions.forget([key])
    discard_snapshots(ledger, deps.artifacts, known)
    discard_vectors(deps.artifacts, [key])


def held_back(
    job: Job, deps: Dependencies, documents: Mapping[UUID, str]
) -> dict[UUID, RunDocument]:
    """Those of some documents (id to URI) whose takedown was begun and not finished, with what to say.

    Nothing of them is to be written any more. Costs one look at an empty folder where there are none.
    """
    taken = {key: o for o in orders_over(deps.artifacts, job.source) for key in o.uris}
    return {
        key: RunDocument(
            job.run_id,
            key,
            uri,
            Action.KEEP.value,
            Reason.TAKEN_DOWN.value,
            f"is being taken down, which was cut short; finish it: tidemark takedown {taken[key].found.uri}",
        )
        for key, uri in documents.items()
        if key in taken
    }


def cut_short(artifacts: ArtifactStore, source: str) -> Sequence[str]:
    """The takedowns that are not finished, each with the hint."""
    orders = orders_over(artifacts, source)
    return [_cut_short(uri) for uri in dict.fromkeys(order.found.uri for order in orders)]


def _cut_short(uri: str) -> str:
    return (
        f"The takedown of {uri} was cut short; it is kept out. Finish it: tidemark takedown {uri}"
    )
