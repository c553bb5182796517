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
    SUSPECT,
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
from tidemark.domain.records import (
    DocumentCounts,
    DocumentRecord,
    GenerationRecord,
    GenerationStatus,
    RunStatus,
)
from tidemark.ports import Ledger


def commit(ledger: Ledger, record: DocumentRecord, texts: list[str] | None = None) -> None:
    sections = sections_of(record)
    ledger.writes.commit(record, sections, chunks_of(record, sections, texts), event(record))


# Documents


def test_it_gives_back_a_document_as_it_was_committed(ledger: Ledger) -> None:
    record = document()
    commit(ledger, record)
    assert ledger.documents.get(record.document_id) == record
    assert ledger.documents.sections(record.document_id) == sections_of(record)
    assert ledger.documents.chunks(record.document_id) == chunks_of(record, sections_of(record))


def test_it_gives_back_every_field_of_a_quarantined_document(ledger: Ledger) -> None:
    record = quarantined(
        charset=None, validators=Validators(), missing_since=later(5), missing_runs=2
    )
    ledger.writes.update(record, event(record, action="quarantine", reason="failed"))
    assert ledger.documents.get(record.document_id) == record
    assert ledger.documents.chunks(record.document_id) == []
    assert ledger.documents.sections(record.document_id) == []


def test_it_gives_times_back_in_utc(ledger: Ledger) -> None:
    commit(ledger, document())
    [found] = ledger.documents.stream()
    assert found.first_seen.isoformat() == "2026-03-01T12:00:00.123456+00:00"


def test_it_keeps_any_script_and_any_sign(ledger: Ledger) -> None:
    record = document(
        uri="https://example.org/%E6%9D%B1?q=ä'\"\\;--",
        title="naïve — 東京 👩‍🔬 \u202e\t\n'\"\\ {}",
    )
    section = replace(sections_of(record)[0], heading_path=("Ä", "", "{a,b}", '"\\'))
    ledger.writes.commit(record, [section], [], event(record, detail="% :x %(y)s"))
    assert ledger.documents.get(record.document_id) == record
    assert ledger.documents.sections(record.document_id) == [section]
    assert ledger.documents.by_uri(record.uri) == [record]


def test_it_takes_an_address_longer_than_an_index_entry(ledger: Ledger) -> None:
    # Random, so that compression does not save the index.
    record = document(uri="https://example.org/" + "".join(uuid4().hex for _ in range(300)))
    commit(ledger, record)
    ledger.writes.remove(tombstone(record), event(record, run_id="run-2"))
    assert [t.uri for t in ledger.tombstones.by_uri(record.uri)] == [record.uri]


def test_a_document_without_sections_or_chunks_is_one_too(ledger: Ledger) -> None:
    record = document(sections=0, chunks=0)
    ledger.writes.commit(record, [], [], event(record))
    assert ledger.documents.get(record.document_id) == record
    assert ledger.documents.chunks(record.document_id) == []


def test_documents_come_by_source_then_uri_in_the_order_of_code_points(ledger: Ledger) -> None:
    uris = ["b", "a", "Z", "ä", "a/b", "a b", "é", "a-b", "\U0001f600", "\uffee"]
    long = "x" * 600
    uris += [long + "b", long + "a"]
    for source in ("zeta", "Alpha", "beta"):
        for uri in uris:
            commit(ledger, document(uri, source))
    found = [(d.source, d.uri) for d in ledger.documents.stream()]
    assert found == [(s, u) for s in ("Alpha", "beta", "zeta") for u in sorted(uris)]
    assert [d.uri for d in ledger.documents.stream("beta")] == sorted(uris)
    assert list(ledger.documents.stream("nobody")) == []


def test_documents_may_be_changed_while_they_are_streamed(ledger: Ledger) -> None:
    for n in range(5):
        commit(ledger, document(f"{n}"))
    seen = []
    for record in ledger.documents.stream(SOURCE):
        seen.append(record.uri)
        ledger.writes.remove(tombstone(record), event(record))
        commit(ledger, document(f"new-{record.uri}"))
    assert seen == ["0", "1", "2", "3", "4"]
    assert [d.uri for d in ledger.documents.stream()] == [f"new-{n}" for n in range(5)]


