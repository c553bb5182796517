"""What all commands share: how they are given their arguments, and how they tell of errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from tidemark.cli.output import Output
from tidemark.config.settings import Settings
from tidemark.domain.errors import ConfigurationError, TidemarkError
from tidemark.wiring import Container


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
def told(output: Output) -> Iterator[None]:
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
