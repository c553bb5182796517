"""The ledger in this process's memory: for tests and trials, with the promises of the real one."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from tidemark.adapters.ledger_versions import committed_version, removed_version, updated_version
from tidemark.adapters.memory_ledger_history import MemoryHistory
from tidemark.adapters.memory_ledger_locks import MemoryLocks
from tidemark.domain.errors import PermanentError
from tidemark.domain.records import (
    Alias,
    AliasKind,
    ChunkRecord,
    DocumentRecord,
    DocumentStatus,
    GenerationRecord,
    RunDocument,
    SectionRecord,
    Tombstone,
    Touch,
)


class MemoryLedger(MemoryHistory):
    """The Ledger port on dictionaries. Threads may share its locks, and must not share documents.

    lock_seconds: how long ``lock_documents`` waits.
    """

    def __init__(self, *, lock_seconds: float = 300.0) -> None:
        super().__init__()
        self._locks = MemoryLocks(lock_seconds)
        self._sections: dict[UUID, dict[UUID, SectionRecord]] = {}
        self._chunks: dict[UUID, dict[UUID, ChunkRecord]] = {}
        self._missed_by: dict[UUID, set[str]] = {}
        self._generations: dict[tuple[str, int], GenerationRecord] = {}
        self._in_flight: dict[UUID, tuple[str, str, str]] = {}

    def lock(
        self, source: str, *, run_id: str | None = None, wait_seconds: float = 0.0
    ) -> AbstractContextManager[None]:
        return self._locks.source(source, run_id, wait_seconds)

    def is_locked(self, source: str) -> bool:
        return self._locks.is_held(source)

    def lock_documents(self, document_ids: Sequence[UUID]) -> AbstractContextManager[None]:
        return self._locks.documents(document_ids)

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

    def adopt_vectors(
        self,
        document_id: UUID,
        hashes: Mapping[UUID, str],
        checksum: str,
        before: str | None = None,
    ) -> None:
        chunks = self._chunks.get(document_id, {})
        for key, chunk in chunks.items():
            known = chunk.vector_hash
            if key in hashes and (known is None or hashes[key].startswith(f"{known}.")):
                chunks[key] = replace(chunk, vector_hash=hashes[key])
        record = self._documents.get(document_id)
        all_known = all(chunk.vector_hash is not None for chunk in chunks.values())
        if record is not None and record.checksum == before and all_known:
            self._documents[document_id] = replace(record, checksum=checksum)

    # One document's changes

    def begin(self, run_id: str, source: str, documents: Mapping[UUID, str]) -> None:
        self._in_flight.update({key: (run_id, source, uri) for key, uri in documents.items()})

    def in_flight(self, source: str) -> dict[UUID, str]:
        return {key: uri for key, (_, owner, uri) in self._in_flight.items() if owner == source}

    def begun(self, document_ids: Sequence[UUID]) -> set[UUID]:
        return self._in_flight.keys() & set(document_ids)

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
        self._write(record, event)
        self._write_version(committed_version(record, event))
        self._sections[record.document_id] = by_id
        self._chunks[record.document_id] = {chunk.point_id: chunk for chunk in chunks}
        self._tombstones.pop(record.document_id, None)
        self._aliases.pop(record.document_id, None)
        self.settle([record.document_id])

    def update_document(self, record: DocumentRecord, event: RunDocument) -> None:
        before = self._documents.get(record.document_id)
        self._write(record, event)
        self._write_version(updated_version(record, event, before.raw_hash if before else None))

    def _write(self, record: DocumentRecord, event: RunDocument) -> None:
        self._documents[record.document_id] = record
        if record.missing_runs == 0:
            self._missed_by.pop(record.document_id, None)
        self.record_events([event])

    def remove_document(
        self, tombstone: Tombstone, event: RunDocument, alias: Alias | None = None
    ) -> None:
        key = tombstone.document_id
        record = self._documents.pop(key, None)
        if alias is None or alias.document_id not in self._documents:
            self._write_version(removed_version(record, tombstone, event))
        else:
            if alias.kind is AliasKind.MOVED:
                self._move_versions(key, alias.document_id, tombstone.removed_at)
            else:
                self._write_version(removed_version(record, tombstone, event))
            self._lead_on(key, alias)
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

    # Counts, generations

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

    def drop_generation(self, index_name: str, number: int) -> None:
        self._generations.pop((index_name, number), None)

    def documents_outside(self, generation: int) -> int:
        indexed = [d for d in self._documents.values() if d.raw_hash is not None]
        return sum(document.generation != generation for document in indexed)

    def sources_outside(self, generation: int) -> dict[str, int]:
        indexed = [d for d in self._documents.values() if d.raw_hash is not None]
        counts = Counter(d.source for d in indexed if d.generation != generation)
        return dict(sorted(counts.items()))

    def _keys(self, source: str, generation: int) -> list[UUID]:
        return [d.document_id for d in self.documents(source) if d.generation == generation]
