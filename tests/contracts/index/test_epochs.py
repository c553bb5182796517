"""What a VectorIndex keeps beside its points (epochs, what it was built under), and damaged points."""

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from vector_index_cases import (
    ADAPTERS,
    DIMENSION,
    GENERATION,
    LASTING,
    adapters,
    direction,
    identity,
    point,
    section,
    words,
)

from tidemark.adapters.index.layout import Layout, built_under_id, epoch_id, is_reserved
from tidemark.adapters.index.qdrant_edge import QdrantEdgeIndex
from tidemark.domain.chunks import PointWrite, StoredPoint
from tidemark.ports.index import VectorIndex


@pytest.fixture(params=adapters())
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VectorIndex]:
    with ADAPTERS[request.param](tmp_path) as opened:
        opened.ensure(GENERATION, DIMENSION)
        yield opened


def numbers(points: Iterable[StoredPoint]) -> list[int]:
    return sorted(int(str(found.payload["number"])) for found in points)


# Marks


def test_a_source_without_a_mark_has_none(index: VectorIndex) -> None:
    assert index.epochs(GENERATION, "docs") == ("", "")
    assert index.epochs(7, "docs") == ("", "")


def test_a_mark_is_written_into_both_collections_in_place_of_the_one_before(
    index: VectorIndex,
) -> None:
    for mark in ("first", "second", "second", "é 東京"):
        index.write_epoch(GENERATION, "docs", mark)
        assert index.epochs(GENERATION, "docs") == (mark, mark)


def test_each_source_and_each_generation_has_its_own_mark(index: VectorIndex) -> None:
    index.ensure(2, DIMENSION)
    index.write_epoch(GENERATION, "docs", "a")
    index.write_epoch(GENERATION, "docs/", "b")
    index.write_epoch(2, "docs", "c")
    assert index.epochs(GENERATION, "docs") == ("a", "a")
    assert index.epochs(GENERATION, "docs/") == ("b", "b")
    assert index.epochs(2, "docs") == ("c", "c")
    assert index.epochs(2, "docs/") == ("", "")
    index.drop(2)
    assert index.epochs(2, "docs") == ("", "")
    index.ensure(2, DIMENSION)
    assert index.epochs(2, "docs") == ("", "")


def test_marks_and_fingerprints_are_no_points(index: VectorIndex) -> None:
    index.ensure(GENERATION, DIMENSION, "fingerprint")
    with index.session():
        for n in range(3):
            index.write_epoch(GENERATION, f"source {n}", "m")
        for having in ([], [0, 1, 2]):
            index.upsert_points(GENERATION, [point(n, 10 * n, source="a") for n in having])
            index.upsert_sections(GENERATION, [section(n, source="a") for n in having])
            for where in (None, {}, {"source": "a"}):
                found = (
                    index.scan_points(GENERATION, where),
                    index.scan_points(GENERATION, where, vectors=True),
                    index.scan_sections(GENERATION, where),
                    index.search(GENERATION, 9, dense=direction(0), where=where),
                    index.search(GENERATION, 9, lexical=words(1), where=where),
                    index.search(GENERATION, 9, dense=direction(0), lexical=words(1), where=where),
                )
                assert [numbers(one) for one in found] == [having] * len(found)
                assert index.count_points(GENERATION, where) == len(having)
                assert index.count_sections(GENERATION, where) == len(having)
        for where in ({"source": "source 0"}, {"document_id": "source 0"}):
            assert not list(index.scan_points(GENERATION, where))
            assert index.count_points(GENERATION, where) == 0
            assert index.count_sections(GENERATION, where) == 0
        ids = [epoch_id("source 0"), built_under_id()]
        assert index.get_points(GENERATION, ids) == index.get_sections(GENERATION, ids) == []
        assert index.get_vectors(GENERATION, ids) == {}


@pytest.mark.services
@pytest.mark.parametrize("name", ["edge", "client-memory"])
def test_marks_that_fill_pages_are_no_points_either(name: str, tmp_path: Path) -> None:
    with ADAPTERS[name](tmp_path) as index, index.session():
        index.ensure(GENERATION, DIMENSION)
        for n in range(300):
            index.write_epoch(GENERATION, f"source {n}", "m")
        index.upsert_points(GENERATION, [point(n) for n in range(300)])
        assert numbers(index.scan_points(GENERATION)) == list(range(300))
        assert index.count_points(GENERATION) == 300
        assert index.count_sections(GENERATION) == 0
        assert not list(index.scan_sections(GENERATION))


def test_a_mark_changes_no_score(index: VectorIndex) -> None:
    index.upsert_points(GENERATION, [point(n, tokens=(n % 2, 5)) for n in range(4)])
    before = index.search(GENERATION, 9, lexical=words(1))
    index.write_epoch(GENERATION, "docs", "m")
    after = index.search(GENERATION, 9, lexical=words(1))
    assert [hit.score for hit in after] == pytest.approx([hit.score for hit in before])


def test_no_id_of_a_point_is_reserved() -> None:
    assert not any(is_reserved(identity(n)) for n in range(1000))
    assert is_reserved(epoch_id("docs"))
    assert is_reserved(built_under_id())
    assert len({epoch_id("docs"), epoch_id("docs "), epoch_id(""), built_under_id()}) == 4


# What a generation was built under


