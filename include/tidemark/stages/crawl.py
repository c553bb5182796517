"""List and fetch: from a source to a stored listing whose bytes are in the artifact store."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from heapq import heappush, heappushpop
from threading import Lock
from time import perf_counter
from typing import Any

from tidemark.domain.boilerplate import detect_boilerplate
from tidemark.domain.documents import (
    CrawlEnd,
    CrawlItem,
    Inspection,
    Observation,
    Outcome,
    RawDocument,
    SourceItem,
    Validators,
)
from tidemark.domain.errors import TransientError
from tidemark.domain.hashing import digest, digest_text
from tidemark.domain.records import DocumentRecord
from tidemark.ports.artifacts import ArtifactStore
from tidemark.ports.ledger import Ledger
from tidemark.ports.source import Known
from tidemark.stages.blocking import blocked_content
from tidemark.stages.codec import decode_listing_line, encode_end, encode_observation
from tidemark.stages.job import Dependencies, Job, boilerplate_key, listing_key, raw_key
from tidemark.stages.temp_database import TempDatabase

# What a source's pages have in common: learnt by a crawl, dropped by every partitioning after it.

SAMPLE = 300
"""Pages that the boilerplate is learnt from: enough to tell half of a site, whatever its size."""
RELEARN_SHARE = 0.5
"""When so much of a site was fetched anew it may have another design."""


class BoilerplateSample:
    """The blocks of a bounded number of pages, the same ones whatever order they come in."""

    def __init__(self) -> None:
        self.pages = 0
        # The page with the highest digest is at the top, and is the next to go.
        self._kept: list[tuple[int, tuple[int, ...]]] = []

    def add(self, uri: str, blocks: tuple[int, ...]) -> None:
        if not blocks:
            return
        self.pages += 1
        entry = (-int(digest_text(uri)[:15], 16), blocks)
        if len(self._kept) < SAMPLE:
            heappush(self._kept, entry)
        else:
            heappushpop(self._kept, entry)

    def detected(self) -> frozenset[int]:
        return detect_boilerplate(blocks for _, blocks in self._kept)


def remember_boilerplate(
    job: Job, deps: Dependencies, sample: BoilerplateSample, indexed: int
) -> None:
    """Learn the site's boilerplate when enough of it was fetched, and keep it for this run.

    ``indexed``: documents that the source had before. In the ledger only when the run is to be applied.
    """
    partial = job.limit is not None or not job.detect_boilerplate
    if partial or not sample.pages or sample.pages < RELEARN_SHARE * indexed:
        return
    blocks = tuple(sorted(sample.detected()))
    state = deps.ledger.sources.state(job.source)
    detected = {"now": blocks, "before": state.boilerplate}
    deps.artifacts.write(boilerplate_key(job.run_id), json.dumps(detected).encode())
    if not job.dry_run:
        deps.ledger.sources.save_state(
            replace(state, boilerplate=blocks, boilerplate_pages=sample.pages)
        )


def with_site_boilerplate(job: Job, deps: Dependencies) -> Dependencies:
    """The tools of a run once its crawl is done: the partitioner knows what is on every page."""
    now, _ = _boilerplate(job, deps)
    return replace(deps, partitioner=deps.partitioner.with_boilerplate(now))


def boilerplate_then_and_now(job: Job, deps: Dependencies) -> frozenset[int]:
    """What is boilerplate in the live versions of the site's pages, and in those of this run."""
    now, before = _boilerplate(job, deps)
    return now | before


def _boilerplate(job: Job, deps: Dependencies) -> tuple[frozenset[int], frozenset[int]]:
    try:
        detected = json.loads(deps.artifacts.read(boilerplate_key(job.run_id)))
    except KeyError:
        known = frozenset(deps.ledger.sources.state(job.source).boilerplate)
        return known, known
    return frozenset(detected["now"]), frozenset(detected["before"])


def remember_state(job: Job, deps: Dependencies, state: str) -> None:
    """Keep what the next crawl is to be told, once this one is applied whole."""
    if state:
        known = deps.ledger.sources.state(job.source)
        deps.ledger.sources.save_state(replace(known, state=state))


@dataclass(frozen=True, slots=True)
class CrawlSummary:
    """outcomes: items by outcome. bytes: of the bodies fetched. state: ``CrawlEnd.state``."""

    outcomes: dict[str, int]
    complete: bool
    authoritative: bool
    problem: str
    bytes: int
    seconds: float
    state: str = ""


