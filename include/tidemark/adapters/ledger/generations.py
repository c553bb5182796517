"""The generations of the index, and the audits of what is in them."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Identity,
    Index,
    Integer,
    Row,
    Table,
    Text,
    all_,
    bindparam,
    func,
    insert,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, distinct_on

from tidemark.adapters.ledger.documents import document
from tidemark.adapters.ledger.engine import Database
from tidemark.adapters.ledger.schema import (
    UtcDateTime,
    bulk_upsert,
    delete_some,
    ensure_source,
    fields_of,
    metadata,
    required,
    sorted_text,
    to_source,
    upsert,
)
from tidemark.domain.records import AuditRecord, GenerationRecord, GenerationStatus

generation = Table(
    "generation",
    metadata,
    Column("index_name", sorted_text(), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    required("embed_fingerprint", Text),
    required("dimension", Integer),
    required("status", Text),
    required("created_at", UtcDateTime),
)

evaluation = Table(
    "evaluation",
    metadata,
    Column("evaluation_id", BigInteger, Identity(), primary_key=True),
    required("evaluated_at", UtcDateTime, server_default=func.now(), index=True),
    required("index_name", sorted_text()),
    required("generation", Integer),
    required("questions", Integer),
    required("metrics", JSONB),
)

audit = Table(
    "audit",
    metadata,
    Column("audit_id", BigInteger, Identity(), primary_key=True),
    required("audited_at", UtcDateTime, server_default=func.now(), index=True),
    to_source(nullable=True),
    required("findings", JSONB),
    required("repaired", Integer),
    Column("left", JSONB(none_as_null=True)),
    Index(None, "source", "audited_at"),
)


def generation_record(row: Row[Any]) -> GenerationRecord:
    return GenerationRecord(**{**row._asdict(), "status": GenerationStatus(row.status)})


def audit_record(row: Row[Any]) -> AuditRecord:
    stored = row._asdict()
    del stored["audit_id"]
    return AuditRecord(**stored)


_UPSERT = bulk_upsert(generation)
_LATEST_AUDITS = (
    select(audit.c.audit_id)
    .ext(distinct_on(audit.c.source))
    .order_by(audit.c.source, audit.c.audited_at.desc(), audit.c.audit_id.desc())
)
_DROP_AUDITS = delete_some(
    audit,
    audit.c.audited_at < bindparam("before", type_=UtcDateTime()),
    audit.c.audit_id != all_(bindparam("stay", type_=ARRAY(BigInteger))),
    order=(audit.c.audited_at, audit.c.audit_id),
)


class PostgresGenerations:
    """The Generations port on Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self, index_name: str) -> list[GenerationRecord]:
        query = select(generation).where(generation.c.index_name == index_name)
        rows = self._database.rows(query.order_by(generation.c.number))
        return [generation_record(row) for row in rows]

    def save(self, record: GenerationRecord) -> None:
        values = {**fields_of(record), "status": record.status.value}
        self._database.write(lambda connection: upsert(connection, _UPSERT, [values]))

    def outside(self, number: int) -> dict[str, int]:
        name = document.c.source
        query = (
            select(name, func.count().label("documents"))
            .where(document.c.raw_hash.is_not(None), document.c.generation.is_distinct_from(number))
            .group_by(name)
            .order_by(name)
        )
        return {str(row.source): int(row.documents) for row in self._database.rows(query)}

    def save_audit(self, record: AuditRecord) -> None:
        def write(connection: Connection) -> None:
            if record.source is not None:
                ensure_source(connection, record.source)
            connection.execute(insert(audit), fields_of(record))

        self._database.write(write)

    def audits(self, source: str | None = None, limit: int = 20) -> list[AuditRecord]:
        query = (
            select(audit).order_by(audit.c.audited_at.desc(), audit.c.audit_id.desc()).limit(limit)
        )
        if source is None:
            rows = self._database.rows(query)
        else:
            # Two look-ups in one index; asked for as one, it might be a walk through all audits.
            conditions = (audit.c.source == source, audit.c.source.is_(None))
            rows = [row for c in conditions for row in self._database.rows(query.where(c))]
            rows.sort(key=lambda row: (row.audited_at, row.audit_id), reverse=True)
        return [audit_record(row) for row in rows[:limit]]

    def drop_audits(self, audited_before: datetime) -> int:
        stay = [row.audit_id for row in self._database.rows(_LATEST_AUDITS)]
        gone = 0
        while dropped := self._database.execute(
            _DROP_AUDITS, {"before": audited_before, "stay": stay}
        ):
            gone += dropped
        return gone
