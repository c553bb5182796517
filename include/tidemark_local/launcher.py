"""`make run`, `make up`, `make down` and `make status`.

    python -m tidemark_local.launcher run|up|down|status

`run` indexes the bundled samples through real DAG runs, shows what was done and answers a question. It starts
what it needs and stops it again; where `up` keeps an Airflow running, it uses that one.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from types import FrameType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tidemark.config.settings import Settings
from tidemark.config.sources import SourceDeclaration
from tidemark.domain.errors import ConfigurationError, PermanentError, TidemarkError, TransientError
from tidemark.wiring import Container
from tidemark_local.airflow_api import AirflowApi, DagRun, TaskRun
from tidemark_local.layout import ADMIN, Layout
from tidemark_local.processes import claim, is_free
from tidemark_local.sample_site import SampleSite
from tidemark_local.services import LocalAirflow, running

UI_PORT = 8080
SITE_PORT = 8765
SITE_VARIABLE = "TIDEMARK_SAMPLE_PORT"
SITE_SECONDS = 10 * 365 * 86400
"""How long the sample site of `make up` serves: until `make down`."""

SAMPLE_TAG = "sample"
QUESTION = "How long does the battery last without sun?"
POLL_SECONDS = 0.5
SLOWEST_RUN = 1800.0
"""Seconds that a sample may take on a machine that is busy with other things."""

_STATE_SIGNS = {"success": "✓", "failed": "✗", "skipped": "–"}
"""Of the states in which a task has ended."""
_TASK_ORDER = ("crawl", "plan", "approve", "process", "sweep", "audit", "report")


class RunView:
    """What a person sees of `make run`: a table that changes in a terminal, lines elsewhere."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console()
        self._began = time.monotonic()
        self._states: dict[str, str] = {}
        self._live: Live | None = None
        self._rows: dict[str, str] = {}

    def step(self, text: str) -> None:
        """A line with the seconds since the start."""
        seconds = f"{time.monotonic() - self._began:5.0f} s"
        self.console.print(f"[dim]{seconds}[/]  {escape(text)}", soft_wrap=True, highlight=False)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While runs are watched: a live table on a terminal."""
        if not self.console.is_terminal:
            yield
            return
        with Live(self._table(), console=self.console, transient=True) as self._live:
            yield
        self._live = None

    def progress(self, run: DagRun, tasks: Sequence[TaskRun]) -> None:
        """Show how far a run is."""
        self._rows[run.dag_id] = task_line(tasks)
        if self._live is not None:
            self._live.update(self._table())
            return
        for task in sorted(tasks, key=_task_order):
            key = f"{run.dag_id} {task.label}"
            if task.state in _STATE_SIGNS and self._states.get(key) != task.state:
                self._states[key] = task.state
                seconds = f"{task.seconds:.1f} s" if task.seconds is not None else ""
                line = f"{run.dag_id}: {task.label} {_STATE_SIGNS[task.state]} {seconds}"
                self.step(line.rstrip())

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for dag_id, line in sorted(self._rows.items()):
            table.add_row(f"         {dag_id}", escape(line))
        return table

    def summaries(self, summaries: Sequence[Mapping[str, Any]]) -> None:
        """What each run did, as a table, or that nothing changed."""
        table = Table(title="What was done", title_justify="left", title_style="bold", box=None)
        for column in ("source", "documents"):
            table.add_column(column)
        for column in ("embedded", "kept", "removed", "seconds"):
            table.add_column(column, justify="right")
        for summary in summaries:
            documents = [f"{count} {name}" for name, count in summary["documents"].items() if count]
            table.add_row(
                escape(str(summary["source"])),
                escape(", ".join(documents) or "none"),
                *(str(summary["chunks"][name]) for name in ("embedded", "kept", "removed")),
                f"{sum(summary['seconds'].values()):.1f}",
            )
        self.console.print()
        self.console.print(table)
        self.console.print(
            "[dim]embedded, kept and removed are chunks; seconds are of the stages[/]"
        )
        for line in [str(line) for summary in summaries for line in summary["attention"]]:
            self.console.print(Text(f"  note: {line}", style="yellow"), soft_wrap=True)
        if summaries and all(map(nothing_changed, summaries)):
            checked = sum(sum(summary["documents"].values()) for summary in summaries)
            self.console.print(
                f"\n[bold green]Nothing changed[/]: {checked} documents were checked, and none "
                "had to be partitioned, chunked or embedded again.",
                soft_wrap=True,
            )

    def next_steps(self, steps: Sequence[tuple[str, str]]) -> None:
        """What to type or look into next, and what for."""
        self.console.print("\n[bold]What next[/]")
        width = max(len(what) for what, _ in steps)
        for what, why in steps:
            line = f"  [bold]{escape(what.ljust(width))}[/]  {escape(why)}"
            self.console.print(line, soft_wrap=True, highlight=False)

    def failure(self, run: DagRun, task: TaskRun, log: Sequence[str]) -> None:
        """The end of a failed task's log."""
        self.console.print(f"\n[bold red]{escape(run.dag_id)}: {escape(task.label)} failed[/]")
        for line in log[-15:]:
            self.console.print(Text(f"    {line}"), soft_wrap=True)


