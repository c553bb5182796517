"""Forgetting a source: what nobody declares any more goes when a person says so, and only then."""

from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console
from worlds import SOURCE, World, page

from tidemark.adapters.sources.files.options import FilesOptions
from tidemark.cli.housekeeping import forget_source
from tidemark.cli.output import Bar
from tidemark.config.sources_file import Declarations
from tidemark.domain.errors import ConfigurationError, SourceBusyError
from tidemark.domain.records import DocumentCounts, RunSummary
from tidemark.wiring import Container

GUIDE, GAUGE = "https://example.org/guide", "https://example.org/gauge"


@pytest.fixture
def world() -> World:
    made = World()
    made.documents.update({GUIDE: page("Guide", "Read it."), GAUGE: page("Gauge", "It rises.")})
    made.run()
    return made


class _FakeContainer:
    """The part of a container that forgetting asks for, over a world."""

    settings = SimpleNamespace(sources_file=Path("include/sources.yaml"))

    def __init__(self, world: World, declarations: Declarations | None = None) -> None:
        self.world = world
        self.declarations = declarations or Declarations()

    def declared(self, name: str) -> Any:
        if name not in self.world.ledger.sources.names():
            raise ConfigurationError(f"No source is called {name!r}.")
        return SimpleNamespace(name=name)

    def deps(self, *_: object) -> Any:
        return self.world.deps()

    def job(self, declared: Any, run_id: str, **changes: object) -> Any:
        return self.world.job(source=declared.name, run_id=run_id, **changes)


def forget(world: World, name: str = SOURCE, *, dry_run: bool = False, **more: Any) -> RunSummary:
    container = cast(Container, _FakeContainer(world, **more))
    with Bar(Console(file=StringIO()), name, quiet=True) as bar:
        return forget_source(container, name, bar, dry_run=dry_run)


def test_everything_that_the_index_has_of_it_goes(world: World) -> None:
    summary = forget(world)
    assert (summary.status, summary.documents) == ("success", {"remove": 2})
    assert list(world.index.scan_points(world.generation)) == []
    assert list(world.index.scan_sections(world.generation)) == []
    assert world.ledger.documents.counts(SOURCE) == DocumentCounts()
    assert world.audit().clean


def test_a_dry_run_tells_of_it_and_removes_nothing(world: World) -> None:
    assert forget(world, dry_run=True).documents == {"remove": 2}
    assert world.ledger.documents.counts(SOURCE).indexed == 2


def test_declared_again_it_comes_back_without_being_embedded_again(world: World) -> None:
    forget(world)
    world.embedder.texts.clear()
    assert world.run().documents == {"restore": 2}
    assert world.embedder.texts == []


def test_other_sources_keep_theirs(world: World) -> None:
    world.run(source="other")
    forget(world)
    assert world.ledger.documents.counts("other").indexed == 2


def test_a_declared_source_is_not_forgotten(world: World) -> None:
    declared = FilesOptions(name=SOURCE, kind="files", path="/srv/docs")
    for declarations in (
        Declarations({SOURCE: declared}),
        Declarations(broken={SOURCE: ConfigurationError("It has no path.")}),
    ):
        with pytest.raises(ConfigurationError, match=r"is declared.*Remove it from include"):
            forget(world, declarations=declarations)
    assert world.ledger.documents.counts(SOURCE).indexed == 2


def test_a_source_that_no_one_knows_is_an_error(world: World) -> None:
    with pytest.raises(ConfigurationError, match="No source is called"):
        forget(world, "docz")


def test_a_run_of_it_comes_first(world: World) -> None:
    with world.ledger.lock(SOURCE), pytest.raises(SourceBusyError):
        forget(world)
    assert world.ledger.documents.counts(SOURCE).indexed == 2
