"""The audit while one generation is live and another is being built, and of the alias itself."""

from collections import Counter
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from audits import Audited
from store_losses import move_alias
from worlds import CountingEmbedder, World, page

from fakes.embedder import HashEmbedder
from tidemark.adapters.index.qdrant_edge import QdrantEdgeIndex
from tidemark.cli.audit import render_audit as rendered
from tidemark.domain.chunks import PointWrite
from tidemark.domain.identity import document_id
from tidemark.domain.records import GenerationStatus
from tidemark.pipeline import run_source
from tidemark.stages.audit.audit import AuditReport

A, B = "https://docs.example.org/0", "https://wiki.example.org/1"
A_ID = document_id("docs", A)
BUILDING, LIVE, RETIRED = GenerationStatus


@pytest.fixture
def changing() -> Audited:
    """The model is changing: ``docs`` is in generation 2 already, ``wiki`` in the live one only."""
    audited = Audited().fill()
    change_model(audited)
    run(audited, "docs")
    assert (audited.world.index.live(), audited.world.index.generations()) == (1, [1, 2])
    return audited


def change_model(audited: Audited) -> None:
    audited.world.embedder = CountingEmbedder(HashEmbedder(32))


def run(audited: Audited, *sources: str) -> None:
    for name in sources:
        assert run_source(*audited.job_factory(name), "test").status == "success"


def kinds(report: AuditReport) -> dict[str, int]:
    return {kind: n for kind, n in report.counts.items() if n}


def of(audited: Audited, generation: int, document: UUID) -> list[PointWrite]:
    found = audited.world.index.scan_points(
        generation, {"document_id": str(document)}, vectors=True
    )
    return [PointWrite(p.point_id, p.payload, p.dense) for p in found]


def statuses(audited: Audited) -> dict[int, GenerationStatus]:
    return {g.number: g.status for g in audited.world.ledger.generations.all("tidemark")}


def is_whole_when_the_new_one_is_live(audited: Audited) -> None:
    run(audited, "docs", "wiki")
    assert audited.world.index.generations() == [audited.world.index.live()]
    assert audited.audit().clean


# The alias


def put_over_what_is_being_built(audited: Audited) -> None:
    """As when the name was lost, and a run put it over what it was writing and had the ledger say so."""
    audited.world.index.switch(2)
    for record in audited.world.ledger.generations.all("tidemark"):
        status = LIVE if record.number == 2 else RETIRED
        audited.world.ledger.generations.save(replace(record, status=status))


def test_an_alias_over_what_is_half_built_is_found_and_put_back(changing: Audited) -> None:
    put_over_what_is_being_built(changing)
    report = changing.audit()
    assert kinds(report) == {"live_name": 1}
    assert "only in generation 1" in report.notes["live_name"][0]
    repaired = changing.audit(repair=True)
    assert (repaired.did, repaired.left) == ({"live_name_moved": 1}, {})
    assert changing.world.index.live() == 1
    assert statuses(changing) == {1: LIVE, 2: BUILDING}
    assert changing.audit().clean
    is_whole_when_the_new_one_is_live(changing)
    assert changing.world.index.live() == 2, "what had been built is gone on with"


def test_an_alias_over_the_fuller_one_of_two_stays_and_is_named(changing: Audited) -> None:
    """Put back, it would find less than it does now; the runs of the sources mend it."""
    put_over_what_is_being_built(changing)
    index = changing.world.index
    index.delete_points(1, [p.point_id for p in index.scan_points(1, {"source": "docs"})])
    for number in range(3):
        changing.world.documents[f"{A}/{number}"] = page("More", f"More is said here: {number}.")
    run(changing, "docs")
    report = changing.audit(repair=True)
    assert report.left == {"live_name": 1}
    assert index.live() == 2
    run(changing, "wiki")
    changing.audit(repair=True)
    assert changing.audit().clean


def test_documents_in_a_generation_that_is_gone_are_missing(changing: Audited) -> None:
    put_over_what_is_being_built(changing)
    changing.world.index.drop(1)
    assert kinds(changing.audit()) == {"missing_points": 4, "missing_sections": 6}
    assert not changing.audit(repair=True).differs
    assert changing.audit().clean


@pytest.mark.parametrize("dimension", [64, 32])
def test_what_cannot_be_written_again_keeps_the_version_that_is_live(dimension: int) -> None:
    """An index restored from before the model was changed, and a snapshot that is lost."""
    audited = Audited().fill()
    before, old = deepcopy(audited.world.index), of(audited, 1, A_ID)
    change_model(audited)
    run(audited, "docs")
    audited.world.index = before
    audited.world.embedder = CountingEmbedder(HashEmbedder(dimension))
    run(audited, "wiki")
    raw_hash = audited.world.ledger.documents.by_id([A_ID])[A_ID].raw_hash
    for key in list(audited.world.artifacts.keys("")):
        if str(raw_hash) in key:
            audited.world.artifacts.delete(key)
    report = audited.audit(repair=True)
    assert of(audited, 1, A_ID) == old
    assert report.left == {"missing_points": 2, "missing_sections": 3}
    assert "It is fetched again by the next run" in report.failed[A]
    # The next run heals it: by then the site has it in another wording.
    audited.world.source.documents[A] = "The tide rises twice."
    run(audited, "docs", "wiki", "docs")
    assert audited.audit().clean
    assert audited.world.index.generations() == [audited.world.index.live()]
    assert not {p.point_id for p in of(audited, audited.world.generation, A_ID)} & {
        p.point_id for p in old
    }


