"""The audit again, on the stores that operators run: Postgres, Qdrant's engine, files."""

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from audits import OWNERS, POINT_DAMAGE, SECTION_DAMAGE, Audited, Damage
from filelock import FileLock
from worlds import World, page

from tidemark.adapters.artifacts import FsspecArtifacts
from tidemark.adapters.embedding.lexical import Bm25Encoder
from tidemark.adapters.index import qdrant_edge as qdrant_edge
from tidemark.adapters.index.qdrant_edge import QdrantEdgeIndex
from tidemark.adapters.ledger.postgres import PostgresLedger
from tidemark.stages.audit.audit import AuditReport

pytestmark = pytest.mark.services


@pytest.fixture
def audited(postgres_url: str, tmp_path: Path) -> Iterator[Audited]:
    ledger = PostgresLedger(postgres_url)
    world = World(
        ledger,
        QdrantEdgeIndex(tmp_path / "qdrant", "tidemark", 30),
        FsspecArtifacts((tmp_path / "artifacts").as_uri()),
    )
    world.lexical = Bm25Encoder()
    yield Audited(world).fill(6)
    ledger.close()


def test_a_clean_index_is_clean_by_its_sums(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine normalises vectors and rounds their numbers; the sums do not mind."""
    monkeypatch.setattr("tidemark.stages.audit.compare.Comparison.compare_pieces", pytest.fail)
    report = audited.audit()
    assert report.clean
    assert (report.checked, report.documents) == (12, 6)


def test_every_kind_of_damage_is_named_and_undone(audited: Audited) -> None:
    before = audited.held()
    damage = Damage(audited)
    with audited.world.index.session():
        for how, point in zip(POINT_DAMAGE, audited.points(), strict=False):
            damage.to_point(how, point)
        for how, section in zip(SECTION_DAMAGE, audited.sections(), strict=False):
            damage.to_section(how, section)
        for whose in OWNERS:
            damage.add(whose, "points")
            damage.add(whose, "sections")
    damage.leave_a_generation()
    found = audited.audit()
    assert Counter(found.counts) == damage.expected
    repaired = audited.audit(repair=True)
    assert not repaired.differs, repaired
    assert audited.held() == before
    assert len(audited.world.embedder.texts) == damage.embedded
    assert audited.audit().clean
    kept = audited.world.ledger.generations.audits(limit=50)
    assert [a.repaired for a in kept if a.source is None] == [0, repaired.repaired, 0]


def test_documents_are_found_by_a_sentence_of_their_own(audited: Audited) -> None:
    report = audited.audit(sample=6)
    assert (report.sampled, report.clean) == (6, True)


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_run_beside_the_audit_is_no_finding(audited: Audited) -> None:
    stop = threading.Event()
    found: list[AuditReport] = []

    def audit() -> None:
        while not stop.is_set():
            found.append(audited.audit())

    thread = threading.Thread(target=audit)
    thread.start()
    try:
        for turn in range(2):
            for number in range(0, 6, 2):
                uri = f"https://docs.example.org/{number}"
                audited.world.documents[uri] = page("Page", f"Turn {turn}.", f"Page {number}.")
            audited.run()
    finally:
        stop.set()
        thread.join()
    assert found
    assert [report.counts for report in found if not report.clean] == []


def test_a_long_scan_lets_others_in_and_misses_nothing(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An audit of millions of points must not keep a run waiting until it gives up."""
    monkeypatch.setattr(qdrant_edge, "SCAN_SECONDS", 0.0)
    monkeypatch.setattr(qdrant_edge, "PAGE", 5)
    taken: list[float] = []
    acquire = FileLock.acquire

    def counted(lock: FileLock, timeout: float) -> object:
        taken.append(timeout)
        return acquire(lock, timeout)

    monkeypatch.setattr(FileLock, "acquire", counted)
    assert len({point.point_id for point in audited.points()}) == 12
    assert len(taken) == 3
    assert audited.audit().clean
