"""Documents in quarantine: listed, and tried again from their stored bytes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from tidemark.cli.documents import spellings
from tidemark.cli.output import Bar, Output
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.records import DocumentRecord
from tidemark.domain.summary import RunSummary
from tidemark.pipeline import can_retry, new_run_id, retry
from tidemark.wiring import Container


def read_quarantine(container: Container, source: str | None) -> list[dict[str, Any]]:
    """All documents in quarantine (of a source), in their JSON form."""
    if source is not None:
        container.declared(source)
    return [_row(record) for record in container.ledger.quarantined(source)]


def _row(record: DocumentRecord) -> dict[str, Any]:
    failure = record.failure
    if failure is None:
        raise AssertionError(f"{record.uri} is in quarantine without a failure")
    return {
        "source": record.source,
        "uri": record.uri,
        "stage": failure.stage,
        "message": failure.message,
        "cure": failure.hint,
        "first_at": failure.first_at.isoformat(),
        "last_at": failure.last_at.isoformat(),
        "attempts": failure.attempts,
        "live": record.raw_hash is not None,
        "retry": can_retry(record),
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
    chosen = [r for r in container.ledger.quarantined(source) if not uris or r.uri in wanted]
    there = {record.uri for record in chosen}
    for uri in (uri for uri, spelled in meant.items() if not spelled & there):
        raise ConfigurationError(
            f"No document in quarantine has the address {uri}.", "`tidemark quarantine` lists them."
        )
    for name in sorted({record.source for record in chosen}):
        own = [record for record in chosen if record.source == name]
        for record in own:
            if not can_retry(record):
                hint = record.failure.hint if record.failure else ""
                output.warn(
                    f"{record.uri} has no stored bytes to try again. {hint} Then `tidemark index {name}`."
                )
        ready = [record for record in own if can_retry(record)]
        if not ready:
            continue
        declared = container.declared(name)
        with Bar(output.console, name, quiet=output.is_json) as bar:
            deps = container.deps(declared, bar)
            job = container.job(declared, new_run_id(name, deps))
            summary = retry(replace(job, approved=True), deps, ready)
        after = deps.ledger.documents_by_id([record.document_id for record in ready])
        yield summary, [_row(r) for r in after.values() if r.failure is not None]
