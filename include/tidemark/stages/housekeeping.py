"""Housekeeping: collect what nobody refers to any more, and nothing that a run may need.

Three things keep a value that a run needs:

1. nothing is deleted that was written in the last day, nor since a run began that is still going on, waits
   for a person, or failed lately, so that it may be taken up again, whatever other runs did since. What a run
   fetches counts as written then, also where the very bytes were there before;
2. what any row of the ledger refers to stays, and that is asked again right before a page is deleted;
3. the store itself refuses to delete what was written after the list of it was read.

Each step may be killed and repeated. A dry run is the same with a ledger whose changes are undone at the end
(rows that it would delete are locked as long), artifacts that are only counted, and generations that stay.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby, islice
from typing import Self
from uuid import UUID

from tidemark.domain.errors import SourceBusyError
from tidemark.domain.hashing import Canonical
from tidemark.domain.identity import document_id
from tidemark.domain.records import GenerationStatus, RunRecord, RunStatus
from tidemark.ports.artifacts import ArtifactEntry
from tidemark.ports.ledger import Ledger
from tidemark.ports.progress import Progress, quiet
from tidemark.stages.discard import name_of
from tidemark.stages.generations import abandoned, current_generation, drop_generations
from tidemark.stages.job import Stores
from tidemark.stages.process.prepare import elements_key
from tidemark.stages.takedown.requests import unfinished
from tidemark.stages.temp_database import UsesTempDatabase

PAGE = 500
YOUNG = timedelta(hours=24)
KILLED = timedelta(days=2)
"""A run that is said to be running for longer, while nobody holds its source's lock or writes, was killed."""
TAKEN_UP = timedelta(days=7)
"""For so long a run that failed may still be taken up where it ended."""
SKEW = timedelta(hours=1)
"""The clocks of a store and of the ledger differ by less."""


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
class Freed:
    """How many things, and their bytes where they have a size."""

    count: int = 0
    bytes: int = 0


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
    progress = progress or quiet()
    if not dry_run:
        collector = _Collector(stores, retention, stores.clock(), dry_run, progress)
        return collector.collect(index_name, embed, declared)
    with stores.ledger.dry_run() as ledger:
        stores = replace(stores, ledger=ledger)
        collector = _Collector(stores, retention, stores.clock(), dry_run, progress)
        return collector.collect(index_name, embed, declared)


@dataclass(slots=True)
class _Collector:
    stores: Stores
    retention: Retention
    now: datetime
    dry_run: bool
    progress: Progress
    removed: dict[str, Freed] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def collect(self, index_name: str, embed: str, declared: Collection[str]) -> Housekeeping:
        self.progress.stage("ledger", None)
        rows = {"killed_runs": self._fail_killed_runs()}
        since = self._protected_since()
        rows |= self._drop_rows(declared)
        self.progress.stage("artifacts", None)
        self._delete_artifacts(since)
        self.removed |= {kind: Freed(count) for kind, count in rows.items()}
        self.removed["generations"] = Freed(self._drop_dead_generations(index_name, embed))
        for request in unfinished(self.stores.artifacts):
            uri = request.document.uri
            self.notes.append(
                f"The takedown of {uri} was cut short; run `tidemark takedown {uri}` again."
            )
        return Housekeeping(self.dry_run, self.removed, tuple(self.notes))

    def _before(self, days: int) -> datetime:
        return self.now - timedelta(days=days)

    # Runs

    def _fail_killed_runs(self) -> int:
        """Runs that nobody carries out any more are said to have failed."""
        ledger = self.stores.ledger
        killed = [
            run
            for run in ledger.runs.running()
            if run.started_at < self.now - KILLED
            and not ledger.is_locked(run.source)
            and not self._is_growing(run)
        ]
        for run in killed:
            note = f"{run.note} It was killed.".strip()
            ledger.runs.save(replace(run, status=RunStatus.FAILED, finished_at=self.now, note=note))
        return len(killed)

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

    def _protected_since(self) -> datetime:
        """What was written since then stays, whatever refers to it."""
        needed = [
            *self.stores.ledger.runs.running(),
            *(
                run
                for run in _runs_since(self.stores.ledger, self.now - 2 * TAKEN_UP)
                if run.status is RunStatus.FAILED
                and (run.finished_at or run.started_at) > self.now - TAKEN_UP
            ),
        ]
        oldest = min(needed, key=lambda run: run.started_at, default=None)
        if oldest is None or oldest.started_at - SKEW >= self.now - YOUNG:
            return self.now - YOUNG
        self.notes.append(
            f"The run {oldest.run_id} may still need what was written since "
            f"{oldest.started_at:%Y-%m-%d %H:%M} UTC; that stays."
        )
        return oldest.started_at - SKEW

    # The ledger

    def _drop_rows(self, declared: Collection[str]) -> dict[str, int]:
        """Forget what is past its time; how many of each kind."""
        ledger, keep = self.stores.ledger, self.retention
        old_runs = self._before(keep.runs)
        versions = _repeated(lambda: ledger.versions.drop(self._before(keep.history)))
        undeclared = sorted(set(ledger.sources.names()) - set(declared))
        return {
            "versions": versions,
            "expired_documents": sum(map(self._expire, undeclared)),
            "tombstones": _repeated(lambda: ledger.tombstones.drop(self._before(keep.tombstones))),
            "runs": _repeated(lambda: len(ledger.runs.drop(old_runs, keep.keep_runs))),
            "audits": ledger.generations.drop_audits(old_runs),
        }

    def _expire(self, source: str) -> int:
        """As every run does for its own source; what they kept goes with what nobody refers to."""
        ledger, count = self.stores.ledger, 0
        try:
            with ledger.lock(source):
                limit = self._before(self.retention.grace)
                while tombstones := ledger.tombstones.restorable(source, limit):
                    ids = [tombstone.document_id for tombstone in tombstones]
                    ledger.versions.forget(ids)
                    ledger.tombstones.expire(ids)
                    count += len(ids)
        except SourceBusyError as error:
            self.notes.append(str(error))
        return count

    # Artifacts

    def _delete_artifacts(self, since: datetime) -> None:
        """Delete what nothing refers to and was not written since a time."""
        outdated = min(since, self._before(self.retention.elements))
        artifacts = self.stores.artifacts
        with _References(self.stores.ledger) as references:
            for kind, prefix, unused in (
                ("raw", "raw/", references.unused_raws),
                ("elements", "elements/", lambda page: references.unused_elements(page, outdated)),
                ("vectors", "vectors/", references.unused_vectors),
                ("run_files", "runs/", references.unused_run_files),
            ):
                self.removed[kind] = self._delete_unused(prefix, since, unused)
        count, size = artifacts.discard_unfinished(self.now - YOUNG, dry_run=self.dry_run)
        self.removed["unfinished_writes"] = Freed(count, size)

    def _delete_unused(
        self,
        prefix: str,
        since: datetime,
        unused: Callable[[list[ArtifactEntry]], Iterable[ArtifactEntry]],
    ) -> Freed:
        artifacts, count, size = self.stores.artifacts, 0, 0
        old = (entry for entry in artifacts.entries(prefix) if entry.written_at < since)
        while page := list(islice(old, PAGE)):
            for entry in unused(page):
                if self.dry_run or artifacts.delete(entry.key, written_before=since):
                    count, size = count + 1, size + entry.size
            self.progress.advance(len(page), page[-1].key)
        return Freed(count, size)

    # The index

    def _drop_dead_generations(self, index_name: str, embed: str) -> int:
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
            empty = abandoned(ledger, index, live) if current == live else []
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


