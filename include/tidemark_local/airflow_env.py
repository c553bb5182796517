"""The environment of the local Airflow's processes: all of its configuration is here."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from tidemark_local.layout import PROJECT, Layout
from tidemark_local.local_secrets import ADMIN, TASKS, LocalSecrets
from tidemark_local.ports import HOST

API_CONNECTION = "tidemark_airflow_api"
"""Airflow connection to this Airflow's own REST API, for tasks that write notes."""


@dataclass(frozen=True, slots=True)
class AirflowOptions:
    """What differs between a run, a development server and a test.

    scheduled: create runs by schedule; False leaves only those that are triggered.
    parallelism: task processes at once.
    """

    dags_folder: Path = PROJECT / "dags"
    plugins_folder: Path = PROJECT / "plugins"
    scheduled: bool = True
    parallelism: int = 4


def airflow_environment(
    layout: Layout,
    secrets: LocalSecrets,
    options: AirflowOptions,
    *,
    port: int,
    database_url: str,
    inherited: Mapping[str, str],
    extra: Mapping[str, str],
) -> dict[str, str]:
    """The whole environment of each service and, through the scheduler, of each task.

    inherited: this process's environment; another Airflow's settings in it are left out, connections
    and variables (``AIRFLOW_CONN_*``, ``AIRFLOW_VAR_*``) kept.
    extra: wins over everything.
    """
    environment = {k: v for k, v in inherited.items() if _is_passed_on(k)}
    environment |= _settings(layout, secrets, options, port, database_url)
    environment |= {
        "AIRFLOW_HOME": str(layout.airflow),
        "TIDEMARK_HOME": str(layout.home),
        f"AIRFLOW_CONN_{API_CONNECTION.upper()}": (
            f"http://{TASKS}:{quote(secrets.tasks_password, safe='')}@{HOST}:{port}"
        ),
        "PYTHONPATH": os.pathsep.join(
            part for part in (str(PROJECT / "include"), inherited.get("PYTHONPATH", "")) if part
        ),
        "PYTHONUNBUFFERED": "1",
        # Spinning OpenMP threads cost four times the CPU where processes share the cores.
        "OMP_WAIT_POLICY": inherited.get("OMP_WAIT_POLICY", "PASSIVE"),
        "DO_NOT_TRACK": "true",
        "UNSTRUCTURED_DISABLE_NOTICE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    for name in ("no_proxy", "NO_PROXY"):
        others = [inherited[name]] if inherited.get(name) else []
        environment[name] = ",".join([*others, HOST, "localhost"])
    # The packaged model needs no hub; a hub's name as model needs one.
    if not inherited.get("TIDEMARK_EMBEDDING_MODEL"):
        environment.setdefault("HF_HUB_OFFLINE", "1")
    if "darwin" in os.uname().sysname.lower():
        # Its system libraries may not be used after a fork without this, and LocalExecutor forks.
        environment["OBJC_DISABLE_INITIALIZE_FORK_SAFETY"] = "YES"
    return environment | dict(extra)


def _is_passed_on(name: str) -> bool:
    if name.startswith(("AIRFLOW_CONN_", "AIRFLOW_VAR_")):
        return True
    return not name.startswith(("AIRFLOW_", "AIRFLOW__"))


def _settings(
    layout: Layout, secrets: LocalSecrets, options: AirflowOptions, port: int, database_url: str
) -> dict[str, str]:
    address = f"http://{HOST}:{port}"
    sections: dict[str, dict[str, str]] = {
        "core": {
            "executor": "LocalExecutor",
            "parallelism": str(options.parallelism),
            "dags_folder": str(options.dags_folder),
            "plugins_folder": str(options.plugins_folder),
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
        "scheduler": {
            "use_job_schedule": str(options.scheduled),
            # With the defaults each short task ends up to five seconds late.
            "scheduler_idle_sleep_time": "0.2",
        },
        "workers": {
            "min_heartbeat_interval": "1",
            # A busy machine may be late; each timeout of the default 5 s costs a retry.
            "execution_api_timeout": "30",
        },
        "dag_processor": {"parsing_processes": "1", "refresh_interval": "30"},
        "logging": {
            "base_log_folder": str(layout.airflow / "logs"),
            "dag_processor_child_process_log_directory": str(
                layout.airflow / "logs" / "dag_processor"
            ),
            "colored_console_log": "False",
        },
    }
    return {
        f"AIRFLOW__{section.upper()}__{key.upper()}": value
        for section, values in sections.items()
        for key, value in values.items()
    }
