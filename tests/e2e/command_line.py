"""Running `tidemark` as a user does: a process of its own, with its own home."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]


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
        process = self.start(*arguments)
        out, err = process.communicate(timeout=300)
        assert process.returncode == code, f"exit {process.returncode}\n{out}\n{err}"
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
