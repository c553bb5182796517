"""The plan's decision table, row by row."""

from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.domain.chunks import Fingerprints
from tidemark.domain.decide import Action, Reason, Target, decide, decide_absent
from tidemark.domain.documents import Observation, Outcome, Validators
from tidemark.domain.identity import document_id
from tidemark.domain.records import DocumentRecord, DocumentStatus, Failure, Tombstone

NOW = datetime(2026, 11, 29, tzinfo=UTC)
URI = "https://example.org/a"
DOCUMENT = document_id("docs", URI)
PRINTS = Fingerprints("fetch", "partition", "chunk", "embed")
TARGET = Target(PRINTS, generation=1, gone_after=2)


def record(**changes: object) -> DocumentRecord:
    indexed = DocumentRecord(
        document_id=DOCUMENT, source="docs", uri=URI, title="A", media_type="text/html",
        charset="utf-8", status=DocumentStatus.INDEXED, validators=Validators(etag='"1"'),
        fetch_fingerprint="fetch", fetched_raw_hash="raw1", raw_hash="raw1", content_hash="content1",
        fingerprints=PRINTS, generation=1, sections=1, chunks=2, reason="new", first_seen=NOW,
        last_seen=NOW, fetched_at=NOW, indexed_at=NOW,
    )  # fmt: skip
    return replace(indexed, **changes)  # type: ignore[arg-type]


def failure(raw_hash: str = "raw1", fingerprint: str = PRINTS.up_to("partition")) -> Failure:
    return Failure("partition", "It is broken.", "Mend it.", raw_hash, fingerprint, NOW, NOW)


def fetched(raw_hash: str = "raw1") -> Observation:
    return Observation(URI, Outcome.FETCHED, raw_hash=raw_hash, fetched_at=NOW)


NOT_MODIFIED = Observation(URI, Outcome.NOT_MODIFIED)
GONE = Observation(URI, Outcome.GONE)
FAILED = Observation(URI, Outcome.FAILED, detail="503")
EXCLUDED = Observation(URI, Outcome.EXCLUDED)
TOMBSTONE = Tombstone(DOCUMENT, "docs", URI, "A", "raw1", NOW, "gone", "run")
QUARANTINED = {"status": DocumentStatus.QUARANTINED, "failure": failure()}
OTHER = {
    "partition": replace(PRINTS, partition="p2"),
    "chunk": replace(PRINTS, chunk="c2"),
    "embed": replace(PRINTS, embed="e2"),
}


@pytest.mark.parametrize(
    ("observed", "known", "tombstone", "target", "action", "reason"),
    [
        (fetched(), None, None, TARGET, Action.ADD, Reason.NEW),
        (fetched(), None, TOMBSTONE, TARGET, Action.RESTORE, Reason.RESTORED),
        (fetched(), record(raw_hash=None, fingerprints=None), None, TARGET, Action.ADD, Reason.NEW),
        (fetched(), record(**QUARANTINED), None, TARGET, Action.KEEP, Reason.QUARANTINED),
        (NOT_MODIFIED, record(**QUARANTINED), None, TARGET, Action.KEEP, Reason.QUARANTINED),
        (fetched("raw2"), record(**QUARANTINED), None, TARGET, Action.UPDATE, Reason.CONTENT),
        (fetched(), record(), None, replace(TARGET, force=True), Action.UPDATE, Reason.FORCED),
        (fetched("raw2"), record(), None, TARGET, Action.UPDATE, Reason.CONTENT),
        (fetched(), record(fingerprints=OTHER["partition"]), None, TARGET, Action.UPDATE, Reason.PARSER),
        (NOT_MODIFIED, record(fingerprints=OTHER["chunk"]), None, TARGET, Action.UPDATE, Reason.CONFIG),
        (NOT_MODIFIED, record(fingerprints=OTHER["embed"]), None, TARGET, Action.UPDATE, Reason.MODEL),
        (NOT_MODIFIED, record(generation=7), None, TARGET, Action.UPDATE, Reason.REPAIR),
        (NOT_MODIFIED, record(fetched_raw_hash="raw2"), None, TARGET, Action.UPDATE, Reason.CONTENT),
        (NOT_MODIFIED, record(), None, TARGET, Action.KEEP, Reason.UNCHANGED),
        (fetched(), record(), None, TARGET, Action.KEEP, Reason.UNCHANGED),
        (GONE, record(), None, TARGET, Action.REMOVE, Reason.GONE),
        (GONE, None, None, TARGET, Action.SKIP, Reason.GONE),
        (EXCLUDED, record(), None, TARGET, Action.REMOVE, Reason.EXCLUDED),
        (EXCLUDED, None, None, TARGET, Action.SKIP, Reason.EXCLUDED),
        (FAILED, record(), None, TARGET, Action.KEEP, Reason.UNREACHABLE),
        (FAILED, None, None, TARGET, Action.SKIP, Reason.UNREACHABLE),
    ],
)  # fmt: skip
def test_it_decides_as_the_table_says(
    observed: Observation,
    known: DocumentRecord | None,
    tombstone: Tombstone | None,
    target: Target,
    action: Action,
    reason: Reason,
) -> None:
    decision = decide(DOCUMENT, observed, known, tombstone, target)
    assert (decision.action, decision.reason) == (action, reason)


