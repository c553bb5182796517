"""Whatever happens to a source, its runs and its stores: one clean run makes the index right again."""

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from convergence import Convergence
from store_copies import MemoryStores, Stores

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("TIDEMARK_MACHINE_EXAMPLES", "60"))
"""Of ``STEPS`` steps at most; a few thousand by hand."""
STEPS = 30


class InMemory(Convergence):
    def stores(self) -> Stores:
        return MemoryStores()


def test_it_converges_after_whatever_happened() -> None:
    run_state_machine_as_test(
        InMemory,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate, Phase.shrink],
            database=None,
            print_blob=False,
        ),
    )
