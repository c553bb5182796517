"""Ledgers of every released version, with what they knew, brought to the newest."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from ledger_releases import (
    FAILED,
    GONE,
    IDS,
    INDEXED,
    MOVED,
    NEVER,
    RELEASED,
    SOURCE,
    copy_to_release,
    fill,
)
from processes import start_python
from sqlalchemy import NullPool, create_engine, inspect, text
from worlds import World, page

from tidemark.adapters.ledger.migrations import check, current, revisions, upgrade
from tidemark.adapters.ledger.postgres import PostgresLedger
from tidemark.domain.chunks import Fingerprints
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.records import AliasKind, DocumentStatus, SourceState, VersionRecord

pytestmark = pytest.mark.services

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(params=RELEASED)
def revision(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def old_url(empty_postgres_url: str, revision: str) -> str:
    """A database of a released version, in use."""
    fill(empty_postgres_url, revision)
    return empty_postgres_url


@pytest.fixture
def upgraded(old_url: str) -> Iterator[PostgresLedger]:
    with pytest.raises(ConfigurationError, match="tidemark migrate"):
        check(old_url)
    assert upgrade(old_url) == revisions()[-1]
    check(old_url)
    ledger = PostgresLedger(old_url)
    yield ledger
    ledger.close()


def test_every_version_but_the_newest_is_a_released_one() -> None:
    assert tuple(revisions()[:-1]) == RELEASED


def test_documents_keep_all_that_was_known_of_them(upgraded: PostgresLedger, revision: str) -> None:
    found = upgraded.documents.get(IDS[INDEXED])
    assert found is not None
    assert (found.raw_hash, found.content_hash, found.validators.etag) == (
        "raw-1",
        "content-1",
        "1",
    )
    assert found.fingerprints == Fingerprints("fetch-1", "part-1", "chunk-1", "embed-1")
    assert (found.sections, found.chunks, found.checksum) == (1, 2, None)
    assert (found.suspect is not None) == (revision == "0002")
    assert found.text_length == (900 if revision == "0002" else None)
    assert [c.embed_hash for c in upgraded.documents.chunks(found.document_id)] == ["e1", "e2"]
    assert [c.vector_hash for c in upgraded.documents.chunks(found.document_id)] == [None, None]
    assert [s.heading_path for s in upgraded.documents.sections(found.document_id)] == [
        ("Heading",)
    ]
    assert [d.uri for d in upgraded.documents.stream()] == [FAILED, INDEXED, NEVER]


def test_failures_keep_their_message_and_are_found(upgraded: PostgresLedger) -> None:
    failed, never = upgraded.documents.stream(SOURCE, quarantined=True)
    assert (failed.uri, never.uri) == (FAILED, NEVER)
    assert {d.status for d in (failed, never)} == {DocumentStatus.QUARANTINED}
    assert failed.failure is not None
    assert (failed.failure.message, failed.failure.attempts) == ("The file is encrypted.", 2)
    upgraded.writes.requeue([failed.document_id])
    released = upgraded.documents.get(failed.document_id)
    assert released is not None
    assert released.failure is not None
    assert released.failure.fingerprint == ""


def test_what_is_live_becomes_the_first_version_that_is_known(
    upgraded: PostgresLedger, revision: str
) -> None:
    assert upgraded.versions.of(IDS[INDEXED]) == [
        VersionRecord(
            document_id=IDS[INDEXED],
            run_id="run-1",
            source=SOURCE,
            uri=INDEXED,
            title="Indexed",
            action="update",
            reason="content",
            detail="cut as docs",
            raw_hash="raw-1",
            content_hash="content-1",
            media_type="text/html",
            charset="utf-8",
            fingerprints=Fingerprints("fetch-1", "part-1", "chunk-1", "embed-1"),
            generation=1,
            sections=1,
            chunks=2,
            fetched_at=datetime(2026, 3, 1, 12, 1, tzinfo=UTC),
            modified_at=datetime(2026, 2, 28, tzinfo=UTC) if revision == "0002" else None,
            indexed_at=datetime(2026, 3, 1, 12, 2, tzinfo=UTC),
        )
    ]
    # The event that made it is forgotten; its own row still tells which bytes are live.
    [good] = upgraded.versions.of(IDS[FAILED])
    assert (good.raw_hash, good.indexed_at) == (
        "raw-good",
        datetime(2026, 3, 1, 12, 3, tzinfo=UTC),
    )
    assert upgraded.versions.of(IDS[NEVER]) == []
    assert upgraded.versions.drop(datetime(2030, 1, 1, tzinfo=UTC)) == 0


def test_the_rest_of_the_ledger_is_read_as_before(upgraded: PostgresLedger, revision: str) -> None:
    assert [r.run_id for r in upgraded.runs.recent(SOURCE)] == ["run-2", "run-1"]
    assert [r.run_id for r in upgraded.runs.running()] == ["run-2"]
    assert [e.run_id for e in upgraded.runs.events_of(IDS[INDEXED])] == ["run-2", "run-1", "run-0"]
    assert [t.raw_hash for t in upgraded.tombstones.by_uri(GONE)] == ["raw-gone"]
    assert upgraded.tombstones.blocking(SOURCE) == []
    assert upgraded.writes.pending(among=list(IDS.values())).keys() == {IDS[NEVER]}
    assert [g.number for g in upgraded.generations.all("tidemark")] == [1]
    assert upgraded.generations.audits(SOURCE)[0].findings == {"missing_points": 1}
    assert upgraded.sources.epoch(SOURCE) == ""
    used = {"raw-1", "raw-good", "raw-broken", "raw-gone"}
    if revision == "0002":
        [alias] = upgraded.sources.aliases(SOURCE)
        assert (alias.uri, alias.kind) == (MOVED, AliasKind.DUPLICATE)
        assert upgraded.sources.state(SOURCE) == SourceState(SOURCE, "commit-1", (2**62, 7), 40)
        assert upgraded.tombstones.drop(NOON) == 1
        used.add("raw-twin")
    else:
        assert upgraded.sources.state(SOURCE) == SourceState(SOURCE)
    assert set(upgraded.versions.raw_references()) == used


def test_a_run_and_the_audit_go_on_from_an_old_ledger(
    empty_postgres_url: str, postgres_url: str, revision: str
) -> None:
    world = World(PostgresLedger(postgres_url))
    for name in ("a", "b", "c"):
        world.documents[name] = page(name, f"The first text of {name}.", f"More of {name}.")
    world.run()
    del world.documents["c"]
    for _ in range(3):
        world.run()
    assert world.audit().clean
    count = len(world.texts())

    copy_to_release(postgres_url, empty_postgres_url, revision)
    upgrade(empty_postgres_url)
    old = world.ledger = PostgresLedger(empty_postgres_url)
    assert {d.checksum for d in old.documents.stream()} == {None}
    assert world.audit().clean
    records = list(old.documents.stream())
    assert [len(record.checksum or "") for record in records] == [32, 32]
    assert all(
        c.vector_hash for record in records for c in old.documents.chunks(record.document_id)
    )
    assert [len(old.versions.of(record.document_id)) for record in records] == [1, 1]

    world.documents["a"] = page("a", "Another text of a.", "More of a.")
    summary = world.run()
    assert summary.documents["update"] == 1
    assert summary.chunks.embedded == 1
    assert world.audit().clean
    assert len(world.texts()) == count
    assert [v.reason for v in old.versions.of(records[0].document_id)] == ["content", "new"]
    world.run()
    assert world.embedder.texts == []
    old.close()


def test_processes_may_upgrade_a_used_ledger_at_the_same_time(old_url: str) -> None:
    code = "import sys; from tidemark.adapters.ledger.migrations import upgrade; print(upgrade(sys.argv[1]))"
    processes = [start_python(code, old_url) for _ in range(2)]
    for process in processes:
        output, errors = process.communicate(timeout=60)
        assert output.strip() == revisions()[-1], errors
    check(old_url)


UPGRADE = """
import sys
from tidemark.adapters.ledger.migrations import upgrade
print("begun", flush=True)
upgrade(sys.argv[1])
"""


def waits_for(url: str, table: str) -> bool:
    """Does another session wait for a lock of a table, in the middle of a step?"""
    with create_engine(url, poolclass=NullPool).connect() as connection:
        query = text(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = to_regclass(:table)"
        )
        return bool(connection.scalar(query, {"table": table}))


def test_an_upgrade_killed_in_its_middle_leaves_the_old_ledger_and_is_repeated(
    old_url: str, revision: str
) -> None:
    engine = create_engine(old_url, poolclass=NullPool)
    with engine.connect() as reader:
        # The last step of the newest version needs a lock that this reader does not let go of.
        reader.execute(text("LOCK TABLE audit IN ROW EXCLUSIVE MODE"))
        process = start_python(UPGRADE, old_url)
        deadline = time.monotonic() + 30
        while not waits_for(old_url, "audit"):
            assert time.monotonic() < deadline, "it never came to the last step"
            time.sleep(0.05)
        process.kill()
        process.communicate()
        reader.rollback()
    killed_at = current(old_url)
    assert killed_at in RELEASED
    assert killed_at >= revision
    with engine.connect() as connection:
        assert "version" not in inspect(connection).get_table_names()
    assert upgrade(old_url) == revisions()[-1]
    check(old_url)
    ledger = PostgresLedger(old_url)
    assert len(ledger.versions.of(IDS[INDEXED])) == 1
    ledger.close()
