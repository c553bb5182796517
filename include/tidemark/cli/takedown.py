"""Taking a document down, by what a person types: its address, another one of it, or a path."""

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tidemark.cli.explain import spellings
from tidemark.cli.output import (
    Json,
    Output,
    add_row,
    errors_to,
    open_container,
    safe,
    table_of,
    text,
)
from tidemark.domain.errors import PermanentError
from tidemark.stages.takedown.requests import DocumentRef, find, unfinished
from tidemark.stages.takedown.takedown import (
    TakedownResult,
    blocking_tombstone,
    preview,
    take_down,
    unblock,
)
from tidemark.wiring import Container


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
    output = Output(as_json)
    if undo and (dry_run or uri is None):
        raise typer.BadParameter("--undo takes an address and no --dry-run")
    with errors_to(output):
        container = open_container()
        if uri is None:
            listed = list_takedowns(container)
            output.result({"takedowns": listed}, lambda: render_listed(listed))
            return
        if dry_run:
            preview = preview_takedown(container, uri, source)
            key, rows, shown = "documents", preview, render_preview(uri, preview)
        elif undo:
            undone = undo_takedown(container, uri, source)
            key, rows, shown = "lifted", undone, render_undone(uri, undone)
        else:
            results = run_takedown(container, uri, source)
            key, rows = "documents", [dict(result.as_dict()) for result in results]
            shown = render_takedowns(uri, results)
        output.result({"uri": uri, key: rows}, lambda: shown)
        if not rows:
            raise typer.Exit(1)


def run_takedown(container: Container, uri: str, source: str | None) -> list[TakedownResult]:
    """Remove what a URI means from every source that has it, or from one; what was done, [] for nothing.

    Without a source it is blocked in every one, also in those that are declared later. With a source, a URI
    that nothing is known of is blocked ahead of time. Raises ``ConfigurationError`` for a source that no one
    knows.
    """
    refs = _documents(container, uri, source)
    if source is not None and not refs:
        refs = [DocumentRef.at(source, spellings(uri)[0])]
    return [take_down(container.stores, ref, all_sources=source is None) for ref in refs]


def preview_takedown(container: Container, uri: str, source: str | None) -> list[dict[str, Any]]:
    """What a takedown would remove, store by store; [] for nothing."""
    return [
        {"source": ref.source, "uri": ref.uri, "would_remove": preview(container.stores, ref)}
        for ref in _documents(container, uri, source)
    ]


def list_takedowns(container: Container) -> list[dict[str, Any]]:
    """All that is blocked, and the takedowns that were cut short, by source and address."""
    tombstones = {
        (tombstone.source, tombstone.uri): tombstone
        for name in _sources(container)
        for tombstone in container.ledger.tombstones.blocking(name)
    }
    finished = [
        _listed(*key, tombstone.removed_at.isoformat(), all_sources=tombstone.all_sources)
        for key, tombstone in sorted(tombstones.items())
    ]
    pending = [
        _listed(request.document.source, uri, None, all_sources=request.all_sources)
        for request in unfinished(container.artifacts)
        for uri in request.uris.values()
    ]
    return [*pending, *finished]


def _listed(source: str, uri: str, at: str | None, *, all_sources: bool) -> dict[str, Any]:
    return {
        "source": source,
        "uri": uri,
        "taken_down_at": at,
        "everywhere": all_sources,
        "finished": at is not None,
    }


def undo_takedown(container: Container, uri: str, source: str | None) -> list[dict[str, Any]]:
    """Let the next crawl index again what was taken down: source, addresses and id of each.

    Raises ``PermanentError`` for an address that is blocked only because another one was taken down.
    """
    undone = [
        {"source": ref.source, "document_id": str(ref.document_id), "lifted": addresses}
        for ref in _documents(container, uri, source)
        if (addresses := unblock(container.stores, ref))
    ]
    if not undone:
        _refuse_undoing_another(container, uri, source)
    return undone


