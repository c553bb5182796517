"""A real Airflow over folders of documents, and a look at who does what in it."""

import json
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import psutil
import yaml
from soak_corpus import Corpus
from soak_home import postgres_processes
from sqlalchemy import create_engine, text

from tidemark.adapters.services.postgres import EmbeddedPostgres
from tidemark.config.settings import Settings
from tidemark.domain.errors import TransientError
from tidemark.stages.audit.compare import compare_source
from tidemark.wiring import Container
from tidemark_local.airflow_api import AirflowApi, DagRun
from tidemark_local.services import LocalAirflow

QUICK_RECOVERY = {
    # Airflow's own defaults are 300 s, 300 s and 30 s: the same would happen, minutes later.
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "30",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "5",
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "10",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "15",
}
_BUSY = text(
    "SELECT application_name FROM pg_stat_activity WHERE application_name LIKE 'tidemark %process %'"
)
_TASKS = text(
    "SELECT id FROM task_instance WHERE dag_id = :dag AND task_id = 'process' AND state = 'running'"
)
_PROCESS = re.compile(r"process (\d+) on")
_RUN_SECONDS = 600.0
_UNUSUAL = ("up_for_retry", "failed", "upstream_failed")
_SERVICES = {
    "api-server": (),
    "scheduler": ("--skip-serve-logs",),
    "dag-processor": (),
}
_POLL = 0.05


@dataclass
class System:
    """A running Airflow, its sources' documents, and its stores.

    watched: states of tasks on the way that are neither usual nor final. restarted: services that had died.
    """

    airflow: LocalAirflow
    api: AirflowApi
    container: Container
    corpora: Mapping[str, Corpus]
    watched: list[str] = field(default_factory=list)
    restarted: list[str] = field(default_factory=list)

    def change(self) -> None:
        """Change nearly every document, so that a run takes its time; forget what was noted before."""
        self.watched.clear()
        self.restarted.clear()
        for corpus in self.corpora.values():
            corpus.change(share=0.9)

    def trigger(self, source: str) -> DagRun:
        return self.api.trigger(f"index__{source}", {"approved": True})

    def writer(self, source: str) -> psutil.Process:
        """A process that is in the middle of writing documents of a source."""
        ledger = create_engine(self.container.ledger_url)
        airflow = create_engine(self.airflow.layout.postgres().url("airflow"))
        deadline = time.monotonic() + _RUN_SECONDS
        try:
            while time.monotonic() < deadline:
                if self.container.ledger.writes.pending(source):
                    with ledger.connect() as at_ledger, airflow.connect() as at_airflow:
                        names = [str(name) for name in at_ledger.scalars(_BUSY)]
                        tasks = at_airflow.scalars(_TASKS, {"dag": f"index__{source}"})
                        ids = [str(task) for task in tasks]
                    for found in filter(None, map(_PROCESS.search, names)):
                        process = _task_of(int(found[1]), ids)
                        if process is not None:
                            return process
                time.sleep(_POLL)
        finally:
            ledger.dispose()
            airflow.dispose()
        raise AssertionError(f"no process was seen writing {source}")

    def ended(self, run: DagRun) -> DagRun:
        """Wait for a run's end; services that die meanwhile are started again, as a supervisor does."""
        deadline = time.monotonic() + _RUN_SECONDS
        while time.monotonic() < deadline:
            self._restart_dead()
            with suppress(TransientError):
                now = self.api.run(run.dag_id, run.run_id)
                for task in self.api.tasks(run):
                    seen = f"{task.label} {task.state}, try {task.try_number}"
                    if task.state in _UNUSUAL and seen not in self.watched:
                        self.watched.append(seen)
                if now.ended:
                    return now
            time.sleep(1.0)
        raise AssertionError(
            f"{run.dag_id} has not ended after {_RUN_SECONDS:.0f} s: {self.watched}"
        )

    def _restart_dead(self) -> None:
        for name, arguments in _SERVICES.items():
            if self.airflow.spawned(name) is None:
                self.restarted.append(name)
                self.airflow.spawn(name, [sys.executable, "-m", "airflow", name, *arguments])

    def tries(self, run: DagRun) -> int:
        tasks = self.api.tasks(run)
        return max(task.try_number for task in tasks if task.task_id == "process")

    def log(self, run: DagRun, task_id: str = "process") -> str:
        """The end of the logs of a run's task, all tries."""
        folder = self.airflow.layout.airflow / "logs" / f"dag_id={run.dag_id}"
        files = sorted((folder / f"run_id={run.run_id}").rglob("*.log"))
        return "\n".join(
            f"--- {file.parent.name}/{file.name}\n{file.read_text()[-20_000:]}"
            for file in files
            if f"task_id={task_id}" in str(file)
        )

    def last_words(self, run: DagRun, task_id: str = "process") -> list[str]:
        """The last grave line, or the last one, of the log of each try of a task, as its page shows it."""
        said = []
        for block in self.log(run, task_id).split("--- ")[1:]:
            name, *lines = block.splitlines()
            events = [
                json.loads(line) for line in lines if line.startswith("{") and line[-1] == "}"
            ]
            grave = [e for e in events if e.get("level") in ("warning", "error", "critical")]
            told: dict[str, Any] = (grave or events or [{"event": "nothing"}])[-1]
            errors = [str(e.get("exc_value")) for e in told.get("error_detail") or []]
            said.append(f"{name}: {' '.join([str(told['event']), *errors])[:400]}")
        return said

    def service(self, name: str) -> psutil.Process:
        record = self.airflow.spawned(name)
        assert record is not None
        return psutil.Process(record.pid)

    def assert_right(self) -> None:
        """The index is exactly the folders, and the audit finds nothing."""
        findings = compare_source(self.container.ledger, self.container.index, 1)
        assert findings.clean, findings.counts()
        for source, corpus in self.corpora.items():
            points = self.container.index.scan_points(1, {"source": source})
            held = {str(p.payload["source_uri"]).partition("#")[0] for p in points}
            assert held == {document.path.as_uri() for document in corpus.documents}
            assert not self.container.ledger.writes.pending(source)


