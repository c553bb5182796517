"""A real scheduler whose processes and database are killed in the middle of its runs.

No person does anything but start a service again that has died, as a supervisor does (compose restarts its
containers; `make up` is started again).
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from soak_airflow import System, airflow_over, eventually, is_alive, kill, restart

pytestmark = pytest.mark.soak

Figures = Callable[..., None]

SOURCES = {"first": 50, "second": 50}


@pytest.fixture(scope="module")
def system(module_folder: Path) -> Iterator[System]:
    with airflow_over(module_folder, SOURCES, seed=int(time.time())) as running:
        yield running


def test_01_killed_task_and_executor_processes_are_retried_and_converge(
    system: System, figures: Figures
) -> None:
    began = time.monotonic()
    first, second = system.trigger("first"), system.trigger("second")
    kill(system.writer("first"))
    task = system.writer("second")
    worker = task.parent()
    assert worker is not None
    kill(worker)
    killed = time.monotonic()
    assert eventually(lambda: not is_alive(task), 60), "the task outlived its executor's process"
    left = time.monotonic()
    for run in (first, second):
        ended = system.ended(run)
        assert ended.state == "success", system.log(run)
        assert system.tries(run) == 2
    system.assert_right()
    figures(
        states_on_the_way=system.watched,
        log_of_the_killed_task=system.last_words(first),
        log_of_the_task_whose_executor_was_killed=system.last_words(second),
        seconds_until_a_task_ends_without_its_executor=left - killed,
        seconds=time.monotonic() - began,
    )


def test_02_a_killed_scheduler_that_is_started_again_ends_the_run(
    system: System, figures: Figures
) -> None:
    began = time.monotonic()
    system.change()
    runs = [system.trigger(source) for source in SOURCES]
    task = system.writer("first")
    scheduler = system.service("scheduler")
    family = scheduler.children(recursive=True)
    kill(scheduler)
    psutil.wait_procs([scheduler], timeout=10)
    time.sleep(5.0)
    outlived, task_outlived = sum(is_alive(process) for process in family), is_alive(task)
    ends = [system.ended(run) for run in runs]
    assert [run.state for run in ends] == ["success", "success"], system.log(runs[0])
    system.assert_right()
    figures(
        processes_of_the_killed_scheduler_still_at_work=outlived,
        its_task_too=task_outlived,
        tries=[system.tries(run) for run in runs],
        logs=[system.last_words(run) for run in runs],
        states_on_the_way=system.watched,
        seconds=time.monotonic() - began,
    )


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_03_the_database_of_both_restarted_in_mid_run(
    system: System, figures: Figures, how: str
) -> None:
    began = time.monotonic()
    system.change()
    runs = [system.trigger(source) for source in SOURCES]
    system.writer("first")
    server = system.airflow.layout.postgres()
    restart(server, how)
    ends = [system.ended(run) for run in runs]
    figures(
        services_that_died=system.restarted,
        states=[run.state for run in ends],
        tries=[system.tries(run) for run in runs],
        logs=[system.last_words(run) for run in runs],
        states_on_the_way=system.watched,
        seconds=time.monotonic() - began,
    )
    for source, run in zip(SOURCES, ends, strict=True):
        if run.state != "success":
            print(system.log(run))
            again = system.ended(system.trigger(source))
            assert again.state == "success", system.log(again)
    system.assert_right()
