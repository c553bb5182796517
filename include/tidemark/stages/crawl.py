"""List and fetch: from a source to a stored listing whose bytes are in the artifact store."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from time import perf_counter

from tidemark.domain.errors import TransientError
from tidemark.domain.hashing import digest
from tidemark.domain.model import CrawlEnd, CrawlItem, Observation, Outcome, Validators
from tidemark.ports import ArtifactStore, Ledger
from tidemark.stages.codec import decode_listing_line, encode_end, encode_observation
from tidemark.stages.job import Job, Tools, listing_key, raw_key


@dataclass(frozen=True, slots=True)
class CrawlSummary:
    """outcomes: items by outcome. bytes: of the bodies fetched."""

    outcomes: dict[str, int]
    complete: bool
    authoritative: bool
    problem: str
    bytes: int
    seconds: float


def crawl(job: Job, tools: Tools) -> CrawlSummary:
    """Crawl the source and store the listing; a failed item is a line in it, never an omission.

    Raises ``TransientError`` when the source as a whole is away: there is nothing to plan with.
    """
    started = perf_counter()
    tools.progress.stage("crawl", None)
    known = LedgerKnown(
        tools.ledger, tools.artifacts, job.source, tools.source.fingerprint, job.force
    )
    outcomes: Counter[str] = Counter()
    size = 0
    end = CrawlEnd(complete=False, authoritative=False, problem="The crawl ended without a result.")
    with tools.artifacts.writer(listing_key(job.run_id)) as listing:
        for value in tools.source.crawl(known, job.limit):
            if isinstance(value, CrawlEnd):
                end = value
                continue
            observed = _store(value, tools.artifacts)
            outcomes[observed.outcome.value] += 1
            size += observed.size or 0 if observed.outcome is Outcome.FETCHED else 0
            listing.line(encode_observation(observed))
            tools.progress.advance(detail=observed.uri)
        listing.line(encode_end(end))
    if not outcomes and not end.complete and end.problem:
        raise TransientError(
            f"The source {job.source!r} could not be crawled: {end.problem}",
            "Nothing was deleted; what is indexed stays as it is.",
        )
    return CrawlSummary(
        dict(outcomes), end.complete, end.authoritative, end.problem, size, perf_counter() - started
    )


def _store(found: CrawlItem, artifacts: ArtifactStore) -> Observation:
    raw = found.raw
    if raw is None:
        return Observation(
            found.item.uri, found.outcome, found.item.validators, detail=found.detail
        )
    raw_hash = digest(raw.content)
    artifacts.write(raw_key(raw_hash), raw.content)
    return Observation(
        uri=raw.uri,
        outcome=found.outcome,
        validators=raw.validators,
        raw_hash=raw_hash,
        media_type=raw.media_type,
        charset=raw.charset,
        fetched_at=raw.fetched_at,
        size=len(raw.content),
        detail=found.detail,
    )


def read_listing(artifacts: ArtifactStore, run_id: str) -> Iterator[Observation | CrawlEnd]:
    """Stream a stored listing; its last value is the CrawlEnd."""
    for line in artifacts.lines(listing_key(run_id)):
        yield decode_listing_line(line)


@dataclass(slots=True)
class _Held:
    validators: Validators
    raw_hash: str
    media_type: str


@dataclass(slots=True)
class LedgerKnown:
    """What the ledger and the artifact store know of a source's last crawl.

    Nothing is offered as known when the fetch fingerprint changed or the run is forced, so that
    everything is fetched again.
    """

    ledger: Ledger
    artifacts: ArtifactStore
    source: str
    fingerprint: str
    force: bool = False
    _documents: dict[str, _Held] | None = field(default=None, init=False)

    def validators(self, uri: str) -> Validators | None:
        held = self._held().get(uri)
        return held.validators if held and held.validators else None

    def uris(self) -> Iterator[str]:
        return iter(self._held())

    def content(self, uri: str) -> tuple[bytes, str] | None:
        held = self._held().get(uri)
        if held is None:
            return None
        try:
            return self.artifacts.read(raw_key(held.raw_hash)), held.media_type
        except KeyError:
            return None

    def _held(self) -> dict[str, _Held]:
        if self._documents is None:
            self._documents = {
                record.uri: _Held(
                    Validators()
                    if self.force or record.fetch_fingerprint != self.fingerprint
                    else record.validators,
                    record.fetched_raw_hash,
                    record.media_type,
                )
                for record in self.ledger.documents(self.source)
            }
        return self._documents