class _References(UsesTempDatabase):
    """What the ledger refers to, on disk, so that memory does not grow with it; and what it does not."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        super().__init__(
            "CREATE TABLE raw (key TEXT PRIMARY KEY) WITHOUT ROWID",
            "CREATE TABLE elements (key TEXT PRIMARY KEY) WITHOUT ROWID",
        )

    def __enter__(self) -> Self:
        database = self._temp_db.database
        database.execute("BEGIN")
        for table, keys in (
            ("raw", self._ledger.versions.raw_references()),
            ("elements", self._elements()),
        ):
            insert = f"INSERT OR IGNORE INTO {table} VALUES (?)"  # noqa: S608 - one of two names
            database.executemany(insert, ((key,) for key in keys))
        database.execute("COMMIT")
        return self

    def _elements(self) -> Iterator[str]:
        """What the versions that are live, or kept, were read as."""
        for record in self._ledger.documents.stream():
            if record.raw_hash is not None and record.fingerprints is not None:
                yield elements_key(record, record.fingerprints.partition)
        for version in self._ledger.versions.stream():
            yield elements_key(version, version.fingerprints.partition)

    def _has(self, table: str, key: str) -> bool:
        query = f"SELECT 1 FROM {table} WHERE key = ?"  # noqa: S608 - one of two names
        return self._temp_db.database.execute(query, (key,)).fetchone() is not None

    def unused_raws(self, page: list[ArtifactEntry]) -> list[ArtifactEntry]:
        doubtful = [entry for entry in page if not self._has("raw", name_of(entry.key))]
        names = [name_of(entry.key) for entry in doubtful]
        used = self._ledger.versions.raw_in_use(names) if names else set()
        return [entry for entry in doubtful if name_of(entry.key) not in used]

    def unused_elements(
        self, page: list[ArtifactEntry], outdated: datetime
    ) -> Iterator[ArtifactEntry]:
        """Those of snapshots that go, and those from before a time that no version was read as."""
        gone = {entry.key for entry in self.unused_raws(page)}
        for entry in page:
            is_old = entry.written_at < outdated
            if entry.key in gone or (is_old and not self._has("elements", entry.key)):
                yield entry

    def unused_vectors(self, page: list[ArtifactEntry]) -> Iterator[ArtifactEntry]:
        """Those of documents that nothing could restore."""
        owners = {entry.key: _owner(entry.key) for entry in page}
        ids = [owner for owner in owners.values() if owner is not None]
        tombstones = self._ledger.tombstones.by_id(ids)
        for entry in page:
            owner = owners[entry.key]
            if owner is not None and (owner not in tombstones or tombstones[owner].expired):
                yield entry

    def unused_run_files(self, page: list[ArtifactEntry]) -> Iterator[ArtifactEntry]:
        for run_id, entries in groupby(page, lambda entry: entry.key.split("/")[1]):
            if self._ledger.runs.get(run_id) is None:
                yield from entries


def _owner(key: str) -> UUID | None:
    """The document whose vectors these are, None for a key of no such form."""
    try:
        return UUID(name_of(key))
    except ValueError:
        return None


def _repeated(drop: Callable[[], int]) -> int:
    """Drop a bounded number at a time until there are none left; how many in all."""
    count = 0
    while dropped := drop():
        count += dropped
    return count


def _runs_since(ledger: Ledger, started: datetime) -> list[RunRecord]:
    """The runs of all sources that have begun since a time."""
    limit = 100
    while True:
        runs = ledger.runs.recent(limit=limit)
        if len(runs) < limit or runs[-1].started_at < started:
            return [run for run in runs if run.started_at >= started]
        limit *= 4
