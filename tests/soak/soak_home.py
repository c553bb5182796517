"""A `tidemark` of its own: started as users start it, killed as operators fear, then looked into."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import psutil
import yaml

from tidemark.adapters.index.qdrant import QdrantServerIndex
from tidemark.adapters.index.qdrant_edge import QdrantEdgeIndex
from tidemark.adapters.ledger.postgres import PostgresLedger
from tidemark.adapters.services.postgres import EmbeddedPostgres
from tidemark.ports.index import VectorIndex

PROJECT = Path(__file__).resolve().parents[2]
QUICK = Path(__file__).with_name("soak_quick_cli.py")
END_SECONDS = 300.0
CLEAN_KEYS = ("checked", "repaired", "source")
"""What an audit counts that is no difference."""

Death = Literal["process", "family", "everything"]
"""Who is killed: the main process alone; it and its children; those and the database server."""


@dataclass
class Run:
    """A started command; its output goes to files, so that a pipe never blocks it."""

    process: "subprocess.Popen[str]"
    out: Path
    err: Path
    started: float = field(default_factory=time.monotonic)

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def end(self, code: int | None = 0) -> str:
        """Wait for its end; its stdout. Fails when it exits with another code than the one expected."""
        self.process.wait(timeout=END_SECONDS)
        out = self.out.read_text()
        said = f"exit {self.process.returncode}\n{out}\n{self.error[-4000:]}"
        assert code is None or self.process.returncode == code, said
        return out

    @property
    def error(self) -> str:
        return self.err.read_text()


@dataclass
class Home:
    """A home with its sources.

    folder: short, as sockets want it. sources: name to the folder of files. environment: on top.
    quick: with the hash embedder of ``soak_quick_cli`` instead of the model. prefix: put before commands.
    """

    folder: Path
    sources: dict[str, Path]
    environment: dict[str, str] = field(default_factory=dict)
    quick: bool = True
    prefix: tuple[str, ...] = ()
    _started: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        declared = {name: {"kind": "files", "path": str(at)} for name, at in self.sources.items()}
        self.declarations.write_text(yaml.safe_dump({"sources": declared}))

    @property
    def declarations(self) -> Path:
        return self.folder / "sources.yaml"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def texts(self) -> Path:
        """Where the quick command line writes down what it embeds."""
        return self.folder / "texts.log"

    def env(self) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("TIDEMARK_")}
        own = {
            "TIDEMARK_HOME": str(self.home),
            "TIDEMARK_SOURCES_FILE": str(self.declarations),
            "PYTHONPATH": os.pathsep.join(str(PROJECT / name) for name in ("include", "tests")),
            "SOAK_TEXTS": str(self.texts),
        }
        return {**inherited, **own, **self.environment}

    def start(self, *arguments: str) -> Run:
        self._started += 1
        out, err = (self.folder / f"{self._started:04d}.{kind}" for kind in ("out", "err"))
        program = [str(QUICK)] if self.quick else ["-m", "tidemark.cli"]
        with out.open("w") as stdout, err.open("w") as stderr:
            process = subprocess.Popen(
                [*self.prefix, sys.executable, *program, *arguments],
                env=self.env(),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                text=True,
                start_new_session=True,
            )
        return Run(process, out, err)

    def __call__(self, *arguments: str, code: int | None = 0) -> Any:
        """Run a command with ``--json``; what it answers."""
        answer = self.start(*arguments, "--json").end(code)
        return json.loads(answer) if answer.strip() else None

    def index(self, *sources: str, code: int = 0) -> list[dict[str, Any]]:
        """A clean run over sources, however much has changed; their summaries."""
        out = self.start("index", *(sources or self.sources), "--approve", "--json").end(code)
        return self.summaries(out)

    @staticmethod
    def summaries(out: str) -> list[dict[str, Any]]:
        """What a run printed, a summary for each source."""
        return list(_documents(out))

    def differences(self) -> dict[str, int]:
        """What the audit finds wrong, by kind; empty when all is well."""
        findings = self("audit", code=None)
        assert findings is not None
        assert findings["checked"] > 0
        return {
            key: value
            for key, value in findings.items()
            if key not in CLEAN_KEYS and isinstance(value, int) and value
        }

    @property
    def postgres(self) -> EmbeddedPostgres:
        return EmbeddedPostgres(self.home / "postgres")

    @contextmanager
    def ledger(self) -> Iterator[PostgresLedger]:
        url = self.environment.get("TIDEMARK_LEDGER_URL") or self.postgres.url("tidemark")
        ledger = PostgresLedger(url)
        try:
            yield ledger
        finally:
            ledger.close()

    def store(self) -> VectorIndex:
        """The index itself."""
        url = self.environment.get("TIDEMARK_QDRANT_URL")
        if url:
            return QdrantServerIndex(url=url, api_key=None, name="tidemark")
        return QdrantEdgeIndex(self.home / "qdrant", "tidemark", 60)

    def indexed(self) -> set[str]:
        """The addresses of the documents that the index has a point of."""
        points, _ = contents(self)
        return {str(payload["source_uri"]).partition("#")[0] for payload in points.values()}

    def stop(self) -> None:
        server = self.postgres
        if server.is_running():
            server.stop()


def _documents(text: str) -> Iterator[dict[str, Any]]:
    """Several JSON documents one after the other."""
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        document, at = decoder.raw_decode(text, at)
        yield document


def kill(run: Run, death: Death, server: EmbeddedPostgres) -> list[psutil.Process]:
    """Kill -9; the children of the process that were left alive."""
    main = psutil.Process(run.process.pid)
    children: list[psutil.Process] = []
    with suppress(psutil.Error):
        children = [c for c in main.children(recursive=True) if c.name() != "postgres"]
    victims = [main, *(children if death != "process" else [])]
    if death == "everything":
        victims += postgres_processes(server)
    for victim in victims:
        with suppress(psutil.Error):
            # psutil looks at the time of birth first, so that no recycled number is hit.
            victim.send_signal(signal.SIGKILL)
    run.process.wait()
    psutil.wait_procs(victims[1:], timeout=10)
    return children if death == "process" else []


def postgres_processes(server: EmbeddedPostgres) -> list[psutil.Process]:
    """The server of a home and its children, none when it does not run."""
    try:
        pid = int((server.data / "postmaster.pid").read_text().split()[0])
        main = psutil.Process(pid)
        if main.name() != "postgres":
            return []
        return [main, *main.children(recursive=True)]
    except (OSError, ValueError, IndexError, psutil.Error):
        return []


def holding(tide: Home, source: str, run: Run, documents: int = 1) -> None:
    """Wait until a run is in the middle of writing documents."""
    with tide.ledger() as ledger:
        while run.running and len(ledger.writes.pending(source)) < documents:
            time.sleep(0.01)
    assert run.running, f"it ended before it was seen writing: {run.error[-2000:]}"


def outlived(children: Sequence[psutil.Process], seconds: float = 10.0) -> list[str]:
    """Which children are still there so long after their parent was killed."""
    _, alive = psutil.wait_procs(list(children), timeout=seconds)
    return [f"{c.pid} {c.name()}" for c in alive if c.is_running()]


Held = dict[UUID, dict[str, Any]]

TIMED = ("fetched_at", "generation", "modified_at")
"""Of a payload, what tells when and in which generation, not what.

