"""The same machine on Postgres and on Qdrant's engine: a dozen of its histories, backups of both included."""

import os
import shutil
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from convergence import Convergence
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from sqlalchemy import Engine, NullPool, create_engine
from store_copies import Stores

from tidemark.adapters.index.qdrant_edge import QdrantEdgeIndex
from tidemark.adapters.ledger.postgres import PostgresLedger, metadata

pytestmark = [pytest.mark.services, pytest.mark.slow]

BY_HAND = os.environ.get("TIDEMARK_MACHINE_EXAMPLES")
"""How many histories to try, others each time; without, the same ones each time."""
EXAMPLES = int(BY_HAND or 12)
STEPS = 8


class RealStores:
    """A ledger in Postgres and an index in a folder; both begin empty.

    A copy of the ledger is the rows of all its tables, a copy of the index is a copy of its folder.
    """

    def __init__(self, engine: Engine, url: str, root: Path) -> None:
        self._engine = engine
        self._root = root
        self._numbers = count(1)
        self.ledger: Any = PostgresLedger(url, lock_seconds=5)
        self.restore("ledger", {})
        self._open(self._fresh())

    def copy(self, which: str) -> Any:
        if which == "index":
            copy = self._fresh()
            shutil.copytree(self._folder, copy)
            return copy
        with self._engine.connect() as connection:
            return {
                table.name: [dict(row._mapping) for row in connection.execute(table.select())]
                for table in metadata.sorted_tables
            }

    def restore(self, which: str, copied: Any) -> None:
        if which == "index":
            folder = self._fresh()
            shutil.copytree(copied, folder)
            self._open(folder)
            return
        with self._engine.begin() as connection:
            for table in reversed(metadata.sorted_tables):
                connection.execute(table.delete())
            for table in metadata.sorted_tables:
                if rows := copied.get(table.name):
                    connection.execute(table.insert(), rows)

    def wipe(self, which: str) -> None:
        if which == "index":
            self._open(self._fresh())
        else:
            self.restore("ledger", {})

    def close(self) -> None:
        self.ledger.close()
        shutil.rmtree(self._root, ignore_errors=True)

    def _fresh(self) -> Path:
        return self._root / str(next(self._numbers))

    def _open(self, folder: Path) -> None:
        self._folder = folder
        self.index: Any = QdrantEdgeIndex(folder, "tidemark", 30)


@pytest.fixture
def engine(postgres_url: str) -> Iterator[Engine]:
    engine = create_engine(postgres_url, poolclass=NullPool)
    yield engine
    engine.dispose()


def test_it_converges_on_the_stores_that_operators_run(
    engine: Engine, postgres_url: str, own_folder: Path
) -> None:
    numbers = count(1)

    class OnRealStores(Convergence):
        def stores(self) -> Stores:
            return RealStores(engine, postgres_url, own_folder / f"example-{next(numbers)}")

        def teardown(self) -> None:
            try:
                super().teardown()
            finally:
                self.kept.close()  # type: ignore[attr-defined]

    run_state_machine_as_test(
        OnRealStores,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
            database=None,
            derandomize=BY_HAND is None,
        ),
    )
