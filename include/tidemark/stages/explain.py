"""Explain: what is indexed of a URI, and why it was or was not done again."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from uuid import UUID

from tidemark.domain.decide import Action, Reason
from tidemark.domain.documents import PartitionedDocument, RawDocument
from tidemark.domain.errors import DocumentError
from tidemark.domain.hashing import Canonical, as_json
from tidemark.domain.records import (
    Alias,
    AliasKind,
    DocumentRecord,
    RunDocument,
    Tombstone,
    VersionRecord,
)
from tidemark.ports.artifacts import ArtifactStore
from tidemark.ports.ledger import Ledger
from tidemark.ports.partition import Partitioner
from tidemark.stages.codec import decode_elements
from tidemark.stages.job import raw_key
from tidemark.stages.process.prepare import elements_key


@dataclass(frozen=True, slots=True)
class Explanation:
    """document or tombstone: what the ledger has. events: what runs did to it, latest first.

    asked: the URI, where the document is known by another one. aliases: its other addresses.
    versions: what was live of it and why it came to be, latest first. began: when each run of the events did.
    """

    document: DocumentRecord | None
    tombstone: Tombstone | None
    events: Sequence[RunDocument]
    asked: str = ""
    aliases: Sequence[Alias] = ()
    versions: Sequence[VersionRecord] = ()
    began: Mapping[str, datetime] = field(default_factory=dict)

    def at(self, moment: datetime) -> VersionRecord | None:
        """The version that was live at a moment, None when none was, or nothing is known of that time."""
        past = (version for version in self.versions if version.indexed_at <= moment)
        found = next(past, None)
        return None if found is None or found.action == Action.REMOVE.value else found

    def sentence(self) -> str:
        """The state in words."""
        return f"{self._elsewhere()}{self._state()}{self._doubt()}"

    def _elsewhere(self) -> str:
        if not self.asked or self.document is None:
            return ""
        kind = next((a.kind for a in self.aliases if a.uri == self.asked), AliasKind.ALIAS)
        return f"{_ELSEWHERE[kind]} {self.document.uri}. "

    def _doubt(self) -> str:
        suspect = self.document.suspect if self.document else None
        if suspect is None:
            last = self._last_blocked()
            return f" Its newer version is kept out: it {last}." if self.document and last else ""
        runs = "1 run" if suspect.runs == 1 else f"{suspect.runs} runs"
        return (
            f" Its newer version is not believed ({suspect.reason}: {suspect.detail}), since "
            f"{suspect.since:%Y-%m-%d %H:%M} UTC and for {runs}; the last good one is live. If the "
            "newer one is right, index it with --accept; if the page is to go, exclude it."
        )

    def _state(self) -> str:
        if self.document is None:
            last = self._last_blocked()
            if self.tombstone is None and last:
                return f"It is kept out: it {last}."
            if self.tombstone is None:
                return "It was seen and not indexed; the events below say why."
            tombstone = self.tombstone
            since = f"{tombstone.removed_at:%Y-%m-%d %H:%M} UTC"
            if tombstone.taken_down:
                where = "every source" if tombstone.all_sources else "this source"
                return (
                    f"It was taken down on {since} and is kept out of {where}, "
                    "until `tidemark takedown URI --undo`."
                )
            return f"It was removed on {since} ({tombstone.reason})."
        record = self.document
        if record.failure is not None:
            live = "its last good version is still live" if record.raw_hash else "nothing is live"
            return (
                f"It is quarantined since {record.failure.first_at:%Y-%m-%d %H:%M} UTC: "
                f"{record.failure.message} {record.failure.hint} ({live})."
            )
        indexed = f"{record.indexed_at:%Y-%m-%d %H:%M} UTC" if record.indexed_at else "never"
        missing = ""
        if record.missing_since is not None:
            missing = (
                f" It was not reached by the last {record.missing_runs} complete crawl(s), since "
                f"{record.missing_since:%Y-%m-%d %H:%M} UTC."
            )
        chunks = "1 chunk" if record.chunks == 1 else f"{record.chunks} chunks"
        sections = "1 section" if record.sections == 1 else f"{record.sections} sections"
        if not record.chunks:
            missing += " No search finds it, for it has no text but its title and headings."
        return (
            f"It is indexed with {chunks} in {sections}; last written {indexed} ({record.reason}), "
            f"last seen {record.last_seen:%Y-%m-%d %H:%M} UTC.{missing}"
        )

    def _last_blocked(self) -> str:
        """For which takedown the last run blocked it, or its newer version, "" when it did not."""
        last = next(iter(self.events), None)
        return last.detail if last is not None and last.reason == Reason.TAKEN_DOWN.value else ""

    def as_dict(self) -> dict[str, Canonical]:
        record, tombstone = self.document, self.tombstone
        return {
            "explanation": self.sentence(),
            "document": _document(record) if record else None,
            "aliases": [as_json(alias, "uri", "kind", "seen_at") for alias in self.aliases],
            "tombstone": as_json(tombstone, "source", "uri", "removed_at", "reason", "run_id"),
            "versions": [version_dict(version) for version in self.versions],
            "events": [
                {
                    "run_id": event.run_id,
                    "began_at": as_json(self.began.get(event.run_id)),
                    **as_json(event, *_EVENT),
                }
                for event in self.events
            ],
        }


_EVENT = ("uri", "action", "reason", "detail", "chunks_added", "chunks_kept", "chunks_removed")
_VERSION = (
    "run_id", "uri", "title", "action", "reason", "detail", "raw_hash", "content_hash", "fingerprints",
    "generation", "sections", "chunks", "fetched_at", "modified_at", "indexed_at",
)  # fmt: skip
_DOCUMENT = (
    "document_id", "source", "uri", "title", "media_type", "status", "reason", "raw_hash", "content_hash",
    "fingerprints", "generation", "sections", "chunks", "first_seen", "last_seen", "fetched_at",
    "indexed_at", "missing_since", "missing_runs", "modified_at", "link",
)  # fmt: skip
_FAILURE = ("stage", "message", "attempts", "first_at", "last_at")


def version_dict(version: VersionRecord) -> dict[str, Canonical]:
    """A version in its JSON form."""
    return dict(as_json(version, *_VERSION))


def _document(record: DocumentRecord) -> dict[str, Canonical]:
    suspect, failure = record.suspect, record.failure
    return {
        **as_json(record, *_DOCUMENT),
        "suspect": as_json(suspect, "reason", "detail", "since", "runs"),
        "error": failure and {**as_json(failure, *_FAILURE), "cure": failure.hint},
    }


def not_found(ledger: Ledger, source: str, accepted: Iterable[str]) -> Iterator[str]:
    """Say which addresses that were to be believed no document has, and which one may have been meant."""
    for uri in sorted(set(accepted) - {"*"}):
        if any(record.source == source for record in ledger.documents.by_uri(uri)):
            continue
        doubted = [r.uri for r in ledger.documents.stream(source) if r.suspect is not None]
        close = get_close_matches(uri, doubted, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        yield f"{source} has no document at {uri}, so nothing was accepted for it.{hint}"


_ELSEWHERE = {
    AliasKind.ALIAS: "This address leads to",
    AliasKind.DUPLICATE: "This address has the same text as",
    AliasKind.MOVED: "The document has moved from this address to",
}


def explain(ledger: Ledger, uri: str, ids: Sequence[UUID] = ()) -> list[Explanation]:
    """Explain a URI in every source that knows it, as a document's own or as another address of one.

    ``ids`` are those it would have in each source.
    """
    found = {record.document_id: record for record in ledger.documents.by_uri(uri)}
    tombstones = {
        t.document_id: t for t in ledger.tombstones.by_uri(uri) if t.document_id not in found
    }
    explanations = [
        _explanation(ledger, found.get(key), tombstones.get(key), key)
        for key in dict.fromkeys([*found, *tombstones, *ids])
    ]
    own = [e for e in explanations if e.document or e.tombstone or e.events]
    return [*_by_alias(ledger, uri), *own]


def _explanation(
    ledger: Ledger,
    record: DocumentRecord | None,
    tombstone: Tombstone | None,
    key: UUID,
    asked: str = "",
) -> Explanation:
    events = ledger.runs.events_of(key)
    runs = (ledger.runs.get(run_id) for run_id in dict.fromkeys(event.run_id for event in events))
    return Explanation(
        record,
        tombstone,
        events,
        asked,
        ledger.sources.aliases_of(key),
        ledger.versions.of(key),
        {run.run_id: run.started_at for run in runs if run is not None},
    )


def _by_alias(ledger: Ledger, uri: str) -> Iterator[Explanation]:
    for alias in ledger.sources.aliases_by_uri([uri]):
        record = ledger.documents.get(alias.document_id)
        if record is not None:
            yield _explanation(ledger, record, None, alias.document_id, uri)


def recall(
    artifacts: ArtifactStore, partitioner: Partitioner, version: VersionRecord
) -> tuple[PartitionedDocument, bool]:
    """The content of a version, and whether it is read as it was then.

    It is, where its elements are still kept; else its snapshot is read with today's parser. Raises
    ``DocumentError`` when that is gone too, or cannot be read.
    """
    try:
        key = elements_key(version, version.fingerprints.partition)
        return decode_elements(artifacts.read(key)), True
    except KeyError:
        pass  # Only the snapshot is kept for as long as the version.
    try:
        content = artifacts.read(raw_key(version.raw_hash))
    except KeyError:
        raise DocumentError(
            "fetch",
            f"The snapshot of {version.uri} from {version.fetched_at:%Y-%m-%d %H:%M} UTC is gone.",
            "TIDEMARK_HISTORY_DAYS says for how long those of replaced versions are kept.",
        ) from None
    raw = RawDocument(version.uri, content, version.media_type, version.charset, version.fetched_at)
    return partitioner.partition(raw), False
