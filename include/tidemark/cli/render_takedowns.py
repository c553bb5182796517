"""Takedowns and housekeeping, told to people."""

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tidemark.cli.texts import add_row, safe, table_of
from tidemark.stages.housekeeping import Housekeeping
from tidemark.stages.takedown import TakenDown

_STORES = {
    "points": "points of generation",
    "sections": "sections of generation",
    "raw": "snapshots",
    "elements": "elements",
    "vectors": "vectors put aside",
    "cached_vectors": "embedding cache (of all documents)",
    "ledger_rows": "rows of the ledger",
}


def takedowns(uri: str, done: Sequence[TakenDown]) -> RenderableType:
    """What was removed, store by store, counted before and after."""
    if not done:
        return Text(
            safe(
                f"Nothing is known of {uri}. To keep it out ahead of time, name its source: "
                "--source NAME."
            ),
            style="yellow",
        )
    return Group(*(_takedown(one) for one in done))


def _takedown(done: TakenDown) -> RenderableType:
    table = Table("store", "before", "after", box=None, pad_edge=False)
    for name in done.names():
        store, _, generation = name.partition(".g")
        after = done.after.get(name, 0)
        table.add_row(
            f"{_STORES[store]} {generation}".strip(),
            str(done.before.get(name, 0)),
            Text(str(after), style="yellow" if after else ""),
        )
    parts: list[RenderableType] = [
        Text(safe(f"Taken down: {done.found.uri} (source {done.found.source}).")),
        table,
    ]
    parts += [Text(safe(f"  stays: {kept}"), style="yellow") for kept in done.kept]
    where = "every source" if done.everywhere else f"the source {done.found.source}"
    parts.append(Text(safe(f"  kept out of {where}: {', '.join(done.addresses)}")))
    parts.append(
        Text(
            safe(
                "  its history is gone for good; the next crawl may index it again after: tidemark takedown "
                f"{quote(done.found.uri)} --undo"
            ),
            style="dim",
        )
    )
    return Group(*parts)


def previewed(uri: str, would: Sequence[Mapping[str, Any]]) -> RenderableType:
    """What would be removed, store by store."""
    if not would:
        return Text(safe(f"Nothing is known of {uri}."), style="yellow")
    parts: list[RenderableType] = []
    for one in would:
        table = Table("store", "would be removed", box=None, pad_edge=False)
        for name, count in sorted(one["would_remove"].items()):
            store, _, generation = name.partition(".g")
            table.add_row(f"{_STORES[store]} {generation}".strip(), str(count))
        parts += [Text(safe(f"{one['uri']} (source {one['source']})")), table]
    return Group(*parts)


def listed(found: Sequence[Mapping[str, Any]]) -> RenderableType:
    """All that is kept out by order."""
    if not found:
        return Text("Nothing was taken down.")
    table = table_of("on (UTC)", "source", "address", "kept out of")
    for one in found:
        when = (one["taken_down_at"] or "")[:16].replace("T", " ") or "not finished: repeat it"
        add_row(
            table, when, one["source"], one["uri"], "every source" if one["everywhere"] else "it"
        )
    return table


def lifted(uri: str, undone: Sequence[Mapping[str, Any]]) -> RenderableType:
    """What may be indexed again."""
    if not undone:
        return Text(safe(f"{uri} was not taken down."), style="yellow")
    return Group(
        *(
            Text(
                safe(
                    f"The next run over {one['source']} may index {', '.join(one['lifted'])} again."
                )
            )
            for one in undone
        )
    )


def housekeeping(done: Housekeeping) -> RenderableType:
    """What was removed, kind by kind."""
    table = Table(
        "what", "would be removed" if done.dry_run else "removed", "bytes", box=None, pad_edge=False
    )
    for kind, freed in done.removed.items():
        if freed.count:
            table.add_row(kind.replace("_", " "), f"{freed.count:,}", f"{freed.bytes:,}")
    head = (
        Text(f"{done.freed_bytes:,} bytes {'would be' if done.dry_run else 'were'} freed.")
        if table.row_count
        else Text("There is nothing to remove.")
    )
    notes = [Text(safe(f"  ! {note}"), style="yellow") for note in done.notes]
    return Group(*([table] if table.row_count else []), head, *notes)
