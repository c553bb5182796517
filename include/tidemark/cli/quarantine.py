"""Documents in quarantine: listed, and tried again from their stored bytes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from tidemark import pipeline
from tidemark.cli.explain import spellings
from tidemark.cli.output import Bar, Json, Output, Source, errors_to, open_container, safe, text
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.hashing import as_json
from tidemark.domain.records import DocumentRecord, RunSummary
from tidemark.wiring import Container


def quarantine(source: Source = None, as_json: Json = False) -> None:
    """List the documents that fail by their own fault, with the hint."""

    output = Output(as_json)
    with errors_to(output):
        found = read_quarantine(open_container(), source)
        output.result({"source": source, "documents": found}, lambda: render_quarantine(found))


def retry(
    source: Source = None,
    uris: Annotated[
        list[str] | None,
        typer.Option("--uri", help="Only this document; repeatable.", callback=text),
    ] = None,
    as_json: Json = False,
) -> None:
    """Try documents in quarantine again, from their stored bytes; nothing is fetched."""

    output = Output(as_json)
    failed = False
    with errors_to(output):
        tried = 0
        for summary, left in retry_quarantined(open_container(), source, uris or [], output):
            tried += 1
            failed |= bool(left) or summary.status != "success"
            output.result(
                {**summary.as_dict(), "left": left}, partial(render_retried, summary, left)
            )
        if not tried:
            output.result(
                {"source": source, "left": []},
                lambda: Text("Nothing is in quarantine that could be tried again."),
            )
    if failed:
        raise typer.Exit(1)


def read_quarantine(container: Container, source: str | None) -> list[dict[str, Any]]:
    """All documents in quarantine (of a source), in their JSON form."""
    if source is not None:
        container.declared(source)
    return [_row(record) for record in container.ledger.documents.stream(source, quarantined=True)]


def _row(record: DocumentRecord) -> dict[str, Any]:
    failure = record.failure
    if failure is None:
        raise AssertionError(f"{record.uri} is in quarantine without a failure")
    return {
        **as_json(record, "source", "uri"),
        **as_json(failure, "stage", "message", "first_at", "last_at", "attempts"),
        "cure": failure.hint,
        "live": record.raw_hash is not None,
        "retry": pipeline.can_retry(record),
    }


def retry_quarantined(
    container: Container, source: str | None, uris: Sequence[str], output: Output
) -> Iterator[tuple[RunSummary, list[dict[str, Any]]]]:
    """Retry source by source: the run's summary, and what is left in quarantine of what was tried.

    Raises ``ConfigurationError`` for an address that no document in quarantine has.
    """
    if source is not None:
        container.declared(source)
    meant = {uri: set(spellings(uri)) for uri in uris}
    wanted = set().union(*meant.values())
    chosen = [
        r
        for r in container.ledger.documents.stream(source, quarantined=True)
        if not uris or r.uri in wanted
    ]
    there = {record.uri for record in chosen}
    for uri in (uri for uri, spelled in meant.items() if not spelled & there):
        raise ConfigurationError(
            f"No document in quarantine has the address {uri}.", "`tidemark quarantine` lists them."
        )
    for name in sorted({record.source for record in chosen}):
        own = [record for record in chosen if record.source == name]
        for record in own:
            if not pipeline.can_retry(record):
                hint = record.failure.hint if record.failure else ""
                output.warn(
                    f"{record.uri} has no stored bytes to try again. {hint} Then `tidemark index {name}`."
                )
        ready = [record for record in own if pipeline.can_retry(record)]
        if not ready:
            continue
        declared = container.declared(name)
        with Bar(output.console, name, quiet=output.is_json) as bar:
            deps = container.deps(declared, bar)
            job = container.job(declared, pipeline.new_run_id(name, deps))
            summary = pipeline.retry(replace(job, approved=True), deps, ready)
        after = deps.ledger.documents.by_id([record.document_id for record in ready])
        yield summary, [_row(r) for r in after.values() if r.failure is not None]


def render_quarantine(found: Sequence[Mapping[str, Any]]) -> RenderableType:
    if not found:
        return Text("Nothing is in quarantine.")
    parts: list[RenderableType] = []
    for row in found:
        live = "its last good version is live" if row["live"] else "nothing of it is live"
        tries = "1 attempt" if row["attempts"] == 1 else f"{row['attempts']} attempts"
        since = row["first_at"][:16].replace("T", " ")
        last = row["last_at"][:16].replace("T", " ")
        parts += [
            Text(safe(f"{row['source']}: {row['uri']}"), style="cyan"),
            Text(safe(f"  {row['stage']}: {row['message']}"), style="red"),
            Text(safe(f"  {row['cure']}")) if row["cure"] else Text(""),
            Text(f"  since {since} UTC, last on {last}, {tries}; {live}", style="dim"),
        ]
    count = "1 document" if len(found) == 1 else f"{len(found)} documents"
    parts.append(
        Text(
            f"{count}. After mending one at its source: `tidemark index SOURCE`, which fetches it. `tidemark "
            "retry` fetches nothing: it tries the stored copy again, after a setting was changed."
        )
    )
    return Group(*parts)


def render_retried(run: RunSummary, left: Sequence[Mapping[str, Any]]) -> RenderableType:
    lines = [Text(safe(run.sentence()))]
    lines += [
        Text(
            safe(f"  ! still fails, {row['stage']}: {row['message']} {row['cure']}"), style="yellow"
        )
        for row in left
    ]
    if left:
        lines.append(
            Text(
                "  tried was the stored copy of each; what was mended at the source since is fetched by "
                f"`tidemark index {run.source}`",
                style="yellow",
            )
        )
    return Group(*lines)
