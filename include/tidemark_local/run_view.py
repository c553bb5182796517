"""What a person sees of `make run`: a table that changes in a terminal, lines elsewhere."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tidemark_local.airflow_values import DagRun, TaskRun

_MARKS = {"success": "✓", "failed": "✗", "skipped": "–"}
"""Of the states in which a task has ended."""


class RunView:
    """The console of one `make run`."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console()
        self._began = time.monotonic()
        self._said: dict[str, str] = {}
        self._live: Live | None = None
        self._rows: dict[str, str] = {}

    def step(self, text: str) -> None:
        """A line with the seconds since the start."""
        seconds = time.monotonic() - self._began
        self.console.print(
            f"[dim]{seconds:5.0f} s[/]  {escape(text)}", soft_wrap=True, highlight=False
        )

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While runs are watched: a live table on a terminal."""
        if not self.console.is_terminal:
            yield
            return
        with Live(self._table(), console=self.console, transient=True) as self._live:
            yield
        self._live = None

    def progress(self, run: DagRun, tasks: Sequence[TaskRun]) -> None:
        """Show how far a run is."""
        self._rows[run.dag_id] = task_line(tasks)
        if self._live is not None:
            self._live.update(self._table())
            return
        for task in sorted(tasks, key=_place):
            key = f"{run.dag_id} {task.label}"
            if task.state in _MARKS and self._said.get(key) != task.state:
                self._said[key] = task.state
                self.step(f"{run.dag_id}: {task.label} {_MARKS[task.state]} {_took(task)}".rstrip())

    def _table(self) -> Table:
        table = Table.grid(padding=(0, 2))
        for dag_id, line in sorted(self._rows.items()):
            table.add_row(f"         {dag_id}", escape(line))
        return table

    def summaries(self, summaries: Sequence[Mapping[str, Any]]) -> None:
        """What each run did, as a table, or that nothing changed."""
        table = Table(title="What was done", title_justify="left", title_style="bold", box=None)
        for column in ("source", "documents", "embedded", "kept", "removed", "seconds"):
            table.add_column(
                column, justify="left" if column in ("source", "documents") else "right"
            )
        for found in summaries:
            chunks = found["chunks"]
            table.add_row(
                escape(str(found["source"])),
                escape(_counts(found["documents"])),
                *(f"{chunks[name]}" for name in ("embedded", "kept", "removed")),
                f"{sum(found['seconds'].values()):.1f}",
            )
        self.console.print()
        self.console.print(table)
        self.console.print(
            "[dim]embedded, kept and removed are chunks; seconds are of the stages[/]"
        )
        for line in [str(line) for found in summaries for line in found["attention"]]:
            self.console.print(Text(f"  note: {line}", style="yellow"), soft_wrap=True)
        if summaries and all(nothing_changed(found) for found in summaries):
            checked = sum(sum(found["documents"].values()) for found in summaries)
            self.console.print(
                f"\n[bold green]Nothing changed[/]: {checked} documents were checked, and none "
                "had to be partitioned, chunked or embedded again.",
                soft_wrap=True,
            )

    def command(self, text: str) -> None:
        """A command that a person could type, before what it prints."""
        self.console.print(f"\n[bold]$ {escape(text)}[/]", soft_wrap=True, highlight=False)
        self.console.file.flush()

    def next_steps(self, steps: Sequence[tuple[str, str]]) -> None:
        """What to type or look into next, and what for."""
        self.console.print("\n[bold]What next[/]")
        width = max(len(what) for what, _ in steps)
        for what, why in steps:
            line = f"  [bold]{escape(what.ljust(width))}[/]  {escape(why)}"
            self.console.print(line, soft_wrap=True, highlight=False)

    def failure(self, run: DagRun, task: TaskRun, log: Sequence[str]) -> None:
        """The end of a failed task's log."""
        self.console.print(f"\n[bold red]{escape(run.dag_id)}: {escape(task.label)} failed[/]")
        for line in log[-15:]:
            self.console.print(Text(f"    {line}"), soft_wrap=True)


def task_line(tasks: Sequence[TaskRun]) -> str:
    """All tasks of a run in a line, in the order of the DAG; mapped ones as a count."""
    order: dict[str, Counter[str]] = {}
    for task in sorted(tasks, key=_place):
        order.setdefault(task.task_id, Counter())[task.state] += 1
    shown = []
    for name, states in order.items():
        total = states.total()
        if total > 1 and states["success"] < total:
            shown.append(f"{name} {states['success']}/{total}")
        elif total:
            state = next(iter(states))
            shown.append(f"{name} {_MARKS.get(state, '…' if state == 'running' else '')}".rstrip())
    return "  ".join(shown)


def _place(task: TaskRun) -> tuple[int, int]:
    return _ORDER.get(task.task_id, len(_ORDER)), task.map_index


def _took(task: TaskRun) -> str:
    return f"{task.seconds:.1f} s" if task.seconds is not None else ""


_ORDER = {
    name: place
    for place, name in enumerate(
        ("crawl", "plan", "approve", "process", "sweep", "audit", "report")
    )
}


def nothing_changed(summary: Mapping[str, Any]) -> bool:
    """Did a run look at everything and leave the index as it was?"""
    chunks = summary["chunks"]
    touched = {name for name, count in summary["documents"].items() if count} - {"keep", "skip"}
    succeeded = summary["status"] == "success" and not summary["problem"]
    return succeeded and not chunks["embedded"] and not chunks["removed"] and not touched


def _counts(documents: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in documents.items() if count) or "none"
