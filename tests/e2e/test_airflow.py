"""The whole system through a real scheduler and api-server, on the sample site."""

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow_runs import answer, backfill, clear, question, wait_for_end
from sqlalchemy import create_engine, text

from tidemark.config.settings import PROJECT, Settings
from tidemark.domain.chunks import PointWrite
from tidemark.domain.errors import PermanentError
from tidemark.orchestration.context import tidemark_run_id
from tidemark.stages.audit.compare import AuditFindings, compare_source
from tidemark.wiring import Container
from tidemark_local.airflow_api import AirflowApi, DagRun
from tidemark_local.sample_site import SampleSite
from tidemark_local.services import LocalAirflow

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.services,
    pytest.mark.model,
]

DAG = "index__site"
EDITED = "guide/power.html"
DELETED = "about/changelog.html"
STAGES = ["crawl", "plan", "process", "sweep", "audit", "report"]


@dataclass
class System:
    """A running Airflow over a copy of the sample site, and a look at its stores."""

    api: AirflowApi
    site: SampleSite
    pages: Path
    container: Container

    def run(self, dag: str = DAG, state: str = "success", **params: object) -> dict[str, Any]:
        """Trigger a run, wait for its end; the summary of its report."""
        started = self.api.trigger(dag, params)
        run = wait_for_end(self.api, started, timeout=600)
        assert run.state == state, self.logs(run)
        self.last = run
        return self.summary(run)

    def summary(self, run: DagRun) -> dict[str, Any]:
        run_id = tidemark_run_id(run.dag_id.removeprefix("index__"), run.run_id)
        recorded = self.container.ledger.runs.get(run_id)
        assert recorded is not None
        assert recorded.summary is not None
        summary: dict[str, Any] = json.loads(recorded.summary)
        return summary

    def states(self, run: DagRun | None = None) -> dict[str, str]:
        run = run or self.last
        return {task.label: task.state for task in self.api.tasks(run)}

    def logs(self, run: DagRun) -> str:
        told: list[str] = []
        for task in self.api.tasks(run):
            if task.state == "success":
                continue
            try:
                lines = self.api.log(run, task)[-15:]
            except PermanentError as error:  # it never began
                lines = [str(error)]
            told.append("\n".join([f"{task.label} {task.state}", *lines]))
        return "\n".join(told)

    def uris(self) -> set[str]:
        points = self.container.index.scan_points(1, {"source": "site"})
        return {str(p.payload["source_uri"]).partition("#")[0] for p in points}

    def audit(self) -> AuditFindings:
        return compare_source(self.container.ledger, self.container.index, 1)


@pytest.fixture(scope="module")
def system(module_folder: Path) -> Iterator[System]:
    folder = module_folder
    pages = folder / "site"
    shutil.copytree(PROJECT / "include" / "samples" / "site", pages)
    documents = folder / "many"
    documents.mkdir()
    with SampleSite(pages) as site:
        sources = folder / "sources.yaml"
        sources.write_text(
            "sources:\n"
            f"  site: {{kind: website, url: '{site.url}', allow_private: true, delay: 0,"
            " schedule: '* * * * *'}\n"
            f"  many: {{kind: files, path: {documents}}}\n"
        )
        home = folder / "home"
        env = {
            "TIDEMARK_SOURCES_FILE": str(sources),
            "TIDEMARK_BATCH_DOCUMENTS": "20",
            # Two tasks at a time, and another worker's tests: more threads would wait for each other.
            "TIDEMARK_EMBEDDING_THREADS": "1",
        }
        with LocalAirflow(home, env=env, scheduled=False, triggerer=False) as airflow:
            container = Container(
                Settings(home=home, sources_file=sources)  # type: ignore[call-arg]
            )
            with airflow.api() as api:
                for dag in (DAG, "index__many", "audit_index", "housekeeping"):
                    api.wait_for_dag(dag, timeout=120)
                    api.unpause(dag)
                yield System(api, site, pages, container)


def test_01_the_first_run_indexes_the_site(system: System) -> None:
    summary = system.run(note="the first")
    assert summary["documents"]["add"] >= 15
    assert summary["work"]["partition"] == summary["work"]["fetch"] == summary["documents"]["add"]
    assert summary["chunks"]["embedded"] == system.container.index.count_points(1)
    assert {"crawl", "plan", "partition", "chunk", "embed", "upsert", "sweep"} <= set(
        summary["seconds"]
    )
    assert [system.states()[s] for s in ("crawl", "plan", "sweep", "audit", "report")] == [
        "success"
    ] * 5
    assert system.audit().clean
    note = system.api.run(DAG, system.last.run_id).note
    assert note.startswith("the first")
    assert "chunks embedded" in note
    batches = [t for t in system.api.tasks(system.last) if t.task_id == "process"]
    assert len(batches) == 2
    assert all("embed" in task.note for task in batches)


def test_02_no_page_that_robots_forbid_and_no_boilerplate_is_in_the_index(system: System) -> None:
    uris = system.uris()
    assert not [uri for uri in uris if "/internal/" in uri]
    texts = [str(p.payload["text"]) for p in system.container.index.scan_points(1)]
    for boilerplate in ("cookies", "Edit this page", "Skip to"):
        assert not [text for text in texts if boilerplate.lower() in text.lower()], boilerplate


