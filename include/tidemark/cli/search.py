"""Search the index."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from tidemark.cli.output import Json, Output, errors_to, open_container, safe, safe_lines, text
from tidemark.stages.search import SearchResult


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
    with errors_to(output):
        results = stage.search(open_container().searcher, query, k, mode, expand, where)
        output.result(
            {"query": query, "mode": mode, "results": [r.as_dict() for r in results]},
            lambda: render_results(results, fields=list(where)),
        )


def _filters(pairs: list[str]) -> dict[str, str | list[str]]:
    where: dict[str, list[str]] = {}
    for pair in pairs:
        key, found, value = pair.partition("=")
        if not found or not key:
            raise typer.BadParameter(f"--filter {pair!r}: write key=value")
        where.setdefault(key.strip(), []).append(value)
    return {key: values[0] if len(values) == 1 else values for key, values in where.items()}


def render_results(found: Sequence[SearchResult], *, fields: Sequence[str] = ()) -> RenderableType:
    """``fields``: those that were filtered by."""
    if not found and fields:
        return Text(
            safe(
                f"Nothing was found where {' and '.join(fields)} are as given. The fields are those of a "
                "result in --json: source, source_uri, title, labels, language, …"
            )
        )
    if not found:
        return Text("Nothing was found. Is anything indexed? `tidemark status` tells.")
    return Group(*(_result(number, result) for number, result in enumerate(found, 1)))


def _result(number: int, result: SearchResult) -> RenderableType:
    payload = result.chunk.payload
    path = payload.get("heading_path")
    headings = " › ".join(str(h) for h in path) if isinstance(path, list) else ""
    page = f", page {payload['page_number']}" if payload.get("page_number") else ""
    parts: list[RenderableType] = [
        Text(safe_lines(str(payload.get("text", "")))),
        Text(safe(f"{payload.get('source_uri')}{page}"), style="cyan"),
    ]
    if result.section is not None:
        parts += [
            Rule("the section it is part of", style="dim", align="left"),
            Text(safe_lines(str(result.section.payload.get("text", ""))), style="dim"),
        ]
    title = f"{number}. {headings or payload.get('title')}  ({result.chunk.score:.3f})"
    return Panel(Group(*parts), title=Text(safe(title)), title_align="left")
