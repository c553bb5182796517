"""Survey: what a listing says as a whole, before anything is decided about one of its items.

The listing is read twice. The first reading notes, on disk, what is there, which texts come up at several
addresses and what leads where; with that, the second reading decides item by item.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Self
from uuid import UUID

from tidemark.domain.decide import DUPLICATE_FROM, ListingContext
from tidemark.domain.documents import CrawlEnd, Observation, Outcome
from tidemark.domain.identity import document_id
from tidemark.domain.records import Alias, DocumentRecord
from tidemark.stages.blocking import blocked_observation
from tidemark.stages.crawl import read_listing
from tidemark.stages.job import Dependencies, Job
from tidemark.stages.temp_database import UsesTempDatabase

PAGE = 500
REPEATED = 3
"""So many documents that change to one text at once have not all been edited."""

_CONTENT = frozenset({Outcome.FETCHED, Outcome.NOT_MODIFIED})
_OTHER, _THERE, _GOING, _KEPT, _REWRITTEN = range(5)
"""What becomes of what is live at an address: nothing is; it stays; it goes; it stays because its newer
version cannot be had or believed; it is replaced by another text."""
COLLAPSED = 2
"""So many documents that lead to one place leave more behind there than one of them was."""
_SCHEMA = (
    "CREATE TABLE seen (id BLOB PRIMARY KEY, state INTEGER) WITHOUT ROWID",
    "CREATE TABLE text (hash TEXT, uri TEXT, new INTEGER, changed INTEGER)",
    "CREATE TABLE move (target TEXT PRIMARY KEY, uri TEXT) WITHOUT ROWID",
    "CREATE TABLE left_for (id BLOB PRIMARY KEY, target TEXT) WITHOUT ROWID",
    "CREATE TABLE same (id BLOB PRIMARY KEY, kept BLOB) WITHOUT ROWID",
    "CREATE TABLE leaving (id BLOB PRIMARY KEY, uri TEXT, text TEXT, target BLOB) WITHOUT ROWID",
    "CREATE TABLE decided (id BLOB PRIMARY KEY) WITHOUT ROWID",
)


@dataclass(frozen=True, slots=True)
class Page:
    """Some items of a listing by the document that each would be, with the ledger's records of those."""

    observed: dict[UUID, Observation]
    records: dict[UUID, DocumentRecord]


