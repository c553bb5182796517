"""Why a document was, or was not, done again, and what it was at some time."""

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urldefrag

import typer
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from tidemark.cli.output import (
    Json,
    Output,
    add_row,
    errors_to,
    open_container,
    safe,
    safe_lines,
    table_of,
    text,
)
from tidemark.domain.documents import ElementKind
from tidemark.domain.errors import DocumentError
from tidemark.domain.hashing import Canonical
from tidemark.domain.identity import document_id
from tidemark.domain.records import VersionRecord
from tidemark.stages import explain as stage
from tidemark.wiring import Container


def explain(
    uri: Annotated[
        str, typer.Argument(help="A document's address, or the path of a file.", callback=text)
    ],
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of",
            help="A day (its end) or a time, in UTC: 2026-11-03, 2026-11-03T08:00. Show what it was then.",
            callback=text,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say why a document was, or was not, done again, and what it was at some time."""

    output = Output(as_json)
    moment = None if as_of is None else moment_of(as_of)
    with errors_to(output):
        container = open_container()
        found = explain_uri(container, uri)
        if moment is None:
            output.result(
                {"uri": uri, "explanations": [e.as_dict() for e in found]},
                lambda: explanations(uri, found),
            )
        else:
            # An address that its document has left has no history of its own.
            known = [e for e in found if e.versions] or found
            versions = [recalled(container, e, moment) for e in known]
            output.result(
                {"uri": uri, "as_of": moment.isoformat(), "explanations": versions},
                lambda: past(uri, moment, versions),
            )
        if not found:
            raise typer.Exit(1)


def explain_uri(container: Container, uri: str) -> list[stage.Explanation]:
    """Explain every document that a URI, with or without fragment, or a file's path may mean."""
    names = sorted({*container.declarations.sources, *container.ledger.sources.names()})
    found: list[stage.Explanation] = []
    for spelling in spellings(uri):
        ids = [document_id(name, spelling) for name in names]
        found += stage.explain(container.ledger, spelling, ids)
    return found


def moment_of(text: str) -> datetime:
    """The moment that a person means: a day is meant as a whole, to its end; UTC where no zone is given.

    Raises ``typer.BadParameter``.
    """
    written = text.strip()
    try:
        found = datetime.fromisoformat(written)
        if not any(mark in written for mark in "T: "):
            found = datetime.combine(found.date(), time.max)
        found = found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{text!r} is no time; write 2026-11-03 or 2026-11-03T08:00", param_hint="--as-of"
        ) from None
    if found.date() > datetime.now(UTC).date():
        raise typer.BadParameter(f"{text!r} is yet to come", param_hint="--as-of")
    return found


def recalled(
    container: Container, found: stage.Explanation, moment: datetime
) -> dict[str, Canonical]:
    """What a document was at a moment, in JSON form: its version then, and the text of that."""
    known = found.document or found.tombstone or next(iter(found.versions), None)
    version = found.at(moment)
    told: dict[str, Canonical] = {
        "source": known.source if known else "",
        "uri": known.uri if known else found.asked,
        "version": stage.version_dict(version) if version else None,
        "earliest": found.versions[-1].indexed_at.isoformat() if found.versions else None,
        "title": "",
        "text": None,
        "as_then": False,
        "problem": "",
    }
    if version is None:
        return told
    try:
        content, as_then = stage.recall(container.artifacts, container.partitioner, version)
    except DocumentError as error:
        return {**told, "problem": str(error)}
    text = "\n\n".join(
        f"{'#' * (e.level or 1)} {e.text}" if e.kind is ElementKind.TITLE else e.text
        for e in content.elements
    )
    return {**told, "title": content.title, "text": text, "as_then": as_then}


def spellings(uri: str) -> list[str]:
    """The URIs that a person may mean, the canonical one first."""
    from tidemark.domain.urls import canonical_url

    if "://" not in uri:
        # Unlike pathlib's, these two raise nothing for a loop of links or an unknown user.
        # os.path, which leaves an unknown ~name and a loop of links as they are, where pathlib raises.
        return [Path(os.path.realpath(os.path.expanduser(uri))).as_uri()]  # noqa: PTH111
    bare = urldefrag(uri).url
    canonical = canonical_url(bare) if bare.startswith(("http://", "https://")) else None
    return list(dict.fromkeys([canonical or bare, bare]))


