"""The commands that look after an index: is it right, why is it so, and what is to be put right by hand."""

from typing import Annotated

import typer

from tidemark.cli.index import render_summary
from tidemark.cli.output import Bar, Json, Output, Source, errors_to, open_container, text

upkeep = typer.Typer()


@upkeep.command()
def audit(
    source: Source = None,
    repair: Annotated[bool, typer.Option("--repair", help="Heal what is found.")] = False,
    sample: Annotated[
        int,
        typer.Option(
            "--sample", min=0, help="Search a sentence of so many documents too; loads the model."
        ),
    ] = 0,
    as_json: Json = False,
) -> None:
    """Compare the ledger with the index, both ways: points, payloads, vectors and sections."""
    from tidemark.cli import audit as render_audits
    from tidemark.cli.audit import run_audit

    output = Output(as_json)
    with errors_to(output):
        with Bar(output.console, "audit", quiet=as_json) as bar:
            report = run_audit(open_container(), source, repair=repair, sample=sample, progress=bar)
        output.result(report.as_dict(), lambda: render_audits.audit(report))
        if report.differs:
            raise typer.Exit(1)


@upkeep.command()
def takedown(
    uri: Annotated[
        str | None,
        typer.Argument(
            help="A document's address, or the path of a file; without, all that were taken down are listed.",
            callback=text,
        ),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            help="Only in this source; also keeps out what is not known yet.",
            callback=text,
        ),
    ] = None,
    undo: Annotated[
        bool, typer.Option("--undo", help="Let the next crawl index it again.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be removed; remove nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove one document from everywhere, prove it, and keep it out of the next crawls."""
    from tidemark.cli import takedown as takedowns

    output = Output(as_json)
    if undo and (dry_run or uri is None):
        raise typer.BadParameter("--undo takes an address and no --dry-run")
    with errors_to(output):
        container = open_container()
        if uri is None:
            listed = takedowns.list_takedowns(container)
            output.result({"takedowns": listed}, lambda: takedowns.render_listed(listed))
            return
        if dry_run:
            preview = takedowns.preview_takedown(container, uri, source)
            key, rows, shown = "documents", preview, takedowns.render_preview(uri, preview)
        elif undo:
            undone = takedowns.undo_takedown(container, uri, source)
            key, rows, shown = "lifted", undone, takedowns.render_undone(uri, undone)
        else:
            results = takedowns.run_takedown(container, uri, source)
            key, rows = "documents", [dict(result.as_dict()) for result in results]
            shown = takedowns.render_takedowns(uri, results)
        output.result({"uri": uri, key: rows}, lambda: shown)
        if not rows:
            raise typer.Exit(1)


@upkeep.command()
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
    from tidemark.cli.housekeeping import forget_source

    output = Output(as_json)
    with errors_to(output):
        with Bar(output.console, source, quiet=as_json) as bar:
            summary = forget_source(open_container(), source, bar, dry_run=dry_run)
        output.result(summary.as_dict(), lambda: render_summary(summary))
        if summary.status != "success":
            raise typer.Exit(1)


@upkeep.command()
def housekeeping(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be removed; remove nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove what nobody needs any more: old versions, runs and files that nothing refers to."""
    from tidemark.cli.housekeeping import render_housekeeping, run_housekeeping

    output = Output(as_json)
    with errors_to(output):
        done = run_housekeeping(open_container(), output, dry_run=dry_run, quiet=as_json)
        output.result(done.as_dict(), lambda: render_housekeeping(done))


@upkeep.command()
def migrate(as_json: Json = False) -> None:
    """Bring the ledger's schema up to date."""
    from tidemark.adapters.ledger.migrations import current, upgrade

    output = Output(as_json)
    with errors_to(output):
        url = open_container().ledger_url
        upgrade(url)
        revision = current(url)
        output.result({"revision": revision}, lambda: f"The ledger is at revision {revision}.")