def crawl(job: Job, deps: Dependencies) -> CrawlSummary:
    """Crawl the source and store the listing; a failed item is a line in it, never an omission.

    Raises ``TransientError`` when the source as a whole is away: there is nothing to plan with.
    """
    started = perf_counter()
    deps.progress.stage("crawl", None)
    outcomes: Counter[str] = Counter()
    size = 0
    end = CrawlEnd(complete=False, authoritative=False, problem="The crawl ended without a result.")
    sample = BoilerplateSample()
    with (
        LedgerKnown(deps, job) as known,
        deps.artifacts.writer(listing_key(job.run_id)) as listing,
    ):
        for value in deps.source.crawl(known, job.limit):
            if isinstance(value, CrawlEnd):
                end = value
                continue
            observed = _blocked(job, value, known) or _store(job, deps, value, known, sample)
            outcomes[observed.outcome.value] += 1
            size += observed.size or 0 if observed.outcome is Outcome.FETCHED else 0
            listing.line(encode_observation(observed))
            deps.progress.advance(detail=observed.uri)
        listing.line(encode_end(end))
        indexed = known.count
    if not outcomes and not end.complete and end.problem:
        raise TransientError(
            f"The source {job.source!r} could not be crawled: {end.problem}",
            "Nothing was deleted; what is indexed stays as it is.",
        )
    remember_boilerplate(job, deps, sample, indexed)
    return CrawlSummary(
        dict(outcomes),
        end.complete,
        end.authoritative,
        end.problem,
        size,
        perf_counter() - started,
        end.state if end.complete else "",
    )


def _blocked(job: Job, item: CrawlItem, known: "LedgerKnown") -> Observation | None:
    """The observation of an item at, or leading to, an address that was taken down."""
    if not job.blocks.by_uri:
        return None
    return job.blocks.at_address(item, is_live=known.live(item.item.uri) is not None)


def _store(
    job: Job,
    deps: Dependencies,
    found: CrawlItem,
    known: "LedgerKnown",
    sample: BoilerplateSample,
) -> Observation:
    raw = found.raw
    if raw is None:
        return Observation(
            found.item.uri,
            found.outcome,
            found.item.validators,
            detail=found.detail,
            target=found.target if found.outcome is not Outcome.EXCLUDED else "",
        )
    raw_hash = digest(raw.content)
    seen = _inspected(raw, raw_hash, deps, known)
    text_hash = seen.text_hash if seen is not None and seen.anomaly is None else None
    live = known.live(raw.uri) if job.blocks.by_uri else None
    if blocked := blocked_content(job, deps, raw.uri, raw_hash, text_hash, live):
        return blocked
    deps.artifacts.write(raw_key(raw_hash), raw.content)
    if seen is not None and seen.anomaly is None:
        sample.add(raw.uri, seen.blocks)
    return Observation(
        uri=raw.uri,
        outcome=found.outcome,
        validators=raw.validators,
        raw_hash=raw_hash,
        media_type=raw.media_type,
        charset=raw.charset,
        fetched_at=raw.fetched_at,
        size=len(raw.content),
        detail=seen.detail if seen and seen.anomaly else found.detail,
        modified_at=raw.modified_at,
        link=raw.link,
        text_hash=seen.text_hash if seen else None,
        text_length=seen.text_length if seen else None,
        anomaly=seen.anomaly if seen else None,
    )


def _inspected(
    raw: RawDocument, raw_hash: str, deps: Dependencies, known: "LedgerKnown"
) -> Inspection | None:
    """The look at a page, saved where the ledger has looked at these very bytes before."""
    if deps.inspector is None:
        return None
    return known.inspected(raw.uri, raw_hash) or deps.inspector.inspect(raw)


def read_listing(artifacts: ArtifactStore, run_id: str) -> Iterator[Observation | CrawlEnd]:
    """Stream a stored listing; its last value is the CrawlEnd."""
    for line in artifacts.lines(listing_key(run_id)):
        yield decode_listing_line(line)


_KNOWN = """
CREATE TABLE known (
    uri TEXT PRIMARY KEY, validators TEXT, raw_hash TEXT, media_type TEXT, document INTEGER,
    indexed_raw_hash TEXT, text_hash TEXT, text_length INTEGER
) WITHOUT ROWID
"""
_INSERT = "INSERT OR IGNORE INTO known VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_Row = tuple[str, str, str | None, str, int, str | None, str | None, int | None]


@dataclass(frozen=True, slots=True)
class LiveHashes:
    """What a live version is told by."""

    raw_hash: str
    text_hash: str | None


