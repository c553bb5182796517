"""Runs beside each other, killed in turn; the unmodified command with the real model, killed as it writes."""

import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from soak_corpus import Corpus
from soak_home import Home, Run, assert_equal_to_fresh, kill, outlived
from soak_kills import DEATHS, committed_by, embedded_twice, latest_run, measure

from tidemark.stages.process.process import WINDOW_DOCUMENTS

pytestmark = pytest.mark.soak

DOCUMENTS = 100
PAIRS = 8
MODEL_ROUNDS = 4
MODEL_DOCUMENTS = 70

Figures = Callable[..., None]


def test_two_sources_at_once_killed_in_turn_each_end_right(
    home: Callable[..., Home], own_folder: Path, seed: int, figures: Figures
) -> None:
    began = time.monotonic()
    random = Random(seed)
    tide = home("left", "right")
    corpora = {name: Corpus(folder, random) for name, folder in tide.sources.items()}
    for corpus in corpora.values():
        corpus.grow(DOCUMENTS, largest=4)
    tide.index("left")
    usual = measure(tide, "right")
    killed = ended = 0
    committed: dict[str, set[str]] = {}
    for _ in range(PAIRS):
        for corpus in corpora.values():
            corpus.change(share=0.2)
        before = {name: latest_run(tide, name) for name in corpora}
        runs = {name: tide.start("index", name, "--approve", "--json") for name in corpora}
        chosen = random.choice(sorted(runs))
        victim = runs[chosen]
        time.sleep(random.uniform(0.3, 1.0) * usual.whole)
        if victim.running:
            # The server too: then the other run loses it in mid-work, and may fail for it.
            death = random.choice(DEATHS)
            outlived(kill(victim, death, tide.postgres))
            killed += 1
            if death == "everything":
                # The other run waits for the server and does not start it; the next command would.
                tide.postgres.ensure_running()
        else:
            death = None
        if death is not None and (killed_run := latest_run(tide, chosen)) != before[chosen]:
            pid = str(victim.process.pid)
            committed[pid] = committed_by(tide, killed_run, corpora[chosen])
        for name, run in runs.items():
            if run is not victim:
                run.end(code=None if death == "everything" else 0)
                ended += run.process.returncode == 0
                assert "Traceback" not in run.error, f"{name}: {run.error}"
    summaries = tide.index()
    assert [summary["status"] for summary in summaries] == ["success", "success"]
    assert tide.differences() == {}
    points = assert_equal_to_fresh(tide, own_folder / "fresh")
    twice = embedded_twice(tide.texts, committed)
    figures(
        rounds=PAIRS,
        kills=killed,
        runs_beside_them_that_ended_well=ended,
        points=points,
        embedded_again_after_a_kill_at_most=f"{twice.most} documents (bound {WINDOW_DOCUMENTS})",
        seconds=time.monotonic() - began,
    )
    assert twice.most <= WINDOW_DOCUMENTS


def test_a_second_run_on_the_same_source_stops_and_names_the_first(
    home: Callable[..., Home], seed: int, figures: Figures
) -> None:
    tide = home("docs")
    corpus = Corpus(tide.sources["docs"], Random(seed))
    corpus.grow(3 * DOCUMENTS, largest=4)
    first = tide.start("index", "docs", "--json")
    wait_until_it_holds_its_source(first, tide)
    second = tide.start("index", "docs", "--json")
    second.end(code=1)
    assert first.running, "the second ended while the first was at work"
    [line] = [line for line in second.error.splitlines() if line.strip()]
    assert 'source "docs"' in second.error
    assert str(first.process.pid) in second.error
    first.end()
    assert tide.differences() == {}
    figures(message=line, seconds_until_it_stopped=second.seconds)


def wait_until_it_holds_its_source(run: Run, tide: Home) -> None:
    """The lock is taken before the crawl, whose listing is the first thing seen of it."""
    while run.running and not (tide.home / "artifacts").exists():
        time.sleep(0.01)
    assert run.running


def test_the_real_model_and_the_unmodified_command_end_right_too(
    home: Callable[..., Home], own_folder: Path, seed: int, figures: Figures
) -> None:
    began = time.monotonic()
    random = Random(seed)
    tide = home("docs", quick=False)
    corpus = Corpus(tide.sources["docs"], random)
    corpus.grow(MODEL_DOCUMENTS)
    tide.index()
    phases: list[str] = []
    for _ in range(MODEL_ROUNDS):
        corpus.change(share=0.8)
        run = tide.start("index", "docs", "--approve", "--json")
        with tide.ledger() as ledger:
            while run.running and not ledger.writes.pending("docs"):
                time.sleep(0.01)
            time.sleep(random.uniform(0.0, 0.6))
            assert run.running, "it ended before it could be killed"
            kill(run, random.choice(("process", "family")), tide.postgres)
            phases.append(f"{len(ledger.writes.pending('docs'))} documents in flight")
            done = {d.uri: d.indexed_at for d in ledger.documents.stream("docs")}
            left = set(ledger.writes.pending("docs").values())
        [summary] = tide.index()
        assert summary["status"] == "success"
        with tide.ledger() as ledger:
            again = {
                d.uri for d in ledger.documents.stream("docs") if done.get(d.uri) != d.indexed_at
            }
        assert left <= again | (done.keys() - {d.path.as_uri() for d in corpus.documents})
        assert tide.differences() == {}
    figures(kills=MODEL_ROUNDS, at=phases, seconds=time.monotonic() - began)