def test_it_finds_documents_by_id_and_leaves_out_what_it_does_not_know(ledger: Ledger) -> None:
    a, b = document("a"), document("b")
    commit(ledger, a)
    commit(ledger, b)
    ids = [a.document_id, uuid4(), b.document_id, a.document_id]
    assert ledger.documents.by_id(ids) == {a.document_id: a, b.document_id: b}
    assert ledger.documents.by_id([]) == {}
    assert ledger.documents.get(uuid4()) is None


def test_it_finds_an_address_in_every_source(ledger: Ledger) -> None:
    for source in ("two", "one"):
        commit(ledger, document(URI, source))
    commit(ledger, document(URI + "/b", "one"))
    assert [d.source for d in ledger.documents.by_uri(URI)] == ["one", "two"]
    assert ledger.documents.by_uri("https://example.org/") == []


# Committing


def test_committing_again_changes_nothing(ledger: Ledger) -> None:
    record = document()
    for _ in range(2):
        commit(ledger, record)
    assert list(ledger.documents.stream()) == [record]
    assert ledger.documents.chunks(record.document_id) == chunks_of(record, sections_of(record))
    assert len(ledger.runs.events_of(record.document_id)) == 1


def test_a_new_version_replaces_what_the_old_one_had(ledger: Ledger) -> None:
    record = document()
    commit(ledger, record, ["one", "two", "three"])
    newer = document(content_hash="content-2", reason="content", sections=3)
    sections = sections_of(newer, 3)[1:]
    chunks = chunks_of(newer, sections, ["zero", "two", "one", "one"])
    ledger.writes.commit(newer, sections, chunks, event(newer, run_id="run-2"))
    assert ledger.documents.get(record.document_id) == newer
    assert ledger.documents.sections(record.document_id) == sections
    assert ledger.documents.chunks(record.document_id) == chunks


def test_a_chunk_may_move_out_of_a_section_that_goes(ledger: Ledger) -> None:
    record = document()
    first, second = sections_of(record)
    chunks = chunks_of(record, [first], ["one"])
    ledger.writes.commit(record, [first], chunks, event(record))
    moved = [replace(chunks[0], section_id=second.section_id)]
    ledger.writes.commit(record, [second], moved, event(record))
    assert ledger.documents.sections(record.document_id) == [second]
    assert ledger.documents.chunks(record.document_id) == moved


def test_a_chunk_of_no_section_is_refused_and_nothing_is_written(ledger: Ledger) -> None:
    record = document()
    first, second = sections_of(record)
    with pytest.raises(PermanentError):
        ledger.writes.commit(record, [first], chunks_of(record, [second], ["one"]), event(record))
    assert ledger.documents.get(record.document_id) is None
    assert ledger.runs.events_of(record.document_id) == []


def test_documents_do_not_touch_each_other(ledger: Ledger) -> None:
    a, b = document("a"), document("b")
    commit(ledger, a)
    commit(ledger, b)
    ledger.writes.commit(a, [], [], event(a))
    assert ledger.documents.chunks(b.document_id) == chunks_of(b, sections_of(b))


def test_updating_a_document_leaves_its_sections_and_chunks(ledger: Ledger) -> None:
    record = document()
    commit(ledger, record)
    failed = quarantined(raw_hash="raw-1", generation=1, fingerprints=record.fingerprints)
    ledger.writes.update(failed, event(failed, run_id="run-2", action="quarantine"))
    found = ledger.documents.get(record.document_id)
    assert found == failed
    assert found.failure == FAILURE
    assert ledger.documents.chunks(record.document_id) == chunks_of(record, sections_of(record))


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
    assert ledger.documents.chunks(record.document_id) == expected


# Removal


def test_a_removed_document_leaves_its_tombstone_and_its_events(ledger: Ledger) -> None:
    record = document()
    commit(ledger, record)
    grave = tombstone(record, run_id="run-2")
    gone = event(record, run_id="run-2", action="remove", reason="gone")
    for _ in range(2):
        ledger.writes.remove(grave, gone)
    key = record.document_id
    assert ledger.documents.get(key) is None
    assert ledger.documents.sections(key) == []
    assert ledger.documents.chunks(key) == []
    assert ledger.tombstones.by_id([key, uuid4()]) == {key: grave}
    assert ledger.tombstones.by_uri(URI) == [grave]
    assert ledger.runs.events_of(key) == [gone, event(record)]


