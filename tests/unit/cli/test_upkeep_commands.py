"""`tidemark takedown` and `tidemark housekeeping`: what they print, and how they end."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner
from worlds import SOURCE, World, page

from fakes.embedder import HashEmbedder
from tidemark.adapters.embedding.cache import CachedEmbedder, EmbeddingCache
from tidemark.cli import app as commands
from tidemark.cli import housekeeping, takedown
from tidemark.config.sources import SourceDeclaration
from tidemark.config.sources_file import Declarations
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.identity import document_id
from tidemark.stages.job import Stores
from tidemark.wiring import Container

A, B = "https://example.org/a", "https://example.org/b"


class _FakeContainer(Container):
    """A container whose stores are a world's."""

    world: World
    file: Path

    @property
    def ledger(self) -> Any:  # type: ignore[override]
        return self.world.ledger

    @property
    def stores(self) -> Stores:
        return Stores(
            self.world.ledger,
            self.world.artifacts,
            self.world.index,
            vector_cache=self.embedding_cache,
        )

    @property
    def artifacts(self) -> Any:  # type: ignore[override]
        return self.world.artifacts

    @property
    def declarations(self) -> Declarations:  # type: ignore[override]
        source = SourceDeclaration(name=SOURCE)
        return Declarations(sources={SOURCE: source}, profiles={}, broken={})

    @property
    def embedder(self) -> Any:  # type: ignore[override]
        return self.world.embedder

    @property
    def lexical(self) -> Any:  # type: ignore[override]
        return self.world.lexical

    @property
    def embedding_cache(self) -> EmbeddingCache:  # type: ignore[override]
        return EmbeddingCache(self.file)

    def declared(self, name: str) -> SourceDeclaration:
        if name != SOURCE:
            raise ConfigurationError(f"There is no source {name!r}.", "Declare it.")
        return SourceDeclaration(name=name)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> World:
    from tidemark.config.settings import Settings

    made = World()
    made.documents.update({A: page("A", "The tide rises."), B: page("B", "It falls.")})
    made.run()
    file = tmp_path / "cache" / "sentences.sqlite"
    CachedEmbedder(HashEmbedder(8), file).embed(["one", "two"])
    container = _FakeContainer(Settings(home=tmp_path))
    object.__setattr__(container, "world", made)
    object.__setattr__(container, "file", file)
    for module in (housekeeping, takedown):
        monkeypatch.setattr(module, "open_container", lambda: container)
    return made


def call(*arguments: str) -> Result:
    return CliRunner().invoke(commands.app, list(arguments))


