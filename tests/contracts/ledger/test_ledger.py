"""What every Ledger must do, on the real one and on the one in memory that other tests trust."""

from dataclasses import replace
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ledger_cases import (
    FAILURE,
    NOON,
    SOURCE,
    URI,
    chunks_of,
    document,
    event,
    later,
    quarantined,
    run,
    sections_of,
    tombstone,
    touch,
)

from tidemark.domain.documents import Validators
from tidemark.domain.errors import PermanentError
from tidemark.domain.records import DocumentRecord, GenerationRecord, GenerationStatus, RunStatus
from tidemark.ports import Ledger


def commit(ledger: Ledger, record: DocumentRecord, texts: list[str] | None = None) -> None:
    sections = sections_of(record)
    ledger.commit_document(record, sections, chunks_of(record, sections, texts), event(record))


# Documents


def test_it_gives_back_a_document_as_it_was_committed(ledger: Ledger) -> None:
    record = document()
    commit(ledger, record)
    assert ledger.document(record.document_id) == record
    assert ledger.sections(record.document_id) == sections_of(record)
    assert ledger.chunks(record.document_id) == chunks_of(record, sections_of(record))


def test_it_gives_back_every_field_of_a_quarantined_document(ledger: Ledger) -> None:
    record = quarantined(
        charset=None, validators=Validators(), missing_since=later(5), missing_runs=2
    )
    ledger.update_document(record, event(record, action="quarantine", reason="failed"))
    assert ledger.document(record.document_id) == record
    assert ledger.chunks(record.document_id) == []
    assert ledger.sections(record.document_id) == []


def test_it_gives_times_back_in_utc(ledger: Ledger) -> None:
    commit(ledger, document())
    [found] = ledger.documents()
    assert found.first_seen.isoformat() == "2026-03-01T12:00:00.123456+00:00"


def test_it_keeps_any_script_and_any_sign(ledger: Ledger) -> None:
    record = document(
        uri="https://example.org/%E6%9D%B1?q=ä'\"\\;--",
        title="naïve — 東京 👩‍🔬 \u202e\t\n'\"\\ {}",
    )
    section = replace(sections_of(record)[0], heading_path=("Ä", "", "{a,b}", '"\\'))
    ledger.commit_document(record, [section], [], event(record, detail="% :x %(y)s"))
    assert ledger.document(record.document_id) == record
    assert ledger.sections(record.document_id) == [section]
    assert ledger.find_documents(record.uri) == [record]


def test_it_takes_an_address_longer_than_an_index_entry(ledger: Ledger) -> None:
    # Random, so that compression does not save the index.
    record = document(uri="https://example.org/" + "".join(uuid4().hex for _ in range(300)))
    commit(ledger, record)
    ledger.remove_document(tombstone(record), event(record, run_id="run-2"))
    assert [t.uri for t in ledger.find_tombstones(record.uri)] == [record.uri]


def test_a_document_without_sections_or_chunks_is_one_too(ledger: Ledger) -> None:
    record = document(sections=0, chunks=0)
    ledger.commit_document(record, [], [], event(record))
    assert ledger.document(record.document_id) == record
    assert ledger.chunks(record.document_id) == []


def test_documents_come_by_source_then_uri_in_the_order_of_code_points(ledger: Ledger) -> None:
    uris = ["b", "a", "Z", "ä", "a/b", "a b", "é", "a-b", "\U0001f600", "\uffee"]
    long = "x" * 600
    uris += [long + "b", long + "a"]
    for source in ("zeta", "Alpha", "beta"):
        for uri in uris:
            commit(ledger, document(uri, source))
    found = [(d.source, d.uri) for d in ledger.documents()]
    assert found == [(s, u) for s in ("Alpha", "beta", "zeta") for u in sorted(uris)]
    assert [d.uri for d in ledger.documents("beta")] == sorted(uris)
    assert list(ledger.documents("nobody")) == []


def test_documents_may_be_changed_while_they_are_streamed(ledger: Ledger) -> None:
    for n in range(5):
        commit(ledger, document(f"{n}"))
    seen = []
    for record in ledger.documents(SOURCE):
        seen.append(record.uri)
        ledger.remove_document(tombstone(record), event(record))
        commit(ledger, document(f"new-{record.uri}"))
    assert seen == ["0", "1", "2", "3", "4"]
    assert [d.uri for d in ledger.documents()] == [f"new-{n}" for n in range(5)]


