"""Processes that outlive a function, the guard that stops them, and ports on the loopback address.

    FOLDER/<name>.json   one process: number, time of birth, log. A recycled number has another birth.

Every process carries the folder in its environment, and so do its children, whatever group they put
themselves in (Airflow gives each task one of its own): what a killed service leaves is found by that.

    python -m tidemark_local.processes HOME [--postgres]     the guard of one launcher
"""

import argparse
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from tidemark.domain.errors import PermanentError

MARK = "TIDEMARK_STARTED_FROM"
"""Environment variable that every process of a table carries, with the table's folder."""

HOST = "127.0.0.1"

_BIRTH_SECONDS = 0.5
"""How far two readings of one process's birth may lie apart (the boot time is rounded)."""

_POLL_SECONDS = 0.05
_KILL_SECONDS = 10.0
"""A killed process may take a moment to give back its memory."""


@dataclass(frozen=True, slots=True)
class Record:
    """A process that was started. ``born`` is its creation time in seconds since the epoch."""

    name: str
    pid: int
    born: float
    log: str

    def process(self) -> psutil.Process | None:
        """The process itself, None when it has ended or its number belongs to another one."""
        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.born) <= _BIRTH_SECONDS
            return process if same and _is_alive(process) else None
        except psutil.Error:
            return None

    def tail(self, lines: int = 20) -> list[str]:
        """The last lines of its log."""
        try:
            text = Path(self.log).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return []
        return text.splitlines()[-lines:]


class ProcessTable:
    """The processes recorded in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._children: dict[int, subprocess.Popen[bytes]] = {}

    def spawn(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], log: Path
    ) -> Record:
        """Start a process in a session of its own, its output appended to ``log``.

        Raises ``OSError`` when the command cannot be run.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as output:
            child = subprocess.Popen(  # noqa: S603 - our own services
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Without SPT_NOENV a process that renames itself overwrites the mark.
                env={**environment, MARK: str(self.folder), "SPT_NOENV": "1"},
                start_new_session=True,
            )
        self._children[child.pid] = child
        record = Record(name, child.pid, psutil.Process(child.pid).create_time(), str(log))
        path = self.folder / f"{name}.json"
        unfinished = path.with_suffix(".new")
        unfinished.write_text(json.dumps(asdict(record)), encoding="utf-8")
        unfinished.rename(path)
        return record

    def records(self) -> list[Record]:
        """What was started and not stopped, by name; whether it is alive is for the record to say."""
        records = []
        for path in sorted(self.folder.glob("*.json")):
            try:
                records.append(Record(**json.loads(path.read_text(encoding="utf-8"))))
            except (OSError, ValueError, TypeError):
                # Cut off while being written: its process is found by the mark.
                path.unlink(missing_ok=True)
        return records

    def alive(self) -> list[Record]:
        return [record for record in self.records() if self._runs(record)]

    def ended(self) -> list[Record]:
        """Processes that were started and have ended by themselves."""
        return [record for record in self.records() if not self._runs(record)]

    def _runs(self, record: Record) -> bool:
        child = self._children.get(record.pid)
        if child is not None and child.poll() is not None:
            return False
        return record.process() is not None

    def stop(self, grace: float = 15.0) -> list[str]:
        """End all processes of the table and their children; returns what was still running.

        Each is asked (TERM); what is left after ``grace`` seconds is killed.
        """
        records = self.records()
        running = [record for record in records if self._runs(record)]
        processes = [process for record in running if (process := record.process())]
        family = {child for process in processes for child in _with_children(process)}
        for process in processes:
            _signal(process, signal.SIGTERM)
        _wait_until(lambda: not any(map(self._runs, running)), grace)
        family.update(self.marked())
        for process in family:
            _signal(process, signal.SIGKILL)
        _wait_until(lambda: not any(map(self._runs, running)), _KILL_SECONDS)
        _wait_until(lambda: not any(map(_is_alive, family)), _KILL_SECONDS)
        for record in records:
            (self.folder / f"{record.name}.json").unlink(missing_ok=True)
        return [record.name for record in running]

    def marked(self) -> Iterator[psutil.Process]:
        """Living processes that carry this table's mark, whoever their parent is now."""
        for process in psutil.process_iter():
            try:
                # A database server that a task woke up belongs to its folder, not to the task.
                ours = process.environ().get(MARK) == str(self.folder)
                if ours and process.name() != "postgres" and process.pid != os.getpid():
                    yield process
            except (psutil.Error, OSError):
                continue


def _with_children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return [process, *process.children(recursive=True)]
    except psutil.Error:
        return []


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    try:
        # psutil compares the time of birth first, so that no recycled number is hit.
        if process.is_running():
            process.send_signal(number)
    except psutil.Error:
        return


def _wait_until(true: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def _is_alive(process: psutil.Process) -> bool:
    """Is it there, and more than a name that its parent has not collected?"""
    try:
        return process.is_running() and bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def is_free(port: int) -> bool:
    """Can a server listen on this port of the loopback address?"""
    with socket.socket() as probe:
        # As servers do: a port whose last connection is merely cooling down is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                return False
            raise
        # On some systems binding succeeds beside a server that listens on all addresses.
        with socket.socket() as caller:
            caller.settimeout(0.2)
            return caller.connect_ex((HOST, port)) != 0


def claim(port: int, what: str, variable: str) -> int:
    """The port to use: a free one for 0, else this one.

    Raises ``PermanentError`` when it is taken; ``variable`` is how to choose another.
    """
    if port == 0:
        return free_port()
    if not is_free(port):
        raise PermanentError(
            f"Port {port}, for {what}, is taken.", f"Choose another one: {variable}={port + 1}."
        )
    return port


def guard(arguments: list[str] | None = None) -> int:
    """Wait for the end of a pipe whose other end only the launcher holds (a kill -9 closes it, and so
    does a closed window), then stop what the launcher left running under HOME.
    """
    from tidemark_local.layout import Layout

    parser = argparse.ArgumentParser(prog="python -m tidemark_local.processes")
    parser.add_argument("home", type=Path)
    parser.add_argument("--postgres", action="store_true", help="stop the database server, too")
    options = parser.parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while sys.stdin.buffer.read(64):
        continue
    layout = Layout(options.home)
    layout.processes().stop(grace=10.0)
    layout.state.unlink(missing_ok=True)
    if options.postgres:
        layout.postgres().stop()
    return 0


if __name__ == "__main__":
    sys.exit(guard())
