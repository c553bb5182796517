"""Quarantine: a document that fails by its own fault stops nothing else, and is tried again when it helps."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from worlds import SOURCE, CountingEmbedder, CountingPartitioner, World, page

from fakes.embedder import HashEmbedder
from fakes.index import MemoryIndex
from fakes.partitioner import MemoryPartitioner
from tidemark.domain.chunks import PointWrite
from tidemark.domain.errors import (
    ConfigurationError,
    PermanentError,
    RefusedError,
    TransientError,
)
from tidemark.domain.guards import Guards
from tidemark.domain.identity import document_id
from tidemark.domain.profile import Profile
from tidemark.domain.records import DocumentRecord, Failure
from tidemark.pipeline import retry

A, B, C = (f"https://example.org/{name}" for name in "abc")
BROKEN = b"\xff broken"


def failure(world: World, uri: str = A) -> Failure | None:
    record = world.ledger.documents.get(document_id(SOURCE, uri))
    return record.failure if record else None


def refuse_texts_with(world: World, word: str, error: type[Exception] = PermanentError) -> None:
    def before(texts: Sequence[str]) -> None:
        if any(word in text for text in texts):
            raise error("It is longer than the model reads.")

    world.embedder.before = before


class RefusingIndex(MemoryIndex):
    """Refuses points whose text has a word in it, some of a document's only after others were taken."""

    word = "REFUSED"

    def upsert_points(self, generation: int, points: Sequence[PointWrite]) -> None:
        for point in points:
            if self.word in str(point.payload["text"]):
                raise RefusedError("The payload is too large.", "Make sections smaller.")
            super().upsert_points(generation, [point])


def filled(world: World) -> World:
    world.documents[A] = page("A", "Alpha stands.", "Beta stands.")
    world.documents[B] = page("B", "Gamma stands.")
    world.documents[C] = page("C", "Delta stands.")
    return world


def test_a_text_that_the_model_refuses_quarantines_its_document_alone() -> None:
    world = filled(World())
    world.documents[A] = page("A", "Alpha ENDLESS.")
    refuse_texts_with(world, "ENDLESS")
    summary = world.run()
    assert summary.status == "success"
    assert summary.documents == {"add": 2, "quarantine": 1}
    found = failure(world)
    assert found is not None
    assert (found.stage, found.attempts) == ("embed", 1)
    assert "smaller chunks" in found.hint
    assert world.texts() == ["Gamma stands.", "Delta stands."]
    assert world.audit().clean


def test_its_last_good_version_stays_live() -> None:
    world = filled(World())
    world.run()
    world.documents[A] = page("A", "Alpha ENDLESS.")
    refuse_texts_with(world, "ENDLESS")
    world.run()
    assert "Alpha stands." in world.texts()
    assert world.audit().clean


def test_a_model_that_refuses_everything_is_not_the_documents_fault() -> None:
    world = filled(World())
    refuse_texts_with(world, "")
    summary = world.run()
    assert summary.status == "failed"
    assert "quarantine" not in summary.documents


def test_all_that_is_to_be_embedded_may_be_at_fault_itself() -> None:
    """Two documents that are refused, while nothing else is new, must not stop the source for ever."""
    world = filled(World())
    world.run()
    world.documents[A] = page("A", "Alpha ENDLESS.")
    world.documents[B] = page("B", "Gamma ENDLESS.")
    refuse_texts_with(world, "ENDLESS")
    summary = world.run(guards=Guards(quarantined_percent=100))
    assert summary.status == "success"
    assert summary.documents == {"keep": 1, "quarantine": 2}
    assert world.texts() == ["Alpha stands.", "Beta stands.", "Gamma stands.", "Delta stands."]


def test_a_wrong_configuration_is_never_a_documents_fault() -> None:
    world = filled(World())
    world.documents[A] = page("A", "Alpha ENDLESS.")
    refuse_texts_with(world, "ENDLESS", ConfigurationError)
    assert world.run().status == "failed"
    assert failure(world) is None