def test_it_finds_documents_by_id_and_leaves_out_what_it_does_not_know(ledger: Ledger) -> None:
    a, b = document("a"), document("b")
    commit(ledger, a)
    commit(ledger, b)
    ids = [a.document_id, uuid4(), b.document_id, a.document_id]
    assert ledger.documents_by_id(ids) == {a.document_id: a, b.document_id: b}
    assert ledger.documents_by_id([]) == {}
    assert ledger.document(uuid4()) is None


def test_it_finds_an_address_in_every_source(ledger: Ledger) -> None:
    for source in ("two", "one"):
        commit(ledger, document(URI, source))
    commit(ledger, document(URI + "/b", "one"))
    assert [d.source for d in ledger.find_documents(URI)] == ["one", "two"]
    assert ledger.find_documents("https://example.org/") == []


# Committing


def test_committing_again_changes_nothing(ledger: Ledger) -> None:
    record = document()
    for _ in range(2):
        commit(ledger, record)
    assert list(ledger.documents()) == [record]
    assert ledger.chunks(record.document_id) == chunks_of(record, sections_of(record))
    assert len(ledger.events(record.document_id)) == 1


def test_a_new_version_replaces_what_the_old_one_had(ledger: Ledger) -> None:
    record = document()
    commit(ledger, record, ["one", "two", "three"])
    newer = document(content_hash="content-2", reason="content", sections=3)
    sections = sections_of(newer, 3)[1:]
    chunks = chunks_of(newer, sections, ["zero", "two", "one", "one"])
    ledger.commit_document(newer, sections, chunks, event(newer, run_id="run-2"))
    assert ledger.document(record.document_id) == newer
    assert ledger.sections(record.document_id) == sections
    assert ledger.chunks(record.document_id) == chunks


def test_a_chunk_may_move_out_of_a_section_that_goes(ledger: Ledger) -> None:
    record = document()
    first, second = sections_of(record)
    chunks = chunks_of(record, [first], ["one"])
    ledger.commit_document(record, [first], chunks, event(record))
    moved = [replace(chunks[0], section_id=second.section_id)]
    ledger.commit_document(record, [second], moved, event(record))
    assert ledger.sections(record.document_id) == [second]
    assert ledger.chunks(record.document_id) == moved


def test_a_chunk_of_no_section_is_refused_and_nothing_is_written(ledger: Ledger) -> None:
    record = document()
    first, second = sections_of(record)
    with pytest.raises(PermanentError):
        ledger.commit_document(record, [first], chunks_of(record, [second], ["one"]), event(record))
    assert ledger.document(record.document_id) is None
    assert ledger.events(record.document_id) == []


def test_documents_do_not_touch_each_other(ledger: Ledger) -> None:
    a, b = document("a"), document("b")
    commit(ledger, a)
    commit(ledger, b)
    ledger.commit_document(a, [], [], event(a))
    assert ledger.chunks(b.document_id) == chunks_of(b, sections_of(b))


def test_updating_a_document_leaves_its_sections_and_chunks(ledger: Ledger) -> None:
    record = document()
    commit(ledger, record)
    failed = quarantined(raw_hash="raw-1", generation=1, fingerprints=record.fingerprints)
    ledger.update_document(failed, event(failed, run_id="run-2", action="quarantine"))
    found = ledger.document(record.document_id)
    assert found == failed
    assert found.failure == FAILURE
    assert ledger.chunks(record.document_id) == chunks_of(record, sections_of(record))


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(versions=st.lists(st.lists(st.sampled_from("abcdef"), max_size=6), min_size=1, max_size=4))
def test_only_the_last_version_counts_however_one_came_to_it(
    ledger: Ledger, versions: list[list[str]]
) -> None:
    record = document()
    for texts in versions:
        commit(ledger, record, texts)
    expected = chunks_of(record, sections_of(record), versions[-1])
    assert ledger.chunks(record.document_id) == expected
    assert ledger.count_chunks(SOURCE, 1) == len(expected)


# Removal


def test_a_removed_document_leaves_its_tombstone_and_its_events(ledger: Ledger) -> None:
    record = document()
    commit(ledger, record)
    grave = tombstone(record, run_id="run-2")
    gone = event(record, run_id="run-2", action="remove", reason="gone")
    for _ in range(2):
        ledger.remove_document(grave, gone)
    key = record.document_id
    assert ledger.document(key) is None
    assert ledger.sections(key) == []
    assert ledger.chunks(key) == []
    assert ledger.tombstones_by_id([key, uuid4()]) == {key: grave}
    assert ledger.find_tombstones(URI) == [grave]
    assert ledger.events(key) == [gone, event(record)]


def test_a_document_never_indexed_may_be_removed(ledger: Ledger) -> None:
    record = quarantined()
    grave = tombstone(record)
    ledger.remove_document(grave, event(record, action="remove"))
    assert grave.raw_hash is None
    assert ledger.find_tombstones(URI) == [grave]


