"""What every Ledger knows of a source beside its documents."""

from dataclasses import replace

from ledger_cases import NOON, SOURCE, URI, commit, document, event, later, run, tombstone

from tidemark.domain.documents import Validators
from tidemark.domain.records import Alias, AliasKind, DocumentRecord, SourceState
from tidemark.ports.ledger import Ledger

OTHER = "https://example.org/other"


def test_it_names_the_sources_that_have_documents_or_runs(ledger: Ledger) -> None:
    record = document("a", "removed")
    commit(ledger, record)
    commit(ledger, document("a", "zeta"))
    ledger.runs.save(run(source="Alpha"))
    ledger.writes.remove(tombstone(record), event(record))
    assert ledger.sources.names() == ["Alpha", "zeta"]


def test_what_is_known_of_a_source_as_a_whole_is_kept(ledger: Ledger) -> None:
    assert ledger.sources.state(SOURCE) == SourceState(SOURCE)
    state = SourceState(SOURCE, "commit-1", (2**62, 7), 40)
    ledger.sources.save_state(state)
    assert ledger.sources.state(SOURCE) == state
    ledger.sources.save_state(replace(state, state="commit-2"))
    assert ledger.sources.state(SOURCE).state == "commit-2"


def test_the_epoch_of_a_source_stays_when_its_state_is_saved(ledger: Ledger) -> None:
    assert ledger.sources.epoch(SOURCE) == ""
    ledger.sources.write_epoch(SOURCE, "mark-1")
    ledger.sources.save_state(SourceState(SOURCE, "commit-1"))
    assert ledger.sources.epoch(SOURCE) == "mark-1"
    ledger.sources.write_epoch(SOURCE, "mark-2")
    assert ledger.sources.epoch(SOURCE) == "mark-2"
    assert ledger.sources.state(SOURCE) == SourceState(SOURCE, "commit-1")
    assert ledger.sources.epoch("other") == ""
    assert ledger.sources.names() == []


def alias(record: DocumentRecord, uri: str = OTHER, **changes: object) -> Alias:
    made = Alias(record.source, uri, record.document_id, AliasKind.DUPLICATE, NOON)
    return replace(made, **changes)  # type: ignore[arg-type]


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