def test_a_document_never_indexed_may_be_removed(ledger: Ledger) -> None:
    record = quarantined()
    grave = tombstone(record)
    ledger.writes.remove(grave, event(record, action="remove"))
    assert grave.raw_hash is None
    assert ledger.tombstones.by_uri(URI) == [grave]


def test_a_restored_document_has_no_tombstone(ledger: Ledger) -> None:
    record = document()
    commit(ledger, record)
    ledger.writes.remove(tombstone(record), event(record))
    commit(ledger, record)
    assert ledger.tombstones.by_id([record.document_id]) == {}
    assert ledger.tombstones.by_uri(URI) == []
    assert ledger.documents.chunks(record.document_id) == chunks_of(record, sections_of(record))


def test_no_tombstones_are_found_where_none_are_asked_for(ledger: Ledger) -> None:
    assert ledger.tombstones.by_id([]) == {}


# Seen and missed


def test_a_touch_notes_what_was_seen(ledger: Ledger) -> None:
    record = document(missing_since=NOON, missing_runs=2)
    commit(ledger, record)
    ledger.writes.mark_seen("run-2", later(9), [touch(record.document_id), touch(uuid4())])
    assert ledger.documents.get(record.document_id) == replace(
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
    ledger.writes.mark_seen("run-2", later(9), touches)
    found = ledger.documents.get(record.document_id)
    assert found is not None
    assert found.fetched_raw_hash == "raw-4"


def test_a_miss_counts_once_a_run_and_remembers_since_when(ledger: Ledger) -> None:
    record = document()
    commit(ledger, record)
    ids = [record.document_id, uuid4(), record.document_id]
    for run_id, minutes in (("run-2", 10), ("run-2", 11), ("run-3", 20), ("run-2", 30)):
        ledger.writes.mark_missing(run_id, later(minutes), ids)
    found = ledger.documents.get(record.document_id)
    assert found is not None
    assert (found.missing_runs, found.missing_since) == (2, later(10))
    assert found.last_seen == NOON


def test_a_document_seen_again_starts_from_nothing(ledger: Ledger) -> None:
    record = document()
    commit(ledger, record)
    ledger.writes.mark_missing("run-2", later(10), [record.document_id])
    ledger.writes.mark_seen("run-3", later(20), [touch(record.document_id)])
    ledger.writes.mark_missing("run-4", later(30), [record.document_id])
    found = ledger.documents.get(record.document_id)
    assert found is not None
    assert (found.missing_runs, found.missing_since) == (1, later(30))


def test_a_new_version_is_no_longer_missed(ledger: Ledger) -> None:
    record = document()
    commit(ledger, record)
    ledger.writes.mark_missing("run-2", later(10), [record.document_id])
    commit(ledger, record)
    ledger.writes.mark_missing("run-2", later(11), [record.document_id])
    found = ledger.documents.get(record.document_id)
    assert found is not None
    assert (found.missing_runs, found.missing_since) == (1, later(11))


def test_nothing_touched_or_missed_is_fine(ledger: Ledger) -> None:
    ledger.writes.mark_seen("run-1", NOON, [])
    ledger.writes.mark_missing("run-1", NOON, [])
    assert list(ledger.documents.stream()) == []


# In flight


def test_what_was_begun_is_known_until_it_is_committed_removed_or_settled(ledger: Ledger) -> None:
    records = [document(uri) for uri in ("a", "b", "c", "d")]
    for _ in range(2):
        ledger.writes.open_intent("run-1", SOURCE, {r.document_id: r.uri for r in records})
    ledger.writes.open_intent("run-1", "other", {document("x", "other").document_id: "x"})
    assert ledger.writes.pending(SOURCE) == {r.document_id: r.uri for r in records}
    commit(ledger, records[0])
    ledger.writes.remove(tombstone(records[1]), event(records[1]))
    ledger.writes.close_intent([records[2].document_id, uuid4()])
    ledger.writes.update(records[3], event(records[3]))
    assert ledger.writes.pending(SOURCE) == {records[3].document_id: "d"}
    assert list(ledger.writes.pending("other").values()) == ["x"]


def test_nothing_begun_or_settled_is_fine(ledger: Ledger) -> None:
    ledger.writes.open_intent("run-1", SOURCE, {})
    ledger.writes.close_intent([])
    assert ledger.writes.pending(SOURCE) == {}


# Runs and events


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


# Counts, generations, audits


def test_it_counts_documents_and_what_is_indexed_of_them(ledger: Ledger) -> None:
    for record in (document("a"), document("b"), document("c", generation=2)):
        commit(ledger, record)
    commit(ledger, document("a", "other", suspect=SUSPECT))
    bad = quarantined("d")
    ledger.writes.update(bad, event(bad))
    counts = ledger.documents.counts
    assert counts(SOURCE) == DocumentCounts(4, 3, quarantined=1, sections=6, chunks=9)
    assert counts("other") == DocumentCounts(1, 1, held=1, sections=2, chunks=3)
    assert counts() == DocumentCounts(5, 4, quarantined=1, held=1, sections=8, chunks=12)
    assert counts(SOURCE, 2) == DocumentCounts(1, 1, sections=2, chunks=3)
    assert counts("nobody") == counts("nobody", 1) == DocumentCounts()
    assert ledger.generations.outside(1) == {SOURCE: 1}
    assert list(ledger.generations.outside(2).items()) == sorted({SOURCE: 2, "other": 1}.items())
    assert list(ledger.generations.outside(3).items()) == sorted({SOURCE: 3, "other": 1}.items())


def test_it_names_the_sources_that_have_documents_or_runs(ledger: Ledger) -> None:
    record = document("a", "removed")
    commit(ledger, record)
    commit(ledger, document("a", "zeta"))
    ledger.runs.save(run(source="Alpha"))
    ledger.writes.remove(tombstone(record), event(record))
    assert ledger.sources.names() == ["Alpha", "zeta"]


def test_generations_come_by_number(ledger: Ledger) -> None:
    def generation(name: str, number: int, status: str = "building") -> GenerationRecord:
        return GenerationRecord(name, number, "embed-1", 384, GenerationStatus(status), NOON)

    for number in (10, 2, 1):
        ledger.generations.save(generation("main", number))
    ledger.generations.save(generation("other", 3))
    ledger.generations.save(generation("main", 2, "live"))
    assert ledger.generations.all("main") == [
        generation("main", 1),
        generation("main", 2, "live"),
        generation("main", 10),
    ]
    assert ledger.generations.all("nobody") == []


# A dry run


def test_what_a_dry_run_changes_is_seen_in_it_and_undone_at_its_end(ledger: Ledger) -> None:
    kept, removed = document("a"), document("b")
    commit(ledger, kept)
    commit(ledger, removed)
    with ledger.dry_run() as dry:
        for record in dry.documents.stream():
            if record == removed:
                dry.writes.remove(tombstone(removed), event(removed, run_id="run-2"))
        commit(dry, document("c"))
        assert [d.uri for d in dry.documents.stream()] == ["a", "c"]
        assert dry.tombstones.by_id([removed.document_id]) == {
            removed.document_id: tombstone(removed)
        }
        assert [d.uri for d in ledger.documents.stream()] == ["a", "b"]
        stray = replace(chunks_of(kept, sections_of(kept))[0], section_id=uuid4())
        with pytest.raises(PermanentError):
            dry.writes.commit(kept, sections_of(kept), [stray], event(kept))
        assert dry.documents.get(kept.document_id) == kept
        with dry.lock("a source"):
            assert ledger.is_locked("a source")
    assert list(ledger.documents.stream()) == [kept, removed]
    assert ledger.documents.chunks(removed.document_id) == chunks_of(removed, sections_of(removed))
    assert ledger.tombstones.by_id([removed.document_id]) == {}


def test_an_error_in_a_dry_run_ends_it_as_well(ledger: Ledger) -> None:
    def fail() -> None:
        with ledger.dry_run() as dry:
            commit(dry, document("a"))
            raise ValueError("of the caller's own")

    with pytest.raises(ValueError, match="of the caller's own"):
        fail()
    assert list(ledger.documents.stream()) == []