def test_a_restored_document_has_no_tombstone(ledger: Ledger) -> None:
    record = document()
    commit(ledger, record)
    ledger.remove_document(tombstone(record), event(record))
    commit(ledger, record)
    assert ledger.tombstones_by_id([record.document_id]) == {}
    assert ledger.find_tombstones(URI) == []
    assert ledger.chunks(record.document_id) == chunks_of(record, sections_of(record))


def test_no_tombstones_are_found_where_none_are_asked_for(ledger: Ledger) -> None:
    assert ledger.tombstones_by_id([]) == {}


# Seen and missed


def test_a_touch_notes_what_was_seen(ledger: Ledger) -> None:
    record = document(missing_since=NOON, missing_runs=2)
    commit(ledger, record)
    ledger.touch("run-2", later(9), [touch(record.document_id), touch(uuid4())])
    assert ledger.document(record.document_id) == replace(
        record,
        validators=Validators(etag='"2"'),
        fetch_fingerprint="fetch-2",
        fetched_raw_hash="raw-2",
        last_seen=later(9),
        last_run_id="run-2",
        missing_since=None,
        missing_runs=0,
    )


def test_the_last_touch_of_a_document_counts(ledger: Ledger) -> None:
    record = document()
    commit(ledger, record)
    touches = [touch(record.document_id, fetched_raw_hash=h) for h in ("raw-3", "raw-4")]
    ledger.touch("run-2", later(9), touches)
    found = ledger.document(record.document_id)
    assert found is not None
    assert found.fetched_raw_hash == "raw-4"


def test_a_miss_counts_once_a_run_and_remembers_since_when(ledger: Ledger) -> None:
    record = document()
    commit(ledger, record)
    ids = [record.document_id, uuid4(), record.document_id]
    for run_id, minutes in (("run-2", 10), ("run-2", 11), ("run-3", 20), ("run-2", 30)):
        ledger.miss(run_id, later(minutes), ids)
    found = ledger.document(record.document_id)
    assert found is not None
    assert (found.missing_runs, found.missing_since) == (2, later(10))
    assert found.last_seen == NOON


def test_a_document_seen_again_starts_from_nothing(ledger: Ledger) -> None:
    record = document()
    commit(ledger, record)
    ledger.miss("run-2", later(10), [record.document_id])
    ledger.touch("run-3", later(20), [touch(record.document_id)])
    ledger.miss("run-4", later(30), [record.document_id])
    found = ledger.document(record.document_id)
    assert found is not None
    assert (found.missing_runs, found.missing_since) == (1, later(30))


def test_a_new_version_is_no_longer_missed(ledger: Ledger) -> None:
    record = document()
    commit(ledger, record)
    ledger.miss("run-2", later(10), [record.document_id])
    commit(ledger, record)
    ledger.miss("run-2", later(11), [record.document_id])
    found = ledger.document(record.document_id)
    assert found is not None
    assert (found.missing_runs, found.missing_since) == (1, later(11))


def test_nothing_touched_or_missed_is_fine(ledger: Ledger) -> None:
    ledger.touch("run-1", NOON, [])
    ledger.miss("run-1", NOON, [])
    assert list(ledger.documents()) == []


# In flight


def test_what_was_begun_is_known_until_it_is_committed_removed_or_settled(ledger: Ledger) -> None:
    records = [document(uri) for uri in ("a", "b", "c", "d")]
    for _ in range(2):
        ledger.begin("run-1", SOURCE, {r.document_id: r.uri for r in records})
    ledger.begin("run-1", "other", {document("x", "other").document_id: "x"})
    assert ledger.in_flight(SOURCE) == {r.document_id: r.uri for r in records}
    commit(ledger, records[0])
    ledger.remove_document(tombstone(records[1]), event(records[1]))
    ledger.settle([records[2].document_id, uuid4()])
    ledger.update_document(records[3], event(records[3]))
    assert ledger.in_flight(SOURCE) == {records[3].document_id: "d"}
    assert list(ledger.in_flight("other").values()) == ["x"]


def test_nothing_begun_or_settled_is_fine(ledger: Ledger) -> None:
    ledger.begin("run-1", SOURCE, {})
    ledger.settle([])
    assert ledger.in_flight(SOURCE) == {}


# Runs and events