@pytest.mark.parametrize("live", [None, 2])
def test_a_lost_alias_in_a_model_change_is_the_only_finding(
    changing: Audited, live: int | None
) -> None:
    """What the old generation serves is not taken for too much, nor deleted."""
    before = changing.world.index.count_points(1)
    move_alias(changing.world.index, live)
    assert kinds(changing.audit()) == {"live_name": 1}
    assert not changing.audit(repair=True).differs
    assert changing.world.index.live() == 1
    assert changing.world.index.count_points(1) == before
    assert changing.audit().clean


def test_what_the_alias_was_wrongly_over_is_dropped_at_once() -> None:
    audited = Audited().fill()
    index = audited.world.index
    index.ensure(7, 64, "another-model")
    index.switch(7)
    report = audited.audit(repair=True)
    assert report.did == {"generations_dropped": 1, "live_name_moved": 1}
    assert report.left == {}
    assert index.generations() == [1]
    assert audited.audit().clean


def test_what_a_kill_left_behind_a_switch_is_dropped_with_the_same_repair(
    changing: Audited,
) -> None:
    index, ledger = changing.world.index, changing.world.ledger
    before = ledger.generations.all("tidemark")
    points = [
        PointWrite(p.point_id, p.payload, p.dense) for p in index.scan_points(1, vectors=True)
    ]
    sections = [PointWrite(s.point_id, s.payload) for s in index.scan_sections(1)]
    run(changing, "wiki", "docs")
    assert index.generations() == [2]
    index.ensure(1, 64, before[0].embed_fingerprint)
    index.upsert_points(1, points)
    index.upsert_sections(1, sections)
    for record in before:
        ledger.generations.save(record)
    assert kinds(changing.audit()) == {"live_name": 1}
    assert not changing.audit(repair=True).differs
    assert index.generations() == [2]
    assert changing.audit().clean


@pytest.mark.slow
def test_a_damaged_file_of_the_alias_is_healed(tmp_path: Path) -> None:
    world = World(index=QdrantEdgeIndex(tmp_path, "tidemark", 30))
    audited = Audited(world).fill(2)
    world.index.ensure(2, 64, "another-model")
    for damage in ("", "{", "[]", '{"generation": "x"}'):
        (tmp_path / "tidemark.live.json").write_text(damage)
        report = audited.audit()
        assert report.counts["live_name"] == 1
        assert "tidemark.live.json" in report.notes["live_name"][0]
        assert not audited.audit(repair=True).differs
        assert (world.index.live(), world.index.generations()) == (1, [1])
    assert audited.audit().clean


def test_a_damaged_alias_that_belongs_nowhere_is_left_and_nothing_dropped(
    tmp_path: Path,
) -> None:
    world = World(index=QdrantEdgeIndex(tmp_path, "tidemark", 30))
    for number in (1, 2):
        world.index.ensure(number, 64, f"model {number}")
    (tmp_path / "tidemark.live.json").write_text("{")
    report = Audited(world).audit(repair=True)
    assert report.left == {"live_name": 1, "dead_generations": 2}
    assert world.index.generations() == [1, 2]


# What is served while another generation is built


def damage(audited: Audited, how: str) -> dict[str, int]:
    """Do damage to a document in the live generation whose newest is in the other; what is to be found."""
    index, points = audited.world.index, of(audited, 1, A_ID)
    sections = [s.point_id for s in index.scan_sections(1, {"document_id": str(A_ID)})]
    first = points[0]
    if how == "gone":
        index.delete_points(1, [p.point_id for p in points])
        index.delete_sections(1, sections)
        return {"missing_points": 2, "missing_sections": 3}
    if how == "one_gone":
        index.delete_points(1, [first.point_id])
        return {"missing_points": 1}
    if how == "tampered":
        index.set_payloads(1, [replace(first, payload={**first.payload, "text": "Forged."})])
        return {"stale_payload": 1}
    if how == "no_text":
        bare = {"document_id": str(A_ID), "source": "docs"}
        index.set_payloads(1, [replace(first, payload=bare)])
        return {"stale_payload": 1}
    if how == "no_vector":
        index.upsert_points(1, [replace(first, dense=None)])
        return {"wrong_vectors": 1}
    index.upsert_points(1, [replace(first, point_id=uuid4())])
    return {"extra_points": 1}


DAMAGE = ("gone", "one_gone", "tampered", "no_text", "no_vector", "doubled")


