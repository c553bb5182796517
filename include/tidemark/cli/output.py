"""Where results go: JSON on stdout for scripts, rich text for people, errors on stderr."""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console, RenderableType
from rich.text import Text


class Output:
    """Prints results in the form that was asked for."""

    def __init__(self, as_json: bool) -> None:
        self._json = as_json
        self.console = Console(stderr=True)
        self._out = Console()

    def result(self, data: Mapping[str, Any], rendered: Callable[[], RenderableType]) -> None:
        """One result."""
        if self._json:
            sys.stdout.write(json.dumps(data, ensure_ascii=False, default=str) + "\n")
            sys.stdout.flush()
        else:
            # Where there is no terminal, lines are not cut: they are for grep.
            self._out.print(rendered(), soft_wrap=not self._out.is_terminal)

    line = result
    """One of several results: with JSON, each is one line."""

    def error(self, error: Exception) -> None:
        """One clear line on stderr; the cure is part of the error's text."""
        self.console.print(Text("Error: ", style="bold red") + Text(str(error)), soft_wrap=True)