def test_a_run_is_kept_as_it_was_last_written(ledger: Ledger) -> None:
    ledger.start_run(run(note="before the fair"))
    ledger.start_run(run(note="before the fair"))
    assert ledger.run("run-1") == run(note="before the fair")
    ended = run(
        status=RunStatus.SUCCESS, finished_at=later(3), summary='{"b": 1, "a": {"c": "\\u00e4"}}'
    )
    ledger.finish_run(ended)
    ledger.finish_run(ended)
    assert ledger.run("run-1") == ended
    assert ledger.runs() == [ended]
    assert ledger.run("run-2") is None


def test_runs_come_latest_first(ledger: Ledger) -> None:
    for n, source in enumerate(["one", "two", "one", "one"]):
        ledger.start_run(run(f"run-{n}", source, started_at=later(n % 3)))
    assert [r.run_id for r in ledger.runs()] == ["run-2", "run-1", "run-3", "run-0"]
    assert [r.run_id for r in ledger.runs("one")] == ["run-2", "run-3", "run-0"]
    assert [r.run_id for r in ledger.runs("one", limit=1)] == ["run-2"]
    assert ledger.runs("three") == []


def test_an_event_is_kept_as_it_was_last_recorded(ledger: Ledger) -> None:
    record = document()
    first = event(record, action="keep", reason="unchanged")
    last = event(record, seconds=0.1 + 0.2, chunks_added=1, chunks_kept=2, chunks_removed=3)
    ledger.record_events([first])
    ledger.record_events([first, last])
    assert ledger.events(record.document_id) == [last]
    assert list(ledger.run_events("run-1")) == [last]


def test_events_of_a_document_come_latest_first(ledger: Ledger) -> None:
    record = document()
    for run_id in ("run-2", "run-9", "run-1", "run-9"):
        ledger.record_events([event(record, run_id), event(document("b"), run_id)])
    assert [e.run_id for e in ledger.events(record.document_id)] == ["run-9", "run-1", "run-2"]
    assert [e.run_id for e in ledger.events(record.document_id, limit=1)] == ["run-9"]
    assert ledger.events(uuid4()) == []


def test_events_of_a_run_come_by_uri(ledger: Ledger) -> None:
    uris = ["b", "ä", "Z", "a", "x" * 600 + "b", "x" * 600 + "a"]
    ledger.record_events([event(document(uri)) for uri in uris])
    ledger.record_events([event(document("other"), "run-2")])
    assert [e.uri for e in ledger.run_events("run-1")] == sorted(uris)


def test_no_events_is_fine(ledger: Ledger) -> None:
    ledger.record_events([])
    assert list(ledger.run_events("run-1")) == []


# Counts, generations, audits


def test_it_counts_what_is_indexed(ledger: Ledger) -> None:
    commit(ledger, document("a"), ["one", "two"])
    commit(ledger, document("b"), ["one"])
    commit(ledger, document("c", generation=2))
    commit(ledger, document("a", "other"))
    bad = quarantined("d")
    ledger.update_document(bad, event(bad))
    assert (ledger.count_chunks(SOURCE, 1), ledger.count_sections(SOURCE, 1)) == (3, 4)
    assert (ledger.count_chunks(SOURCE, 2), ledger.count_sections(SOURCE, 2)) == (3, 2)
    assert (ledger.count_chunks("nobody", 1), ledger.count_sections("nobody", 1)) == (0, 0)
    assert ledger.totals(SOURCE) == (3, 9)
    assert ledger.totals() == (4, 12)
    assert ledger.totals("nobody") == (0, 0)
    assert ledger.documents_outside(1) == 1
    assert ledger.documents_outside(2) == 3
    assert ledger.sources_outside(1) == {SOURCE: 1}
    assert list(ledger.sources_outside(3).items()) == sorted({SOURCE: 3, "other": 1}.items())
    assert ledger.count_quarantined(SOURCE) == 1
    assert ledger.count_quarantined("other") == 0


def test_it_names_the_sources_that_have_documents_or_runs(ledger: Ledger) -> None:
    record = document("a", "removed")
    commit(ledger, record)
    commit(ledger, document("a", "zeta"))
    ledger.start_run(run(source="Alpha"))
    ledger.remove_document(tombstone(record), event(record))
    assert ledger.sources() == ["Alpha", "zeta"]


def test_generations_come_by_number(ledger: Ledger) -> None:
    def generation(name: str, number: int, status: str = "building") -> GenerationRecord:
        return GenerationRecord(name, number, "embed-1", 384, GenerationStatus(status), NOON)

    for number in (10, 2, 1):
        ledger.save_generation(generation("main", number))
    ledger.save_generation(generation("other", 3))
    ledger.save_generation(generation("main", 2, "live"))
    assert ledger.generations("main") == [
        generation("main", 1),
        generation("main", 2, "live"),
        generation("main", 10),
    ]
    assert ledger.generations("nobody") == []