@pytest.mark.parametrize("how", DAMAGE)
def test_damage_to_what_is_served_is_found_told_and_heals_with_the_new_generation(
    changing: Audited, how: str
) -> None:
    expected = damage(changing, how)
    report = changing.audit()
    assert kinds(report) == expected
    assert report.sources == {"docs": expected}
    assert report.examples[next(iter(expected))] == [A]
    assert report.served == 1
    changing.world.embedder.texts.clear()
    runs = len(changing.world.ledger.runs.recent("docs", 50))
    repaired = changing.audit(repair=True)
    assert repaired.left == expected, "a repair does not claim what it did not do"
    assert (repaired.did, repaired.repaired, repaired.served) == ({}, 0, 1)
    assert changing.world.embedder.texts == []
    assert len(changing.world.ledger.runs.recent("docs", 50)) == runs
    is_whole_when_the_new_one_is_live(changing)


@pytest.mark.parametrize("how", DAMAGE)
def test_damage_to_what_is_served_heals_when_the_model_is_set_back(
    changing: Audited, how: str
) -> None:
    damage(changing, how)
    changing.world.embedder = CountingEmbedder(HashEmbedder(64))
    run(changing, "docs", "wiki")
    report = changing.audit(repair=True)
    assert not report.differs
    assert Counter(p.payload["source"] for p in changing.points()) == {"docs": 4, "wiki": 4}
    assert changing.audit().clean


def test_what_is_told_of_the_live_generation_names_its_cure(changing: Audited) -> None:
    from rich.console import Console

    damage(changing, "gone")
    console = Console(width=300, no_color=True)
    with console.capture() as captured:
        console.print(rendered(changing.audit(repair=True)))
    text = captured.get()
    assert "1 documents are wrong, or not in the live generation" in text
    assert "setting the model back" in text
    assert "The index is what the ledger says again" not in text
    assert "What else could not be healed" in text


def test_points_of_nobody_in_the_live_generation_are_deleted_there(changing: Audited) -> None:
    index = changing.world.index
    model = of(changing, 1, A_ID)[0]
    for garbage in (str(document_id("docs", "https://nowhere")), "nobody"):
        payload = {**model.payload, "document_id": garbage}
        index.upsert_points(1, [PointWrite(uuid4(), payload, model.dense)])
    changing.names.clear()
    report = changing.audit(repair=True)
    assert (kinds(report), report.left) == ({"extra_points": 2}, {})
    assert (index.count_points(1), index.count_points(2)) == (8, 4)


def test_what_was_never_in_the_live_generation_is_not_missing_there(changing: Audited) -> None:
    """Documents come, change, move, go and come back while the other generation is being built."""
    world = changing.world
    new, moved, away = (f"https://docs.example.org/{name}" for name in ("new", "moved", "2"))
    world.documents[new] = page("New", "A new page stands here.")
    world.documents[A] = page("Page 0", "It says something else now.", "And more.", "And more yet.")
    gone = world.documents.pop(away)
    world.source.gone[away] = "404"
    run(changing, "docs")
    assert changing.audit().clean
    world.documents[away] = gone
    del world.source.gone[away]
    world.documents[moved] = world.documents.pop(new)
    world.source.gone[new] = "404"
    run(changing, "docs")
    assert changing.audit().clean
    world.documents[new] = world.documents.pop(moved)
    world.source.gone = {moved: "404"}
    run(changing, "docs")
    assert changing.audit().clean
    is_whole_when_the_new_one_is_live(changing)


def test_a_document_that_a_repair_writes_into_the_new_generation_stays_wrong_in_the_old(
    changing: Audited,
) -> None:
    index, key = changing.world.index, document_id("wiki", B)
    index.delete_points(1, [of(changing, 1, key)[0].point_id])
    assert kinds(changing.audit()) == {"missing_points": 1}
    report = changing.audit(repair=True)
    assert (report.left, report.served) == ({"missing_points": 1}, 1)
    assert len(of(changing, 2, key)) == 2
    is_whole_when_the_new_one_is_live(changing)


# Epochs


def test_a_source_that_is_not_in_the_new_generation_yet_is_not_out_of_step(
    changing: Audited,
) -> None:
    assert changing.audit().out_of_step == ()
    assert changing.audit("wiki").out_of_step == ()


@pytest.mark.parametrize(("source", "generation"), [("wiki", 1), ("docs", 2)])
def test_an_epoch_that_disagrees_where_the_documents_are_is_told(
    changing: Audited, source: str, generation: int
) -> None:
    changing.world.index.write_epoch(generation, source, "of a backup")
    assert changing.audit().out_of_step == (source,)
    changing.audit(repair=True)
    assert changing.audit().out_of_step == ()


def test_a_source_without_documents_is_not_out_of_step() -> None:
    audited = Audited().fill()
    for uri in list(audited.wiki.documents):
        del audited.wiki.documents[uri]
        audited.wiki.gone[uri] = "404"
    job, deps = audited.job_factory("wiki")
    assert run_source(replace(job, approved=True), deps, "test").status == "success"
    change_model(audited)
    run(audited, "docs")
    assert audited.audit().out_of_step == ()