def task_line(tasks: Sequence[TaskRun]) -> str:
    """All tasks of a run in a line, in the order of the DAG; mapped ones as a count."""
    states_of: dict[str, Counter[str]] = {}
    for task in sorted(tasks, key=_task_order):
        states_of.setdefault(task.task_id, Counter())[task.state] += 1
    words = []
    for name, states in states_of.items():
        if states.total() > 1 and states["success"] < states.total():
            words.append(f"{name} {states['success']}/{states.total()}")
        else:
            state = next(iter(states))
            sign = _STATE_SIGNS.get(state, "…" if state == "running" else "")
            words.append(f"{name} {sign}".rstrip())
    return "  ".join(words)


def _task_order(task: TaskRun) -> tuple[int, int]:
    known = task.task_id in _TASK_ORDER
    return _TASK_ORDER.index(task.task_id) if known else len(_TASK_ORDER), task.map_index


def nothing_changed(summary: Mapping[str, Any]) -> bool:
    """Did a run look at everything and leave the index as it was?"""
    chunks = summary["chunks"]
    touched = {name for name, count in summary["documents"].items() if count} - {"keep", "skip"}
    succeeded = summary["status"] == "success" and not summary["problem"]
    return succeeded and not chunks["embedded"] and not chunks["removed"] and not touched


def run(settings: Settings) -> int:
    """Index the samples: 0 when all is well, 1 when a run or the question failed."""
    view = RunView()
    container = Container(settings)
    samples = sample_sources(container)
    with Layout(settings.home).launching(), _airflow(settings, view) as (airflow, owned):
        began = datetime.now(UTC)
        runs = _index(airflow, samples, view, owned=owned)
        failed = [run for run in runs if run.state != "success"]
        with airflow.api() as api:
            for failure in failed:
                _show_failure(api, failure, view)
        view.summaries(
            [
                json.loads(record.summary)
                for source in samples
                for record in container.ledger.runs.recent(source.name, limit=1)
                if record.started_at >= began and record.summary
            ]
        )
        with ThreadPoolExecutor(1) as background:
            # The database stays until the question is answered.
            stopping = background.submit(airflow.stop_services) if owned else None
            answered = bool(failed) or _answer(view)
            if stopping is not None:
                stopping.result()
    if failed or not answered:
        view.console.print(f"\nThe services' logs are in {Layout(settings.home).logs}.")
        return 1
    other = ("make down", "stop the Airflow that is running")
    if owned:
        address = f"http://127.0.0.1:{UI_PORT}"
        other = ("make up", f"keep Airflow running, with its UI and schedule, at {address}")
    view.next_steps(
        [
            other,
            ("make run", "run again: only what changed is done"),
            ('.venv/bin/tidemark search "…"', "ask the index yourself"),
            ("include/sources.yaml", "declare your own site or folder, then `tidemark index NAME`"),
        ]
    )
    return 0


