"""How large the code is and how far one reads through it, counted in the code itself.

    python benchmarks/structure.py [PROJECT] [--names] [--no-walk]

Prints the sizes of this checkout, or of another one, whose own ``.venv`` then does the walk. ``--names``
lists what stands behind the counts. What each row counts:

- *lines*: of ``*.py`` under ``include/``; *largest folder*: ``*.py`` directly in it.
- *imported by exactly one*: modules of ``include/tidemark`` (a package counts as its ``__init__.py``) that
  exactly one other module of ``include/``, ``dags/`` and ``plugins/`` imports, at its top or in a function.
  ``from package import name`` counts for the module ``package.name`` where there is one. A registry, whose
  purpose is to name what lies beside it, is the one importer of many: how many it is not is told too.
- *ledger Protocols*: those of ``ports/ledger.py`` with the number of their methods.
- *fakes in the product*: lines of modules named ``memory_*``, ``hash_*`` or ``fake*``.
- *private attributes in tests*: accesses ``x._y`` outside ``tests/fakes``, whose classes have their own; and
  those of another object than ``self`` and ``cls``.
- *one HTML document in process*: the DAG's own ``process`` task is run over a folder with one page, on the
  embedded stores, with a stub in place of the model, and watched in its own process and in the parser's.
  Counted are the jumps that a reader makes: distinct functions that are called from another file, from
  ``process_batch`` to the end of the index's ``upsert_points``, and the files they lie in. Callbacks (local
  functions), properties, dunder methods and what runs at imports are no jumps. The first figure leaves
  out what lies behind the ledger's port and the retries, no part of the document's way; the second has it.
"""

import argparse
import ast
import os
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOTS = ("include", "dags", "plugins")
REGISTRIES = frozenset({
    "tidemark.wiring", "tidemark.source_wiring", "tidemark.ports", "tidemark.cli.app", "tidemark.cli.upkeep",
    "tidemark.adapters.partition.partitioner", "tidemark.adapters.unstructured_readers",
    "audit_index", "housekeeping", "index_sources",
})  # fmt: skip
"""Modules that pick others by name, here and in the layout before."""
PAGE = """<!doctype html><html lang="en"><head><title>Pumps</title></head><body>
<nav><a href="/">Home</a> <a href="/pumps">Pumps</a></nav><main><h1>Pumps</h1>
<p>A pump moves water from the harbour into the lock. It starts when the level falls.</p>
<h2>Care</h2><ul><li>Oil it each month.</li><li>Change the seal each year.</li></ul>
<table><tr><th>Pump</th><th>Litres a second</th></tr><tr><td>North</td><td>40</td></tr></table>
</main><footer>Imprint</footer></body></html>
"""


def python_files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*.py") if "__pycache__" not in p.parts)


class Modules:
    """The modules of a checkout by their dotted names, and who imports whom."""

    def __init__(self, project: Path) -> None:
        self.files: dict[str, Path] = {}
        for root in ROOTS:
            for path in python_files(project / root):
                parts = path.relative_to(project / root).with_suffix("").parts
                self.files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
        self.importers: defaultdict[str, set[str]] = defaultdict(set)
        for name, path in self.files.items():
            for imported in self._imports(path):
                if imported != name:
                    self.importers[imported].add(name)

    def _imports(self, path: Path) -> Iterator[str]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                members = (f"{node.module}.{alias.name}" for alias in node.names)
                names = [m if m in self.files else node.module for m in members]
            yield from (name for name in names if name in self.files)

    def product(self) -> list[str]:
        return [m for m in self.files if m == "tidemark" or m.startswith("tidemark.")]

    def with_one_importer(self) -> list[str]:
        return [name for name in self.product() if len(self.importers[name]) == 1]

    def fakes(self) -> list[str]:
        starts = ("memory_", "hash_", "fake")
        return [m for m in self.product() if m.rpartition(".")[2].startswith(starts)]


