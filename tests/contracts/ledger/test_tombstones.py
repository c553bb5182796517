"""What every Ledger remembers of removed documents, and until when."""

from dataclasses import replace
from uuid import uuid4

from ledger_cases import (
    NOON,
    SOURCE,
    URI,
    chunks_of,
    commit,
    document,
    event,
    later,
    quarantined,
    sections_of,
    tombstone,
)

from tidemark.domain.records import TAKEN_DOWN
from tidemark.ports.ledger import Ledger

OTHER = "https://example.org/other"


def test_a_removed_document_leaves_its_tombstone_and_its_events(ledger: Ledger) -> None:
    record = document()
    commit(ledger, record)
    removal = tombstone(record, run_id="run-2")
    gone = event(record, run_id="run-2", action="remove", reason="gone")
    for _ in range(2):
        ledger.writes.remove(removal, gone)
    key = record.document_id
    assert ledger.documents.get(key) is None
    assert ledger.documents.sections(key) == []
    assert ledger.documents.chunks(key) == []
    assert ledger.tombstones.by_id([key, uuid4()]) == {key: removal}
    assert ledger.tombstones.by_uri(URI) == [removal]
    assert ledger.runs.events_of(key) == [gone, event(record)]


def test_a_document_never_indexed_may_be_removed(ledger: Ledger) -> None:
    record = quarantined()
    removal = tombstone(record)
    ledger.writes.remove(removal, event(record, action="remove"))
    assert removal.raw_hash is None
    assert ledger.tombstones.by_uri(URI) == [removal]


def test_a_restored_document_has_no_tombstone(ledger: Ledger) -> None:
    record = document()
    commit(ledger, record)
    ledger.writes.remove(tombstone(record), event(record))
    commit(ledger, record)
    assert ledger.tombstones.by_id([record.document_id]) == {}
    assert ledger.tombstones.by_uri(URI) == []
    assert ledger.documents.chunks(record.document_id) == chunks_of(record, sections_of(record))


def test_it_takes_an_address_longer_than_an_index_entry(ledger: Ledger) -> None:
    # Random, so that compression does not save the index.
    record = document(uri="https://example.org/" + "".join(uuid4().hex for _ in range(300)))
    commit(ledger, record)
    ledger.writes.remove(tombstone(record), event(record, run_id="run-2"))
    assert [t.uri for t in ledger.tombstones.by_uri(record.uri)] == [record.uri]


def test_no_tombstones_are_found_where_none_are_asked_for(ledger: Ledger) -> None:
    assert ledger.tombstones.by_id([]) == {}


def test_tombstones_are_found_by_their_bytes_and_their_age_until_they_expire(
    ledger: Ledger,
) -> None:
    record = commit(ledger, document())
    blocking = replace(tombstone(record), raw_hash="raw-1", removed_at=NOON)
    ledger.writes.remove(blocking, event(record))
    assert ledger.tombstones.by_raw(SOURCE, ["raw-1"]) == [blocking]
    assert ledger.tombstones.restorable(SOURCE, later(1)) == [blocking]
    assert ledger.tombstones.restorable(SOURCE, NOON) == []
    assert ledger.versions.raw_in_use(["raw-1"]) == {"raw-1"}
    ledger.tombstones.expire([record.document_id])
    assert ledger.tombstones.by_raw(SOURCE, ["raw-1"]) == []
    assert ledger.tombstones.restorable(SOURCE, later(1)) == []
    assert ledger.tombstones.by_uri(URI) == [replace(blocking, expired=True)]


