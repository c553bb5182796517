"""The local Airflow: its database, api-server, scheduler, dag-processor and triggerer, on loopback."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Self

from sqlalchemy import text

from tidemark.adapters.ledger.engine import Database
from tidemark.domain.errors import PermanentError, TidemarkError, TransientError
from tidemark_local.airflow_api import AirflowApi
from tidemark_local.airflow_env import AirflowOptions, airflow_environment
from tidemark_local.airflow_values import Json
from tidemark_local.layout import PROJECT, Layout
from tidemark_local.local_secrets import ADMIN, LocalSecrets, local_secrets
from tidemark_local.ports import HOST, claim
from tidemark_local.processes import Record

DATABASE = "airflow"
_POLL_SECONDS = 0.2

_TABLE = text(
    "SELECT 1 FROM pg_tables WHERE schemaname = 'public' AND tablename = 'alembic_version'"
)
_REVISION = text("SELECT version_num FROM alembic_version")


@dataclass(frozen=True, slots=True)
class Service:
    """One of Airflow's processes, and how its health is named in the API's answer."""

    name: str
    arguments: tuple[str, ...]
    health: str


SERVICES = (
    Service("api-server", ("api-server",), "metadatabase"),
    # Their log servers listen on all addresses. The api-server reads the same files without them.
    Service("scheduler", ("scheduler", "--skip-serve-logs"), "scheduler"),
    Service("dag-processor", ("dag-processor",), "dag_processor"),
    Service("triggerer", ("triggerer", "--skip-serve-logs"), "triggerer"),
)

Say = Callable[[str], None]


def _silent(text: str) -> None:
    """Say nothing."""


class LocalAirflow:
    """An Airflow of this home, started and stopped here.

    home: the TIDEMARK_HOME of the services and of the tasks they run.
    dags_folder: the project's when None.
    port: of the UI and API on loopback; 0 picks a free one.
    env: environment of the services on top of this process's; it wins.
    scheduled: create runs by schedule; False leaves only those that are triggered.
    triggerer: start the triggerer, which deferred tasks need.
    guarded: stop everything when this process dies, however it dies.
    say: told in a line what is being waited for.
    """

    def __init__(
        self,
        home: Path,
        dags_folder: Path | None = None,
        port: int = 0,
        env: Mapping[str, str] | None = None,
        *,
        scheduled: bool = True,
        triggerer: bool = True,
        guarded: bool = True,
        parallelism: int = 4,
        say: Say = _silent,
    ) -> None:
        self.layout = Layout(home.expanduser().resolve())
        self.port = port
        self._env = dict(env or {})
        options = AirflowOptions(scheduled=scheduled, parallelism=parallelism)
        self._options = replace(options, dags_folder=dags_folder) if dags_folder else options
        self._services = [s for s in SERVICES if triggerer or s.name != "triggerer"]
        self._guarded = guarded
        self._say = say
        self._processes = self.layout.processes()
        self._postgres = self.layout.postgres()
        self._owns_postgres = False
        self._guard: subprocess.Popen[bytes] | None = None
        self._apis: list[AirflowApi] = []

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Address of the UI; known once started."""
        return f"http://{HOST}:{self.port}"

    @property
    def secrets(self) -> LocalSecrets:
        return local_secrets(self.layout)

    def start(self, timeout: float = 180.0) -> None:
        """Start everything and wait until it is healthy; on a failure stop what was started.

        Raises ``PermanentError`` when the port is taken, when this home's Airflow runs already, or
        when a service ends at its start; ``TransientError`` when they take longer than ``timeout`` s.
        """
        self.layout.make()
        if self._processes.alive():
            raise PermanentError(f"Airflow runs already in {self.layout.home}.", "`make down`")
        # Of a launcher that was killed: records of the dead, children without parents.
        self._processes.stop(grace=5.0)
        self.port = claim(self.port, "Airflow's UI", "PORT")
        self._owns_postgres = not self._postgres.is_running()
        try:
            if self._guarded:
                self._start_guard()
            self._start(timeout)
        except BaseException:
            self.stop(grace=5.0)
            raise

    def _start(self, timeout: float) -> None:
        self._say("database")
        self._postgres.ensure_running()
        environment = self.environment()
        self._migrate(environment)
        self._say("services")
        began = datetime.now(UTC)
        for service in self._services:
            command = [sys.executable, "-m", "airflow", *service.arguments]
            log = self.layout.logs / f"{service.name}.log"
            self._processes.spawn(service.name, command, environment, log)
        self.layout.state.write_text(json.dumps({"port": self.port}), encoding="utf-8")
        self._wait_until_healthy(began, timeout)

    def environment(self) -> dict[str, str]:
        """What the services run under; also for `airflow` commands beside them."""
        return airflow_environment(
            self.layout,
            self.secrets,
            self._options,
            port=self.port,
            database_url=self._postgres.url(DATABASE),
            inherited=os.environ,
            extra=self._env,
        )

    def api(self) -> AirflowApi:
        """A client that may do everything; closed by ``stop``."""
        api = AirflowApi(self.url, ADMIN, self.secrets.admin_password)
        self._apis.append(api)
        return api

    def spawn(self, name: str, command: Sequence[str]) -> Record:
        """Start a process of the project beside the services; it is stopped with them."""
        log = self.layout.logs / f"{name}.log"
        return self._processes.spawn(name, command, self.environment(), log)

    def spawned(self, name: str) -> Record | None:
        """A process of this home that is alive."""
        return next((r for r in self._processes.alive() if r.name == name), None)

    def release(self) -> None:
        """Leave the services to run on when this process ends (``make up``)."""
        for api in self._apis:
            api.close()

    def stop_services(self, grace: float = 10.0) -> None:
        """Stop Airflow's processes; the database server stays."""
        self.release()
        self._processes.stop(grace)
        self.layout.state.unlink(missing_ok=True)

    def stop(self, grace: float = 10.0) -> None:
        """Stop what was started here, the database server if it was started here, and the guard."""
        self.stop_services(grace)
        if self._owns_postgres:
            self._postgres.stop()
        if self._guard is not None and self._guard.stdin is not None:
            self._guard.stdin.close()
            self._guard.wait(timeout=30.0)
            self._guard = None

    def _start_guard(self) -> None:
        command = [sys.executable, "-m", "tidemark_local.guard", str(self.layout.home)]
        with (self.layout.logs / "guard.log").open("ab") as log:
            self._guard = subprocess.Popen(  # noqa: S603 - our own module
                [*command, *(["--postgres"] if self._owns_postgres else [])],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": str(PROJECT / "include")},
                # Ctrl-C is for the launcher, which stops everything in order.
                start_new_session=True,
            )

    def _migrate(self, environment: Mapping[str, str]) -> None:
        """Bring Airflow's database up to date; the command takes ten seconds, so only when needed."""
        wanted = f"airflow {version('apache-airflow-core')}"
        if self._stamp() == f"{wanted}, schema {self._schema()}":
            return
        self._say("database schema (once)")
        log = self.layout.logs / "migrate.log"
        with log.open("ab") as output:
            done = subprocess.run(
                [sys.executable, "-m", "airflow", "db", "migrate"],
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if done.returncode != 0:
            raise PermanentError("`airflow db migrate` failed.", f"Its log is {log}.")
        self.layout.migrated.write_text(f"{wanted}, schema {self._schema()}", encoding="utf-8")

    def _stamp(self) -> str:
        try:
            return self.layout.migrated.read_text(encoding="utf-8")
        except OSError:
            return ""

    def _schema(self) -> str:
        database = Database(self._postgres.url(DATABASE))
        try:
            rows = database.rows(_TABLE) and database.rows(_REVISION)
        finally:
            database.close()
        return str(rows[0][0]) if rows else "none"

    def _wait_until_healthy(self, began: datetime, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        api = self.api()
        waiting = {service.health: service.name for service in self._services}
        warm = False
        while waiting:
            for ended in self._processes.ended():
                raise PermanentError(
                    f"Airflow's {ended.name} ended at its start: {_last_word(ended)}",
                    f"Its log is {ended.log}.",
                )
            healthy = _healthy(api, began)
            if healthy and not warm:
                # The other services are still starting: this costs no time.
                warm = _warm(api)
            waiting = {key: name for key, name in waiting.items() if key not in healthy}
            if waiting and time.monotonic() > deadline:
                raise TransientError(
                    f"Not ready after {timeout:.0f} s: {', '.join(waiting.values())}.",
                    f"Their logs are in {self.layout.logs}.",
                )
            if waiting:
                time.sleep(_POLL_SECONDS)


def running(home: Path) -> LocalAirflow | None:
    """The Airflow that runs in a home, to be used or stopped; None when none does."""
    airflow = LocalAirflow(home, guarded=False)
    alive = {record.name for record in airflow.layout.processes().alive()}
    try:
        state = json.loads(airflow.layout.state.read_text(encoding="utf-8"))
        airflow.port = int(state["port"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return airflow if "api-server" in alive else None


def _healthy(api: AirflowApi, began: datetime) -> set[str]:
    """Components that have given a sign of life since ``began``."""
    try:
        answer = api.health()
    except TidemarkError:
        return set()
    return {name for name, said in answer.items() if _is_healthy(said, began)}


def _warm(api: AirflowApi) -> bool:
    try:
        api.warm()
    except TransientError:
        return False
    return True


def _is_healthy(said: Json | None, began: datetime) -> bool:
    if not said or said.get("status") != "healthy":
        return False
    beats = [value for key, value in said.items() if key.endswith("_heartbeat")]
    # The heartbeat of the last run's process may look fresh for half a minute.
    return all(beat and datetime.fromisoformat(beat) >= began for beat in beats)


def _last_word(record: Record) -> str:
    lines = [line.strip() for line in record.tail() if line.strip()]
    return lines[-1] if lines else "it said nothing."