def lines(paths: list[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def largest_folder(project: Path) -> tuple[str, int]:
    counts = Counter(path.parent for path in python_files(project / "include"))
    folder, count = counts.most_common(1)[0]
    return folder.relative_to(project).as_posix(), count


def protocol_methods(project: Path) -> dict[str, int]:
    """How many methods each Protocol of the ledger's port declares."""
    port = project / "include" / "tidemark" / "ports" / "ledger.py"
    found = {}
    for node in ast.parse(port.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and any(
            isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases
        ):
            methods = [n for n in node.body if isinstance(n, ast.FunctionDef)]
            found[node.name] = sum(not _is_property(method) for method in methods)
    return {name: count for name, count in found.items() if count}


def _is_property(function: ast.FunctionDef) -> bool:
    names = {n.id for d in function.decorator_list for n in ast.walk(d) if isinstance(n, ast.Name)}
    return bool(names & {"property", "cached_property"})


def private_accesses(project: Path) -> tuple[int, int]:
    """All of them in the tests, and those of another object than ``self`` or ``cls``."""
    every = foreign = 0
    fakes = project / "tests" / "fakes"
    for path in python_files(project / "tests"):
        if path.is_relative_to(fakes):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Attribute) or not node.attr.startswith("_"):
                continue
            if node.attr.startswith("__"):
                continue
            every += 1
            own = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}
            foreign += not own
    return every, foreign


# The walk, in a process of the checkout's own Python, and in that of its parser.

TRACER = """
import os, sys, threading

INCLUDE, OUT = "{include}", "{out}"
seen, stopped, last = set(), False, None


def note(frame, event, arg):
    global stopped, last
    code = frame.f_code
    if event == "return" and frame is last:
        stopped = True
    if stopped or event != "call" or not code.co_filename.startswith(INCLUDE):
        return
    if code.co_name == "upsert_points" and last is None:
        last = frame
    back = frame.f_back
    while back is not None and not back.f_code.co_filename.startswith(INCLUDE):
        back = back.f_back
    caller = back.f_code if back is not None else None
    if (caller, code) in seen:
        return
    outer = frame
    while outer is not None:
        if outer.f_code.co_name == "<module>" and outer.f_globals["__name__"] != "__main__":
            return
        outer = outer.f_back
    seen.add((caller, code))
    by = f"{caller.co_filename}:{caller.co_firstlineno}:{caller.co_qualname}" if caller else ""
    os.write(FILE, f"{by}\\t{code.co_filename}:{code.co_firstlineno}:{code.co_qualname}\\n".encode())


def begin():
    global FILE
    FILE = os.open(OUT, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    threading.setprofile(note)
    sys.setprofile(note)
"""

WALK = """
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import airflow.sdk
import tracer
from airflow.sdk.exceptions import AirflowNotFoundException

left = {}


def pull(task_ids=None, key="return_value"):
    return left.get(key)


def no_connection(name):
    raise AirflowNotFoundException(name)


run = SimpleNamespace(dag_id="index__docs", run_id="manual__1", run_type="manual")
ti = SimpleNamespace(
    task_id="process", map_index=0, xcom_pull=pull, xcom_push=lambda key, value: left.update({key: value})
)
context = {"dag_run": run, "params": {}, "ti": ti}
airflow.sdk.get_current_context = lambda: context
airflow.sdk.Connection.get = staticmethod(no_connection)

from tidemark import wiring


class Stub:
    fingerprint, dimension = "stub", 8

    def embed(self, texts):
        return [(1.0,) + (0.0,) * 7 for _ in texts]


maker = getattr(wiring, "Container", None) or wiring.Workshop
maker.embedder = Stub()
from tidemark.orchestration import tasks

try:
    tasks.crawl.function("docs")
    [batch] = tasks.plan.function("docs")
    tracer.begin()
    done = tasks.process.function("docs", batch)
    sys.setprofile(None)
    assert done["documents"] == {"add": 1}, done
finally:
    # The module has another name in each layout.
    [server] = [m.EmbeddedPostgres for m in sys.modules.values() if "EmbeddedPostgres" in vars(m)]
    server(Path(os.environ["TIDEMARK_HOME"]) / "postgres").stop()
"""

IN_WORKER = """
import sys

if "-m" in sys.orig_argv and "worker" in sys.orig_argv[sys.orig_argv.index("-m") + 1]:
    import tracer

    tracer.begin()
"""


@dataclass(frozen=True)
class Call:
    """A function that ran. line: where its definition begins. name: as the language qualifies it."""

    file: str
    line: int
    name: str

    @classmethod
    def read(cls, text: str) -> "Call | None":
        if not text:
            return None
        file, line, name = text.rsplit(":", 2)
        return cls(file, int(line), name)


def traced(project: Path) -> list[tuple[Call | None, Call]]:
    """Caller and function of each call of the project that one HTML document causes in ``process``."""
    python = project / ".venv" / "bin" / "python"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "docs").mkdir()
        (folder / "docs" / "pumps.html").write_text(PAGE)
        (folder / "sources.yaml").write_text(
            f"sources: {{docs: {{kind: files, path: {folder / 'docs'}}}}}\n"
        )
        include, out = str(project / "include") + os.sep, str(folder / "calls")
        (folder / "tracer.py").write_text(
            TRACER.replace("{include}", include).replace("{out}", out)
        )
        (folder / "sitecustomize.py").write_text(IN_WORKER)
        (folder / "walk.py").write_text(WALK)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(folder), include]),
            "TIDEMARK_HOME": str(folder / "home"),
            "TIDEMARK_SOURCES_FILE": str(folder / "sources.yaml"),
            "AIRFLOW_HOME": str(folder / "airflow"),
            "HF_HUB_OFFLINE": "1",
        }
        for other in ("TIDEMARK_LEDGER_URL", "TIDEMARK_QDRANT_URL", "TIDEMARK_ARTIFACTS_URL"):
            environment.pop(other, None)
        done = subprocess.run(
            [python, folder / "walk.py"], env=environment, cwd=folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(done.stdout)
        calls = []
        for line in (folder / "calls").read_text().splitlines():
            by, _, text = line.partition("\t")
            if (call := Call.read(text)) is not None:
                calls.append((Call.read(by), call))
    return calls


def jumps(calls: list[tuple[Call | None, Call]]) -> set[Call]:
    """The functions called from another file, from ``process_batch`` on and in the parser's process."""
    called: defaultdict[Call | None, set[Call]] = defaultdict(set)
    for caller, call in calls:
        called[caller].add(call)
    starts = [c for _, c in calls if c.name == "process_batch" or _answers(c)]
    reached, todo = set(starts), starts
    while todo:
        new = called[todo.pop()] - reached
        reached |= new
        todo += new
    properties = {file: _properties(Path(file)) for file in {call.file for call in reached}}
    return {
        call
        for caller, call in calls
        if caller in reached
        and caller is not None
        and caller.file != call.file
        and not call.name.endswith("__")
        and "<" not in call.name
        and call.line not in properties[call.file]
    }


def _answers(call: Call) -> bool:
    return call.name == "_answer" and call.file.endswith("worker.py")


def _properties(path: Path) -> set[int]:
    functions = (
        n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.FunctionDef)
    )
    return {f.decorator_list[0].lineno for f in functions if _is_property(f)}