def test_expired_tombstones_are_dropped_with_their_events_except_those_that_block(
    ledger: Ledger,
) -> None:
    names = ("old", "young", "fresh", "taken")
    made = {name: document(f"https://example.org/{name}") for name in names}
    for name, record in made.items():
        reason = TAKEN_DOWN if name == "taken" else "gone"
        removed = later(50 if name == "young" else 10)
        ledger.writes.remove(
            tombstone(record, removed_at=removed, reason=reason), event(record, action="remove")
        )
    ledger.tombstones.expire(
        [record.document_id for name, record in made.items() if name != "fresh"]
    )
    assert ledger.tombstones.drop(later(10)) == 0
    assert ledger.tombstones.drop(later(20)) == 1
    assert ledger.tombstones.drop(later(20)) == 0
    left = {name for name, record in made.items() if ledger.runs.events_of(record.document_id)}
    assert left == {"young", "fresh", "taken"}
    tombstones = ledger.tombstones.by_id([record.document_id for record in made.values()])
    assert len(tombstones) == 3
    assert made["old"].document_id not in tombstones


def test_what_was_taken_down_is_blocked_and_never_restored(ledger: Ledger) -> None:
    record, gone = document(raw_hash="raw-1"), document(OTHER, raw_hash="raw-1")
    blocking = tombstone(record, reason=TAKEN_DOWN)
    ledger.writes.remove(blocking, event(record))
    ledger.writes.remove(tombstone(gone), event(gone))
    assert ledger.tombstones.blocking(SOURCE) == [blocking]
    assert ledger.tombstones.blocking("other") == []
    assert ledger.tombstones.by_raw(SOURCE, ["raw-1"]) == [tombstone(gone)]
    ledger.tombstones.unblock(record.document_id)
    ledger.tombstones.unblock(record.document_id)
    assert ledger.tombstones.blocking(SOURCE) == []
    assert ledger.tombstones.by_uri(URI) == []


def test_what_was_taken_down_from_all_sources_is_blocked_in_each(ledger: Ledger) -> None:
    here, there = document(), document(OTHER, "other")
    tombstones = [
        tombstone(here, reason=TAKEN_DOWN, all_sources=True),
        tombstone(there, source="other", reason=TAKEN_DOWN),
    ]
    for record, blocking in zip((here, there), tombstones, strict=True):
        ledger.writes.remove(blocking, event(record))
    assert ledger.tombstones.blocking(SOURCE) == tombstones[:1]
    assert sorted(ledger.tombstones.blocking("other"), key=lambda s: s.uri) == sorted(
        tombstones, key=lambda s: s.uri
    )
    assert ledger.tombstones.blocking("unknown") == tombstones[:1]


def test_a_tombstone_remembers_the_hashes_that_it_blocks(ledger: Ledger) -> None:
    record = commit(ledger, document())
    key = record.document_id
    removal = tombstone(
        record, reason=TAKEN_DOWN, blocked_raws=("raw-1", "raw-2"), blocked_texts=("text-1",)
    )
    ledger.writes.remove(removal, event(record))
    assert ledger.tombstones.blocking(record.source) == [removal]
    assert ledger.tombstones.by_id([key]) == {key: removal}
    plain = replace(removal, blocked_raws=(), blocked_texts=())
    ledger.writes.remove(plain, event(record))
    assert ledger.tombstones.by_uri(record.uri) == [plain]


def test_titles_are_forgotten_by_the_bytes_that_had_them(ledger: Ledger) -> None:
    raws = {"x": "raw-1", "y": "raw-1", "z": "raw-2"}
    for name, raw in raws.items():
        record = document(f"https://example.org/{name}", raw_hash=raw)
        ledger.writes.remove(tombstone(record, expired=name == "y"), event(record))
    alike = document(source="other", raw_hash="raw-1")
    ledger.writes.remove(tombstone(alike), event(alike))
    ledger.tombstones.clear_titles(SOURCE, ["raw-1", "raw-3"])
    ledger.tombstones.clear_titles(SOURCE, [])
    tombstones = [s for n in raws for s in ledger.tombstones.by_uri(f"https://example.org/{n}")]
    assert [s.title for s in tombstones] == ["", "", "A title"]
    assert [s.title for s in ledger.tombstones.by_uri(URI)] == ["A title"]
