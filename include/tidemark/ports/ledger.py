"""What the stages ask of the ledger, by aggregate."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Protocol
from uuid import UUID

from tidemark.domain.records import (
    Alias,
    AuditRecord,
    ChunkRecord,
    DocumentCounts,
    DocumentRecord,
    GenerationRecord,
    RunDocument,
    RunRecord,
    SectionRecord,
    Sighting,
    SourceState,
    Tombstone,
    VersionRecord,
)


class Ledger(Protocol):
    """What is indexed, by whom, from what; and the locks of those who change it."""

    @property
    def documents(self) -> "Documents": ...

    @property
    def writes(self) -> "DocumentWrites": ...

    @property
    def tombstones(self) -> "Tombstones": ...

    @property
    def sources(self) -> "SourceStates": ...

    @property
    def runs(self) -> "Runs": ...

    @property
    def versions(self) -> "Versions": ...

    @property
    def generations(self) -> "Generations": ...

    def dry_run(self) -> AbstractContextManager["Ledger"]:
        """A ledger of the same rows and locks; what is changed in it is undone at the end. For one thread."""

    def lock(
        self, source: str, *, run_id: str | None = None, wait_seconds: float = 0.0
    ) -> AbstractContextManager[None]:
        """Hold the source's lock; freed by the death of the process that holds it.

        Exclusive for a run in one process. With ``run_id``, for one task of a run made of many: the tasks of
        one run hold it together, those of another do not get it meanwhile. Waits for ``wait_seconds`` while
        another run has it, telling the log whom it waits for, then raises ``SourceBusyError``. Raises
        ``TransientError`` at the end when it was lost on the way.
        """

    def is_locked(self, source: str) -> bool:
        """Does any process hold the source's lock?"""

    def lock_documents(self, document_ids: Sequence[UUID]) -> AbstractContextManager[None]:
        """Hold the locks of some documents, so that two runs never write one at the same time.

        Waits for them (a run holds each for the seconds it takes to write it); freed by the death of the
        process that holds them. Not to be nested. Raises ``TransientError`` when it waited too long, and at
        the end when they were lost on the way.
        """


class Documents(Protocol):
    """The documents there are, and what each has in the index."""

    def stream(
        self, source: str | None = None, *, quarantined: bool = False
    ) -> Iterator[DocumentRecord]:
        """All documents (of a source, in quarantine), ordered by source, then URI."""

    def get(self, document_id: UUID) -> DocumentRecord | None: ...

    def by_id(self, ids: Sequence[UUID]) -> dict[UUID, DocumentRecord]: ...

    def by_uri(self, uri: str) -> list[DocumentRecord]:
        """Documents with exactly this URI, in any source."""

    def by_text(self, source: str, text_hashes: Sequence[str]) -> list[DocumentRecord]:
        """Documents of a source whose live version has one of these texts, in no order."""

    def by_raw(self, source: str, raw_hashes: Sequence[str]) -> list[DocumentRecord]:
        """Documents of a source whose live version has exactly these bytes, in no order."""

    def by_failed(self, source: str, raw_hashes: Sequence[str]) -> list[DocumentRecord]:
        """Documents of a source in quarantine whose bytes last fetched are these, in no order."""

    def sections(self, document_id: UUID) -> list[SectionRecord]:
        """In document order."""

    def chunks(self, document_id: UUID) -> list[ChunkRecord]:
        """In document order."""

    def counts(self, source: str | None = None, generation: int | None = None) -> DocumentCounts:
        """Of all documents (of a source, in a generation)."""


class DocumentWrites(Protocol):
    """How documents change: an intent first, then the index, then all rows of one document at once.

    The intent of a document is closed by ``commit``, ``remove`` and ``close_intent`` (not by ``update``); one
    that is still open tells of a run that died in between.
    """

    def open_intent(self, run_id: str, source: str, documents: Mapping[UUID, str]) -> None:
        """Note, before their first write to the index, which documents (id to URI) are being written."""

    def close_intent(self, document_ids: Sequence[UUID]) -> None:
        """Drop the intents of documents that turned out to have nothing to write."""

    def pending(
        self, source: str | None = None, *, among: Sequence[UUID] | None = None
    ) -> dict[UUID, str]:
        """Documents (of a source, of those named) whose last write was begun and not finished: id to URI."""

    def commit(
        self,
        record: DocumentRecord,
        sections: Sequence[SectionRecord],
        chunks: Sequence[ChunkRecord],
        event: RunDocument,
    ) -> None:
        """Write all rows of one document in one transaction, replace those it had, drop its tombstone.

        It becomes a version, one for each run.
        """

    def update(self, record: DocumentRecord, event: RunDocument) -> None:
        """Write the document's own row (quarantine, gate passed); its sections and chunks stay.

        It becomes a version when its live bytes are others than before.
        """

    def remove(self, tombstone: Tombstone, event: RunDocument, alias: Alias | None = None) -> None:
        """Delete all rows of one document and leave the tombstone, in one transaction.

        That nothing is live any more becomes a version, unless the document is taken down.

        alias: what its address is from now on, ignored as by ``save_aliases``. What led to the document leads
        on to the alias's. The versions of one that moved become that one's, for it lives on there; those of
        a run that wrote both stay.
        """

    def mark_seen(self, run_id: str, seen_at: datetime, sightings: Sequence[Sighting]) -> None:
        """Note that documents were seen: last_seen, validators, fetched_raw_hash, suspect.

        Clears missing_*.
        """

    def mark_missing(self, run_id: str, seen_at: datetime, document_ids: Sequence[UUID]) -> None:
        """Note that documents were not reached: missing_since where unset, missing_runs + 1.

        Repeating it for the same run changes nothing.
        """

    def requeue(self, document_ids: Sequence[UUID]) -> None:
        """Let the next run try quarantined documents again, whatever they failed under."""

    def record_vectors(
        self,
        document_id: UUID,
        hashes: Mapping[UUID, str],
        checksum: str,
        before: str | None = None,
    ) -> None:
        """Note what the vectors of points are (``vector_hash``) where that is not known yet, or not whole.

        ``before``: the checksum that the document has; with any other it keeps it.
        """


