"""What is indexed, source by source."""

import json
from typing import Any

from tidemark.domain.errors import TidemarkError
from tidemark.domain.records import GenerationStatus, RunRecord, RunStatus
from tidemark.wiring import Workshop


def read_status(shop: Workshop, source: str | None) -> dict[str, Any]:
    """Counts and the last run of each source that is declared or known to the ledger."""
    ledger, index = shop.ledger, shop.index
    if source is not None:
        shop.declared(source)
    names = [source] if source else sorted({*shop.declarations.sources, *ledger.sources()})
    live = index.live()
    waiting = _waiting(shop, live)
    return {
        "index": {
            "name": shop.settings.index_name,
            "live_generation": live,
            **_points(shop, live),
            "generations": [
                {"number": g.number, "status": g.status.value, "dimension": g.dimension}
                for g in ledger.generations(shop.settings.index_name)
            ],
            "waiting_for": [found["source"] for found in waiting["sources"]] if waiting else [],
            "waiting": waiting,
            "last_audit": _last_audit(shop),
        },
        "sources": [_source(shop, name) for name in names],
        "errors": {name: str(error) for name, error in shop.declarations.broken.items()},
    }


def _points(shop: Workshop, live: int | None) -> dict[str, Any]:
    """How many points are live, or why that cannot be told: the rest can be, from the ledger."""
    if live is None:
        documents, _ = shop.ledger.totals()
        lost = (
            f"The ledger has {documents} documents and nothing is live: run `tidemark index --all`."
        )
        return {"points": 0, "problem": lost if documents else ""}
    try:
        return {"points": shop.index.count_points(live), "problem": ""}
    except TidemarkError as error:
        return {"points": None, "problem": str(error)}


def _last_audit(shop: Workshop) -> dict[str, Any] | None:
    """The last audit of all sources, None when there was none."""
    whole = (audit for audit in shop.ledger.audits(limit=100) if audit.source is None)
    found = next(whole, None)
    if found is None:
        return None
    return {
        "audited_at": found.audited_at.isoformat(),
        "findings": found.findings,
        "repaired": found.repaired,
    }


def _waiting(shop: Workshop, live: int | None) -> dict[str, Any] | None:
    """What keeps a generation from going live, None when nothing does."""
    records = shop.ledger.generations(shop.settings.index_name)
    building = any(record.status is GenerationStatus.BUILDING for record in records)
    found = shop.waiting() if building and live is not None else None
    return dict(found.as_dict()) if found else None


def _source(shop: Workshop, name: str) -> dict[str, Any]:
    documents, chunks = shop.ledger.totals(name)
    runs = shop.ledger.runs(name, limit=1)
    return {
        "source": name,
        "declared": name in shop.declarations.sources,
        "documents": documents,
        "chunks": chunks,
        "quarantined": shop.ledger.count_quarantined(name),
        "suspects": shop.ledger.count_suspects(name),
        "last_run": _run(runs[0], dead=_is_dead(shop, runs[0])) if runs else None,
    }


def _is_dead(shop: Workshop, run: RunRecord) -> bool:
    """Is it said to be running, with no process that does?

    Of a run of the command line its lock tells; one of Airflow has no process between two tasks.
    """
    running = run.status is RunStatus.RUNNING and not run.trigger.startswith("airflow")
    return running and not shop.ledger.is_locked(run.source)


def _run(run: RunRecord, *, dead: bool) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "trigger": run.trigger,
        "status": "killed" if dead else run.status.value,
        "started_at": run.started_at.isoformat(),
        "finished_at": run.finished_at.isoformat() if run.finished_at else None,
        "note": run.note,
        "summary": json.loads(run.summary) if run.summary else None,
    }
