"""What every Ledger remembers of what was live, and which snapshots are referred to."""

from dataclasses import replace

import pytest
from ledger_cases import (
    FAILURE,
    NOON,
    SOURCE,
    URI,
    commit,
    document,
    event,
    later,
    quarantined,
    tombstone,
)

from tidemark.domain.chunks import Fingerprints
from tidemark.domain.records import (
    TAKEN_DOWN,
    Alias,
    AliasKind,
    DocumentRecord,
    DocumentStatus,
    VersionRecord,
)
from tidemark.ports.ledger import Ledger

OTHER = "https://example.org/other"


def at(minutes: float, **changes: object) -> DocumentRecord:
    """The document as it was written at a minute."""
    return document(**{"indexed_at": later(minutes), "last_seen": later(minutes), **changes})


def raw_hashes(ledger: Ledger, record: DocumentRecord) -> list[str]:
    return [version.raw_hash for version in ledger.versions.of(record.document_id)]


def test_a_commit_becomes_a_version_with_its_reason(ledger: Ledger) -> None:
    record = at(1, modified_at=later(-60), charset=None, content_hash=None)
    commit(ledger, record, action="update", reason="content", detail="cut as docs\0"[:-1])
    assert ledger.versions.of(record.document_id) == [
        VersionRecord(
            document_id=record.document_id,
            run_id="run-1",
            source=SOURCE,
            uri=URI,
            title="A title",
            action="update",
            reason="content",
            detail="cut as docs",
            raw_hash="raw-1",
            content_hash=None,
            media_type="text/html",
            charset=None,
            fingerprints=Fingerprints("fetch-1", "partition-1", "chunk-1", "embed-1"),
            generation=1,
            sections=2,
            chunks=3,
            fetched_at=NOON,
            modified_at=later(-60),
            indexed_at=later(1),
        )
    ]
    assert ledger.versions.of(document(OTHER).document_id) == []


def test_versions_come_latest_first_and_a_run_has_one(ledger: Ledger) -> None:
    for number, minute in ((1, 10), (2, 20), (3, 30)):
        commit(ledger, at(minute, raw_hash=f"raw-{number}"), f"run-{number}")
    commit(ledger, at(40, raw_hash="raw-4"), "run-2")
    commit(ledger, document(OTHER))
    assert raw_hashes(ledger, document()) == ["raw-4", "raw-3", "raw-1"]
    streamed = list(ledger.versions.stream())
    assert len(streamed) == 4
    for record in (document(), document(OTHER)):
        kept = [v for v in streamed if v.document_id == record.document_id]
        assert kept == ledger.versions.of(record.document_id)
    assert [v.document_id for v in streamed] == sorted(v.document_id for v in streamed)


def test_versions_of_the_same_moment_come_as_they_were_written(ledger: Ledger) -> None:
    for run_id in ("b", "a", "c"):
        commit(ledger, at(1), run_id)
    assert [v.run_id for v in ledger.versions.of(document().document_id)] == ["c", "a", "b"]


def test_a_last_good_version_written_again_beside_a_failure_is_no_new_one(ledger: Ledger) -> None:
    commit(ledger, at(1))
    failed = at(2, status=DocumentStatus.QUARANTINED, failure=FAILURE)
    commit(ledger, failed, "run-2", action="quarantine", reason="failed")
    assert [v.run_id for v in ledger.versions.of(failed.document_id)] == ["run-1"]


def test_other_bytes_with_the_same_content_are_a_version_since_they_were_seen(
    ledger: Ledger,
) -> None:
    record = commit(ledger, at(1))
    kept = replace(record, raw_hash="raw-2", last_seen=later(9))
    done = event(kept, "run-2", action="keep", reason="furniture")
    ledger.writes.update(kept, done)
    # Repeated by a retried task: the bytes are the same by now, and nothing is forgotten.
    ledger.writes.update(kept, done)
    ledger.writes.update(replace(kept, title="Other"), event(kept, "run-3", action="keep"))
    latest, first = ledger.versions.of(record.document_id)
    assert (latest.raw_hash, latest.reason, latest.indexed_at) == ("raw-2", "furniture", later(9))
    assert (first.raw_hash, first.indexed_at) == ("raw-1", later(1))


