"""The local Airflow: its database, api-server, scheduler, dag-processor and triggerer, on loopback.

`airflow standalone` in a process group of its own was tried: its log servers listen on all addresses, and a
task, put into another group by Airflow, outlives the stop. It is ready in 63 s where these take 36 s.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from tidemark.domain.errors import PermanentError, TidemarkError, TransientError
from tidemark_local.airflow_api import AirflowApi, Json
from tidemark_local.layout import ADMIN, PROJECT, TASKS, Layout, LocalSecrets
from tidemark_local.processes import HOST, Record, claim

DATABASE = "airflow"
API_CONNECTION = "tidemark_airflow_api"
"""Airflow connection to this Airflow's own REST API, for tasks that write notes."""

_POLL_SECONDS = 0.2


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


def airflow_environment(
    layout: Layout,
    *,
    port: int,
    database_url: str,
    inherited: Mapping[str, str],
    extra: Mapping[str, str],
    dags_folder: Path = PROJECT / "dags",
    scheduled: bool = True,
    parallelism: int = 4,
) -> dict[str, str]:
    """The whole environment of each service and, through the scheduler, of each task: all of the local
    Airflow's configuration is here.

    inherited: this process's environment; another Airflow's settings in it are left out, connections
    and variables (``AIRFLOW_CONN_*``, ``AIRFLOW_VAR_*``) kept.
    extra: wins over everything.
    scheduled: create runs by schedule; False leaves only those that are triggered.
    parallelism: task processes at once.
    """
    secrets = layout.secrets()
    address = f"http://{HOST}:{port}"
    logs = layout.airflow / "logs"
    sections: dict[str, dict[str, str]] = {
        "core": {
            "executor": "LocalExecutor",
            "parallelism": str(parallelism),
            "dags_folder": str(dags_folder),
            "plugins_folder": str(PROJECT / "plugins"),
            "load_examples": "False",
            "fernet_key": secrets.fernet_key,
            "execution_api_server_url": f"{address}/execution/",
            "simple_auth_manager_users": f"{ADMIN}:admin,{TASKS}:user",
            "simple_auth_manager_passwords_file": str(layout.passwords),
            "simple_auth_manager_all_admins": "False",
            # The full name is looked up in DNS, which takes seconds on some laptops.
            "hostname_callable": "socket.gethostname",
        },
        # psycopg serves both; without the second, Airflow would look for asyncpg.
        "database": {"sql_alchemy_conn": database_url, "sql_alchemy_conn_async": database_url},
        "api": {
            "host": HOST,
            "port": str(port),
            "base_url": address,
            "secret_key": secrets.api_secret_key,
            "workers": "1",
        },
        "api_auth": {"jwt_secret": secrets.jwt_secret},
        # With the default idle time each short task ends up to five seconds late.
        "scheduler": {"use_job_schedule": str(scheduled), "scheduler_idle_sleep_time": "0.2"},
        # A busy machine may be late; each timeout of the default 5 s costs a retry.
        "workers": {"min_heartbeat_interval": "1", "execution_api_timeout": "30"},
        "dag_processor": {"parsing_processes": "1", "refresh_interval": "30"},
        "logging": {
            "base_log_folder": str(logs),
            "dag_processor_child_process_log_directory": str(logs / "dag_processor"),
            "colored_console_log": "False",
        },
    }
    environment = {k: v for k, v in inherited.items() if _is_passed_on(k)}
    environment |= {
        f"AIRFLOW__{section.upper()}__{key.upper()}": value
        for section, values in sections.items()
        for key, value in values.items()
    }
    password = quote(secrets.tasks_password, safe="")
    paths = [str(PROJECT / "include"), inherited.get("PYTHONPATH", "")]
    environment |= {
        "AIRFLOW_HOME": str(layout.airflow),
        "TIDEMARK_HOME": str(layout.home),
        f"AIRFLOW_CONN_{API_CONNECTION.upper()}": f"http://{TASKS}:{password}@{HOST}:{port}",
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONUNBUFFERED": "1",
        # Spinning OpenMP threads cost four times the CPU where processes share the cores.
        "OMP_WAIT_POLICY": inherited.get("OMP_WAIT_POLICY", "PASSIVE"),
        "DO_NOT_TRACK": "true",
        "UNSTRUCTURED_DISABLE_NOTICE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    for name in ("no_proxy", "NO_PROXY"):
        environment[name] = ",".join(filter(None, [inherited.get(name), HOST, "localhost"]))
    # The packaged model needs no hub; a hub's name as model needs one.
    if not inherited.get("TIDEMARK_EMBEDDING_MODEL"):
        environment.setdefault("HF_HUB_OFFLINE", "1")
    if sys.platform == "darwin":
        # Its system libraries may not be used after a fork without this, and LocalExecutor forks.
        environment["OBJC_DISABLE_INITIALIZE_FORK_SAFETY"] = "YES"
    return environment | dict(extra)


def _is_passed_on(name: str) -> bool:
    return name.startswith(("AIRFLOW_CONN_", "AIRFLOW_VAR_")) or not name.startswith("AIRFLOW_")


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
        self._dags_folder = dags_folder or PROJECT / "dags"
        self._scheduled = scheduled
        self._parallelism = parallelism
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
        return self.layout.secrets()

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
            port=self.port,
            database_url=self._postgres.url(DATABASE),
            inherited=os.environ,
            extra=self._env,
            dags_folder=self._dags_folder,
            scheduled=self._scheduled,
            parallelism=self._parallelism,
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
        command = [sys.executable, "-m", "tidemark_local.processes", str(self.layout.home)]
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
        stamp = self.layout.migrated
        release = f"airflow {version('apache-airflow-core')}"
        migrated = stamp.read_text(encoding="utf-8") if stamp.exists() else ""
        if migrated == f"{release}, schema {self._schema()}":
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
        stamp.write_text(f"{release}, schema {self._schema()}", encoding="utf-8")

    def _schema(self) -> str:
        import psycopg

        with psycopg.connect(self._postgres.url(DATABASE, driver=None)) as connection:
            try:
                row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            except psycopg.errors.UndefinedTable:
                row = None
        return str(row[0]) if row else "none"

    def _wait_until_healthy(self, began: datetime, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        api = self.api()
        pending = {service.health: service.name for service in self._services}
        warm = False
        while pending:
            for ended in self._processes.ended():
                raise PermanentError(
                    f"Airflow's {ended.name} ended at its start: {_last_line(ended)}",
                    f"Its log is {ended.log}.",
                )
            healthy = _healthy(api, began)
            if healthy and not warm:
                # The other services are still starting: this costs no time.
                warm = _is_warm(api)
            pending = {key: name for key, name in pending.items() if key not in healthy}
            if pending and time.monotonic() > deadline:
                raise TransientError(
                    f"Not ready after {timeout:.0f} s: {', '.join(pending.values())}.",
                    f"Their logs are in {self.layout.logs}.",
                )
            if pending:
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
        components = api.health()
    except TidemarkError:
        return set()
    return {name for name, component in components.items() if _is_healthy(component, began)}


def _is_healthy(component: Json | None, began: datetime) -> bool:
    if not component or component.get("status") != "healthy":
        return False
    beats = [value for key, value in component.items() if key.endswith("_heartbeat")]
    # The heartbeat of the last run's process may look fresh for half a minute.
    return all(beat and datetime.fromisoformat(beat) >= began for beat in beats)


def _is_warm(api: AirflowApi) -> bool:
    try:
        api.warm()
    except TransientError:
        return False
    return True


def _last_line(record: Record) -> str:
    lines = [line.strip() for line in record.tail() if line.strip()]
    return lines[-1] if lines else "it said nothing."
