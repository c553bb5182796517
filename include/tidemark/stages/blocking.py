"""Whether what a run has met is of something that was taken down, and may not be there all the same."""

from collections.abc import Sequence
from typing import Protocol

from tidemark.domain.blocks import Match, excluded
from tidemark.domain.documents import Observation, Outcome
from tidemark.domain.records import DocumentRecord, Tombstone
from tidemark.stages.job import Dependencies, Job


class Live(Protocol):
    """The version of a document that is live; a ``DocumentRecord`` tells it too."""

    @property
    def raw_hash(self) -> str | None: ...
    @property
    def text_hash(self) -> str | None: ...


def find_block(
    job: Job,
    deps: Dependencies,
    raw_hash: str,
    texts: Sequence[str],
    live: Live | None,
    *,
    same_content: bool = False,
) -> Match | None:
    """For which takedown bytes are blocked; None when they are not.

    They are at any address and as any version, except where a document has had the same all along. A new one
    is let in that another rightly has: it may be that one, renamed.

    texts: hashes of their text, as far as it is known and believed. live: what is live at the address.
    same_content: that is known to say the same.
    """
    match = job.blocks.match(raw_hash, texts)
    if match is None:
        return None
    if live is not None and live.raw_hash is not None:
        stays = same_content or live.raw_hash == raw_hash or live.text_hash in texts
        return None if stays else match
    owners: list[DocumentRecord | Tombstone] = [
        *deps.ledger.documents.by_raw(job.source, [raw_hash]),
        *deps.ledger.tombstones.by_raw(job.source, [raw_hash]),
        *deps.ledger.documents.by_text(job.source, texts),
    ]
    return None if any(map(job.blocks.is_free, owners)) else match


def blocked_content(
    job: Job, deps: Dependencies, uri: str, raw_hash: str, text_hash: str | None, live: Live | None
) -> Observation | None:
    """The observation of bytes that are blocked, to be asked before they are stored; else None."""
    match = find_block(job, deps, raw_hash, [text_hash] if text_hash else [], live)
    return excluded(uri, match.sentence, match.tombstone.uri) if match is not None else None


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
    text = None if observed.anomaly else observed.text_hash
    return blocked_content(job, deps, observed.uri, observed.raw_hash, text, live) or observed