@pytest.mark.parametrize("indexed_before", [True, False])
def test_what_the_index_refuses_is_quarantined_and_leaves_no_half_document(
    indexed_before: bool,
) -> None:
    world = filled(World(index=RefusingIndex("tidemark")))
    if indexed_before:
        world.run()
    world.documents[A] = page("A", "Omega stands.", "It is REFUSED.")
    summary = world.run()
    assert summary.status == "success"
    assert summary.documents["quarantine"] == 1
    found = failure(world)
    assert found is not None
    assert (found.stage, found.hint) == ("index", "Make sections smaller.")
    before = ["Alpha stands.", "Beta stands."] if indexed_before else []
    assert world.texts() == [*before, "Gamma stands.", "Delta stands."]
    assert world.audit().clean
    assert world.ledger.writes.pending(SOURCE) == {}


def test_a_defect_in_chunking_stops_one_document(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidemark.stages.process import prepare

    whole = prepare.chunk_document

    def broken(document: object, partitioned: object, *more: object) -> object:
        if "Alpha" in str(partitioned):
            raise ZeroDivisionError("a defect")
        return whole(document, partitioned, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(prepare, "chunk_document", broken)
    world = filled(World())
    assert world.run().documents == {"add": 2, "quarantine": 1}
    found = failure(world)
    assert found is not None
    assert (found.stage, "ZeroDivisionError" in found.message) == ("chunk", True)


class TestWhenItIsTriedAgain:
    @staticmethod
    def broken() -> World:
        world = filled(World())
        world.documents[A] = BROKEN
        world.run()
        assert world.partitioner.calls[A] == 1
        return world

    def test_not_while_nothing_changes(self) -> None:
        world = self.broken()
        summary = world.run()
        assert world.partitioner.calls[A] == 0
        assert summary.status == "success"
        assert summary.quarantined == 1
        assert "1 in quarantine" in summary.sentence()

    def test_when_its_bytes_change(self) -> None:
        world = self.broken()
        first = failure(world)
        world.documents[A] = BROKEN + b" still"
        world.run()
        second = failure(world)
        assert first is not None
        assert second is not None
        assert (second.attempts, second.first_at) == (2, first.first_at)
        assert second.last_at > first.last_at
        world.documents[A] = page("A", "It is mended.")
        world.run()
        assert failure(world) is None
        assert "It is mended." in world.texts()

    def test_when_the_parser_changes(self) -> None:
        world = self.broken()
        world.partitioner = CountingPartitioner(MemoryPartitioner(version=2))
        world.run()
        assert world.partitioner.calls[A] == 1

    def test_not_when_a_later_stage_changes(self) -> None:
        """What could not be parsed is not parsed again because it would be cut, or embedded, otherwise."""
        world = self.broken()
        world.profile = Profile(target_tokens=12, max_tokens=16, min_tokens=0)
        world.run()
        assert world.partitioner.calls[A] == 0

    def test_on_demand(self) -> None:
        world = self.broken()
        world.source.fetched.clear()
        world.partitioner.calls.clear()
        quarantined = list(world.ledger.documents.stream(SOURCE, quarantined=True))
        retry(replace(world.job(), approved=True), world.deps(), quarantined)
        assert world.partitioner.calls == {A: 1}
        assert not world.source.fetched, "from the stored bytes"
        found = failure(world)
        assert found is not None
        assert found.attempts == 2
        assert world.audit().clean

    def test_on_demand_it_leaves_quarantine_where_the_fault_was_the_worlds(self) -> None:
        world = filled(World())
        world.documents[A] = page("A", "Alpha ENDLESS.")
        refuse_texts_with(world, "ENDLESS")
        world.run()
        world.embedder.before = None
        assert world.run().documents == {"keep": 3}
        retry(
            world.job(), world.deps(), list(world.ledger.documents.stream(SOURCE, quarantined=True))
        )
        assert failure(world) is None
        assert "Alpha ENDLESS." in world.texts()
        assert world.audit().clean


class TestTooLarge:
    def test_it_is_quarantined_with_its_last_good_version_live(self) -> None:
        world = filled(World())
        world.run()
        world.source.too_large[A] = "has 99 bytes, more than the 50 that are fetched"
        summary = world.run()
        assert summary.documents == {"keep": 2, "quarantine": 1}
        found = failure(world)
        assert found is not None
        assert found.stage == "size"
        assert "TIDEMARK_MAX_DOCUMENT_MEGABYTES" in found.hint
        assert "Alpha stands." in world.texts()
        assert world.audit().clean

    def test_it_is_noted_once_while_its_size_stays(self) -> None:
        world = filled(World())
        world.source.too_large[A] = "has 99 bytes, more than the 50 that are fetched"
        world.run()
        summary = world.run()
        assert summary.documents == {"keep": 3}
        assert summary.reasons == {"unchanged": 2, "quarantined": 1}
        world.source.too_large[A] = "has 98 bytes, more than the 50 that are fetched"
        assert world.run().documents["quarantine"] == 1

    @pytest.mark.parametrize("same", [True, False])
    def test_small_again_it_is_well(self, same: bool) -> None:
        world = filled(World())
        world.run()
        world.source.too_large[A] = "has 99 bytes, more than the 50 that are fetched"
        world.run()
        world.source.too_large.clear()
        if not same:
            world.documents[A] = page("A", "Omega stands.")
        world.run()
        assert failure(world) is None
        assert ("Alpha stands." in world.texts()) is same
        assert world.audit().clean
        assert world.run().documents == {"keep": 3}

    def test_it_stays_while_it_is_there_and_goes_when_it_is_gone(self) -> None:
        world = filled(World())
        world.run()
        world.source.too_large[A] = "has 99 bytes, more than the 50 that are fetched"
        for _ in range(4):
            world.run()
        assert "Alpha stands." in world.texts()
        world.source.too_large.clear()
        world.source.gone[A] = "404"
        world.run()
        assert "Alpha stands." not in world.texts()


class TestThreshold:
    @staticmethod
    def with_broken(count: int, **guards: object) -> tuple[World, Guards]:
        world = World()
        for number in range(10):
            body: str | bytes = page(str(number), f"Text {number} stands.")
            world.documents[f"https://example.org/{number}"] = BROKEN if number < count else body
        return world, replace(Guards(), **guards)  # type: ignore[arg-type]

    def test_few_leave_the_run_green_with_a_warning(self) -> None:
        world, guards = self.with_broken(2)
        summary = world.run(guards=guards)
        assert (summary.status, summary.quarantined) == ("success", 2)
        assert "Warning: 2 in quarantine" in summary.sentence()

    def test_too_many_make_it_red_and_all_the_rest_is_done(self) -> None:
        world, guards = self.with_broken(6)
        summary = world.run(guards=guards)
        assert summary.status == "failed"
        assert "6 of 10 documents (60 %) are in quarantine, more than 20 %." in summary.sentence()
        assert len(world.texts()) == 4

    def test_the_limit_is_the_sources_to_set(self) -> None:
        world, guards = self.with_broken(6, quarantined_percent=80.0)
        assert world.run(guards=guards).status == "success"
        world, guards = self.with_broken(2, quarantined_documents=1)
        assert world.run(guards=guards).status == "failed"


def test_an_outage_fails_its_batch_and_not_the_others() -> None:
    world = filled(World())
    calls = 0

    def before(texts: Sequence[str]) -> None:
        nonlocal calls
        calls += any("Alpha" in text for text in texts)
        if any("Alpha" in text for text in texts):
            raise TransientError("The model server is away.", "Start it.")

    world.embedder.before = before
    summary = world.run(batch_documents=1)
    assert summary.status == "failed"
    assert "1 of 3 batches failed; the next run goes on there." in summary.problem
    assert world.texts() == ["Gamma stands.", "Delta stands."]
    assert calls == 2, "once more, and then it is left"
    assert failure(world) is None
    world.embedder.before = None
    assert world.run().documents == {"add": 1, "keep": 2}
    assert world.audit().clean


def test_the_embedder_of_another_size_is_a_fault_of_no_document() -> None:
    world = filled(World())
    world.run()

    def record(uri: str) -> DocumentRecord:
        found = world.ledger.documents.get(document_id(SOURCE, uri))
        assert found is not None
        return found

    world.embedder.inner = HashEmbedder(dimension=32)
    world.documents[A] = page("A", "Omega stands.")
    summary = world.run()
    assert summary.status == "success"
    assert {record(uri).generation for uri in (A, B, C)} == {2}, "another model, another generation"


def test_an_index_that_refuses_everything_is_not_the_documents_fault() -> None:
    index = RefusingIndex("tidemark")
    index.word = ""
    world = filled(World(index=index))
    summary = world.run()
    assert summary.status == "failed"
    assert "refused all of 3 documents" in summary.problem
    assert failure(world) is None
    index.word = "REFUSED"
    assert world.run().documents == {"add": 3}
    assert world.audit().clean


def test_all_that_is_to_be_written_may_be_at_fault_itself() -> None:
    """The source goes on, and nothing is left of the trial."""
    world = filled(World(index=RefusingIndex("tidemark")))
    world.run()
    world.documents[A] = page("A", "Alpha REFUSED.")
    world.documents[B] = page("B", "Gamma REFUSED.")
    del world.documents[C]
    summary = world.run(guards=Guards(quarantined_percent=100), gone_after=1)
    assert summary.status == "success"
    assert summary.documents == {"quarantine": 2, "remove": 1}
    assert world.texts() == ["Alpha stands.", "Beta stands.", "Gamma stands."]
    assert world.audit().clean


def test_a_broken_file_that_is_renamed_keeps_its_last_good_version_live() -> None:
    world = filled(World())
    world.source.authoritative = True
    world.run()
    world.documents[A] = BROKEN
    world.run()
    renamed = "https://example.org/renamed"
    world.documents[renamed] = world.documents.pop(A)
    world.run()
    assert "Alpha stands." in world.texts()
    world.documents[renamed] = page("A", "It is mended.")
    world.run()
    world.run()
    assert world.texts() == ["Gamma stands.", "Delta stands.", "It is mended."]
    assert world.audit().clean


def test_a_retry_is_not_judged_by_what_else_is_in_quarantine() -> None:
    world, guards = TestThreshold.with_broken(6)
    world.run(guards=guards)
    one = next(iter(world.ledger.documents.stream(SOURCE, quarantined=True)))
    assert retry(world.job(guards=guards), world.deps(), [one]).status == "success"


def test_a_file_that_stays_too_large_counts_its_attempts() -> None:
    world = filled(World())
    for size in (99, 98, 97):
        world.source.too_large[A] = f"has {size} bytes, more than the 50 that are fetched"
        world.run()
    found = failure(world)
    assert found is not None
    assert found.attempts == 3


# While a new generation is being built


def lose(world: World, uri: str = A) -> dict[str, bytes]:
    """The snapshot of a document's live version, and what was made of it; gives what was lost."""
    record = world.ledger.documents.get(document_id(SOURCE, uri))
    assert record is not None
    lost = {
        k: world.artifacts.read(k) for k in world.artifacts.keys("") if str(record.raw_hash) in k
    }
    for key in lost:
        world.artifacts.delete(key)
    return lost


def tried(world: World) -> tuple[list[str], dict[str, int]]:
    """What a run tried, and what it did to the documents."""
    summary = world.run()
    assert summary.status == "success"
    return list(world.partitioner.calls), summary.documents


@pytest.mark.parametrize("how", ["broken", "too large"])
def test_a_sick_page_whose_last_good_snapshot_is_lost_is_not_tried_in_vain(how: str) -> None:
    world = filled(World())
    world.run()
    if how == "broken":
        world.documents[A] = BROKEN
    else:
        world.source.too_large[A] = "has 200 MB"
    world.run()
    before = failure(world)
    lost = lose(world)
    world.embedder.inner = HashEmbedder(24)
    assert tried(world)[1] == {"quarantine": 1, "update": 2}
    found = failure(world)
    for _ in range(2):
        assert tried(world) == ([], {"keep": 3})
        assert failure(world) == found
    assert found is not None
    assert before is not None
    assert (found.stage, found.message) == (before.stage, before.message)
    assert "`tidemark retry`" in found.hint
    assert world.index.live() == 1
    # Mended, or with its snapshot put back, it goes into the new generation, which then is whole.
    if how == "broken":
        for key, content in lost.items():
            world.artifacts.write(key, content)
        retry(
            world.job(), world.deps(), list(world.ledger.documents.stream(SOURCE, quarantined=True))
        )
        assert failure(world) is not None
    else:
        world.source.too_large.clear()
        world.documents[A] = page("A", "Mended.")
        world.run()
        assert failure(world) is None
    assert world.index.generations() == [2]
    assert world.audit().clean


def test_a_live_page_that_the_new_model_refuses_is_tried_once_and_stays_live() -> None:
    world = filled(World())
    world.run()
    world.embedder = CountingEmbedder(HashEmbedder(24))
    refuse_texts_with(world, "Alpha")
    assert tried(world)[1] == {"quarantine": 1, "update": 2}
    found = failure(world)
    assert tried(world) == ([], {"keep": 3})
    assert world.embedder.texts == []
    assert failure(world) == found
    assert world.index.live() == 1
    world.documents[A] = page("A", "Shorter.")
    world.run()
    assert world.index.generations() == [2]