class LedgerKnown:
    """What the ledger and the artifact store know of a source's last crawl (a ``Known``).

    Nothing is offered as known when the fetch fingerprint changed or the run is forced, so that
    everything is fetched again. It is kept on disk for the time of the crawl; the crawl's own threads may
    ask.
    """

    def __init__(self, deps: Dependencies, job: Job) -> None:
        self._deps = deps
        self._source = job.source
        self._fresh = job.force
        self._temp_db: TempDatabase | None = None
        self._lock = Lock()

    def __enter__(self) -> "LedgerKnown":
        return self

    def __exit__(self, *_: object) -> None:
        if self._temp_db is not None:
            self._temp_db.close()

    @property
    def count(self) -> int:
        """How many documents the source has."""
        with self._lock:
            found = self._table().database.execute("SELECT sum(document) FROM known").fetchone()
        return int(found[0] or 0)

    def validators(self, uri: str) -> Validators | None:
        row = self._row("validators", uri)
        stored = json.loads(row[0]) if row else {}
        return Validators(**stored) if stored else None

    def uris(self) -> Iterator[str]:
        last = ""
        while True:
            with self._lock:
                page = (
                    self._table()
                    .database.execute(
                        "SELECT uri FROM known WHERE uri > ? AND document ORDER BY uri LIMIT 1000",
                        (last,),
                    )
                    .fetchall()
                )
            if not page:
                return
            yield from (uri for (uri,) in page)
            last = page[-1][0]

    def content(self, uri: str) -> tuple[bytes, str] | None:
        row = self._row("raw_hash, media_type", uri)
        if row is None or row[0] is None:
            return None
        try:
            return self._deps.artifacts.read(raw_key(row[0])), row[1]
        except KeyError:
            return None

    def live(self, uri: str) -> LiveHashes | None:
        """The version of the document at this URI that is live."""
        row = self._row("document, indexed_raw_hash, text_hash", uri)
        return LiveHashes(row[1], row[2]) if row and row[0] and row[1] is not None else None

    def state(self) -> str:
        return "" if self._fresh else self._deps.ledger.sources.state(self._source).state

    def inspected(self, uri: str, raw_hash: str) -> Inspection | None:
        """What was measured of the live version, if that has these bytes."""
        row = self._row("indexed_raw_hash, text_hash, text_length", uri)
        if row is None or row[0] != raw_hash or row[1] is None or self._fresh:
            return None
        return Inspection(row[1], row[2] or 0)

    def _row(self, columns: str, uri: str) -> tuple[Any, ...] | None:
        with self._lock:
            found = self._table().database.execute(
                f"SELECT {columns} FROM known WHERE uri = ?",  # noqa: S608 - columns of this module
                (uri,),
            )
            row: tuple[Any, ...] | None = found.fetchone()
        return row

    def _table(self) -> TempDatabase:
        if self._temp_db is None:
            self._temp_db = TempDatabase(_KNOWN)
            database = self._temp_db.database
            database.execute("BEGIN")
            database.executemany(_INSERT, self._documents())
            database.executemany(_INSERT, self._duplicates())
            database.execute("COMMIT")
        return self._temp_db

    def _documents(self) -> Iterator[_Row]:
        fingerprint = self._deps.source.fingerprint
        for record in self._deps.ledger.documents.stream(self._source):
            told = not self._fresh and record.fetch_fingerprint == fingerprint
            yield (
                record.uri,
                _encoded(record.validators if told else Validators()),
                record.fetched_raw_hash,
                record.media_type,
                1,
                record.raw_hash,
                record.text_hash,
                record.text_length,
            )

    def _duplicates(self) -> Iterator[_Row]:
        for alias in self._deps.ledger.sources.aliases(self._source):
            if alias.raw_hash is not None:
                validators = _encoded(Validators() if self._fresh else alias.validators)
                yield (
                    alias.uri, validators, alias.raw_hash, alias.media_type, 0,
                    alias.raw_hash, alias.text_hash, alias.text_length,
                )  # fmt: skip


def _encoded(validators: Validators) -> str:
    return json.dumps({k: v for k, v in asdict(validators).items() if v is not None})


@dataclass(frozen=True, slots=True)
class LedgerSource:
    """A source whose items are some of the documents that the ledger has, for a backfill or a retry.

    It only knows present versions, so it cannot put an older one over a newer one.

    wanted: which of them. fingerprint: of the source they came from, so that their validators stay valid.
    """

    ledger: Ledger
    source: str
    wanted: Callable[[DocumentRecord], bool]
    fingerprint: str

    def crawl(self, known: Known, limit: int | None = None) -> Iterator[CrawlItem | CrawlEnd]:
        """Yield each as not modified; the listing is never complete, so nothing is ever missing."""
        count = 0
        for record in self.ledger.documents.stream(self.source):
            if limit is not None and count >= limit:
                break
            if self.wanted(record):
                count += 1
                yield CrawlItem(SourceItem(record.uri, record.validators), Outcome.NOT_MODIFIED)
        yield CrawlEnd(complete=False, authoritative=False)
