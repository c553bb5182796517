"""Housekeeping: what nobody refers to any more goes, and nothing that a run may need.

Three things keep a value that a run needs:

1. nothing is deleted that was written in the last day, nor since a run began that is still going on, waits
   for a person, or failed lately, so that it may be taken up again, whatever other runs did since. What a run
   fetches counts as written then, also where the very bytes were there before;
2. what any row of the ledger refers to stays, and that is asked again right before a page is deleted;
3. the store itself refuses to delete what was written after the list of it was read.

Each step may be killed and repeated. A dry run counts the same and removes nothing.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby, islice
from typing import Self
from uuid import UUID

from tidemark.domain.errors import SourceBusyError
from tidemark.domain.hashing import Canonical
from tidemark.domain.identity import document_id
from tidemark.domain.records import GenerationStatus, RunRecord, RunStatus, Tombstone, VersionRecord
from tidemark.ports import ArtifactEntry, Ledger, Progress, quiet
from tidemark.stages.discard import name_of
from tidemark.stages.generations import current_generation, drop_generations, given_up
from tidemark.stages.job import Stores
from tidemark.stages.process.prepare import elements_key
from tidemark.stages.takedown.requests import unfinished
from tidemark.stages.temp_database import UsesTempDatabase

# Litter: the artifacts that nothing refers to any more.

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
        for document, versions in groupby(ledger.versions.stream(), lambda v: v.document_id):
            replaced_at: datetime | None = None
            for version in versions:
                old = limit is not None and replaced_at is not None and replaced_at < limit
                yield version, old or document in self.expired
                replaced_at = version.indexed_at

    def goes(self, stone: Tombstone) -> bool:
        return stone.expired or stone.document_id in self.expired


class References(UsesTempDatabase):
    """What the ledger refers to, on disk, so that memory does not grow with it."""

    def __init__(self, ledger: Ledger, leaving: Leaving) -> None:
        self._ledger = ledger
        self.leaving = leaving
        super().__init__(
            "CREATE TABLE raw (hash TEXT PRIMARY KEY) WITHOUT ROWID",
            "CREATE TABLE elements (key TEXT PRIMARY KEY) WITHOUT ROWID",
        )

    def __enter__(self) -> Self:
        database = self._temp_db.database
        database.execute("BEGIN")
        found = (
            self._referred()
            if self.leaving != Leaving()
            else self._ledger.versions.raw_references()
        )
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
            return self._ledger.versions.raw_in_use(raw_hashes)
        return {
            stone.raw_hash
            for source in self._ledger.sources.names()
            for stone in self._ledger.tombstones.by_raw(source, raw_hashes)
            if stone.raw_hash and not self.leaving.goes(stone)
        }

    def _has(self, query: str, value: str) -> bool:
        return self._temp_db.database.execute(query, (value,)).fetchone() is not None

    def _elements(self) -> Iterator[str]:
        for record in self._ledger.documents.stream():
            if record.raw_hash is not None and record.fingerprints is not None:
                yield elements_key(record, record.fingerprints.partition)
        for version, goes in self.leaving.versions(self._ledger):
            if not goes:
                yield elements_key(version, version.fingerprints.partition)

    def _referred(self) -> Iterator[str]:
        """What will be referred to but by tombstones, which ``in_use`` asks for."""
        for record in self._ledger.documents.stream():
            yield from filter(None, (record.raw_hash, record.fetched_raw_hash))
            if record.failure is not None:
                yield record.failure.raw_hash
        for source in self._ledger.sources.names():
            yield from filter(
                None, (alias.raw_hash for alias in self._ledger.sources.aliases(source))
            )
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
        stones = self.stores.ledger.tombstones.by_id(ids)
        for entry in page:
            owner = owners[entry.key]
            stone = stones.get(owner) if owner is not None else None
            if owner is not None and (stone is None or self.references.leaving.goes(stone)):
                yield entry

    def unused_run_files(self, page: list[ArtifactEntry]) -> Iterator[ArtifactEntry]:
        ledger, leaving = self.stores.ledger, self.references.leaving.runs
        for run_id, entries in groupby(page, lambda entry: entry.key.split("/")[1]):
            if run_id in leaving or ledger.runs.get(run_id) is None:
                yield from entries


def _owner(key: str) -> UUID | None:
    """The document whose vectors these are, None for a key of no such form."""
    try:
        return UUID(name_of(key))
    except ValueError:
        return None


YOUNG = timedelta(hours=24)
KILLED = timedelta(days=2)
"""A run that is said to be running for longer, while nobody holds its source's lock or writes, was killed."""
TAKEN_UP = timedelta(days=7)
"""For so long a run that failed may still be taken up where it ended."""
SKEW = timedelta(hours=1)
"""The clocks of a store and of the ledger differ by less."""
EVERY = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Retention:
    """For how long what may still be of use is kept; days.

    history: a version that another replaced, with its snapshot. runs: runs, their files, and audits; the
    latest ``keep_runs`` of each source in any case. tombstones: that a document was removed. grace: what a
    removed document of a source that nobody declares any more could be restored from. elements: what another
    parser made of a snapshot than the one whose version is kept.
    """

    history: int = 90
    runs: int = 180
    keep_runs: int = 20
    tombstones: int = 365
    grace: int = 30
    elements: int = 30


