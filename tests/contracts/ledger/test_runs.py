"""The runs and what they did, in every Ledger, and when they are forgotten."""

from uuid import uuid4

from ledger_cases import SOURCE, document, event, later, run

from tidemark.domain.records import RunStatus
from tidemark.ports.ledger import Ledger


def test_a_run_is_kept_as_it_was_last_written(ledger: Ledger) -> None:
    ledger.runs.save(run(note="before the fair"))
    ledger.runs.save(run(note="before the fair"))
    assert ledger.runs.get("run-1") == run(note="before the fair")
    ended = run(
        status=RunStatus.SUCCESS, finished_at=later(3), summary='{"b": 1, "a": {"c": "\\u00e4"}}'
    )
    ledger.runs.save(ended)
    ledger.runs.save(ended)
    assert ledger.runs.get("run-1") == ended
    assert ledger.runs.recent() == [ended]
    assert ledger.runs.get("run-2") is None


def test_runs_come_latest_first(ledger: Ledger) -> None:
    for n, source in enumerate(["one", "two", "one", "one"]):
        ledger.runs.save(run(f"run-{n}", source, started_at=later(n % 3)))
    assert [r.run_id for r in ledger.runs.recent()] == ["run-2", "run-1", "run-3", "run-0"]
    assert [r.run_id for r in ledger.runs.recent("one")] == ["run-2", "run-3", "run-0"]
    assert [r.run_id for r in ledger.runs.recent("one", limit=1)] == ["run-2"]
    assert ledger.runs.recent("three") == []


def finished(run_id: str, minute: float, source: str = SOURCE, status: str = "success") -> object:
    return run(
        run_id,
        source,
        status=RunStatus(status),
        started_at=later(minute),
        finished_at=later(minute + 1),
    )


def test_runs_that_have_not_ended_come_oldest_first(ledger: Ledger) -> None:
    ledger.runs.save(run("b", started_at=later(2)))
    ledger.runs.save(run("a", "other", started_at=later(1)))
    ledger.runs.save(finished("c", 0))
    assert [r.run_id for r in ledger.runs.running()] == ["a", "b"]


def test_old_runs_are_dropped_with_their_events(ledger: Ledger) -> None:
    for minute in range(6):
        ledger.runs.save(finished(f"run-{minute}", minute * 10))
        ledger.runs.record_events([event(document(), f"run-{minute}")])
    ledger.runs.save(run("goes-on", started_at=later(-99)))
    assert ledger.runs.drop(later(1), keep=1) == []
    assert ledger.runs.drop(later(12), keep=1) == ["run-0", "run-1"]
    assert ledger.runs.drop(later(999), keep=2) == ["run-2", "run-3"]
    assert [r.run_id for r in ledger.runs.recent()] == ["run-5", "run-4", "goes-on"]
    assert [e.run_id for e in ledger.runs.events_of(document().document_id)] == ["run-5", "run-4"]
    assert list(ledger.runs.events("run-0")) == []


def test_the_latest_runs_of_each_source_and_its_latest_success_stay(ledger: Ledger) -> None:
    ledger.runs.save(finished("old-success", 1))
    ledger.runs.save(finished("good", 2))
    for minute in (3, 4, 5):
        ledger.runs.save(finished(f"bad-{minute}", minute, status="failed"))
    ledger.runs.save(finished("lone", 0, "other", "failed"))
    assert ledger.runs.drop(later(999), keep=1) == ["old-success", "bad-3", "bad-4"]
    assert {r.run_id for r in ledger.runs.recent()} == {"good", "bad-5", "lone"}
    assert ledger.runs.drop(later(999), keep=0) == ["lone", "bad-5"]
    assert [r.run_id for r in ledger.runs.recent()] == ["good"]


def test_the_events_of_a_large_run_go_with_it(ledger: Ledger) -> None:
    ledger.runs.save(finished("large", 1))
    ledger.runs.save(finished("small", 2))
    ledger.runs.record_events([event(document(str(n)), "large") for n in range(2_500)])
    ledger.runs.record_events([event(document("1"), "small")])
    assert ledger.runs.drop(later(999), keep=1) == ["large"]
    assert list(ledger.runs.events("large")) == []
    assert len(list(ledger.runs.events("small"))) == 1


def test_an_event_is_kept_as_it_was_last_recorded(ledger: Ledger) -> None:
    record = document()
    first = event(record, action="keep", reason="unchanged")
    last = event(record, seconds=0.1 + 0.2, chunks_added=1, chunks_kept=2, chunks_removed=3)
    ledger.runs.record_events([first])
    ledger.runs.record_events([first, last])
    assert ledger.runs.events_of(record.document_id) == [last]
    assert list(ledger.runs.events("run-1")) == [last]


def test_events_of_a_document_come_latest_first(ledger: Ledger) -> None:
    record = document()
    for run_id in ("run-2", "run-9", "run-1", "run-9"):
        ledger.runs.record_events([event(record, run_id), event(document("b"), run_id)])
    assert [e.run_id for e in ledger.runs.events_of(record.document_id)] == [
        "run-9",
        "run-1",
        "run-2",
    ]
    assert [e.run_id for e in ledger.runs.events_of(record.document_id, limit=1)] == ["run-9"]
    assert ledger.runs.events_of(uuid4()) == []


def test_events_of_a_run_come_by_uri(ledger: Ledger) -> None:
    uris = ["b", "ä", "Z", "a", "x" * 600 + "b", "x" * 600 + "a"]
    ledger.runs.record_events([event(document(uri)) for uri in uris])
    ledger.runs.record_events([event(document("other"), "run-2")])
    assert [e.uri for e in ledger.runs.events("run-1")] == sorted(uris)


def test_no_events_is_fine(ledger: Ledger) -> None:
    ledger.runs.record_events([])
    assert list(ledger.runs.events("run-1")) == []
