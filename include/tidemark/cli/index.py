"""Runs in this process, and what a run would do."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from tidemark.cli.adhoc import adhoc_files, adhoc_website
from tidemark.cli.output import (
    Bar,
    Folder,
    Json,
    Output,
    Sources,
    Url,
    add_row,
    errors_to,
    open_container,
    safe,
    table_of,
    text,
)
from tidemark.config.sources import SourceDeclaration
from tidemark.domain.errors import SourceBusyError
from tidemark.domain.records import RunSummary
from tidemark.stages.plan.plan import PlanSummary
from tidemark.stages.report import totals
from tidemark.wiring import Container


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
    with errors_to(output):
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
            output.result(summary.as_dict(), partial(render_summary, summary))
            for uri in not_found(deps.ledger, declared.name, job.accept):
                output.warn(uri)
        if failed:
            raise typer.Exit(1)


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
    with errors_to(output):
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
        output.result(result, lambda: render_plan(declared.name, planned, items))


def render_summary(run: RunSummary) -> RenderableType:
    parts: list[RenderableType] = [Text(safe(run.sentence()))]
    work = {stage: count for stage, count in run.work.items() if count}
    if work:
        parts.append(Text(f"  work: {totals(work)}", style="dim"))
    if any(s >= 0.05 for s in run.seconds.values()):
        seconds = ", ".join(f"{stage} {s:.1f}" for stage, s in run.seconds.items() if s >= 0.05)
        parts.append(Text(f"  seconds: {seconds}", style="dim"))
    parts += [Text(safe(f"  ! {line}"), style="yellow") for line in run.attention]
    if run.held:
        parts.append(
            Text(
                f"  see what it is: `tidemark plan {run.source}`; apply it all the same: "
                f"`tidemark index {run.source} --approve`",
                style="yellow",
            )
        )
    if run.too_many:
        parts.append(
            Text(
                f"  what is wrong with them: `tidemark quarantine {run.source}`; more may be allowed by "
                "`guards: {quarantined_percent: …}`",
                style="yellow",
            )
        )
    if run.findings:
        parts.append(Text(f"  audit: {totals(run.findings)}", style="red"))
    return Group(*parts)


ITEMS = 40


def render_plan(
    source: str, planned: PlanSummary, items: Sequence[Mapping[str, Any]]
) -> RenderableType:
    parts: list[RenderableType] = [
        Text(f"{source}: {totals(planned.actions)} (reasons: {totals(planned.reasons)})"),
        Text(
            f"  ahead: at most about {planned.estimate.chunks} chunks, "
            f"{planned.estimate.seconds:.0f} s of embedding, and the time to load the model",
            style="dim",
        ),
    ]
    if not planned.complete:
        parts.append(
            Text(safe(f"  incomplete, so nothing is deleted: {planned.problem}"), style="yellow")
        )
    parts += [
        Text(safe(f"  ! a person must approve: {breach.sentence()}"), style="yellow")
        for breach in planned.breaches
    ]
    table = table_of("action", "reason", "document", "detail")
    shown = [item for item in items if item["reason"] != "unchanged"]
    for item in shown[:ITEMS]:
        add_row(table, item["action"], item["reason"], item["uri"], item["detail"])
    if shown:
        parts.append(table)
    if len(shown) > ITEMS:
        parts.append(Text(f"  … and {len(shown) - ITEMS} more; --json lists all", style="dim"))
    return Group(*parts)
