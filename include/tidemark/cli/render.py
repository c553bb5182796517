"""Results for people: tables, and the text of what was found."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from tidemark.cli.output import add_row, safe, safe_lines, table_of
from tidemark.cli.status import lacks
from tidemark.domain.summary import RunSummary
from tidemark.stages.audit.report import words
from tidemark.stages.plan.plan import PlanSummary
from tidemark.stages.report import totals
from tidemark.stages.search import SearchResult

ITEMS = 40


def summary(run: RunSummary) -> RenderableType:
    parts: list[RenderableType] = [Text(safe(run.sentence()))]
    work = {stage: count for stage, count in run.work.items() if count}
    if work:
        parts.append(Text(f"  work: {totals(work)}", style="dim"))
    if any(s >= 0.05 for s in run.seconds.values()):
        seconds = ", ".join(f"{stage} {s:.1f}" for stage, s in run.seconds.items() if s >= 0.05)
        parts.append(Text(f"  seconds: {seconds}", style="dim"))
    parts += [Text(safe(f"  ! {line}"), style="yellow") for line in run.attention]
    if run.held:
        parts.append(
            Text(
                f"  see what it is: `tidemark plan {run.source}`; apply it all the same: "
                f"`tidemark index {run.source} --approve`",
                style="yellow",
            )
        )
    if run.too_many:
        parts.append(
            Text(
                f"  what is wrong with them: `tidemark quarantine {run.source}`; more may be allowed by "
                "`guards: {quarantined_percent: …}`",
                style="yellow",
            )
        )
    if run.findings:
        parts.append(Text(f"  audit: {totals(run.findings)}", style="red"))
    return Group(*parts)


def plan(source: str, planned: PlanSummary, items: Sequence[Mapping[str, Any]]) -> RenderableType:
    parts: list[RenderableType] = [
        Text(f"{source}: {totals(planned.actions)} (reasons: {totals(planned.reasons)})"),
        Text(
            f"  ahead: at most about {planned.estimate.chunks} chunks, "
            f"{planned.estimate.seconds:.0f} s of embedding, and the time to load the model",
            style="dim",
        ),
    ]
    if not planned.complete:
        parts.append(
            Text(safe(f"  incomplete, so nothing is deleted: {planned.problem}"), style="yellow")
        )
    parts += [
        Text(safe(f"  ! a person must approve: {breach.sentence()}"), style="yellow")
        for breach in planned.breaches
    ]
    table = table_of("action", "reason", "document", "detail")
    shown = [item for item in items if item["reason"] != "unchanged"]
    for item in shown[:ITEMS]:
        add_row(table, item["action"], item["reason"], item["uri"], item["detail"])
    if shown:
        parts.append(table)
    if len(shown) > ITEMS:
        parts.append(Text(f"  … and {len(shown) - ITEMS} more; --json lists all", style="dim"))
    return Group(*parts)


def results(found: Sequence[SearchResult], *, fields: Sequence[str] = ()) -> RenderableType:
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


def status(found: Mapping[str, Any]) -> RenderableType:
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


def chunks(document: Mapping[str, Any]) -> RenderableType:
    about = document["document"]
    if about["error"]:
        return Text(safe(f"{about['uri']}: {about['error']}"), style="red")
    table = table_of("#", "tokens", "page", "headings", "text")
    for chunk in document["chunks"]:
        text = " ".join(chunk["text"].split())
        add_row(
            table, chunk["chunk_index"], chunk["token_count"], chunk["page_number"] or "",
            " › ".join(chunk["heading_path"]), text[:160] + ("…" if len(text) > 160 else ""),
        )  # fmt: skip
    counts = f"{len(document['sections'])} sections, {len(document['chunks'])} chunks"
    counts += f", profile {about['profile']}"
    return Group(Text(safe(f"{about['uri']}  ({about['title']}): {counts}")), table)


def sources(rows: Sequence[Mapping[str, Any]], errors: Mapping[str, str]) -> RenderableType:
    table = table_of("source", "kind", "schedule", "profile", "")
    for row in rows:
        add_row(
            table, row["name"], row["kind"], row["schedule"], row["profile"],
            "" if row["enabled"] else "disabled",
        )  # fmt: skip
    return Group(table, *(Text(safe(error), style="red") for error in errors.values()))


def retried(run: RunSummary, left: Sequence[Mapping[str, Any]]) -> RenderableType:
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


def nothing_to_retry() -> RenderableType:
    return Text("Nothing is in quarantine that could be tried again.")
