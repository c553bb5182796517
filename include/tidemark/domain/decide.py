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
    bytes          no row, the same bytes stood at a URI now gone  add       moved
    bytes          no row, another document has the same text      skip      duplicate (a) (c)
    bytes          not to be believed, no row                      skip      its Suspicion (d)
    bytes          not to be believed, a row                       keep      its Suspicion (b)
    moved, alias   a row; what it leads to is listed               remove    moved, alias (c)
    moved, alias   no row; what it leads to is listed              skip      moved, alias (a) (c)
    moved, alias   what it leads to is not listed                  keep      unreachable (b)
    gone           a row                                           remove    gone
    gone           no row                                          skip      gone (a)
    excluded       a row                                           remove    excluded
    excluded       no row                                          skip      excluded (a)
    excluded       its address was taken down, a row               remove    taken_down
    excluded       no row; it is another one that was taken down   skip      taken_down (a)
    excluded       a row; its newer version was taken down         keep      taken_down (b)
    too large      not so the last time                            quarantine  failed (b)
    too large      as the last time                                keep      quarantined (b)
    anything       taken down by order                             skip      taken_down (a)
    failed         a row, never lost                               keep      unreachable (b)
    failed         no row                                          skip      unreachable (d)
    absent         listing incomplete                              keep      unlisted (b)
    absent         complete and authoritative                      remove    gone, moved (c)
    absent         complete, not reached for too many runs         remove    gone
    absent         complete, not reached                           miss      missing (b)

(a) removed all the same when a write of it was cut short: its first points may be there.

(b) update for repair or model, from the stored snapshot of the live version, when that version is not in
    the generation to be written, or a newer write of it was cut short: what cannot be fetched now must not
    get lost with the old generation. Not when its snapshot is known to be lost, and fetching would not
    bring it back.

(c) remembered as another address of the document it leads to.

(d) left as it is also when a write of it was cut short, or when the ledger has lost its row: an outage is
    no evidence. It is decided once it is seen again.

A page that shrank is believed once it is met so, with the same text, in ``gone_after`` runs after the first.

"bytes" are those just fetched or, where the source answered "not modified", those fetched last time.
Whether cleaned content really changed is known only after partitioning: an update may end at that gate.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from uuid import UUID

from tidemark.domain.chunks import Fingerprints
from tidemark.domain.documents import Anomaly, Observation, Outcome
from tidemark.domain.hashing import digest_text
from tidemark.domain.records import DocumentRecord, DocumentStatus, Tombstone

# What a plan says of one document: an action, its reason, and what both were decided by.


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
    BOILERPLATE = "furniture"
    """The bytes changed, the content under the boilerplate did not."""
    GONE = "gone"
    EXCLUDED = "excluded"
    MISSING = "missing"
    UNREACHABLE = "unreachable"
    UNLISTED = "unlisted"
    """Not reached, but the listing is incomplete, so that means nothing."""
    QUARANTINED = "quarantined"
    FAILED = "failed"
    TAKEN_DOWN = "taken_down"
    """Removed by order, and kept out since."""
    SUPERSEDED = "superseded"
    """A later run has already indexed a version fetched after this one."""
    MOVED = "moved"
    """The same document at another address; its vectors go with it."""
    ALIAS = "alias"
    """Another address of a document that is kept once."""
    DUPLICATE = "duplicate"
    """A page with the same text as a document that is kept once."""
    SOFT_404 = "soft_404"
    LOGIN_WALL = "login_wall"
    CONSENT_WALL = "consent_wall"
    PARKED = "parked"
    NEEDS_JAVASCRIPT = "needs_javascript"
    SHRUNK = "shrunk"
    REPEATED_TEXT = "repeated_text"


ANOMALIES = frozenset(Reason(anomaly.value) for anomaly in Anomaly)
"""Reasons for which a version is not believed."""
ELSEWHERE = frozenset({Reason.MOVED, Reason.ALIAS, Reason.DUPLICATE})
"""Reasons for which an address has no document of its own."""


