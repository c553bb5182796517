"""The ledger in this process's memory: for tests and trials, with the promises of the real one."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from threading import Condition
from uuid import UUID

from tidemark.adapters.ledger.locks import wait_for_source
from tidemark.adapters.ledger.versions import committed_version, removed_version, updated_version
from tidemark.domain.errors import PermanentError, TransientError
from tidemark.domain.identity import document_id
from tidemark.domain.records import (
    Alias,
    AliasKind,
    AuditRecord,
    ChunkRecord,
    DocumentRecord,
    DocumentStatus,
    GenerationRecord,
    RunDocument,
    RunRecord,
    RunStatus,
    SectionRecord,
    SourceState,
    Tombstone,
    Touch,
    VersionRecord,
)

# The part of the ledger in memory that knows what real sites do (see ``postgres_ledger_sites``).

AT_ONCE = 1_000
"""How many of the oldest are handed out, or forgotten, by one call."""


class MemorySites:
    """What the ledger knows of a source beside its documents, one by one."""

    def __init__(self) -> None:
        self._documents: dict[UUID, DocumentRecord] = {}
        self._tombstones: dict[UUID, Tombstone] = {}
        self._aliases: dict[UUID, Alias] = {}
        self._states: dict[str, SourceState] = {}
        self._marks: dict[str, str] = {}

    def documents_by_text(self, source: str, text_hashes: Sequence[str]) -> list[DocumentRecord]:
        wanted = set(text_hashes)
        return [d for d in self._of(source) if d.text_hash in wanted]

    def documents_by_raw(self, source: str, raw_hashes: Sequence[str]) -> list[DocumentRecord]:
        wanted = set(raw_hashes)
        return [d for d in self._of(source) if d.raw_hash in wanted]

    def documents_by_failed(self, source: str, raw_hashes: Sequence[str]) -> list[DocumentRecord]:
        wanted = set(raw_hashes)
        failed = DocumentStatus.QUARANTINED
        return [d for d in self._of(source) if d.status is failed and d.fetched_raw_hash in wanted]

    def _of(self, source: str) -> list[DocumentRecord]:
        return [d for d in self._documents.values() if d.source == source]

    def tombstones_by_raw(self, source: str, raw_hashes: Sequence[str]) -> list[Tombstone]:
        wanted = set(raw_hashes)
        return [
            t
            for t in self._tombstones.values()
            if t.source == source and t.raw_hash in wanted and not (t.expired or t.taken_down)
        ]

    def tombstones_before(self, source: str, removed_before: datetime) -> list[Tombstone]:
        found = [
            t
            for t in self._tombstones.values()
            if t.source == source and not t.expired and t.removed_at < removed_before
        ]
        found.sort(key=lambda t: (t.removed_at, t.document_id))
        return found[:AT_ONCE]

    def expire(self, document_ids: Sequence[UUID]) -> None:
        for key in document_ids:
            if key in self._tombstones:
                self._tombstones[key] = replace(self._tombstones[key], expired=True)

    def forget_titles(self, source: str, raw_hashes: Sequence[str]) -> None:
        wanted = set(raw_hashes)
        for key, stone in self._tombstones.items():
            if stone.source == source and stone.raw_hash in wanted:
                self._tombstones[key] = replace(stone, title="")

    def taken_down(self, source: str) -> list[Tombstone]:
        found = (t for t in self._tombstones.values() if t.taken_down)
        return [t for t in found if t.everywhere or t.source == source]

    def lift(self, document_id: UUID) -> None:
        self._tombstones.pop(document_id, None)

    def aliases(self, source: str) -> Iterator[Alias]:
        found = [a for a in self._aliases.values() if a.source == source]
        return iter(sorted(found, key=lambda alias: alias.uri))

    def aliases_by_uri(self, source: str, uris: Sequence[str]) -> dict[str, Alias]:
        keys = {uri: document_id(source, uri) for uri in uris}
        return {uri: self._aliases[key] for uri, key in keys.items() if key in self._aliases}

    def aliases_of(self, document_id: UUID) -> list[Alias]:
        found = [a for a in self._aliases.values() if a.document_id == document_id]
        return sorted(found, key=lambda alias: alias.uri)

    def find_aliases(self, uri: str) -> list[Alias]:
        found = [a for a in self._aliases.values() if a.uri == uri]
        return sorted(found, key=lambda alias: alias.source)

    def save_aliases(self, aliases: Sequence[Alias]) -> None:
        for alias in aliases:
            key = document_id(alias.source, alias.uri)
            if alias.document_id in self._documents and key not in self._documents:
                self._aliases[key] = alias

    def _lead_on(self, gone: UUID, alias: Alias) -> None:
        for key, before in list(self._aliases.items()):
            if before.document_id == gone:
                self._aliases[key] = replace(before, document_id=alias.document_id)
        self.save_aliases([alias])

    def drop_aliases(self, source: str, seen_before: datetime) -> None:
        self._aliases = {
            key: a
            for key, a in self._aliases.items()
            if a.source != source or a.seen_at >= seen_before or a.kind is AliasKind.MOVED
        }

    def source_state(self, source: str) -> SourceState:
        return self._states.get(source, SourceState(source))

    def save_source_state(self, state: SourceState) -> None:
        self._states[state.source] = state

    def tide_mark(self, source: str) -> str:
        return self._marks.get(source, "")

    def save_tide_mark(self, source: str, mark: str) -> None:
        self._marks[source] = mark

    def quarantined(self, source: str | None = None) -> Iterator[DocumentRecord]:
        found = [
            d
            for d in self._documents.values()
            if d.status is DocumentStatus.QUARANTINED and source in (None, d.source)
        ]
        return iter(sorted(found, key=lambda document: (document.source, document.uri)))

    def release(self, document_ids: Sequence[UUID]) -> None:
        for key in document_ids:
            record = self._documents.get(key)
            if record is not None and record.failure is not None:
                failure = replace(record.failure, fingerprint="")
                self._documents[key] = replace(record, failure=failure)

    def count_suspects(self, source: str) -> int:
        return sum(d.suspect is not None for d in self._of(source))


# The part of the ledger in memory that remembers what was: versions, runs, events, audits.


class MemoryHistory(MemorySites):
    """What runs and audits did, and what was live before."""

    def __init__(self) -> None:
        super().__init__()
        self._runs: dict[str, RunRecord] = {}
        # In the order of writing: a repeated event or version moves to the end.
        self._events: dict[tuple[str, UUID], RunDocument] = {}
        self._versions: dict[UUID, dict[str, VersionRecord]] = {}
        self._replaced_at: dict[tuple[UUID, str], datetime] = {}
        self._audits: list[AuditRecord] = []

    # Versions

    def versions(self, document_id: UUID) -> list[VersionRecord]:
        found = [*self._versions.get(document_id, {}).values()][::-1]
        found.sort(key=lambda version: version.indexed_at, reverse=True)
        return found

    def all_versions(self) -> Iterator[VersionRecord]:
        keys = sorted(self._versions)
        return iter([version for key in keys for version in self.versions(key)])

    def _write_version(self, version: VersionRecord | None) -> None:
        if version is None:
            return
        key = version.document_id
        kept = self._versions.setdefault(key, {})
        for run_id in kept:
            if run_id != version.run_id:
                self._replaced_at.setdefault((key, run_id), version.indexed_at)
        kept.pop(version.run_id, None)
        self._replaced_at.pop((key, version.run_id), None)
        kept[version.run_id] = version

    def _move_versions(self, before: UUID, now: UUID, moved_at: datetime) -> None:
        kept = self._versions.setdefault(now, {})
        moving = {
            run_id: version
            for run_id, version in self._versions.get(before, {}).items()
            if run_id not in kept
        }
        self._versions[now] = {
            **{run_id: replace(v, document_id=now) for run_id, v in moving.items()},
            **kept,
        }
        for run_id in moving:
            del self._versions[before][run_id]
            ended = self._replaced_at.pop((before, run_id), moved_at)
            self._replaced_at[now, run_id] = ended

    def drop_versions(self, superseded_before: datetime) -> int:
        old = [(at, key) for key, at in self._replaced_at.items() if at < superseded_before]
        gone = [key for _, key in sorted(old)[:AT_ONCE]]
        for key, run_id in gone:
            del self._versions[key][run_id]
            del self._replaced_at[key, run_id]
        return len(gone)

    def forget_versions(self, document_ids: Sequence[UUID]) -> None:
        for key in document_ids:
            for run_id in self._versions.pop(key, {}):
                self._replaced_at.pop((key, run_id), None)

    def raw_in_use(self, raw_hashes: Sequence[str]) -> set[str]:
        return set(raw_hashes).intersection(self.raw_references())

    def raw_references(self) -> Iterator[str]:
        used: set[str | None] = {
            v.raw_hash for kept in self._versions.values() for v in kept.values()
        }
        for record in self._documents.values():
            used |= {record.raw_hash, record.fetched_raw_hash}
            used |= {record.failure.raw_hash} if record.failure else set()
        used |= {alias.raw_hash for alias in self._aliases.values()}
        used |= {t.raw_hash for t in self._tombstones.values() if not t.expired}
        return iter([found for found in used if found])

    # Runs and what they did

    def start_run(self, run: RunRecord) -> None:
        self._runs[run.run_id] = run

    def finish_run(self, run: RunRecord) -> None:
        self._runs[run.run_id] = run

    def run(self, run_id: str) -> RunRecord | None:
        return self._runs.get(run_id)

    def runs(self, source: str | None = None, limit: int = 20) -> list[RunRecord]:
        return self._latest(source)[:limit]

    def _latest(self, source: str | None) -> list[RunRecord]:
        found = [run for run in self._runs.values() if source is None or run.source == source]
        found.sort(key=lambda run: (run.started_at.astimezone(UTC), run.run_id), reverse=True)
        return found

    def running(self) -> list[RunRecord]:
        return [run for run in self._latest(None)[::-1] if run.finished_at is None]

    def drop_runs(self, finished_before: datetime, keep: int) -> list[str]:
        stay: set[str] = set()
        for source in {run.source for run in self._runs.values()}:
            latest = self._latest(source)
            stay |= {run.run_id for run in latest[:keep]}
            good = [run.run_id for run in latest if run.status is RunStatus.SUCCESS]
            stay |= set(good[:1])
        old = [
            (run.finished_at, run.run_id)
            for run in self._runs.values()
            if run.finished_at is not None
            and run.finished_at < finished_before
            and run.run_id not in stay
        ]
        gone = [run_id for _, run_id in sorted(old)[:AT_ONCE]]
        self._runs = {key: run for key, run in self._runs.items() if key not in gone}
        self._events = {key: e for key, e in self._events.items() if e.run_id not in gone}
        return gone

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

    def forgettable_tombstones(self, removed_before: datetime) -> int:
        return len(self._forgettable(removed_before))

    def _forgettable(self, removed_before: datetime) -> list[tuple[datetime, UUID]]:
        return [
            (t.removed_at, key)
            for key, t in self._tombstones.items()
            if t.expired and not t.taken_down and t.removed_at < removed_before
        ]

    def drop_tombstones(self, removed_before: datetime) -> int:
        old = self._forgettable(removed_before)
        gone = {key for _, key in sorted(old)[:AT_ONCE]}
        self._tombstones = {key: t for key, t in self._tombstones.items() if key not in gone}
        self._events = {key: e for key, e in self._events.items() if e.document_id not in gone}
        return len(gone)

    # Audits

    def save_audit(self, record: AuditRecord) -> None:
        left = None if record.left is None else dict(record.left)
        self._audits.append(replace(record, findings=dict(record.findings), left=left))

    def audits(self, source: str | None = None, limit: int = 20) -> list[AuditRecord]:
        # The sort keeps the order of writing among equals; the latest is to come first.
        found = [a for a in self._audits[::-1] if source is None or a.source in (source, None)]
        return sorted(found, key=lambda audit: audit.audited_at, reverse=True)[:limit]

    def drop_audits(self, audited_before: datetime) -> int:
        latest: dict[str | None, AuditRecord] = {}
        for audit in self.audits(limit=len(self._audits)):
            latest.setdefault(audit.source, audit)
        stay = [
            audit
            for audit in self._audits
            if audit.audited_at >= audited_before or latest[audit.source] is audit
        ]
        gone = len(self._audits) - len(stay)
        self._audits = stay
        return gone


# The locks of the ledger in memory: threads may share them, and one thread may hold many.


class MemoryLocks:
    """Who holds which source and which documents.

    lock_seconds: how long documents are waited for.
    """

    def __init__(self, lock_seconds: float) -> None:
        self._lock_seconds = lock_seconds
        # By source, how many hold it for which run; None stands for one that holds it alone.
        self._held: dict[str, Counter[str | None]] = {}
        self._written: set[UUID] = set()
        self._changed = Condition()

    def __deepcopy__(self, memo: object) -> "MemoryLocks":
        """A copy of a ledger is held by nobody."""
        return MemoryLocks(self._lock_seconds)

    @contextmanager
    def source(self, source: str, run_id: str | None, wait_seconds: float) -> Iterator[None]:
        wait_for_source(lambda: self._take(source, run_id), source, wait_seconds)
        try:
            yield
        finally:
            with self._changed:
                held = self._held[source]
                held[run_id] -= 1
                if not held[run_id]:
                    del self._held[source]

    def is_held(self, source: str) -> bool:
        with self._changed:
            return source in self._held

    def _take(self, source: str, run_id: str | None) -> str | None:
        with self._changed:
            held = self._held.get(source)
            if held is not None and (run_id is None or set(held) != {run_id}):
                runs = ", ".join(sorted(run for run in held if run is not None))
                return f"the run {runs} in this process" if runs else "this process"
            self._held.setdefault(source, Counter())[run_id] += 1
            return None

    @contextmanager
    def documents(self, document_ids: Sequence[UUID]) -> Iterator[None]:
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