class ListingIndex(UsesTempDatabase):
    """One listing as a whole; a context manager."""

    def __init__(self, job: Job, deps: Dependencies) -> None:
        self._job = job
        self._deps = deps
        super().__init__(*_SCHEMA)
        self.end = CrawlEnd(complete=False, authoritative=False)

    def __enter__(self) -> Self:
        self._read()
        return self

    def pages(self) -> Iterator[Page]:
        """Stream the listing in pages, each document once, as it is first named. To be called once."""
        decided = self._temp_db.database
        for page in self._listing():
            fresh = {}
            for key, observed in page.observed.items():
                taken = decided.execute("INSERT OR IGNORE INTO decided VALUES (?)", (key.bytes,))
                if taken.rowcount:
                    fresh[key] = observed
            yield Page(fresh, page.records)

    def is_listed(self, document: UUID) -> bool:
        """Is it in the listing, whatever became of it?"""
        return self._state(document) is not None

    def left_for(self, document: UUID) -> str:
        """The URI at which a document that is not listed has come up again, "" when at none.

        Known once the whole listing was asked about (``surroundings``).
        """
        row = self._temp_db.database.execute(
            "SELECT target FROM left_for WHERE id = ?", (document.bytes,)
        ).fetchone()
        return str(row[0]) if row else ""

    def note_leaving(self, record: DocumentRecord, target: str) -> None:
        """Note that a document is to be let go because its address leads to another one."""
        self._temp_db.database.execute(
            "INSERT OR IGNORE INTO leaving VALUES (?, ?, ?, ?)",
            (
                record.document_id.bytes,
                record.uri,
                record.text_hash or record.raw_hash,
                document_id(self._job.source, target).bytes,
            ),
        )

    def note_duplicate(self, uri: str, kept: str) -> None:
        """Note that an address has the text of another: what leads to the one leads to the other."""
        ends = [document_id(self._job.source, address).bytes for address in (kept, uri)]
        self._temp_db.database.execute("INSERT OR REPLACE INTO same VALUES (?, ?)", ends[::-1])

    def collapsed(self) -> Iterator[str]:
        """URIs of documents with texts of their own that all lead to one place, where one may stand."""
        ends = "coalesce((SELECT kept FROM same WHERE same.id = leaving.target), target)"
        crowded = (
            f"SELECT {ends} AS place FROM leaving GROUP BY place "  # noqa: S608 - no value is in it
            "HAVING count(DISTINCT text) >= ?"
        )
        rows = self._temp_db.database.execute(
            f"SELECT uri FROM leaving WHERE {ends} IN ({crowded}) ORDER BY uri",  # noqa: S608 - as above
            (COLLAPSED,),
        )
        yield from (uri for (uri,) in rows)

    def listing_context(self, page: Page) -> dict[UUID, ListingContext]:
        """What the rest of the listing says, for those items of which it says something."""
        found: dict[UUID, ListingContext] = {}
        for key, observed in page.observed.items():
            if observed.outcome in (Outcome.MOVED, Outcome.ALIAS):
                state = self._state(document_id(self._job.source, observed.target))
                found[key] = ListingContext(target_here=state in (_THERE, _REWRITTEN))
        fetched = {k: o for k, o in page.observed.items() if o.outcome is Outcome.FETCHED}
        alike = {} if not self._job.judge else fetched
        living = self._living([o.text_hash for o in alike.values() if o.text_hash])
        for key, observed in alike.items():
            if (record := page.records.get(key)) is None or _changed(record, observed):
                around = self._around(observed, living, new=record is None)
                if around.duplicate_of:
                    self.note_duplicate(observed.uri, around.duplicate_of)
                if around != ListingContext():
                    found[key] = around
        new = {k: o for k, o in fetched.items() if k not in page.records}
        for key, (origin, moved_from) in self._origins(new).items():
            if moved_from:
                self._temp_db.database.execute(
                    "INSERT OR IGNORE INTO left_for VALUES (?, ?)",
                    (origin.bytes, new[key].uri),
                )
            found[key] = replace(
                found.get(key, ListingContext()), origin=origin, moved_from=moved_from
            )
        return found

    # The first reading

    def _read(self) -> None:
        database = self._temp_db.database
        for page in self._listing():
            database.execute("BEGIN")
            database.executemany(
                "INSERT OR IGNORE INTO seen VALUES (?, ?)",
                [
                    (key.bytes, self._state_of(o, page.records.get(key)))
                    for key, o in page.observed.items()
                ],
            )
            database.executemany(
                "INSERT OR IGNORE INTO move VALUES (?, ?)",
                [(o.target, o.uri) for o in page.observed.values() if o.outcome is Outcome.MOVED],
            )
            database.executemany(
                "INSERT INTO text VALUES (?, ?, ?, ?)",
                [
                    (
                        o.text_hash,
                        o.uri,
                        key not in page.records,
                        _rewritten(page.records.get(key), o),
                    )
                    for key, o in page.observed.items()
                    if o.text_hash and _comparable(o)
                ],
            )
            database.execute("COMMIT")
        database.execute("CREATE INDEX text_hash ON text (hash)")

    def _listing(self) -> Iterator[Page]:
        listing = read_listing(self._deps.artifacts, self._job.run_id)
        while values := list(islice(listing, PAGE)):
            observed: dict[UUID, Observation] = {}
            for value in values:
                if isinstance(value, CrawlEnd):
                    self.end = value
                else:
                    observed.setdefault(document_id(self._job.source, value.uri), value)
            records = self._deps.ledger.documents.by_id(list(observed))
            known = self._with_duplicates(observed, records)
            live = {key: r for key, r in records.items() if r.raw_hash is not None}
            # Something may have been taken down since the crawl asked.
            asked = {
                key: blocked_observation(self._job, self._deps, o, live.get(key))
                for key, o in known.items()
            }
            yield Page(asked, records)

    def _with_duplicates(
        self, observed: dict[UUID, Observation], records: dict[UUID, DocumentRecord]
    ) -> dict[UUID, Observation]:
        """A duplicate that answered "not modified" has no row of its own: its alias knows its bytes."""
        unknown = [
            o.uri
            for key, o in observed.items()
            if o.outcome is Outcome.NOT_MODIFIED and key not in records
        ]
        if not unknown:
            return observed
        there = self._deps.ledger.sources.aliases_by_uri(unknown, self._job.source)
        aliases = {alias.uri: alias for alias in there}
        return {
            key: _as_fetched(o, aliases[o.uri])
            if key not in records and o.uri in aliases and o.outcome is Outcome.NOT_MODIFIED
            else o
            for key, o in observed.items()
        }

    # The second reading

    def _state(self, document: UUID) -> int | None:
        row = self._temp_db.database.execute(
            "SELECT state FROM seen WHERE id = ?", (document.bytes,)
        ).fetchone()
        return int(row[0]) if row else None

    def _living(self, texts: Sequence[str]) -> dict[str, list[str]]:
        """URIs of the documents that are live with a text and stay, shortest first."""
        living: dict[str, list[str]] = {}
        if texts:
            for record in self._deps.ledger.documents.by_text(self._job.source, texts):
                if record.text_hash and self._stays(record):
                    living.setdefault(record.text_hash, []).append(record.uri)
        return {text: sorted(uris, key=_by_length) for text, uris in living.items()}

    def _stays(self, record: DocumentRecord) -> bool:
        """Is what is live of a document still so after this run?"""
        state = self._state(record.document_id)
        if state is not None:
            return state in (_THERE, _KEPT)
        missed_enough = record.missing_runs + 1 >= self._job.gone_after
        return not self.end.complete or not (self.end.authoritative or missed_enough)

    def _state_of(self, observed: Observation, record: DocumentRecord | None) -> int:
        if observed.outcome in _CONTENT:
            if observed.anomaly and self._job.judge:
                return _KEPT if record is not None else _OTHER
            return _REWRITTEN if _rewritten(record, observed) else _THERE
        copied = observed.outcome is Outcome.EXCLUDED and observed.target not in ("", observed.uri)
        if observed.outcome is Outcome.FAILED or copied:
            return _KEPT if record is not None else _OTHER
        return _GOING

    def _around(
        self, observed: Observation, living: dict[str, list[str]], *, new: bool
    ) -> ListingContext:
        if not observed.text_hash or not _comparable(observed):
            return ListingContext()
        count = "SELECT count(*), sum(changed) FROM text WHERE hash = ?"
        everywhere, changed = self._temp_db.database.execute(
            count, (observed.text_hash,)
        ).fetchone()
        if (changed or 0) >= REPEATED:
            return ListingContext(repeated=everywhere)
        if not new:
            return ListingContext()
        first = self._temp_db.database.execute(
            "SELECT uri FROM text WHERE hash = ? AND new ORDER BY length(uri), uri LIMIT 1",
            (observed.text_hash,),
        ).fetchone()
        kept = (living.get(observed.text_hash) or [first[0] if first else observed.uri])[0]
        return ListingContext(duplicate_of="" if kept == observed.uri else kept)

    def _origins(self, new: dict[UUID, Observation]) -> dict[UUID, tuple[UUID, str]]:
        """For new items the document that they were, or whose bytes they have: its id, its URI if it goes."""
        if not new:
            return {}
        source, ledger = self._job.source, self._deps.ledger
        moves = {k: uri for k, o in new.items() if (uri := self._moved_to(o.uri))}
        before = {k: document_id(source, uri) for k, uri in moves.items()}
        known = ledger.documents.by_id(list(before.values()))
        found = {k: (b, moves[k]) for k, b in before.items() if b in known}
        hashes = [o.raw_hash for k, o in new.items() if o.raw_hash and k not in found]
        by_raw: dict[str, tuple[UUID, str]] = {}
        for tombstone in ledger.tombstones.by_raw(source, hashes):
            by_raw.setdefault(tombstone.raw_hash or "", (tombstone.document_id, ""))
        for record in sorted(ledger.documents.by_raw(source, hashes), key=lambda r: r.uri):
            going = record.uri if self._goes(record) else ""
            if going or not by_raw.get(record.raw_hash or "", (None, ""))[1]:
                by_raw[record.raw_hash or ""] = (record.document_id, going)
        for record in ledger.documents.by_failed(source, hashes):
            # Broken bytes that are renamed: what was live before them must not pass for gone.
            if self._goes(record):
                by_raw.setdefault(record.fetched_raw_hash, (record.document_id, record.uri))
        for key, observed in new.items():
            if key not in found and observed.raw_hash in by_raw:
                found[key] = by_raw[observed.raw_hash]
        return found

    def _goes(self, record: DocumentRecord) -> bool:
        state = self._state(record.document_id)
        if state is None:
            return self.end.complete and self.end.authoritative
        return state == _GOING

    def _moved_to(self, uri: str) -> str:
        row = self._temp_db.database.execute(
            "SELECT uri FROM move WHERE target = ?", (uri,)
        ).fetchone()
        return str(row[0]) if row else ""


def _comparable(observed: Observation) -> bool:
    return (
        observed.outcome is Outcome.FETCHED
        and not observed.anomaly
        and (observed.text_length or 0) >= DUPLICATE_FROM
    )


def _changed(record: DocumentRecord, observed: Observation) -> bool:
    fetched = observed.outcome is Outcome.FETCHED
    return fetched and record.raw_hash not in (None, observed.raw_hash)


def _rewritten(record: DocumentRecord | None, observed: Observation) -> bool:
    """Has the document another text than the one that is live?"""
    return (
        record is not None
        and record.text_hash is not None
        and _changed(record, observed)
        and record.text_hash != observed.text_hash
    )


def _by_length(uri: str) -> tuple[int, str]:
    return len(uri), uri


def _as_fetched(observed: Observation, alias: Alias) -> Observation:
    if alias.raw_hash is None:
        return observed
    return replace(
        observed,
        outcome=Outcome.FETCHED,
        validators=alias.validators,
        raw_hash=alias.raw_hash,
        media_type=alias.media_type,
        charset=alias.charset,
        fetched_at=alias.fetched_at,
        text_hash=alias.text_hash,
        text_length=alias.text_length,
    )
