"""Litter: the artifacts that nothing refers to any more."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby, islice
from typing import Self
from uuid import UUID

from tidemark.domain.records import Tombstone, VersionRecord
from tidemark.ports import ArtifactEntry, Ledger, Progress
from tidemark.stages.discard import name_of
from tidemark.stages.prepare import elements_key
from tidemark.stages.scratch import Scratched
from tidemark.stages.stores import Stores

PAGE = 500


@dataclass(frozen=True, slots=True)
class Freed:
    """How many things, and their bytes where they have a size."""

    count: int = 0
    bytes: int = 0

    def plus(self, entry: ArtifactEntry) -> "Freed":
        return Freed(self.count + 1, self.bytes + entry.size)


@dataclass(frozen=True, slots=True)
class Leaving:
    """What only a dry run leaves in the ledger: it counts as if it was gone.

    superseded_before: versions that another replaced before then. expired: ids of removed documents.
    runs: ids of runs.
    """

    superseded_before: datetime | None = None
    expired: frozenset[UUID] = frozenset()
    runs: frozenset[str] = frozenset()

    def versions(self, ledger: Ledger) -> Iterator[tuple[VersionRecord, bool]]:
        """All versions, and does each go?"""
        limit = self.superseded_before
        for document, versions in groupby(ledger.all_versions(), lambda v: v.document_id):
            replaced_at: datetime | None = None
            for version in versions:
                old = limit is not None and replaced_at is not None and replaced_at < limit
                yield version, old or document in self.expired
                replaced_at = version.indexed_at

    def goes(self, stone: Tombstone) -> bool:
        return stone.expired or stone.document_id in self.expired


class References(Scratched):
    """What the ledger refers to, on disk, so that memory does not grow with it."""

    def __init__(self, ledger: Ledger, leaving: Leaving) -> None:
        self._ledger = ledger
        self.leaving = leaving
        super().__init__(
            "CREATE TABLE raw (hash TEXT PRIMARY KEY) WITHOUT ROWID",
            "CREATE TABLE elements (key TEXT PRIMARY KEY) WITHOUT ROWID",
        )

    def __enter__(self) -> Self:
        database = self._scratch.database
        database.execute("BEGIN")
        found = self._referred() if self.leaving != Leaving() else self._ledger.raw_references()
        database.executemany("INSERT OR IGNORE INTO raw VALUES (?)", ((h,) for h in found))
        database.executemany(
            "INSERT OR IGNORE INTO elements VALUES (?)",
            ((key,) for key in self._elements()),
        )
        database.execute("COMMIT")
        return self

    def has_raw(self, raw_hash: str) -> bool:
        return self._has("SELECT 1 FROM raw WHERE hash = ?", raw_hash)

    def has_elements(self, key: str) -> bool:
        """Is this what a version that is live, or kept, was read as?"""
        return self._has("SELECT 1 FROM elements WHERE key = ?", key)

    def in_use(self, raw_hashes: Sequence[str]) -> set[str]:
        """Those that are referred to at this moment."""
        if self.leaving == Leaving():
            return self._ledger.raw_in_use(raw_hashes)
        return {
            stone.raw_hash
            for source in self._ledger.sources()
            for stone in self._ledger.tombstones_by_raw(source, raw_hashes)
            if stone.raw_hash and not self.leaving.goes(stone)
        }

    def _has(self, query: str, value: str) -> bool:
        return self._scratch.database.execute(query, (value,)).fetchone() is not None

    def _elements(self) -> Iterator[str]:
        for record in self._ledger.documents():
            if record.raw_hash is not None and record.fingerprints is not None:
                yield elements_key(record, record.fingerprints.partition)
        for version, goes in self.leaving.versions(self._ledger):
            if not goes:
                yield elements_key(version, version.fingerprints.partition)

    def _referred(self) -> Iterator[str]:
        """What will be referred to but by tombstones, which ``in_use`` asks for."""
        for record in self._ledger.documents():
            yield from filter(None, (record.raw_hash, record.fetched_raw_hash))
            if record.failure is not None:
                yield record.failure.raw_hash
        for source in self._ledger.sources():
            yield from filter(None, (alias.raw_hash for alias in self._ledger.aliases(source)))
        yield from (v.raw_hash for v, goes in self.leaving.versions(self._ledger) if not goes)


def sweep_artifacts(
    stores: Stores,
    references: References,
    *,
    since: datetime,
    elements_before: datetime,
    dry_run: bool,
    progress: Progress,
) -> dict[str, Freed]:
    """Delete what nothing refers to and was not written since a time; counts and bytes by kind.

    elements_before: elements of a snapshot that is kept go when they are older, and not what a version that
        is kept was read as.
    """
    sweeper = _Sweeper(stores, references, since, elements_before, dry_run, progress)
    return {
        "raw": sweeper.sweep("raw/", sweeper.unused_raws),
        "elements": sweeper.sweep("elements/", sweeper.unused_elements),
        "vectors": sweeper.sweep("vectors/", sweeper.unused_vectors),
        "run_files": sweeper.sweep("runs/", sweeper.unused_run_files),
    }


@dataclass(frozen=True, slots=True)
class _Sweeper:
    stores: Stores
    references: References
    since: datetime
    elements_before: datetime
    dry_run: bool
    progress: Progress

    def sweep(
        self, prefix: str, unused: Callable[[list[ArtifactEntry]], Iterable[ArtifactEntry]]
    ) -> Freed:
        freed = Freed()
        old = (e for e in self.stores.artifacts.entries(prefix) if e.written_at < self.since)
        while page := list(islice(old, PAGE)):
            for entry in unused(page):
                if self.dry_run or self.stores.artifacts.delete(
                    entry.key, written_before=self.since
                ):
                    freed = freed.plus(entry)
            self.progress.advance(len(page), page[-1].key)
        return freed

    def unused_raws(self, page: list[ArtifactEntry]) -> Iterator[ArtifactEntry]:
        doubtful = [e for e in page if not self.references.has_raw(name_of(e.key))]
        used = self.references.in_use([name_of(e.key) for e in doubtful]) if doubtful else set()
        return (entry for entry in doubtful if name_of(entry.key) not in used)

    def unused_elements(self, page: list[ArtifactEntry]) -> Iterator[ArtifactEntry]:
        gone = {entry.key for entry in self.unused_raws(page)}
        for entry in page:
            outdated = entry.written_at < self.elements_before
            if entry.key in gone or (outdated and not self.references.has_elements(entry.key)):
                yield entry

    def unused_vectors(self, page: list[ArtifactEntry]) -> Iterator[ArtifactEntry]:
        owners = {entry.key: _owner(entry.key) for entry in page}
        ids = [owner for owner in owners.values() if owner is not None]
        stones = self.stores.ledger.tombstones_by_id(ids)
        for entry in page:
            owner = owners[entry.key]
            stone = stones.get(owner) if owner is not None else None
            if owner is not None and (stone is None or self.references.leaving.goes(stone)):
                yield entry

    def unused_run_files(self, page: list[ArtifactEntry]) -> Iterator[ArtifactEntry]:
        ledger, leaving = self.stores.ledger, self.references.leaving.runs
        for run_id, entries in groupby(page, lambda entry: entry.key.split("/")[1]):
            if run_id in leaving or ledger.run(run_id) is None:
                yield from entries


def _owner(key: str) -> UUID | None:
    """The document whose vectors these are, None for a key of no such form."""
    try:
        return UUID(name_of(key))
    except ValueError:
        return None