def test_a_document_that_never_was_indexed_has_no_version(ledger: Ledger) -> None:
    bad = quarantined()
    ledger.writes.update(bad, event(bad, action="quarantine", reason="failed"))
    assert ledger.versions.of(bad.document_id) == []


def test_versions_outlive_their_document_until_they_are_forgotten(ledger: Ledger) -> None:
    record = commit(ledger, at(1))
    other = commit(ledger, document(OTHER))
    gone = event(record, "run-2", action="remove", reason="gone")
    ledger.writes.remove(tombstone(record), gone)
    end, was = ledger.versions.of(record.document_id)
    assert (end.action, end.reason, end.chunks, end.sections) == ("remove", "gone", 0, 0)
    assert end.indexed_at == tombstone(record).removed_at
    assert (was.action, was.chunks) == ("add", 3)
    ledger.versions.forget([record.document_id])
    ledger.versions.forget([])
    assert raw_hashes(ledger, record) == []
    assert raw_hashes(ledger, other) == ["raw-1"]


def test_nothing_is_added_to_the_versions_of_what_is_taken_down(ledger: Ledger) -> None:
    record = commit(ledger, at(1))
    ledger.writes.remove(tombstone(record, reason=TAKEN_DOWN), event(record, "run-2"))
    assert [v.run_id for v in ledger.versions.of(record.document_id)] == ["run-1"]
    bad = quarantined(OTHER)
    ledger.writes.update(bad, event(bad))
    ledger.writes.remove(tombstone(bad), event(bad, "run-2"))
    ledger.writes.remove(tombstone(document("never")), event(document("never"), "run-2"))
    assert len(list(ledger.versions.stream())) == 1


def test_versions_are_dropped_by_when_another_took_their_place(ledger: Ledger) -> None:
    for number, minute in ((1, 10), (2, 20), (3, 30)):
        commit(ledger, at(minute, raw_hash=f"raw-{number}"), f"run-{number}")
    commit(ledger, document(OTHER, indexed_at=later(1)))
    assert ledger.versions.drop(later(20)) == 0
    assert ledger.versions.drop(later(20.5)) == 1
    assert raw_hashes(ledger, document()) == ["raw-3", "raw-2"]
    # What is live is replaced by nothing, however old.
    assert ledger.versions.drop(later(999)) == 1
    assert raw_hashes(ledger, document()) == ["raw-3"]
    assert raw_hashes(ledger, document(OTHER)) == ["raw-1"]


def test_a_version_that_its_run_writes_again_is_the_live_one_again(ledger: Ledger) -> None:
    commit(ledger, at(10, raw_hash="raw-1"), "run-1")
    commit(ledger, at(20, raw_hash="raw-2"), "run-2")
    commit(ledger, at(30, raw_hash="raw-1"), "run-1")
    assert ledger.versions.drop(later(999)) == 1
    assert raw_hashes(ledger, document()) == ["raw-1"]


MOVED_TO = "https://example.org/new"


def commit_at(ledger: Ledger, uri: str, run_id: str, minute: float) -> DocumentRecord:
    record = document(uri, indexed_at=later(minute), last_seen=later(minute))
    return commit(ledger, record, run_id, action="add")


def moved(record: DocumentRecord, end: str, kind: AliasKind = AliasKind.MOVED) -> Alias:
    return Alias(SOURCE, record.uri, document(end).document_id, kind, NOON)


def leave(ledger: Ledger, record: DocumentRecord, alias: Alias | None, run_id: str) -> None:
    removal = tombstone(record, run_id, reason="moved", removed_at=later(30))
    ledger.writes.remove(removal, event(record, run_id, action="remove"), alias)


