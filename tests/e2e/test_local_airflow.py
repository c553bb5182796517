"""A real scheduler and api-server, started as `make run` starts them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest
from airflow_runs import set_task_note, wait_for_end

from tidemark_local.layout import PROJECT, Layout
from tidemark_local.services import LocalAirflow, running

pytestmark = pytest.mark.e2e

DAG = """
from datetime import datetime

from airflow.sdk import CronDataIntervalTimetable, dag, task


@dag(schedule=CronDataIntervalTimetable("0 3 * * *", timezone="UTC"), start_date=datetime(2026, 1, 1))
def doubles():
    @task
    def numbers():
        return [1, 2]

    @task
    def double(number):
        print("doubled", number * 2)

    double.expand(number=numbers())


doubles()
"""

LAUNCHER = """
import sys, time
from pathlib import Path
from tidemark_local.services import LocalAirflow

airflow = LocalAirflow(Path(sys.argv[1]), Path(sys.argv[2]), scheduled=False, triggerer=False)
airflow.start()
print("ready", flush=True)
time.sleep(600)
"""


def eventually(true: Callable[[], object], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def launcher(home: Path, tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Launched]":
    """A launcher in a process of its own, so that it can be killed."""
    dags = tmp_path_factory.mktemp("dags")
    (dags / "doubles.py").write_text(DAG, encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, str(home), str(dags)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(PROJECT / "include")},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        airflow = running(home)
        assert airflow is not None
        yield Launched(process, airflow)
    finally:
        process.kill()
        process.wait()
        Layout(home).processes().stop(grace=5.0)
        Layout(home).postgres().stop()


class Launched:
    def __init__(self, process: "subprocess.Popen[bytes]", airflow: LocalAirflow) -> None:
        self.process = process
        self.airflow = airflow


def test_without_a_password_nothing_is_told(launcher: Launched) -> None:
    answer = httpx.get(f"{launcher.airflow.url}/api/v2/dags", trust_env=False)
    assert answer.status_code == 401


def test_it_listens_on_loopback_alone(launcher: Launched) -> None:
    addresses = {
        connection.laddr.ip
        for process in Layout(launcher.airflow.layout.home).processes().marked()
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert addresses == {"127.0.0.1"}


def test_a_triggered_run_has_an_interval_and_its_logs_can_be_read(launcher: Launched) -> None:
    with launcher.airflow.api() as api:
        api.wait_for_dag("doubles")
        api.unpause("doubles")
        run = wait_for_end(api, api.trigger("doubles", note="a test"), timeout=120)
        assert run.state == "success"
        assert run.data_interval_start is not None
        assert run.data_interval_end is not None
        assert run.data_interval_start < run.data_interval_end
        tasks = {task.label: task for task in api.tasks(run)}
        assert set(tasks) == {"numbers", "double[0]", "double[1]"}
        assert "doubled 4" in api.log(run, tasks["double[1]"])
        set_task_note(api, run, "double", 1, "noted")
        assert {t.label: t.note for t in api.tasks(run)}["double[1]"] == "noted"
        # No run by schedule came in between.
        assert [found.run_id for found in api.runs("doubles")] == [run.run_id]


def test_a_second_launcher_of_the_same_home_is_refused(launcher: Launched) -> None:
    from tidemark.domain.errors import PermanentError

    with pytest.raises(PermanentError, match="runs already"):
        LocalAirflow(launcher.airflow.layout.home).start()


def test_nothing_outlives_a_launcher_that_is_killed(launcher: Launched, home: Path) -> None:
    table = Layout(home).processes()
    assert list(table.marked())
    launcher.process.send_signal(signal.SIGKILL)
    assert eventually(lambda: not list(table.marked()), seconds=60)
    assert eventually(lambda: not Layout(home).postgres().is_running(), seconds=30)
    assert running(home) is None
