"""Results for people: tables, and the text of what was found."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from tidemark.domain.summary import RunSummary
from tidemark.stages.explain import Explanation
from tidemark.stages.plan import PlanSummary
from tidemark.stages.report import totals
from tidemark.stages.search import SearchResult

ITEMS = 40
ALIASES = 10
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
"""What writes on the terminal elsewhere than where it stands; the last two ranges turn text around."""
_UNSEEN = re.compile(r"[\u061c\u200b\u200e\u200f\u2060-\u2064\ufeff\U000e0000-\U000e007f]")
"""What takes no room: in a name or an address it hides that it is another one. Joiners (U+200C, U+200D)
are left, for words of several scripts and many emoji are written with them."""
_BREAK = re.compile(r"[\t\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")


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
    if run.findings:
        parts.append(Text(f"  audit: {totals(run.findings)}", style="red"))
    return Group(*parts)


def plan(source: str, planned: PlanSummary, items: Sequence[Mapping[str, Any]]) -> RenderableType:
    parts: list[RenderableType] = [
        Text(f"{source}: {totals(planned.actions)} (reasons: {totals(planned.reasons)})"),
        Text(
            f"  ahead: about {planned.estimate.chunks} chunks, "
            f"{planned.estimate.seconds:.0f} s of embedding",
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
    table = _table("action", "reason", "document", "detail")
    shown = [item for item in items if item["reason"] != "unchanged"]
    for item in shown[:ITEMS]:
        _row(table, item["action"], item["reason"], item["uri"], item["detail"])
    if shown:
        parts.append(table)
    if len(shown) > ITEMS:
        parts.append(Text(f"  … and {len(shown) - ITEMS} more; --json lists all", style="dim"))
    return Group(*parts)


def results(found: Sequence[SearchResult]) -> RenderableType:
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


def audit(source: str | None, findings: Mapping[str, int]) -> RenderableType:
    wrong = {k: v for k, v in findings.items() if k not in ("checked", "repaired") and v}
    what = source or "all sources"
    if not wrong:
        return Text(f"{what}: {findings['checked']} points checked, nothing to report.")
    lines = [Text(f"{what}: {findings['checked']} points checked; {totals(wrong)}.", style="red")]
    if findings["repaired"]:
        lines.append(Text(f"{findings['repaired']} documents repaired.", style="green"))
    else:
        lines.append(Text("Heal it with --repair."))
    return Group(*lines)


def status(found: Mapping[str, Any]) -> RenderableType:
    index = found["index"]
    head = Text(
        f"Index {index['name']}: {index['points']} points, "
        f"generation {index['live_generation'] or '-'} is live."
    )
    table = _table("source", "documents", "chunks", "quarantined", "doubted", "last run", "result")
    for row in found["sources"]:
        run = row["last_run"]
        name = row["source"] if row["declared"] else f"{row['source']} (not declared)"
        when = run["started_at"][:16].replace("T", " ") if run else "never"
        result = _run_result(run) if run else ""
        _row(
            table, name, row["documents"], row["chunks"], row["quarantined"], row["suspects"],
            when, result,
        )  # fmt: skip
    notes = [Text(safe(error), style="red") for error in found["errors"].values()]
    if index["waiting_for"]:
        names = ", ".join(index["waiting_for"])
        notes.append(
            Text(
                f"A new generation is being built and goes live when these are indexed too: {names}. "
                "Run them: `tidemark index SOURCE`, or --path and --url for what is not declared.",
                style="yellow",
            )
        )
    return Group(head, table, *notes)


def _run_result(run: Mapping[str, Any]) -> str:
    if not run["summary"]:
        return str(run["status"])
    if run["summary"].get("held"):
        return f"not applied: {' '.join(run['summary']['guards'])}"
    return f"{run['status']}: {totals(run['summary']['documents'])}"


def explanations(uri: str, found: Sequence[Explanation]) -> RenderableType:
    if not found:
        return Text(
            f"Nothing is known of {safe(uri)}: no crawl has seen it. `tidemark plan SOURCE` shows what a "
            "crawl finds."
        )
    return Group(*(_explanation(e) for e in found))


def _explanation(found: Explanation) -> RenderableType:
    known = found.document or found.tombstone
    title = f"{known.source}: {known.uri}" if known else found.events[0].uri
    table = _table("run", "action", "reason", "added", "kept", "removed", "detail")
    for event in found.events:
        _row(
            table, event.run_id, event.action, event.reason, event.chunks_added,
            event.chunks_kept, event.chunks_removed, event.detail,
        )  # fmt: skip
    lines = [Text(safe(found.sentence()))]
    others = [a for a in found.aliases if a.uri != found.asked]
    lines += [
        Text(safe(f"  also at {alias.uri} ({alias.kind.value})"), style="dim")
        for alias in others[:ALIASES]
    ]
    if len(others) > ALIASES:
        lines.append(Text(f"  … and {len(others) - ALIASES} more; --json lists all", style="dim"))
    return Panel(Group(*lines, table), title=Text(safe(title)), title_align="left")


def chunks(document: Mapping[str, Any]) -> RenderableType:
    about = document["document"]
    if about["error"]:
        return Text(safe(f"{about['uri']}: {about['error']}"), style="red")
    table = _table("#", "tokens", "page", "headings", "text")
    for chunk in document["chunks"]:
        text = " ".join(chunk["text"].split())
        _row(
            table, chunk["chunk_index"], chunk["token_count"], chunk["page_number"] or "",
            " › ".join(chunk["heading_path"]), text[:160] + ("…" if len(text) > 160 else ""),
        )  # fmt: skip
    counts = f"{len(document['sections'])} sections, {len(document['chunks'])} chunks"
    counts += f", profile {about['profile']}"
    return Group(Text(safe(f"{about['uri']}  ({about['title']}): {counts}")), table)


def sources(rows: Sequence[Mapping[str, Any]], errors: Mapping[str, str]) -> RenderableType:
    table = _table("source", "kind", "schedule", "profile", "")
    for row in rows:
        _row(
            table, row["name"], row["kind"], row["schedule"], row["profile"],
            "" if row["enabled"] else "disabled",
        )  # fmt: skip
    return Group(table, *(Text(safe(error), style="red") for error in errors.values()))


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _row(table: Table, *cells: object) -> None:
    # What comes from documents must not be read as markup.
    table.add_row(*(Text(safe(str(cell))) for cell in cells))


def safe(text: str) -> str:
    """One line, without the characters by which a document could write or forge other ones."""
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", safe_lines(_BREAK.sub(" ", text)))


def safe_lines(text: str) -> str:
    """A text of several lines, without the control characters that a document could use on a terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
