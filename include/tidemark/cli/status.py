"""What is indexed, source by source, and how the last runs went."""

import json
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from tidemark.cli.output import (
    Json,
    Output,
    Source,
    add_row,
    errors_to,
    open_container,
    safe,
    table_of,
)
from tidemark.domain.errors import TidemarkError
from tidemark.domain.hashing import as_json
from tidemark.domain.records import RunRecord, RunStatus
from tidemark.stages.audit.audit import words
from tidemark.stages.report import totals
from tidemark.wiring import Container


def status(
    source: Source = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Exit 1 when a last run failed, or the index lacks anything."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show what is indexed, by source, and how the last runs went."""
    output = Output(as_json)
    with errors_to(output):
        found = read_status(open_container(), source)
        output.result(found, lambda: render_status(found))
        if check and not is_well(found):
            raise typer.Exit(1)


def read_status(container: Container, source: str | None) -> dict[str, Any]:
    """Counts and the last run of each source that is declared or known to the ledger."""
    ledger, index = container.ledger, container.index
    if source is not None:
        container.declared(source)
    names = (
        [source] if source else sorted({*container.declarations.sources, *ledger.sources.names()})
    )
    live = index.live()
    waiting = _waiting(container, live)
    held = _points(container, live)
    sources = [
        _source(container, name, live if held["points"] is not None else None) for name in names
    ]
    return {
        "index": {
            "name": container.settings.index_name,
            "live_generation": live,
            **held,
            "generations": [
                as_json(generation, "number", "status", "dimension")
                for generation in ledger.generations.all(container.settings.index_name)
            ],
            "waiting_for": [found["source"] for found in waiting["sources"]] if waiting else [],
            "waiting": waiting,
            "last_audit": _last_audit(container),
        },
        "sources": sources,
        "errors": {name: str(error) for name, error in container.declarations.broken.items()},
    }


def _points(container: Container, live: int | None) -> dict[str, Any]:
    """How many points are live, or why that cannot be told: the rest can be, from the ledger."""
    if live is None:
        documents = container.ledger.documents.counts().indexed
        lost = (
            f"The ledger has {documents} documents and nothing is live: run `tidemark index --all`."
        )
        return {"points": 0, "problem": lost if documents else ""}
    try:
        return {"points": container.index.count_points(live), "problem": ""}
    except TidemarkError as error:
        return {"points": None, "problem": str(error)}


def _last_audit(container: Container) -> dict[str, Any] | None:
    """The last audit of all sources, None when there was none."""
    recent = container.ledger.generations.audits(limit=100)
    found = next((audit for audit in recent if audit.source is None), None)
    if found is None:
        return None
    since = [audit for audit in recent if audit.audited_at > found.audited_at]
    runs = [
        run for run in container.ledger.runs.recent(limit=100) if run.started_at > found.audited_at
    ]
    left = found.left
    if left is None:
        left = {} if found.repaired else {k: n for k, n in found.findings.items() if k != "checked"}
    return {
        "audited_at": found.audited_at.isoformat(),
        "findings": found.findings,
        "repaired": found.repaired,
        "left": left,
        "runs_since": len(runs),
        "audits_since": len({audit.source for audit in since}),
    }


def _waiting(container: Container, live: int | None) -> dict[str, Any] | None:
    """What keeps a generation from going live, or what the live one lacks; None when nothing does."""
    records = container.ledger.generations.all(container.settings.index_name)
    found = container.pending_generation() if live is not None and records else None
    return dict(found.as_dict()) if found else None


def _source(container: Container, name: str, live: int | None) -> dict[str, Any]:
    counts = container.ledger.documents.counts(name)
    runs = container.ledger.runs.recent(name, limit=50)
    good = next((run for run in runs if run.status is RunStatus.SUCCESS), None)
    return {
        "source": name,
        "declared": name in container.declarations.sources,
        "documents": counts.indexed,
        "chunks": counts.chunks,
        "points": container.index.count_points(live, {"source": name})
        if live is not None
        else None,
        "quarantined": counts.quarantined,
        "suspects": counts.held,
        "last_success": good.started_at.isoformat() if good else None,
        "last_run": _run(runs[0], dead=_is_dead(container, runs[0])) if runs else None,
    }


def _is_dead(container: Container, run: RunRecord) -> bool:
    """Is it said to be running, with no process that does?

    Of a run of the command line its lock tells; one of Airflow has no process between two tasks.
    """
    running = run.status is RunStatus.RUNNING and not run.trigger.startswith("airflow")
    return running and not container.ledger.is_locked(run.source)


def _run(run: RunRecord, *, dead: bool) -> dict[str, Any]:
    return {
        **as_json(run, "run_id", "trigger", "started_at", "finished_at", "note"),
        "status": "killed" if dead else run.status.value,
        "summary": json.loads(run.summary) if run.summary else None,
    }


def is_well(found: Mapping[str, Any]) -> bool:
    """Is there nothing that somebody must look at: the declarations, the index, the last runs?"""
    index = found["index"]
    wrong = index["problem"] or (index["waiting"] or {}).get("lost") or found["errors"]
    runs = [row["last_run"] for row in found["sources"] if row["declared"] and row["last_run"]]
    bad = [run for run in runs if run["status"] in ("failed", "killed") or is_held(run)]
    short = [row for row in found["sources"] if lacks(row, index)]
    return not (wrong or bad or short)


def is_held(run: Mapping[str, Any]) -> bool:
    """Does it wait for a person's approval?"""
    return bool((run["summary"] or {}).get("held"))


def lacks(row: Mapping[str, Any], index: Mapping[str, Any]) -> bool:
    """Has the live generation other points of a source than the ledger says?

    Not told while another one is being built: then what is live is older, rightly.
    """
    if row["points"] is None or (index["waiting"] and not index["waiting"]["lost"]):
        return False
    return bool(row["points"] != row["chunks"])


def render_status(found: Mapping[str, Any]) -> RenderableType:
    index = found["index"]
    head = Text(
        f"Index {index['name']}: {'?' if index['points'] is None else index['points']} points, "
        + (
            f"generation {index['live_generation']} is live."
            if index["live_generation"]
            else "none is live."
        )
    )
    table = table_of(
        "source",
        "documents",
        "chunks",
        "quarantined",
        "doubted",
        "last success",
        "last run",
        "result",
    )
    for row in found["sources"]:
        run = row["last_run"]
        name = row["source"] if row["declared"] else f"{row['source']} (not declared)"
        when, good = _minute(run["started_at"] if run else None), _minute(row["last_success"])
        chunks = f"{row['points']} of {row['chunks']}" if lacks(row, index) else row["chunks"]
        result = _run_result(run) if run else ""
        add_row(
            table, name, row["documents"], chunks, row["quarantined"], row["suspects"],
            good, when, result,
        )  # fmt: skip
    notes = [Text(safe(error), style="red") for error in found["errors"].values()]
    if index["problem"]:
        notes.append(Text(safe(index["problem"]), style="red"))
    notes += _audit_note(index["last_audit"])
    if index["waiting"]:
        style = "red" if index["waiting"]["lost"] else "yellow"
        notes.append(Text(safe(index["waiting"]["sentence"]), style=style))
    elif any(lacks(row, index) for row in found["sources"]):
        notes.append(
            Text(
                "Of some sources the index has other points than the ledger says: `tidemark audit --repair`.",
                style="red",
            )
        )
    left = [r["source"] for r in found["sources"] if not r["declared"] and r["documents"]]
    if left:
        names = safe(", ".join(left))
        notes.append(
            Text(
                f"Nobody declares {names}: what is indexed of it stays as it is. `tidemark forget SOURCE` "
                "removes it.",
                style="dim",
            )
        )
    return Group(head, table, *notes)


def _minute(moment: str | None) -> str:
    return moment[:16].replace("T", " ") if moment else "never"


def _audit_note(audit: Mapping[str, Any] | None) -> list[Text]:
    if audit is None:
        return [Text("The index as a whole was never audited: `tidemark audit`.", style="dim")]
    since = [
        f"{audit[key]} {what if audit[key] == 1 else what + 's'}"
        for key, what in (("runs_since", "run"), ("audits_since", "audited source"))
        if audit[key]
    ]
    later = (
        f" Since then: {', '.join(since)}; `tidemark audit` tells what is so now." if since else ""
    )
    told = f"Last audited as a whole on {_minute(audit['audited_at'])} UTC: "
    if audit["left"]:
        hint = later or " Heal it: `tidemark audit --repair`."
        return [Text(f"{told}{words(audit['left'])}.{hint}", style="yellow" if later else "red")]
    found = {k: n for k, n in audit["findings"].items() if n and k != "checked"}
    healed = f"{words(found)}, which was healed." if found else "nothing to report."
    return [Text(f"{told}{healed}{later}", style="dim")]


def _run_result(run: Mapping[str, Any]) -> str:
    if not run["summary"]:
        again = "; run it again" if run["status"] == "killed" else ""
        return f"{run['status']}{again}"
    if run["summary"].get("held"):
        return f"not applied: {' '.join(run['summary']['guards'])}"
    done = run["summary"]["documents"]
    if not done:
        return f"{run['status']}: {run['summary']['problem'] or 'nothing to do'}"
    return f"{run['status']}: {totals(done)}"
