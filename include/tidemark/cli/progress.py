"""Progress for a person: a bar in a terminal, a line now and then where there is none."""

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

LINE_SECONDS = 10.0
"""Without a terminal, one line so often."""


class Bar:
    """Implements the Progress port."""

    def __init__(self, console: Console, name: str, *, quiet: bool) -> None:
        self._name = name
        self._quiet = quiet
        self._console = console
        self._progress = Progress(
            TextColumn("[bold]{task.fields[source]}[/] {task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[detail]}"),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self._task = self._progress.add_task("starting", source=name, detail="", total=None)
        self._stage = "starting"
        self._done = 0
        self._last_line = time.monotonic()

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
        self._stage, self._done = name, 0
        self._progress.reset(self._task, description=name, total=total, detail="")

    def advance(self, count: int = 1, detail: str = "") -> None:
        self._done += count
        self._progress.update(self._task, advance=count, detail=_short(detail))
        lines = not self._quiet and not self._console.is_terminal
        if lines and time.monotonic() - self._last_line >= LINE_SECONDS:
            self._last_line = time.monotonic()
            self._console.print(f"{self._name}: {self._stage}, {self._done} documents so far")


def _short(text: str, width: int = 48) -> str:
    return text if len(text) <= width else "…" + text[1 - width :]
