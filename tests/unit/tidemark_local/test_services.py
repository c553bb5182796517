"""The launcher of the local Airflow: processes, secrets, ports, environment, and what it shows."""

import io
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.console import Console

from tidemark.domain.errors import PermanentError, TransientError
from tidemark_local import containers
from tidemark_local.airflow_api import AirflowApi, DagRun, TaskRun, log_lines
from tidemark_local.launcher import RunView, nothing_changed, task_line
from tidemark_local.layout import PROJECT, Layout
from tidemark_local.processes import MARK, ProcessTable, Record, claim, free_port, is_free
from tidemark_local.services import airflow_environment


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


SLEEP = python("import time; time.sleep(60)")
ORPHANS = python(
    # A child in a group of its own, as Airflow's supervisor makes for each task.
    "import subprocess, sys, time; "
    "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True); "
    "time.sleep(60)"
)
STUBBORN = python(
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); "
    "time.sleep(60)"
)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[ProcessTable]:
    table = ProcessTable(tmp_path / "run")
    yield table
    table.stop(grace=0.0)


def spawn(table: ProcessTable, command: list[str], name: str = "one") -> Record:
    return table.spawn(name, command, os.environ, table.folder / f"{name}.log")


def eventually(true: Callable[[], object], seconds: float = 10.0) -> bool:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_what_was_started_is_found_by_another_launcher_and_stopped(table: ProcessTable) -> None:
    record = spawn(table, SLEEP)
    later = ProcessTable(table.folder)
    assert [found.pid for found in later.alive()] == [record.pid]
    assert later.stop() == ["one"]
    assert later.records() == []
    assert record.process() is None


def test_children_in_groups_of_their_own_are_stopped_too(table: ProcessTable) -> None:
    spawn(table, ORPHANS)
    assert eventually(lambda: len(list(table.marked())) == 2)
    table.stop()
    assert list(table.marked()) == []


def test_children_of_a_killed_service_are_stopped(table: ProcessTable) -> None:
    record = spawn(table, ORPHANS)
    assert eventually(lambda: len(list(table.marked())) == 2)
    os.kill(record.pid, signal.SIGKILL)
    assert eventually(lambda: table.ended() == [record])
    table.stop()
    assert list(table.marked()) == []


def test_a_process_that_ignores_the_request_is_killed(table: ProcessTable) -> None:
    record = spawn(table, STUBBORN)
    assert eventually(lambda: record.tail() == ["deaf"])
    assert table.stop(grace=0.2) == ["one"]
    assert record.process() is None


def test_a_recycled_number_is_never_stopped(table: ProcessTable) -> None:
    stranger = subprocess.Popen(SLEEP)
    try:
        born = psutil.Process(stranger.pid).create_time()
        table.folder.mkdir(parents=True)
        record = {"name": "old", "pid": stranger.pid, "born": born - 100.0, "log": "x"}
        (table.folder / "old.json").write_text(json.dumps(record))
        assert table.alive() == []
        assert table.stop(grace=0.0) == []
        assert stranger.poll() is None
        assert table.records() == []
    finally:
        stranger.kill()
        stranger.wait()


def test_processes_of_another_home_are_left_alone(table: ProcessTable, tmp_path: Path) -> None:
    other = ProcessTable(tmp_path / "other")
    record = spawn(other, SLEEP)
    try:
        spawn(table, SLEEP)
        table.stop()
        assert [found.pid for found in other.alive()] == [record.pid]
    finally:
        other.stop(grace=1.0)


def test_a_record_cut_off_while_being_written_stops_nothing(table: ProcessTable) -> None:
    table.folder.mkdir(parents=True)
    (table.folder / "half.json").write_text('{"name": "half", "pi')
    assert table.records() == []
    assert table.stop() == []


def test_the_guard_stops_the_services_when_its_launcher_dies(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.make()
    record = spawn(layout.processes(), SLEEP)
    guard = subprocess.Popen(
        [sys.executable, "-m", "tidemark_local.processes", str(tmp_path)],
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(PROJECT / "include")},
    )
    time.sleep(0.1)
    assert record.process() is not None
    assert guard.stdin is not None
    guard.stdin.close()
    assert guard.wait(timeout=20) == 0
    assert eventually(lambda: record.process() is None)


def test_only_one_launcher_works_in_a_home(tmp_path: Path) -> None:
    with (
        Layout(tmp_path).launching(),
        pytest.raises(PermanentError, match="TIDEMARK_HOME"),
        Layout(tmp_path).launching(),
    ):
        pass
    with Layout(tmp_path).launching():
        pass


