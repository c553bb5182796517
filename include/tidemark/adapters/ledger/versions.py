"""What was live of a document before, and the snapshots that anything still refers to."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Index,
    Integer,
    Row,
    Select,
    Table,
    Text,
    Update,
    Uuid,
    any_,
    bindparam,
    delete,
    func,
    literal_column,
    not_,
    select,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import Insert, insert

from tidemark.adapters.ledger.documents import FAILED, FAILED_RAW_HASH, document
from tidemark.adapters.ledger.engine import Database, batches
from tidemark.adapters.ledger.schema import (
    AT_ONCE,
    DisplayText,
    UtcDateTime,
    Values,
    delete_some,
    fields_of,
    metadata,
    required,
    sorted_text,
    texts,
    uuids,
)
from tidemark.adapters.ledger.sources import alias
from tidemark.adapters.ledger.tombstones import RESTORABLE, tombstone
from tidemark.domain.chunks import Fingerprints
from tidemark.domain.decide import Action
from tidemark.domain.records import DocumentRecord, RunDocument, Tombstone, VersionRecord

_GATES = tuple(f.name for f in fields(Fingerprints))

REPLACED = literal_column("replaced_at IS NOT NULL", Boolean)

version = Table(
    "version",
    metadata,
    # No foreign keys: a version outlives its document.
    Column("document_id", Uuid, primary_key=True),
    Column("run_id", sorted_text(), primary_key=True),
    required("source", sorted_text()),
    required("uri", sorted_text()),
    required("title", DisplayText),
    required("action", Text),
    required("reason", Text),
    required("detail", DisplayText),
    required("raw_hash", Text, index=True),
    Column("content_hash", Text),
    required("media_type", DisplayText),
    Column("charset", DisplayText),
    *(required(f"{gate}_fingerprint", Text) for gate in _GATES),
    Column("generation", Integer),
    required("sections", Integer),
    required("chunks", Integer),
    required("fetched_at", UtcDateTime),
    Column("modified_at", UtcDateTime),
    required("indexed_at", UtcDateTime),
    required("recorded_at", UtcDateTime, server_default=func.clock_timestamp()),
    # When another version took its place; empty for the last one of a document, live or not.
    Column("replaced_at", UtcDateTime),
    Index(None, "replaced_at", postgresql_where=REPLACED),
)


def version_values(record: VersionRecord) -> Values:
    values = fields_of(record)
    made_under = values.pop("fingerprints")
    return {**values, **{f"{gate}_fingerprint": getattr(made_under, gate) for gate in _GATES}}


def version_record(row: Row[Any]) -> VersionRecord:
    stored = row._asdict()
    for name in ("recorded_at", "replaced_at"):
        del stored[name]
    made_under = Fingerprints(*(stored.pop(f"{gate}_fingerprint") for gate in _GATES))
    return VersionRecord(**stored, fingerprints=made_under)


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

_OWNER = bindparam("owner", type_=Uuid())


def _write_version() -> Insert:
    """Upsert one by document and run; the others of the document are replaced from now on."""
    others = (
        update(version)
        .where(
            version.c.document_id == _OWNER,
            version.c.run_id != bindparam("by_run", type_=Text()),
            not_(REPLACED),
        )
        .values(replaced_at=bindparam("since", type_=UtcDateTime()))
    )
    columns = [c for c in version.columns if c.name not in ("recorded_at", "replaced_at")]
    # Parameters named as the columns would be taken for values of the update too.
    values = {c.name: bindparam(f"new_{c.name}", type_=c.type) for c in columns}
    statement = insert(version).values(values).add_cte(others.cte("others"))
    changes = {c.name: statement.excluded[c.name] for c in columns if not c.primary_key}
    return statement.on_conflict_do_update(
        index_elements=list(version.primary_key.columns),
        set_={**changes, "recorded_at": func.clock_timestamp(), "replaced_at": None},
    )


_WRITE_VERSION = _write_version()


def write_version(connection: Connection, record: VersionRecord | None) -> None:
    """Keep a version, if there is one to keep."""
    if record is not None:
        values = {f"new_{name}": v for name, v in version_values(record).items()}
        others = {
            "owner": record.document_id,
            "by_run": record.run_id,
            "since": record.indexed_at,
        }
        connection.execute(_WRITE_VERSION, {**values, **others})


def _move_versions() -> Update:
    kept = version.alias("kept")
    there = bindparam("there", type_=Uuid())
    moved_at = bindparam("moved_at", type_=UtcDateTime())
    return (
        update(version)
        .where(
            version.c.document_id == bindparam("gone", type_=Uuid()),
            version.c.run_id.not_in(select(kept.c.run_id).where(kept.c.document_id == there)),
        )
        .values(document_id=there, replaced_at=func.coalesce(version.c.replaced_at, moved_at))
    )


_MOVE_VERSIONS = _move_versions()


def move_versions(connection: Connection, gone: UUID, there: UUID, moved_at: datetime) -> None:
    """Give the versions of a document that moved to the one that it is now."""
    connection.execute(_MOVE_VERSIONS, {"gone": gone, "there": there, "moved_at": moved_at})


_LATEST_FIRST = (version.c.indexed_at.desc(), version.c.recorded_at.desc())
_OF = select(version).where(version.c.document_id == _OWNER).order_by(*_LATEST_FIRST)
_ALL = select(version).order_by(version.c.document_id, *_LATEST_FIRST)
_DROP = delete_some(
    version,
    REPLACED,
    version.c.replaced_at < bindparam("before", type_=UtcDateTime()),
    order=(version.c.replaced_at, version.c.document_id, version.c.run_id),
)
_FORGET = delete(version).where(version.c.document_id == any_(uuids("ids")))


def _references() -> list[tuple[Select[Any], ColumnElement[str]]]:
    """All that may refer to a snapshot, each as a query and the column that it reads."""
    columns: list[ColumnElement[str]] = [
        document.c.raw_hash,
        document.c.fetched_raw_hash,
        version.c.raw_hash,
        alias.c.raw_hash,
    ]
    failed = select(FAILED_RAW_HASH).select_from(document).where(FAILED)
    removed = select(tombstone.c.raw_hash).where(RESTORABLE)
    return [
        *((select(column), column) for column in columns),
        (failed, FAILED_RAW_HASH),
        (removed, tombstone.c.raw_hash),
    ]


class PostgresVersions:
    """The Versions port on Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, document_id: UUID) -> list[VersionRecord]:
        return [version_record(row) for row in self._database.rows(_OF, {"owner": document_id})]

    def stream(self) -> Iterator[VersionRecord]:
        return map(version_record, self._database.stream(_ALL))

    def drop(self, superseded_before: datetime) -> int:
        return self._database.execute(_DROP, {"before": superseded_before})

    def forget(self, document_ids: Sequence[UUID]) -> None:
        for batch in batches(document_ids, AT_ONCE):
            self._database.execute(_FORGET, {"ids": batch})

    def raw_in_use(self, raw_hashes: Sequence[str]) -> set[str]:
        if not raw_hashes:
            return set()
        wanted = any_(texts("hashes"))
        query = union_all(*(query.where(column == wanted) for query, column in _references()))
        return {row[0] for row in self._database.rows(query, {"hashes": raw_hashes})}

    def raw_references(self) -> Iterator[str]:
        # The empty one stands for bytes that were never had.
        query = union_all(*(query.where(column > "") for query, column in _references()))
        return (row[0] for row in self._database.stream(query))