def test_it_tries_a_quarantined_document_again_when_a_stage_changed() -> None:
    known = record(status=DocumentStatus.QUARANTINED, failure=failure(fingerprint="older"))
    decision = decide(DOCUMENT, NOT_MODIFIED, known, None, TARGET)
    assert decision.is_work


def test_it_repairs_an_unchanged_document_whose_write_was_cut_short() -> None:
    decision = decide(DOCUMENT, NOT_MODIFIED, record(), None, TARGET, in_flight=True)
    assert (decision.action, decision.reason) == (Action.UPDATE, Reason.REPAIR)


def test_it_removes_the_remains_of_a_first_write_that_was_cut_short() -> None:
    decision = decide(DOCUMENT, GONE, None, None, TARGET, in_flight=True)
    assert decision.action is Action.REMOVE


def test_it_processes_the_bytes_of_the_last_fetch_when_the_source_says_not_modified() -> None:
    known = record(fetched_raw_hash="raw9", fingerprints=OTHER["chunk"])
    assert decide(DOCUMENT, NOT_MODIFIED, known, None, TARGET).raw_hash == "raw9"


@given(missing_runs=st.integers(0, 5), gone_after=st.integers(1, 5), authoritative=st.booleans())
def test_an_incomplete_listing_never_removes(
    missing_runs: int, gone_after: int, authoritative: bool
) -> None:
    target = replace(TARGET, gone_after=gone_after)
    decision = decide_absent(
        record(missing_runs=missing_runs),
        complete=False,
        authoritative=authoritative,
        target=target,
    )
    assert (decision.action, decision.reason) == (Action.KEEP, Reason.UNLISTED)


@pytest.mark.parametrize(
    ("missing_runs", "authoritative", "action"),
    [(0, False, Action.MISS), (1, False, Action.REMOVE), (0, True, Action.REMOVE)],
)
def test_an_absent_page_goes_after_enough_complete_crawls_and_an_absent_file_at_once(
    missing_runs: int, authoritative: bool, action: Action
) -> None:
    decision = decide_absent(
        record(missing_runs=missing_runs), complete=True, authoritative=authoritative, target=TARGET
    )
    assert decision.action is action


@given(
    outcome=st.sampled_from([Outcome.FAILED]),
    generation=st.integers(1, 3),
    quarantined=st.booleans(),
)
def test_an_outage_never_removes_and_only_moves_what_is_in_another_generation(
    outcome: Outcome, generation: int, quarantined: bool
) -> None:
    newer = {**QUARANTINED, "failure": replace(failure(), raw_hash="raw2")}
    known = record(generation=generation, **(newer if quarantined else {}))
    decision = decide(DOCUMENT, Observation(URI, outcome), known, None, TARGET)
    moved = generation != TARGET.generation
    assert decision.action is (Action.UPDATE if moved else Action.KEEP)
    assert decision.snapshot is moved


@pytest.mark.parametrize(("raw_hash", "stranded"), [("raw1", False), ("raw2", True)])
@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.NOT_MODIFIED, Outcome.FETCHED])
def test_what_no_run_can_bring_into_another_generation_is_not_tried_again(
    raw_hash: str, stranded: bool, outcome: Outcome
) -> None:
    """The live version itself fails; or a newer one does, and the snapshot of the live one is lost."""
    found = replace(failure(raw_hash), stranded=stranded)
    known = record(generation=2, fetched_raw_hash=raw_hash, **{**QUARANTINED, "failure": found})
    observed = replace(fetched(raw_hash), outcome=outcome)
    assert decide(DOCUMENT, observed, known, None, TARGET).action is Action.KEEP
    mended = fetched("raw3")
    assert decide(DOCUMENT, mended, known, None, TARGET).action is Action.UPDATE


def test_a_document_id_depends_on_source_and_uri_alone() -> None:
    assert document_id("docs", URI) == UUID(str(DOCUMENT))
    assert document_id("other", URI) != DOCUMENT
    assert document_id("docs", URI + "b") != DOCUMENT