def test_secrets_are_kept_and_only_the_owner_reads_them(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.make()
    assert layout.secrets() == layout.secrets()
    for path in (layout.keys, layout.passwords):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(layout.airflow.stat().st_mode) == 0o700


def test_two_homes_have_different_secrets(tmp_path: Path) -> None:
    layouts = [Layout(tmp_path / name) for name in ("a", "b")]
    for layout in layouts:
        layout.make()
    first, second = (layout.secrets() for layout in layouts)
    assert first.jwt_secret != second.jwt_secret
    assert first.admin_password != second.admin_password


def test_secrets_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.make()
    layout.passwords.write_text("not json")
    with pytest.raises(PermanentError, match=r"passwords\.json"):
        layout.secrets()


def test_a_taken_port_is_named_with_the_way_to_choose_another() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        assert not is_free(port)
        with pytest.raises(PermanentError, match=rf"Port {port}, for the UI, .*PORT={port + 1}"):
            claim(port, "the UI", "PORT")


def test_port_nought_is_any_free_one() -> None:
    assert claim(0, "the UI", "PORT") != 0
    assert is_free(free_port())


def environment(tmp_path: Path, inherited: dict[str, str], **extra: str) -> dict[str, str]:
    layout = Layout(tmp_path)
    layout.make()
    return airflow_environment(
        layout,
        port=4321,
        database_url="postgresql+psycopg:///airflow",
        inherited=inherited,
        extra=extra,
    )


def test_another_airflows_settings_do_not_leak_in(tmp_path: Path) -> None:
    theirs = {
        "AIRFLOW_HOME": "/theirs",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "mysql://theirs",
        "AIRFLOW__SMTP__SMTP_HOST": "theirs",
    }
    env = environment(tmp_path, theirs)
    assert "theirs" not in " ".join(env.values())
    assert env["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS"] == "False"


def test_connections_and_ordinary_variables_are_passed_on(tmp_path: Path) -> None:
    given = {"AIRFLOW_CONN_TIDEMARK_LEDGER": "postgres://x", "PATH": "/bin", "TIDEMARK_X": "1"}
    env = environment(tmp_path, given)
    assert {name: env[name] for name in given} == given


def test_everything_listens_on_loopback(tmp_path: Path) -> None:
    env = environment(tmp_path, {})
    assert env["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert "127.0.0.1" in env["no_proxy"]
    assert env["AIRFLOW_CONN_TIDEMARK_AIRFLOW_API"].endswith("@127.0.0.1:4321")


def test_what_the_caller_asks_for_wins(tmp_path: Path) -> None:
    env = environment(tmp_path, {"TIDEMARK_HOME": "/elsewhere"}, AIRFLOW__CORE__PARALLELISM="1")
    assert env["AIRFLOW__CORE__PARALLELISM"] == "1"
    assert env["TIDEMARK_HOME"] == str(tmp_path)


Answer = tuple[int, dict[str, Any]]
"""A status and a body."""


@contextmanager
def api(answer: Callable[[str, str | None, Any], Answer]) -> Iterator[AirflowApi]:
    """A client of a server that answers by path, token and body, and by itself gives tokens t1, t2, …"""
    tokens: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, reply = 201, {"access_token": f"t{len(tokens) + 1}"}
            if self.path == "/auth/token":
                tokens.append(reply["access_token"])
            else:
                token = (self.headers["Authorization"] or "").removeprefix("Bearer ")
                status, reply = answer(self.path, token, json.loads(body) if body else None)
            sent = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        do_POST = do_GET  # noqa: N815 - the name is the base class's

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        try:
            with AirflowApi(f"http://127.0.0.1:{server.server_port}", "admin", "x") as client:
                yield client
        finally:
            server.shutdown()


def test_the_api_logs_in_once_and_again_when_the_token_is_old() -> None:
    tokens: list[str | None] = []

    def answer(path: str, token: str | None, body: Any) -> Answer:
        tokens.append(token)
        return (200, {"is_paused": True}) if token == "t2" else (401, {})

    with api(answer) as client:
        assert client.is_paused("a") is True
        assert client.is_paused("a") is True
    assert tokens == ["t1", "t2", "t2"]


def test_a_refusal_says_what_airflow_said() -> None:
    def answer(path: str, token: str | None, body: Any) -> Answer:
        return 409, {"detail": "a run of that date exists"}

    with api(answer) as client, pytest.raises(PermanentError, match=r"409 .*a run of that date"):
        client.trigger("index__x")


def test_a_server_that_is_away_may_come_back() -> None:
    client = AirflowApi(f"http://127.0.0.1:{free_port()}", "admin", "secret")
    with pytest.raises(TransientError, match="does not answer"):
        client.health()


def test_a_triggered_run_gets_a_logical_date() -> None:
    bodies: list[dict[str, Any]] = []

    def answer(path: str, token: str | None, body: Any) -> Answer:
        bodies.append(body)
        run = dict.fromkeys(
            ("logical_date", "data_interval_start", "data_interval_end", "start_date", "end_date")
        )
        return 200, {**run, "dag_id": "d", "dag_run_id": "r", "state": "queued", "note": None}

    with api(answer) as client:
        run = client.trigger("d", {"force": True})
    assert bodies[0]["logical_date"] is not None
    assert bodies[0]["conf"] == {"force": True}
    assert not run.ended


def test_a_logged_exception_comes_with_its_place() -> None:
    entry = {
        "event": "Task failed with exception",
        "error_detail": [
            {
                "exc_type": "ValueError",
                "exc_value": "bad",
                "frames": [{"filename": "a.py", "lineno": 3, "name": "f"}],
            }
        ],
    }
    assert log_lines(entry)[-2:] == ["  a.py:3 in f", "ValueError: bad"]


def task(task_id: str, state: str, map_index: int = -1) -> TaskRun:
    return TaskRun(task_id, map_index, state, 1, 1.5, "")


def test_mapped_tasks_are_shown_as_a_count_in_the_order_of_the_dag() -> None:
    tasks = [
        task("sweep", ""),
        task("process", "success", 0),
        task("process", "running", 1),
        task("crawl", "success"),
    ]
    assert task_line(tasks) == "crawl ✓  process 1/2  sweep"


def lines_of(view: RunView) -> str:
    assert isinstance(view.console.file, io.StringIO)
    return view.console.file.getvalue()


def test_without_a_terminal_each_finished_task_is_one_line() -> None:
    view = RunView(Console(file=io.StringIO(), width=200))
    run = DagRun("index__x", "r", "running", None, None, None, None, "")
    for states in (("running", ""), ("success", "running"), ("success", "failed")):
        view.progress(run, [task("crawl", states[0]), task("plan", states[1])])
    assert lines_of(view).count("crawl ✓ 1.5 s") == 1
    assert lines_of(view).count("plan ✗ 1.5 s") == 1


def summary(documents: dict[str, int], embedded: int = 0, removed: int = 0) -> dict[str, Any]:
    return {
        "source": "handbook",
        "status": "success",
        "problem": "",
        "documents": documents,
        "chunks": {"embedded": embedded, "kept": 0, "removed": removed},
        "seconds": {"crawl": 1.25},
        "attention": ["[red] is not markup"],
    }


def test_a_run_without_work_says_that_nothing_changed() -> None:
    view = RunView(Console(file=io.StringIO(), width=200))
    view.summaries([summary({"keep": 25, "skip": 2})])
    assert "Nothing changed: 27 documents were checked" in lines_of(view)
    assert "[red] is not markup" in lines_of(view)


@pytest.mark.parametrize(
    "changed",
    [
        summary({"add": 1}, embedded=3),
        summary({"keep": 1}, removed=1),
        summary({"keep": 3, "update": 1}),
        summary({}) | {"status": "failed"},
        summary({"keep": 3}) | {"problem": "the site is away"},
    ],
)
def test_a_run_with_work_does_not_say_so(changed: dict[str, Any]) -> None:
    assert not nothing_changed(changed)
    view = RunView(Console(file=io.StringIO(), width=200))
    view.summaries([changed])
    assert "Nothing changed" not in lines_of(view)


def test_the_probe_believes_only_a_healthy_component(monkeypatch: pytest.MonkeyPatch) -> None:
    state = b'{"scheduler": {"status": "healthy"}, "triggerer": {"status": null}}'
    monkeypatch.setattr(
        containers.urllib.request, "urlopen", lambda url, timeout: io.BytesIO(state)
    )
    statuses = {
        name: containers.main(["probe", "http://x/health", name])
        for name in ("scheduler", "triggerer", "unknown")
    }
    assert statuses == {"scheduler": 0, "triggerer": 1, "unknown": 1}
    assert containers.main(["probe"]) == 2


def test_the_mark_is_part_of_no_setting() -> None:
    from tidemark.config.settings import Settings

    assert MARK.removeprefix("TIDEMARK_").lower() not in Settings.model_fields
