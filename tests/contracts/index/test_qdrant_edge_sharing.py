"""The embedded index between processes: waiting, dying, forking."""

import logging
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from vector_index_cases import DIMENSION, direction, point, section, words

from tidemark.adapters.index import edge_folder as edge_folder
from tidemark.adapters.index.qdrant_edge import QdrantEdgeIndex
from tidemark.domain.errors import PermanentError, TransientError

pytestmark = pytest.mark.services

PRELUDE = """
import os, sys, time
from pathlib import Path
from vector_index_cases import *
from tidemark.adapters.index.qdrant_edge import QdrantEdgeIndex
folder = Path(sys.argv[1])
index = QdrantEdgeIndex(folder, "tidemark", lock_timeout=30)
"""

SECOND = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"


def start(folder: Path, code: str) -> subprocess.Popen[str]:
    """Run ``code`` in another process that has ``index`` open on the same folder."""
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(code), str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def wait_for(said: str, process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline().strip() == said


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    QdrantEdgeIndex(tmp_path / "index").ensure(1, DIMENSION)
    return tmp_path / "index"


def test_a_killed_writer_loses_nothing_it_was_told_is_written(folder: Path) -> None:
    writer = start(
        folder,
        """
        with index.session():
            for n in range(100_000):
                index.upsert_points(1, [point(n)])
                index.upsert_sections(1, [section(n)])
                print(n, flush=True)
        """,
    )
    assert writer.stdout is not None
    acknowledged = -1
    while acknowledged < 40:
        acknowledged = int(writer.stdout.readline())
    writer.kill()
    acknowledged = int((writer.stdout.read().split() or [acknowledged])[-1])
    writer.wait()
    index = QdrantEdgeIndex(folder, lock_timeout=10)
    with index.session():
        for kept in (index.scan_points(1), index.scan_sections(1)):
            numbers = sorted(int(str(p.payload["number"])) for p in kept)
            assert numbers[: acknowledged + 1] == list(range(acknowledged + 1))
            # What was written but not yet acknowledged may be there: one at most.
            assert len(numbers) <= acknowledged + 2


def test_two_processes_write_at_once_and_both_are_kept(folder: Path) -> None:
    code = """
        first = int(os.environ["FIRST"])
        for n in range(first, first + 5):
            index.upsert_points(1, [point(n)])
        with index.session():
            index.upsert_points(1, [point(n) for n in range(first + 5, first + 300)])
        """
    writers = []
    for first in (0, 1000):
        os.environ["FIRST"] = str(first)
        writers.append(start(folder, code))
    del os.environ["FIRST"]
    assert [writer.wait(timeout=60) for writer in writers] == [0, 0]
    assert QdrantEdgeIndex(folder).count_points(1) == 600


def test_waiting_is_logged_once_with_who_is_waited_for_and_ends_in_a_cure(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(edge_folder, "FIRST_LINE", 0.1)
    caplog.set_level(logging.WARNING, "tidemark.adapters.index.edge_folder")
    holder = start(folder, "with index.session(): print('open', flush=True); sys.stdin.read()")
    wait_for("open", holder)
    try:
        with pytest.raises(
            TransientError,
            match=rf"held by process {holder.pid} \(\w+\) since {SECOND} UTC; "
            r"it was waited for 0\.4 s\..*Let it finish, or end it",
        ):
            QdrantEdgeIndex(folder, lock_timeout=0.4).count_points(1)
        (record,) = caplog.records
        assert re.fullmatch(
            rf"Waiting up to 0\.4 s for process {holder.pid} .* since {SECOND} UTC, which has .* open",
            record.getMessage(),
        )
    finally:
        holder.kill()
        holder.wait()
    assert QdrantEdgeIndex(folder, lock_timeout=5).count_points(1) == 0


def test_a_waiting_process_gets_in_when_the_other_is_done(folder: Path) -> None:
    holder = start(
        folder,
        """
        with index.session():
            print("open", flush=True)
            sys.stdin.read()
            index.upsert_points(1, [point(1)])
        """,
    )
    wait_for("open", holder)
    assert holder.stdin is not None
    threading.Timer(0.3, holder.stdin.close).start()
    assert QdrantEdgeIndex(folder, lock_timeout=20).count_points(1) == 1
    assert holder.wait(timeout=20) == 0


def test_a_holder_that_left_no_name_is_another_process(folder: Path) -> None:
    holder = start(folder, "with index.session(): print('open', flush=True); sys.stdin.read()")
    wait_for("open", holder)
    try:
        for text in ("", "1234", '{"process": 1}', '{"process": 1, "program": "", "since": 1e99}'):
            (folder / "tidemark.holder").write_text(text)
            with pytest.raises(TransientError, match="held by another process; it was waited"):
                QdrantEdgeIndex(folder, lock_timeout=0.0).count_points(1)
    finally:
        holder.kill()
        holder.wait()


def test_reading_which_generation_is_live_waits_for_nobody(folder: Path) -> None:
    index = QdrantEdgeIndex(folder, lock_timeout=0.0)
    index.switch(1)
    holder = start(folder, "with index.session(): print('open', flush=True); sys.stdin.read()")
    wait_for("open", holder)
    try:
        assert (index.live(), index.generations()) == (1, [1])
    finally:
        holder.kill()
        holder.wait()


def test_threads_share_a_session(folder: Path) -> None:
    indexes = [QdrantEdgeIndex(folder, lock_timeout=0.0) for _ in range(4)]

    def write(thread: int) -> None:
        for n in range(20):
            with indexes[thread].session():
                indexes[thread].upsert_points(1, [point(100 * thread + n)])

    with indexes[0].session(), ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(write, thread) for thread in range(4)]:
            done.result()
    assert indexes[1].count_points(1) == 80


def run_in_fork(work: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether ``work`` answers True in a forked child, in time."""
    child = os.fork()
    if child == 0:
        good = False
        try:
            good = work()
        finally:
            os._exit(0 if good else 1)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def test_a_fork_inside_a_session_leaves_the_session_to_the_parent(folder: Path) -> None:
    index = QdrantEdgeIndex(folder, lock_timeout=0.3)

    def the_child_is_shut_out() -> bool:
        try:
            index.count_points(1)
        except TransientError:
            return True
        return False

    with index.session():
        index.upsert_points(1, [point(1)])
        assert run_in_fork(the_child_is_shut_out)
        index.upsert_points(1, [point(2)])
    assert run_in_fork(lambda: index.count_points(1) == 2)
    assert index.count_points(1) == 2


def test_a_child_that_outlives_a_session_does_not_keep_the_index(folder: Path) -> None:
    index = QdrantEdgeIndex(folder, lock_timeout=5)
    with index.session():
        index.upsert_points(1, [point(1)])
        child = os.fork()
        if child == 0:
            time.sleep(30)
            os._exit(0)
    try:
        other = start(folder, "print(index.count_points(1), flush=True)")
        wait_for("1", other)
        assert other.wait() == 0
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_collections_left_half_made_are_invisible_and_swept(folder: Path) -> None:
    index = QdrantEdgeIndex(folder)
    for name in (".tidemark__g2.0af3", ".tidemark__sections__g2.0af3"):
        (folder / name / "shard").mkdir(parents=True)
    assert index.generations() == [1]
    index.ensure(2, DIMENSION)
    assert index.generations() == [1, 2]
    assert not list(folder.glob(".tidemark__*"))


def test_a_damaged_live_file_is_named_with_the_cure(folder: Path) -> None:
    (folder / "tidemark.live.json").write_text("{")
    with pytest.raises(PermanentError, match=r"tidemark\.live\.json") as told:
        QdrantEdgeIndex(folder).live()
    assert "`tidemark audit --repair`" in told.value.hint


def test_results_stay_exact_when_the_engine_has_tidied_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seal early, so that sealed and growing segments, and the dead in both, answer together."""
    monkeypatch.setattr("tidemark.adapters.index.edge_folder.SEAL_KB", 1)
    index = QdrantEdgeIndex(folder)
    index.ensure(2, DIMENSION)
    for first in (0, 1500):
        index.upsert_points(
            2, [point(n, n * 0.02, tokens=(n,)) for n in range(first, first + 1500)]
        )
    index.delete_points(2, [point(n).point_id for n in range(0, 3000, 2)])
    index.upsert_sections(2, [section(n) for n in range(10)])
    assert index.count_points(2) == 1500
    assert [hit.payload["number"] for hit in index.search(2, 3, dense=direction(0))] == [1, 3, 5]
    with index.session():
        for n in (0, 1, 1499, 2998, 2999):
            found = index.search(2, 5, lexical=words(n))
            assert [hit.payload["number"] for hit in found] == ([n] if n % 2 else [])
