"""Processes that outlive a function: started with a record on disk, stopped by it and by nothing else.

    FOLDER/<name>.json   one process: number, time of birth, log. A recycled number has another birth.

Every process carries the folder in its environment, and so do its children: what a killed service leaves
behind is found by that mark.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

MARK = "TIDEMARK_STARTED_FROM"
"""Environment variable that every process of a table carries, with the table's folder."""

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
            return process if _living(process) and self._is(process) else None
        except psutil.Error:
            return None

    def _is(self, process: psutil.Process) -> bool:
        return abs(process.create_time() - self.born) <= _BIRTH_SECONDS

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
        found = []
        for path in sorted(self.folder.glob("*.json")):
            try:
                found.append(Record(**json.loads(path.read_text(encoding="utf-8"))))
            except (OSError, ValueError, TypeError):
                # Cut off while being written: its process is found by the mark.
                path.unlink(missing_ok=True)
        return found

    def alive(self) -> list[Record]:
        return [record for record in self.records() if self._running(record)]

    def _running(self, record: Record) -> bool:
        child = self._children.get(record.pid)
        if child is not None and child.poll() is not None:
            return False
        return record.process() is not None

    def ended(self) -> list[Record]:
        """Processes that were started and have ended by themselves."""
        return [record for record in self.records() if not self._running(record)]

    def stop(self, grace: float = 15.0) -> list[str]:
        """End all processes of the table and their children; returns what was still running.

        Each is asked (TERM); what is left after ``grace`` seconds is killed.
        """
        records = self.records()
        running = [record for record in records if self._running(record)]
        family = list(self._family(running))
        for record in running:
            process = record.process()
            if process is not None:
                _signal(process, signal.SIGTERM)
        self._wait(running, grace)
        left = {*family, *self.marked()}
        for process in left:
            _signal(process, signal.SIGKILL)
        self._wait(running, _KILL_SECONDS)
        _wait_for_end(left, _KILL_SECONDS)
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

    @staticmethod
    def _family(records: Sequence[Record]) -> Iterator[psutil.Process]:
        for record in records:
            process = record.process()
            if process is None:
                continue
            try:
                yield from [process, *process.children(recursive=True)]
            except psutil.Error:
                continue

    def _wait(self, records: Sequence[Record], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while any(self._running(record) for record in records):
            if time.monotonic() > deadline:
                return
            time.sleep(_POLL_SECONDS)


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    try:
        # psutil compares the time of birth first, so that no recycled number is hit.
        if process.is_running():
            process.send_signal(number)
    except psutil.Error:
        return


def _wait_for_end(processes: Iterable[psutil.Process], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while any(_living(process) for process in processes) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def _living(process: psutil.Process) -> bool:
    """Is it there, and more than a name that its parent has not collected?"""
    try:
        return process.is_running() and bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False