def _task_of(pid: int, tasks: Sequence[str]) -> psutil.Process | None:
    """The process of this number where it is one of these tasks', which its title names."""
    try:
        process = psutil.Process(pid)
        title = " ".join(process.cmdline())
        return process if any(task in title for task in tasks) else None
    except psutil.Error:
        return None


def is_alive(process: psutil.Process) -> bool:
    """Is it there, and more than a name that nobody has collected?"""
    try:
        return process.is_running() and bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def kill(process: psutil.Process) -> None:
    process.send_signal(signal.SIGKILL)


def eventually(true: Callable[[], object], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL)
    return True


def restart(server: EmbeddedPostgres, how: str) -> None:
    """Take a database server away for some seconds: "stopped" in order, or "killed"."""
    if how == "stopped":
        server.stop()
    else:
        processes = postgres_processes(server)
        for process in processes:
            kill(process)
        psutil.wait_procs(processes, timeout=10)
    time.sleep(3.0)
    server.ensure_running()


@contextmanager
def airflow_over(
    folder: Path, sources: Mapping[str, int], seed: int, **environment: str
) -> Iterator[System]:
    """Start one over so many documents a source; everything is stopped at the end."""
    corpora = {name: Corpus(folder / name, Random(f"{seed} {name}")) for name in sources}
    for name, count in sources.items():
        corpora[name].grow(count, largest=4)
    declared = {name: {"kind": "files", "path": str(folder / name)} for name in sources}
    declarations = folder / "sources.yaml"
    declarations.write_text(yaml.safe_dump({"sources": declared}))
    home = folder / "home"
    env = {
        "TIDEMARK_SOURCES_FILE": str(declarations),
        "TIDEMARK_BATCH_DOCUMENTS": "100",
        **QUICK_RECOVERY,
        **environment,
    }
    own: dict[str, object] = {"home": home, "sources_file": declarations}
    if "TIDEMARK_LEDGER_URL" in environment:
        own["ledger_url"] = environment["TIDEMARK_LEDGER_URL"]
    with LocalAirflow(home, env=env, scheduled=False, triggerer=False) as airflow:
        container = Container(Settings(**own))  # type: ignore[arg-type]  # pydantic reads them by name
        with airflow.api() as api:
            for name in sources:
                api.wait_for_dag(f"index__{name}", timeout=120)
                api.unpause(f"index__{name}")
            yield System(airflow, api, container, corpora)
