"""Notes on runs and tasks in Airflow's UI, through its own REST API.

A task may not touch Airflow's database, so the API is asked, as the user of the Connection
``tidemark_airflow_api``. Without that Connection there are no notes; the logs and the ledger have it all.
"""

import logging
from urllib.parse import quote

import httpx
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowNotFoundException

log = logging.getLogger(__name__)

TIMEOUT = 5.0
LONGEST = 1_000
"""Characters Airflow keeps of a note."""


def note_run(dag_id: str, run_id: str, text: str) -> None:
    """Set a DAG run's note."""
    _patch(f"dags/{quote(dag_id, safe='')}/dagRuns/{quote(run_id, safe='')}", text)


def note_task(dag_id: str, run_id: str, task_id: str, map_index: int, text: str) -> None:
    """Set a task instance's note."""
    path = (
        f"dags/{quote(dag_id, safe='')}/dagRuns/{quote(run_id, safe='')}"
        f"/taskInstances/{quote(task_id, safe='')}"
    )
    _patch(path if map_index < 0 else f"{path}/{map_index}", text)


def _patch(path: str, text: str) -> None:
    try:
        connection = Connection.get("tidemark_airflow_api")
    except AirflowNotFoundException:
        return
    scheme = connection.schema or "http"
    base = f"{scheme}://{connection.host}:{connection.port or 8080}"
    try:
        with httpx.Client(base_url=base, timeout=TIMEOUT) as client:
            token = client.post(
                "/auth/token",
                json={"username": connection.login, "password": connection.password},
            )
            token.raise_for_status()
            answer = client.patch(
                f"/api/v2/{path}",
                params={"update_mask": "note"},
                json={"note": text[:LONGEST]},
                headers={"Authorization": f"Bearer {token.json()['access_token']}"},
            )
            answer.raise_for_status()
    except (httpx.HTTPError, ValueError, KeyError) as error:
        # A note is a courtesy: the run must not fail for want of one.
        log.warning(
            "The note could not be set (%s); the summary is in this log.", type(error).__name__
        )
