"""What a task is told by Airflow, as the stages want it, and what it tells Airflow of itself."""

import hashlib
import logging
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote

import httpx
from airflow.sdk import Connection, get_current_context
from airflow.sdk.exceptions import AirflowNotFoundException

from tidemark.config.settings import Settings
from tidemark.domain.connections import Credentials
from tidemark.domain.errors import ConfigurationError
from tidemark.stages.job import Dependencies, Job
from tidemark.wiring import Container

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunContext:
    """One DAG run, as its params and its data interval describe it.

    run_id: Tidemark's own, made of the source and Airflow's run id, safe as a folder's name.
    interval: set only for a backfill, [start, end).
    approved: whoever started the run wants it applied however much changes.
    accept: URIs whose doubtful new version is to be believed; "*" for all.
    """

    source: str
    dag_id: str
    airflow_run_id: str
    run_id: str
    trigger: str
    force: bool
    limit: int | None
    dry_run: bool
    note: str
    interval: tuple[datetime, datetime] | None
    approved: bool = False
    accept: tuple[str, ...] = ()


def current_run(source: str) -> RunContext:
    """Read the running task's context."""
    context: Mapping[str, Any] = get_current_context()
    dag_run, params = context["dag_run"], context["params"]
    kind = str(getattr(dag_run.run_type, "value", dag_run.run_type))
    backfill = kind == "backfill"
    return RunContext(
        source=source,
        dag_id=dag_run.dag_id,
        airflow_run_id=dag_run.run_id,
        run_id=tidemark_run_id(source, dag_run.run_id),
        trigger=f"airflow:{kind}",
        force=bool(params.get("force")) or backfill,
        limit=params.get("limit"),
        dry_run=bool(params.get("dry_run")),
        note=params.get("note") or "",
        interval=(dag_run.data_interval_start, dag_run.data_interval_end) if backfill else None,
        approved=bool(params.get("approved")),
        accept=tuple(params.get("accept") or ()),
    )


def tidemark_run_id(source: str, airflow_run_id: str) -> str:
    """A folder-safe id; a short hash keeps ids apart that differ only in replaced characters."""
    digest = hashlib.sha256(airflow_run_id.encode()).hexdigest()[:6]
    safe = re.sub(r"[^A-Za-z0-9_.-]+", "-", airflow_run_id)[:120]
    return f"{source}__{safe}__{digest}"


def open_container() -> Container:
    """The tools, with the stores' addresses from Airflow Connections where the environment names none.

    Connections: ``tidemark_ledger`` (Postgres) and ``tidemark_qdrant`` (http; its password is the API key).
    """
    settings = Settings()
    found: dict[str, Any] = {}
    if settings.ledger_url is None and (ledger := _connection("tidemark_ledger")):
        found["ledger_url"] = ledger.get_uri().replace("postgres://", "postgresql://", 1)
    if settings.qdrant_url is None and (qdrant := _connection("tidemark_qdrant")):
        port = f":{qdrant.port}" if qdrant.port else ""
        found["qdrant_url"] = f"{qdrant.schema or 'http'}://{qdrant.host}{port}"
        found["qdrant_api_key"] = qdrant.password
    return Container(Settings(**found) if found else settings, AirflowConnections())


class AirflowConnections:
    """Credentials of sources, from Airflow Connections (a ``CredentialStore``)."""

    def get(self, name: str) -> Credentials:
        """Raises ``ConfigurationError`` when there is none of this name."""
        found = _connection(name)
        if found is None:
            raise ConfigurationError(
                f"There is no connection {name!r}.", "Make it in Airflow: Admin > Connections."
            )
        return Credentials(
            name,
            found.conn_type or "",
            found.login or "",
            found.password or "",
            found.host or "",
            found.schema or "",
            found.port,
            found.extra_dejson,
        )


def _connection(conn_id: str) -> Connection | None:
    try:
        connection: Connection = Connection.get(conn_id)
    except AirflowNotFoundException:
        return None
    return connection


def job_and_deps(container: Container, run: RunContext) -> tuple[Job, Dependencies]:
    """What the stages of this run are given; a backfill takes its documents from the ledger."""
    declared = container.declarations.source(run.source)
    job = container.job(
        declared,
        run.run_id,
        force=run.force,
        limit=run.limit,
        approved=run.approved,
        accept=run.accept,
        dry_run=run.dry_run,
    )
    deps = container.deps(declared, LogProgress(run.source))
    if run.interval is not None:
        from tidemark.pipeline import backfill

        job, deps = backfill(job, deps, *run.interval)
    return job, deps


class LogProgress:
    """Progress as log lines, one every so often."""

    def __init__(self, source: str, every_seconds: float = 10.0) -> None:
        self._source = source
        self._every = every_seconds
        self._stage = ""
        self._total: int | None = None
        self._done = 0
        self._last = time.monotonic()

    def stage(self, name: str, total: int | None) -> None:
        self._stage, self._total, self._done = name, total, 0

    def advance(self, count: int = 1, detail: str = "") -> None:
        self._done += count
        if time.monotonic() - self._last < self._every:
            return
        self._last = time.monotonic()
        of = f" of {self._total}" if self._total is not None else ""
        log.info(
            "%s: %s, %d%s documents so far (%s)", self._source, self._stage, self._done, of, detail
        )


# Notes on runs and tasks in Airflow's UI, through its own REST API: a task may not touch Airflow's database.
# The API is asked as the user of the Connection ``tidemark_airflow_api``; without it there are no notes, and
# the logs and the ledger have it all.

NOTE_TIMEOUT = 5.0
LONGEST_NOTE = 1_000
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
        with httpx.Client(base_url=base, timeout=NOTE_TIMEOUT) as client:
            token = client.post(
                "/auth/token",
                json={"username": connection.login, "password": connection.password},
            )
            token.raise_for_status()
            answer = client.patch(
                f"/api/v2/{path}",
                params={"update_mask": "note"},
                json={"note": text[:LONGEST_NOTE]},
                headers={"Authorization": f"Bearer {token.json()['access_token']}"},
            )
            answer.raise_for_status()
    except (httpx.HTTPError, ValueError, KeyError) as error:
        # A note is a courtesy: the run must not fail for want of one.
        log.warning(
            "The note could not be set (%s); the summary is in this log.", type(error).__name__
        )
