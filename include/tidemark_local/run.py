"""`make run`: index the bundled samples through real DAG runs, show what was done, answer a question.

Starts what it needs and stops it again; where `make up` keeps Airflow running, uses that one.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from types import FrameType
from typing import Any

from tidemark.config.settings import Settings
from tidemark.config.sources import SourceDeclaration
from tidemark.domain.errors import ConfigurationError, PermanentError, TidemarkError, TransientError
from tidemark.wiring import Container
from tidemark_local.airflow_api import AirflowApi
from tidemark_local.airflow_values import DagRun
from tidemark_local.layout import Layout
from tidemark_local.ports import claim
from tidemark_local.run_view import RunView
from tidemark_local.sample_site import SampleSite
from tidemark_local.services import LocalAirflow, running

SITE_PORT = 8765
SITE_VARIABLE = "TIDEMARK_SAMPLE_PORT"
SAMPLE_TAG = "sample"
QUESTION = "How long does the battery last without sun?"
POLL_SECONDS = 0.5
SLOWEST_RUN = 1800.0
"""Seconds that a sample may take on a machine that is busy with other things."""


def site_port() -> int:
    """The port of the sample site: fixed, because a page's address is its identity."""
    given = os.environ.get(SITE_VARIABLE) or str(SITE_PORT)
    if not given.isdigit() or not 0 < int(given) < 65536:
        raise ConfigurationError(f"{SITE_VARIABLE}={given} is no port.", "Give a number like 8765.")
    return int(given)


def main() -> int:
    """Run the samples: 0 when all is well, 1 with the reason when not."""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)
    view = RunView()
    try:
        return _run(view)
    except TidemarkError as error:
        view.console.print(f"[bold red]Error:[/] {error}", soft_wrap=True, highlight=False)
        return 1
    except KeyboardInterrupt:
        view.console.print("\nInterrupted; everything that was started is stopped.")
        return 130


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _run(view: RunView) -> int:
    settings = Settings()
    shop = Container(settings)
    samples = sample_sources(shop)
    with Layout(settings.home).launching(), _airflow(settings, view) as (airflow, owned):
        began = datetime.now(UTC)
        runs = _index(airflow, samples, view, owned=owned)
        failed = [run for run in runs if run.state != "success"]
        with airflow.api() as api:
            for run in failed:
                _show_failure(api, run, view)
        summaries = list(_summaries(shop, samples, began))
        view.summaries(summaries)
        with ThreadPoolExecutor(1) as background:
            # The database stays until the question is answered.
            stopping = background.submit(airflow.stop_services) if owned else None
            answered = bool(failed) or _answer(view)
            if stopping is not None:
                stopping.result()
    if failed or not answered:
        view.console.print(f"\nThe services' logs are in {Layout(settings.home).logs}.")
        return 1
    _what_next(view, owned=owned)
    return 0


def sample_sources(shop: Container) -> list[SourceDeclaration]:
    """The declared sources that `make run` is about. Raises ``PermanentError`` when there are none."""
    sources = shop.declarations.sources.values()
    samples: list[SourceDeclaration] = [s for s in sources if SAMPLE_TAG in s.tags and s.enabled]
    if not samples:
        raise PermanentError(
            f"{shop.settings.sources_file} declares no source with the tag {SAMPLE_TAG!r}.",
            "`make run` shows the samples; for your own sources use `.venv/bin/tidemark index --all` "
            "or `make up`.",
        )
    return samples


@contextmanager
def _airflow(settings: Settings, view: RunView) -> Iterator[tuple[LocalAirflow, bool]]:
    """An Airflow and the sample site: those that `make up` keeps running, or our own."""
    found = running(settings.home)
    with ExitStack() as stack:
        if found is not None:
            view.step(f"Using the Airflow that runs at {found.url}")
            if found.spawned("sample-site") is None:
                stack.enter_context(_site(view))
            yield found, False
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
        started = []
        for dag_id in dags:
            api.unpause(dag_id)
            started.append(api.trigger(dag_id, {"note": "make run"}))
            view.step(f"Triggered {dag_id}")
        try:
            with view.watching():
                return _watch(api, started, view)
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
            view.progress(run, api.tasks(run.dag_id, run.run_id))
    return runs


def _show_failure(api: AirflowApi, run: DagRun, view: RunView) -> None:
    failed = [task for task in api.tasks(run.dag_id, run.run_id) if task.state == "failed"]
    # The report fails for the sake of the others; it is shown only when it is alone.
    own = [task for task in failed if task.task_id != "report"] or failed
    for task in own:
        view.failure(run, task, api.log(run, task))


def _summaries(
    shop: Container, samples: Sequence[SourceDeclaration], began: datetime
) -> Iterator[dict[str, Any]]:
    for source in samples:
        for run in shop.ledger.runs.recent(source.name, limit=1):
            if run.started_at >= began and run.summary:
                yield json.loads(run.summary)


def _answer(view: RunView) -> bool:
    """Ask the sample question through the command that a person would use."""
    command = ["search", QUESTION, "--k", "1", "--expand", "section"]
    view.console.print(
        f'\n[bold]$ .venv/bin/tidemark search "{QUESTION}" --k 1 --expand section[/]'
    )
    view.console.file.flush()
    asked = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "tidemark.cli", *command],
        check=False,
        # Ctrl-C is for this process, which ends the command.
        start_new_session=True,
    )
    return asked.returncode == 0


def _what_next(view: RunView, *, owned: bool) -> None:
    other = ("make up", "keep Airflow running, with its UI and schedule, at http://127.0.0.1:8080")
    if not owned:
        other = ("make down", "stop the Airflow that is running")
    view.next_steps(
        [
            other,
            ("make run", "run again: only what changed is done"),
            ('.venv/bin/tidemark search "…"', "ask the index yourself"),
            ("include/sources.yaml", "declare your own site or folder, then `tidemark index NAME`"),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
