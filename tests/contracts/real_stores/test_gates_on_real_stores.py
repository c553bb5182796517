"""The four gates again, on the stores that operators run: Postgres, Qdrant's engine, files."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from worlds import World

from tidemark.adapters.artifacts import FsspecArtifacts
from tidemark.adapters.index.qdrant_edge import QdrantEdgeIndex
from tidemark.adapters.ledger.postgres import PostgresLedger
from unit.stages.plan import test_gates

pytestmark = pytest.mark.services


@pytest.fixture
def world(postgres_url: str, tmp_path: Path) -> Iterator[World]:
    ledger = PostgresLedger(postgres_url)
    yield test_gates.filled(
        World(
            ledger,
            QdrantEdgeIndex(tmp_path / "qdrant", "tidemark", 30),
            FsspecArtifacts((tmp_path / "artifacts").as_uri()),
            lambda: QdrantEdgeIndex(tmp_path / "other", "tidemark", 30),
        )
    )
    ledger.close()


for name, value in vars(test_gates).items():
    if name.startswith("test_"):
        globals()[name] = value


def test_two_sources_that_begin_at_once_write_the_same_generation(world: World) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from tidemark.stages.generations import ensure_generation

    def begin(_: int) -> int:
        deps = world.deps()
        return ensure_generation(
            deps.ledger, deps.index, "tidemark", deps.embedder, deps.lexical, deps.clock
        )

    with ThreadPoolExecutor(4) as threads:
        assert set(threads.map(begin, range(8))) == {1}
    assert world.index.generations() == [1]


def test_a_generation_that_was_half_made_is_taken_up_again(world: World) -> None:
    """Killed between the collections and the ledger's row: the next run does not start another."""
    world.index.ensure(1, 64)
    world.index.switch(1)
    assert world.run().documents == {"add": 2}
    assert world.audit().clean
    assert world.index.live() == world.generation
