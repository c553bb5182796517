"""The part of the ledger in memory that remembers what was: versions, runs, events, audits."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

from tidemark.adapters.memory_ledger_sites import AT_ONCE, MemorySites
from tidemark.domain.records import AuditRecord, RunDocument, RunRecord, RunStatus, VersionRecord


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
        for document_id, run_id in gone:
            del self._versions[document_id][run_id]
            del self._replaced_at[document_id, run_id]
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
