"""The commands. Each shares its stages with the DAGs; without ``--json`` it talks to a person."""

import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tidemark.cli import render
from tidemark.cli.adhoc import adhoc_files, adhoc_website
from tidemark.cli.common import Folder, Json, Source, Sources, Url, open_container, text, told
from tidemark.cli.output import Bar, Output
from tidemark.cli.upkeep import upkeep
from tidemark.config.sources_file import SourceDeclaration
from tidemark.domain.errors import SourceBusyError
from tidemark.wiring import Container

app = typer.Typer(
    name="tidemark",
    help="Keep a retrieval index true to its sources.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.add_typer(upkeep)


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


def _declared(
    container: Container,
    names: list[str] | None,
    *,
    every: bool,
    url: str | None,
    path: Path | None,
) -> list[SourceDeclaration]:
    chosen: list[SourceDeclaration] = []
    if url is not None:
        chosen.append(adhoc_website(url))
    if path is not None:
        chosen.append(adhoc_files(path))
    chosen += [container.declarations.source(name) for name in names or []]
    if every:
        if container.declarations.broken:
            raise next(iter(container.declarations.broken.values()))
        chosen += [s for s in container.declarations.sources.values() if s.enabled]
    if not chosen:
        raise typer.BadParameter("name a source, or use --all, --url or --path")
    return chosen


@app.command()
def index(
    sources: Sources = None,
    every: Annotated[bool, typer.Option("--all", help="Every declared source.")] = False,
    url: Url = None,
    path: Folder = None,
    force: Annotated[
        bool, typer.Option("--force", help="Do every stage again, for unchanged documents too.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Crawl and plan; change nothing.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Look at so many documents; deletes nothing.")
    ] = None,
    approve: Annotated[
        bool, typer.Option("--approve", help="Apply it however much changes at once.")
    ] = False,
    accept: Annotated[
        list[str] | None,
        typer.Option(
            "--accept",
            help="A URI whose doubtful new version is to be believed, or all; repeatable.",
            callback=text,
        ),
    ] = None,
    note: Annotated[str, typer.Option(help="Kept with the run.", callback=text)] = "",
    as_json: Json = False,
) -> None:
    """Run sources in this process: the same stages as their DAGs, without a scheduler."""
    from tidemark.pipeline import new_run_id, plan_source, run_source
    from tidemark.stages.explain import not_found

    output = Output(as_json)
    with told(output):
        container = open_container()
        failed = False
        for declared in _declared(container, sources, every=every, url=url, path=path):
            try:
                with Bar(output.console, declared.name, quiet=as_json) as bar:
                    deps = container.deps(declared, bar)
                    run_id = new_run_id(declared.name, deps)
                    job = container.job(
                        declared,
                        run_id,
                        force=force,
                        limit=limit,
                        approved=approve,
                        accept=["*" if uri == "all" else uri for uri in accept or []],
                    )
                    summary = (
                        plan_source(job, deps)[0] if dry_run else run_source(job, deps, "cli", note)
                    )
            except SourceBusyError as error:  # the others need not wait for it
                output.error(error)
                failed = True
                continue
            failed |= summary.status != "success"
            output.result(summary.as_dict(), partial(render.summary, summary))
            for uri in not_found(deps.ledger, declared.name, job.accept):
                output.warn(uri)
        if failed:
            raise typer.Exit(1)


@app.command()
def plan(
    source: Annotated[str | None, typer.Argument(help="A declared source.", callback=text)] = None,
    url: Url = None,
    path: Folder = None,
    force: Annotated[bool, typer.Option("--force", help="As `index --force` would.")] = False,
    as_json: Json = False,
) -> None:
    """Show what a run would do, and why, without doing it."""
    from tidemark.pipeline import new_run_id, plan_source
    from tidemark.stages.plan.plan import read_all_decisions

    output = Output(as_json)
    with told(output):
        container = open_container()
        names = [source] if source else None
        (declared, *more) = _declared(container, names, every=False, url=url, path=path)
        if more:
            raise typer.BadParameter("one source at a time")
        with Bar(output.console, declared.name, quiet=as_json) as bar:
            deps = container.deps(declared, bar)
            job = container.job(declared, new_run_id(declared.name, deps), force=force)
            _, planned = plan_source(job, deps)
        items = [
            {"uri": d.uri, "action": d.action.value, "reason": d.reason.value, "detail": d.detail}
            for d in read_all_decisions(deps.artifacts, job.run_id, planned)
        ]
        result = {"source": declared.name, **planned.as_dict(), "items": items}
        output.result(result, lambda: render.plan(declared.name, planned, items))


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="A question or some words.", callback=text)],
    k: Annotated[int, typer.Option("--k", "-k", min=1, max=200, help="Results.")] = 5,
    mode: Annotated[str, typer.Option(help="dense, lexical or hybrid.", callback=text)] = "dense",
    expand: Annotated[
        str, typer.Option(help="none or section: give the parent too.", callback=text)
    ] = "section",
    filters: Annotated[
        list[str] | None,
        typer.Option("--filter", help="key=value of the payload; repeatable.", callback=text),
    ] = None,
    as_json: Json = False,
) -> None:
    """Search the index: the best chunks, with their headings and their parent sections."""
    from tidemark.stages import search as stage

    output = Output(as_json)
    if mode not in stage.MODES:
        raise typer.BadParameter(f"--mode is one of {', '.join(stage.MODES)}")
    if expand not in stage.EXPANSIONS:
        raise typer.BadParameter(f"--expand is one of {', '.join(stage.EXPANSIONS)}")
    if not query.strip():
        raise typer.BadParameter("the query is empty")
    where = _filters(filters or [])
    with told(output):
        results = stage.search(open_container().searcher, query, k, mode, expand, where)
        output.result(
            {"query": query, "mode": mode, "results": [r.as_dict() for r in results]},
            lambda: render.results(results, fields=list(where)),
        )


