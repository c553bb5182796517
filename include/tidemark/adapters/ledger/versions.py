"""What was live of a document before, and the snapshots that anything still refers to."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import Insert, insert

from tidemark.adapters.ledger.documents import FAILED, FAILED_RAW_HASH, document
from tidemark.adapters.ledger.engine import Database, batches
from tidemark.adapters.ledger.schema import (
    AT_ONCE,
    GATES,
    DisplayText,
    Rows,
    UtcDateTime,
    delete_some,
    metadata,
    required,
    sorted_text,
    texts,
    uuids,
)
from tidemark.adapters.ledger.sources import alias
from tidemark.adapters.ledger.tombstones import RESTORABLE, tombstone
from tidemark.domain.decide import Action
from tidemark.domain.records import DocumentRecord, RunDocument, Tombstone, VersionRecord

REPLACED = sa.literal_column("replaced_at IS NOT NULL", sa.Boolean)

version = sa.Table(
    "version",
    metadata,
    # No foreign keys: a version outlives its document.
    sa.Column("document_id", sa.Uuid, primary_key=True),
    sa.Column("run_id", sorted_text(), primary_key=True),
    required("source", sorted_text()),
    required("uri", sorted_text()),
    required("title", DisplayText),
    required("action", sa.Text),
    required("reason", sa.Text),
    required("detail", DisplayText),
    required("raw_hash", sa.Text, index=True),
    sa.Column("content_hash", sa.Text),
    required("media_type", DisplayText),
    sa.Column("charset", DisplayText),
    *(required(f"{gate}_fingerprint", sa.Text) for gate in GATES),
    sa.Column("generation", sa.Integer),
    required("sections", sa.Integer),
    required("chunks", sa.Integer),
    required("fetched_at", UtcDateTime),
    sa.Column("modified_at", UtcDateTime),
    required("indexed_at", UtcDateTime),
    required("recorded_at", UtcDateTime, server_default=sa.func.clock_timestamp()),
    # When another version took its place; empty for the last one of a document, live or not.
    sa.Column("replaced_at", UtcDateTime),
    sa.Index(None, "replaced_at", postgresql_where=REPLACED),
)


VERSIONS = Rows(version, VersionRecord)

# What every ledger makes of a document's row and of the event that explains it


def committed_version(record: DocumentRecord, event: RunDocument) -> VersionRecord | None:
    """The version that a document written anew becomes.

    None for one whose last good version was only written again beside a failure: it was live before.
    """
    if event.action == Action.QUARANTINE.value or record.indexed_at is None:
        return None
    return _version(record, event, record.indexed_at)


def updated_version(
    record: DocumentRecord, event: RunDocument, raw_hash_before: str | None
) -> VersionRecord | None:
    """The version that a document becomes whose bytes changed and whose content did not, else None.

    It is live since it was seen, with bytes fetched just before: the record's own times are those of the
    points, which stay as they were.
    """
    if record.raw_hash == raw_hash_before or record.indexed_at is None:
        return None
    since = max(record.indexed_at, record.last_seen)
    version = _version(record, event, since)
    return replace(version, fetched_at=since) if version else None


def removed_version(
    record: DocumentRecord | None, tombstone: Tombstone, event: RunDocument
) -> VersionRecord | None:
    """What tells that from then on nothing of a document was live.

    None where nothing was before, and for one that is taken down: nothing is to be kept of it.
    """
    if record is None or tombstone.taken_down:
        return None
    version = _version(record, event, tombstone.removed_at)
    return replace(version, reason=tombstone.reason, chunks=0, sections=0) if version else None


def _version(
    record: DocumentRecord, event: RunDocument, indexed_at: datetime
) -> VersionRecord | None:
    if record.raw_hash is None or record.fingerprints is None:
        return None
    return VersionRecord(
        document_id=record.document_id,
        run_id=event.run_id,
        source=record.source,
        uri=record.uri,
        title=record.title,
        action=event.action,
        reason=event.reason,
        detail=event.detail,
        raw_hash=record.raw_hash,
        content_hash=record.content_hash,
        media_type=record.media_type,
        charset=record.charset,
        fingerprints=record.fingerprints,
        generation=record.generation,
        sections=record.sections,
        chunks=record.chunks,
        fetched_at=record.fetched_at,
        modified_at=record.modified_at,
        indexed_at=indexed_at,
    )


# Statements

_OWNER = sa.bindparam("owner", type_=sa.Uuid())


def _write_version() -> Insert:
    """Upsert one by document and run; the others of the document are replaced from now on."""
    others = (
        sa.update(version)
        .where(
            version.c.document_id == _OWNER,
            version.c.run_id != sa.bindparam("by_run", type_=sa.Text()),
            sa.not_(REPLACED),
        )
        .values(replaced_at=sa.bindparam("since", type_=UtcDateTime()))
    )
    columns = [c for c in version.columns if c.name not in ("recorded_at", "replaced_at")]
    # Parameters named as the columns would be taken for values of the update too.
    values = {c.name: sa.bindparam(f"new_{c.name}", type_=c.type) for c in columns}
    statement = insert(version).values(values).add_cte(others.cte("others"))
    changes = {c.name: statement.excluded[c.name] for c in columns if not c.primary_key}
    return statement.on_conflict_do_update(
        index_elements=list(version.primary_key.columns),
        set_={**changes, "recorded_at": sa.func.clock_timestamp(), "replaced_at": None},
    )


_WRITE_VERSION = _write_version()


def write_version(connection: sa.Connection, record: VersionRecord | None) -> None:
    """Keep a version, if there is one to keep."""
    if record is not None:
        values = {f"new_{name}": v for name, v in VERSIONS.values(record).items()}
        others = {
            "owner": record.document_id,
            "by_run": record.run_id,
            "since": record.indexed_at,
        }
        connection.execute(_WRITE_VERSION, {**values, **others})


def _move_versions() -> sa.Update:
    kept = version.alias("kept")
    there = sa.bindparam("there", type_=sa.Uuid())
    moved_at = sa.bindparam("moved_at", type_=UtcDateTime())
    return (
        sa.update(version)
        .where(
            version.c.document_id == sa.bindparam("gone", type_=sa.Uuid()),
            version.c.run_id.not_in(sa.select(kept.c.run_id).where(kept.c.document_id == there)),
        )
        .values(document_id=there, replaced_at=sa.func.coalesce(version.c.replaced_at, moved_at))
    )


_MOVE_VERSIONS = _move_versions()


def move_versions(connection: sa.Connection, gone: UUID, there: UUID, moved_at: datetime) -> None:
    """Give the versions of a document that moved to the one that it is now."""
    connection.execute(_MOVE_VERSIONS, {"gone": gone, "there": there, "moved_at": moved_at})


_LATEST_FIRST = (version.c.indexed_at.desc(), version.c.recorded_at.desc())
_OF = sa.select(version).where(version.c.document_id == _OWNER).order_by(*_LATEST_FIRST)
_ALL = sa.select(version).order_by(version.c.document_id, *_LATEST_FIRST)
_DROP = delete_some(
    version,
    REPLACED,
    version.c.replaced_at < sa.bindparam("before", type_=UtcDateTime()),
    order=(version.c.replaced_at, version.c.document_id, version.c.run_id),
)
_FORGET = sa.delete(version).where(version.c.document_id == sa.any_(uuids("ids")))


def _references() -> list[tuple[sa.Select[Any], sa.ColumnElement[str]]]:
    """All that may refer to a snapshot, each as a query and the column that it reads."""
    columns: list[sa.ColumnElement[str]] = [
        document.c.raw_hash,
        document.c.fetched_raw_hash,
        version.c.raw_hash,
        alias.c.raw_hash,
    ]
    failed = sa.select(FAILED_RAW_HASH).select_from(document).where(FAILED)
    removed = sa.select(tombstone.c.raw_hash).where(RESTORABLE)
    return [
        *((sa.select(column), column) for column in columns),
        (failed, FAILED_RAW_HASH),
        (removed, tombstone.c.raw_hash),
    ]


class PostgresVersions:
    """The Versions port on Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, document_id: UUID) -> list[VersionRecord]:
        return VERSIONS.of(self._database.rows(_OF, {"owner": document_id}))

    def stream(self) -> Iterator[VersionRecord]:
        return VERSIONS.stream(self._database.stream(_ALL))

    def drop(self, superseded_before: datetime) -> int:
        return self._database.execute(_DROP, {"before": superseded_before})

    def forget(self, document_ids: Sequence[UUID]) -> None:
        for batch in batches(document_ids, AT_ONCE):
            self._database.execute(_FORGET, {"ids": batch})

    def raw_in_use(self, raw_hashes: Sequence[str]) -> set[str]:
        if not raw_hashes:
            return set()
        wanted = sa.any_(texts("hashes"))
        query = sa.union_all(*(query.where(column == wanted) for query, column in _references()))
        return {row[0] for row in self._database.rows(query, {"hashes": raw_hashes})}

    def raw_references(self) -> Iterator[str]:
        # The empty one stands for bytes that were never had.
        query = sa.union_all(*(query.where(column > "") for query, column in _references()))
        return (row[0] for row in self._database.stream(query))
