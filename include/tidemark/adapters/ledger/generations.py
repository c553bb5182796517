"""The generations of the index, and the audits of what is in them."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, distinct_on

from tidemark.adapters.ledger.documents import document
from tidemark.adapters.ledger.engine import Database
from tidemark.adapters.ledger.schema import (
    Rows,
    UtcDateTime,
    Word,
    bulk_upsert,
    delete_some,
    ensure_source,
    metadata,
    required,
    sorted_text,
    to_source,
    upsert,
)
from tidemark.domain.records import AuditRecord, GenerationRecord, GenerationStatus

generation = sa.Table(
    "generation",
    metadata,
    sa.Column("index_name", sorted_text(), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    required("embed_fingerprint", sa.Text),
    required("dimension", sa.Integer),
    required("status", Word(GenerationStatus)),
    required("created_at", UtcDateTime),
)

evaluation = sa.Table(
    "evaluation",
    metadata,
    sa.Column("evaluation_id", sa.BigInteger, sa.Identity(), primary_key=True),
    required("evaluated_at", UtcDateTime, server_default=sa.func.now(), index=True),
    required("index_name", sorted_text()),
    required("generation", sa.Integer),
    required("questions", sa.Integer),
    required("metrics", JSONB),
)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("audit_id", sa.BigInteger, sa.Identity(), primary_key=True),
    required("audited_at", UtcDateTime, server_default=sa.func.now(), index=True),
    to_source(nullable=True),
    required("findings", JSONB),
    required("repaired", sa.Integer),
    sa.Column("left", JSONB(none_as_null=True)),
    sa.Index(None, "source", "audited_at"),
)


GENERATIONS = Rows(generation, GenerationRecord)
AUDITS = Rows(audit, AuditRecord)
_UPSERT = bulk_upsert(generation)
_LATEST_AUDITS = (
    sa.select(audit.c.audit_id)
    .ext(distinct_on(audit.c.source))
    .order_by(audit.c.source, audit.c.audited_at.desc(), audit.c.audit_id.desc())
)
_DROP_AUDITS = delete_some(
    audit,
    audit.c.audited_at < sa.bindparam("before", type_=UtcDateTime()),
    audit.c.audit_id != sa.all_(sa.bindparam("stay", type_=ARRAY(sa.BigInteger))),
    order=(audit.c.audited_at, audit.c.audit_id),
)


class PostgresGenerations:
    """The Generations port on Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self, index_name: str) -> list[GenerationRecord]:
        query = sa.select(generation).where(generation.c.index_name == index_name)
        return GENERATIONS.of(self._database.rows(query.order_by(generation.c.number)))

    def save(self, record: GenerationRecord) -> None:
        values = [GENERATIONS.values(record)]
        self._database.write(lambda connection: upsert(connection, _UPSERT, values))

    def outside(self, number: int) -> dict[str, int]:
        name = document.c.source
        query = (
            sa.select(name, sa.func.count().label("documents"))
            .where(document.c.raw_hash.is_not(None), document.c.generation.is_distinct_from(number))
            .group_by(name)
            .order_by(name)
        )
        return {str(row.source): int(row.documents) for row in self._database.rows(query)}

    def save_audit(self, record: AuditRecord) -> None:
        def write(connection: sa.Connection) -> None:
            if record.source is not None:
                ensure_source(connection, record.source)
            connection.execute(sa.insert(audit), AUDITS.values(record))

        self._database.write(write)

    def audits(self, source: str | None = None, limit: int = 20) -> list[AuditRecord]:
        query = (
            sa.select(audit)
            .order_by(audit.c.audited_at.desc(), audit.c.audit_id.desc())
            .limit(limit)
        )
        if source is None:
            rows = self._database.rows(query)
        else:
            # Two look-ups in one index; asked for as one, it might be a walk through all audits.
            conditions = (audit.c.source == source, audit.c.source.is_(None))
            rows = [row for c in conditions for row in self._database.rows(query.where(c))]
            rows.sort(key=lambda row: (row.audited_at, row.audit_id), reverse=True)
        return AUDITS.of(rows[:limit])

    def drop_audits(self, audited_before: datetime) -> int:
        stay = [row.audit_id for row in self._database.rows(_LATEST_AUDITS)]
        gone = 0
        while dropped := self._database.execute(
            _DROP_AUDITS, {"before": audited_before, "stay": stay}
        ):
            gone += dropped
        return gone
