"""Rows that another Tidemark of this schema wrote are read as they were meant, and written as they were."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tidemark.adapters.ledger import documents, generations, runs, sources, tombstones, versions
from tidemark.adapters.ledger.postgres import PostgresLedger, metadata
from tidemark.adapters.ledger.schema import Rows
from tidemark.domain.identity import document_id
from tidemark.domain.records import AliasKind, DocumentStatus, GenerationStatus, RunStatus

pytestmark = pytest.mark.services

DUMP = json.loads(Path(__file__).with_name("rows_of_0003.json").read_text())
"""Two sources: one crawled four times by the code of the schema's release, and one with all that is rare."""

ROWS: dict[str, Rows[Any]] = {
    "document": documents.DOCUMENTS,
    "section": documents.SECTION_ROWS,
    "chunk": documents.CHUNK_ROWS,
    "alias": sources.ALIASES,
    "tombstone": tombstones.TOMBSTONES,
    "run": runs.RUNS,
    "run_document": runs.EVENTS,
    "version": versions.VERSIONS,
    "generation": generations.GENERATIONS,
    "audit": generations.AUDITS,
}


@pytest.fixture
def engine(postgres_url: str) -> Iterator[sa.Engine]:
    """Of a database with these rows."""
    engine = sa.create_engine(sa.make_url(postgres_url).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        for table in metadata.sorted_tables:
            fill = sa.text(
                f'INSERT INTO "{table.name}" '
                f'SELECT * FROM json_populate_recordset(NULL::"{table.name}", :rows)'
            )
            connection.execute(fill, {"rows": json.dumps(DUMP.get(table.name, []))})
    yield engine
    engine.dispose()


@pytest.mark.parametrize("name", ROWS)
def test_a_row_that_is_read_and_written_again_is_as_it_was(engine: sa.Engine, name: str) -> None:
    table, rows = metadata.tables[name], ROWS[name]
    with engine.begin() as connection:
        as_json = sa.text(f'SELECT row_to_json(t) FROM "{name}" t ORDER BY 1::text')
        before = connection.scalars(as_json).all()
        for row in connection.execute(sa.select(table)).all():
            key = [column == getattr(row, column.name) for column in table.primary_key]
            values = rows.values(rows.record(row))
            connection.execute(sa.update(table).where(*key).values(values))
        assert before
        assert sorted(map(str, connection.scalars(as_json))) == sorted(map(str, before))


def test_what_they_say_is_read(engine: sa.Engine) -> None:
    ledger = PostgresLedger(engine)
    assert ledger.sources.names() == sorted(row["name"] for row in DUMP["source"])
    state = ledger.sources.state("docs")
    assert (state.state, state.boilerplate, state.boilerplate_pages) == (
        *("state-1", (1, -5, 2**60)),
        7,
    )
    assert ledger.sources.epoch("docs") == "run-9 mark"
    counts = ledger.documents.counts()
    stored = DUMP["document"]
    assert counts.chunks == len(DUMP["chunk"]) == sum(row["chunks"] for row in stored)
    assert (counts.documents, counts.quarantined, counts.held) == (len(stored), 1, 1)
    [bad] = ledger.documents.stream(quarantined=True)
    assert bad.status is DocumentStatus.QUARANTINED
    assert bad.failure is not None
    assert bad.failure.hint == "Remove the password."
    [held] = ledger.documents.by_uri("https://example.org/held")
    assert held.suspect is not None
    assert held.suspect.reason == "shrunk"
    [blocking] = ledger.tombstones.blocking("any source at all")
    assert (blocking.blocked_raws, blocking.blocked_texts) == (("raw-1",), ("text-1",))
    [alias] = ledger.sources.aliases(held.source)
    assert (alias.kind, alias.document_id) == (AliasKind.DUPLICATE, held.document_id)
    assert list(ledger.writes.pending()) == [held.document_id]
    assert {run.status for run in ledger.runs.recent()} == {RunStatus.SUCCESS}
    [generation] = ledger.generations.all("tidemark")
    assert generation.status is GenerationStatus.LIVE
    changed = document_id("docs", "https://example.org/a")
    latest, first = ledger.versions.of(changed)
    assert (latest.reason, first.reason) == ("content", "new")
    assert latest.fingerprints == first.fingerprints
    ledger.close()
