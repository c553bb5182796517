"""The dependency rule, beyond what import-linter holds: what each layer may import at all."""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PACKAGE = PROJECT / "include" / "tidemark"
PURE = ["domain", "stages"]


@cache
def imported(path: Path) -> frozenset[str]:
    return frozenset(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def modules(*folders: str) -> list[Path]:
    return sorted(p for folder in folders for p in (PACKAGE / folder).rglob("*.py"))


@pytest.mark.parametrize("path", [*modules(*PURE), *modules("ports")], ids=lambda p: p.name)
def test_the_core_imports_no_vendor_package(path: Path) -> None:
    roots = {name.partition(".")[0] for name in imported(path)}
    assert roots - sys.stdlib_module_names - {"tidemark"} == set()


@pytest.mark.parametrize(
    "path",
    [p for p in PACKAGE.rglob("*.py") if "orchestration" not in p.parts],
    ids=lambda p: str(p.relative_to(PACKAGE)),
)
def test_only_orchestration_imports_airflow(path: Path) -> None:
    assert not [name for name in imported(path) if name.partition(".")[0] == "airflow"]


def test_only_settings_reads_the_environment() -> None:
    readers = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if {"environ", "getenv"} & names_used(path)
    ]
    # These set what their vendors read at import (no telemetry, no spinning threads): writes.
    writers = {
        "adapters/partition/unstructured.py",
        "adapters/embedding/sentence_transformers.py",
        "adapters/embedding/tokenizer.py",
    }
    assert set(readers) <= {"config/settings.py", *writers}


def names_used(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)} | {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name)
    }


def test_stages_and_adapters_do_not_import_each_other() -> None:
    for layer, other in (("stages", "adapters"), ("adapters", "stages")):
        for path in modules(layer):
            crossed = [n for n in imported(path) if n.startswith(f"tidemark.{other}")]
            assert not crossed, f"{path.name} imports {crossed}"


def test_dag_files_import_airflow_and_the_orchestration_only() -> None:
    allowed = {"airflow", "tidemark"}
    for path in (PROJECT / "dags").glob("*.py"):
        roots = {name.partition(".")[0] for name in imported(path)}
        assert roots - sys.stdlib_module_names <= allowed
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) < 80, f"{path.name} is not thin any more"
