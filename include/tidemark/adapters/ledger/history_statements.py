"""The statements about what was, and those that forget it, built once.

Each that forgets takes at most ``AT_ONCE`` rows, so that no transaction holds many; its conditions are
asked again of the rows that it deletes, for one may have changed since it was chosen.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    BigInteger,
    Connection,
    Delete,
    Integer,
    Select,
    Table,
    Text,
    Update,
    Uuid,
    all_,
    any_,
    bindparam,
    delete,
    exists,
    func,
    not_,
    or_,
    select,
    true,
    tuple_,
    union_all,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, Insert, distinct_on, insert

from tidemark.adapters.ledger import rows, tables
from tidemark.adapters.ledger import statements as sql
from tidemark.adapters.ledger.tables import (
    FORGETTABLE,
    REPLACED,
    UtcDateTime,
    chunk,
    document,
    run,
    run_document,
    version,
)
from tidemark.domain.records import RunStatus, VersionRecord

_OWNER = bindparam("owner", type_=Uuid())
_BEFORE = bindparam("before", type_=UtcDateTime())
_RUNS = bindparam("runs", type_=ARRAY(Text))


def _some(table: Table, *conditions: Any, order: Sequence[Any] = ()) -> Delete:
    """Delete ``AT_ONCE`` rows, the first in an order, that meet conditions."""
    key = tuple(table.primary_key.columns)
    chosen = select(*key).where(*conditions).order_by(*order).limit(sql.AT_ONCE)
    return delete(table).where(tuple_(*key).in_(chosen), *conditions)


# Versions


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
    given = [c for c in version.columns if c.name not in ("recorded_at", "replaced_at")]
    # Parameters named as the columns would be taken for values of the update too.
    values = {c.name: bindparam(f"new_{c.name}", type_=c.type) for c in given}
    statement = insert(version).values(values).add_cte(others.cte("others"))
    changes = {c.name: statement.excluded[c.name] for c in given if not c.primary_key}
    return statement.on_conflict_do_update(
        index_elements=list(version.primary_key.columns),
        set_={**changes, "recorded_at": func.clock_timestamp(), "replaced_at": None},
    )


_WRITE_VERSION = _write_version()


def write_version(connection: Connection, record: VersionRecord | None) -> None:
    """Keep a version, if there is one to keep."""
    if record is not None:
        values = {f"new_{name}": v for name, v in rows.version_values(record).items()}
        others = {
            "owner": record.document_id,
            "by_run": record.run_id,
            "since": record.indexed_at,
        }
        connection.execute(_WRITE_VERSION, {**values, **others})


def _move_versions() -> Update:
    kept = version.alias("kept")
    there = bindparam("there", type_=Uuid())
    return (
        update(version)
        .where(
            version.c.document_id == bindparam("gone", type_=Uuid()),
            version.c.run_id.not_in(select(kept.c.run_id).where(kept.c.document_id == there)),
        )
        .values(
            document_id=there,
            replaced_at=func.coalesce(
                version.c.replaced_at, bindparam("moved_at", type_=UtcDateTime())
            ),
        )
    )


_MOVE_VERSIONS = _move_versions()


def move_versions(connection: Connection, gone: UUID, there: UUID, moved_at: datetime) -> None:
    """Give the versions of a document that moved to the one that it is now."""
    connection.execute(_MOVE_VERSIONS, {"gone": gone, "there": there, "moved_at": moved_at})


_LATEST_FIRST = (version.c.indexed_at.desc(), version.c.recorded_at.desc())
VERSIONS = select(version).where(version.c.document_id == _OWNER).order_by(*_LATEST_FIRST)
ALL_VERSIONS = select(version).order_by(version.c.document_id, *_LATEST_FIRST)
DROP_VERSIONS = _some(
    version,
    REPLACED,
    version.c.replaced_at < _BEFORE,
    order=(version.c.replaced_at, version.c.document_id, version.c.run_id),
)
FORGET_VERSIONS = delete(version).where(version.c.document_id == any_(sql.uuids("ids")))

# Vectors that were written before they were hashed

HOLD = select(document.c.document_id).where(document.c.document_id == _OWNER).with_for_update()


def _adopt_hashes() -> Update:
    given = sql.unnested({"point": Uuid(), "hash": Text()})
    return (
        update(chunk)
        .where(
            chunk.c.point_id == given.c.point,
            chunk.c.document_id == _OWNER,
            or_(
                chunk.c.vector_hash.is_(None),
                func.starts_with(given.c.hash, chunk.c.vector_hash + "."),
            ),
        )
        .values(vector_hash=given.c.hash)
    )


ADOPT_HASHES = _adopt_hashes()
ADOPT_CHECKSUM = (
    update(document)
    .where(
        document.c.document_id == _OWNER,
        document.c.checksum.is_not_distinct_from(bindparam("before", type_=Text())),
        ~exists().where(chunk.c.document_id == _OWNER, chunk.c.vector_hash.is_(None)),
    )
    .values(checksum=bindparam("sum", type_=Text()))
)

# Runs and tombstones

RUNNING = select(run).where(run.c.finished_at.is_(None)).order_by(run.c.started_at, run.c.run_id)


def _old_runs() -> Select[Any]:
    latest = (
        select(run.c.run_id)
        .where(run.c.source == tables.source.c.name)
        .order_by(run.c.started_at.desc(), run.c.run_id.desc())
    )
    stay = [
        some.lateral()
        for some in (
            latest.limit(bindparam("keep", type_=Integer())),
            latest.where(run.c.status == RunStatus.SUCCESS.value).limit(1),
        )
    ]
    kept = union_all(*(select(s.c.run_id).select_from(tables.source.join(s, true())) for s in stay))
    return (
        select(run.c.run_id)
        .where(run.c.finished_at < _BEFORE, run.c.run_id.not_in(kept))
        .order_by(run.c.finished_at, run.c.run_id)
        .limit(sql.AT_ONCE)
    )


OLD_RUNS = _old_runs()
DROP_RUN_EVENTS = _some(run_document, run_document.c.run_id == any_(_RUNS))
DROP_RUNS = delete(run).where(run.c.run_id == any_(_RUNS), run.c.finished_at.is_not(None))

_grave = tables.tombstone
OLD_TOMBSTONES = (
    select(_grave.c.document_id)
    .where(FORGETTABLE, _grave.c.removed_at < _BEFORE)
    .order_by(_grave.c.removed_at, _grave.c.document_id)
    .limit(sql.AT_ONCE)
)
COUNT_OLD_TOMBSTONES = select(func.count()).where(FORGETTABLE, _grave.c.removed_at < _BEFORE)
DROP_DOCUMENT_EVENTS = _some(run_document, run_document.c.document_id == any_(sql.uuids("ids")))
DROP_TOMBSTONES = delete(_grave).where(_grave.c.document_id == any_(sql.uuids("ids")), FORGETTABLE)

# Audits

_audit = tables.audit
LATEST_AUDITS = (
    select(_audit.c.audit_id)
    .ext(distinct_on(_audit.c.source))
    .order_by(_audit.c.source, _audit.c.audited_at.desc(), _audit.c.audit_id.desc())
)
DROP_AUDITS = _some(
    _audit,
    _audit.c.audited_at < _BEFORE,
    _audit.c.audit_id != all_(bindparam("stay", type_=ARRAY(BigInteger))),
    order=(_audit.c.audited_at, _audit.c.audit_id),
)
