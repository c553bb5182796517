"""Progress for a person: a bar in a terminal, a line now and then where there is none."""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from tidemark.cli.texts import safe

LINE_SECONDS = 10.0
"""Without a terminal, one line so often."""


class Bar:
    """Implements the Progress port."""

    def __init__(self, console: Console, name: str, *, quiet: bool) -> None:
        self._name = name
        self._quiet = quiet
        self._console = console
        # A terminal that cannot move its cursor shows no bar: it is given lines.
        self._bar = console.is_interactive and not quiet
        self._progress = Progress(
            TextColumn("{task.fields[source]}", style="bold", markup=False),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            # Addresses are shown here, and a bracket in one is no markup.
            TextColumn("{task.fields[detail]}", style="dim", markup=False),
            console=console,
            transient=True,
            disable=not self._bar,
        )
        self._stage = "starting"
        self._task = self._add("starting", None)
        self._done = 0
        self._total: int | None = None
        self._began = self._last_line = time.monotonic()

    def __enter__(self) -> "Bar":
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def stage(self, name: str, total: int | None) -> None:
        self._stage, self._done, self._total = name, 0, total
        self._began = time.monotonic()
        # A task of its own: `reset` and `update` can neither forget a total nor keep other fields.
        self._progress.remove_task(self._task)
        self._task = self._add(name, total)

    def advance(self, count: int = 1, detail: str = "") -> None:
        self._done += count
        self._progress.update(self._task, advance=count, detail=_short(detail))
        lines = not self._quiet and not self._bar
        if lines and time.monotonic() - self._last_line >= LINE_SECONDS:
            self._last_line = time.monotonic()
            line = f"{self._name}: {self._stage}, {self._so_far()}"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _so_far(self) -> str:
        documents = "document" if (self._total or self._done) == 1 else "documents"
        if self._total is None:
            return f"{self._done} {documents} so far"
        taken = time.monotonic() - self._began
        left = taken / self._done * max(0, self._total - self._done) if self._done else 0.0
        return f"{self._done} of {self._total} {documents}, about {left:.0f} s left"

    def _add(self, stage: str, total: int | None) -> TaskID:
        return self._progress.add_task(stage, total=total, source=self._name, detail="")


def _short(text: str, width: int = 48) -> str:
    text = " ".join(safe(text).split())
    return text if len(text) <= width else "…" + text[1 - width :]
