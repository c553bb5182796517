"""How every Ledger changes documents: whole or not at all, repeatably, and in a dry run for show."""

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
    chunks_of,
    commit,
    document,
    event,
    later,
    quarantined,
    sections_of,
    sighting,
    tombstone,
)

from tidemark.domain.documents import Validators
from tidemark.domain.errors import PermanentError
from tidemark.ports.ledger import Ledger

OTHER = "https://example.org/other"


def test_committing_again_changes_nothing(ledger: Ledger) -> None:
    record = document()
    for _ in range(2):
        commit(ledger, record)
    assert list(ledger.documents.stream()) == [record]
    assert ledger.documents.chunks(record.document_id) == chunks_of(record, sections_of(record))
    assert len(ledger.runs.events_of(record.document_id)) == 1


def test_a_new_version_replaces_what_the_old_one_had(ledger: Ledger) -> None:
    record = document()
    commit(ledger, record, texts=["one", "two", "three"])
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
        commit(ledger, record, texts=texts)
    expected = chunks_of(record, sections_of(record), versions[-1])
    assert ledger.documents.chunks(record.document_id) == expected


def test_a_sighting_notes_what_was_seen(ledger: Ledger) -> None:
    record = document(missing_since=NOON, missing_runs=2)
    commit(ledger, record)
    ledger.writes.mark_seen("run-2", later(9), [sighting(record.document_id), sighting(uuid4())])
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


def test_the_last_sighting_of_a_document_counts(ledger: Ledger) -> None:
    record = document()
    commit(ledger, record)
    sightings = [sighting(record.document_id, fetched_raw_hash=h) for h in ("raw-3", "raw-4")]
    ledger.writes.mark_seen("run-2", later(9), sightings)
    found = ledger.documents.get(record.document_id)
    assert found is not None
    assert found.fetched_raw_hash == "raw-4"


def test_a_sighting_takes_a_held_version_up_and_lets_it_go(ledger: Ledger) -> None:
    record = commit(ledger, document())
    ledger.writes.mark_seen("run-2", later(5), [sighting(record.document_id, suspect=SUSPECT)])
    found = ledger.documents.get(record.document_id)
    assert found is not None
    assert found.suspect == SUSPECT
    ledger.writes.mark_seen("run-3", later(9), [sighting(record.document_id)])
    assert ledger.documents.counts(SOURCE).held == 0


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
    ledger.writes.mark_seen("run-3", later(20), [sighting(record.document_id)])
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


def test_nothing_seen_or_missed_is_fine(ledger: Ledger) -> None:
    ledger.writes.mark_seen("run-1", NOON, [])
    ledger.writes.mark_missing("run-1", NOON, [])
    assert list(ledger.documents.stream()) == []


def test_an_intent_is_open_until_the_document_is_committed_removed_or_it_is_closed(
    ledger: Ledger,
) -> None:
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


def test_open_intents_are_found_by_source_and_by_document(ledger: Ledger) -> None:
    records = [document(f"https://example.org/{n}") for n in range(3)]
    ledger.writes.open_intent("run-1", SOURCE, {r.document_id: r.uri for r in records[:2]})
    commit(ledger, records[0])
    open_one = {records[1].document_id: records[1].uri}
    assert ledger.writes.pending(among=[r.document_id for r in records]) == open_one
    assert ledger.writes.pending(SOURCE) == ledger.writes.pending() == open_one
    assert ledger.writes.pending("nobody") == {}
    assert ledger.writes.pending(among=[records[2].document_id]) == {}
    assert ledger.writes.pending(among=[]) == {}


def test_no_intents_are_fine(ledger: Ledger) -> None:
    ledger.writes.open_intent("run-1", SOURCE, {})
    ledger.writes.close_intent([])
    assert ledger.writes.pending(SOURCE) == {}


def test_a_requeued_document_is_tried_again_whatever_it_failed_under(ledger: Ledger) -> None:
    bad, good = quarantined(), document(OTHER)
    ledger.writes.update(bad, event(bad))
    commit(ledger, good)
    ledger.writes.requeue([bad.document_id, good.document_id])
    ledger.writes.requeue([])
    released = replace(bad, failure=replace(FAILURE, fingerprint=""))
    assert ledger.documents.get(bad.document_id) == released
    assert ledger.documents.get(good.document_id) == good


def test_hashes_and_checksums_of_what_was_written_are_kept(ledger: Ledger) -> None:
    record = document(checksum="c" * 32)
    sections = sections_of(record)
    first, *rest = chunks_of(record, sections)
    chunks = [replace(first, vector_hash="0123456789abcdef"), *rest]
    ledger.writes.commit(record, sections, chunks, event(record))
    assert ledger.documents.chunks(record.document_id) == chunks
    assert ledger.documents.get(record.document_id) == record


def test_vectors_are_recorded_where_they_are_not_known(ledger: Ledger) -> None:
    record = document()
    sections = sections_of(record)
    known, second, third = chunks_of(record, sections)
    known = replace(known, vector_hash="known")
    ledger.writes.commit(record, sections, [known, second, third], event(record))
    foreign = chunks_of(document(OTHER), sections)[0].point_id
    given = {known.point_id: "other", second.point_id: "second", foreign: "foreign"}
    ledger.writes.record_vectors(record.document_id, given, "part")
    # One of its vectors is not known yet: a checksum would prove nothing.
    assert ledger.documents.get(record.document_id) == record
    ledger.writes.record_vectors(record.document_id, {third.point_id: "third"}, "whole")
    ledger.writes.record_vectors(record.document_id, {}, "later")
    assert [c.vector_hash for c in ledger.documents.chunks(record.document_id)] == [
        "known",
        "second",
        "third",
    ]
    assert ledger.documents.get(record.document_id) == replace(record, checksum="whole")
    ledger.writes.record_vectors(document(OTHER).document_id, {}, "nothing is there")


def test_a_hash_of_the_dense_vector_alone_becomes_whole_and_the_checksum_with_it(
    ledger: Ledger,
) -> None:
    record = document(checksum="old")
    sections = sections_of(record)
    first, second, third = chunks_of(record, sections)
    half = [
        replace(first, vector_hash="a"),
        replace(second, vector_hash="b.w"),
        replace(third, vector_hash="c"),
    ]
    ledger.writes.commit(record, sections, half, event(record))
    given = {first.point_id: "a.x", second.point_id: "b.y", third.point_id: "d.z"}
    ledger.writes.record_vectors(record.document_id, given, "new", "another")
    assert ledger.documents.get(record.document_id) == record
    assert [c.vector_hash for c in ledger.documents.chunks(record.document_id)] == [
        "a.x",
        "b.w",
        "c",
    ]
    ledger.writes.record_vectors(record.document_id, given, "new", "old")
    assert ledger.documents.get(record.document_id) == replace(record, checksum="new")


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
