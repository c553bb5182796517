"""A small client of Airflow's REST API, version 2, for the launcher and the end-to-end tests.

Apache's generated client (apache-airflow-client 3.3.2) was tried and does each call; login, errors, waiting
and logs would stay ours, so it saves 50 lines for 446 files and 0.9 CPU-seconds at each start.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, TypeAlias
from urllib.parse import quote

import httpx

from tidemark.domain.errors import PermanentError, TransientError

Json: TypeAlias = dict[str, Any]
"""An object of the API, as it came."""

_POLL_SECONDS = 0.5
_PAGE = 100


@dataclass(frozen=True, slots=True)
class DagRun:
    """A run. Times are aware; ``seconds`` is how long it took, None while it runs."""

    dag_id: str
    run_id: str
    state: str
    logical_date: datetime | None
    data_interval_start: datetime | None
    data_interval_end: datetime | None
    seconds: float | None
    note: str

    @property
    def ended(self) -> bool:
        return self.state in ("success", "failed")

    @property
    def path(self) -> str:
        return f"{_dag_path(self.dag_id)}/dagRuns/{_part(self.run_id)}"


@dataclass(frozen=True, slots=True)
class TaskRun:
    """A task of a run. ``map_index`` is -1 for one that is not mapped; ``state`` "" before it is set."""

    task_id: str
    map_index: int
    state: str
    try_number: int
    seconds: float | None
    note: str

    @property
    def label(self) -> str:
        return self.task_id if self.map_index < 0 else f"{self.task_id}[{self.map_index}]"


class AirflowApi:
    """Calls as one user. Raises ``TransientError`` when the server does not answer (in time), and
    ``PermanentError`` when it refuses, with its own words.
    """

    def __init__(self, base_url: str, username: str, password: str, timeout: float = 30.0) -> None:
        self.base_url = base_url.rstrip("/")
        self._login = {"username": username, "password": password}
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
        return self.send("GET", "/api/v2/monitor/health", token=False)

    def warm(self) -> None:
        """Have the API for tasks built, which its first caller would wait several seconds for."""
        self.send("GET", "/execution/health", token=False)

    def wait_for_dag(self, dag_id: str, timeout: float = 60.0) -> None:
        """Wait until the DAG is known, which the dag-processor sees to.

        Raises ``PermanentError`` with the import errors when it does not come.
        """
        deadline = time.monotonic() + timeout
        while self.find(_dag_path(dag_id)) is None:
            if time.monotonic() > deadline:
                broken = "; ".join(self.import_errors()) or "no file of the DAG folder makes it"
                raise PermanentError(
                    f"Airflow does not know the DAG {dag_id}: {broken}.",
                    "Check `include/sources.yaml` and the DAG files.",
                )
            time.sleep(_POLL_SECONDS)

    def import_errors(self) -> list[str]:
        """One line per DAG file that cannot be imported."""
        errors = self.send("GET", "/api/v2/importErrors")["import_errors"]
        return [
            f"{e['filename']}: {str(e['stack_trace']).strip().splitlines()[-1]}" for e in errors
        ]

    def is_paused(self, dag_id: str) -> bool:
        return bool(self.send("GET", _dag_path(dag_id))["is_paused"])

    def pause(self, dag_id: str, *, paused: bool = True) -> None:
        self.send("PATCH", _dag_path(dag_id), json={"is_paused": paused})

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
        return _dag_run(self.send("POST", f"{_dag_path(dag_id)}/dagRuns", json=body))

    def run(self, dag_id: str, run_id: str) -> DagRun:
        return _dag_run(self.send("GET", f"{_dag_path(dag_id)}/dagRuns/{_part(run_id)}"))

    def runs(self, dag_id: str) -> list[DagRun]:
        """All runs of a DAG, latest first."""
        path = f"{_dag_path(dag_id)}/dagRuns?order_by=-run_after&"
        return [_dag_run(run) for run in self._pages(path, "dag_runs")]

    def fail_unfinished(self, dag_id: str) -> None:
        """Mark the runs that are queued or running as failed, which ends their tasks."""
        for run in self.runs(dag_id):
            if not run.ended:
                self.send("PATCH", run.path, json={"state": "failed"})

    def tasks(self, run: DagRun) -> list[TaskRun]:
        return [
            TaskRun(
                task_id=task["task_id"],
                map_index=task["map_index"],
                state=task["state"] or "",
                try_number=task["try_number"],
                seconds=task["duration"],
                note=task["note"] or "",
            )
            for task in self._pages(f"{run.path}/taskInstances?", "task_instances")
        ]

    def log(self, run: DagRun, task: TaskRun) -> list[str]:
        """The lines of a task's last try."""
        query = f"{max(task.try_number, 1)}?full_content=true&map_index={task.map_index}"
        path = f"{run.path}/taskInstances/{_part(task.task_id)}/logs/{query}"
        return [line for entry in self.send("GET", path)["content"] for line in log_lines(entry)]

    def find(self, path: str) -> Json | None:
        """An object of the API, None when there is none."""
        response = self._call("GET", path, token=True, json=None)
        return None if response.status_code == 404 else self._read(response)

    def send(self, method: str, path: str, *, json: Json | None = None, token: bool = True) -> Json:
        """Make any call of the API; ``path`` with its query."""
        return self._read(self._call(method, path, token=token, json=json))

    def _pages(self, path: str, key: str) -> Iterator[Json]:
        offset = 0
        while True:
            page = self.send("GET", f"{path}limit={_PAGE}&offset={offset}")[key]
            yield from page
            offset += _PAGE
            if len(page) < _PAGE:
                return

    def _call(self, method: str, path: str, *, token: bool, json: Json | None) -> httpx.Response:
        try:
            headers = self._headers() if token else {}
            response = self._http.request(method, path, json=json, headers=headers)
            if response.status_code == 401 and token:
                self._token = None
                response = self._http.request(method, path, json=json, headers=self._headers())
        except httpx.TransportError as error:
            raise TransientError(
                f"Airflow's API at {self.base_url} does not answer: {error}.",
                "Is its api-server running?",
            ) from error
        return response

    def _headers(self) -> dict[str, str]:
        if self._token is None:
            response = self._http.post("/auth/token", json=self._login)
            self._token = str(self._read(response)["access_token"])
        return {"Authorization": f"Bearer {self._token}"}

    def _read(self, response: httpx.Response) -> Json:
        if response.is_success:
            body = response.json() if response.content else {}
            return body if isinstance(body, dict) else {}
        try:
            detail = response.json().get("detail", "")
        except (ValueError, AttributeError):
            detail = response.text
        path = response.request.url.path
        message = f"Airflow's API answered {response.status_code} to {path}: {str(detail)[:500]}."
        if response.status_code >= 500 or response.status_code == 429:
            raise TransientError(message, "Try again; its api-server's log says more.")
        raise PermanentError(message)


