"""The plan: the least work that makes the index right again, document by document.

`decide` is a pure function of what was observed, what the ledger remembers and the fingerprints:

    observed       ledger                                          action    reason
    -------------  ----------------------------------------------  --------  -----------
    bytes          no row                                          add       new
    bytes          no row, a tombstone                             restore   restored
    bytes          a row without an indexed version                add       new
    bytes          same bytes failed under the same fingerprints   keep      quarantined
    bytes          forced                                          update    forced
    bytes          other raw_hash than the indexed one             update    content
    bytes          other partition fingerprint                     update    parser
    bytes          other chunk fingerprint                         update    config
    bytes          other embed fingerprint or generation           update    model
    bytes          everything equal                                keep      unchanged
    gone           a row                                           remove    gone
    gone           no row                                          skip      gone
    excluded       a row                                           remove    excluded
    excluded       no row                                          skip      excluded
    failed         a row, never lost                               keep      unreachable
    failed         no row                                          skip      unreachable
    absent         listing incomplete                              keep      unlisted
    absent         complete and authoritative                      remove    gone
    absent         complete, not reached for too many runs         remove    gone
    absent         complete, not reached                           miss      missing

"bytes" are those just fetched or, where the source answered "not modified", those fetched last time.
Whether cleaned content really changed is known only after partitioning: an update may end at that gate.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from tidemark.domain.model import Fingerprints, Observation, Outcome
from tidemark.domain.records import DocumentRecord, DocumentStatus, Tombstone


class Action(StrEnum):
    ADD = "add"
    UPDATE = "update"
    METADATA = "metadata"
    """Only what surrounds the chunks changed (title, address): payloads, no vectors."""
    RESTORE = "restore"
    KEEP = "keep"
    MISS = "miss"
    """Not reached by this complete crawl; it stays until it was missed often enough."""
    REMOVE = "remove"
    SKIP = "skip"
    """Observed, not indexed before and not to be indexed now."""
    QUARANTINE = "quarantine"
    """Failed by its own fault in this run."""


class Reason(StrEnum):
    NEW = "new"
    CONTENT = "content"
    METADATA = "metadata"
    CONFIG = "config"
    MODEL = "model"
    PARSER = "parser"
    REPAIR = "repair"
    FORCED = "forced"
    RESTORED = "restored"
    UNCHANGED = "unchanged"
    FURNITURE = "furniture"
    """The bytes changed, the content under the furniture did not."""
    GONE = "gone"
    EXCLUDED = "excluded"
    MISSING = "missing"
    UNREACHABLE = "unreachable"
    UNLISTED = "unlisted"
    """Not reached, but the listing is incomplete, so that means nothing."""
    QUARANTINED = "quarantined"
    FAILED = "failed"
    LIMIT = "limit"
    """Left for a later run because this one was limited."""
    SUPERSEDED = "superseded"
    """A later run has already indexed a version fetched after this one."""


WORK = frozenset({Action.ADD, Action.UPDATE, Action.RESTORE})


@dataclass(frozen=True, slots=True)
class Target:
    """What a healthy document looks like now: the fingerprints, and the generation it belongs to."""

    fingerprints: Fingerprints
    generation: int
    gone_after: int
    force: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with one document, and why. ``raw_hash`` is of the bytes to process."""

    document_id: UUID
    uri: str
    action: Action
    reason: Reason
    raw_hash: str | None = None
    detail: str = ""

    @property
    def is_work(self) -> bool:
        return self.action in WORK


def decide(
    document: UUID,
    observed: Observation,
    record: DocumentRecord | None,
    tombstone: Tombstone | None,
    target: Target,
) -> Decision:
    """Decide what an observed item needs (see the table above)."""

    def decision(action: Action, reason: Reason, raw_hash: str | None = None) -> Decision:
        return Decision(document, observed.uri, action, reason, raw_hash, observed.detail)

    if observed.outcome is Outcome.GONE:
        return decision(Action.REMOVE if record else Action.SKIP, Reason.GONE)
    if observed.outcome is Outcome.EXCLUDED:
        return decision(Action.REMOVE if record else Action.SKIP, Reason.EXCLUDED)
    if observed.outcome is Outcome.FAILED:
        return decision(Action.KEEP if record else Action.SKIP, Reason.UNREACHABLE)

    if observed.outcome is Outcome.NOT_MODIFIED:
        raw_hash = record.fetched_raw_hash if record else observed.raw_hash
    else:
        raw_hash = observed.raw_hash
    if record is None:
        if tombstone is not None:
            return decision(Action.RESTORE, Reason.RESTORED, raw_hash)
        return decision(Action.ADD, Reason.NEW, raw_hash)
    if target.force:
        return decision(Action.UPDATE, Reason.FORCED, raw_hash)
    if failed_the_same_way(record, raw_hash, target.fingerprints):
        return decision(Action.KEEP, Reason.QUARANTINED)
    if record.raw_hash is None or record.fingerprints is None:
        return decision(Action.ADD, Reason.NEW, raw_hash)
    reason = _changed(record, record.fingerprints, raw_hash, target)
    if reason is not None:
        return decision(Action.UPDATE, reason, raw_hash)
    return decision(Action.KEEP, Reason.UNCHANGED)


def failed_the_same_way(
    record: DocumentRecord, raw_hash: str | None, fingerprints: Fingerprints
) -> bool:
    """Would the document fail again exactly as it did?"""
    return (
        record.status is DocumentStatus.QUARANTINED
        and record.failure is not None
        and record.failure.raw_hash == raw_hash
        and record.failure.fingerprint == fingerprints.embed
    )


def _changed(
    record: DocumentRecord, indexed: Fingerprints, raw_hash: str | None, target: Target
) -> Reason | None:
    if record.raw_hash != raw_hash:
        return Reason.CONTENT
    if indexed.partition != target.fingerprints.partition:
        return Reason.PARSER
    if record.generation != target.generation:
        return Reason.MODEL
    if indexed.chunk != target.fingerprints.chunk:
        return Reason.CONFIG
    if indexed.embed != target.fingerprints.embed:
        return Reason.MODEL
    if record.status is DocumentStatus.QUARANTINED:
        return Reason.REPAIR
    return None


def decide_absent(
    record: DocumentRecord, *, complete: bool, authoritative: bool, target: Target
) -> Decision:
    """Decide what a remembered document needs that the listing does not name."""
    if not complete:
        return Decision(record.document_id, record.uri, Action.KEEP, Reason.UNLISTED)
    if authoritative or record.missing_runs + 1 >= target.gone_after:
        return Decision(record.document_id, record.uri, Action.REMOVE, Reason.GONE)
    return Decision(record.document_id, record.uri, Action.MISS, Reason.MISSING)


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """How many documents by action and by reason."""

    actions: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, int] = field(default_factory=dict)


def summarise(decisions: Iterable[Decision]) -> PlanSummary:
    """Count decisions by action and by reason."""
    actions: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for decision in decisions:
        actions[decision.action.value] += 1
        reasons[decision.reason.value] += 1
    return PlanSummary(dict(actions), dict(reasons))
