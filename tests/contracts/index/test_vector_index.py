"""What every VectorIndex must do. The in-memory one passes it too, so that other tests may trust it."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
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

from tidemark.domain.chunks import SparseVector, StoredPoint
from tidemark.domain.errors import PermanentError
from tidemark.domain.hashing import vector_hash
from tidemark.ports.index import VectorIndex

UNICODE = {
    "text": 'naïve Übung — 東京 👩‍🔬 \u202eRTL\u202c\n\ttab "quoted" back\\slash',
    "heading_path": ["Ä", "β", ""],
    "nothing": None,
    "count": 9_007_199_254_740_993,
    "share": 0.25,
    "flag": True,
    "empty": [],
    "nested": {"a": [1, {"b": "c"}]},
}


@pytest.fixture(params=adapters())
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VectorIndex]:
    with ADAPTERS[request.param](tmp_path) as index:
        yield index


@pytest.fixture
def index(empty: VectorIndex) -> VectorIndex:
    empty.ensure(GENERATION, DIMENSION)
    return empty


def numbers(points: Iterable[StoredPoint]) -> list[object]:
    return [found.payload["number"] for found in points]


def everything(index: VectorIndex) -> dict[object, dict[str, object]]:
    return {p.payload["number"]: p.payload for p in index.scan_points(GENERATION)}


# Generations


def test_an_empty_index_has_no_generation_and_nothing_live(empty: VectorIndex) -> None:
    assert empty.generations() == []
    assert empty.live() is None


def test_ensuring_twice_keeps_what_is_there(index: VectorIndex) -> None:
    index.upsert_points(GENERATION, [point(1)])
    index.upsert_sections(GENERATION, [section(2)])
    index.ensure(GENERATION, DIMENSION)
    assert index.count_points(GENERATION) == index.count_sections(GENERATION) == 1


def test_another_dimension_is_refused_and_nothing_is_lost(index: VectorIndex) -> None:
    index.upsert_points(GENERATION, [point(1)])
    with pytest.raises(PermanentError, match=r"holds vectors of 4 numbers.*makes 5"):
        index.ensure(GENERATION, DIMENSION + 1)
    assert index.count_points(GENERATION) == 1


def test_generations_are_listed_by_number_and_do_not_mix(index: VectorIndex) -> None:
    index.ensure(10, DIMENSION)
    index.ensure(2, DIMENSION + 1)
    index.upsert_points(10, [point(1)])
    assert index.generations() == [1, 2, 10]
    assert [index.count_points(g) for g in (1, 2, 10)] == [0, 0, 1]


def test_switching_moves_the_live_name_and_can_go_back(index: VectorIndex) -> None:
    index.ensure(2, DIMENSION)
    assert index.live() is None
    for generation in (1, 2, 2, 1):
        index.switch(generation)
        assert index.live() == generation


def test_a_generation_that_does_not_exist_cannot_be_live(index: VectorIndex) -> None:
    index.switch(GENERATION)
    with pytest.raises(PermanentError, match="no generation 7"):
        index.switch(7)
    assert index.live() == GENERATION


def test_the_live_generation_is_not_dropped(index: VectorIndex) -> None:
    index.upsert_points(GENERATION, [point(1)])
    index.switch(GENERATION)
    with pytest.raises(PermanentError, match="live"):
        index.drop(GENERATION)
    assert index.count_points(GENERATION) == 1


def test_dropping_removes_a_generation_and_may_be_repeated(index: VectorIndex) -> None:
    index.ensure(2, DIMENSION)
    index.upsert_points(GENERATION, [point(1)])
    index.upsert_sections(GENERATION, [section(1)])
    index.switch(2)
    index.drop(GENERATION)
    index.drop(GENERATION)
    assert index.generations() == [2]
    index.ensure(GENERATION, DIMENSION + 1)
    assert index.count_points(GENERATION) == index.count_sections(GENERATION) == 0


def test_using_a_generation_that_does_not_exist_is_a_permanent_error(index: VectorIndex) -> None:
    for use in (
        lambda: index.upsert_points(5, [point(1)]),
        lambda: index.upsert_sections(5, [section(1)]),
        lambda: index.set_payloads(5, [point(1)]),
        lambda: index.delete_points(5, [identity(1)]),
        lambda: index.delete_sections(5, [identity(1)]),
        lambda: index.get_points(5, [identity(1)]),
        lambda: index.get_sections(5, [identity(1)]),
        lambda: list(index.scan_points(5)),
        lambda: list(index.scan_sections(5)),
        lambda: index.count_points(5),
        lambda: index.count_sections(5),
        lambda: index.get_vectors(5, [identity(1)]),
        lambda: list(index.scan_points(5, vectors=True)),
        lambda: index.dimension(5),
        lambda: index.write_epoch(5, "docs", "m1"),
        lambda: index.search(5, 3, dense=direction(0)),
        lambda: index.search(5, 3, lexical=words(1)),
        lambda: index.search(5, 3, dense=direction(0), lexical=words(1)),
    ):
        with pytest.raises(PermanentError):
            use()


# Writing


def test_a_payload_comes_back_as_it_was_written(index: VectorIndex) -> None:
    index.upsert_points(GENERATION, [point(1, **UNICODE)])
    index.upsert_sections(GENERATION, [section(2, **UNICODE)])
    assert index.get_points(GENERATION, [identity(1)]) == [
        StoredPoint(identity(1), {"number": 1, **UNICODE})
    ]
    assert index.get_sections(GENERATION, [identity(2)]) == [
        StoredPoint(identity(2), {"number": 2, **UNICODE})
    ]


def test_upserting_again_replaces_payload_and_vectors(index: VectorIndex) -> None:
    index.upsert_points(GENERATION, [point(1, 0, tokens=(1,), old="yes"), point(2, 40)])
    again = [point(1, 90, tokens=(2,), new="yes")]
    for _ in range(2):
        index.upsert_points(GENERATION, again)
        assert everything(index) == {1: {"number": 1, "new": "yes"}, 2: {"number": 2}}
        assert numbers(index.search(GENERATION, 2, dense=direction(90))) == [1, 2]
        assert numbers(index.search(GENERATION, 2, lexical=words(2))) == [1]
        assert numbers(index.search(GENERATION, 2, lexical=words(1))) == [2]


def test_upserting_without_words_forgets_the_words_it_had(index: VectorIndex) -> None:
    index.upsert_points(GENERATION, [point(1), point(2)])
    index.upsert_points(
        GENERATION,
        [replace(point(1), lexical=None), replace(point(2), lexical=SparseVector((), ()))],
    )
    assert index.search(GENERATION, 2, lexical=words(1)) == []
    assert len(index.search(GENERATION, 5, dense=direction(0))) == 2


def test_the_last_of_two_writes_of_one_id_in_a_call_wins(index: VectorIndex) -> None:
    index.upsert_points(GENERATION, [point(1, take="first"), point(1, take="second")])
    index.upsert_sections(GENERATION, [section(1, take="first"), section(1, take="second")])
    assert [p.payload["take"] for p in index.scan_points(GENERATION)] == ["second"]
    assert [p.payload["take"] for p in index.scan_sections(GENERATION)] == ["second"]


def test_a_vector_of_another_size_is_refused(index: VectorIndex) -> None:
    with pytest.raises(PermanentError):
        index.upsert_points(GENERATION, [replace(point(1), dense=(1.0, 0.0))])
    assert index.count_points(GENERATION) == 0
    with pytest.raises(PermanentError):
        index.search(GENERATION, 3, dense=(1.0, 0.0))


def test_sections_and_points_of_one_id_are_two_things(index: VectorIndex) -> None:
    index.upsert_points(GENERATION, [point(1, what="point")])
    index.upsert_sections(GENERATION, [section(1, what="section")])
    index.delete_points(GENERATION, [identity(1)])
    assert index.get_points(GENERATION, [identity(1)]) == []
    assert [s.payload["what"] for s in index.get_sections(GENERATION, [identity(1)])] == ["section"]
    index.delete_sections(GENERATION, [identity(1)])
    assert index.count_sections(GENERATION) == 0


def test_setting_a_payload_replaces_it_and_keeps_the_vectors(index: VectorIndex) -> None:
    index.upsert_points(
        GENERATION, [point(1, 10, tokens=(5,), kept="no"), point(2, 80, kept="yes")]
    )
    for _ in range(2):
        index.set_payloads(GENERATION, [point(1, 80, tokens=(9,), section_id="s2")])
        assert everything(index) == {
            1: {"number": 1, "section_id": "s2"},
            2: {"number": 2, "kept": "yes"},
        }
        assert numbers(index.search(GENERATION, 1, dense=direction(10))) == [1]
        assert numbers(index.search(GENERATION, 1, lexical=words(5))) == [1]
    assert index.count_points(GENERATION, {"section_id": "s2"}) == 1
    assert index.count_points(GENERATION, {"kept": "no"}) == 0


def test_setting_payloads_ignores_ids_that_do_not_exist(index: VectorIndex) -> None:
    index.upsert_points(GENERATION, [point(2), point(4)])
    index.set_payloads(GENERATION, [point(n, seen="yes") for n in (1, 2, 3, 4, 5)])
    assert everything(index) == {n: {"number": n, "seen": "yes"} for n in (2, 4)}


def test_deleting_takes_exactly_the_ids_given_and_may_be_repeated(index: VectorIndex) -> None:
    index.upsert_points(GENERATION, [point(n) for n in range(4)])
    index.upsert_sections(GENERATION, [section(n) for n in range(4)])
    for _ in range(2):
        index.delete_points(GENERATION, [identity(1), identity(3), identity(99)])
        index.delete_sections(GENERATION, [identity(0), identity(99)])
        assert sorted(everything(index)) == [0, 2]
        assert index.count_sections(GENERATION) == 3


def test_nothing_to_do_does_nothing(index: VectorIndex) -> None:
    index.upsert_points(GENERATION, [])
    index.upsert_sections(GENERATION, [])
    index.set_payloads(GENERATION, [])
    index.delete_points(GENERATION, [])
    index.delete_sections(GENERATION, [])
    assert index.get_points(GENERATION, []) == index.get_sections(GENERATION, []) == []
    assert list(index.scan_points(GENERATION)) == list(index.scan_sections(GENERATION)) == []
    assert index.count_points(GENERATION) == index.count_sections(GENERATION) == 0
    assert index.search(GENERATION, 3, dense=direction(0)) == []
    assert index.search(GENERATION, 3, lexical=words(1)) == []
    assert index.search(GENERATION, 3, dense=direction(0), lexical=words(1)) == []


# Reading


def test_vectors_come_back_for_the_points_that_exist(index: VectorIndex) -> None:
    index.upsert_points(GENERATION, [point(1, 30), point(2, 60)])
    found = index.get_vectors(GENERATION, [identity(1), identity(2), identity(3), identity(1)])
    assert found.keys() == {identity(1), identity(2)}
    assert found[identity(1)] == pytest.approx(direction(30), abs=1e-6)
    assert found[identity(2)] == pytest.approx(direction(60), abs=1e-6)
    assert index.get_vectors(GENERATION, []) == {}


def test_getting_returns_each_that_exists_once(index: VectorIndex) -> None:
    index.upsert_points(GENERATION, [point(1), point(2)])
    ids = [identity(2), identity(99), identity(1), identity(2)]
    assert sorted(p.payload["number"] for p in index.get_points(GENERATION, ids)) == [1, 2]


def test_scanning_streams_every_point_once_over_many_pages(index: VectorIndex) -> None:
    points = [point(n, n / 4, source=f"s{n % 2}") for n in range(300)]
    index.upsert_points(GENERATION, points)
    index.upsert_sections(GENERATION, [section(n, source=f"s{n % 3}") for n in range(300)])
    assert sorted(numbers(index.scan_points(GENERATION))) == list(range(300))
    assert sorted(numbers(index.scan_sections(GENERATION))) == list(range(300))
    assert sorted(numbers(index.scan_points(GENERATION, {"source": "s1"}))) == list(
        range(1, 300, 2)
    )
    assert index.count_points(GENERATION) == 300
    assert index.count_points(GENERATION, {"source": "s0"}) == 150
    assert index.count_sections(GENERATION, {"source": "s0"}) == 100
    assert len(index.get_points(GENERATION, [p.point_id for p in points])) == 300
    index.delete_points(GENERATION, [p.point_id for p in points])
    assert index.count_points(GENERATION) == 0


def test_a_scan_gives_the_dense_vectors_when_asked(index: VectorIndex) -> None:
    index.upsert_points(GENERATION, [point(n, n / 4, source=f"s{n % 2}") for n in range(300)])
    assert {p.dense for p in index.scan_points(GENERATION)} == {None}
    for where, expected in ((None, range(300)), ({"source": "s1"}, range(1, 300, 2))):
        found = {
            p.payload["number"]: p.dense for p in index.scan_points(GENERATION, where, vectors=True)
        }
        assert sorted(found, key=str) == sorted(expected, key=str)
        for n in expected:
            assert found[n] == pytest.approx(direction(n / 4), abs=1e-6)


def test_a_vector_has_the_same_hash_before_and_after_it_is_stored(index: VectorIndex) -> None:
    vector = (0.5, -0.25, 0.0, 3.0)
    index.upsert_points(GENERATION, [replace(point(1), dense=vector)])
    (stored,) = index.scan_points(GENERATION, vectors=True)
    assert stored.dense is not None
    assert vector_hash(stored.dense) == vector_hash(vector)
    assert vector_hash(index.get_vectors(GENERATION, [identity(1)])[identity(1)]) == vector_hash(
        vector
    )


def test_a_scan_left_early_does_not_block_what_follows(index: VectorIndex) -> None:
    index.upsert_points(GENERATION, [point(n) for n in range(3)])
    scan = index.scan_points(GENERATION)
    next(scan)
    index.upsert_points(GENERATION, [point(7)])
    del scan
    assert index.count_points(GENERATION) == 4


FILTERED: list[tuple[dict[str, str | list[str]] | None, list[int]]] = [
    (None, [0, 1, 2, 3]),
    ({}, [0, 1, 2, 3]),
    ({"source": "a"}, [0, 1]),
    ({"source": ["a"]}, [0, 1]),
    ({"source": ["a", "b"]}, [0, 1, 2]),
    ({"source": []}, []),
    ({"source": "a", "document_id": "d1"}, [1]),
    ({"source": "A"}, []),
    ({"source": "nowhere"}, []),
    ({"unknown": "a"}, []),
    ({"labels": "red"}, [0, 2]),
    ({"labels": ["red", "blue"]}, [0, 1, 2]),
    ({"title": "é 東京"}, [3]),
]


def test_filters_hold_for_scans_counts_and_searches(index: VectorIndex) -> None:
    payloads = [
        {"source": "a", "document_id": "d0", "labels": ["red"]},
        {"source": "a", "document_id": "d1", "labels": ["blue", "green"]},
        {"source": "b", "document_id": "d1", "labels": ["blue", "red"]},
        {"source": "c", "document_id": "d2", "labels": [], "title": "é 東京"},
    ]
    index.upsert_points(GENERATION, [point(n, 10 * n, **p) for n, p in enumerate(payloads)])
    index.upsert_sections(GENERATION, [section(n, **p) for n, p in enumerate(payloads)])
    with index.session():
        for where, expected in FILTERED:
            found = {
                "scan": sorted(numbers(index.scan_points(GENERATION, where))),
                "sections": sorted(numbers(index.scan_sections(GENERATION, where))),
                "dense": numbers(index.search(GENERATION, 9, dense=direction(0), where=where)),
                "lexical": sorted(
                    numbers(index.search(GENERATION, 9, lexical=words(1), where=where))
                ),
                "hybrid": sorted(
                    numbers(
                        index.search(
                            GENERATION, 9, dense=direction(0), lexical=words(1), where=where
                        )
                    )
                ),
            }
            assert found == dict.fromkeys(found, expected), where
            assert index.count_points(GENERATION, where) == len(expected), where
            assert index.count_sections(GENERATION, where) == len(expected), where


# Searching


def test_dense_search_answers_nearest_first_with_the_cosine_and_the_payload(
    index: VectorIndex,
) -> None:
    index.upsert_points(GENERATION, [point(n, 10 * n, text=f"chunk {n}") for n in (6, 3, 9, 0)])
    hits = index.search(GENERATION, 3, dense=direction(30))
    assert numbers(hits) == [3, 0, 6] or numbers(hits) == [3, 6, 0]
    assert [hit.score for hit in hits] == pytest.approx([1.0, 0.8660254, 0.8660254], abs=1e-5)
    assert hits[0].payload == {"number": 3, "text": "chunk 3"}
    assert hits[0].point_id == identity(3)


def test_lexical_search_weighs_rare_words_more_and_skips_what_shares_none(
    index: VectorIndex,
) -> None:
    index.upsert_points(
        GENERATION,
        [
            point(0, tokens=(1, 2)),
            point(1, tokens=(1, 3)),
            point(2, tokens=(1, 4)),
            point(3, tokens=(1, 2, 5)),
            point(4, tokens=(6,)),
        ],
    )
    hits = index.search(GENERATION, 9, lexical=words(1, 2, 5))
    assert numbers(hits)[:2] == [3, 0]
    assert sorted(numbers(hits)) == [0, 1, 2, 3]
    # ln(1 + (N - n + 0.5) / (n + 0.5)) for the words in 4, 2 and 1 of 5 points
    assert hits[0].score == pytest.approx(0.287682 + 0.875469 + 1.386294, abs=1e-4)
    assert numbers(index.search(GENERATION, 1, lexical=words(1, 2, 5))) == [3]
    assert hits[0].payload == {"number": 3}


def test_lexical_weights_of_the_point_count(index: VectorIndex) -> None:
    for number, weight in ((0, 0.5), (1, 1.5), (2, 1.0)):
        heavy = replace(point(number), lexical=SparseVector((1,), (weight,)))
        index.upsert_points(GENERATION, [heavy])
    assert numbers(index.search(GENERATION, 9, lexical=words(1))) == [1, 2, 0]


def test_hybrid_search_fuses_both_ranks(index: VectorIndex) -> None:
    index.upsert_points(
        GENERATION,
        [
            point(0, 0, tokens=(9,), text="nearest, without the word"),
            point(1, 10, tokens=(1,), text="second nearest, with the word"),
            point(2, 20, tokens=(8,)),
            point(3, 30, tokens=(7,)),
        ],
    )
    hits = index.search(GENERATION, 3, dense=direction(0), lexical=words(1))
    assert numbers(hits) == [1, 0, 2]
    assert [hit.score for hit in hits] == pytest.approx([1 / 61 + 1 / 60, 1 / 60, 1 / 62], abs=1e-6)
    assert hits[0].payload == {"number": 1, "text": "second nearest, with the word"}


def test_a_question_without_words_falls_back_to_meaning(index: VectorIndex) -> None:
    index.upsert_points(GENERATION, [point(n, 10 * n) for n in range(3)])
    nothing = SparseVector((), ())
    assert index.search(GENERATION, 3, lexical=nothing) == []
    assert numbers(index.search(GENERATION, 2, dense=direction(0), lexical=nothing)) == [0, 1]


# Sessions


def test_a_session_may_be_entered_again_inside_itself(index: VectorIndex) -> None:
    with index.session():
        index.upsert_points(GENERATION, [point(1)])
        with index.session():
            index.upsert_points(GENERATION, [point(2)])
        index.ensure(2, DIMENSION)
        index.switch(2)
        index.drop(GENERATION)
        index.upsert_points(2, [point(3)])
    assert index.generations() == [2]
    assert numbers(index.scan_points(2)) == [3]


def test_an_error_in_a_session_passes_through_and_keeps_what_was_written(
    index: VectorIndex,
) -> None:
    def fail_after_a_write() -> None:
        with index.session():
            index.upsert_points(GENERATION, [point(1)])
            raise KeyError("the caller's own")

    with pytest.raises(KeyError):
        fail_after_a_write()
    assert index.count_points(GENERATION) == 1