def _part(name: str) -> str:
    return quote(name, safe="")


def _dag_path(dag_id: str) -> str:
    return f"/api/v2/dags/{_part(dag_id)}"


def _time(value: str | None) -> datetime | None:
    return datetime.fromisoformat(value) if value else None


def _dag_run(run: Json) -> DagRun:
    start, end = _time(run["start_date"]), _time(run["end_date"])
    return DagRun(
        dag_id=run["dag_id"],
        run_id=run["dag_run_id"],
        state=run["state"],
        logical_date=_time(run["logical_date"]),
        data_interval_start=_time(run["data_interval_start"]),
        data_interval_end=_time(run["data_interval_end"]),
        seconds=(end - start).total_seconds() if start and end else None,
        note=run["note"] or "",
    )


def log_lines(entry: str | Json) -> list[str]:
    """The lines of one entry of a task's log, an exception as its last line."""
    if isinstance(entry, str):
        return entry.splitlines()
    lines = [str(entry.get("event", ""))]
    for error in entry.get("error_detail") or []:
        frames = (error.get("frames") or [])[-3:]
        lines += [f"  {f.get('filename')}:{f.get('lineno')} in {f.get('name')}" for f in frames]
        lines.append(f"{error.get('exc_type', '')}: {error.get('exc_value', '')}")
    return lines
