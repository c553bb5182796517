"""What every Ledger must remember of what was, and forget when it is told to."""

from dataclasses import replace
from datetime import datetime

import pytest
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
)

from tidemark.domain.chunks import Fingerprints
from tidemark.domain.records import (
    TAKEN_DOWN,
    Alias,
    AliasKind,
    AuditRecord,
    DocumentRecord,
    DocumentStatus,
    RunStatus,
    SourceState,
    VersionRecord,
)
from tidemark.ports import Ledger

OTHER = "https://example.org/other"


def commit(
    ledger: Ledger, record: DocumentRecord, run_id: str = "run-1", **changes: object
) -> DocumentRecord:
    sections = sections_of(record)
    done = event(record, run_id, **changes)
    ledger.writes.commit(record, sections, chunks_of(record, sections), done)
    return record


def at(minutes: float, **changes: object) -> DocumentRecord:
    """The document as it was written at a minute."""
    return document(**{"indexed_at": later(minutes), "last_seen": later(minutes), **changes})


def raw_hashes(ledger: Ledger, record: DocumentRecord) -> list[str]:
    return [version.raw_hash for version in ledger.versions.of(record.document_id)]


# Versions


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


# What snapshots are referred to


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


# Tombstones


def test_what_was_taken_down_is_kept_out_and_never_restored(ledger: Ledger) -> None:
    record, gone = document(raw_hash="raw-1"), document(OTHER, raw_hash="raw-1")
    stone = tombstone(record, reason=TAKEN_DOWN)
    ledger.writes.remove(stone, event(record))
    ledger.writes.remove(tombstone(gone), event(gone))
    assert ledger.tombstones.blocking(SOURCE) == [stone]
    assert ledger.tombstones.blocking("other") == []
    assert ledger.tombstones.by_raw(SOURCE, ["raw-1"]) == [tombstone(gone)]
    ledger.tombstones.unblock(record.document_id)
    ledger.tombstones.unblock(record.document_id)
    assert ledger.tombstones.blocking(SOURCE) == []
    assert ledger.tombstones.by_uri(URI) == []


def test_titles_are_forgotten_by_the_bytes_that_had_them(ledger: Ledger) -> None:
    raws = {"x": "raw-1", "y": "raw-1", "z": "raw-2"}
    for name, raw in raws.items():
        record = document(f"https://example.org/{name}", raw_hash=raw)
        ledger.writes.remove(tombstone(record, expired=name == "y"), event(record))
    alike = document(source="other", raw_hash="raw-1")
    ledger.writes.remove(tombstone(alike), event(alike))
    ledger.tombstones.clear_titles(SOURCE, ["raw-1", "raw-3"])
    ledger.tombstones.clear_titles(SOURCE, [])
    stones = [s for n in raws for s in ledger.tombstones.by_uri(f"https://example.org/{n}")]
    assert [s.title for s in stones] == ["", "", "A title"]
    assert [s.title for s in ledger.tombstones.by_uri(URI)] == ["A title"]


