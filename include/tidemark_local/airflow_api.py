"""A small client of Airflow's REST API, version 2."""

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from types import TracebackType
from typing import Self
from urllib.parse import quote

import httpx

from tidemark.domain.errors import PermanentError, TransientError
from tidemark_local.airflow_values import (
    Backfill,
    DagRun,
    Json,
    TaskRun,
    backfill,
    dag_run,
    log_lines,
    task_run,
)

_POLL_SECONDS = 0.5
_PAGE = 100


class AirflowApi:
    """Calls as one user. Raises ``TransientError`` when the server does not answer (in time), and
    ``PermanentError`` when it refuses, with its own words.
    """

    def __init__(self, base_url: str, username: str, password: str, timeout: float = 30.0) -> None:
        self.base_url = base_url.rstrip("/")
        self._username = username
        self._password = password
        # Loopback or a named server: a proxy of the environment is not meant for it.
        self._http = httpx.Client(base_url=self.base_url, timeout=timeout, trust_env=False)
        self._token: str | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def health(self) -> Json:
        """What each component says of itself; needs no login."""
        return self._send("GET", "/api/v2/monitor/health", token=False)

    def warm(self) -> None:
        """Have the API for tasks built, which its first caller would wait several seconds for."""
        self._send("GET", "/execution/health", token=False)

    def wait_for_dag(self, dag_id: str, timeout: float = 60.0) -> None:
        """Wait until the DAG is known, which the dag-processor sees to.

        Raises ``PermanentError`` with the import errors when it does not come.
        """
        deadline = time.monotonic() + timeout
        while self._find(f"/api/v2/dags/{_part(dag_id)}") is None:
            if time.monotonic() > deadline:
                broken = "; ".join(self.import_errors()) or "no file of the DAG folder makes it"
                raise PermanentError(
                    f"Airflow does not know the DAG {dag_id}: {broken}.",
                    "Check `include/sources.yaml` and the DAG files.",
                )
            time.sleep(_POLL_SECONDS)

    def import_errors(self) -> list[str]:
        """One line per DAG file that cannot be imported."""
        found = self._send("GET", "/api/v2/importErrors")["import_errors"]
        return [f"{e['filename']}: {str(e['stack_trace']).strip().splitlines()[-1]}" for e in found]

    def is_paused(self, dag_id: str) -> bool:
        return bool(self._send("GET", f"/api/v2/dags/{_part(dag_id)}")["is_paused"])

    def pause(self, dag_id: str, *, paused: bool = True) -> None:
        self._send("PATCH", f"/api/v2/dags/{_part(dag_id)}", json={"is_paused": paused})

    def unpause(self, dag_id: str) -> None:
        self.pause(dag_id, paused=False)

    def trigger(
        self,
        dag_id: str,
        params: Mapping[str, object] | None = None,
        logical_date: datetime | None = None,
        note: str | None = None,
    ) -> DagRun:
        """Start a run. It gets a logical date (now, if none is given) and so a data interval."""
        body = {
            "logical_date": (logical_date or datetime.now(UTC)).isoformat(),
            "conf": dict(params or {}),
            "note": note,
        }
        return dag_run(self._send("POST", f"/api/v2/dags/{_part(dag_id)}/dagRuns", json=body))

    def run(self, dag_id: str, run_id: str) -> DagRun:
        return dag_run(self._send("GET", _run_path(dag_id, run_id)))

    def runs(self, dag_id: str) -> list[DagRun]:
        """All runs of a DAG, latest first."""
        path = f"/api/v2/dags/{_part(dag_id)}/dagRuns?order_by=-run_after&"
        return [dag_run(found) for found in self._pages(path, "dag_runs")]

    def fail_unfinished(self, dag_id: str) -> None:
        """Mark the runs that are queued or running as failed, which ends their tasks."""
        for run in self.runs(dag_id):
            if not run.ended:
                self._send("PATCH", _run_path(dag_id, run.run_id), json={"state": "failed"})

    def tasks(self, dag_id: str, run_id: str) -> list[TaskRun]:
        path = f"{_run_path(dag_id, run_id)}/taskInstances?"
        return [task_run(found) for found in self._pages(path, "task_instances")]

    def wait(
        self,
        run: DagRun,
        timeout: float = 3600.0,
        progress: Callable[[DagRun, list[TaskRun]], None] | None = None,
    ) -> DagRun:
        """Wait for a run's end, telling ``progress`` of its tasks meanwhile.

        Raises ``TransientError`` when it takes longer than ``timeout`` seconds.
        """
        deadline = time.monotonic() + timeout
        while True:
            now = self.run(run.dag_id, run.run_id)
            if progress is not None:
                progress(now, self.tasks(run.dag_id, run.run_id))
            if now.ended:
                return now
            if time.monotonic() > deadline:
                raise TransientError(
                    f"The run {run.run_id} of {run.dag_id} is {now.state} after {timeout:.0f} s.",
                    "Look at its tasks in the UI.",
                )
            time.sleep(_POLL_SECONDS)

    def log(self, run: DagRun, task: TaskRun) -> list[str]:
        """The lines of a task's last try."""
        path = f"{_run_path(run.dag_id, run.run_id)}/taskInstances/{_part(task.task_id)}/logs/"
        query = f"{max(task.try_number, 1)}?full_content=true&map_index={task.map_index}"
        content = self._send("GET", path + query)["content"]
        return [line for entry in content for line in log_lines(entry)]

    def set_run_note(self, dag_id: str, run_id: str, note: str) -> None:
        """A note is shown beside the run in the UI; at most 1,000 characters."""
        self._send("PATCH", _run_path(dag_id, run_id), json={"note": note[:1000]})

    def set_task_note(
        self, dag_id: str, run_id: str, task_id: str, note: str, map_index: int = -1
    ) -> None:
        path = f"{_run_path(dag_id, run_id)}/taskInstances/{_part(task_id)}"
        mapped = "" if map_index < 0 else f"/{map_index}"
        self._send("PATCH", path + mapped, json={"note": note[:1000]})

    def clear(self, dag_id: str, run_id: str) -> None:
        """Run all tasks of a run again."""
        body = {"dry_run": False, "only_failed": False}
        self._send("POST", f"{_run_path(dag_id, run_id)}/clear", json=body)

    def question(self, run: DagRun, task_id: str) -> Json | None:
        """What a task asks a person (its subject, body and options), None while it asks nothing."""
        return self._find(f"{_run_path(run.dag_id, run.run_id)}{_question_path(task_id)}")

    def answer(self, run: DagRun, task_id: str, option: str) -> None:
        """Answer a task's question with one of its options."""
        path = f"{_run_path(run.dag_id, run.run_id)}{_question_path(task_id)}"
        self._send("PATCH", path, json={"chosen_options": [option], "params_input": {}})

    def create_backfill(
        self,
        dag_id: str,
        start: datetime,
        end: datetime,
        reprocess: str = "none",
        params: Mapping[str, object] | None = None,
    ) -> Backfill:
        """Run the dates of [start, end]; ``reprocess`` is "none", "completed" or "failed"."""
        body = {
            "dag_id": dag_id,
            "from_date": start.isoformat(),
            "to_date": end.isoformat(),
            "reprocess_behavior": reprocess,
            "max_active_runs": 1,
            "dag_run_conf": dict(params or {}),
        }
        return backfill(self._send("POST", "/api/v2/backfills", json=body))

    def wait_backfill(self, started: Backfill, timeout: float = 3600.0) -> Backfill:
        """Wait until a backfill has run. Raises ``TransientError`` when that takes too long."""
        deadline = time.monotonic() + timeout
        while True:
            now = backfill(self._send("GET", f"/api/v2/backfills/{started.backfill_id}"))
            if now.completed:
                return now
            if time.monotonic() > deadline:
                raise TransientError(
                    f"The backfill of {started.dag_id} is not done after {timeout:.0f} s.",
                    "Look at its runs in the UI.",
                )
            time.sleep(_POLL_SECONDS)

    def _pages(self, path: str, key: str) -> Iterator[Json]:
        offset = 0
        while True:
            page = self._send("GET", f"{path}limit={_PAGE}&offset={offset}")[key]
            yield from page
            offset += _PAGE
            if len(page) < _PAGE:
                return

    def _find(self, path: str) -> Json | None:
        answer = self._call("GET", path, token=True, json=None)
        return None if answer.status_code == 404 else self._read(answer)

    def _send(
        self, method: str, path: str, *, json: Json | None = None, token: bool = True
    ) -> Json:
        return self._read(self._call(method, path, token=token, json=json))

    def _call(self, method: str, path: str, *, token: bool, json: Json | None) -> httpx.Response:
        try:
            answer = self._http.request(method, path, json=json, headers=self._headers(token=token))
            if answer.status_code == 401 and token:
                self._token = None
                headers = self._headers(token=True)
                answer = self._http.request(method, path, json=json, headers=headers)
        except httpx.TransportError as error:
            raise TransientError(
                f"Airflow's API at {self.base_url} does not answer: {error}.",
                "Is its api-server running?",
            ) from error
        return answer

    def _headers(self, *, token: bool) -> dict[str, str]:
        if not token:
            return {}
        if self._token is None:
            login = {"username": self._username, "password": self._password}
            answer = self._http.post("/auth/token", json=login)
            self._token = str(self._read(answer)["access_token"])
        return {"Authorization": f"Bearer {self._token}"}

    def _read(self, answer: httpx.Response) -> Json:
        if answer.is_success:
            body = answer.json() if answer.content else {}
            return body if isinstance(body, dict) else {}
        path = answer.request.url.path
        message = f"Airflow's API answered {answer.status_code} to {path}: {_reason(answer)}"
        if answer.status_code >= 500 or answer.status_code == 429:
            raise TransientError(message, "Try again; its api-server's log says more.")
        raise PermanentError(message)


def _reason(answer: httpx.Response) -> str:
    try:
        detail = answer.json().get("detail", "")
    except (ValueError, AttributeError):
        detail = answer.text
    return f"{str(detail)[:500]}."


def _part(name: str) -> str:
    return quote(name, safe="")


def _run_path(dag_id: str, run_id: str) -> str:
    return f"/api/v2/dags/{_part(dag_id)}/dagRuns/{_part(run_id)}"


def _question_path(task_id: str) -> str:
    return f"/taskInstances/{_part(task_id)}/-1/hitlDetails"