def test_03_the_second_run_does_nothing_and_maps_nothing(system: System) -> None:
    system.site.reset()
    summary = system.run()
    assert set(summary["documents"]) <= {"keep", "skip"}
    assert summary["work"] == {"fetch": 0, "partition": 0, "chunk": 0, "embed": 0}
    pages = {
        p: n for p, n in system.site.counts.bodies_by_path.items() if p.endswith((".html", "/"))
    }
    assert pages == {}, "every page was answered with 304"
    assert system.states()["process"] == "skipped"
    assert system.states()["report"] == "success"


def test_04_a_retry_of_the_run_that_had_nothing_to_do_is_green_too(system: System) -> None:
    run = system.last
    clear(system.api, run)
    assert wait_for_end(system.api, run, timeout=300).state == "success", system.logs(run)


def test_05_one_edited_and_one_deleted_page_are_all_that_is_done(system: System) -> None:
    before = system.uris()
    page = system.pages / EDITED
    html = page.read_text(encoding="utf-8")
    edited = re.sub(r"<p>([^<]{40,}?)</p>", r"<p>\1 Edited for the test.</p>", html, count=1)
    assert edited != html
    page.write_text(edited, encoding="utf-8")
    (system.pages / DELETED).unlink()
    summary = system.run()
    assert summary["documents"]["update"] == 1
    assert summary["documents"]["remove"] == 1
    assert summary["work"]["partition"] == summary["work"]["chunk"] == 1
    assert summary["work"]["embed"] == summary["chunks"]["embedded"] == 1
    assert before - system.uris() == {system.site.url + DELETED}
    assert system.container.ledger.documents.by_uri(system.site.url + DELETED) == []
    sections = system.container.index.scan_sections(1, {"source": "site"})
    assert not [s for s in sections if DELETED in str(s.payload["source_uri"])]
    assert system.audit().clean


def test_06_a_dry_run_changes_nothing(system: System) -> None:
    before = system.container.index.count_points(1)
    summary = system.run(force=True, dry_run=True)
    assert summary["dry_run"]
    assert summary["documents"]["update"] >= 14
    assert system.container.index.count_points(1) == before
    assert system.states()["process"] == system.states()["sweep"] == "skipped"


def test_07_a_backfill_processes_again_from_snapshots_and_fetches_nothing(system: System) -> None:
    system.site.reset()
    points = system.container.index.count_points(1)
    fetched = sorted(d.fetched_at for d in system.container.ledger.documents.stream("site"))
    start = fetched[0].replace(second=0, microsecond=0)
    expected = sum(1 for at in fetched if at < start + timedelta(minutes=1))
    backfill(system.api, DAG, start, start, reprocess="completed", timeout=600)
    [run] = [r for r in system.api.runs(DAG) if "backfill" in r.run_id]
    assert run.state == "success", system.logs(run)
    summary = system.summary(run)
    assert summary["reasons"]["forced"] == expected
    assert summary["work"]["fetch"] == system.site.counts.requests == 0
    assert summary["work"]["embed"] > 0
    assert system.container.index.count_points(1) == points
    assert system.audit().clean


def test_08_an_unreachable_site_deletes_nothing_and_the_run_says_why(system: System) -> None:
    before = system.uris()
    system.site.stop()
    try:
        run = system.api.trigger(DAG, {})
        deadline = time.monotonic() + 240
        while time.monotonic() < deadline:
            crawl = next((t for t in system.api.tasks(run) if t.task_id == "crawl"), None)
            if crawl and crawl.state in ("up_for_retry", "failed"):
                break
            time.sleep(0.5)
        assert crawl is not None
        assert crawl.state in ("up_for_retry", "failed"), "an outage is retried"
        assert "Nothing was deleted" in "\n".join(system.api.log(run, crawl))
        system.api.fail_unfinished(DAG)
        assert system.uris() == before
    finally:
        system.site.start()
    assert set(system.run()["documents"]) <= {"keep", "skip"}


def test_09_a_process_task_killed_in_the_middle_is_retried_and_converges(system: System) -> None:
    folder = Path(system.container.declarations.source("many").path)  # type: ignore[union-attr]
    count = 60
    for n in range(count):
        body = "\n\n".join(
            f"## Part {i}\n\nStation {n} has {i} masts and {n} lamps." for i in range(6)
        )
        (folder / f"{n:03}.md").write_text(f"# Station {n}\n\n{body}\n")
    run = system.api.trigger("index__many", {})
    victim = wait_for_writer(system)
    os.kill(victim, signal.SIGKILL)
    ended = wait_for_end(system.api, run, timeout=600)
    assert ended.state == "success", system.logs(ended)
    tries = [t.try_number for t in system.api.tasks(run) if t.task_id == "process"]
    assert max(tries) >= 2, "one task was killed and tried again"
    findings = system.audit()
    assert findings.clean, findings.counts()
    assert system.container.index.count_points(1, {"source": "many"}) == count * 6
    assert system.run("index__many")["documents"] == {"keep": count}