def _refuse_undoing_another(container: Container, uri: str, source: str | None) -> None:
    for name in [source] if source is not None else _sources(container):
        for spelled in spellings(uri):
            tombstone = blocking_tombstone(container.ledger, name, spelled)
            if tombstone is not None and tombstone.uri == spelled:
                raise PermanentError(
                    f"{spelled} was not taken down from {name} alone; it is kept out of every source "
                    f"since it was taken down from {tombstone.source} on {tombstone.removed_at:%Y-%m-%d}.",
                    f"To let it in everywhere: tidemark takedown {tombstone.uri} --undo",
                )
            if tombstone is not None:
                raise PermanentError(
                    f"{spelled} was not taken down itself; it is kept out because it is, or leads to, "
                    f"{tombstone.uri} (source {name}), which was taken down on "
                    f"{tombstone.removed_at:%Y-%m-%d}.",
                    f"To let both in: tidemark takedown {tombstone.uri} --undo",
                )


def _documents(container: Container, uri: str, source: str | None) -> list[DocumentRef]:
    """What a URI means."""
    if source is not None:
        container.declared(source)
    names = sorted({*_sources(container), *([source] if source else [])})
    return find(container.stores, spellings(uri), names, source)


def _sources(container: Container) -> list[str]:
    return sorted({*container.declarations.sources, *container.ledger.sources.names()})


_STORES = {
    "points": "points of generation",
    "sections": "sections of generation",
    "raw": "snapshots",
    "elements": "elements",
    "vectors": "vectors put aside",
    "cached_vectors": "embedding cache (of all documents)",
    "ledger_rows": "rows of the ledger",
}


def _store(name: str) -> str:
    store, _, generation = name.partition(".g")
    return f"{_STORES[store]} {generation}".strip()


def render_takedowns(uri: str, results: Sequence[TakedownResult]) -> RenderableType:
    """What was removed, store by store, counted before and after."""
    if not results:
        ahead = "To keep it out ahead of time, name its source: --source NAME."
        return Text(safe(f"Nothing is known of {uri}. {ahead}"), style="yellow")
    return Group(*map(_render_takedown, results))


def _render_takedown(result: TakedownResult) -> RenderableType:
    table = Table("store", "before", "after", box=None, pad_edge=False)
    for name in result.names():
        after = result.after.get(name, 0)
        left = Text(str(after), style="yellow" if after else "")
        table.add_row(_store(name), str(result.before.get(name, 0)), left)
    uri, source = result.document.uri, result.document.source
    where = "every source" if result.all_sources else f"the source {source}"
    undo = f"the next crawl may index it again after: tidemark takedown {quote(uri)} --undo"
    return Group(
        Text(safe(f"Taken down: {uri} (source {source}).")),
        table,
        *(Text(safe(f"  stays: {kept}"), style="yellow") for kept in result.kept),
        Text(safe(f"  kept out of {where}: {', '.join(result.addresses)}")),
        Text(safe(f"  its history is gone for good; {undo}"), style="dim"),
    )


def render_preview(uri: str, documents: Sequence[Mapping[str, Any]]) -> RenderableType:
    """What would be removed, store by store."""
    if not documents:
        return Text(safe(f"Nothing is known of {uri}."), style="yellow")
    parts: list[RenderableType] = []
    for document in documents:
        table = Table("store", "would be removed", box=None, pad_edge=False)
        for name, count in sorted(document["would_remove"].items()):
            table.add_row(_store(name), str(count))
        parts += [Text(safe(f"{document['uri']} (source {document['source']})")), table]
    return Group(*parts)


def render_listed(listed: Sequence[Mapping[str, Any]]) -> RenderableType:
    """All that is blocked."""
    if not listed:
        return Text("Nothing was taken down.")
    table = table_of("on (UTC)", "source", "address", "kept out of")
    for row in listed:
        when = (row["taken_down_at"] or "")[:16].replace("T", " ") or "not finished: repeat it"
        where = "every source" if row["everywhere"] else "it"
        add_row(table, when, row["source"], row["uri"], where)
    return table


def render_undone(uri: str, undone: Sequence[Mapping[str, Any]]) -> RenderableType:
    """What may be indexed again."""
    if not undone:
        return Text(safe(f"{uri} was not taken down."), style="yellow")
    return Group(
        *(
            Text(safe(f"The next run over {row['source']} may index {uris} again."))
            for row in undone
            for uris in [", ".join(row["lifted"])]
        )
    )
