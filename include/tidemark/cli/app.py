"""The commands. Each shares its stages with the DAGs; without ``--json`` it talks to a person."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from tidemark.cli.audit import audit
from tidemark.cli.chunk import chunk
from tidemark.cli.explain import explain
from tidemark.cli.housekeeping import forget, housekeeping
from tidemark.cli.index import index, plan
from tidemark.cli.output import (
    Json,
    Output,
    add_row,
    errors_to,
    open_container,
    safe,
    table_of,
)
from tidemark.cli.quarantine import quarantine, retry
from tidemark.cli.search import search
from tidemark.cli.status import status
from tidemark.cli.takedown import takedown

app = typer.Typer(
    name="tidemark",
    help="Keep a retrieval index true to its sources.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


for command in (
    index, plan, search, status, chunk, explain, quarantine, retry, audit, takedown, forget, housekeeping,
):  # fmt: skip
    app.command()(command)


def _version(asked: bool) -> None:
    if asked:
        from tidemark import __version__

        typer.echo(f"tidemark {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Say which version this is.", callback=_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Keep a retrieval index true to its sources."""


def main() -> None:
    """Run a command. Exit 0: done. 1: the work failed. 2: bad usage or configuration."""
    # A closed pipe (`tidemark … | head`) is not an error of the work.
    try:
        app()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


@app.command()
def sources(as_json: Json = False) -> None:
    """List the declared sources and check their declarations."""
    output = Output(as_json)
    with errors_to(output):
        declared = open_container().declarations
        rows = [
            {"name": s.name, "kind": s.kind_name, "schedule": s.schedule, "profile": s.profile,
             "enabled": s.enabled}
            for s in declared.sources.values()
        ]  # fmt: skip
        errors = {name: str(error) for name, error in declared.broken.items()}
        output.result({"sources": rows, "errors": errors}, lambda: render_sources(rows, errors))
        if errors:
            raise typer.Exit(2)


@app.command()
def migrate(as_json: Json = False) -> None:
    """Bring the ledger's schema up to date."""
    from tidemark.adapters.ledger.migrations import current, upgrade

    output = Output(as_json)
    with errors_to(output):
        url = open_container().ledger_url
        upgrade(url)
        revision = current(url)
        output.result({"revision": revision}, lambda: f"The ledger is at revision {revision}.")


def render_sources(rows: Sequence[Mapping[str, Any]], errors: Mapping[str, str]) -> RenderableType:
    table = table_of("source", "kind", "schedule", "profile", "")
    for row in rows:
        add_row(
            table, row["name"], row["kind"], row["schedule"], row["profile"],
            "" if row["enabled"] else "disabled",
        )  # fmt: skip
    return Group(table, *(Text(safe(error), style="red") for error in errors.values()))