def test_the_versions_of_a_document_that_moves_are_those_of_what_it_is_now(ledger: Ledger) -> None:
    first = commit_at(ledger, URI, "run-1", 1)
    commit_at(ledger, URI, "run-2", 2)
    here = commit_at(ledger, MOVED_TO, "run-3", 3)
    leave(ledger, first, moved(first, MOVED_TO), "run-3")
    assert ledger.versions.of(first.document_id) == []
    found = ledger.versions.of(here.document_id)
    assert [(v.run_id, v.uri) for v in found] == [
        ("run-3", MOVED_TO),
        ("run-2", URI),
        ("run-1", URI),
    ]
    assert {v.document_id for v in found} == {here.document_id}
    assert ledger.versions.drop(later(2)) == 0
    assert ledger.versions.drop(later(2.5)) == 1, "each is replaced when the next came"
    assert ledger.versions.drop(later(31)) == 1, "and the last when it moved"
    assert [v.run_id for v in ledger.versions.of(here.document_id)] == ["run-3"]


def test_versions_of_a_run_that_wrote_both_stay_apart(ledger: Ledger) -> None:
    first = commit_at(ledger, URI, "run-1", 1)
    here = commit_at(ledger, MOVED_TO, "run-1", 1)
    leave(ledger, first, moved(first, MOVED_TO), "run-2")
    assert [v.uri for v in ledger.versions.of(here.document_id)] == [MOVED_TO]
    assert [v.uri for v in ledger.versions.of(first.document_id)] == [URI]


@pytest.mark.parametrize("kind", list(AliasKind))
def test_what_led_to_a_document_leads_on_with_it(ledger: Ledger, kind: AliasKind) -> None:
    first = commit_at(ledger, URI, "run-1", 1)
    ledger.sources.save_aliases([moved(document(OTHER), URI, AliasKind.DUPLICATE)])
    here = commit_at(ledger, MOVED_TO, "run-2", 2)
    leave(ledger, first, moved(first, MOVED_TO, kind), "run-2")
    assert {(a.uri, a.kind) for a in ledger.sources.aliases_of(here.document_id)} == {
        (OTHER, AliasKind.DUPLICATE),
        (URI, kind),
    }
    left = [v.action for v in ledger.versions.of(first.document_id)]
    assert left == ([] if kind is AliasKind.MOVED else ["remove", "add"])


@pytest.mark.parametrize("end", ["https://example.org/nowhere", URI])
def test_an_address_that_leads_nowhere_is_just_removed(ledger: Ledger, end: str) -> None:
    first = commit_at(ledger, URI, "run-1", 1)
    leave(ledger, first, moved(first, end), "run-2")
    assert list(ledger.sources.aliases(SOURCE)) == []
    assert [v.action for v in ledger.versions.of(first.document_id)] == ["remove", "add"]


def test_every_kind_of_row_keeps_its_bytes_in_use(ledger: Ledger) -> None:
    commit(ledger, at(1, raw_hash="was"), "run-1")
    failed = replace(FAILURE, raw_hash="tried")
    record = at(2, raw_hash="live", fetched_raw_hash="fetched", failure=failed)
    commit(ledger, replace(record, status=DocumentStatus.QUARANTINED), "run-2")
    other = Alias(SOURCE, OTHER, record.document_id, AliasKind.DUPLICATE, NOON, raw_hash="alias")
    unknown = replace(other, uri=f"{OTHER}/2", raw_hash=None)
    ledger.sources.save_aliases([other, unknown])
    buried, expired = document(f"{OTHER}/b"), document(f"{OTHER}/e")
    for gone, raw in ((buried, "buried"), (expired, "expired")):
        ledger.writes.remove(tombstone(gone, raw_hash=raw), event(gone))
    ledger.tombstones.expire([expired.document_id])
    never = quarantined(f"{OTHER}/q", fetched_raw_hash="", failure=failed)
    ledger.writes.update(never, event(never))
    used = {"was", "live", "fetched", "tried", "alias", "buried"}
    assert set(ledger.versions.raw_references()) == used
    assert ledger.versions.raw_in_use([*used, "expired", "other"]) == used
    ledger.versions.forget([record.document_id])
    assert ledger.versions.raw_in_use(["was"]) == set()


def test_bytes_are_in_use_when_they_were_fetched_and_are_not_indexed_yet(ledger: Ledger) -> None:
    commit(ledger, document(raw_hash="raw-1", fetched_raw_hash="raw-2"))
    assert ledger.versions.raw_in_use(["raw-1", "raw-2", "raw-3"]) == {"raw-1", "raw-2"}
    assert ledger.versions.raw_in_use([]) == set()
