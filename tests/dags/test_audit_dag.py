"""The DAG that audits: what an operator sees of it, what it reports, and whom it tells."""

import json
import logging
import threading
from collections.abc import Iterator
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException

from dags.test_index_dags import DAGS, HEAVY, inspect
from tidemark.orchestration import audit as alerts
from tidemark.orchestration import audit as auditing
from tidemark.stages.audit.audit import AuditReport

DRIFT = AuditReport(
    None,
    checked=100,
    documents=10,
    counts={"missing_points": 3, "live_name": 1},
    sources={"docs": {"missing_points": 3}},
    examples={"missing_points": ["https://example.org/a"]},
    notes={"live_name": ["it is over no generation"]},
)


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("audit")
    (folder / "dags").mkdir()
    text = (DAGS / "audit_index.py").read_text(encoding="utf-8")
    (folder / "dags" / "audit_index.py").write_text(text, encoding="utf-8")
    return inspect(folder / "dags", folder)


def test_it_parses_fast_and_imports_nothing_heavy(parsed: dict[str, Any]) -> None:
    assert parsed["errors"] == {}
    assert parsed["seconds"] < 0.5
    assert [name for name in HEAVY if name in parsed["modules"]] == []


def test_an_operator_finds_three_tasks_params_and_what_to_do(parsed: dict[str, Any]) -> None:
    dag = parsed["dags"]["audit_index"]
    assert dag["order"] == {"audit": ["repair"], "repair": ["report"], "report": []}
    assert set(dag["params"]) == {"source", "repair", "sample"}
    assert all(title and description for title, description in dag["params"].values())
    assert (dag["schedule"], dag["catchup"], dag["max_active_runs"]) == (
        "CronTriggerTimetable", False, 1
    )  # fmt: skip
    assert "tidemark audit --repair" in dag["doc_md"]


def test_its_schedule_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_AUDIT_SCHEDULE", "never")
    assert auditing.audit_arguments()["schedule"] is None
    monkeypatch.setenv("TIDEMARK_AUDIT_SCHEDULE", "0 3 * * 1")
    assert auditing.audit_arguments()["schedule"].expression == "0 3 * * 1"


def reported(
    monkeypatch: pytest.MonkeyPatch, audited: AuditReport, repaired: AuditReport | None = None
) -> tuple[list[str], dict[str, float], list[str]]:
    """Run the report over what the tasks before it left: alerts sent, gauges set, notes written."""
    left = {"audit": asdict(audited), "repair": asdict(repaired) if repaired else None}

    class Task:
        def xcom_pull(self, task_ids: str) -> Any:
            # As it comes out of Airflow's database.
            return json.loads(json.dumps(left[task_ids]))

    class DagRun:
        dag_id, run_id = "audit_index", "manual"

    sent: list[str] = []
    gauges: dict[str, float] = {}
    notes: list[str] = []
    context = {"ti": Task(), "dag_run": DagRun(), "params": {}}
    monkeypatch.setattr(auditing, "get_current_context", lambda: context)
    monkeypatch.setattr(alerts, "alert", lambda text: sent.append(text))
    monkeypatch.setattr("airflow.sdk.observability.stats.gauge", gauges.__setitem__)
    monkeypatch.setattr("tidemark.orchestration.context.note_run", lambda *a: notes.append(a[-1]))
    try:
        auditing.report.function()
    except AirflowFailException as error:
        notes.append(f"RED {error}")
    return sent, gauges, notes


def test_a_clean_audit_is_green_and_tells_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    sent, gauges, notes = reported(monkeypatch, AuditReport(None, checked=7, documents=2))
    assert sent == []
    assert notes == ["all sources: 7 points of 2 documents checked, nothing to report."]
    assert len(gauges) == 11
    assert set(gauges.values()) == {0}


def test_any_drift_is_red_and_an_alert_that_names_kinds_sources_and_the_cure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sent, gauges, (note, red) = reported(monkeypatch, DRIFT)
    [told] = sent
    assert red == f"RED {told}"
    assert note in told
    for part in ("3 missing points", "1 live name", "docs", "tidemark audit --repair"):
        assert part in told
    assert gauges["tidemark.audit.missing_points"] == 3
    assert gauges["tidemark.audit.drift"] == 4


def test_drift_that_was_healed_is_green_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    healed = AuditReport(None, counts=DRIFT.counts, sources=DRIFT.sources, repair=True, repaired=1)
    sent, gauges, notes = reported(monkeypatch, DRIFT, healed)
    assert "Repaired 1 documents. Clean now." in sent[0]
    assert not any(note.startswith("RED") for note in notes)
    assert gauges["tidemark.audit.drift"] == 0


def test_what_a_repair_leaves_is_red_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = AuditReport(
        None, counts=DRIFT.counts, sources=DRIFT.sources, repair=True,
        left={"missing_points": 3}, skipped={"docs": "Another run holds it."},
    )  # fmt: skip
    _, gauges, (_, red) = reported(monkeypatch, DRIFT, tried)
    assert "docs was not repaired: Another run holds it." in red
    assert gauges["tidemark.audit.missing_points"] == 3


class Chat(BaseHTTPRequestHandler):
    """Takes what is posted to it."""

    taken: list[tuple[str, Any]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.taken.append((self.path, json.loads(body)))
        self.send_response(200 if "/ok/" in self.path else 403)
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base's name
        pass


@pytest.fixture
def chat() -> Iterator[tuple[int, list[tuple[str, Any]]]]:
    taken: list[tuple[str, Any]] = []
    server = HTTPServer(("127.0.0.1", 0), type("Handler", (Chat,), {"taken": taken}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server.server_port, taken
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("whole", [True, False])
def test_an_alert_goes_to_the_connection_whose_address_stays_secret(
    chat: tuple[int, list[tuple[str, Any]]],
    whole: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    port, taken = chat
    where = {"host": f"http://127.0.0.1:{port}/services"} if whole else {
        "host": "127.0.0.1", "schema": "http", "port": port
    }  # fmt: skip
    caplog.set_level(logging.DEBUG)
    for word, status in (("ok", True), ("no", False)):
        connection = Connection(
            conn_id="tidemark_alerts", conn_type="http", password=f"/{word}/s3cret", **where
        )
        monkeypatch.setattr(alerts.Connection, "get", lambda _, found=connection: found)
        assert alerts.alert("something differs " * 1000) is status
    assert [body["text"][:9] for _, body in taken] == ["something", "something"]
    assert taken[0][0].endswith("/ok/s3cret")
    assert "s3cret" not in caplog.text
    assert "could not be sent" in caplog.text


def test_without_the_connection_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_: str) -> Connection:
        raise AirflowNotFoundException("none")

    monkeypatch.setattr(alerts.Connection, "get", none)
    assert alerts.alert("x") is False


def test_the_tasks_audit_and_repair_a_whole_index(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from audits import Audited, Damage

    audited = Audited().fill(2)
    damage = Damage(audited)
    damage.to_point("lose", audited.points()[0])

    class FakeContainer:
        def audit_dependencies(self, *_: object) -> Any:
            return audited.deps()

    context: dict[str, Any] = {"params": {"repair": True, "sample": 2}}
    monkeypatch.setattr(auditing, "get_current_context", lambda: context)
    monkeypatch.setattr("tidemark.orchestration.context.open_container", FakeContainer)
    left = auditing.audit.function()
    assert left["counts"] == {"missing_points": 1}
    assert left["sampled"] == 2
    context["ti"] = type("Task", (), {"xcom_pull": lambda *_, **__: left})()
    assert auditing.repair.function()["left"] == {}
    assert audited.audit().clean