def behind_the_ledger(call: Call) -> bool:
    """Is it part of the ledger's adapter, or does it only ask again?"""
    marks = ("/adapters/ledger", "/adapters/postgres_", "/adapters/retry", "/adapters/lock_waiting")
    return any(mark in call.file for mark in marks)


def through(calls: set[Call]) -> str:
    return f"{len(calls)} through {len({call.file for call in calls})} files"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    here = Path(__file__).resolve().parents[1]
    parser.add_argument("project", nargs="?", type=Path, default=here)
    parser.add_argument("--names", action="store_true", help="what stands behind the counts")
    parser.add_argument("--no-walk", action="store_true", help="run nothing, only read")
    asked = parser.parse_args()
    project = asked.project.resolve()
    modules = Modules(project)
    files = python_files(project / "include")
    folder, count = largest_folder(project)
    one, product = modules.with_one_importer(), modules.product()
    unpicked = [name for name in one if not modules.importers[name] <= REGISTRIES]
    protocols = protocol_methods(project)
    fakes = lines([modules.files[name] for name in modules.fakes()])
    every, foreign = private_accesses(project)
    rows = {
        "lines of Python in include/": f"{lines(files):,} in {len(files)} files",
        "largest folder": f"{count} files in {folder}",
        "modules imported by exactly one other": f"{len(one)} of {len(product)}"
        f" ({100 * len(one) / len(product):.0f} %), {len(unpicked)} not by a registry",
        "methods of the ledger's Protocols": ", ".join(f"{n} {c}" for n, c in protocols.items()),
        "fakes in the product": f"{fakes:,} lines",
        "private attributes in tests": f"{every}, {foreign} of other objects",
    }
    way: set[Call] = set()
    if not asked.no_walk:
        every_jump = jumps(traced(project))
        way = {call for call in every_jump if not behind_the_ledger(call)}
        rows["one HTML document in process"] = (
            f"{through(way)}; with the ledger {through(every_jump)}"
        )
    print("| measure | value |\n|---|---|")
    for name, value in rows.items():
        print(f"| {name} | {value} |")
    if asked.names:
        print("\nImported by exactly one other:")
        for name in one:
            mark = "" if name in unpicked else " (a registry)"
            print(f"  {name}: {next(iter(modules.importers[name]))}{mark}")
        print("\nOn the way of a document:")
        for call in sorted(way, key=lambda call: (call.file, call.line)):
            print(f"  {Path(call.file).relative_to(project / 'include')}: {call.name}")


if __name__ == "__main__":
    main()
