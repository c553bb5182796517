"""The plan: the least work that makes the index right again, document by document.

`decide` is a pure function of what was observed, what the ledger remembers and the fingerprints:

    observed       ledger                                          action    reason
    -------------  ----------------------------------------------  --------  -----------
    bytes          no row                                          add       new
    bytes          no row, a tombstone                             restore   restored
    bytes          a row without an indexed version                add       new
    bytes          same bytes failed under the same fingerprints   keep      quarantined (b)
    bytes          forced                                          update    forced
    bytes          other raw_hash than the indexed one             update    content
    bytes          other partition fingerprint                     update    parser
    bytes          other chunk fingerprint                         update    config
    bytes          other embed fingerprint                         update    model
    bytes          same model, another generation; or repaired     update    repair
    bytes          everything equal, but a write was cut short     update    repair
    bytes          everything equal                                keep      unchanged
    gone           a row                                           remove    gone
    gone           no row                                          skip      gone (a)
    excluded       a row                                           remove    excluded
    excluded       no row                                          skip      excluded (a)
    failed         a row, never lost                               keep      unreachable (b)
    failed         no row                                          skip      unreachable
    absent         listing incomplete                              keep      unlisted (b)
    absent         complete and authoritative                      remove    gone
    absent         complete, not reached for too many runs         remove    gone
    absent         complete, not reached                           miss      missing (b)

(a) removed all the same when a write of it was cut short: its first points may be there.

(b) update for repair or model, from the stored snapshot of the live version, when that version is not in
    the generation to be written: what cannot be fetched now must not get lost with the old generation.

"bytes" are those just fetched or, where the source answered "not modified", those fetched last time.
Whether cleaned content really changed is known only after partitioning: an update may end at that gate.
"""

from dataclasses import dataclass
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
    """What to do with one document, and why.

    raw_hash: of the bytes to process.
    snapshot: they are those of the live version; what is known of newer bytes stays as it is.
    """

    document_id: UUID
    uri: str
    action: Action
    reason: Reason
    raw_hash: str | None = None
    detail: str = ""
    snapshot: bool = False

    @property
    def is_work(self) -> bool:
        return self.action in WORK


def decide(
    document: UUID,
    observed: Observation,
    record: DocumentRecord | None,
    tombstone: Tombstone | None,
    target: Target,
    *,
    in_flight: bool = False,
) -> Decision:
    """Decide what an observed item needs (see the table above)."""

    def decision(action: Action, reason: Reason, raw_hash: str | None = None) -> Decision:
        return Decision(document, observed.uri, action, reason, raw_hash, observed.detail)

    if observed.outcome in _REMOVALS:
        removal = Action.REMOVE if record or in_flight else Action.SKIP
        return decision(removal, _REMOVALS[observed.outcome])
    if observed.outcome is Outcome.FAILED:
        if record is None:
            return decision(Action.SKIP, Reason.UNREACHABLE)
        return restore_snapshot(record, target) or decision(Action.KEEP, Reason.UNREACHABLE)
    if record is None:
        if tombstone is not None:
            return decision(Action.RESTORE, Reason.RESTORED, observed.raw_hash)
        return decision(Action.ADD, Reason.NEW, observed.raw_hash)

    modified = observed.outcome is Outcome.FETCHED
    raw_hash = observed.raw_hash if modified else record.fetched_raw_hash
    reason = _work_reason(record, raw_hash, target, in_flight=in_flight)
    if reason is Reason.UNCHANGED and modified and _retyped(record, observed):
        reason = Reason.CONTENT
    if reason is Reason.QUARANTINED:
        return restore_snapshot(record, target) or decision(Action.KEEP, reason)
    if reason is Reason.UNCHANGED:
        return decision(Action.KEEP, reason)
    return decision(Action.ADD if reason is Reason.NEW else Action.UPDATE, reason, raw_hash)


_REMOVALS = {Outcome.GONE: Reason.GONE, Outcome.EXCLUDED: Reason.EXCLUDED}


def _retyped(record: DocumentRecord, observed: Observation) -> bool:
    """The same bytes under another media type are read otherwise."""
    return bool(observed.media_type) and observed.media_type != record.media_type


def restore_snapshot(record: DocumentRecord, target: Target) -> Decision | None:
    """Bring the live version into the generation to be written, when it is not in it."""
    if record.raw_hash is None or record.fingerprints is None:
        return None
    if record.generation == target.generation:
        return None
    same_model = record.fingerprints.embed == target.fingerprints.embed
    return Decision(
        record.document_id,
        record.uri,
        Action.UPDATE,
        Reason.REPAIR if same_model else Reason.MODEL,
        record.raw_hash,
        "from its stored snapshot",
        snapshot=True,
    )


def _work_reason(
    record: DocumentRecord, raw_hash: str | None, target: Target, *, in_flight: bool
) -> Reason:
    if target.force:
        return Reason.FORCED
    # A write that was cut short is settled by trying again: a failure then cleans up after itself.
    if not in_flight and failed_the_same_way(record, raw_hash, target.fingerprints):
        return Reason.QUARANTINED
    if record.raw_hash is None or record.fingerprints is None:
        return Reason.NEW
    changed = _changed(record, record.fingerprints, raw_hash, target)
    return changed or (Reason.REPAIR if in_flight else Reason.UNCHANGED)


def failed_the_same_way(
    record: DocumentRecord, raw_hash: str | None, fingerprints: Fingerprints
) -> bool:
    """Would the document fail again exactly as it did? Not where only its snapshot was lost."""
    return (
        record.status is DocumentStatus.QUARANTINED
        and record.failure is not None
        and record.failure.stage != "fetch"
        and record.failure.raw_hash == raw_hash
        and record.failure.fingerprint == fingerprints.combined
    )


def _changed(
    record: DocumentRecord, indexed: Fingerprints, raw_hash: str | None, target: Target
) -> Reason | None:
    if record.raw_hash != raw_hash:
        return Reason.CONTENT
    if indexed.partition != target.fingerprints.partition:
        return Reason.PARSER
    if record.generation != target.generation:
        # The same model in another generation: the index was lost and is being built again.
        same_model = indexed.embed == target.fingerprints.embed
        return Reason.REPAIR if same_model else Reason.MODEL
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
    if complete and (authoritative or record.missing_runs + 1 >= target.gone_after):
        return Decision(record.document_id, record.uri, Action.REMOVE, Reason.GONE)
    restored = restore_snapshot(record, target)
    if restored is not None:
        return restored
    if not complete:
        return Decision(record.document_id, record.uri, Action.KEEP, Reason.UNLISTED)
    return Decision(record.document_id, record.uri, Action.MISS, Reason.MISSING)
