"""Running set-up's commands: everything into a log, progress on the terminal, failures in one line.

Standard library only: it runs before anything is installed.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

_STEADY_SECONDS = 30.0
"""How often a step says on a log (no terminal) that it is still at work."""


@dataclass(frozen=True)
class _Cure:
    signs: str
    """Regular expression over a failed command's last lines."""
    message: str
    cure: str


_CURES = (
    _Cure(
        r"No space left on device|Errno 28",
        "The disk is full.",
        "Free about 4 GB and run `make setup` again; it goes on where it stopped.",
    ),
    _Cure(
        r"DO NOT MATCH THE HASHES",
        "A downloaded file is not the one that was tested (its hash differs).",
        "Empty pip's cache (`pip cache purge`) and try again; if it stays so, do not install it.",
    ),
    _Cure(
        r"NewConnectionError|Failed to establish|Name or service not known|Temporary failure in name"
        r"|nodename nor servname|Connection (refused|reset|timed out)|Read timed out|ConnectTimeout"
        r"|Network is unreachable|ProxyError|Max retries exceeded",
        "The package registry cannot be reached.",
        "Connect to the network (or set HTTPS_PROXY, or pip's index-url or find-links) and run "
        "`make setup` again; it goes on where it stopped.",
    ),
    _Cure(
        r"No matching distribution|Could not find a version",
        "A package is not to be had here.",
        "pip needs a registry with the files for this Python and machine.",
    ),
    _Cure(
        r"Permission denied|Errno 13",
        "A folder may not be written.",
        "Run it as the owner of this checkout, or give yourself the folder.",
    ),
)


class SetupError(Exception):
    """Set-up cannot go on: what happened, and the cure."""

    def __init__(self, message: str, cure: str) -> None:
        super().__init__(f"{message} {cure}")
        self.message = message
        self.cure = cure


@dataclass
class Console:
    """Progress of the steps: a line that is rewritten on a terminal, plain lines elsewhere."""

    out: TextIO = field(default_factory=lambda: sys.stderr)
    started: float = field(default_factory=time.monotonic)
    _last_steady: float = 0.0

    def say(self, text: str) -> None:
        self.out.write(f"{text}\n")
        self.out.flush()

    def working(self, title: str, detail: str, since: float) -> None:
        """Show that a step goes on; ``since`` is when it began, in monotonic seconds."""
        now = time.monotonic()
        if self.out.isatty():
            line = f"  … {title:<34}{now - since:4.0f} s  {detail}"
            width = _columns() - 1
            self.out.write(f"\r{line[:width]:<{width}}")
            self.out.flush()
        elif now - max(since, self._last_steady) >= _STEADY_SECONDS:
            self._last_steady = now
            self.say(f"  … {title}, {now - since:.0f} s so far {detail}".rstrip())

    def done(self, title: str, since: float, mark: str = "✓") -> None:
        if self.out.isatty():
            self.out.write("\r" + " " * (_columns() - 1) + "\r")
        self.say(f"  {mark} {title:<34}{time.monotonic() - since:4.0f} s")


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except OSError:
        return 80


@dataclass(frozen=True)
class Runner:
    """Runs commands with their output in the log."""

    console: Console
    log: Path
    environment: Mapping[str, str]

    def run(self, title: str, command: Sequence[str], total: int = 0) -> None:
        """Run one command as a step. ``total`` is how many packages pip will collect, 0 if unknown.

        Raises ``SetupError`` with the cure when it fails.
        """
        self.run_all(title, [command], total)

    def run_all(self, title: str, commands: Sequence[Sequence[str]], total: int = 0) -> None:
        """Run commands beside each other as one step."""
        since = time.monotonic()
        children = [_Child(command, self.log, self.environment, total) for command in commands]
        try:
            while any(child.running for child in children):
                detail = next((c.detail for c in children if c.running and c.detail), "")
                self.console.working(title, detail, since)
                time.sleep(0.2)
        except BaseException:
            for child in children:
                child.stop()
            raise
        for child in children:
            if child.finish() != 0:
                self.console.done(title, since, mark="✗")
                raise explain(child.tail, self.log)
        self.console.done(title, since)


class _Child:
    """One command whose output is read line by line into the log."""

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str], total: int
    ) -> None:
        self.tail: deque[str] = deque(maxlen=60)
        self.detail = ""
        self._total = total
        self._count = 0
        self._log = log
        self._append("$ " + shlex.join(command))
        self._process = subprocess.Popen(  # noqa: S603 - set-up's own commands
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=dict(environment),
            text=True,
            errors="replace",
            # Its own group: Ctrl-C reaches set-up alone, which then stops the children in order.
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def finish(self) -> int:
        self._reader.join()
        return self._process.wait()

    def stop(self) -> None:
        if not self.running:
            return
        os.killpg(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - Popen was asked for the pipe
        for line in self._process.stdout:
            text = line.rstrip()
            self.tail.append(text)
            self._append(text)
            self._note(text)

    def _note(self, text: str) -> None:
        if text.startswith("Collecting "):
            self._count += 1
            name = text.split()[1].split("==")[0]
            self.detail = f"{self._count}/{self._total} {name}" if self._total else name
        elif text.startswith("Installing collected packages"):
            self.detail = "unpacking"

    def _append(self, text: str) -> None:
        with self._log.open("a", encoding="utf-8") as log:
            log.write(text + "\n")


def explain(tail: Sequence[str], log: Path) -> SetupError:
    """Name what went wrong from a command's last lines, and the cure."""
    output = "\n".join(tail)
    for known in _CURES:
        if re.search(known.signs, output):
            detail = f"({last_useful(tail)}; the log is {log})"
            return SetupError(known.message, f"{known.cure} {detail}")
    return SetupError(last_useful(tail), f"The whole story is in {log}")


def last_useful(tail: Sequence[str]) -> str:
    """The last line that says something: pip's last ERROR, else the last line that is not empty."""
    lines = [line.strip() for line in tail if line.strip()]
    errors = [line for line in lines if re.match(r"(ERROR|.*Error\b)", line)]
    line = (errors or lines or ["the command said nothing"])[-1]
    return line if len(line) <= 300 else line[:297] + "..."