def sample_sources(container: Container) -> list[SourceDeclaration]:
    """The declared sources that `make run` is about. Raises ``PermanentError`` when there are none."""
    sources = container.declarations.sources.values()
    samples: list[SourceDeclaration] = [s for s in sources if SAMPLE_TAG in s.tags and s.enabled]
    if not samples:
        raise PermanentError(
            f"{container.settings.sources_file} declares no source with the tag {SAMPLE_TAG!r}.",
            "`make run` shows the samples; for your own sources use `.venv/bin/tidemark index --all` "
            "or `make up`.",
        )
    return samples


@contextmanager
def _airflow(settings: Settings, view: RunView) -> Iterator[tuple[LocalAirflow, bool]]:
    """An Airflow and the sample site, and whether they are our own: `make up` may keep some running."""
    airflow = running(settings.home)
    with ExitStack() as stack:
        if airflow is not None:
            view.step(f"Using the Airflow that runs at {airflow.url}")
            if airflow.spawned("sample-site") is None:
                stack.enter_context(_site(view))
            yield airflow, False
            return
        stack.enter_context(_site(view))
        view.step("Starting Airflow: api-server, scheduler, dag-processor")
        airflow = LocalAirflow(
            settings.home,
            scheduled=False,
            triggerer=False,
            say=lambda what: view.step(f"  … {what}"),
        )
        yield stack.enter_context(airflow), True
    view.step("Everything that was started is stopped")


@contextmanager
def _site(view: RunView) -> Iterator[None]:
    port = claim(site_port(), "the sample website", SITE_VARIABLE)
    with SampleSite(port=port) as site:
        view.step(f"The sample website is served at {site.url}")
        yield


def _index(
    airflow: LocalAirflow, samples: Sequence[SourceDeclaration], view: RunView, *, owned: bool
) -> list[DagRun]:
    """Trigger one run per sample and wait for all of them."""
    dags = [f"index__{source.name}" for source in samples]
    with airflow.api() as api:
        for dag_id in dags:
            api.wait_for_dag(dag_id)
        paused = [dag_id for dag_id in dags if api.is_paused(dag_id)]
        if owned:
            # Nobody else starts runs here: an unfinished one is of a launcher that was killed.
            for dag_id in dags:
                api.fail_unfinished(dag_id)
        runs = []
        for dag_id in dags:
            api.unpause(dag_id)
            runs.append(api.trigger(dag_id, {"note": "make run"}))
            view.step(f"Triggered {dag_id}")
        try:
            with view.watching():
                return _watch(api, runs, view)
        finally:
            for dag_id in paused:
                api.pause(dag_id)


def _watch(api: AirflowApi, runs: list[DagRun], view: RunView) -> list[DagRun]:
    """Wait for all runs. Raises ``TransientError`` when they take too long."""
    deadline = time.monotonic() + SLOWEST_RUN
    while not all(run.ended for run in runs):
        if time.monotonic() > deadline:
            slow = ", ".join(f"{run.dag_id} is {run.state}" for run in runs if not run.ended)
            raise TransientError(f"After {SLOWEST_RUN:.0f} s {slow}.", "Run it again.")
        time.sleep(POLL_SECONDS)
        runs = [run if run.ended else api.run(run.dag_id, run.run_id) for run in runs]
        for run in runs:
            view.progress(run, api.tasks(run))
    return runs


def _show_failure(api: AirflowApi, run: DagRun, view: RunView) -> None:
    failed = [task for task in api.tasks(run) if task.state == "failed"]
    # The report fails for the sake of the others; it is shown only when it is alone.
    for task in [task for task in failed if task.task_id != "report"] or failed:
        view.failure(run, task, api.log(run, task))


def _answer(view: RunView) -> bool:
    """Ask the sample question through the command that a person would use."""
    shown = f'.venv/bin/tidemark search "{QUESTION}" --k 1 --expand section'
    view.console.print(f"\n[bold]$ {shown}[/]", soft_wrap=True)
    view.console.file.flush()
    command = ["search", QUESTION, "--k", "1", "--expand", "section"]
    search = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "tidemark.cli", *command],
        check=False,
        # Ctrl-C is for this process, which ends the command.
        start_new_session=True,
    )
    return search.returncode == 0