A file that is changed and changed back between two runs has a newer time, and rightly nothing is written.
"""


def contents(home: Home) -> tuple[Held, Held]:
    """Points (with their vectors) and sections of the live generation, by id."""
    index = home.store()
    generation = index.live()
    assert generation is not None
    points = {
        p.point_id: {**_untimed(p.payload), "vector": [round(x, 4) for x in p.dense or ()]}
        for p in index.scan_points(generation, vectors=True)
    }
    sections = {p.point_id: _untimed(p.payload) for p in index.scan_sections(generation)}
    return points, sections


def _other(was: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that differ, as they are and as they should be, and whose they are."""
    fields = {key: (was.get(key), wanted.get(key)) for key in wanted.keys() | was.keys()}
    told = {key: pair for key, pair in fields.items() if pair[0] != pair[1]}
    return {"source_uri": was["source_uri"], **told}


def _untimed(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in payload.items() if key not in TIMED}


def assert_equal_to_fresh(home: Home, folder: Path) -> int:
    """The index is what a fresh home makes of the same folders: every point and section, each once.

    Returns how many points that are.
    """
    fresh = Home(folder, home.sources)
    try:
        fresh.index()
        for was, wanted in zip(contents(home), contents(fresh), strict=True):
            extra, missing = was.keys() - wanted.keys(), wanted.keys() - was.keys()
            assert not extra, f"extra: {[was[key] for key in extra][:3]}"
            assert not missing, f"missing: {[wanted[key] for key in missing][:3]}"
            stale = {key: _other(was[key], wanted[key]) for key in was if was[key] != wanted[key]}
            assert not stale, f"{len(stale)} are stale: {list(stale.values())[:3]}"
        return len(contents(fresh)[0])
    finally:
        fresh.stop()