DUPLICATE_FROM = 200
"""Characters. Shorter pages may be equal by chance: two stubs are two pages."""

WORK = frozenset({Action.ADD, Action.UPDATE, Action.RESTORE})


@dataclass(frozen=True, slots=True)
class Target:
    """What a healthy document looks like now: the fingerprints, and the generation it belongs to.

    accept: URIs whose newer version is to be believed; "*" for all.
    judge: doubt what is suspected; without, every version is believed.
    believe_shrunk: a page that lost most of its text is believed, for a person is asked about all of them.
    """

    fingerprints: Fingerprints
    generation: int
    gone_after: int
    force: bool = False
    accept: frozenset[str] = frozenset()
    judge: bool = True
    believe_shrunk: bool = False


@dataclass(frozen=True, slots=True)
class ListingContext:
    """What the rest of a listing says of one of its items.

    duplicate_of: the URI of the document that has the same text.
    repeated: how many documents have changed to this item's text, when they are suspiciously many, else 0.
    origin: the document, or the removed one, that had exactly these bytes; ``moved_from`` its URI when it is
        going.
    target_here: what a MOVED or ALIAS item leads to is listed, with content.
    """

    duplicate_of: str = ""
    repeated: int = 0
    origin: UUID | None = None
    moved_from: str = ""
    target_here: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do with one document, and why.

    raw_hash: of the bytes to process.
    snapshot: they are those of the live version; what is known of newer bytes stays as it is.
    origin: a document whose vectors serve for equal texts of this one.
    target: of an address without a document of its own, the URI of the document it leads to.
    """

    document_id: UUID
    uri: str
    action: Action
    reason: Reason
    raw_hash: str | None = None
    detail: str = ""
    snapshot: bool = False
    origin: UUID | None = None
    target: str = ""

    @property
    def is_work(self) -> bool:
        return self.action in WORK


SHRUNK_BELOW = 0.4
"""A page that keeps less than this share of its text has lost most of it."""
SHRUNK_FROM = 400
"""Characters. Of a shorter page a small edit is a large share."""


def decide(
    document: UUID,
    observed: Observation,
    record: DocumentRecord | None,
    tombstone: Tombstone | None,
    target: Target,
    *,
    in_flight: bool = False,
    around: ListingContext = ListingContext(),
) -> Decision:
    """Decide what an observed item needs (see the table above)."""
    decision = Decision(
        document, observed.uri, Action.KEEP, Reason.UNCHANGED, detail=observed.detail
    )
    # Where there is no row a write may have been cut short all the same: its points must go.
    without = Action.REMOVE if record or in_flight else Action.SKIP
    if tombstone is not None and tombstone.taken_down:
        return replace(decision, action=without, reason=Reason.TAKEN_DOWN)
    if observed.outcome in _REMOVALS:
        gone = replace(decision, action=without, reason=_REMOVALS[observed.outcome])
        return _blocked(gone, observed, record, target, in_flight) if observed.target else gone
    if observed.outcome in _LEADING and around.target_here:
        reason = _LEADING[observed.outcome]
        return replace(decision, action=without, reason=reason, target=observed.target)
    if observed.outcome is Outcome.TOO_LARGE:
        restored = restore_snapshot(record, target, in_flight=in_flight) if record else None
        return restored or _too_large(decision, observed, record, in_flight=in_flight)
    if observed.outcome not in _WITH_BYTES:
        if record is None:
            return replace(decision, action=Action.SKIP, reason=Reason.UNREACHABLE)
        kept = replace(decision, reason=Reason.UNREACHABLE)
        return restore_snapshot(record, target, in_flight=in_flight) or kept
    doubt = anomaly_of(observed, record, target, around)
    if doubt is not None:
        doubted = replace(decision, reason=doubt[0], detail=doubt[1])
        if record is None:
            return replace(doubted, action=Action.SKIP)
        return restore_snapshot(record, target, in_flight=in_flight) or doubted
    if record is None:
        return _new(replace(decision, action=without), observed, tombstone, around)
    return _known(decision, observed, record, target, in_flight=in_flight)


def _blocked(
    decision: Decision,
    observed: Observation,
    record: DocumentRecord | None,
    target: Target,
    in_flight: bool,
) -> Decision:
    """What was taken down, at its own address, as a new document or as a newer version of another."""
    if record is not None and record.raw_hash is None and observed.target != observed.uri:
        return decision  # Not by order: its tombstone would keep the address itself out.
    blocked = replace(decision, reason=Reason.TAKEN_DOWN)
    if record is None or observed.target == observed.uri:
        return blocked
    restored = restore_snapshot(record, target, in_flight=in_flight)
    return restored or replace(blocked, action=Action.KEEP)


def _new(
    decision: Decision,
    observed: Observation,
    tombstone: Tombstone | None,
    around: ListingContext,
) -> Decision:
    """A document without a row: a duplicate, new, back again, or known from another address."""
    if around.duplicate_of:
        detail = f"has the same text as {around.duplicate_of}"
        return replace(decision, reason=Reason.DUPLICATE, detail=detail, target=around.duplicate_of)
    added = replace(
        decision,
        action=Action.ADD,
        reason=Reason.NEW,
        raw_hash=observed.raw_hash,
        origin=around.origin,
    )
    if tombstone is not None:
        origin = around.origin or tombstone.document_id
        return replace(added, action=Action.RESTORE, reason=Reason.RESTORED, origin=origin)
    if around.moved_from:
        return replace(added, reason=Reason.MOVED, detail=f"from {around.moved_from}")
    return added


def _known(
    decision: Decision,
    observed: Observation,
    record: DocumentRecord,
    target: Target,
    *,
    in_flight: bool,
) -> Decision:
    """A document with a row, whose bytes are known and believed."""
    modified = observed.outcome is Outcome.FETCHED
    raw_hash = observed.raw_hash if modified else record.fetched_raw_hash
    reason = _work_reason(record, raw_hash, target, in_flight=in_flight)
    if reason is Reason.UNCHANGED and modified and _retyped(record, observed):
        reason = Reason.CONTENT
    if reason is Reason.QUARANTINED:
        return restore_snapshot(record, target) or replace(
            decision, reason=reason, detail=_as_before(record)
        )
    if reason is Reason.UNCHANGED:
        return decision
    action = Action.ADD if reason is Reason.NEW else Action.UPDATE
    return replace(decision, action=action, reason=reason, raw_hash=raw_hash)


def _too_large(
    decision: Decision,
    observed: Observation,
    record: DocumentRecord | None,
    *,
    in_flight: bool,
) -> Decision:
    """Quarantined as any document that fails, without bytes that could be tried again."""
    failure = record.failure if record else None
    # One without a live version whose write was cut short: what there is of it goes.
    if not in_flight and failure is not None and failure.raw_hash == oversize_mark(observed.detail):
        return replace(decision, reason=Reason.QUARANTINED, detail=_as_before(record))
    return replace(decision, action=Action.QUARANTINE, reason=Reason.FAILED)


def _as_before(record: DocumentRecord | None) -> str:
    """How a document in quarantine failed, and what is live of it meanwhile."""
    if record is None or record.failure is None:
        return ""
    live = "its last good version is live" if record.raw_hash else "nothing of it is live"
    return f"{record.failure.message} ({live})"


def oversize_mark(detail: str) -> str:
    """In place of the hash of bytes that were not fetched: another size is another version."""
    return digest_text(f"too large: {detail}")


def anomaly_of(
    observed: Observation, record: DocumentRecord | None, target: Target, around: ListingContext
) -> tuple[Reason, str] | None:
    """Why the fetched version is not to be believed, with the evidence; None when it is.

    What is live already, be it with other bytes around the same text, is not doubted again.
    """
    if observed.outcome is not Outcome.FETCHED or not target.judge:
        return None
    if target.accept & {"*", observed.uri}:
        return None
    if record is not None and record.raw_hash is None:
        return _told(observed)
    if record is not None and _is_live(record, observed):
        return None
    if around.repeated:
        detail = f"{around.repeated} addresses suddenly show one text"
        return Reason.REPEATED_TEXT, detail
    return _told(observed) or (_shrinkage(observed, record, target) if record else None)


def _is_live(record: DocumentRecord, observed: Observation) -> bool:
    same_text = record.text_hash is not None and record.text_hash == observed.text_hash
    return record.raw_hash == observed.raw_hash or same_text


def _told(observed: Observation) -> tuple[Reason, str] | None:
    return (Reason(observed.anomaly.value), observed.detail) if observed.anomaly else None


def is_shrunk(observed: Observation, record: DocumentRecord) -> bool:
    """Has the version lost most of the text that is live?"""
    before, now = record.text_length, observed.text_length
    return (
        before is not None
        and now is not None
        and before >= SHRUNK_FROM
        and now < SHRUNK_BELOW * before
    )


def _shrinkage(
    observed: Observation, record: DocumentRecord, target: Target
) -> tuple[Reason, str] | None:
    if target.believe_shrunk or not is_shrunk(observed, record):
        return None
    suspect = record.suspect
    if (
        suspect is not None
        and suspect.reason == Anomaly.SHRUNK.value
        and suspect.text_hash == observed.text_hash
        and suspect.runs >= target.gone_after
    ):
        return None
    return (
        Reason.SHRUNK,
        f"its text shrank from {record.text_length:,} to {observed.text_length:,} characters",
    )


_LEADING = {Outcome.MOVED: Reason.MOVED, Outcome.ALIAS: Reason.ALIAS}
_WITH_BYTES = frozenset({Outcome.FETCHED, Outcome.NOT_MODIFIED})
_REMOVALS = {Outcome.GONE: Reason.GONE, Outcome.EXCLUDED: Reason.EXCLUDED}


def _retyped(record: DocumentRecord, observed: Observation) -> bool:
    """The same bytes under another media type are read otherwise."""
    return bool(observed.media_type) and observed.media_type != record.media_type


def restore_snapshot(
    record: DocumentRecord, target: Target, *, in_flight: bool = False
) -> Decision | None:
    """Bring the live version into the generation to be written, when it is not in it, or not whole.

    None also for what is stuck, as long as nothing has changed.
    """
    if record.raw_hash is None or record.fingerprints is None:
        return None
    if record.generation == target.generation and not in_flight:
        return None
    if is_stuck(record) and record.failure is not None:
        # Only what there is of a write that was cut short makes it worth another try.
        again = in_flight or not failed_the_same_way(record, record.raw_hash, target.fingerprints)
        if record.failure.stranded or not again:
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


def is_stuck(record: DocumentRecord) -> bool:
    """Is it the live version itself that fails, or whose snapshot is lost while the newer one fails?

    Then no run can bring it into another generation. One that only has to be fetched again is not.
    """
    failure = record.failure
    if failure is None or record.raw_hash is None or failure.stage == "fetch":
        return False
    return failure.stranded or failure.raw_hash == record.raw_hash


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
        and record.failure.fingerprint == fingerprints.up_to(record.failure.stage)
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
    record: DocumentRecord,
    *,
    complete: bool,
    authoritative: bool,
    target: Target,
    moved_to: str = "",
    in_flight: bool = False,
) -> Decision:
    """Decide what a remembered document needs that the listing does not name.

    moved_to: a URI of the listing at which the same bytes have come up.
    """
    if complete and (authoritative or record.missing_runs + 1 >= target.gone_after):
        reason = Reason.MOVED if moved_to else Reason.GONE
        return Decision(record.document_id, record.uri, Action.REMOVE, reason, target=moved_to)
    restored = restore_snapshot(record, target, in_flight=in_flight)
    if restored is not None:
        return restored
    if not complete:
        return Decision(record.document_id, record.uri, Action.KEEP, Reason.UNLISTED)
    return Decision(record.document_id, record.uri, Action.MISS, Reason.MISSING)