def test_a_generation_keeps_the_fingerprint_it_was_made_under(index: VectorIndex) -> None:
    assert index.built_under(GENERATION) == index.built_under(7) == ""
    assert index.dimension(GENERATION) == DIMENSION
    index.ensure(2, DIMENSION + 1, "made by this")
    for fingerprint in ("made by another", ""):
        index.ensure(2, DIMENSION + 1, fingerprint)
        assert index.built_under(2) == "made by this"
    assert index.dimension(2) == DIMENSION + 1


def test_a_generation_without_a_fingerprint_is_given_one(index: VectorIndex) -> None:
    index.ensure(GENERATION, DIMENSION, "given later")
    index.ensure(GENERATION, DIMENSION, "not this one")
    assert index.built_under(GENERATION) == "given later"


@pytest.mark.parametrize("name", adapters(LASTING))
def test_marks_and_fingerprints_outlast_a_reopening(name: str, tmp_path: Path) -> None:
    with ADAPTERS[name](tmp_path) as index:
        index.ensure(GENERATION, DIMENSION, "made by this")
        index.upsert_points(GENERATION, [point(1)])
        index.write_epoch(GENERATION, "docs", "m1")
    with ADAPTERS[name](tmp_path) as index:
        assert index.epochs(GENERATION, "docs") == ("m1", "m1")
        assert index.built_under(GENERATION) == "made by this"
        assert index.dimension(GENERATION) == DIMENSION
        assert index.count_points(GENERATION) == 1


@pytest.mark.services
@pytest.mark.parametrize("rolled_back", [0, 1])
def test_a_collection_put_back_from_a_backup_has_the_mark_of_its_time(
    tmp_path: Path, rolled_back: int
) -> None:
    """The one of the points, or the one of the sections."""
    index = QdrantEdgeIndex(tmp_path / "index")
    index.ensure(GENERATION, DIMENSION)
    index.write_epoch(GENERATION, "docs", "old")
    names = (Layout("tidemark").points(GENERATION), Layout("tidemark").sections(GENERATION))
    for name in names:
        shutil.copytree(tmp_path / "index" / name, tmp_path / "backup" / name)
    index.write_epoch(GENERATION, "docs", "new")
    index.upsert_points(GENERATION, [point(1)])
    name = names[rolled_back]
    shutil.rmtree(tmp_path / "index" / name)
    shutil.copytree(tmp_path / "backup" / name, tmp_path / "index" / name)
    index.ensure(GENERATION, DIMENSION)
    assert index.epochs(GENERATION, "docs") == [("old", "new"), ("new", "old")][rolled_back]
    assert index.count_points(GENERATION) == rolled_back


@pytest.mark.services
def test_a_collection_that_is_lost_has_no_mark_and_is_made_anew(tmp_path: Path) -> None:
    index = QdrantEdgeIndex(tmp_path)
    index.ensure(GENERATION, DIMENSION)
    index.write_epoch(GENERATION, "docs", "m")
    shutil.rmtree(tmp_path / Layout("tidemark").sections(GENERATION))
    for _ in range(2):
        assert index.epochs(GENERATION, "docs") == ("m", "")
        index.ensure(GENERATION, DIMENSION)


# Damage

GARBAGE: dict[int, PointWrite] = {
    1: PointWrite(identity(1), {}),
    2: replace(point(2), payload={}),
    3: PointWrite(identity(3), {"document_id": 5, "source": ["a", {"b": None}], "text": None}),
    4: replace(point(4), payload={"document_id": {"not": "an id"}, "source": "a"}, lexical=None),
    5: point(5, 30, source="a", document_id="d"),
}


def test_damaged_points_are_given_as_they_are(index: VectorIndex) -> None:
    index.upsert_points(GENERATION, list(GARBAGE.values()))
    index.upsert_sections(GENERATION, list(GARBAGE.values()))
    expected = {point.point_id: point.payload for point in GARBAGE.values()}
    for found in (
        index.scan_points(GENERATION),
        index.scan_points(GENERATION, vectors=True),
        index.scan_sections(GENERATION),
        index.get_points(GENERATION, list(expected)),
        index.get_sections(GENERATION, list(expected)),
    ):
        assert {one.point_id: one.payload for one in found} == expected
    assert index.count_points(GENERATION) == len(expected)
    assert {p.point_id for p in index.scan_points(GENERATION, {"source": "a"})} == {
        identity(n) for n in (3, 4, 5)
    }


def test_a_point_without_a_dense_vector_has_none_and_fails_no_page(index: VectorIndex) -> None:
    index.upsert_points(GENERATION, list(GARBAGE.values()))
    ids = [identity(n) for n in GARBAGE]
    assert index.get_vectors(GENERATION, ids).keys() == {identity(n) for n in (2, 4, 5)}
    found = {p.point_id: p.dense for p in index.scan_points(GENERATION, vectors=True)}
    assert {i for i, dense in found.items() if dense is None} == {identity(1), identity(3)}
    assert found[identity(5)] == pytest.approx(direction(30), abs=1e-6)
    hits = index.search(GENERATION, 9, dense=direction(30))
    assert {hit.point_id for hit in hits} == {identity(n) for n in (2, 4, 5)}


def test_damaged_points_can_be_written_anew_and_removed(index: VectorIndex) -> None:
    index.upsert_points(GENERATION, list(GARBAGE.values()))
    index.set_payloads(GENERATION, [point(3, source="a")])
    index.upsert_points(GENERATION, [point(1, 60)])
    index.delete_points(GENERATION, [identity(2), identity(4)])
    assert numbers(index.scan_points(GENERATION)) == [1, 3, 5]
    assert index.get_vectors(GENERATION, [identity(1)]).keys() == {identity(1)}