def test_expired_tombstones_are_dropped_with_their_events_except_those_that_keep_out(
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
    stones = ledger.tombstones.by_id([record.document_id for record in made.values()])
    assert len(stones) == 3
    assert made["old"].document_id not in stones


# Quarantine


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


def test_a_released_document_is_tried_again_whatever_it_failed_under(ledger: Ledger) -> None:
    bad, good = quarantined(), document(OTHER)
    ledger.writes.update(bad, event(bad))
    commit(ledger, good)
    ledger.writes.requeue([bad.document_id, good.document_id])
    ledger.writes.requeue([])
    released = replace(bad, failure=replace(FAILURE, fingerprint=""))
    assert ledger.documents.get(bad.document_id) == released
    assert ledger.documents.get(good.document_id) == good


# What is being written, and under which mark


def test_it_tells_which_documents_were_begun(ledger: Ledger) -> None:
    records = [document(f"https://example.org/{n}") for n in range(3)]
    ledger.writes.open_intent("run-1", SOURCE, {r.document_id: r.uri for r in records[:2]})
    commit(ledger, records[0])
    open_one = {records[1].document_id: records[1].uri}
    assert ledger.writes.pending(among=[r.document_id for r in records]) == open_one
    assert ledger.writes.pending(SOURCE) == ledger.writes.pending() == open_one
    assert ledger.writes.pending("nobody") == {}
    assert ledger.writes.pending(among=[records[2].document_id]) == {}
    assert ledger.writes.pending(among=[]) == {}


def test_the_tide_mark_of_a_source_stays_when_its_state_is_saved(ledger: Ledger) -> None:
    assert ledger.sources.epoch(SOURCE) == ""
    ledger.sources.write_epoch(SOURCE, "mark-1")
    ledger.sources.save_state(SourceState(SOURCE, "commit-1"))
    assert ledger.sources.epoch(SOURCE) == "mark-1"
    ledger.sources.write_epoch(SOURCE, "mark-2")
    assert ledger.sources.epoch(SOURCE) == "mark-2"
    assert ledger.sources.state(SOURCE) == SourceState(SOURCE, "commit-1")
    assert ledger.sources.epoch("other") == ""
    assert ledger.sources.names() == []


def test_hashes_and_checksums_of_what_was_written_are_kept(ledger: Ledger) -> None:
    record = document(checksum="c" * 32)
    sections = sections_of(record)
    first, *rest = chunks_of(record, sections)
    chunks = [replace(first, vector_hash="0123456789abcdef"), *rest]
    ledger.writes.commit(record, sections, chunks, event(record))
    assert ledger.documents.chunks(record.document_id) == chunks
    assert ledger.documents.get(record.document_id) == record


def test_vectors_are_adopted_where_they_are_not_known(ledger: Ledger) -> None:
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


# Runs


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


# Audits


def audit(source: str | None, when: datetime, missing: int = 0) -> AuditRecord:
    left = {"missing_points": missing} if missing else None
    return AuditRecord(source, when, {"missing_points": missing, "checked": 9}, missing, left)


def test_audits_come_latest_first_and_those_of_all_sources_are_of_each(ledger: Ledger) -> None:
    made = [
        audit("a", later(1)),
        audit(None, later(2), 3),
        audit("b", later(3)),
        audit("a", later(3)),
    ]
    for record in made:
        ledger.generations.save_audit(record)
    assert ledger.generations.audits() == made[::-1]
    assert ledger.generations.audits(limit=2) == made[:1:-1]
    assert ledger.generations.audits("a") == [made[3], made[1], made[0]]
    assert ledger.generations.audits("a", limit=2) == [made[3], made[1]]
    assert ledger.generations.audits("nobody") == [made[1]]


def test_old_audits_are_dropped_and_the_latest_of_each_source_stays(ledger: Ledger) -> None:
    for minute in range(5):
        ledger.generations.save_audit(audit("a", later(minute)))
    ledger.generations.save_audit(audit(None, later(0)))
    ledger.generations.save_audit(audit(None, later(1)))
    ledger.generations.save_audit(audit("b", later(0)))
    assert ledger.generations.drop_audits(later(2)) == 3
    left = [(a.source, a.audited_at) for a in ledger.generations.audits()]
    assert sorted(left, key=str) == sorted(
        [("a", later(m)) for m in (2, 3, 4)] + [(None, later(1)), ("b", later(0))], key=str
    )
    assert ledger.generations.drop_audits(later(999)) == 2
    assert ledger.generations.drop_audits(later(999)) == 0
    assert len(ledger.generations.audits()) == 3


def test_a_tombstone_remembers_the_hashes_that_it_keeps_out(ledger: Ledger) -> None:
    record = commit(ledger, at(1))
    key = record.document_id
    grave = tombstone(
        record, reason=TAKEN_DOWN, blocked_raws=("raw-1", "raw-2"), blocked_texts=("text-1",)
    )
    ledger.writes.remove(grave, event(record))
    assert ledger.tombstones.blocking(record.source) == [grave]
    assert ledger.tombstones.by_id([key]) == {key: grave}
    plain = replace(grave, blocked_raws=(), blocked_texts=())
    ledger.writes.remove(plain, event(record))
    assert ledger.tombstones.by_uri(record.uri) == [plain]


def test_what_was_taken_down_everywhere_is_kept_out_of_every_source(ledger: Ledger) -> None:
    here, there = document(), document(OTHER, "other")
    stones = [
        tombstone(here, reason=TAKEN_DOWN, all_sources=True),
        tombstone(there, source="other", reason=TAKEN_DOWN),
    ]
    for record, stone in zip((here, there), stones, strict=True):
        ledger.writes.remove(stone, event(record))
    assert ledger.tombstones.blocking(SOURCE) == stones[:1]
    assert sorted(ledger.tombstones.blocking("other"), key=lambda s: s.uri) == sorted(
        stones, key=lambda s: s.uri
    )
    assert ledger.tombstones.blocking("unknown") == stones[:1]


# What moved


MOVED_TO = "https://example.org/new"


def commit_at(ledger: Ledger, uri: str, run_id: str, minute: float) -> DocumentRecord:
    record = document(uri, indexed_at=later(minute), last_seen=later(minute))
    return commit(ledger, record, run_id, action="add")


def moved(record: DocumentRecord, end: str, kind: AliasKind = AliasKind.MOVED) -> Alias:
    return Alias(SOURCE, record.uri, document(end).document_id, kind, NOON)


def leave(ledger: Ledger, record: DocumentRecord, alias: Alias | None, run_id: str) -> None:
    stone = tombstone(record, run_id, reason="moved", removed_at=later(30))
    ledger.writes.remove(stone, event(record, run_id, action="remove"), alias)


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