def test_a_takedown_prints_its_proof(world: World) -> None:
    result = call("takedown", f"{A}#part", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told == {
        "uri": f"{A}#part",
        "documents": [
            {
                "source": SOURCE,
                "uri": A,
                "document_id": str(document_id(SOURCE, A)),
                "proof": {
                    "points": {"g1": [1, 0]},
                    "sections": {"g1": [2, 0]},
                    "raw": [1, 0],
                    "elements": [1, 0],
                    "vectors": [0, 0],
                    "cached_vectors": [2, 0],
                    "ledger_rows": [5, 0],
                },
                "kept": [],
                "kept_out": [A],
            }
        ],
    }


def test_a_person_reads_the_same(world: World) -> None:
    result = call("takedown", A, "--source", SOURCE)
    assert result.exit_code == 0, result.output
    for part in (f"Taken down: {A}", "points of generation 1", "snapshots", "--undo"):
        assert part in result.stdout


def test_a_stranger_is_refused_unless_a_source_is_named(world: World) -> None:
    stranger = "https://example.org/stranger"
    result = call("takedown", stranger, "--json")
    assert (result.exit_code, json.loads(result.stdout)["documents"]) == (1, [])
    assert "--source" in call("takedown", stranger).stdout
    result = call("takedown", stranger, "--source", SOURCE, "--json")
    assert result.exit_code == 0
    assert [tombstone.uri for tombstone in world.ledger.tombstones.blocking(SOURCE)] == [stranger]
    assert call("takedown", stranger, "--source", "nowhere").exit_code == 2


def test_it_is_undone(world: World) -> None:
    assert call("takedown", A, "--undo").exit_code == 1
    call("takedown", A)
    result = call("takedown", A, "--undo", "--json")
    assert result.exit_code == 0
    [lifted] = json.loads(result.stdout)["lifted"]
    assert (lifted["source"], lifted["lifted"]) == (SOURCE, [A])
    world.run()
    assert len(world.ledger.documents.by_uri(A)) == 1


def test_undoing_what_is_kept_out_for_another_names_that(world: World) -> None:
    call("takedown", A)
    copy = "https://example.org/copy"
    world.documents[copy] = world.documents[A]
    world.run()
    result = call("takedown", copy, "--undo")
    assert result.exit_code == 1
    told = " ".join(result.output.split())
    assert "was not taken down itself" in told
    assert f"tidemark takedown {A} --undo" in told


def test_housekeeping_tells_what_it_would_remove(world: World) -> None:
    world.artifacts.write("runs/unknown/plan.jsonl", b"12345")
    assert "nothing to remove" in call("housekeeping", "--dry-run").stdout, "it is too young"
    result = call("housekeeping", "--dry-run", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["dry_run"] is True
    assert told["removed"]["run_files"] == {"count": 0, "bytes": 0}
    assert world.artifacts.exists("runs/unknown/plan.jsonl")


def test_housekeeping_of_a_year_later_says_what_went(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from datetime import UTC, datetime, timedelta

    world.artifacts.write("runs/unknown/plan.jsonl", b"12345")
    late = datetime.now(UTC) + timedelta(days=3)
    stores = Stores(world.ledger, world.artifacts, world.index, lambda: late)
    monkeypatch.setattr(_FakeContainer, "stores", stores)
    result = call("housekeeping")
    assert result.exit_code == 0, result.output
    assert "run files" in result.stdout
    assert "5 bytes were freed" in result.stdout
    assert not world.artifacts.exists("runs/unknown/plan.jsonl")


def test_without_a_source_it_is_kept_out_of_every_one(world: World) -> None:
    result = call("takedown", A)
    assert "kept out of every source: https://example.org/a" in result.stdout
    assert [tombstone.all_sources for tombstone in world.ledger.tombstones.blocking("another")] == [
        True
    ]
    result = call("takedown", B, "--source", SOURCE)
    assert f"kept out of the source {SOURCE}: https://example.org/b" in result.stdout
    assert [tombstone.uri for tombstone in world.ledger.tombstones.blocking("another")] == [A]
    assert call("takedown", A, "--undo").exit_code == 0
    assert world.ledger.tombstones.blocking("another") == []


def test_a_dry_run_of_a_takedown_tells_what_would_go_and_touches_nothing(world: World) -> None:
    before = world.texts()
    told = json.loads(call("takedown", A, "--dry-run", "--json").stdout)
    [would] = told["documents"]
    assert would["would_remove"]["points.g1"] == 1
    assert "points of generation 1" in call("takedown", A, "--dry-run").stdout
    assert (world.texts(), world.ledger.tombstones.blocking(SOURCE)) == (before, [])
    assert call("takedown", "https://example.org/none", "--dry-run").exit_code == 1


def test_without_an_address_all_that_was_taken_down_is_listed(world: World) -> None:
    assert "Nothing was taken down." in call("takedown").stdout
    shown = call("takedown", A).stdout
    assert f"tidemark takedown {A} --undo" in " ".join(shown.split())
    [listed] = json.loads(call("takedown", "--json").stdout)["takedowns"]
    assert (listed["uri"], listed["everywhere"], listed["finished"]) == (A, True, True)
    assert A in call("takedown").stdout
    call("takedown", A, "--undo")
    assert json.loads(call("takedown", "--json").stdout) == {"takedowns": []}


def test_an_undo_needs_an_address(world: World) -> None:
    assert call("takedown", "--undo").exit_code == 2
    assert call("takedown", A, "--undo", "--dry-run").exit_code == 2
