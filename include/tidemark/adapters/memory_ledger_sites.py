"""The part of the ledger in memory that knows what real sites do (see ``postgres_ledger_sites``)."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from tidemark.domain.identity import document_id
from tidemark.domain.records import (
    Alias,
    AliasKind,
    DocumentRecord,
    DocumentStatus,
    SourceState,
    Tombstone,
)

AT_ONCE = 1_000
"""How many of the oldest are handed out, or forgotten, by one call."""


class MemorySites:
    """What the ledger knows of a source beside its documents, one by one."""

    def __init__(self) -> None:
        self._documents: dict[UUID, DocumentRecord] = {}
        self._tombstones: dict[UUID, Tombstone] = {}
        self._aliases: dict[UUID, Alias] = {}
        self._states: dict[str, SourceState] = {}
        self._marks: dict[str, str] = {}

    def documents_by_text(self, source: str, text_hashes: Sequence[str]) -> list[DocumentRecord]:
        wanted = set(text_hashes)
        return [d for d in self._of(source) if d.text_hash in wanted]

    def documents_by_raw(self, source: str, raw_hashes: Sequence[str]) -> list[DocumentRecord]:
        wanted = set(raw_hashes)
        return [d for d in self._of(source) if d.raw_hash in wanted]

    def documents_by_failed(self, source: str, raw_hashes: Sequence[str]) -> list[DocumentRecord]:
        wanted = set(raw_hashes)
        failed = DocumentStatus.QUARANTINED
        return [d for d in self._of(source) if d.status is failed and d.fetched_raw_hash in wanted]

    def _of(self, source: str) -> list[DocumentRecord]:
        return [d for d in self._documents.values() if d.source == source]

    def tombstones_by_raw(self, source: str, raw_hashes: Sequence[str]) -> list[Tombstone]:
        wanted = set(raw_hashes)
        return [
            t
            for t in self._tombstones.values()
            if t.source == source and t.raw_hash in wanted and not (t.expired or t.taken_down)
        ]

    def tombstones_before(self, source: str, removed_before: datetime) -> list[Tombstone]:
        found = [
            t
            for t in self._tombstones.values()
            if t.source == source and not t.expired and t.removed_at < removed_before
        ]
        found.sort(key=lambda t: (t.removed_at, t.document_id))
        return found[:AT_ONCE]

    def expire(self, document_ids: Sequence[UUID]) -> None:
        for key in document_ids:
            if key in self._tombstones:
                self._tombstones[key] = replace(self._tombstones[key], expired=True)

    def forget_titles(self, source: str, raw_hashes: Sequence[str]) -> None:
        wanted = set(raw_hashes)
        for key, stone in self._tombstones.items():
            if stone.source == source and stone.raw_hash in wanted:
                self._tombstones[key] = replace(stone, title="")

    def taken_down(self, source: str) -> list[Tombstone]:
        found = (t for t in self._tombstones.values() if t.taken_down)
        return [t for t in found if t.everywhere or t.source == source]

    def lift(self, document_id: UUID) -> None:
        self._tombstones.pop(document_id, None)

    def aliases(self, source: str) -> Iterator[Alias]:
        found = [a for a in self._aliases.values() if a.source == source]
        return iter(sorted(found, key=lambda alias: alias.uri))

    def aliases_by_uri(self, source: str, uris: Sequence[str]) -> dict[str, Alias]:
        keys = {uri: document_id(source, uri) for uri in uris}
        return {uri: self._aliases[key] for uri, key in keys.items() if key in self._aliases}

    def aliases_of(self, document_id: UUID) -> list[Alias]:
        found = [a for a in self._aliases.values() if a.document_id == document_id]
        return sorted(found, key=lambda alias: alias.uri)

    def find_aliases(self, uri: str) -> list[Alias]:
        found = [a for a in self._aliases.values() if a.uri == uri]
        return sorted(found, key=lambda alias: alias.source)

    def save_aliases(self, aliases: Sequence[Alias]) -> None:
        for alias in aliases:
            key = document_id(alias.source, alias.uri)
            if alias.document_id in self._documents and key not in self._documents:
                self._aliases[key] = alias

    def _lead_on(self, gone: UUID, alias: Alias) -> None:
        for key, before in list(self._aliases.items()):
            if before.document_id == gone:
                self._aliases[key] = replace(before, document_id=alias.document_id)
        self.save_aliases([alias])

    def drop_aliases(self, source: str, seen_before: datetime) -> None:
        self._aliases = {
            key: a
            for key, a in self._aliases.items()
            if a.source != source or a.seen_at >= seen_before or a.kind is AliasKind.MOVED
        }

    def source_state(self, source: str) -> SourceState:
        return self._states.get(source, SourceState(source))

    def save_source_state(self, state: SourceState) -> None:
        self._states[state.source] = state

    def tide_mark(self, source: str) -> str:
        return self._marks.get(source, "")

    def save_tide_mark(self, source: str, mark: str) -> None:
        self._marks[source] = mark

    def quarantined(self, source: str | None = None) -> Iterator[DocumentRecord]:
        found = [
            d
            for d in self._documents.values()
            if d.status is DocumentStatus.QUARANTINED and source in (None, d.source)
        ]
        return iter(sorted(found, key=lambda document: (document.source, document.uri)))

    def release(self, document_ids: Sequence[UUID]) -> None:
        for key in document_ids:
            record = self._documents.get(key)
            if record is not None and record.failure is not None:
                failure = replace(record.failure, fingerprint="")
                self._documents[key] = replace(record, failure=failure)

    def count_suspects(self, source: str) -> int:
        return sum(d.suspect is not None for d in self._of(source))