def up(settings: Settings) -> int:
    """Start Airflow with its UI and the sample site, and leave them running."""
    airflow = running(settings.home)
    if airflow is not None:
        _say(f"Airflow is running already: {airflow.url} (user {ADMIN}; `make down` stops it)")
        return 0
    with Layout(settings.home).launching():
        airflow = LocalAirflow(
            settings.home,
            port=_port("PORT", UI_PORT, "make up PORT=8081"),
            guarded=False,
            say=lambda what: _say(f"  … {what}"),
        )
        _say("Starting Airflow")
        airflow.start()
        site = _start_site(airflow)
        airflow.release()
    _say(f"Airflow is ready: {airflow.url}")
    _say(f"  user      {ADMIN}")
    _say(f"  password  {_password(airflow)}")
    _say(f"  site      {site}")
    _say(f"  logs      {airflow.layout.logs}")
    _say("Sources run by schedule once they are unpaused in the UI. `make down` stops everything.")
    return 0


def _password(airflow: LocalAirflow) -> str:
    """The password the first time, later only where it is kept."""
    shown = airflow.layout.password_shown
    if shown.exists():
        return f"in {airflow.layout.passwords}"
    shown.touch()
    return f"{airflow.secrets.admin_password}  (shown once; kept in {airflow.layout.passwords})"


def _start_site(airflow: LocalAirflow) -> str:
    port = site_port()
    if not is_free(port):
        return f"not served: port {port} is taken ({SITE_VARIABLE}=… chooses another)"
    arguments = ["--port", str(port), "--lifetime", str(SITE_SECONDS)]
    airflow.spawn("sample-site", [sys.executable, "-m", "tidemark_local.sample_site", *arguments])
    return f"http://127.0.0.1:{port}/"


def site_port() -> int:
    """The port of the sample site: fixed, because a page's address is its identity."""
    return _port(SITE_VARIABLE, SITE_PORT, "8765")


def _port(variable: str, default: int, example: str) -> int:
    value = os.environ.get(variable) or str(default)
    if not value.isdigit() or not 0 < int(value) < 65536:
        raise ConfigurationError(f"{variable}={value} is no port.", f"Give a number: {example}")
    return int(value)


def down(settings: Settings) -> int:
    """Stop everything of this home that runs, the database server too."""
    layout = Layout(settings.home)
    stopped = []
    if layout.home.exists():
        with layout.launching():
            stopped = layout.processes().stop()
            layout.state.unlink(missing_ok=True)
            postgres = layout.postgres()
            if postgres.is_running():
                postgres.stop()
                stopped.append("postgres")
    _say(f"Stopped: {', '.join(stopped)}." if stopped else "Nothing is running.")
    return 0


def status(settings: Settings) -> int:
    """Say what of this home runs."""
    layout = Layout(settings.home)
    airflow = running(settings.home)
    _say(f"home      {layout.home}")
    _say(f"airflow   {airflow.url if airflow else 'not running'}")
    for record in layout.processes().alive():
        _say(f"  {record.name:<14} process {record.pid}, log {record.log}")
    _say(f"postgres  {'running' if layout.postgres().is_running() else 'not running'}")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


COMMANDS: dict[str, Callable[[Settings], int]] = {
    "run": run,
    "up": up,
    "down": down,
    "status": status,
}


def main(arguments: list[str]) -> int:
    """Run one command; 0 on success, 1 with the reason in one line, 2 for bad usage."""
    if len(arguments) != 1 or arguments[0] not in COMMANDS:
        sys.stderr.write(f"usage: python -m tidemark_local.launcher {'|'.join(COMMANDS)}\n")
        return 2
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        return COMMANDS[arguments[0]](Settings())
    except TidemarkError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\nInterrupted; what was started is stopped.\n")
        return 130


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
