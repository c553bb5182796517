"""What a plan says of one document: an action, its reason, and what both were decided by."""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from tidemark.domain.inspection import Suspicion
from tidemark.domain.model import Fingerprints


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
    TAKEN_DOWN = "taken_down"
    """Removed by order, and kept out since."""
    LIMIT = "limit"
    """Left for a later run because this one was limited."""
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


SUSPECTED = frozenset(Reason(suspicion.value) for suspicion in Suspicion)
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
class Surroundings:
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
