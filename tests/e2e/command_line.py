"""Running `tidemark` as a user does: a process of its own, with its own home.

Most of the time of a command that embeds goes into imports (torch and the like, 7 CPU-seconds). One process
has them done and forks for each command; ``start`` runs the real program from its beginning.
"""

import atexit
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]

FORKS = """
import json, os, sys
import sentence_transformers, transformers
import tidemark.cli

for line in sys.stdin:
    command, environment, folder = json.loads(line)
    child = os.fork()
    if not child:
        for stream, name in ((sys.stdout, "out"), (sys.stderr, "err")):
            with open(os.path.join(folder, name), "wb") as file:
                os.dup2(file.fileno(), stream.fileno())
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.environ.clear()
        os.environ.update(environment)
        sys.argv = command
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
tidemark.cli.main()
"""


class Forks:
    """A process that has the heavy imports done and runs each command in a child of its own.

    Nothing of torch is used before a fork, only imported: it would hang the child.
    """

    def __init__(self) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TIDEMARK_")}
        at_import = {"HF_HUB_OFFLINE": "1", "OMP_WAIT_POLICY": "PASSIVE"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", FORKS],
            env={**environment, **at_import, "PYTHONPATH": str(PROJECT / "include")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, command: list[str], environment: dict[str, str], folder: Path) -> int:
        """The exit code of one command, whose output is left in ``folder``: ``out`` and ``err``."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([command, environment, str(folder)]) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=30)


@cache
def _forks() -> Forks:
    forks = Forks()
    atexit.register(forks.close)
    return forks


@dataclass
class CommandLine:
    """A `tidemark` with a home and a sources file."""

    home: Path
    sources: Path | None = None
    environment: dict[str, str] = field(default_factory=dict)

    def env(self) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("TIDEMARK_")}
        own = {
            "TIDEMARK_HOME": str(self.home),
            "PYTHONPATH": str(PROJECT / "include"),
            # Other tests run beside these; threads that wait for a core only take it from others.
            "TIDEMARK_EMBEDDING_THREADS": "1",
        }
        if self.sources is not None:
            own["TIDEMARK_SOURCES_FILE"] = str(self.sources)
        return {**inherited, **own, **self.environment}

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-m", "tidemark.cli", *arguments],
            env=self.env(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __call__(self, *arguments: str, code: int = 0) -> str:
        """Run a command; its stdout. Fails when it exits with another code."""
        with TemporaryDirectory() as folder:
            status = _forks().run(["tidemark", *arguments], self.env(), Path(folder))
            out, err = (Path(folder, name).read_text("utf-8") for name in ("out", "err"))
        assert status == code, f"exit {status}\n{out}\n{err}"
        self.last_error = err
        return out

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self(*arguments, "--json", code=code))

    def json_lines(self, *arguments: str, code: int = 0) -> list[Any]:
        return [json.loads(line) for line in self(*arguments, "--json", code=code).splitlines()]

    def stop_embedded_postgres(self) -> None:
        from tidemark.adapters.services.postgres import EmbeddedPostgres

        server = EmbeddedPostgres(self.home / "postgres")
        if server.is_running():
            server.stop()