def _filters(pairs: list[str]) -> dict[str, str | list[str]]:
    where: dict[str, list[str]] = {}
    for pair in pairs:
        key, found, value = pair.partition("=")
        if not found or not key:
            raise typer.BadParameter(f"--filter {pair!r}: write key=value")
        where.setdefault(key.strip(), []).append(value)
    return {key: values[0] if len(values) == 1 else values for key, values in where.items()}


@app.command()
def status(
    source: Source = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Exit 1 when a last run failed, or the index lacks anything."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what is indexed, by source, and how the last runs went."""
    from tidemark.cli.status import is_well, read_status

    output = Output(as_json)
    with told(output):
        found = read_status(open_container(), source)
        output.result(found, lambda: render.status(found))
        if check and not is_well(found):
            raise typer.Exit(1)


@app.command()
def chunk(
    paths: Annotated[list[Path], typer.Argument(help="Files or whole folders.")],
    profile: Annotated[
        str,
        typer.Option(
            help="A declared or built-in profile; auto lets each document's content choose.",
            callback=text,
        ),
    ] = "auto",
    base_url: Annotated[
        str | None, typer.Option(help="The address the files are known by.", callback=text)
    ] = None,
    as_json: Json = False,
) -> None:
    """Clean, partition, section and chunk files; no store is touched. JSON: one document a line."""
    from tidemark.cli.chunk import chunk_paths

    output = Output(as_json)
    failed = False
    with told(output):
        for document in chunk_paths(open_container(), paths, profile, base_url):
            failed |= document["document"]["error"] is not None
            output.line(document, partial(render.chunks, document))
    if failed:
        raise typer.Exit(1)


@app.command()
def sources(as_json: Json = False) -> None:
    """List the declared sources and check their declarations."""
    output = Output(as_json)
    with told(output):
        declared = open_container().declarations
        rows = [
            {"name": s.name, "kind": s.kind, "schedule": s.schedule, "profile": s.profile,
             "enabled": s.enabled}
            for s in declared.sources.values()
        ]  # fmt: skip
        errors = {name: str(error) for name, error in declared.broken.items()}
        output.result({"sources": rows, "errors": errors}, lambda: render.sources(rows, errors))
        if errors:
            raise typer.Exit(2)
