"""The four gates again, on the stores that operators run: Postgres, Qdrant's engine, files."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemark.adapters.fsspec_artifacts import FsspecArtifacts
from tidemark.adapters.postgres_ledger import PostgresLedger
from tidemark.adapters.qdrant_edge import QdrantEdgeIndex
from unit import test_gates
from worlds import World

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
