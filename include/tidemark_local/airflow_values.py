"""What Airflow's REST API says of runs and tasks, as values."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

Json: TypeAlias = dict[str, Any]
"""An object of the API, as it came."""

ENDED = frozenset({"success", "failed"})


@dataclass(frozen=True, slots=True)
class DagRun:
    """A run. Times are aware; ``seconds`` is how long it took, None while it runs."""

    dag_id: str
    run_id: str
    state: str
    logical_date: datetime | None
    data_interval_start: datetime | None
    data_interval_end: datetime | None
    seconds: float | None
    note: str

    @property
    def ended(self) -> bool:
        return self.state in ENDED


@dataclass(frozen=True, slots=True)
class TaskRun:
    """A task of a run. ``map_index`` is -1 for one that is not mapped; ``state`` "" before it is set."""

    task_id: str
    map_index: int
    state: str
    try_number: int
    seconds: float | None
    note: str

    @property
    def label(self) -> str:
        return self.task_id if self.map_index < 0 else f"{self.task_id}[{self.map_index}]"


@dataclass(frozen=True, slots=True)
class Backfill:
    """A backfill; ``completed`` when all its runs have ended."""

    backfill_id: int
    dag_id: str
    completed: bool


def _time(value: str | None) -> datetime | None:
    return datetime.fromisoformat(value) if value else None


def dag_run(found: Json) -> DagRun:
    start, end = _time(found["start_date"]), _time(found["end_date"])
    return DagRun(
        dag_id=found["dag_id"],
        run_id=found["dag_run_id"],
        state=found["state"],
        logical_date=_time(found["logical_date"]),
        data_interval_start=_time(found["data_interval_start"]),
        data_interval_end=_time(found["data_interval_end"]),
        seconds=(end - start).total_seconds() if start and end else None,
        note=found["note"] or "",
    )


def task_run(found: Json) -> TaskRun:
    return TaskRun(
        task_id=found["task_id"],
        map_index=found["map_index"],
        state=found["state"] or "",
        try_number=found["try_number"],
        seconds=found["duration"],
        note=found["note"] or "",
    )


def backfill(found: Json) -> Backfill:
    return Backfill(found["id"], found["dag_id"], found["completed_at"] is not None)


def log_lines(entry: str | Json) -> list[str]:
    """The lines of one entry of a task's log, an exception as its last line."""
    if isinstance(entry, str):
        return entry.splitlines()
    problems = entry.get("error_detail") or []
    raised = [line for problem in problems for line in _raised(problem)]
    return [str(entry.get("event", "")), *raised]


def _raised(problem: Json) -> list[str]:
    frames = problem.get("frames") or []
    where = [f"  {f.get('filename')}:{f.get('lineno')} in {f.get('name')}" for f in frames[-3:]]
    return [*where, f"{problem.get('exc_type', '')}: {problem.get('exc_value', '')}"]
