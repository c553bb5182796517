"""Stores that go away in the middle of a run, come back, or are full."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest
from soak_corpus import Corpus
from soak_disk import NoNamespaceError, SmallDisk, small_disk
from soak_home import (
    PROJECT,
    Home,
    assert_equal_to_fresh,
    holding,
    postgres_processes,
)
from soak_tight import ROOM

from tidemark.adapters.services.postgres import EmbeddedPostgres
from tidemark_local.processes import free_port

pytestmark = pytest.mark.soak

Figures = Callable[..., None]

AWAY = 30.0
"""Seconds for which a store is away."""

DOCUMENTS = 120


@contextmanager
def a_home(folder: Path, seed: int, **environment: str) -> Iterator[tuple[Home, Corpus]]:
    """A home over a folder of documents, nothing indexed yet; its server is stopped at the end."""
    tide = Home(folder / "tide", {"docs": folder / "docs"}, environment)
    corpus = Corpus(folder / "docs", Random(seed))
    corpus.grow(DOCUMENTS, largest=4)
    try:
        tide.start("migrate").end()
        yield tide, corpus
    finally:
        tide.stop()


def only_line(error: str) -> str:
    """What was said on stderr: one line for a person, no traceback."""
    lines = [line for line in error.splitlines() if line.strip()]
    assert len(lines) == 1, error
    return lines[0]


def test_an_index_folder_that_another_process_holds_for_30_seconds_is_waited_for(
    own_folder: Path, seed: int, figures: Figures
) -> None:
    with a_home(own_folder, seed) as (tide, _):
        run = tide.start("index", "docs", "--json")
        holding(tide, "docs", run)
        with tide.store().session():
            held = time.monotonic()
            while time.monotonic() - held < AWAY:
                assert run.running, run.error
                time.sleep(0.2)
        run.end()
        assert f"process {os.getpid()}" in run.error, "it said whom it waited for"
        assert tide.differences() == {}
        points = assert_equal_to_fresh(tide, own_folder / "fresh")
        figures(points=points, seconds=run.seconds, said=only_line(run.error))


@contextmanager
def qdrant(folder: Path) -> Iterator["Server"]:
    server = Server(folder, free_port())
    server.start()
    try:
        yield server
    finally:
        server.kill()


class Server:
    """A stand-in for a Qdrant server that keeps its data in a folder, on a port of its own."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.port = port
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        program = PROJECT / "tests" / "support" / "qdrant_http.py"
        self._process = subprocess.Popen(
            [sys.executable, str(program), str(self.port), "--folder", str(self.folder)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline().startswith("ready")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def test_a_qdrant_server_away_for_30_seconds_is_waited_for(
    own_folder: Path, seed: int, figures: Figures
) -> None:
    with (
        qdrant(own_folder / "server") as server,
        a_home(own_folder, seed, TIDEMARK_QDRANT_URL=server.url) as (tide, _),
    ):
        run = tide.start("index", "docs", "--json")
        holding(tide, "docs", run)
        server.kill()
        away = time.monotonic()
        while time.monotonic() - away < AWAY:
            assert run.running, run.error
            time.sleep(0.2)
        server.start()
        run.end()
        assert tide.differences() == {}
        points = assert_equal_to_fresh(tide, own_folder / "fresh")
        figures(points=points, seconds=run.seconds, said=run.error.splitlines()[:3])


def test_without_patience_a_qdrant_server_away_fails_the_run_in_one_line_and_the_next_is_right(
    own_folder: Path, seed: int, figures: Figures
) -> None:
    with (
        qdrant(own_folder / "server") as server,
        a_home(own_folder, seed, TIDEMARK_QDRANT_URL=server.url, TIDEMARK_PATIENCE="0") as home,
    ):
        tide, _ = home
        run = tide.start("index", "docs", "--json")
        holding(tide, "docs", run)
        server.kill()
        [summary] = tide.summaries(run.end(code=1))
        assert summary["status"] == "failed"
        assert server.url in summary["problem"]
        assert "Traceback" not in run.error
        cut = len(summary["problem"].splitlines())
        assert cut == 1
        server.start()
        tide.index()
        assert tide.differences() == {}
        points = assert_equal_to_fresh(tide, own_folder / "fresh")
        figures(points=points, problem=summary["problem"])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "restarted"])
def test_a_ledger_that_restarts_under_a_run_costs_at_most_that_run(
    own_folder: Path, seed: int, figures: Figures, number: signal.Signals
) -> None:
    server = EmbeddedPostgres(own_folder / "ledger")
    url = server.url("ledger")
    try:
        with a_home(own_folder, seed, TIDEMARK_LEDGER_URL=url) as (tide, _):
            run = tide.start("index", "docs", "--json")
            holding(tide, "docs", run)
            for process in postgres_processes(server)[: 1 if number is signal.SIGINT else None]:
                process.send_signal(number)
            time.sleep(2.0)
            server.ensure_running()
            out = run.end(code=None)
            told = [
                *(s["problem"] or s["status"] for s in tide.summaries(out)),
                *run.error.splitlines(),
            ]
            assert "Traceback" not in run.error
            tide.index()
            assert tide.differences() == {}
            points = assert_equal_to_fresh(tide, own_folder / "fresh")
            figures(points=points, exit_code_of_that_run=run.process.returncode, it_said=told)
    finally:
        server.stop()