@dataclass(frozen=True, slots=True)
class Housekeeping:
    """What was removed, or would be, by kind; ``notes`` for what a person should know."""

    dry_run: bool
    removed: dict[str, Freed]
    notes: tuple[str, ...] = ()

    @property
    def freed_bytes(self) -> int:
        return sum(freed.bytes for freed in self.removed.values())

    def sentence(self) -> str:
        kinds = ", ".join(
            f"{freed.count:,} {kind.replace('_', ' ')}"
            for kind, freed in self.removed.items()
            if freed.count
        )
        would = "Would remove" if self.dry_run else "Removed"
        return f"{would} {kinds or 'nothing'}; {self.freed_bytes:,} bytes."

    def as_dict(self) -> dict[str, Canonical]:
        return {
            "dry_run": self.dry_run,
            "removed": {
                kind: {"count": freed.count, "bytes": freed.bytes}
                for kind, freed in self.removed.items()
            },
            "freed_bytes": self.freed_bytes,
            "notes": list(self.notes),
        }


def collect_garbage(
    stores: Stores,
    retention: Retention,
    index_name: str,
    embed: str,
    declared: Collection[str],
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Housekeeping:
    """Remove what nobody needs any more from all stores.

    ``embed``: the present embedding fingerprint. ``declared``: the sources that will have runs again.
    """
    collector = _Collector(stores, retention, stores.clock(), dry_run)
    progress = progress or quiet()
    progress.stage("ledger", None)
    killed = collector.end_killed_runs()
    since = collector.protected_since(killed)
    leaving = collector.shorten_the_ledger(declared)
    progress.stage("artifacts", None)
    with References(stores.ledger, leaving) as references:
        swept = sweep_artifacts(
            stores,
            references,
            since=since,
            elements_before=min(since, collector.before(retention.elements)),
            dry_run=dry_run,
            progress=progress,
        )
    count, size = stores.artifacts.discard_unfinished(collector.now - YOUNG, dry_run=dry_run)
    generations = collector.drop_dead_generations(index_name, embed)
    for order in unfinished(stores.artifacts):
        collector.notes.append(
            f"The takedown of {order.document.uri} was cut short; "
            f"run `tidemark takedown {order.document.uri}` again."
        )
    removed = {
        **swept,
        "unfinished_writes": Freed(count, size),
        **{kind: Freed(number) for kind, number in collector.counts.items()},
        "generations": Freed(generations),
    }
    return Housekeeping(dry_run, removed, tuple(collector.notes))


@dataclass(slots=True)
class _Collector:
    """The part that is done in the ledger and the index."""

    stores: Stores
    retention: Retention
    now: datetime
    dry_run: bool
    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def before(self, days: int) -> datetime:
        return self.now - timedelta(days=days)

    def end_killed_runs(self) -> set[str]:
        """Runs that nobody carries out any more are said to have failed."""
        ledger = self.stores.ledger
        killed = [
            run
            for run in ledger.runs.running()
            if run.started_at < self.now - KILLED
            and not ledger.is_locked(run.source)
            and not self._is_growing(run)
        ]
        for run in killed if not self.dry_run else ():
            note = f"{run.note} It was killed.".strip()
            ledger.runs.save(replace(run, status=RunStatus.FAILED, finished_at=self.now, note=note))
        self.counts["killed_runs"] = len(killed)
        return {run.run_id for run in killed}

    def _is_growing(self, run: RunRecord) -> bool:
        """Was something of it written lately? A crawl holds no lock, however long it takes.

        Whose new bytes are is not known before the crawl has ended; for longer than a run could be taken up
        they are not held to be its own.
        """
        crawls = run.started_at > self.now - TAKEN_UP and self._written_lately("raw/")
        return crawls or self._written_lately(f"runs/{run.run_id}/")

    def _written_lately(self, prefix: str) -> bool:
        entries = self.stores.artifacts.entries(prefix)
        return any(entry.written_at >= self.now - YOUNG for entry in entries)

    def protected_since(self, killed: set[str]) -> datetime:
        """What was written since then stays, whatever refers to it."""
        ledger = self.stores.ledger
        needed = [run for run in ledger.runs.running() if run.run_id not in killed]
        for run in _since(ledger, self.now - 2 * TAKEN_UP):
            failed = run.status is RunStatus.FAILED or run.run_id in killed
            ended = self.now if run.run_id in killed else run.finished_at or run.started_at
            if failed and ended > self.now - TAKEN_UP:
                needed.append(run)
        oldest = min(needed, key=lambda run: run.started_at, default=None)
        if oldest is None or oldest.started_at - SKEW >= self.now - YOUNG:
            return self.now - YOUNG
        self.notes.append(
            f"The run {oldest.run_id} may still need what was written since "
            f"{oldest.started_at:%Y-%m-%d %H:%M} UTC; that stays."
        )
        return oldest.started_at - SKEW

    def shorten_the_ledger(self, declared: Collection[str]) -> Leaving:
        """Forget what is past its time; what a dry run would have forgotten."""
        ledger, keep = self.stores.ledger, self.retention
        self.counts["versions"] = self._versions(self.before(keep.history))
        expired = self._expire(set(ledger.sources.names()) - set(declared))
        self.counts["tombstones"] = self._tombstones(self.before(keep.tombstones), expired)
        runs = self._runs(self.before(keep.runs))
        self.counts["audits"] = self._audits(self.before(keep.runs))
        if not self.dry_run:
            return Leaving()
        ids = frozenset(stone.document_id for stone in expired)
        return Leaving(self.before(keep.history), ids, frozenset(runs))

    def _versions(self, limit: datetime) -> int:
        ledger = self.stores.ledger
        if self.dry_run:
            return sum(1 for _, goes in Leaving(limit).versions(ledger) if goes)
        count = 0
        while dropped := ledger.versions.drop(limit):
            count += dropped
        return count

    def _tombstones(self, limit: datetime, expired: list[Tombstone]) -> int:
        ledger = self.stores.ledger
        if self.dry_run:
            more = (stone.removed_at < limit and not stone.taken_down for stone in expired)
            return ledger.tombstones.count_droppable(limit) + sum(more)
        count = 0
        while dropped := ledger.tombstones.drop(limit):
            count += dropped
        return count

    def _expire(self, undeclared: Iterable[str]) -> list[Tombstone]:
        """As every run does for its own source; what they kept goes with what nobody refers to.

        What a dry run would expire, of each source the oldest 1,000.
        """
        ledger, limit = self.stores.ledger, self.before(self.retention.grace)
        expired: list[Tombstone] = []
        self.counts["expired_documents"] = 0
        for source in sorted(undeclared):
            if self.dry_run:
                expired += ledger.tombstones.restorable(source, limit)
                self.counts["expired_documents"] = len(expired)
                continue
            try:
                with ledger.lock(source):
                    while stones := ledger.tombstones.restorable(source, limit):
                        ids = [stone.document_id for stone in stones]
                        ledger.versions.forget(ids)
                        ledger.tombstones.expire(ids)
                        self.counts["expired_documents"] += len(ids)
            except SourceBusyError as error:
                self.notes.append(str(error))
        return expired

    def _runs(self, limit: datetime) -> set[str]:
        ledger, keep = self.stores.ledger, self.retention.keep_runs
        gone: set[str] = set()
        if self.dry_run:
            for source in ledger.sources.names():
                gone |= _old_runs(ledger.runs.recent(source, limit=EVERY), limit, keep)
        else:
            while dropped := ledger.runs.drop(limit, keep):
                gone |= set(dropped)
        self.counts["runs"] = len(gone)
        return gone

    def _audits(self, limit: datetime) -> int:
        ledger = self.stores.ledger
        if not self.dry_run:
            return ledger.generations.drop_audits(limit)
        latest: set[str | None] = set()
        count = 0
        for audit in ledger.generations.audits(limit=EVERY):
            count += audit.source in latest and audit.audited_at < limit
            latest.add(audit.source)
        return count

    def drop_dead_generations(self, index_name: str, embed: str) -> int:
        """Drop collections that are neither live nor being built, or were given up; how many generations.

        Under the lock under which they are made: one that the ledger does not know may be about to be.
        """
        ledger, index = self.stores.ledger, self.stores.index
        with (
            ledger.lock_documents([document_id("generations", index_name)]),
            index.session(),
        ):
            live = index.live()
            if live is None:
                return 0  # Whatever happened here, a person should look at it first.
            current = current_generation(ledger, index, index_name, embed)
            empty = given_up(ledger, index, live) if current == live else []
            known = {record.number: record.status for record in ledger.generations.all(index_name)}
            dead = [
                number
                for number in index.generations()
                if number not in (live, current)
                and (
                    number in empty
                    or known.get(number, GenerationStatus.RETIRED) is GenerationStatus.RETIRED
                )
            ]
            if not self.dry_run:
                drop_generations(ledger, index, index_name, dead)
        return len(dead)


def _since(ledger: Ledger, started: datetime) -> list[RunRecord]:
    """The runs of all sources that have begun since a time."""
    limit = 100
    while True:
        runs = ledger.runs.recent(limit=limit)
        if len(runs) < limit or runs[-1].started_at < started:
            return [run for run in runs if run.started_at >= started]
        limit *= 4


def _old_runs(latest_first: list[RunRecord], limit: datetime, keep: int) -> set[str]:
    """Those that ``Ledger.drop_runs`` would forget."""
    good = [run for run in latest_first if run.status is RunStatus.SUCCESS][:1]
    return {
        run.run_id
        for run in latest_first[keep:]
        if run.finished_at is not None and run.finished_at < limit and run not in good
    }
