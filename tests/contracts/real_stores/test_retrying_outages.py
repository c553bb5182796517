"""Calls that wait for a real server while it is restarted, as an operator would restart it."""

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

from conftest import THROWAWAY
from tidemark.adapters.index.qdrant import QdrantServerIndex
from tidemark.adapters.ledger.migrations import upgrade
from tidemark.adapters.ledger.postgres import PostgresLedger
from tidemark.adapters.services.postgres import EmbeddedPostgres
from tidemark.domain.chunks import PointWrite
from tidemark.domain.errors import TransientError
from tidemark.domain.records import SourceState

pytestmark = pytest.mark.services

AWAY_SECONDS = 1.0
STATE = SourceState("site", state="commit")


@pytest.fixture
def server(own_folder: Path) -> Iterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(own_folder, settings=THROWAWAY)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def real(server: EmbeddedPostgres) -> Iterator[PostgresLedger]:
    url = server.url("ledger")
    upgrade(url)
    ledger = PostgresLedger(url)
    yield ledger
    ledger.close()


@contextmanager
def away(stop: Callable[[], None], start: Callable[[], object]) -> Iterator[None]:
    """Stopped when the block begins, and started a while later, meanwhile."""

    def come_back() -> None:
        time.sleep(AWAY_SECONDS)
        start()

    stop()
    back = threading.Thread(target=come_back)
    back.start()
    try:
        yield
    finally:
        back.join()


def test_the_ledger_waits_for_a_server_that_is_restarted(
    server: EmbeddedPostgres, real: PostgresLedger, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="tidemark.adapters.retry")
    ledger = PostgresLedger(server.url("ledger"), retry_timeout=30)
    ledger.sources.names()
    with away(server.stop, server.ensure_running):
        with pytest.raises(TransientError):
            real.sources.state("site")
        ledger.sources.save_state(STATE)
        assert ledger.sources.state("site") == STATE
        assert list(ledger.documents.stream("site")) == []
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    ledger.close()


def test_locks_of_documents_that_a_restart_took_away_end_the_block(
    server: EmbeddedPostgres, real: PostgresLedger
) -> None:
    ledger = PostgresLedger(server.url("ledger"), retry_timeout=30)

    def work() -> None:
        with ledger.lock_documents([uuid4()]):
            server.stop()
            ledger.sources.names()

    began = time.monotonic()
    with pytest.raises(TransientError):
        work()
    assert time.monotonic() - began < 15
    with away(lambda: None, server.ensure_running), ledger.lock_documents([uuid4()]):
        assert ledger.sources.names() == []
    ledger.close()


@contextmanager
def qdrant(folder: Path, port: int = 0) -> Iterator[int]:
    """A stand-in for a Qdrant server in a process of its own, and the port that it took."""
    server = Path(__file__).parents[2] / "support" / "qdrant_http.py"
    command = [sys.executable, str(server), str(port), "--folder", str(folder)]
    with subprocess.Popen(
        [*command, "--seconds", "60"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            ready, taken = process.stdout.readline().split()
            assert ready == "ready"
            yield int(taken)
        finally:
            process.kill()


def test_the_index_waits_for_a_server_that_is_killed_and_started_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="tidemark.adapters.retry")
    before, after = (PointWrite(uuid4(), {"source": "s"}, (1.0, 0.0)) for _ in range(2))
    with ExitStack() as later:
        with qdrant(tmp_path) as port:
            real = QdrantServerIndex(f"http://127.0.0.1:{port}")
            index = QdrantServerIndex(f"http://127.0.0.1:{port}", retry_timeout=60)
            index.ensure(1, 2)
            index.upsert_points(1, [before])
        with pytest.raises(TransientError):
            real.upsert_points(1, [after])
        back = threading.Thread(target=lambda: later.enter_context(qdrant(tmp_path, port)))
        back.start()
        index.upsert_points(1, [after])
        back.join()
        assert {point.point_id for point in index.scan_points(1)} == {
            before.point_id,
            after.point_id,
        }
        real.close()
        index.close()
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
