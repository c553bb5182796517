"""Housekeeping, and forgetting a source that nobody declares any more."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tidemark.cli.index import render_summary
from tidemark.cli.output import Bar, Json, Output, errors_to, open_container, safe, text
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.records import RunSummary
from tidemark.wiring import Container, Emptied

if TYPE_CHECKING:
    from tidemark.stages.housekeeping import Housekeeping


def forget(
    source: Annotated[
        str, typer.Argument(help="A source that is not declared any more.", callback=text)
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be removed; remove nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove all that the index has of a source that is not declared any more."""
    output = Output(as_json)
    with errors_to(output):
        with Bar(output.console, source, quiet=as_json) as bar:
            summary = forget_source(open_container(), source, bar, dry_run=dry_run)
        output.result(summary.as_dict(), lambda: render_summary(summary))
        if summary.status != "success":
            raise typer.Exit(1)


def housekeeping(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be removed; remove nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove what nobody needs any more: old versions, runs and files that nothing refers to."""
    output = Output(as_json)
    with errors_to(output):
        done = run_housekeeping(open_container(), output, dry_run=dry_run, quiet=as_json)
        output.result(done.as_dict(), lambda: render_housekeeping(done))


def forget_source(container: Container, name: str, bar: Bar, *, dry_run: bool) -> RunSummary:
    """A run of the source as if nothing were in it; what it removes is kept aside as any removed document is.

    Raises ``ConfigurationError`` for a source that is declared, or that no one knows, and
    ``SourceBusyError`` while a run holds it.
    """
    from tidemark.pipeline import new_run_id, plan_source, run_source

    if name in container.declarations.sources or name in container.declarations.broken:
        file = container.settings.sources_file
        raise ConfigurationError(
            f"The source {name} is declared, so that its next run would bring everything back.",
            f"Remove it from {file} first; or, to keep what it has and run it no more, set enabled: false.",
        )
    declared = container.declared(name)
    deps = replace(container.deps(declared, bar), source=Emptied())
    job = replace(container.job(declared, new_run_id(name, deps), approved=True), judge=False)
    if dry_run:
        return plan_source(job, deps)[0]
    return run_source(job, deps, "cli", "forgotten by hand")


def run_housekeeping(
    container: Container, output: Output, *, dry_run: bool, quiet: bool
) -> "Housekeeping":
    """Remove what nobody needs any more; with ``dry_run``, tell what that would be.

    Raises ``ConfigurationError`` when the sources cannot be read: then none of them is known to be wanted.
    """
    with Bar(output.console, "housekeeping", quiet=quiet) as bar:
        return container.collect_garbage(dry_run=dry_run, progress=bar)


def render_housekeeping(done: "Housekeeping") -> RenderableType:
    """What was removed, kind by kind."""
    removed, freed = (
        ("would be removed", "would be freed") if done.dry_run else ("removed", "were freed")
    )
    table = Table("what", removed, "bytes", box=None, pad_edge=False)
    for kind, garbage in done.removed.items():
        if garbage.count:
            table.add_row(kind.replace("_", " "), f"{garbage.count:,}", f"{garbage.bytes:,}")
    notes = [Text(safe(f"  ! {note}"), style="yellow") for note in done.notes]
    if not table.row_count:
        return Group(Text("There is nothing to remove."), *notes)
    return Group(table, Text(f"{done.freed_bytes:,} bytes {freed}."), *notes)
