"""What all commands share: their arguments, how they tell of errors, and where results go.

JSON goes to stdout for scripts, rich text to people, errors to stderr.
"""

import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from tidemark.config.settings import Settings
from tidemark.domain.errors import ConfigurationError, TidemarkError
from tidemark.wiring import Container

# Text for a terminal: tables, and nothing by which a document could write what it is not.

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
"""What writes on the terminal elsewhere than where it stands; the last two ranges turn text around."""
_UNSEEN = re.compile(r"[\u061c\u200b\u200e\u200f\u2060-\u2064\ufeff\U000e0000-\U000e007f]")
"""What takes no room: in a name or an address it hides that it is another one. Joiners (U+200C, U+200D)
are left, for words of several scripts and many emoji are written with them."""
_BREAK = re.compile(r"[\t\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")


def table_of(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def add_row(table: Table, *cells: object) -> None:
    # What comes from documents must not be read as markup.
    table.add_row(*(Text(safe(str(cell))) for cell in cells))


def safe(text: str) -> str:
    """One line, without the characters by which a document could write or forge other ones."""
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", safe_lines(_BREAK.sub(" ", text)))


def safe_lines(text: str) -> str:
    """A text of several lines, without the control characters that a document could use on a terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


LOG_WIDTH = 120
"""Columns where there is no terminal."""


class Output:
    """Prints results in the form that was asked for."""

    def __init__(self, as_json: bool) -> None:
        self._json = as_json
        self.console = Console(stderr=True)
        # A log has room for an address on one line.
        self._out = Console(width=None if sys.stdout.isatty() else LOG_WIDTH)

    @property
    def is_json(self) -> bool:
        return self._json

    def result(self, data: Mapping[str, Any], rendered: Callable[[], RenderableType]) -> None:
        """One result."""
        if self._json:
            # Whatever the terminal's encoding: ASCII where it is not Unicode, so that it can be written.
            ascii_only = not (sys.stdout.encoding or "").lower().startswith("utf")
            text = json.dumps(data, ensure_ascii=ascii_only, default=str)
            sys.stdout.write(text.encode("utf-8", "replace").decode() + "\n")
            sys.stdout.flush()
        else:
            self._out.print(rendered())

    line = result
    """One of several results: with JSON, each is one line."""

    def error(self, error: Exception) -> None:
        """One clear line on stderr; the hint is part of the error's text."""
        text = " ".join(safe(_words(error)).split())
        self.console.print(Text("Error: ", style="bold red") + Text(text), soft_wrap=True)

    def warn(self, text: str) -> None:
        """One line on stderr about something that was left undone."""
        words = " ".join(safe(text).split())
        self.console.print(Text("Warning: ", style="bold yellow") + Text(words), soft_wrap=True)


def _words(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    # Without the values, for settings may be secrets.
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    wrong = [
        (".".join(map(str, p["loc"])), p["msg"].removeprefix("Value error, ")) for p in problems
    ]
    if error.title == "Settings":
        wrong = [(f"TIDEMARK_{name.upper()}", message) for name, message in wrong]
    return "; ".join(f"{name}: {message}" for name, message in wrong) + "."


# Progress for a person: a bar in a terminal, a line now and then where there is none.

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


# What all commands share: how they are given their arguments, and how they tell of errors.


def text(given: str | list[str] | None) -> str | list[str] | None:
    """Refuse an argument that is not valid UTF-8: it reaches Python as half characters."""
    for text in given if isinstance(given, list) else [given or ""]:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise typer.BadParameter("it is not valid UTF-8; write it in UTF-8") from None
    return given


Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout, logs on stderr.")]
Sources = Annotated[
    list[str] | None,
    typer.Argument(help="Declared sources.", show_default=False, callback=text),
]
Source = Annotated[str | None, typer.Argument(help="One source; all when left out.", callback=text)]
Url = Annotated[
    str | None, typer.Option("--url", help="A website that is not declared.", callback=text)
]
Folder = Annotated[
    Path | None, typer.Option("--path", help="A folder, or one file, that is not declared.")
]


@contextmanager
def errors_to(output: Output) -> Iterator[None]:
    """Turn errors into one clear line and the exit code of the contract."""
    try:
        yield
    except (ConfigurationError, ValidationError) as error:
        output.error(error)
        raise typer.Exit(2) from error
    except TidemarkError as error:
        output.error(error)
        raise typer.Exit(1) from error


def open_container() -> Container:
    return Container(Settings())
