"""Whether what a run has met is of something that was taken down, and may not be there all the same."""

from typing import Protocol

from tidemark.domain.blocks import excluded
from tidemark.domain.documents import Observation, Outcome
from tidemark.domain.records import DocumentRecord, Tombstone
from tidemark.stages.job import Dependencies, Job


class Live(Protocol):
    """The version of a document that is live; a ``DocumentRecord`` tells it too."""

    @property
    def raw_hash(self) -> str | None: ...
    @property
    def text_hash(self) -> str | None: ...


def blocked_content(
    job: Job, deps: Dependencies, uri: str, raw_hash: str, text_hash: str, live: Live | None
) -> Observation | None:
    """The observation of bytes that are blocked, to be asked before they are stored; else None.

    Blocked at any address and as any version, except where a document has had the same all along. A new one
    is let in that another rightly has: it may be that one, renamed.

    text_hash: of their text, "" where it is not known or not believed. live: what is live at the address.
    """
    match = job.blocks.match(raw_hash, text_hash)
    if match is None:
        return None
    if live is None:
        stays = has_rightful_owner(job, deps, raw_hash, text_hash)
    else:
        stays = live.raw_hash == raw_hash or bool(text_hash and live.text_hash == text_hash)
    return None if stays else excluded(uri, match.sentence, match.tombstone.uri)


def has_rightful_owner(job: Job, deps: Dependencies, raw_hash: str, text_hash: str) -> bool:
    """Has another document these bytes, or this text, or had one these bytes that may come back?"""
    ledger, source = deps.ledger, job.source
    owners: list[DocumentRecord | Tombstone] = [
        *ledger.documents.by_raw(source, [raw_hash]),
        *ledger.tombstones.by_raw(source, [raw_hash]),
    ]
    if text_hash:
        owners += ledger.documents.by_text(source, [text_hash])
    return any(map(job.blocks.is_free, owners))


def blocked_observation(
    job: Job, deps: Dependencies, observed: Observation, live: Live | None
) -> Observation:
    """What was observed, if it is not blocked by a takedown since."""
    blocks = job.blocks
    if not blocks.by_uri or observed.outcome is Outcome.EXCLUDED:
        return observed
    if observed.uri in blocks.by_uri:
        return excluded(observed.uri, blocks.reason(observed.uri), observed.uri)
    if observed.outcome is not Outcome.FETCHED or not observed.raw_hash:
        return observed
    text = "" if observed.anomaly else observed.text_hash or ""
    return blocked_content(job, deps, observed.uri, observed.raw_hash, text, live) or observed
