"""A ledger in use, as the code of an earlier release left it and told of it, opened by the present code.

``ledger.jsonl`` has its rows, with documents that are live, missing, in quarantine and held back, moved and
taken down, and a run that was cut short; ``recorded.json`` what the release itself read from them. Neither is
ever written anew: what fields are called by now is in ``RENAMED``.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from ledger_releases import ledger_at
from pydantic import SecretStr
from sqlalchemy import NullPool, create_engine, text
from worlds import World

from fakes.inspector import MarkInspector
from tidemark.adapters.ledger.migrations import check, upgrade
from tidemark.adapters.ledger.postgres import PostgresLedger
from tidemark.cli.status import read_status
from tidemark.config.settings import Settings
from tidemark.domain.chunks import Fingerprints
from tidemark.domain.identity import document_id
from tidemark.pipeline import plan_source
from tidemark.ports.ledger import Ledger
from tidemark.stages.explain import explain
from tidemark.stages.job import embed_fingerprint, target
from tidemark.wiring import Container

pytestmark = pytest.mark.services

FOLDER = Path(__file__).parent / "as_of_0003"
SOURCES = ("docs", "handbook")
RENAMED = {
    "cure": "hint",
    "furniture": "boilerplate",
    "furniture_pages": "boilerplate_pages",
    "kept_out": "blocked_raws",
    "texts": "blocked_texts",
    "everywhere": "all_sources",
}
"""What fields of records were called then, and are called now."""


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads((FOLDER / "recorded.json").read_text(encoding="utf-8"))
    return recorded


@pytest.fixture
def url(empty_postgres_url: str) -> str:
    lines = (FOLDER / "ledger.jsonl").read_text(encoding="utf-8").splitlines()
    with ledger_at(empty_postgres_url, "0003") as connection:
        for stored in map(json.loads, lines):
            name = stored["table"]
            statement = (
                f"INSERT INTO {name} SELECT * FROM jsonb_populate_record(NULL::{name}, :row)"
            )
            connection.execute(text(statement), {"row": json.dumps(stored["row"])})
    upgrade(empty_postgres_url)
    check(empty_postgres_url)
    return empty_postgres_url


@pytest.fixture
def ledger(url: str) -> Iterator[PostgresLedger]:
    opened = PostgresLedger(url)
    yield opened
    opened.close()


def plain(value: Any) -> Any:
    """Records as the recording has them."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, UUID) else value


def renamed(value: Any) -> Any:
    """A record of then, under the names of now."""
    if isinstance(value, dict):
        return {RENAMED.get(key, key): renamed(inner) for key, inner in value.items()}
    return [renamed(inner) for inner in value] if isinstance(value, list) else value


def assert_told(now: Any, then: Any) -> None:
    """Whatever was told then is told now; there may be more."""
    now, then = plain(now), renamed(then)
    assert within(now, then) == then


def within(now: Any, then: Any) -> Any:
    if isinstance(now, dict) and isinstance(then, dict):
        return {key: within(now[key], then[key]) for key in then if key in now}
    if isinstance(now, list) and isinstance(then, list) and len(now) == len(then):
        return [within(*pair) for pair in zip(now, then, strict=True)]
    return now


def test_documents_and_what_is_indexed_of_them_are_read(
    ledger: Ledger, recorded: dict[str, Any]
) -> None:
    assert_told(list(ledger.documents.stream()), recorded["documents"])
    for what, read in (
        ("sections", ledger.documents.sections),
        ("chunks", ledger.documents.chunks),
        ("versions", ledger.versions.of),
        ("events_of", ledger.runs.events_of),
    ):
        assert_told({key: read(UUID(key)) for key in recorded[what]}, recorded[what])


def test_removed_and_moved_documents_are_read(ledger: Ledger, recorded: dict[str, Any]) -> None:
    tombstones = recorded["tombstones"]
    assert_told({uri: ledger.tombstones.by_uri(uri) for uri in tombstones}, tombstones)
    for source in SOURCES:
        assert_told(ledger.tombstones.blocking(source), recorded["blocking"][source])
        assert_told(list(ledger.sources.aliases(source)), recorded["aliases"][source])


def test_runs_and_what_they_did_are_read(ledger: Ledger, recorded: dict[str, Any]) -> None:
    assert_told(ledger.runs.recent(limit=100), recorded["runs"])
    assert_told(ledger.runs.running(), recorded["running"])
    events = recorded["events"]
    assert_told({run: list(ledger.runs.events(run)) for run in events}, events)


def test_sources_generations_and_audits_are_read(ledger: Ledger, recorded: dict[str, Any]) -> None:
    assert ledger.sources.names() == recorded["names"]
    assert_told(ledger.generations.all("tidemark"), recorded["generations"])
    assert_told(ledger.generations.audits(), recorded["audits"])
    assert sorted(ledger.versions.raw_references()) == recorded["raw_references"]
    for source in SOURCES:
        assert_told(ledger.sources.state(source), recorded["states"][source])
        assert ledger.sources.epoch(source) == recorded["epochs"][source]
        assert_told(ledger.documents.counts(source), recorded["counts"][source])
        assert plain(ledger.writes.pending(source)) == recorded["pending"][source]


def test_every_address_is_explained_as_before(ledger: Ledger, recorded: dict[str, Any]) -> None:
    for uri, then in recorded["explained"].items():
        ids = [document_id(source, uri) for source in SOURCES]
        now = [{"sentence": e.sentence(), **e.as_dict()} for e in explain(ledger, uri, ids)]
        assert within(plain(now), then) == then


def test_the_status_is_as_before(url: str, recorded: dict[str, Any], tmp_path: Path) -> None:
    declared = tmp_path / "sources.yaml"
    entries = ", ".join(f"{name}: {{kind: files, path: {name}}}" for name in SOURCES)
    declared.write_text(f"sources: {{{entries}}}")
    settings = Settings(home=tmp_path / "home", ledger_url=SecretStr(url), sources_file=declared)
    container = Container(settings)
    assert within(plain(read_status(container, None)), recorded["status"]) == recorded["status"]


def test_a_run_finds_nothing_changed_but_what_was_cut_short(
    url: str, ledger: PostgresLedger, recorded: dict[str, Any]
) -> None:
    world = World(ledger)
    world.inspector = MarkInspector()
    world.now = datetime.fromisoformat(recorded["now"])
    world.source.documents.update(recorded["source_documents"])
    world.source.moved.update(recorded["moved"])
    world.source.aliases.update(recorded["aliases_of_source"])
    world.source.state = "commit-1"
    deps = world.deps()
    world.index.ensure(1, deps.embedder.dimension, embed_fingerprint(deps.embedder, deps.lexical))
    world.index.switch(1)
    job = world.job(run_id="run-planned", judge=True)
    with_fingerprints_of_now(url, target(job, deps, 1).fingerprints)
    summary, planned = plan_source(job, deps)
    assert summary.status == recorded["plan"]["status"]
    assert planned.breaches == ()
    assert dict(planned.actions) == recorded["plan"]["actions"]
    assert dict(planned.reasons) == recorded["plan"]["reasons"]


def with_fingerprints_of_now(url: str, now: Fingerprints) -> None:
    """That partitioning or chunking has another version by now is a change that is meant."""
    statement = text(
        "UPDATE document SET indexed_partition_fingerprint = :partition, "
        "indexed_chunk_fingerprint = :chunk WHERE indexed_chunk_fingerprint IS NOT NULL"
    )
    with create_engine(url, poolclass=NullPool).begin() as connection:
        connection.execute(statement, {"partition": now.partition, "chunk": now.chunk})
