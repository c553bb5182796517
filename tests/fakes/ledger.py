"""The ledger in this process's memory: for tests and trials, with the promises of the real one."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from threading import Condition
from typing import Any
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
    DocumentCounts,
    DocumentRecord,
    DocumentStatus,
    GenerationRecord,
    RunDocument,
    RunRecord,
    RunStatus,
    SectionRecord,
    Sighting,
    SourceState,
    Tombstone,
    VersionRecord,
)

AT_ONCE = 1_000
"""How many of the oldest are handed out, or forgotten, by one call."""


PARTS = ("documents", "writes", "tombstones", "sources", "runs", "versions", "generations")
"""The parts of a ledger, for those who stand before one."""


@dataclass
class MemoryTables:
    """All rows. Events and versions are in the order of writing: a repeated one moves to the end."""

    documents: dict[UUID, DocumentRecord] = field(default_factory=dict)
    sections: dict[UUID, dict[UUID, SectionRecord]] = field(default_factory=dict)
    chunks: dict[UUID, dict[UUID, ChunkRecord]] = field(default_factory=dict)
    missed_by: dict[UUID, set[str]] = field(default_factory=dict)
    intents: dict[UUID, tuple[str, str]] = field(default_factory=dict)
    tombstones: dict[UUID, Tombstone] = field(default_factory=dict)
    aliases: dict[UUID, Alias] = field(default_factory=dict)
    states: dict[str, SourceState] = field(default_factory=dict)
    epochs: dict[str, str] = field(default_factory=dict)
    runs: dict[str, RunRecord] = field(default_factory=dict)
    events: dict[tuple[str, UUID], RunDocument] = field(default_factory=dict)
    versions: dict[UUID, dict[str, VersionRecord]] = field(default_factory=dict)
    replaced_at: dict[tuple[UUID, str], datetime] = field(default_factory=dict)
    generations: dict[tuple[str, int], GenerationRecord] = field(default_factory=dict)
    audits: list[AuditRecord] = field(default_factory=list)


class MemoryLedger:
    """The Ledger port on dictionaries. Threads may share its locks, and must not share documents.

    lock_seconds: how long ``lock_documents`` waits.
    """

    def __init__(self, tables: MemoryTables | None = None, *, lock_seconds: float = 300.0) -> None:
        self._locks = MemoryLocks(lock_seconds)
        self.tables = tables or MemoryTables()
        self.documents = MemoryDocuments(self.tables)
        self.sources = MemorySources(self.tables)
        self.runs = MemoryRuns(self.tables)
        self.tombstones = MemoryTombstones(self.tables)
        self.versions = MemoryVersions(self.tables)
        self.generations = MemoryGenerations(self.tables)
        self.writes = MemoryWrites(self.tables, self.sources, self.runs, self.versions)

    def __deepcopy__(self, memo: object) -> "MemoryLedger":
        """Another one with the same rows, held by nobody."""
        rows = {f.name: _copied(getattr(self.tables, f.name)) for f in fields(MemoryTables)}
        return MemoryLedger(MemoryTables(**rows))

    @contextmanager
    def dry_run(self) -> Iterator["MemoryLedger"]:
        ledger = deepcopy(self)
        ledger._locks = self._locks
        yield ledger

    def lock(
        self, source: str, *, run_id: str | None = None, wait_seconds: float = 0.0
    ) -> AbstractContextManager[None]:
        return self._locks.source(source, run_id, wait_seconds)

    def is_locked(self, source: str) -> bool:
        return self._locks.is_held(source)

    def lock_documents(self, document_ids: Sequence[UUID]) -> AbstractContextManager[None]:
        return self._locks.documents(document_ids)


def _copied(rows: Any) -> Any:
    if isinstance(rows, dict):
        return {key: _copied(row) for key, row in rows.items()}
    return type(rows)(rows) if isinstance(rows, list | set) else rows


class MemoryLocks:
    """Who holds which source and which documents."""

    def __init__(self, lock_seconds: float) -> None:
        self._lock_seconds = lock_seconds
        # By source, how many hold it for which run; None stands for one that holds it alone.
        self._held: dict[str, Counter[str | None]] = {}
        self._written: set[UUID] = set()
        self._changed = Condition()

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


@dataclass
class MemoryDocuments:
    _tables: MemoryTables

    def stream(
        self, source: str | None = None, *, quarantined: bool = False
    ) -> Iterator[DocumentRecord]:
        # As a query does, the answer stays as it was when it was asked for.
        failed = DocumentStatus.QUARANTINED
        records = [d for d in self._of(source) if not quarantined or d.status is failed]
        return iter(sorted(records, key=lambda document: (document.source, document.uri)))

    def _of(self, source: str | None) -> list[DocumentRecord]:
        return [
            d for d in list(self._tables.documents.values()) if source is None or d.source == source
        ]

    def get(self, document_id: UUID) -> DocumentRecord | None:
        return self._tables.documents.get(document_id)

    def by_id(self, ids: Sequence[UUID]) -> dict[UUID, DocumentRecord]:
        known = self._tables.documents
        return {key: known[key] for key in ids if key in known}

    def by_uri(self, uri: str) -> list[DocumentRecord]:
        return [document for document in self.stream() if document.uri == uri]

    def by_text(self, source: str, text_hashes: Sequence[str]) -> list[DocumentRecord]:
        return [d for d in self._of(source) if d.text_hash in text_hashes]

    def by_raw(self, source: str, raw_hashes: Sequence[str]) -> list[DocumentRecord]:
        return [d for d in self._of(source) if d.raw_hash in raw_hashes]

    def by_failed(self, source: str, raw_hashes: Sequence[str]) -> list[DocumentRecord]:
        return [
            d for d in self.stream(source, quarantined=True) if d.fetched_raw_hash in raw_hashes
        ]

    def sections(self, document_id: UUID) -> list[SectionRecord]:
        sections = self._tables.sections.get(document_id, {}).values()
        return sorted(sections, key=lambda section: section.ordinal)

    def chunks(self, document_id: UUID) -> list[ChunkRecord]:
        chunks = self._tables.chunks.get(document_id, {}).values()
        return sorted(chunks, key=lambda chunk: chunk.chunk_index)

    def counts(self, source: str | None = None, generation: int | None = None) -> DocumentCounts:
        records = [d for d in self._of(source) if generation in (None, d.generation)]
        indexed = [d for d in records if d.raw_hash is not None]
        return DocumentCounts(
            documents=len(records),
            indexed=len(indexed),
            quarantined=sum(d.status is DocumentStatus.QUARANTINED for d in records),
            held=sum(d.suspect is not None for d in records),
            sections=sum(d.sections for d in indexed),
            chunks=sum(d.chunks for d in indexed),
        )


@dataclass
class MemorySources:
    _tables: MemoryTables

    def names(self) -> list[str]:
        known = (*self._tables.documents.values(), *self._tables.runs.values())
        return sorted({record.source for record in known})

    def state(self, source: str) -> SourceState:
        return self._tables.states.get(source, SourceState(source))

    def save_state(self, state: SourceState) -> None:
        self._tables.states[state.source] = state

    def epoch(self, source: str) -> str:
        return self._tables.epochs.get(source, "")

    def write_epoch(self, source: str, epoch: str) -> None:
        self._tables.epochs[source] = epoch

    def aliases(self, source: str) -> Iterator[Alias]:
        aliases = [a for a in self._tables.aliases.values() if a.source == source]
        return iter(sorted(aliases, key=lambda alias: alias.uri))

    def aliases_of(self, document_id: UUID) -> list[Alias]:
        aliases = [a for a in self._tables.aliases.values() if a.document_id == document_id]
        return sorted(aliases, key=lambda alias: alias.uri)

    def aliases_by_uri(self, uris: Sequence[str], source: str | None = None) -> list[Alias]:
        aliases = [a for a in list(self._tables.aliases.values()) if a.uri in uris]
        aliases = [a for a in aliases if source in (None, a.source)]
        return sorted(aliases, key=lambda alias: (alias.source, alias.uri))

    def save_aliases(self, aliases: Sequence[Alias]) -> None:
        documents = self._tables.documents
        for alias in aliases:
            key = document_id(alias.source, alias.uri)
            if alias.document_id in documents and key not in documents:
                self._tables.aliases[key] = alias

    def drop_aliases(self, source: str, seen_before: datetime) -> None:
        for key, alias in list(self._tables.aliases.items()):
            old = alias.source == source and alias.seen_at < seen_before
            if old and alias.kind is not AliasKind.MOVED:
                del self._tables.aliases[key]


@dataclass
class MemoryRuns:
    _tables: MemoryTables

    def save(self, record: RunRecord) -> None:
        self._tables.runs[record.run_id] = record

    def get(self, run_id: str) -> RunRecord | None:
        return self._tables.runs.get(run_id)

    def recent(self, source: str | None = None, limit: int = 20) -> list[RunRecord]:
        return self._latest(source)[:limit]

    def _latest(self, source: str | None) -> list[RunRecord]:
        runs = [r for r in self._tables.runs.values() if source is None or r.source == source]
        runs.sort(key=lambda run: (run.started_at.astimezone(UTC), run.run_id), reverse=True)
        return runs

    def running(self) -> list[RunRecord]:
        return [run for run in self._latest(None)[::-1] if run.finished_at is None]

    def drop(self, finished_before: datetime, keep: int) -> list[str]:
        stay: set[str] = set()
        for source in {run.source for run in self._tables.runs.values()}:
            latest = self._latest(source)
            good = [run for run in latest if run.status is RunStatus.SUCCESS]
            stay |= {run.run_id for run in (*latest[:keep], *good[:1])}
        old = [
            (run.finished_at, run.run_id)
            for run in self._tables.runs.values()
            if run.finished_at is not None
            and run.finished_at < finished_before
            and run.run_id not in stay
        ]
        gone = [run_id for _, run_id in sorted(old)[:AT_ONCE]]
        for run_id in gone:
            del self._tables.runs[run_id]
        for key in [key for key in self._tables.events if key[0] in gone]:
            del self._tables.events[key]
        return gone

    def record_events(self, events: Sequence[RunDocument]) -> None:
        for event in events:
            key = (event.run_id, event.document_id)
            self._tables.events.pop(key, None)
            self._tables.events[key] = event

    def events(self, run_id: str) -> Iterator[RunDocument]:
        events = [event for event in self._tables.events.values() if event.run_id == run_id]
        return iter(sorted(events, key=lambda event: (event.uri, event.document_id)))

    def events_of(self, document_id: UUID, limit: int = 20) -> list[RunDocument]:
        events = [e for e in self._tables.events.values() if e.document_id == document_id]
        return events[::-1][:limit]


@dataclass
class MemoryTombstones:
    _tables: MemoryTables

    def by_id(self, ids: Sequence[UUID]) -> dict[UUID, Tombstone]:
        known = self._tables.tombstones
        return {key: known[key] for key in ids if key in known}

    def by_uri(self, uri: str) -> list[Tombstone]:
        tombstones = [t for t in self._tables.tombstones.values() if t.uri == uri]
        return sorted(tombstones, key=lambda tombstone: tombstone.source)

    def by_raw(self, source: str, raw_hashes: Sequence[str]) -> list[Tombstone]:
        return [t for t in self._unexpired(source) if t.raw_hash in raw_hashes and not t.taken_down]

    def _unexpired(self, source: str) -> list[Tombstone]:
        return [t for t in self._tables.tombstones.values() if t.source == source and not t.expired]

    def restorable(self, source: str, removed_before: datetime) -> list[Tombstone]:
        old = [t for t in self._unexpired(source) if t.removed_at < removed_before]
        old.sort(key=lambda t: (t.removed_at, t.document_id))
        return old[:AT_ONCE]

    def expire(self, document_ids: Sequence[UUID]) -> None:
        for key, tombstone in self.by_id(document_ids).items():
            self._tables.tombstones[key] = replace(tombstone, expired=True)

    def clear_titles(self, source: str, raw_hashes: Sequence[str]) -> None:
        for key, tombstone in self._tables.tombstones.items():
            if tombstone.source == source and tombstone.raw_hash in raw_hashes:
                self._tables.tombstones[key] = replace(tombstone, title="")

    def blocking(self, source: str) -> list[Tombstone]:
        tombstones = (t for t in self._tables.tombstones.values() if t.taken_down)
        return [t for t in tombstones if t.all_sources or t.source == source]

    def unblock(self, document_id: UUID) -> None:
        self._tables.tombstones.pop(document_id, None)

    def drop(self, removed_before: datetime) -> int:
        gone = {key for _, key in sorted(self._droppable(removed_before))[:AT_ONCE]}
        for key in gone:
            del self._tables.tombstones[key]
        for key in [key for key in self._tables.events if key[1] in gone]:
            del self._tables.events[key]
        return len(gone)

    def _droppable(self, removed_before: datetime) -> list[tuple[datetime, UUID]]:
        return [
            (t.removed_at, key)
            for key, t in self._tables.tombstones.items()
            if t.expired and not t.taken_down and t.removed_at < removed_before
        ]


@dataclass
class MemoryVersions:
    _tables: MemoryTables

    def of(self, document_id: UUID) -> list[VersionRecord]:
        versions = [*self._tables.versions.get(document_id, {}).values()][::-1]
        versions.sort(key=lambda version: version.indexed_at, reverse=True)
        return versions

    def stream(self) -> Iterator[VersionRecord]:
        keys = sorted(self._tables.versions)
        return iter([version for key in keys for version in self.of(key)])

    def write(self, version: VersionRecord | None) -> None:
        if version is None:
            return
        key, replaced_at = version.document_id, self._tables.replaced_at
        kept = self._tables.versions.setdefault(key, {})
        for run_id in kept.keys() - {version.run_id}:
            replaced_at.setdefault((key, run_id), version.indexed_at)
        kept.pop(version.run_id, None)
        replaced_at.pop((key, version.run_id), None)
        kept[version.run_id] = version

    def move(self, before: UUID, now: UUID, moved_at: datetime) -> None:
        kept = self._tables.versions.setdefault(now, {})
        versions = self._tables.versions.get(before, {})
        moving = {run_id: v for run_id, v in versions.items() if run_id not in kept}
        moved = {run_id: replace(v, document_id=now) for run_id, v in moving.items()}
        self._tables.versions[now] = {**moved, **kept}
        for run_id in moving:
            del versions[run_id]
            ended = self._tables.replaced_at.pop((before, run_id), moved_at)
            self._tables.replaced_at[now, run_id] = ended

    def drop(self, superseded_before: datetime) -> int:
        replaced_at = self._tables.replaced_at
        old = sorted((at, key) for key, at in replaced_at.items() if at < superseded_before)
        for _, key in old[:AT_ONCE]:
            del self._tables.versions[key[0]][key[1]], replaced_at[key]
        return len(old[:AT_ONCE])

    def forget(self, document_ids: Sequence[UUID]) -> None:
        for key in document_ids:
            for run_id in self._tables.versions.pop(key, {}):
                self._tables.replaced_at.pop((key, run_id), None)

    def raw_in_use(self, raw_hashes: Sequence[str]) -> set[str]:
        return set(raw_hashes).intersection(self.raw_references())

    def raw_references(self) -> Iterator[str]:
        tables = self._tables
        used = {v.raw_hash for kept in tables.versions.values() for v in kept.values()}
        for record in tables.documents.values():
            used |= {record.raw_hash or "", record.fetched_raw_hash}
            used |= {record.failure.raw_hash} if record.failure else set()
        used |= {alias.raw_hash or "" for alias in tables.aliases.values()}
        used |= {t.raw_hash or "" for t in tables.tombstones.values() if not t.expired}
        return iter(used - {""})


@dataclass
class MemoryGenerations:
    _tables: MemoryTables

    def all(self, index_name: str) -> list[GenerationRecord]:
        named = [g for g in self._tables.generations.values() if g.index_name == index_name]
        return sorted(named, key=lambda generation: generation.number)

    def save(self, record: GenerationRecord) -> None:
        self._tables.generations[record.index_name, record.number] = record

    def outside(self, number: int) -> dict[str, int]:
        indexed = [d for d in list(self._tables.documents.values()) if d.raw_hash is not None]
        counts = Counter(d.source for d in indexed if d.generation != number)
        return dict(sorted(counts.items()))

    def save_audit(self, record: AuditRecord) -> None:
        left = None if record.left is None else dict(record.left)
        self._tables.audits.append(replace(record, findings=dict(record.findings), left=left))

    def audits(self, source: str | None = None, limit: int = 20) -> list[AuditRecord]:
        # The sort keeps the order of writing among equals; the latest is to come first.
        audits = [
            a for a in self._tables.audits[::-1] if source is None or a.source in (source, None)
        ]
        return sorted(audits, key=lambda audit: audit.audited_at, reverse=True)[:limit]

    def drop_audits(self, audited_before: datetime) -> int:
        latest: dict[str | None, AuditRecord] = {}
        for audit in self.audits(limit=len(self._tables.audits)):
            latest.setdefault(audit.source, audit)
        stay = [
            audit
            for audit in self._tables.audits
            if audit.audited_at >= audited_before or latest[audit.source] is audit
        ]
        gone = len(self._tables.audits) - len(stay)
        self._tables.audits[:] = stay
        return gone


@dataclass
class MemoryWrites:
    _tables: MemoryTables
    _sources: MemorySources
    _runs: MemoryRuns
    _versions: MemoryVersions

    def open_intent(self, run_id: str, source: str, documents: Mapping[UUID, str]) -> None:
        self._tables.intents.update({key: (source, uri) for key, uri in documents.items()})

    def close_intent(self, document_ids: Sequence[UUID]) -> None:
        for key in document_ids:
            self._tables.intents.pop(key, None)

    def pending(
        self, source: str | None = None, *, among: Sequence[UUID] | None = None
    ) -> dict[UUID, str]:
        return {
            key: uri
            for key, (owner, uri) in list(self._tables.intents.items())
            if source in (None, owner) and (among is None or key in among)
        }

    def commit(
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
        key = record.document_id
        self._write(record, event)
        self._versions.write(committed_version(record, event))
        self._tables.sections[key] = by_id
        self._tables.chunks[key] = {chunk.point_id: chunk for chunk in chunks}
        self._tables.tombstones.pop(key, None)
        self._tables.aliases.pop(key, None)
        self.close_intent([key])

    def update(self, record: DocumentRecord, event: RunDocument) -> None:
        before = self._tables.documents.get(record.document_id)
        self._write(record, event)
        self._versions.write(updated_version(record, event, before.raw_hash if before else None))

    def _write(self, record: DocumentRecord, event: RunDocument) -> None:
        self._tables.documents[record.document_id] = record
        if record.missing_runs == 0:
            self._tables.missed_by.pop(record.document_id, None)
        self._runs.record_events([event])

    def remove(self, tombstone: Tombstone, event: RunDocument, alias: Alias | None = None) -> None:
        tables, key = self._tables, tombstone.document_id
        record = tables.documents.pop(key, None)
        if alias is not None and alias.document_id not in tables.documents:
            alias = None
        if alias is not None and alias.kind is AliasKind.MOVED:
            self._versions.move(key, alias.document_id, tombstone.removed_at)
        else:
            self._versions.write(removed_version(record, tombstone, event))
        for other in self._sources.aliases_of(key):
            del tables.aliases[document_id(other.source, other.uri)]
            if alias is not None:
                self._sources.save_aliases([replace(other, document_id=alias.document_id)])
        self._sources.save_aliases([alias] if alias is not None else [])
        for table in (tables.sections, tables.chunks, tables.missed_by):
            table.pop(key, None)
        tables.tombstones[key] = tombstone
        self.close_intent([key])
        self._runs.record_events([event])

    def mark_seen(self, run_id: str, seen_at: datetime, sightings: Sequence[Sighting]) -> None:
        for sighting in sightings:
            document = self._tables.documents.get(sighting.document_id)
            if document is None:
                continue
            self._tables.missed_by.pop(sighting.document_id, None)
            self._tables.documents[sighting.document_id] = replace(
                document,
                validators=sighting.validators,
                fetch_fingerprint=sighting.fetch_fingerprint,
                fetched_raw_hash=sighting.fetched_raw_hash,
                suspect=sighting.suspect,
                last_seen=seen_at,
                last_run_id=run_id,
                missing_since=None,
                missing_runs=0,
            )

    def mark_missing(self, run_id: str, seen_at: datetime, document_ids: Sequence[UUID]) -> None:
        for key in document_ids:
            document = self._tables.documents.get(key)
            if document is None or run_id in self._tables.missed_by.get(key, ()):
                continue
            self._tables.missed_by.setdefault(key, set()).add(run_id)
            self._tables.documents[key] = replace(
                document,
                missing_since=document.missing_since or seen_at,
                missing_runs=document.missing_runs + 1,
                last_run_id=run_id,
            )

    def requeue(self, document_ids: Sequence[UUID]) -> None:
        for key in document_ids:
            record = self._tables.documents.get(key)
            if record is not None and record.failure is not None:
                failure = replace(record.failure, fingerprint="")
                self._tables.documents[key] = replace(record, failure=failure)

    def record_vectors(
        self,
        document_id: UUID,
        hashes: Mapping[UUID, str],
        checksum: str,
        before: str | None = None,
    ) -> None:
        chunks = self._tables.chunks.get(document_id, {})
        for key, chunk in chunks.items():
            known = chunk.vector_hash
            if key in hashes and (known is None or hashes[key].startswith(f"{known}.")):
                chunks[key] = replace(chunk, vector_hash=hashes[key])
        record = self._tables.documents.get(document_id)
        all_known = all(chunk.vector_hash is not None for chunk in chunks.values())
        if record is not None and record.checksum == before and all_known:
            self._tables.documents[document_id] = replace(record, checksum=checksum)