class FullStore:
    """The artifact store on a disk with little room, real where that is possible."""

    def __init__(self, stack: ExitStack, folder: Path, megabytes: int) -> None:
        self.disk: SmallDisk | None = None
        self.stand_in = folder / "stand-in"
        self._bytes = megabytes * 1024 * 1024
        try:
            if os.environ.get("SOAK_STAND_IN"):
                raise NoNamespaceError("a stand-in was asked for")
            self.disk = stack.enter_context(small_disk(folder / "disk", megabytes))
        except NoNamespaceError:
            self.stand_in.mkdir()
            self.free()

    @property
    def kind(self) -> str:
        return "a tmpfs" if self.disk else "a stand-in that raises ENOSPC"

    @property
    def rooms(self) -> tuple[int, ...]:
        """Bytes left at which a run ends in its crawl, later in its crawl, and after it."""
        # A real disk takes whole pages for each of the many small files.
        return (0, 100_000, 450_000) if self.disk else (0, 50_000, 200_000)

    @property
    def url(self) -> str:
        return str(self.disk.path / "store") if self.disk else f"tight://{self.stand_in}"

    @property
    def prefix(self) -> tuple[str, ...]:
        return self.disk.prefix if self.disk else ()

    def fill(self, leave: int) -> None:
        if self.disk:
            self.disk.fill(leave)
        else:
            held = sum(f.stat().st_size for f in self.stand_in.rglob("*") if f.is_file())
            (self.stand_in / ROOM).write_text(str(held + leave))

    def free(self) -> None:
        if self.disk:
            self.disk.free()
        else:
            (self.stand_in / ROOM).write_text(str(self._bytes))


def test_a_full_artifact_store_stops_the_run_with_the_cure_and_loses_nothing(
    own_folder: Path, seed: int, figures: Figures
) -> None:
    with ExitStack() as stack:
        store = FullStore(stack, own_folder, megabytes=24)
        tide, corpus = stack.enter_context(
            a_home(own_folder, seed, TIDEMARK_ARTIFACTS_URL=store.url)
        )
        tide.prefix = store.prefix
        tide.index()
        problems: list[str] = []
        for leave in store.rooms:
            live = tide.indexed()
            corpus.change(share=0.6)
            kept = live & {document.path.as_uri() for document in corpus.documents}
            store.fill(leave)
            run = tide.start("index", "docs", "--approve", "--json")
            found = tide.summaries(run.end(code=1))
            assert len(found) == 1, run.error
            [summary] = found
            problems.append(summary["problem"])
            assert "No space left on device" in summary["problem"]
            assert "Free some space" in summary["problem"]
            assert store.url in summary["problem"], "it names the store"
            assert kept <= tide.indexed(), "a live version is gone"
            assert tide.differences() == {}, f"after {summary['problem']}"
        store.free()
        tide.index()
        assert tide.differences() == {}
        points_now = assert_equal_to_fresh(tide, own_folder / "fresh")
        figures(disk=store.kind, points=points_now, problems=problems)


def test_a_full_disk_of_the_ledger_stops_the_run_and_the_next_is_right(
    own_folder: Path, seed: int, figures: Figures
) -> None:
    if os.geteuid() != 0:
        pytest.skip("a server in a user's own namespace would have to change its account")
    with ExitStack() as stack:
        try:
            disk = stack.enter_context(small_disk(own_folder / "disk", 400))
        except NoNamespaceError as error:
            pytest.skip(f"no small disk can be mounted here: {error}")
        tide, corpus = stack.enter_context(a_home(own_folder, seed))
        tide.prefix = disk.prefix
        url = _server_on(disk, stack)
        tide.environment["TIDEMARK_LEDGER_URL"] = url
        tide.environment["TIDEMARK_PATIENCE"] = "5"
        tide.start("migrate").end()
        tide.index()
        corpus.change(share=0.9)
        corpus.grow(DOCUMENTS * 4)
        disk.fill(leave=100_000)
        run = tide.start("index", "docs", "--approve", "--json")
        out = run.end(code=1)
        found = [summary["problem"] for summary in tide.summaries(out)]
        problem = found[0] if found else run.error.splitlines()[-1]
        assert "No space left on device" in problem
        assert "Free some space" in problem
        disk.free()
        _server_on(disk, stack)
        tide.index()
        assert tide.differences() == {}
        points = assert_equal_to_fresh(tide, own_folder / "fresh")
        figures(points=points, problem=problem)


def _server_on(disk: SmallDisk, stack: ExitStack) -> str:
    """A Postgres whose data lies on the small disk; the URL of its ledger."""
    script = (
        "import sys; from pathlib import Path\n"
        "from tidemark.adapters.services.postgres import EmbeddedPostgres\n"
        "server = EmbeddedPostgres(Path(sys.argv[1]), settings={'max_wal_size': '64MB', "
        "'min_wal_size': '32MB', 'wal_recycle': 'off'})\n"
        "print(server.url('ledger') if sys.argv[2] == 'start' else server.stop())"
    )

    def said(order: str) -> Any:
        done = subprocess.run(
            [*disk.prefix, sys.executable, "-c", script, str(disk.path / "pg"), order],
            env={**os.environ, "PYTHONPATH": str(PROJECT / "include")},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    stack.callback(said, "stop")
    return str(said("start"))
