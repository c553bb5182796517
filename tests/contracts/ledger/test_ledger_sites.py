"""What every Ledger must know of a source beside its documents, one by one."""

from dataclasses import replace

from ledger_cases import (
    NOON,
    SOURCE,
    SUSPECT,
    URI,
    chunks_of,
    document,
    event,
    later,
    sections_of,
    tombstone,
    touch,
)

from tidemark.domain.documents import Validators
from tidemark.domain.records import (
    Alias,
    AliasKind,
    DocumentRecord,
    DocumentStatus,
    SourceState,
)
from tidemark.ports import Ledger

OTHER = "https://example.org/other"


def commit(ledger: Ledger, record: DocumentRecord) -> DocumentRecord:
    sections = sections_of(record)
    ledger.writes.commit(record, sections, chunks_of(record, sections), event(record))
    return record


def alias(record: DocumentRecord, uri: str = OTHER, **changes: object) -> Alias:
    made = Alias(record.source, uri, record.document_id, AliasKind.DUPLICATE, NOON)
    return replace(made, **changes)  # type: ignore[arg-type]


def test_it_keeps_what_was_measured_of_a_document_and_why_it_is_doubted(ledger: Ledger) -> None:
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


def test_a_touch_takes_a_doubt_up_and_lets_it_go(ledger: Ledger) -> None:
    record = commit(ledger, document())
    ledger.writes.mark_seen("run-2", later(5), [touch(record.document_id, suspect=SUSPECT)])
    found = ledger.documents.get(record.document_id)
    assert found is not None
    assert found.suspect == SUSPECT
    ledger.writes.mark_seen("run-3", later(9), [touch(record.document_id)])
    assert ledger.documents.counts(SOURCE).held == 0


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


def test_an_alias_is_found_from_both_ends(ledger: Ledger) -> None:
    record = commit(ledger, document())
    whole = alias(
        record,
        validators=Validators(etag='"x"'),
        raw_hash="raw-7",
        media_type="text/html",
        charset="utf-8",
        text_hash="text-1",
        text_length=900,
        fetched_at=later(1),
    )
    ledger.sources.save_aliases([whole])
    assert ledger.sources.aliases_of(record.document_id) == [whole]
    assert ledger.sources.aliases_by_uri([OTHER, URI], SOURCE) == [whole]
    assert ledger.sources.aliases_by_uri([OTHER, URI]) == [whole]
    assert ledger.sources.aliases_by_uri([OTHER], "nobody") == []
    assert list(ledger.sources.aliases(SOURCE)) == [whole]
    assert ledger.versions.raw_in_use(["raw-7"]) == {"raw-7"}


def test_an_alias_of_no_document_and_a_document_as_an_alias_are_ignored(ledger: Ledger) -> None:
    record = commit(ledger, document())
    other = commit(ledger, document(OTHER))
    missing = document("https://example.org/missing")
    ledger.sources.save_aliases(
        [alias(record), alias(missing, "https://example.org/x"), alias(other, URI)]
    )
    assert list(ledger.sources.aliases(SOURCE)) == []


def test_an_alias_goes_with_its_document_and_when_it_becomes_one(ledger: Ledger) -> None:
    record = commit(ledger, document())
    ledger.sources.save_aliases([alias(record), alias(record, f"{OTHER}/2")])
    commit(ledger, document(OTHER))
    assert [a.uri for a in ledger.sources.aliases(SOURCE)] == [f"{OTHER}/2"]
    ledger.writes.remove(tombstone(record), event(record))
    assert list(ledger.sources.aliases(SOURCE)) == []


def test_an_alias_survives_a_new_version_of_its_document(ledger: Ledger) -> None:
    record = commit(ledger, document())
    ledger.sources.save_aliases([alias(record)])
    commit(ledger, replace(record, raw_hash="raw-2"))
    assert [a.uri for a in ledger.sources.aliases_of(record.document_id)] == [OTHER]


def test_aliases_not_seen_any_more_are_dropped_except_where_a_document_stood(
    ledger: Ledger,
) -> None:
    record = commit(ledger, document())
    ledger.sources.save_aliases(
        [
            alias(record, f"{OTHER}/old"),
            alias(record, f"{OTHER}/new", seen_at=later(60)),
            alias(record, f"{OTHER}/was", kind=AliasKind.MOVED),
        ]
    )
    ledger.sources.drop_aliases(SOURCE, later(30))
    assert [a.uri for a in ledger.sources.aliases(SOURCE)] == [f"{OTHER}/new", f"{OTHER}/was"]


def test_tombstones_are_found_by_their_bytes_and_their_age_until_they_expire(
    ledger: Ledger,
) -> None:
    record = commit(ledger, document())
    stone = replace(tombstone(record), raw_hash="raw-1", removed_at=NOON)
    ledger.writes.remove(stone, event(record))
    assert ledger.tombstones.by_raw(SOURCE, ["raw-1"]) == [stone]
    assert ledger.tombstones.restorable(SOURCE, later(1)) == [stone]
    assert ledger.tombstones.restorable(SOURCE, NOON) == []
    assert ledger.versions.raw_in_use(["raw-1"]) == {"raw-1"}
    ledger.tombstones.expire([record.document_id])
    assert ledger.tombstones.by_raw(SOURCE, ["raw-1"]) == []
    assert ledger.tombstones.restorable(SOURCE, later(1)) == []
    assert ledger.tombstones.by_uri(URI) == [replace(stone, expired=True)]


def test_bytes_are_in_use_when_they_were_fetched_and_are_not_indexed_yet(ledger: Ledger) -> None:
    commit(ledger, document(raw_hash="raw-1", fetched_raw_hash="raw-2"))
    assert ledger.versions.raw_in_use(["raw-1", "raw-2", "raw-3"]) == {"raw-1", "raw-2"}
    assert ledger.versions.raw_in_use([]) == set()


def test_what_is_known_of_a_source_as_a_whole_is_kept(ledger: Ledger) -> None:
    assert ledger.sources.state(SOURCE) == SourceState(SOURCE)
    state = SourceState(SOURCE, "commit-1", (2**62, 7), 40)
    ledger.sources.save_state(state)
    assert ledger.sources.state(SOURCE) == state
    ledger.sources.save_state(replace(state, state="commit-2"))
    assert ledger.sources.state(SOURCE).state == "commit-2"


def test_documents_in_quarantine_are_found_by_the_bytes_that_failed(ledger: Ledger) -> None:
    failed = replace(document(), status=DocumentStatus.QUARANTINED, fetched_raw_hash="raw-broken")
    ledger.writes.update(failed, event(failed))
    well = replace(document("https://example.org/well"), fetched_raw_hash="raw-broken")
    commit(ledger, well)
    found = ledger.documents.by_failed(SOURCE, ["raw-broken", "raw-other"])
    assert [record.uri for record in found] == [failed.uri]
    assert ledger.documents.by_failed("another", ["raw-broken"]) == []
    assert ledger.documents.by_failed(SOURCE, []) == []
