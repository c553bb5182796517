"""The adapters that a contract is run on."""

from collections.abc import Iterator

import pytest

from fakes.ledger import MemoryLedger
from tidemark.ports.ledger import Ledger


@pytest.fixture(params=["memory", pytest.param("postgres", marks=pytest.mark.services)])
def ledger(request: pytest.FixtureRequest) -> Iterator[Ledger]:
    """An empty ledger."""
    if request.param == "memory":
        yield MemoryLedger(lock_seconds=0.2)
        return
    from tidemark.adapters.ledger.postgres import PostgresLedger

    opened = PostgresLedger(request.getfixturevalue("postgres_url"), lock_seconds=0.2)
    yield opened
    opened.close()
