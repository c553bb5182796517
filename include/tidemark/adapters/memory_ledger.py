"""The ledger in this process's memory: for tests and trials, with the promises of the real one."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from threading import Condition
from uuid import UUID

from tidemark.adapters.memory_ledger_sites import MemorySites
from tidemark.domain.errors import PermanentError, SourceBusyError, TransientError
from tidemark.domain.records import (
    ChunkRecord,
    DocumentRecord,
    DocumentStatus,
    GenerationRecord,
    RunDocument,
    RunRecord,
    SectionRecord,
    Tombstone,
    Touch,
)

EXCLUSIVE = -1


class MemoryLedger(MemorySites):
    """The Ledger port on dictionaries. Threads may share its locks, and must not share documents.

    lock_seconds: how long ``lock_documents`` waits.
    audits: what ``save_audit`` was given, in order.
    """

    def __init__(self, *, lock_seconds: float = 300.0) -> None:
        super().__init__()
        self._lock_seconds = lock_seconds
        self.audits: list[tuple[str | None, dict[str, int], int]] = []
        self._sections: dict[UUID, dict[UUID, SectionRecord]] = {}
        self._chunks: dict[UUID, dict[UUID, ChunkRecord]] = {}
        self._missed_by: dict[UUID, set[str]] = {}
        self._runs: dict[str, RunRecord] = {}
        # In the order of writing: a repeated event moves to the end.
        self._events: dict[tuple[str, UUID], RunDocument] = {}
        self._generations: dict[tuple[str, int], GenerationRecord] = {}
        self._in_flight: dict[UUID, tuple[str, str, str]] = {}
        self._held: Counter[str] = Counter()
        self._written: set[UUID] = set()
        self._changed = Condition()

    @contextmanager
    def lock(self, source: str, *, shared: bool = False) -> Iterator[None]:
        held = self._held[source]
        if held == EXCLUSIVE or (held and not shared):
            raise SourceBusyError(
                f'Another run holds the source "{source}": this process.', "Wait for it to end."
            )
        self._held[source] = held + 1 if shared else EXCLUSIVE
        try:
            yield
        finally:
            self._held[source] = self._held[source] - 1 if shared else 0

    @contextmanager
    def lock_documents(self, document_ids: Sequence[UUID]) -> Iterator[None]:
        wanted = set(document_ids)
        with self._changed:
            free = self._changed.wait_for(
                lambda: self._written.isdisjoint(wanted), self._lock_seconds
            )
            if not free:
                raise TransientError(
                    f"Another run has been writing one of {len(wanted)} documents for "
                    f"{self._lock_seconds:.0f} s.",
                    "Try again when it has ended.",
                )
            self._written |= wanted
        try:
            yield
        finally:
            with self._changed:
                self._written -= wanted
                self._changed.notify_all()

    # Documents

    def documents(self, source: str | None = None) -> Iterator[DocumentRecord]:
        # As a query does, the answer stays as it was when it was asked for.
        found = [d for d in self._documents.values() if source is None or d.source == source]
        return iter(sorted(found, key=lambda document: (document.source, document.uri)))

    def document(self, document_id: UUID) -> DocumentRecord | None:
        return self._documents.get(document_id)

    def documents_by_id(self, ids: Sequence[UUID]) -> dict[UUID, DocumentRecord]:
        return {key: self._documents[key] for key in ids if key in self._documents}

    def find_documents(self, uri: str) -> list[DocumentRecord]:
        return [document for document in self.documents() if document.uri == uri]

    def tombstones_by_id(self, ids: Sequence[UUID]) -> dict[UUID, Tombstone]:
        return {key: self._tombstones[key] for key in ids if key in self._tombstones}

    def find_tombstones(self, uri: str) -> list[Tombstone]:
        found = [tombstone for tombstone in self._tombstones.values() if tombstone.uri == uri]
        return sorted(found, key=lambda tombstone: tombstone.source)

    def sections(self, document_id: UUID) -> list[SectionRecord]:
        found = self._sections.get(document_id, {}).values()
        return sorted(found, key=lambda section: section.ordinal)

    def chunks(self, document_id: UUID) -> list[ChunkRecord]:
        found = self._chunks.get(document_id, {}).values()
        return sorted(found, key=lambda chunk: chunk.chunk_index)

    # One document's changes

    def begin(self, run_id: str, source: str, documents: Mapping[UUID, str]) -> None:
        self._in_flight.update({key: (run_id, source, uri) for key, uri in documents.items()})

    def in_flight(self, source: str) -> dict[UUID, str]:
        return {key: uri for key, (_, owner, uri) in self._in_flight.items() if owner == source}

    def settle(self, document_ids: Sequence[UUID]) -> None:
        for key in document_ids:
            self._in_flight.pop(key, None)

    def commit_document(
        self,
        record: DocumentRecord,
        sections: Sequence[SectionRecord],
        chunks: Sequence[ChunkRecord],
        event: RunDocument,
    ) -> None:
        by_id = {section.section_id: section for section in sections}
        for chunk in chunks:
            if chunk.section_id not in by_id:
                raise PermanentError(
                    f"The chunk {chunk.point_id} of {record.uri} names the section "
                    f"{chunk.section_id}, which the document does not have."
                )
        self.update_document(record, event)
        self._sections[record.document_id] = by_id
        self._chunks[record.document_id] = {chunk.point_id: chunk for chunk in chunks}
        self._tombstones.pop(record.document_id, None)
        self._aliases.pop(record.document_id, None)
        self.settle([record.document_id])

    def update_document(self, record: DocumentRecord, event: RunDocument) -> None:
        self._documents[record.document_id] = record
        if record.missing_runs == 0:
            self._missed_by.pop(record.document_id, None)
        self.record_events([event])

    def remove_document(self, tombstone: Tombstone, event: RunDocument) -> None:
        key = tombstone.document_id
        self._documents.pop(key, None)
        self._sections.pop(key, None)
        self._chunks.pop(key, None)
        self._missed_by.pop(key, None)
        self._tombstones[key] = tombstone
        self._aliases = {k: a for k, a in self._aliases.items() if a.document_id != key}
        self.settle([key])
        self.record_events([event])

    # Many documents' bookkeeping

    def touch(self, run_id: str, seen_at: datetime, touches: Sequence[Touch]) -> None:
        for touch in touches:
            document = self._documents.get(touch.document_id)
            if document is None:
                continue
            self._missed_by.pop(touch.document_id, None)
            self._documents[touch.document_id] = replace(
                document,
                validators=touch.validators,
                fetch_fingerprint=touch.fetch_fingerprint,
                fetched_raw_hash=touch.fetched_raw_hash,
                suspect=touch.suspect,
                last_seen=seen_at,
                last_run_id=run_id,
                missing_since=None,
                missing_runs=0,
            )

    def miss(self, run_id: str, seen_at: datetime, document_ids: Sequence[UUID]) -> None:
        for key in document_ids:
            document = self._documents.get(key)
            if document is None or run_id in self._missed_by.get(key, ()):
                continue
            self._missed_by.setdefault(key, set()).add(run_id)
            self._documents[key] = replace(
                document,
                missing_since=document.missing_since or seen_at,
                missing_runs=document.missing_runs + 1,
                last_run_id=run_id,
            )

    # Runs

    def start_run(self, run: RunRecord) -> None:
        self._runs[run.run_id] = run

    def finish_run(self, run: RunRecord) -> None:
        self._runs[run.run_id] = run

    def run(self, run_id: str) -> RunRecord | None:
        return self._runs.get(run_id)

    def runs(self, source: str | None = None, limit: int = 20) -> list[RunRecord]:
        found = [run for run in self._runs.values() if source is None or run.source == source]
        found.sort(key=lambda run: (run.started_at.astimezone(UTC), run.run_id), reverse=True)
        return found[:limit]

    def record_events(self, events: Sequence[RunDocument]) -> None:
        for event in events:
            key = (event.run_id, event.document_id)
            self._events.pop(key, None)
            self._events[key] = event

    def events(self, document_id: UUID, limit: int = 20) -> list[RunDocument]:
        found = [event for event in self._events.values() if event.document_id == document_id]
        return found[::-1][:limit]

    def run_events(self, run_id: str) -> Iterator[RunDocument]:
        found = [event for event in self._events.values() if event.run_id == run_id]
        return iter(sorted(found, key=lambda event: (event.uri, event.document_id)))

    # Counts, generations, audits

    def count_chunks(self, source: str, generation: int) -> int:
        return sum(len(self._chunks.get(key, ())) for key in self._keys(source, generation))

    def count_sections(self, source: str, generation: int) -> int:
        return sum(len(self._sections.get(key, ())) for key in self._keys(source, generation))

    def sources(self) -> list[str]:
        names = {document.source for document in self._documents.values()}
        return sorted(names | {run.source for run in self._runs.values()})

    def count_quarantined(self, source: str) -> int:
        return sum(d.status is DocumentStatus.QUARANTINED for d in self.documents(source))

    def totals(self, source: str | None = None) -> tuple[int, int]:
        indexed = [d for d in self.documents(source) if d.raw_hash is not None]
        return len(indexed), sum(document.chunks for document in indexed)

    def generations(self, index_name: str) -> list[GenerationRecord]:
        found = [g for g in self._generations.values() if g.index_name == index_name]
        return sorted(found, key=lambda generation: generation.number)

    def save_generation(self, generation: GenerationRecord) -> None:
        self._generations[generation.index_name, generation.number] = generation

    def documents_outside(self, generation: int) -> int:
        indexed = [d for d in self._documents.values() if d.raw_hash is not None]
        return sum(document.generation != generation for document in indexed)

    def save_audit(self, source: str | None, findings: Mapping[str, int], repaired: int) -> None:
        self.audits.append((source, dict(findings), repaired))

    def _keys(self, source: str, generation: int) -> list[UUID]:
        return [d.document_id for d in self.documents(source) if d.generation == generation]
