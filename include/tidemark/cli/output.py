"""Where results go: JSON on stdout for scripts, rich text for people, errors on stderr."""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError
from rich.console import Console, RenderableType
from rich.text import Text

from tidemark.cli.texts import safe

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
        """One clear line on stderr; the cure is part of the error's text."""
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
