"""Finding a document by what a person types: its address, a fragment of it, or a path."""

import os
from datetime import UTC, datetime, time
from pathlib import Path
from urllib.parse import urldefrag

import typer

from tidemark.domain.errors import DocumentError
from tidemark.domain.hashing import Canonical
from tidemark.domain.identity import document_id
from tidemark.domain.model import ElementKind
from tidemark.stages.explain import Explanation, explain, version_dict
from tidemark.stages.history import recall
from tidemark.wiring import Workshop


def explain_uri(shop: Workshop, uri: str) -> list[Explanation]:
    """Explain every document that a URI, with or without fragment, or a file's path may mean."""
    names = sorted({*shop.declarations.sources, *shop.ledger.sources()})
    found: list[Explanation] = []
    for spelling in spellings(uri):
        ids = [document_id(name, spelling) for name in names]
        found += explain(shop.ledger, spelling, ids)
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


def recalled(shop: Workshop, found: Explanation, moment: datetime) -> dict[str, Canonical]:
    """What a document was at a moment, in JSON form: its version then, and the text of that."""
    known = found.document or found.tombstone or next(iter(found.versions), None)
    version = found.at(moment)
    told: dict[str, Canonical] = {
        "source": known.source if known else "",
        "uri": known.uri if known else found.asked,
        "version": version_dict(version) if version else None,
        "earliest": found.versions[-1].indexed_at.isoformat() if found.versions else None,
        "title": "",
        "text": None,
        "as_then": False,
        "problem": "",
    }
    if version is None:
        return told
    try:
        content, as_then = recall(shop.artifacts, shop.partitioner, version)
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
