"""What end-to-end tests do with runs through Airflow's REST API, beyond what the launcher needs."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from tidemark_local.airflow_api import AirflowApi, DagRun, Json

T = TypeVar("T")


def wait_until(check: Callable[[], T | None], timeout: float, what: str) -> T:
    """Ask until there is an answer other than None."""
    deadline = time.monotonic() + timeout
    while (result := check()) is None:
        assert time.monotonic() < deadline, f"{what} took longer than {timeout:.0f} s"
        time.sleep(0.5)
    return result


def wait_for_end(api: AirflowApi, run: DagRun, timeout: float) -> DagRun:
    """The run once it has ended."""

    def ended() -> DagRun | None:
        now = api.run(run.dag_id, run.run_id)
        return now if now.ended else None

    return wait_until(ended, timeout, f"the run {run.run_id} of {run.dag_id}")


def clear(api: AirflowApi, run: DagRun) -> None:
    """Run all tasks of a run again."""
    api.send("POST", f"{run.path}/clear", json={"dry_run": False, "only_failed": False})


def set_task_note(api: AirflowApi, run: DagRun, task_id: str, map_index: int, note: str) -> None:
    api.send("PATCH", f"{run.path}/taskInstances/{task_id}/{map_index}", json={"note": note})


def question(api: AirflowApi, run: DagRun, task_id: str) -> Json | None:
    """What a task asks a person (its subject, body and options), None while it asks nothing."""
    return api.find(_question_path(run, task_id))


def answer(api: AirflowApi, run: DagRun, task_id: str, option: str) -> None:
    """Answer a task's question with one of its options."""
    body = {"chosen_options": [option], "params_input": {}}
    api.send("PATCH", _question_path(run, task_id), json=body)


def _question_path(run: DagRun, task_id: str) -> str:
    return f"{run.path}/taskInstances/{task_id}/-1/hitlDetails"


def backfill(
    api: AirflowApi, dag_id: str, start: datetime, end: datetime, reprocess: str, timeout: float
) -> None:
    """Run the dates of [start, end] and wait for them; ``reprocess``: none, completed or failed."""
    body = {
        "dag_id": dag_id,
        "from_date": start.isoformat(),
        "to_date": end.isoformat(),
        "reprocess_behavior": reprocess,
        "max_active_runs": 1,
        "dag_run_conf": {},
    }
    path = f"/api/v2/backfills/{api.send('POST', '/api/v2/backfills', json=body)['id']}"
    wait_until(lambda: api.send("GET", path)["completed_at"], timeout, f"the backfill of {dag_id}")
