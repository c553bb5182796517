"""Where results go: JSON on stdout for scripts, rich text for people, errors on stderr."""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import ValidationError
from rich.console import Console, RenderableType
from rich.text import Text

from tidemark.cli.render import safe


class Output:
    """Prints results in the form that was asked for."""

    def __init__(self, as_json: bool) -> None:
        self._json = as_json
        self.console = Console(stderr=True)
        self._out = Console()

    def result(self, data: Mapping[str, Any], rendered: Callable[[], RenderableType]) -> None:
        """One result."""
        if self._json:
            # Whatever the terminal's encoding: ASCII where it is not Unicode, so that it can be written.
            ascii_only = not (sys.stdout.encoding or "").lower().startswith("utf")
            text = json.dumps(data, ensure_ascii=ascii_only, default=str)
            sys.stdout.write(text.encode("utf-8", "replace").decode() + "\n")
            sys.stdout.flush()
        else:
            # Where there is no terminal, lines are not cut: they are for grep.
            self._out.print(rendered(), soft_wrap=not self._out.is_terminal)

    line = result
    """One of several results: with JSON, each is one line."""

    def error(self, error: Exception) -> None:
        """One clear line on stderr; the cure is part of the error's text."""
        text = " ".join(safe(_words(error)).split())
        self.console.print(Text("Error: ", style="bold red") + Text(text), soft_wrap=True)


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