ALIASES = 10


VERSIONS = 10


def explanations(uri: str, found: Sequence[stage.Explanation]) -> RenderableType:
    if not found:
        return Text(
            f"Nothing is known of {safe(uri)}: no run has had it to index. `tidemark plan SOURCE` shows what "
            "a crawl finds, and what is excluded, and why; of hidden files, and of files whose format is not "
            "known, it sees nothing. What is to be explained is a document's address, not a source."
        )
    return Group(*(_explanation(e) for e in found))


def _explanation(found: stage.Explanation) -> RenderableType:
    known = found.document or found.tombstone
    title = f"{known.source}: {known.uri}" if known else found.events[0].uri
    table = table_of("on (UTC)", "action", "reason", "added", "kept", "removed", "detail", "run")
    for event in found.events:
        began = found.began.get(event.run_id)
        add_row(
            table, f"{began:%Y-%m-%d %H:%M}" if began else "", event.action, event.reason,
            event.chunks_added, event.chunks_kept, event.chunks_removed, event.detail, event.run_id,
        )  # fmt: skip
    lines = [Text(safe(found.sentence()))]
    others = [a for a in found.aliases if a.uri != found.asked]
    lines += [
        Text(safe(f"  also at {alias.uri} ({alias.kind.value})"), style="dim")
        for alias in others[:ALIASES]
    ]
    if len(others) > ALIASES:
        lines.append(Text(f"  … and {len(others) - ALIASES} more; --json lists all", style="dim"))
    parts: list[RenderableType] = [*lines, table]
    if found.versions:
        parts += [
            Rule("what was live, and since when", style="dim", align="left"),
            _versions(found.versions),
        ]
    if len(found.versions) > VERSIONS:
        parts.append(
            Text(f"  … and {len(found.versions) - VERSIONS} more; --json lists all", style="dim")
        )
    return Panel(Group(*parts), title=Text(safe(title)), title_align="left")


def _versions(found: Sequence[VersionRecord]) -> Table:
    table = table_of("since (UTC)", "because", "bytes", "fetched (UTC)", "chunks", "run")
    for version in found[:VERSIONS]:
        add_row(
            table, f"{version.indexed_at:%Y-%m-%d %H:%M}", version.reason, version.raw_hash[:12],
            f"{version.fetched_at:%Y-%m-%d %H:%M}", version.chunks, version.run_id,
        )  # fmt: skip
    return table


def past(uri: str, moment: datetime, found: Sequence[Mapping[str, Any]]) -> RenderableType:
    if not found:
        return Text(f"Nothing is known of {safe(uri)}.")
    return Group(*(_past(moment, one) for one in found))


def _past(moment: datetime, found: Mapping[str, Any]) -> RenderableType:
    version, when = found["version"], f"{moment:%Y-%m-%d %H:%M} UTC"
    title = Text(safe(f"{found['source']}: {found['uri']}"))
    if version is None:
        since = found["earliest"]
        known = (
            f"Its history begins on {since[:16].replace('T', ' ')} UTC."
            if since
            else "Nothing is known of that time: history is kept for TIDEMARK_HISTORY_DAYS, of what was "
            "removed for its source's grace_days."
        )
        return Panel(
            Text(f"Nothing of it was live on {when}. {known}"), title=title, title_align="left"
        )
    head = Text(
        safe(
            f"On {when} this was live since {version['indexed_at'][:16].replace('T', ' ')} UTC "
            f"({version['reason']}; {version['chunks']} chunks; bytes {version['raw_hash'][:12]}, fetched "
            f"{version['fetched_at'][:16].replace('T', ' ')} UTC; run {version['run_id']})."
        )
    )
    parts: list[RenderableType] = [head]
    if found["problem"]:
        parts.append(Text(safe(found["problem"]), style="yellow"))
    else:
        how = "as it was read then" if found["as_then"] else "its bytes, read with today's parser"
        parts += [Rule(how, style="dim", align="left"), Text(safe_lines(found["text"]))]
    return Panel(Group(*parts), title=title, title_align="left")
