"""A new generation that cannot go live yet says what it waits for, and what to do about it."""

import io
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console
from worlds import SOURCE, World, page

from fakes.embedder import HashEmbedder
from fakes.source import MemorySource
from tidemark.adapters.sources.files.options import FilesOptions
from tidemark.cli.status import read_status, render_status
from tidemark.config.sources_file import Declarations
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.records import RunSummary
from tidemark.pipeline import run_source
from tidemark.stages.generations import PendingGeneration, pending_generation
from tidemark.stages.job import embed_fingerprint
from tidemark.wiring import Container, Emptied

OLD, WIKI, IDLE = "old", "wiki", "idle"
DECLARED = (SOURCE, WIKI)


class Changing(World):
    """Several sources, and a model that has just been changed."""

    def __init__(self) -> None:
        super().__init__()
        self.documents["https://example.org/docs"] = page("Docs", "The tide rises.")
        for name in (SOURCE, WIKI, OLD, IDLE):
            self.index_source(name)
        self.embedder.inner = HashEmbedder(24)

    def index_source(self, name: str, **changes: object) -> RunSummary:
        """A run of a source with a document of its own."""
        source = MemorySource(media_type="text/markdown", clock=lambda: self.now)
        source.documents[f"https://example.org/{name}"] = page(name, f"It is of {name}.")
        return self.run_over(name, self.source if name == SOURCE else source, **changes)

    def forget(self, name: str) -> RunSummary:
        """As ``tidemark forget`` does (``cli.forgetting``)."""
        return self.run_over(name, Emptied(), approved=True, judge=False)

    def run_over(self, name: str, source: Any, **changes: object) -> RunSummary:
        job = self.job(source=name, declared=DECLARED, disabled=(IDLE,), **changes)
        return run_source(job, replace(self.deps(), source=source), "test")

    def pending_generation(self) -> PendingGeneration | None:
        embed = embed_fingerprint(self.embedder, self.lexical)
        return pending_generation(self.ledger, self.index, "tidemark", embed, DECLARED, (IDLE,))


@pytest.fixture
def world() -> Changing:
    return Changing()


def test_each_run_names_the_sources_that_are_waited_for_and_the_cures(world: Changing) -> None:
    told = world.index_source(SOURCE).sentence()
    assert "Generation 2 is being built and goes live once these are indexed" in told
    assert "idle (disabled), old (not declared), wiki." in told
    for hint in ("`tidemark index SOURCE`", "`tidemark forget SOURCE`"):
        assert hint in told
    told = world.index_source(WIKI).sentence()
    assert "wiki" not in told.partition("Generation 2")[2]
    assert world.index.live() == 1


def test_forgetting_the_last_that_is_waited_for_lets_the_new_generation_go_live(
    world: Changing,
) -> None:
    for name in (SOURCE, WIKI, IDLE):
        world.index_source(name)
    found = world.pending_generation()
    assert found is not None
    assert [(s.source, s.documents, s.standing) for s in found.sources] == [(OLD, 1, "undeclared")]
    summary = world.forget(OLD)
    assert (summary.status, summary.documents, summary.waiting) == ("success", {"remove": 1}, "")
    assert world.index.generations() == [world.index.live()] == [2]
    assert "It is of old." not in world.texts()
    assert world.audit().clean


def test_what_is_forgotten_before_the_others_goes_from_the_live_generation_at_once(
    world: Changing,
) -> None:
    world.index_source(SOURCE)
    world.forget(OLD)
    assert world.index.live() == 1
    assert "It is of old." not in {p.payload["text"] for p in world.index.scan_points(1)}
    for name in (IDLE, WIKI):
        world.index_source(name)
    assert world.index.generations() == [2]


def test_a_disabled_source_is_carried_over_by_one_run_of_it(world: Changing) -> None:
    for name in (SOURCE, WIKI):
        world.index_source(name)
    world.forget(OLD)
    found = world.pending_generation()
    assert found is not None
    assert "idle (disabled). Index each: `tidemark index SOURCE`" in found.sentence()
    assert "not declared" not in found.sentence()
    assert world.index_source(IDLE).waiting == ""
    assert world.index.generations() == [2]


def test_a_disabled_source_without_documents_is_not_waited_for() -> None:
    world = World()
    world.documents["https://example.org/a"] = page("A", "The tide rises.")
    world.run()
    world.embedder.inner = HashEmbedder(24)
    assert world.run(declared=(SOURCE,), disabled=("never",)).waiting == ""
    assert world.index.generations() == [2]


def test_a_model_set_back_names_the_sources_that_still_have_documents_in_the_other(
    world: Changing,
) -> None:
    world.index_source(OLD)
    world.embedder.inner = HashEmbedder()
    told = world.index_source(SOURCE).waiting
    assert "The model was set back; generation 2 is dropped once these are indexed: old" in told
    assert world.forget(OLD).waiting == ""
    assert world.index.generations() == [1]


def test_a_document_that_no_run_can_bring_along_is_named_with_its_cure(world: Changing) -> None:
    uri = "https://example.org/docs"
    world.embedder.inner = HashEmbedder()
    world.documents[uri] = b"\xff broken"
    world.index_source(SOURCE)
    for key in list(world.artifacts.keys("")):
        world.artifacts.delete(key)
    world.embedder.inner = HashEmbedder(24)
    world.index_source(SOURCE)
    found = world.pending_generation()
    assert found is not None
    assert SOURCE not in {awaited.source for awaited in found.sources}
    assert [stuck.uri for stuck in found.stuck] == [uri]
    sentence = found.sentence()
    assert f"It waits also for a document in quarantine that no run can bring along. {uri}:" in (
        sentence
    )
    assert "its snapshot is lost" in sentence
    assert "`tidemark takedown`" in sentence


def test_nothing_is_said_when_nothing_is_waited_for(world: Changing) -> None:
    world.embedder.inner = HashEmbedder()
    assert world.index_source(SOURCE).waiting == ""
    assert world.pending_generation() is None


class _FakeContainer:
    """The part of a container that the status asks for."""

    settings = SimpleNamespace(index_name="tidemark")

    def __init__(self, world: Changing) -> None:
        declared = FilesOptions(name=SOURCE, kind="files", path="/srv/docs")
        wrong = ConfigurationError("It has no path.")
        self.declarations = Declarations({SOURCE: declared}, broken={IDLE: wrong})
        self.ledger, self.index, self.pending_generation = (
            world.ledger,
            world.index,
            world.pending_generation,
        )


def shown(renderable: object) -> str:
    console = Console(file=io.StringIO(), width=100, force_terminal=False)
    console.print(renderable)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_the_status_names_them_too(world: Changing) -> None:
    world.index_source(SOURCE)
    found = read_status(cast(Container, _FakeContainer(world)), None)
    assert found["index"]["waiting_for"] == [IDLE, OLD, WIKI]
    assert found["index"]["waiting"]["generations"] == [2]
    text = " ".join(shown(render_status(found)).split())
    assert "idle (disabled), old (not declared), wiki." in text
    for name in (WIKI, IDLE):
        world.index_source(name)
    world.forget(OLD)
    found = read_status(cast(Container, _FakeContainer(world)), None)
    assert (found["index"]["waiting_for"], found["index"]["waiting"]) == ([], None)
    assert "goes live" not in shown(render_status(found))
