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
    from tidemark.cli import takedown as render_takedowns
    from tidemark.cli.takedown import list_takedowns, preview_takedown, run_takedown, undo_takedown

    output = Output(as_json)
    if undo and (dry_run or uri is None):
        raise typer.BadParameter("--undo takes an address and no --dry-run")
    with errors_to(output):
        if uri is None:
            listed = list_takedowns(open_container())
            output.result({"takedowns": listed}, lambda: render_takedowns.listed(listed))
            return
        if dry_run:
            would = preview_takedown(open_container(), uri, source)
            output.result(
                {"uri": uri, "documents": would}, lambda: render_takedowns.previewed(uri, would)
            )
            found = bool(would)
        elif undo:
            lifted = undo_takedown(open_container(), uri, source)
            output.result(
                {"uri": uri, "lifted": lifted}, lambda: render_takedowns.lifted(uri, lifted)
            )
            found = bool(lifted)
        else:
            done = run_takedown(open_container(), uri, source)
            output.result(
                {"uri": uri, "documents": [one.as_dict() for one in done]},
                lambda: render_takedowns.takedowns(uri, done),
            )
            found = bool(done)
        if not found:
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
    from tidemark.cli.forget import forget_source

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
    from tidemark.cli import takedown as render_takedowns
    from tidemark.cli.forget import run_housekeeping

    output = Output(as_json)
    with errors_to(output):
        done = run_housekeeping(open_container(), output, dry_run=dry_run, quiet=as_json)
        output.result(done.as_dict(), lambda: render_takedowns.housekeeping(done))


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