class Tombstones(Protocol):
    """The documents that were removed."""

    def by_id(self, ids: Sequence[UUID]) -> dict[UUID, Tombstone]: ...

    def by_uri(self, uri: str) -> list[Tombstone]: ...

    def by_raw(self, source: str, raw_hashes: Sequence[str]) -> list[Tombstone]:
        """Those of a source that had these bytes, are not expired and not taken down, in no order."""

    def restorable(self, source: str, removed_before: datetime) -> list[Tombstone]:
        """The oldest 1,000 of a source that are not expired and were removed before a time."""

    def expire(self, document_ids: Sequence[UUID]) -> None:
        """Mark tombstones as expired: what they could be restored from is being deleted."""

    def clear_titles(self, source: str, raw_hashes: Sequence[str]) -> None:
        """Empty the titles of all tombstones of a source that had these bytes, expired or not."""

    def blocking(self, source: str) -> list[Tombstone]:
        """Those that keep documents out of a source, in no order.

        Its own, and those of any source that keep out everywhere.
        """

    def unblock(self, document_id: UUID) -> None:
        """Forget a tombstone, so that the document may be indexed again; missing is fine."""

    def drop(self, removed_before: datetime) -> int:
        """Forget the oldest 1,000 expired ones removed before a time, with their events; how many.

        Those that keep a document out stay.
        """


class SourceStates(Protocol):
    """What is known of a source beside its documents: how its crawls left it, and its other addresses."""

    def names(self) -> list[str]:
        """Of all sources that have documents or runs, sorted."""

    def state(self, source: str) -> SourceState:
        """Empty for a source that nothing is known of."""

    def save_state(self, state: SourceState) -> None:
        """Upsert; the epoch stays as it is."""

    def epoch(self, source: str) -> str:
        """The epoch that the source's index had when it was last begun to be written, "" for none."""

    def write_epoch(self, source: str, epoch: str) -> None: ...

    def aliases(self, source: str) -> Iterator[Alias]:
        """Stream the other addresses of a source's documents, ordered by URI."""

    def aliases_of(self, document_id: UUID) -> list[Alias]:
        """Ordered by URI."""

    def aliases_by_uri(self, uris: Sequence[str], source: str | None = None) -> list[Alias]:
        """Those with exactly one of these URIs, in any source (or one), ordered by source, then URI."""

    def save_aliases(self, aliases: Sequence[Alias]) -> None:
        """Upsert by source and URI. One is ignored whose document is not there or whose URI is a document's.

        An alias goes with its document, and when its URI becomes a document.
        """

    def drop_aliases(self, source: str, seen_before: datetime) -> None:
        """Forget the aliases, other than of documents that moved, that were not seen since a time."""


class Runs(Protocol):
    """The runs, and the events that tell what each did to a document."""

    def save(self, record: RunRecord) -> None:
        """Upsert by run_id, which is unique over all sources."""

    def get(self, run_id: str) -> RunRecord | None: ...

    def recent(self, source: str | None = None, limit: int = 20) -> list[RunRecord]:
        """Latest first."""

    def running(self) -> list[RunRecord]:
        """Runs that have not been finished, oldest first."""

    def drop(self, finished_before: datetime, keep: int) -> list[str]:
        """Forget the oldest 1,000 runs finished before a time, with their events; their ids.

        The latest ``keep`` of each source stay, and so does its latest success.
        """

    def record_events(self, events: Sequence[RunDocument]) -> None:
        """Upsert by run_id and document_id."""

    def events(self, run_id: str) -> Iterator[RunDocument]:
        """Stream what one run did, ordered by URI."""

    def events_of(self, document_id: UUID, limit: int = 20) -> list[RunDocument]:
        """What runs did to a document, latest first."""


class Versions(Protocol):
    """What was live before, and the snapshots that anything still refers to."""

    def of(self, document_id: UUID) -> list[VersionRecord]:
        """What was live of a document and why it came to be, latest first."""

    def stream(self) -> Iterator[VersionRecord]:
        """All of them, ordered by document, latest first."""

    def drop(self, superseded_before: datetime) -> int:
        """Forget the oldest 1,000 versions that another had replaced before a time; how many."""

    def forget(self, document_ids: Sequence[UUID]) -> None:
        """Forget all versions of documents."""

    def raw_in_use(self, raw_hashes: Sequence[str]) -> set[str]:
        """Those that any document, version, duplicate or tombstone that is not expired refers to."""

    def raw_references(self) -> Iterator[str]:
        """Stream all hashes that ``raw_in_use`` would find; one may come several times."""


class Generations(Protocol):
    """The generations of the index, and the audits of what is in them."""

    def all(self, index_name: str) -> list[GenerationRecord]:
        """Ascending by number."""

    def save(self, record: GenerationRecord) -> None:
        """Upsert by index_name and number."""

    def outside(self, number: int) -> dict[str, int]:
        """Documents with an indexed version in another generation, by source, those that have any.

        Ordered by name.
        """

    def save_audit(self, record: AuditRecord) -> None: ...

    def audits(self, source: str | None = None, limit: int = 20) -> list[AuditRecord]:
        """Latest first; with a source, those of that source and those of all."""

    def drop_audits(self, audited_before: datetime) -> int:
        """Forget audits before a time; how many. The latest of each source stays."""
