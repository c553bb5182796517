"""How every Ledger gives documents back: whole, in order, and by what they are looked up."""

from dataclasses import replace
from uuid import uuid4

from ledger_cases import (
    SOURCE,
    SUSPECT,
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

from tidemark.domain.documents import Validators
from tidemark.domain.records import DocumentCounts, DocumentStatus
from tidemark.ports.ledger import Ledger

OTHER = "https://example.org/other"


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


def test_quarantined_documents_come_by_source_and_uri(ledger: Ledger) -> None:
    commit(ledger, document("a"))
    for uri, source in (("ä", "b"), ("z", "b"), ("x", "a")):
        bad = quarantined(uri, source)
        ledger.writes.update(bad, event(bad))
    assert [(d.source, d.uri) for d in ledger.documents.stream(quarantined=True)] == [
        ("a", "x"),
        ("b", "z"),
        ("b", "ä"),
    ]
    assert list(ledger.documents.stream("a", quarantined=True)) == [quarantined("x", "a")]
    assert list(ledger.documents.stream("nobody", quarantined=True)) == []


def test_documents_are_found_by_their_text_and_by_their_bytes_within_a_source(
    ledger: Ledger,
) -> None:
    one = commit(ledger, document(text_hash="text-1", raw_hash="raw-1"))
    two = commit(ledger, document(OTHER, text_hash="text-2", raw_hash="raw-1"))
    commit(ledger, document(URI, "elsewhere", text_hash="text-1", raw_hash="raw-1"))
    assert ledger.documents.by_text(SOURCE, ["text-1", "text-9"]) == [one]
    found = ledger.documents.by_raw(SOURCE, ["raw-1"])
    assert sorted(found, key=lambda d: d.uri) == [one, two]
    assert ledger.documents.by_text(SOURCE, []) == ledger.documents.by_raw(SOURCE, []) == []


def test_documents_in_quarantine_are_found_by_the_bytes_that_failed(ledger: Ledger) -> None:
    failed = replace(document(), status=DocumentStatus.QUARANTINED, fetched_raw_hash="raw-broken")
    ledger.writes.update(failed, event(failed))
    well = replace(document("https://example.org/well"), fetched_raw_hash="raw-broken")
    commit(ledger, well)
    found = ledger.documents.by_failed(SOURCE, ["raw-broken", "raw-other"])
    assert [record.uri for record in found] == [failed.uri]
    assert ledger.documents.by_failed("another", ["raw-broken"]) == []
    assert ledger.documents.by_failed(SOURCE, []) == []


def test_it_keeps_what_was_measured_of_a_document_and_the_version_that_is_held(
    ledger: Ledger,
) -> None:
    record = commit(
        ledger,
        document(
            text_hash="text-1",
            text_length=900,
            modified_at=later(3),
            link="https://x/y",
            suspect=SUSPECT,
        ),
    )
    assert ledger.documents.get(record.document_id) == record
    assert ledger.documents.counts(SOURCE).held == 1


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
