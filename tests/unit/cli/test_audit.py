"""An audit as a person reads it: what is wrong, where, and what to do."""

from rich.console import Console

from tidemark.cli import audit as render_audits
from tidemark.stages.audit.audit import AuditReport
from tidemark.stages.audit.drift import KINDS
from tidemark.stages.audit.repair import COUNTED, Repaired


def shown(report: AuditReport) -> str:
    console = Console(width=200, no_color=True)
    with console.capture() as captured:
        console.print(render_audits.render_audit(report))
    return captured.get()


def test_a_clean_audit_is_one_line() -> None:
    report = AuditReport(None, checked=1234, documents=56, sampled=7)
    assert shown(report) == (
        "all sources: 1,234 points of 56 documents checked; 7 documents searched for, "
        "nothing to report.\n"
    )


def test_every_kind_has_words_and_names_its_first_documents() -> None:
    for kind in KINDS:
        found = AuditReport(
            "docs", counts={kind.value: 3}, examples={kind.value: ["http://e.org/x"]}
        )
        lines = shown(found).splitlines()
        assert lines[1].startswith("  3 "), kind
        assert "_" not in lines[1]
        assert lines[2].strip() == "http://e.org/x"
        assert lines[-1] == "Heal it: `tidemark audit docs --repair`"


def test_a_repair_tells_what_it_did_and_what_is_left_with_the_cure() -> None:
    text = shown(
        AuditReport(
            None, counts={"missing_points": 3}, repair=True, repaired=2,
            did={"vectors_made": 1, "vectors_reused": 4}, left={"missing_points": 1},
            failed={"http://e.org/a": "fetch: The snapshot is lost."}, failures=22,
            skipped={"wiki": "Another run holds it."}, waiting={"docs": 4},
        )
    )  # fmt: skip
    for part in (
        "Repaired 2 documents: vectors re-used 4, vectors made 1.",
        "http://e.org/a could not be repaired: fetch: The snapshot is lost.",
        "and 21 more",
        "wiki was not repaired, or not all: Another run holds it.",
        "Still wrong: 1 missing points.",
        "4 documents of docs are unknown to the ledger",
        "`tidemark index docs` decides",
    ):
        assert part in text


def test_what_documents_say_of_themselves_writes_nothing_else_on_a_terminal() -> None:
    hostile = "http://e.org/\x1b[2J[bold]x\nForged: clean"
    text = shown(
        AuditReport(None, counts={"extra_points": 1}, examples={"extra_points": [hostile]})
    )
    assert "\x1b" not in text
    assert "[bold]x Forged" in text


def test_nothing_that_a_repair_counts_is_left_untold() -> None:
    assert set(COUNTED.values()) <= set(render_audits._DID)
    assert {"failed", "skipped", "waiting", "left", "did"} <= set(Repaired.__slots__)
