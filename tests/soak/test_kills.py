"""The real process, SIGKILLed at random moments: the next run makes the index right again.

All is real but the model, which a hash embedder stands in for, so that fifty rounds take minutes.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from soak_corpus import Corpus
from soak_home import Home, assert_equal_to_fresh
from soak_kills import Killer, embedded_twice, measure

from tidemark.stages.process.process import WINDOW_DOCUMENTS

pytestmark = pytest.mark.soak

ROUNDS = int(os.environ.get("SOAK_ROUNDS") or 50)
DOCUMENTS = 300
CLEAN_EVERY = 10

Figures = Callable[..., None]


def test_fifty_kills_at_random_moments_lose_nothing_and_redo_no_more_than_a_window(
    home: Callable[..., Home], own_folder: Path, seed: int, figures: Figures
) -> None:
    began = time.monotonic()
    random = Random(seed)
    tide = home("docs")
    corpus = Corpus(tide.sources["docs"], random)
    corpus.grow(DOCUMENTS, largest=4)
    tide.index()
    corpus.change(share=0.15)
    killer = Killer(tide, random, measure(tide, "docs"))
    points = compared = 0
    while sum(killer.kills.values()) < ROUNDS:
        corpus.change(share=0.15)
        killed = killer.strike("docs", corpus) != "ended"
        if killed and sum(killer.kills.values()) % CLEAN_EVERY == 0:
            [summary] = tide.index()
            assert summary["status"] == "success"
            killer.settled()
            assert tide.differences() == {}
            compared += 1
            points = assert_equal_to_fresh(tide, own_folder / f"fresh-{compared}")
        assert killer.late < ROUNDS, "most runs ended before they could be killed"
    twice = embedded_twice(tide.texts, killer.committed)
    figures(
        kills=sum(killer.kills.values()),
        by_phase=dict(killer.kills),
        by_death=dict(killer.deaths),
        ended_before_the_kill=killer.late,
        usual_run_seconds=killer.usual.whole,
        of_it_writing_seconds=killer.usual.writing,
        compared_with_a_fresh_home=f"{compared} times, {points} points the last time",
        in_flight_in_a_killed_run_at_most=f"{max(killer.begun, default=0)} documents",
        embedded_again_after_a_kill_at_most=f"{twice.most} documents (bound {WINDOW_DOCUMENTS})",
        texts_embedded_again=f"{twice.texts} of {twice.all_texts}",
        seconds=time.monotonic() - began,
    )
    assert killer.orphans == [], "the parser's processes end with their parent"
    assert max(killer.begun, default=0) <= WINDOW_DOCUMENTS
    assert twice.most <= WINDOW_DOCUMENTS
    [nothing_to_do] = tide.index()
    assert set(nothing_to_do["documents"]) == {"keep"}
