"""Search hands a reader different sections, not one section over and over."""

from dataclasses import replace

import pytest
from worlds import World

from tidemark.domain.records import GenerationStatus
from tidemark.stages.search import Searcher, search

LONG = "\n\n".join(
    f"The harbour crane number {n} lifts boats of up to {n} tons over the quay wall. " * 2
    for n in range(1, 9)
)


@pytest.fixture
def searcher() -> Searcher:
    world = World()
    for name in ("one", "two", "three"):
        world.documents[f"https://example.org/{name}"] = f"# Cranes of quay {name}\n\n{LONG}"
    world.run()
    job = world.job()
    return Searcher(world.ledger, world.index, job.index_name, world.embedder, world.lexical)


@pytest.mark.parametrize("mode", ["dense", "lexical", "hybrid"])
def test_each_result_brings_another_section(searcher: Searcher, mode: str) -> None:
    found = search(searcher, "harbour crane lifts boats", k=3, mode=mode)
    sections = [str(result.chunk.payload["section_id"]) for result in found]
    assert len(found) == 3
    assert len(set(sections)) == 3
    scores = [result.chunk.score for result in found]
    assert scores == sorted(scores, reverse=True)


def test_what_every_client_finds_is_found_whatever_else_is_being_built(searcher: Searcher) -> None:
    [live, *_] = searcher.ledger.generations.all("tidemark")
    searcher.index.ensure(2, live.dimension, live.embed_fingerprint)
    searcher.ledger.generations.save(replace(live, number=2, status=GenerationStatus.BUILDING))
    searcher.ledger.generations.save(replace(live, status=GenerationStatus.RETIRED))
    assert len(search(searcher, "harbour crane lifts boats", k=3)) == 3


def test_a_result_s_chunk_stands_in_its_section_where_it_says(searcher: Searcher) -> None:
    for result in search(searcher, "harbour crane lifts boats", k=3):
        assert result.section is not None
        payload, read = result.chunk.payload, str(result.section.payload["text"])
        assert read[payload["start"] : payload["end"]] == payload["text"]  # type: ignore[misc]


def test_without_sections_the_nearest_chunks_come_as_they_are(searcher: Searcher) -> None:
    found = search(searcher, "harbour crane lifts boats", k=5, expand="none")
    assert len(found) == 5
    assert all(result.section is None for result in found)


def test_more_results_than_there_are_sections_are_those_that_there_are(searcher: Searcher) -> None:
    every = len(
        {r.chunk.payload["section_id"] for r in search(searcher, "crane", 999, "dense", "none")}
    )
    assert len(search(searcher, "crane", k=500)) == every
