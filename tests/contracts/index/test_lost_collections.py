"""A generation of which one collection is not there: lost, restored without it, or a drop that was killed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from store_losses import What, lose, move_sections_alias
from vector_index_cases import (
    ADAPTERS,
    DIMENSION,
    GENERATION,
    adapters,
    direction,
    identity,
    point,
    section,
    words,
)

from tidemark.adapters.index.qdrant_edge import QdrantEdgeIndex
from tidemark.domain.chunks import PointWrite, SparseVector
from tidemark.domain.errors import PermanentError
from tidemark.domain.hashing import lexical_hash
from tidemark.ports.index import VectorIndex


@pytest.fixture(params=adapters())
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VectorIndex]:
    with ADAPTERS[request.param](tmp_path) as opened:
        opened.ensure(GENERATION, DIMENSION, "model")
        opened.upsert_points(GENERATION, [point(1, source="a")])
        opened.upsert_sections(GENERATION, [section(2, source="a")])
        opened.write_epoch(GENERATION, "docs", "m")
        yield opened


def test_a_generation_is_there_as_long_as_either_collection_is(index: VectorIndex) -> None:
    assert index.incomplete() == {}
    index.ensure(2, DIMENSION)
    lose(index, GENERATION, "points")
    lose(index, 2, "sections")
    assert index.generations() == [GENERATION, 2]
    assert index.incomplete() == {GENERATION: "points", 2: "sections"}
    assert index.built_under(GENERATION) == ""
    assert index.dimension(2) == DIMENSION
    with pytest.raises(PermanentError, match="lost its collection of points"):
        index.dimension(GENERATION)


def test_a_drop_that_was_killed_halfway_is_seen_and_can_be_repeated(index: VectorIndex) -> None:
    index.ensure(2, DIMENSION)
    index.switch(2)
    lose(index, GENERATION, "points")
    assert index.generations() == [GENERATION, 2]
    assert index.count_sections(GENERATION) == 1
    index.drop(GENERATION)
    assert index.generations() == [2]
    assert index.incomplete() == {}


@pytest.mark.parametrize("lost", ["points", "sections"])
def test_what_is_lost_holds_nothing_and_the_rest_is_used_as_ever(
    index: VectorIndex, lost: What
) -> None:
    lose(index, GENERATION, lost)
    where = {"source": "a"}
    points, sections = int(lost != "points"), int(lost != "sections")
    assert index.count_points(GENERATION) == index.count_points(GENERATION, where) == points
    assert index.count_sections(GENERATION) == index.count_sections(GENERATION, where) == sections
    assert len(index.get_points(GENERATION, [identity(1)])) == points
    assert len(index.get_vectors(GENERATION, [identity(1)])) == points
    assert len(index.get_sections(GENERATION, [identity(2)])) == sections
    for vectors in (False, True):
        assert len(list(index.scan_points(GENERATION, vectors=vectors))) == points
    assert len(list(index.scan_sections(GENERATION))) == sections
    assert index.epochs(GENERATION, "docs") == ("m" * points, "m" * sections)
    index.write_epoch(GENERATION, "docs", "n")
    assert index.epochs(GENERATION, "docs") == ("n" * points, "n" * sections)
    index.delete_points(GENERATION, [identity(1)])
    index.delete_sections(GENERATION, [identity(2)])
    assert index.count_points(GENERATION) == index.count_sections(GENERATION) == 0
    assert index.incomplete() == {GENERATION: lost}


def test_searching_and_writing_what_is_lost_names_the_cure(index: VectorIndex) -> None:
    index.ensure(2, DIMENSION)
    lose(index, GENERATION, "points")
    lose(index, 2, "sections")
    for use in (
        lambda: index.search(GENERATION, 3, dense=direction(0)),
        lambda: index.search(GENERATION, 3, lexical=words(1)),
        lambda: index.search(GENERATION, 3, dense=direction(0), lexical=words(1)),
        lambda: index.upsert_points(GENERATION, [point(1)]),
        lambda: index.set_payloads(GENERATION, [point(1)]),
        lambda: index.switch(GENERATION),
        lambda: index.upsert_sections(2, [section(1)]),
    ):
        with pytest.raises(PermanentError, match=r"has lost its collection of .*audit --repair"):
            use()
    index.switch(2)
    assert index.live() == 2


@pytest.mark.parametrize("lost", ["points", "sections"])
def test_what_is_lost_is_made_again_beside_what_is_there(index: VectorIndex, lost: What) -> None:
    index.switch(GENERATION)
    lose(index, GENERATION, lost)
    index.ensure(GENERATION, DIMENSION, "model")
    index.switch(GENERATION)
    assert index.incomplete() == {}
    assert (index.live(), index.live_sections()) == (GENERATION, GENERATION)
    assert index.built_under(GENERATION) == "model"
    kept = (index.count_points(GENERATION), index.count_sections(GENERATION))
    assert kept == ((0, 1) if lost == "points" else (1, 0))
    index.upsert_points(GENERATION, [point(1)])
    index.upsert_sections(GENERATION, [section(2)])
    assert len(index.search(GENERATION, 3, dense=direction(0), lexical=words(1))) == 1


@pytest.mark.services
def test_deleting_removes_what_a_killed_drop_had_begun_to_remove(tmp_path: Path) -> None:
    index = QdrantEdgeIndex(tmp_path, "tidemark", 10.0)
    for generation in (1, 2):
        index.ensure(generation, DIMENSION)
    index.switch(2)
    left = index.folder / ".tidemark__g1.0123"
    (index.folder / "tidemark__g1").rename(left)
    index.delete_points(2, [])
    assert not left.exists()


@pytest.mark.parametrize("name", ["memory", pytest.param("server", marks=pytest.mark.services)])
def test_a_name_of_the_sections_that_went_astray_is_told_and_put_back(
    name: str, tmp_path: Path
) -> None:
    with ADAPTERS[name](tmp_path) as index:
        index.ensure(1, DIMENSION)
        index.ensure(2, DIMENSION)
        index.switch(2)
        for over in (None, 1):
            move_sections_alias(index, over)
            assert (index.live(), index.live_sections()) == (2, over)
            index.switch(2)
            assert (index.live(), index.live_sections()) == (2, 2)


def test_a_lexical_vector_has_the_same_hash_before_and_after_it_is_stored(
    index: VectorIndex,
) -> None:
    hashes = set()
    for vector in (
        words(1),
        words(2),
        SparseVector((7, 3, 4_000_000_000), (0.1, 1 / 3, 1e-9)),
        SparseVector((3, 7, 4_000_000_000), (0.1, 1 / 3, 1e-9)),
        SparseVector((), ()),
    ):
        write = PointWrite(identity(1), {"source": "a"}, direction(0), vector)
        index.upsert_points(GENERATION, [write])
        [stored] = index.scan_points(GENERATION, {"source": "a"}, vectors=True)
        assert lexical_hash(stored.lexical) == lexical_hash(vector)
        assert stored.dense is not None
        hashes.add(lexical_hash(vector))
    assert len(hashes) == 5
    [unasked] = index.scan_points(GENERATION)
    assert unasked.lexical is None
