"""Plan: listing × ledger → what to do with each document, and the batches of work."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any
from uuid import UUID

from tidemark.domain.blocks import BlockList
from tidemark.domain.decide import (
    ELSEWHERE,
    WORK,
    Action,
    Decision,
    ListingContext,
    Reason,
    Target,
    decide,
    decide_absent,
    is_shrunk,
)
from tidemark.domain.documents import RawDocument
from tidemark.domain.guards import Breach, Census, Sort
from tidemark.domain.hashing import Canonical, as_json
from tidemark.domain.records import DocumentRecord
from tidemark.ports.artifacts import ArtifactStore, LineWriter
from tidemark.ports.ledger import Ledger
from tidemark.stages.codec import Planned, encode_planned, read_plan
from tidemark.stages.crawl import boilerplate_then_and_now
from tidemark.stages.job import Dependencies, Job, batch_key, plan_key, raw_key
from tidemark.stages.plan.listing import ListingIndex, Page

# Recount: before a person is asked about many changed pages, look whether only their frame has changed.
#
# A banner that comes or goes on every page of a site changes the text of them all, and means nothing. What a
# crawl has learnt of it is known only at its end; so, when a guard would ask, the changed pages are measured
# once more, without the boilerplate of then and of now.


def recount_changes(
    deps: Dependencies, planned: Iterable[Planned], boilerplate: frozenset[int]
) -> Census:
    """Count the documents of a plan whose text is another one without these blocks.

    Reads both versions of each changed page: work in proportion to what changed, and only when asked for.
    """
    census = Census()
    for one in planned:
        if one.decision.action is Action.UPDATE and _is_another(deps, one, boilerplate):
            census.add(Sort.CHANGED, one.decision.uri)
    return census


def _is_another(deps: Dependencies, planned: Planned, boilerplate: frozenset[int]) -> bool:
    record, observed = deps.ledger.documents.get(planned.decision.document_id), planned.observed
    if record is None or record.raw_hash in (None, planned.decision.raw_hash):
        return False
    if observed is not None and is_shrunk(observed, record):
        return False  # another guard counts it
    if deps.inspector is None:
        return True
    texts = []
    for raw in _versions(deps, planned, record):
        seen = deps.inspector.inspect(raw, boilerplate)
        texts.append(seen.text_hash if seen else None)
    return len(texts) < 2 or texts[0] is None or texts[0] != texts[1]


def _versions(
    deps: Dependencies, planned: Planned, record: DocumentRecord
) -> Iterator[RawDocument]:
    """The live version and the one that is to follow it, as far as their bytes are at hand."""
    observed = planned.observed
    wanted = [(record.raw_hash, record.media_type, record.charset)]
    if observed is not None:
        kind = observed.media_type or record.media_type
        wanted.append((observed.raw_hash, kind, observed.charset))
    for raw_hash, media_type, charset in wanted:
        try:
            content = deps.artifacts.read(raw_key(raw_hash or "none"))
        except KeyError:
            continue
        yield RawDocument(record.uri, content, media_type, charset, record.fetched_at)


DEFAULT_BYTES = 16 * 1024
"""Taken for a document whose size no one told."""

BYTES_PER_CHUNK = 1_000
"""Raw bytes that make a chunk, before the source has taught better (measured on HTML documentation)."""

TEXT_BYTES_PER_CHUNK = 500
"""The same of what is text from end to end, whose size alone tells how much there is to cut."""

TEXT_TYPES = frozenset({"text/plain", "text/markdown", "text/x-rst", "text/csv"})

TEXTS_PER_SECOND = 20.0
"""Embedding rate assumed before a run has measured it (all-MiniLM-L6-v2 on two cores)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The work ahead, at most: what a changed document keeps is not known yet. seconds: of embedding."""

    chunks: int = 0
    embeddings: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """batches: keys of the batches of work, empty when there is nothing to do. breaches: guards passed.

    reconciled: documents that differed between ledger and index before it was made.
    generation: the one it was made for.
    """

    actions: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)
    batches: tuple[str, ...] = ()
    complete: bool = True
    problem: str = ""
    bytes: int = 0
    estimate: Estimate = Estimate()
    seconds: float = 0.0
    breaches: tuple[Breach, ...] = ()
    reconciled: int = 0
    generation: int = 0

    @property
    def work(self) -> int:
        """How many documents the batches hold."""
        return sum(self.actions.get(action.value, 0) for action in WORK)

    @property
    def writes(self) -> bool:
        """May carrying it out write to the index?"""
        beside = (Action.REMOVE, Action.QUARANTINE)
        return bool(self.batches) or any(self.actions.get(action.value) for action in beside)

    def as_dict(self) -> dict[str, Canonical]:
        return {
            "complete": self.complete,
            "problem": self.problem,
            "documents": self.actions,
            "reasons": self.reasons,
            "bytes": self.bytes,
            "estimate": {**as_json(self.estimate), "seconds": round(self.estimate.seconds, 1)},
            "guards": [breach.as_dict() for breach in self.breaches],
            "reconciled": self.reconciled,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "PlanSummary":
        """What a report needs of a plan that another process made."""
        return cls(
            actions=data["documents"],
            reasons=data["reasons"],
            complete=data["complete"],
            problem=data["problem"],
            seconds=data["seconds"],
            breaches=tuple(Breach.from_dict(breach) for breach in data["guards"]),
            reconciled=data["reconciled"],
        )


def make_plan(job: Job, deps: Dependencies, target: Target) -> PlanSummary:
    """Decide for every document and store the decisions and the batches of work; changes nothing else.

    When a person must be asked about pages that shrank, the plan is to believe them: whoever approves it
    approves that, and is not asked again by the next run.
    """
    started = perf_counter()
    plan = _plan(job, deps, target)
    if any(breach.sort is Sort.SHRUNK for breach in plan.breaches):
        plan = _plan(job, deps, replace(target, believe_shrunk=True))
    return replace(plan, seconds=perf_counter() - started)


def _plan(job: Job, deps: Dependencies, target: Target) -> PlanSummary:
    actions: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    census = Census()
    batches = _Batches(job, deps.artifacts)
    with (
        ListingIndex(job, deps) as listing_index,
        deps.artifacts.writer(plan_key(job.run_id)) as plan,
    ):
        for planned, record in _decisions(job, deps, target, listing_index):
            actions[planned.decision.action.value] += 1
            reasons[planned.decision.reason.value] += 1
            if (sort := _sort(planned, record, listing_index)) is not None:
                census.add(sort, planned.decision.uri)
            if planned.decision.is_work:
                batches.add(planned)
            else:
                plan.line(encode_planned(planned))
        batches.close()
        for uri in listing_index.collapsed():
            census.add(Sort.GONE, uri)
        end = listing_index.end
    work = sum(actions[a.value] for a in (Action.ADD, Action.UPDATE, Action.RESTORE))
    live = deps.ledger.documents.counts(job.source).indexed
    breaches = census.breaches(job.guards, live)
    if any(breach.sort is Sort.CHANGED for breach in breaches):
        changed = (p for key in batches.keys for p in read_plan(deps.artifacts, key))
        recounted = recount_changes(deps, changed, boilerplate_then_and_now(job, deps))
        kept = (breach for breach in breaches if breach.sort is not Sort.CHANGED)
        breaches = (*kept, *recounted.breaches(job.guards, live))
    return PlanSummary(
        dict(actions),
        dict(reasons),
        tuple(batches.keys),
        end.complete,
        end.problem,
        batches.bytes,
        _estimate(deps.ledger, job.source, work, batches),
        0.0,
        breaches,
    )


def read_all_decisions(
    artifacts: ArtifactStore, run_id: str, plan: PlanSummary
) -> Iterator[Decision]:
    """Stream every decision of a stored plan: the work first."""
    for key in (*plan.batches, plan_key(run_id)):
        for planned in read_plan(artifacts, key):
            yield planned.decision


def _decisions(
    job: Job, deps: Dependencies, target: Target, listing_index: ListingIndex
) -> Iterator[tuple[Planned, DocumentRecord | None]]:
    in_flight = deps.ledger.writes.pending(job.source)
    for page in listing_index.pages():
        yield from _page(page, listing_index, deps.ledger, target, in_flight)
    end = listing_index.end
    for record in deps.ledger.documents.stream(job.source):
        if not listing_index.is_listed(record.document_id):
            begun = in_flight.pop(record.document_id, None) is not None
            if record.uri in job.blocks.by_uri:
                yield Planned(_taken_down(record, job.blocks), None), record
                continue
            decision = decide_absent(
                record,
                complete=end.complete,
                authoritative=end.authoritative,
                target=target,
                moved_to=listing_index.left_for(record.document_id),
                in_flight=begun,
            )
            yield Planned(decision, None), record
    left = {key: uri for key, uri in in_flight.items() if not listing_index.is_listed(key)}
    tombstones = deps.ledger.tombstones.by_id(list(left))
    for document, uri in left.items():
        # Begun, never finished, and not in the source any more: what was written of them must go.
        if end.complete or document in tombstones:
            taken_down = document in tombstones and tombstones[document].taken_down
            reason = Reason.TAKEN_DOWN if taken_down else Reason.GONE
            yield Planned(Decision(document, uri, Action.REMOVE, reason), None), None


def _taken_down(record: DocumentRecord, blocks: BlockList) -> Decision:
    """Taken down from every source, or not wholly yet: whoever does that finds it."""
    detail = blocks.reason(record.uri)
    return Decision(record.document_id, record.uri, Action.REMOVE, Reason.TAKEN_DOWN, detail=detail)


def _page(
    page: Page,
    listing_index: ListingIndex,
    ledger: Ledger,
    target: Target,
    in_flight: dict[UUID, str],
) -> Iterator[tuple[Planned, DocumentRecord | None]]:
    tombstones = ledger.tombstones.by_id([k for k in page.observed if k not in page.records])
    around = listing_index.listing_context(page)
    for key, value in page.observed.items():
        decision = decide(
            key,
            value,
            page.records.get(key),
            tombstones.get(key),
            target,
            in_flight=key in in_flight,
            around=around.get(key, ListingContext()),
        )
        yield Planned(decision, value), page.records.get(key)


def _sort(
    planned: Planned, record: DocumentRecord | None, listing_index: ListingIndex
) -> Sort | None:
    """What a guard counts a decision as, None for what no guard is about."""
    decision, observed = planned.decision, planned.observed
    if record is None or record.raw_hash is None:
        return None
    if decision.action is Action.REMOVE:
        if decision.reason is Reason.TAKEN_DOWN:
            return None
        if decision.reason not in ELSEWHERE:
            return Sort.GONE
        # Counted at the end: one document that moves is a move, a dozen that move to one place are gone.
        listing_index.note_leaving(record, decision.target)
        return None
    if decision.reason is Reason.SHRUNK:
        return Sort.SHRUNK
    if decision.action is not Action.UPDATE or observed is None:
        return None
    if decision.raw_hash == record.raw_hash or decision.snapshot:
        return None
    if is_shrunk(observed, record):
        return Sort.SHRUNK
    # The bytes of a page change with its boilerplate; where its text was looked at, that is what counts.
    same = record.text_hash is not None and record.text_hash == observed.text_hash
    return None if same else Sort.CHANGED


class _Batches:
    """Fills batches up to their bounds and writes each as it is full."""

    def __init__(self, job: Job, artifacts: ArtifactStore) -> None:
        self._job = job
        self._artifacts = artifacts
        self._lines: list[str] = []
        self._bytes = 0
        self.keys: list[str] = []
        self.bytes = 0
        self.texts = 0
        self.text_bytes = 0

    def add(self, planned: Planned) -> None:
        size = (planned.observed.size if planned.observed else None) or DEFAULT_BYTES
        if self._lines and self._bytes + size > self._job.batch_bytes:
            self.close()
        self._lines.append(encode_planned(planned))
        self._bytes += size
        self.bytes += size
        if planned.observed and planned.observed.media_type in TEXT_TYPES:
            self.texts += 1
            self.text_bytes += size
        if len(self._lines) >= self._job.batch_documents:
            self.close()

    def close(self) -> None:
        if not self._lines:
            return
        key = batch_key(self._job.run_id, len(self.keys) + 1)
        writer: LineWriter
        with self._artifacts.writer(key) as writer:
            for line in self._lines:
                writer.line(line)
        self.keys.append(key)
        self._lines, self._bytes = [], 0


def _estimate(ledger: Ledger, source: str, documents: int, batches: _Batches) -> Estimate:
    if documents == 0:
        return Estimate()
    others, size = documents - batches.texts, batches.bytes - batches.text_bytes
    known = ledger.documents.counts(source)
    of_others = others * known.chunks / known.indexed if known.indexed else size / BYTES_PER_CHUNK
    of_texts = batches.text_bytes / TEXT_BYTES_PER_CHUNK
    expected = max(documents, round(of_others + of_texts))
    return Estimate(expected, expected, expected / _embed_rate(ledger))


def _embed_rate(ledger: Ledger) -> float:
    """Texts a second, as the last runs that embedded anything measured it."""
    for run in ledger.runs.recent(limit=20):
        if run.summary is None:
            continue
        summary = json.loads(run.summary)
        seconds = summary["seconds"].get("embed", 0.0)
        if seconds > 0 and summary["chunks"]["embedded"] >= 20:
            return float(summary["chunks"]["embedded"] / seconds)
    return TEXTS_PER_SECOND
