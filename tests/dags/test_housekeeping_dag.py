"""The DAG that keeps house: what an operator sees of it, and what its task does and tells."""

from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from dags.test_index_dags import DAGS, HEAVY, inspect
from tidemark.domain.errors import ConfigurationError
from tidemark.orchestration import context, housekeeping
from tidemark.stages.housekeeping import Freed, Housekeeping


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("housekeeping")
    (folder / "dags").mkdir()
    text = (DAGS / "housekeeping.py").read_text(encoding="utf-8")
    (folder / "dags" / "housekeeping.py").write_text(text, encoding="utf-8")
    return inspect(folder / "dags", folder)


def test_it_parses_fast_and_imports_nothing_heavy(parsed: dict[str, Any]) -> None:
    assert parsed["errors"] == {}
    assert parsed["seconds"] < 0.5
    assert [name for name in HEAVY if name in parsed["modules"]] == []


def test_an_operator_finds_one_task_its_param_and_what_goes(parsed: dict[str, Any]) -> None:
    dag = parsed["dags"]["housekeeping"]
    assert dag["order"] == {"keep_house": []}
    [(title, description)] = [dag["params"]["dry_run"]]
    assert title
    assert description
    assert (dag["schedule"], dag["catchup"], dag["max_active_runs"]) == (
        "CronTriggerTimetable", False, 1
    )  # fmt: skip
    assert "TIDEMARK_HISTORY_DAYS" in dag["doc_md"]
    assert dag["backoff"]


def test_its_schedule_is_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_HOUSEKEEPING_SCHEDULE", "never")
    assert housekeeping.housekeeping_arguments()["schedule"] is None
    monkeypatch.setenv("TIDEMARK_HOUSEKEEPING_SCHEDULE", "0 3 * * 1")
    assert housekeeping.housekeeping_arguments()["schedule"].expression == "0 3 * * 1"


def kept(
    monkeypatch: pytest.MonkeyPatch, container: Any, **params: object
) -> tuple[dict[str, Any], list[tuple[str, ...]]]:
    class DagRun:
        dag_id, run_id = "housekeeping", "manual"

    notes: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        housekeeping, "get_current_context", lambda: {"dag_run": DagRun(), "params": params}
    )
    monkeypatch.setattr(context, "open_container", lambda: container)
    monkeypatch.setattr("tidemark.orchestration.context.note_run", lambda *a: notes.append(a))
    return housekeeping.collect_garbage.function(), notes


class FakeContainer:
    def collect_garbage(self, *, dry_run: bool, progress: object) -> Housekeeping:
        return Housekeeping(dry_run, {"raw": Freed(2, 30), "audits": Freed(0)}, ("A note.",))


@pytest.mark.parametrize("dry_run", [True, False])
def test_it_tells_what_went_in_the_log_the_note_and_its_result(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, dry_run: bool
) -> None:
    caplog.set_level("INFO")
    result, notes = kept(monkeypatch, FakeContainer(), dry_run=dry_run)
    sentence = f"{'Would remove' if dry_run else 'Removed'} 2 raw; 30 bytes."
    assert notes == [("housekeeping", "manual", sentence)]
    assert sentence in caplog.text
    assert "A note." in caplog.text
    assert result == {
        "dry_run": dry_run,
        "removed": {"raw": {"count": 2, "bytes": 30}, "audits": {"count": 0, "bytes": 0}},
        "freed_bytes": 30,
        "notes": ["A note."],
    }


def test_a_broken_sources_file_fails_it_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else every source would pass for one that nobody declares any more."""

    class Broken:
        def collect_garbage(self, **_: object) -> None:
            raise ConfigurationError("The sources cannot be read.", "Mend the file.")

    with pytest.raises(AirflowFailException, match="Mend the file"):
        kept(monkeypatch, Broken())


def test_the_file_is_thin() -> None:
    assert len(Path(DAGS / "housekeeping.py").read_text(encoding="utf-8").splitlines()) < 20
