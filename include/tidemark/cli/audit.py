"""The audit of one source or of all, and its repair."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from tidemark.cli.output import Bar, Json, Output, Source, errors_to, open_container, safe

if TYPE_CHECKING:
    from tidemark.stages.audit.audit import AuditReport


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
    from tidemark.stages.audit.audit import audit_index

    output = Output(as_json)
    with errors_to(output):
        with Bar(output.console, "audit", quiet=as_json) as bar:
            container = open_container()
            if source is not None:
                container.declared(source)  # raises for a source that no one knows
            deps = container.audit_dependencies(bar)
            report = audit_index(deps, source, repair=repair, sample=sample)
        output.result(report.as_dict(), lambda: render_audit(report))
        if report.differs:
            raise typer.Exit(1)


# An audit for people: what was checked, what is wrong in words, the hint, what a repair did.

_WORDS = {
    "missing_points": ("chunk", "missing from the index", "No search finds what is missing."),
    "missing_sections": ("section", "missing from the index", "Chunks are shown without it."),
    "stale_payload": (
        "chunk or section",
        "with other data than was written",
        "Searches show what should not be shown.",
    ),
    "wrong_vectors": (
        "chunk",
        "with another vector, or other words, than was written, or none",
        "Searches go wrong there.",
    ),
    "wrong_model": (
        "document or generation",
        "of another model than it should be",
        "Its vectors mean nothing beside the others.",
    ),
    "extra_points": (
        "chunk",
        "in the index that should not be there",
        "Searches show what is gone, or what never was.",
    ),
    "extra_sections": ("section", "in the index that should not be there", ""),
    "dead_generations": (
        "generation",
        "in the index that nobody needs",
        "It takes room, and no search reads it.",
    ),
    "live_name": ("live name", "over another generation than it should be, or over none", ""),
    "not_found": (
        "document",
        "that a search for a sentence of its own does not find",
        "It is there, and the index does not give it.",
    ),
}
_DID = {
    "vectors_reused": "vectors re-used",
    "vectors_made": "vectors made",
    "points_written": "points written",
    "payloads_set": "payloads set",
    "sections_written": "sections written",
    "points_deleted": "points deleted",
    "sections_deleted": "sections deleted",
    "generations_dropped": "generations dropped",
    "collections_made": "collections made again",
    "live_name_moved": "moves of the live name",
    "ledger_rows_corrected": "rows of the ledger corrected",
}


def render_audit(report: "AuditReport") -> RenderableType:
    """The whole report."""
    return Group(*_head(report), *_findings(report), *_repair(report), *_hints(report))


def _head(report: "AuditReport") -> Iterator[Text]:
    what = report.source or "all sources"
    searched = f"; {report.sampled:,} documents searched for" if report.sampled else ""
    text = f"{what}: {report.checked:,} points of {report.documents:,} documents checked{searched}"
    verdict = ", nothing to report." if report.clean else ":"
    yield Text(safe(text + verdict), style="" if report.clean else "bold")


def _findings(report: "AuditReport") -> Iterator[Text]:
    from tidemark.stages.audit.audit import words

    for kind, (one, how, means) in _WORDS.items():
        count = report.counts.get(kind, 0)
        if not count:
            continue
        name = one if count == 1 else " or ".join(f"{part}s" for part in one.split(" or "))
        told = f"  {count:,} {name} {how}."
        yield Text(told, style="red") + Text(f" {means}" if means else "", style="dim")
        named = [*report.notes.get(kind, []), *report.examples.get(kind, [])]
        yield from (Text(safe(f"      {example}"), style="dim") for example in named)
    if report.tombstoned:
        yield Text(f"  Of {report.tombstoned:,} removed documents something was left.", style="dim")
    if report.served:
        yield Text(
            f"  Of {report.served:,} documents that is so in the live generation only: their newest "
            "version is in the one that is being built.",
            style="dim",
        )
    if len(report.sources) > 1:
        listed = "; ".join(
            f"{name or '(no source)'}: {words(counts)}" for name, counts in report.sources.items()
        )
        yield Text(safe(f"  by source: {listed}"), style="dim")


def _repair(report: "AuditReport") -> Iterator[Text]:
    from tidemark.stages.audit.audit import words

    if not report.repair:
        return
    if report.repaired or report.did:
        did = ", ".join(f"{_DID[name]} {report.did[name]:,}" for name in _DID if name in report.did)
        yield Text(
            f"Repaired {report.repaired:,} documents: {did or 'nothing to write'}.", style="green"
        )
    for uri, why in report.failed.items():
        yield Text(safe(f"  ! {uri} could not be repaired: {why}"), style="yellow")
    if report.failures > len(report.failed):
        more = report.failures - len(report.failed)
        yield Text(f"  ! and {more:,} more; `tidemark quarantine` lists them", style="yellow")
    for source, why in report.skipped.items():
        yield Text(safe(f"  ! {source} was not repaired, or not all: {why}"), style="yellow")
    if any(report.left.values()):
        yield Text(f"Still wrong: {words(report.left)}.", style="red")
    elif not report.clean:
        yield Text("The index is what the ledger says again.", style="green")


def _hints(report: "AuditReport") -> Iterator[Text]:
    for source, count in report.waiting.items():
        told = (
            f"{count:,} documents of {source} are unknown to the ledger, as after a backup of it was "
            f"restored. Nothing of them was deleted: `tidemark index {source}` decides."
        )
        yield Text(safe(told), style="yellow")
    if report.out_of_step and not report.repair:
        names = ", ".join(report.out_of_step)
        told = (
            f"A store was restored since the last run of {names}; the next run compares everything."
        )
        yield Text(safe(told), style="yellow")
    if report.served:
        yield Text(
            f"{report.served:,} documents are wrong, or not in the live generation, while another one is "
            "being built. No repair writes the old one: it heals when the new one goes live (`tidemark "
            "index` of every source), or by setting the model back and indexing every source.",
            style="yellow",
        )
    if not report.clean and not report.repair:
        command = (
            f"tidemark audit {report.source} --repair"
            if report.source
            else "tidemark audit --repair"
        )
        what = "the rest" if report.served else "it"
        yield Text(safe(f"Heal {what}: `{command}`"))
    elif any(report.left.values()):
        what = "What else" if report.served else "What"
        yield Text(
            f"{what} could not be healed is healed by a run of its source: `tidemark index SOURCE`."
        )
