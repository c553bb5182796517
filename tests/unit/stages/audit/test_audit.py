"""The audit: what it finds besides single points, what it leaves alone, and what a repair does about it."""

import copy
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from uuid import uuid4

import pytest
from audits import GARBAGE, Audited, Damage
from store_losses import move_alias
from worlds import CountingEmbedder, page

from fakes.embedder import HashEmbedder
from tidemark.domain.chunks import PointWrite
from tidemark.domain.errors import TransientError
from tidemark.domain.records import AuditRecord, GenerationStatus
from tidemark.pipeline import run_source
from tidemark.stages.audit import compare, drift
from tidemark.stages.audit.audit import AuditReport
from tidemark.stages.audit.sample import Sampler

A = "https://docs.example.org/0"


@pytest.fixture
def audited() -> Audited:
    return Audited().fill()


def kinds(report: AuditReport) -> dict[str, int]:
    return {kind: n for kind, n in report.counts.items() if n}


def latest(audited: Audited, source: str | None) -> AuditRecord:
    return next(a for a in audited.world.ledger.generations.audits(limit=50) if a.source == source)


# A clean index


def test_a_clean_index_is_told_from_its_sums_alone(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row of a chunk is read, no document is locked, nothing is looked up piece by piece."""

    def never(*_: object) -> None:
        raise AssertionError("a clean index is not compared piece by piece")

    monkeypatch.setattr(audited.world.ledger.documents, "chunks", never)
    monkeypatch.setattr(compare.Comparison, "compare_pieces", never)
    report = audited.audit()
    assert report.clean
    assert (report.checked, report.documents) == (8, 4)


def test_sums_that_do_not_fit_in_memory_are_added_up_on_disk(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drift, "IN_MEMORY", 1)
    monkeypatch.setattr(compare, "PAGE", 1)
    assert audited.audit().clean
    Damage(audited).to_point("alter", audited.points()[0])
    assert kinds(audited.audit()) == {"stale_payload": 1}


def test_the_result_is_kept_for_each_source_and_for_all(audited: Audited) -> None:
    Damage(audited).to_point("lose", next(p for p in audited.points() if source(p) == "docs"))
    audited.audit(repair=True)
    for name, missing, repaired in (("docs", 1, 1), ("wiki", 0, 0)):
        kept = latest(audited, name)
        assert (kept.findings["checked"], kept.findings["missing_points"]) == (4, missing)
        assert kept.repaired == repaired
    whole = latest(audited, None)
    assert (whole.findings["checked"], whole.repaired) == (8, 1)


def test_one_source_is_audited_alone(audited: Audited) -> None:
    for point in audited.points():
        Damage(audited).to_point("lose", point)
    report = audited.audit("wiki", repair=True)
    assert kinds(report) == {"missing_points": 4}
    assert report.sources == {"wiki": {"missing_points": 4}}
    assert kinds(audited.audit()) == {"missing_points": 4}, "the other is as it was"
    assert [a.source for a in audited.world.ledger.generations.audits("wiki") if a.source] == [
        "wiki"
    ] * 2


def source(point: PointWrite) -> str:
    return str(point.payload["source"])


# What was written before there were checksums


def test_documents_without_a_checksum_are_compared_once_and_get_one(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = audited.world.ledger
    audited.rewrite_rows(checksum=None)
    assert audited.audit().clean
    assert all(record.checksum for record in ledger.documents.stream())
    monkeypatch.setattr(compare.Comparison, "compare_pieces", pytest.fail)
    assert audited.audit().clean


def test_hashes_of_dense_vectors_alone_raise_no_alarm_and_become_whole(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows and sums of before lexical vectors were hashed."""
    ledger = audited.world.ledger
    before = {record.document_id: record.checksum for record in ledger.documents.stream()}
    audited.rewrite_rows(checksum="0" * 32, vector_hash=lambda known: known.partition(".")[0])
    assert audited.audit().clean
    assert {r.document_id: r.checksum for r in ledger.documents.stream()} == before
    monkeypatch.setattr(compare.Comparison, "compare_pieces", pytest.fail)
    assert audited.audit().clean


@pytest.mark.parametrize("how", ["other_words", "other_weights", "no_words"])
def test_lost_and_other_words_are_written_again_without_embedding(
    audited: Audited, how: str
) -> None:
    before = audited.held()
    Damage(audited).to_point(how, audited.points()[0])
    assert kinds(audited.audit()) == {"wrong_vectors": 1}
    report = audited.audit(repair=True)
    assert (report.differs, audited.world.embedder.texts) == (False, [])
    assert report.did["points_written"] == 1
    assert "vectors_made" not in report.did
    assert audited.held() == before
    assert audited.audit().clean


def test_a_write_that_was_cut_short_is_not_trusted_to_have_the_right_words(
    audited: Audited,
) -> None:
    """The ledger does not know the points: their texts tell what their words are."""
    before, world = audited.held(), audited.world
    Damage(audited).to_point("other_words", audited.points()[0])
    for record in list(world.ledger.documents.stream()):
        world.ledger.writes.open_intent("killed", record.source, {record.document_id: record.uri})
    audited.rewrite_rows()
    audited.run()
    assert audited.held() == before
    assert world.embedder.texts == []
    assert audited.audit().clean


def test_a_lost_vector_is_found_though_none_was_ever_noted(audited: Audited) -> None:
    audited.rewrite_rows(checksum=None)
    Damage(audited).to_point("no_vector", audited.points()[0])
    assert kinds(audited.audit(repair=True)) == {"wrong_vectors": 1}
    assert audited.audit().clean


# Generations and the alias


def test_an_alias_that_is_lost_or_moved_is_put_back(audited: Audited) -> None:
    index = audited.world.index
    index.ensure(2, 64, "another-model")
    for live in (None, 2):
        move_alias(index, live)
        report = audited.audit(repair=True)
        assert report.counts["live_name"] == 1
        assert report.did["live_name_moved"] == 1
        assert index.live() == 1
        assert not report.differs
    assert audited.world.embedder.texts == []


def test_the_ledger_follows_when_a_kill_left_it_behind_the_live_name(audited: Audited) -> None:
    ledger = audited.world.ledger
    [record] = ledger.generations.all("tidemark")
    ledger.generations.save(replace(record, status=GenerationStatus.BUILDING))
    ledger.generations.save(replace(record, number=9, embed_fingerprint="older"))
    assert kinds(audited.audit(repair=True)) == {"live_name": 1}
    statuses = {g.number: g.status for g in ledger.generations.all("tidemark")}
    assert statuses == {1: GenerationStatus.LIVE, 9: GenerationStatus.RETIRED}


def test_a_generation_that_is_being_built_is_neither_dead_nor_drift(audited: Audited) -> None:
    """Its first documents are in it, and searches are still answered by the old one."""
    audited.world.embedder = CountingEmbedder(HashEmbedder(32))
    job, deps = audited.job_factory("docs")
    run_source(job, deps, "test")
    assert audited.world.index.live() == 1
    assert audited.world.index.generations() == [1, 2]
    report = audited.audit()
    assert report.clean, report
    assert report.checked == 8, "documents of both generations are looked at"
    Damage(audited).to_point("lose", audited.points()[0])
    assert kinds(audited.audit(repair=True)) == {"missing_points": 1}


def test_points_in_a_generation_being_built_of_documents_that_nobody_knows_are_too_many(
    audited: Audited,
) -> None:
    """What is there of documents that are somewhere else is no drift (``test_abandoned``)."""
    ledger, index = audited.world.ledger, audited.world.index
    [record] = ledger.generations.all("tidemark")
    ledger.generations.save(
        replace(record, number=2, embed_fingerprint="next", status=GenerationStatus.BUILDING)
    )
    index.ensure(2, 64, "next")
    known, *others = audited.points()[:3]
    buried = str(Damage(audited).record_tombstone())
    nobodys = [replace(p, payload={**p.payload, "document_id": buried}) for p in others]
    index.upsert_points(2, [known, *nobodys])
    report = audited.audit(repair=True)
    assert kinds(report) == {"extra_points": 2}
    assert index.count_points(2) == 1
    assert index.count_points(1) == 8


def test_a_row_of_the_ledger_that_names_another_model_than_the_index_is_corrected(
    audited: Audited,
) -> None:
    ledger = audited.world.ledger
    [record] = ledger.generations.all("tidemark")
    ledger.generations.save(replace(record, embed_fingerprint="wrong", dimension=7))
    report = audited.audit(repair=True)
    assert report.counts["wrong_model"] == 1
    assert "generation 1 is built under" in report.notes["wrong_model"][0]
    assert not report.differs
    assert ledger.generations.all("tidemark") == [record]
    assert audited.world.embedder.texts == []


def test_documents_of_another_model_are_embedded_again(audited: Audited) -> None:
    ledger = audited.world.ledger
    [record] = [d for d in ledger.documents.stream() if d.uri == A]
    assert record.fingerprints is not None
    other = replace(record, fingerprints=replace(record.fingerprints, embed="other"))
    ledger.tables.documents[record.document_id] = other  # type: ignore[attr-defined]
    report = audited.audit(repair=True)
    assert kinds(report) == {"wrong_model": 1}
    assert report.did["vectors_made"] == 2
    assert not report.differs


def test_an_index_that_is_lost_is_built_again_from_the_snapshots(audited: Audited) -> None:
    audited.world.lose_index()
    report = audited.audit()
    assert kinds(report) == {"missing_points": 8, "missing_sections": 12}
    audited.world.source.away = audited.wiki.away = "away"
    assert not audited.audit(repair=True).differs
    assert audited.audit().clean
    assert audited.world.index.live() == audited.world.generation


# What a repair says and does


def test_a_repair_says_what_it_did(audited: Audited) -> None:
    damage = Damage(audited)
    of_one = [p for p in audited.points() if p.payload["source_uri"].startswith(A)]  # type: ignore[union-attr]
    damage.to_point("lose", of_one[0])
    damage.to_point("alter", of_one[1])
    section = audited.sections()[0]
    damage.to_section("lose", section)
    damage.add("unknown", "points")
    damage.add("tombstoned", "sections")
    damage.leave_a_generation()
    report = audited.audit(repair=True)
    hurt = {of_one[0].payload["document_id"], section.payload["document_id"]}
    assert report.repaired == len(hurt) + 2, "and the two that should have nothing"
    assert report.did["points_written"] == report.did["vectors_made"] == 1
    assert report.did["vectors_reused"] >= 1
    assert report.did["payloads_set"] == 1
    assert report.did["sections_written"] == 1
    assert (report.did["points_deleted"], report.did["sections_deleted"]) == (1, 1)
    assert report.did["generations_dropped"] == 1
    assert report.tombstoned == 1


def test_a_document_whose_snapshot_is_lost_is_named_and_the_others_are_healed(
    audited: Audited,
) -> None:
    ledger, artifacts = audited.world.ledger, audited.world.artifacts
    [record] = [d for d in ledger.documents.stream() if d.uri == A]
    for key in [*artifacts.keys(f"raw/{record.raw_hash}"), *artifacts.keys("elements/")]:
        artifacts.delete(key)
    for point in audited.points():
        Damage(audited).to_point("lose", point)
    report = audited.audit(repair=True)
    assert list(report.failed) == [A]
    assert "snapshot" in report.failed[A]
    assert report.left == {"missing_points": 2}
    assert report.repaired == 3
    assert report.differs
    audited.run()
    assert audited.audit().clean, "the next run has fetched it again"


def test_a_source_that_a_run_holds_is_said_to_be_busy_and_the_others_are_healed(
    audited: Audited,
) -> None:
    for point in audited.points():
        Damage(audited).to_point("lose", point)
    with audited.world.ledger.lock("docs", run_id="other"):
        report = audited.audit(repair=True)
    assert "docs" in report.skipped
    assert "other" in report.skipped["docs"]
    assert report.left == {"missing_points": 4}
    assert kinds(audited.audit()) == {"missing_points": 4}


def test_an_outage_in_the_midst_is_told_and_the_next_repair_goes_on(audited: Audited) -> None:
    for point in audited.points():
        Damage(audited).to_point("lose", point)

    def away(texts: object) -> None:
        if any("Page 0" in text for text in texts):  # type: ignore[attr-defined]
            raise TransientError("The model is away.")

    audited.world.embedder.before = away
    report = audited.audit(repair=True)
    assert report.skipped == {"docs": "The model is away."}
    assert report.differs
    assert [r.status.value for r in audited.world.ledger.runs.recent("docs", 1)] == ["failed"]
    audited.world.embedder.before = None
    assert not audited.audit(repair=True).differs
    assert audited.audit().clean


def test_the_epochs_agree_after_a_repair(audited: Audited) -> None:
    ledger, index = audited.world.ledger, audited.world.index
    index.write_epoch(1, "docs", "of a backup")
    report = audited.audit()
    assert report.clean
    assert report.out_of_step == ("docs",)
    audited.audit(repair=True)
    epoch = ledger.sources.epoch("docs")
    assert index.epochs(1, "docs") == (epoch, epoch)
    assert audited.audit().out_of_step == ()


def test_what_a_restored_ledger_has_forgotten_is_left_to_the_next_run(audited: Audited) -> None:
    """Its points may be those of healthy documents: nothing of them is deleted, nothing embedded again."""
    old = copy.deepcopy(audited.world.ledger)
    audited.world.documents["https://docs.example.org/new"] = page("New", "A new page stands here.")
    audited.run()
    before = audited.held()
    audited.world.ledger = old
    report = audited.audit(repair=True)
    assert report.counts["extra_points"] == 1
    assert report.waiting == {"docs": 1}
    assert report.differs
    assert audited.held() == before
    assert audited.audit(repair=True).waiting == {"docs": 1}, "nor by a second one"
    audited.run()
    assert audited.world.embedder.texts == []
    assert audited.audit().clean


def test_a_source_that_no_run_will_come_of_is_cleaned_up_at_once(audited: Audited) -> None:
    audited.names.clear()
    Damage(audited).add("unknown", "points")
    audited.world.index.write_epoch(1, "docs", "of a backup")
    report = audited.audit(repair=True)
    assert report.waiting == {}
    assert not report.differs


def test_points_of_a_source_that_nobody_knows_are_deleted(audited: Audited) -> None:
    model = audited.points()[0]
    payload = {**model.payload, "source": "gone", "document_id": str(uuid4())}
    audited.world.index.upsert_points(1, [PointWrite(uuid4(), payload, model.dense)])
    report = audited.audit(repair=True)
    assert report.sources == {"gone": {"extra_points": 1}}
    assert not report.differs


# Beside a run


def slowed(method: Callable[..., None]) -> Callable[..., None]:
    def call(*arguments: object) -> None:
        time.sleep(0.02)
        method(*arguments)

    return call


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.slow
def test_a_run_beside_the_audit_is_no_finding(
    audited: Audited, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Documents come, change and go while the audit reads; it must not take that for drift."""
    stop = threading.Event()
    found: list[AuditReport] = []
    ledger = audited.world.ledger.writes
    for name in ("commit", "remove"):
        # The index is ahead of the ledger for most of the time.
        monkeypatch.setattr(ledger, name, slowed(getattr(ledger, name)))

    def audit() -> None:
        while not stop.is_set():
            found.append(audited.audit())

    thread = threading.Thread(target=audit)
    thread.start()
    try:
        for turn in range(25):
            world = audited.world
            world.documents[A] = page(
                "Page 0", f"Turn {turn}.", *(f"Part {i}." for i in range(turn % 4))
            )
            extra = f"https://docs.example.org/extra/{turn % 3}"
            if turn % 2:
                world.documents[extra] = page("Extra", f"Once in turn {turn}.")
                world.source.gone.pop(extra, None)
            elif world.documents.pop(extra, None):
                world.source.gone[extra] = "404"
            audited.run()
    finally:
        stop.set()
        thread.join()
    assert len(found) > 3
    assert [report.counts for report in found if not report.clean] == []


# Can it be found?


def test_every_document_of_the_sample_is_searched_for_and_found(audited: Audited) -> None:
    report = audited.audit(sample=3)
    assert (report.sampled, report.clean) == (3, True)
    assert audited.audit(sample=50).sampled == 4, "there are no more"


def test_the_sample_is_the_same_for_a_seed_and_spread_over_the_sources() -> None:
    audited = Audited().fill(20)

    def chosen(seed: str) -> list[str]:
        sampler = Sampler(4, seed, 1)
        for record in audited.world.ledger.documents.stream():
            sampler.see(record)
        return [sampled.uri for sampled in sampler.chosen()]

    assert chosen("monday") == chosen("monday")
    days = [chosen(str(day)) for day in range(8)]
    assert len({tuple(day) for day in days}) > 1
    for day in days:
        assert len(set(day)) == 4
        assert sum("docs" in uri for uri in day) == 2


def test_what_no_search_brings_back_is_named_and_embedded_again(audited: Audited) -> None:
    """Its points are where they should be, and the engine answers without them."""
    index = audited.world.index
    [record] = [d for d in audited.world.ledger.documents.stream() if d.uri == A]
    found = index.search
    hidden = {str(record.document_id)}

    def blind(*arguments: object, **named: object) -> list[object]:
        return [h for h in found(*arguments, **named) if h.payload["document_id"] not in hidden]  # type: ignore[arg-type]

    index.search = blind  # type: ignore[method-assign,assignment]
    report = audited.audit(sample=4)
    assert kinds(report) == {"not_found": 1}
    assert report.examples["not_found"] == [A]
    assert audited.audit(sample=4, repair=True).left == {"not_found": 1}
    write = index.upsert_points

    def seeing(generation: int, points: list[PointWrite]) -> None:
        write(generation, points)
        hidden.clear()

    index.upsert_points = seeing  # type: ignore[method-assign,assignment]
    assert audited.audit(sample=4, repair=True).left == {}


def test_a_page_whose_every_sentence_stands_on_many_others_is_not_missed(audited: Audited) -> None:
    for number in range(30):
        uri = f"https://docs.example.org/same/{number}"
        audited.world.documents[uri] = page("Same", "The same words stand here.")
    audited.run()
    report = audited.audit(sample=40)
    assert report.sampled == 34
    assert report.clean


def test_garbage_in_a_payload_never_ends_the_audit(audited: Audited) -> None:
    index = audited.world.index
    for value in (
        None,
        7,
        "",
        GARBAGE,
        ["x"],
        {"a": 1},
        str(uuid4()).upper(),
        f"urn:uuid:{uuid4()}",
    ):
        payload = {"document_id": value, "source": value, "source_uri": value, "text": value}
        index.upsert_points(1, [PointWrite(uuid4(), payload, (1.0, *[0.0] * 63))])  # type: ignore[arg-type]
        index.upsert_sections(1, [PointWrite(uuid4(), payload)])  # type: ignore[arg-type]
    report = audited.audit(repair=True)
    assert kinds(report) == {"extra_points": 8, "extra_sections": 8}
    assert not report.differs