def test_10_a_plan_over_a_guard_waits_for_a_person_and_a_rejection_changes_nothing(
    system: System,
) -> None:
    folder = Path(system.container.declarations.source("many").path)  # type: ignore[union-attr]
    gone = sorted(folder.iterdir())[:30]
    for file in gone:
        file.unlink()
    run = system.api.trigger("index__many", {})
    asked = wait_for_question(system, run)
    assert "30 of 60 live documents (50 %) are gone at once; the guard is 25 %." in asked["subject"]
    assert gone[0].as_uri() in asked["body"]
    assert "and 10 more" in asked["body"]
    assert system.container.index.count_points(1, {"source": "many"}) == 60 * 6, (
        "nothing was done yet"
    )
    answer(system.api, run, "approve", "Reject")
    ended = wait_for_end(system.api, run, timeout=240)
    assert ended.state == "failed"
    summary = system.summary(ended)
    assert summary["held"]
    assert system.container.index.count_points(1, {"source": "many"}) == 60 * 6
    assert "not applied" in system.api.run("index__many", run.run_id).note


def test_11_once_approved_it_is_applied_whole(system: System) -> None:
    run = system.api.trigger("index__many", {})
    wait_for_question(system, run)
    answer(system.api, run, "approve", "Approve")
    ended = wait_for_end(system.api, run, timeout=240)
    assert ended.state == "success", system.logs(ended)
    assert system.summary(ended)["documents"] == {"keep": 30, "remove": 30}
    assert system.container.index.count_points(1, {"source": "many"}) == 30 * 6
    assert system.audit().clean


def test_12_a_run_that_was_approved_beforehand_asks_nobody(system: System) -> None:
    folder = Path(system.container.declarations.source("many").path)  # type: ignore[union-attr]
    for file in sorted(folder.iterdir())[:15]:
        file.unlink()
    assert system.run("index__many", approved=True)["documents"] == {"keep": 15, "remove": 15}


def test_13_the_daily_audit_is_red_on_a_difference_and_heals_it_when_asked(system: System) -> None:
    def audited(state: str, **params: object) -> str:
        run = wait_for_end(system.api, system.api.trigger("audit_index", params), timeout=600)
        assert run.state == state, system.logs(run)
        return system.api.run("audit_index", run.run_id).note

    assert "2 documents searched for, nothing to report" in audited("success", sample=2)
    index = system.container.index
    with index.session():
        lost, foreign, *_ = list(index.scan_points(1, {"source": "site"}))
        index.delete_points(1, [lost.point_id])
        index.set_payloads(1, [PointWrite(foreign.point_id, {**foreign.payload, "text": "forged"})])
    note = audited("failed", sample=0)
    assert "1 missing points" in note
    assert "1 stale payload" in note
    assert "Clean now." in audited("success", sample=0, repair=True)
    assert system.audit().clean
    kept = next(a for a in system.container.ledger.generations.audits(limit=20) if a.source is None)
    assert kept.findings["missing_points"] == 1
    assert kept.repaired >= 1


def test_14_housekeeping_removes_what_nothing_refers_to(system: System) -> None:
    artifacts = system.container.artifacts
    artifacts.write("raw/" + "0" * 64, b"an orphan")
    folder = Path(system.container.settings.home) / "artifacts" / "raw"
    old = time.time() - timedelta(days=30).total_seconds()
    os.utime(folder / ("0" * 64), (old, old))
    before = system.container.index.count_points(1)
    for params, there in (({"dry_run": True}, True), ({}, False)):
        run = wait_for_end(system.api, system.api.trigger("housekeeping", params), timeout=300)
        assert run.state == "success", system.logs(run)
        assert artifacts.exists("raw/" + "0" * 64) is there
    assert system.container.index.count_points(1) == before
    system.run()
    assert system.audit().clean


def wait_for_question(system: System, run: DagRun) -> dict[str, Any]:
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        asked = question(system.api, run, "approve")
        # The question is there before its task has let go; answered in between, Airflow fails that task.
        states = [t.state for t in system.api.tasks(run) if t.task_id == "approve"]
        if asked is not None and states not in (["running"], ["queued"], ["scheduled"]):
            return asked
        assert not system.api.run(run.dag_id, run.run_id).ended, system.logs(run)
        time.sleep(0.5)
    raise AssertionError("no question was asked")


WRITERS = text(
    "SELECT application_name FROM pg_stat_activity WHERE application_name LIKE 'tidemark process %'"
)


def wait_for_writer(system: System) -> int:
    """The id of a process that is writing documents of the source `many`: in the middle of its work."""
    engine = create_engine(system.container.ledger_url)
    deadline = time.monotonic() + 240
    try:
        while time.monotonic() < deadline:
            if system.container.ledger.writes.pending("many"):
                with engine.connect() as connection:
                    names = [str(name) for name in connection.scalars(WRITERS)]
                found = [int(m[1]) for name in names if (m := re.search(r"process (\d+) on", name))]
                if found:
                    return found[0]
            time.sleep(0.02)
    finally:
        engine.dispose()
    raise AssertionError("no process was seen writing")
