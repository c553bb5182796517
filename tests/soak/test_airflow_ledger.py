"""A real scheduler whose ledger, on a database server of its own, is killed in the middle of a run."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from soak_airflow import airflow_over, restart

from tidemark.adapters.ledger.migrations import upgrade
from tidemark.adapters.services.postgres import EmbeddedPostgres

pytestmark = pytest.mark.soak

Figures = Callable[..., None]


def test_a_ledger_of_its_own_restarted_in_mid_run(own_folder: Path, figures: Figures) -> None:
    server = EmbeddedPostgres(own_folder / "ledger")
    try:
        url = server.url("ledger")
        upgrade(url)
        began = time.monotonic()
        with airflow_over(
            own_folder, {"third": 60}, seed=int(began), TIDEMARK_LEDGER_URL=url
        ) as system:
            run = system.trigger("third")
            system.writer("third")
            restart(server, "killed")
            ended = system.ended(run)
            assert ended.state == "success", system.log(run)
            system.assert_right()
            figures(
                tries=system.tries(run),
                logs=system.last_words(run),
                states_on_the_way=system.watched,
                seconds=time.monotonic() - began,
            )
    finally:
        server.stop()
