"""Takedown and housekeeping again, on the stores that operators run: Postgres, Qdrant's engine, files."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from worlds import World, page

from tidemark.adapters.artifacts import FsspecArtifacts
from tidemark.adapters.index.qdrant_edge import QdrantEdgeIndex
from tidemark.adapters.ledger.postgres import PostgresLedger
from unit.stages import test_housekeeping
from unit.stages.takedown import test_takedown

pytestmark = pytest.mark.services


@pytest.fixture
def world(postgres_url: str, tmp_path: Path) -> Iterator[World]:
    ledger = PostgresLedger(postgres_url)
    made = World(
        ledger,
        QdrantEdgeIndex(tmp_path / "qdrant", "tidemark", 30),
        FsspecArtifacts((tmp_path / "artifacts").as_uri()),
    )
    # Files get old by the clock of the machine.
    made.now = datetime.now(UTC)
    made.documents[test_takedown.A] = page("A", test_takedown.SECRET, "It rises.")
    made.documents[test_takedown.B] = page("B", "Another gauge.", "It falls.")
    made.run()
    yield made
    ledger.close()


# Those that ask most of the stores; each run costs these seconds.
test_taken_down_it_is_gone = (
    test_takedown.test_it_is_removed_from_every_store_and_the_counts_prove_it
)
test_a_restored_index = test_takedown.test_a_restored_index_does_not_bring_it_back
test_a_source_without_a_declaration = (
    test_housekeeping.test_a_source_that_nobody_declares_any_more_expires_too
)
test_tombstones = (
    test_housekeeping.test_tombstones_are_forgotten_after_a_year_but_those_that_keep_out
)
test_generations = (
    test_housekeeping.test_dead_generations_are_dropped_and_the_live_and_the_growing_stay
)
