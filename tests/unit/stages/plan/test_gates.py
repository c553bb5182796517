"""The four gates: each lets through only what changed. Counted at the ports."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from worlds import CountingEmbedder, World, page

from fakes.embedder import HashEmbedder
from fakes.partitioner import MemoryPartitioner
from tidemark.domain.decide import Action, Reason
from tidemark.domain.profile import Profile

A, B = "https://example.org/a", "https://example.org/b"


def filled(world: World) -> World:
    world.documents[A] = page(
        "Tides", "The tide rises twice a day.", "Springs follow the new moon."
    )
    world.documents[B] = page("Gauges", "A radar gauge hangs above the water.")
    return world


@pytest.fixture
def world() -> World:
    return filled(World())


def test_the_first_run_adds_everything(world: World) -> None:
    summary = world.run()
    assert summary.status == "success"
    assert summary.documents == {"add": 2}
    assert summary.reasons == {"new": 2}
    assert summary.work == {"fetch": 2, "partition": 2, "chunk": 2, "embed": 3}
    assert summary.chunks.embedded == len(world.texts()) == 3
    assert world.audit().clean


def test_the_second_run_fetches_partitions_chunks_and_embeds_nothing(world: World) -> None:
    world.run()
    summary = world.run()
    assert summary.documents == {"keep": 2}
    assert summary.reasons == {"unchanged": 2}
    assert summary.work == {"fetch": 0, "partition": 0, "chunk": 0, "embed": 0}
    assert not summary.changed
    assert "nothing changed (2 documents checked" in summary.sentence()


def test_without_validators_bytes_are_fetched_and_stop_at_the_second_gate(world: World) -> None:
    world.source.with_etags = False
    world.run()
    summary = world.run()
    assert summary.work == {"fetch": 2, "partition": 0, "chunk": 0, "embed": 0}


def test_a_changed_footer_is_partitioned_and_not_chunked(world: World) -> None:
    """White space stands in for boilerplate here: the elements come out the same."""
    world.run()
    world.documents[A] = str(world.documents[A]) + "\n\n\n\n"
    summary = world.run()
    assert summary.work == {"fetch": 1, "partition": 1, "chunk": 0, "embed": 0}
    assert summary.reasons == {"furniture": 1, "unchanged": 1}
    assert world.run().work["fetch"] == 0


def test_one_edited_paragraph_embeds_exactly_its_chunk(world: World) -> None:
    world.run()
    before = world.texts()
    world.documents[A] = str(world.documents[A]).replace("new moon", "full moon")
    summary = world.run()
    assert [t.splitlines()[-1] for t in world.embedder.texts] == ["Springs follow the full moon."]
    assert (summary.chunks.embedded, summary.chunks.kept, summary.chunks.removed) == (1, 1, 1)
    assert summary.reasons == {"content": 1, "unchanged": 1}
    assert world.texts() == [t.replace("new moon", "full moon") for t in before]
    assert world.audit().clean


def test_a_changed_chunk_size_re_chunks_everything_and_fetches_and_partitions_nothing(
    world: World,
) -> None:
    world.run()
    world.profile = Profile(target_tokens=12, max_tokens=16, min_tokens=0)
    summary = world.run()
    assert summary.work["fetch"] == summary.work["partition"] == 0
    assert summary.work["chunk"] == 2
    assert summary.reasons == {"config": 2}
    assert world.audit().clean


def test_re_chunking_to_equal_texts_embeds_nothing(world: World) -> None:
    world.run()
    world.profile = replace(world.profile, max_tokens=world.profile.max_tokens + 1)
    summary = world.run()
    assert summary.work["chunk"] == 2
    assert summary.chunks.embedded == 0


def test_a_new_parser_with_equal_elements_re_chunks_nothing(world: World) -> None:
    world.run()
    world.partitioner.inner = MemoryPartitioner(version=2)
    summary = world.run()
    assert summary.work == {"fetch": 0, "partition": 2, "chunk": 0, "embed": 0}
    assert summary.reasons == {"parser": 2}


def test_a_moved_paragraph_keeps_its_vector_and_gets_its_new_place(world: World) -> None:
    world.run()
    first, second = "The tide rises twice a day.", "Springs follow the new moon."
    text = str(world.documents[A])
    world.documents[A] = text.replace(f"## Part 1\n\n{first}\n\n## Part 2\n\n{second}",
                                      f"## Part 2\n\n{second}\n\n## Part 1\n\n{first}")  # fmt: skip
    summary = world.run()
    assert summary.chunks.embedded == 0
    assert summary.documents == {Action.METADATA.value: 1, "keep": 1}
    assert world.audit().clean


def test_a_deleted_page_takes_its_points_sections_and_rows_with_it(world: World) -> None:
    world.run()
    del world.documents[A]
    world.source.gone[A] = "404"
    summary = world.run()
    assert summary.documents == {"remove": 1, "keep": 1}
    assert summary.chunks.removed == 2
    assert {str(p.payload["source_uri"]) for p in world.index.scan_points(1)} == {B}
    assert {str(s.payload["source_uri"]) for s in world.index.scan_sections(1)} == {B}
    assert [d.uri for d in world.ledger.documents.stream()] == [B]
    assert [t.reason for t in world.ledger.tombstones.by_uri(A)] == ["gone"]
    assert world.audit().clean


def test_a_page_that_comes_back_is_restored(world: World) -> None:
    world.run()
    text = world.documents.pop(A)
    world.source.gone[A] = "404"
    world.run()
    world.source.gone.clear()
    world.documents[A] = text
    summary = world.run()
    assert summary.documents == {"restore": 1, "keep": 1}
    assert summary.work["partition"] == 0, "its elements are still in the artifact store"
    assert world.audit().clean


def test_an_unlinked_page_is_missed_once_and_goes_the_second_time(world: World) -> None:
    world.run()
    del world.documents[A]
    assert world.run().documents == {"miss": 1, "keep": 1}
    assert len(world.texts()) == 3
    assert world.run().documents == {"remove": 1, "keep": 1}
    assert len(world.texts()) == 1


def test_a_page_seen_again_in_time_is_not_missed_any_more(world: World) -> None:
    world.run()
    text = world.documents.pop(A)
    world.run()
    world.documents[A] = text
    world.run()
    del world.documents[A]
    assert world.run().documents == {"miss": 1, "keep": 1}


def test_a_file_absent_from_a_complete_listing_goes_at_once(world: World) -> None:
    world.source.authoritative = True
    world.run()
    del world.documents[A]
    assert world.run().documents == {"remove": 1, "keep": 1}


def test_an_unreachable_site_deletes_nothing_and_says_why(world: World) -> None:
    world.run()
    world.source.away = "connection refused by example.org"
    summary = world.run()
    assert summary.status == "failed"
    assert "connection refused by example.org" in summary.problem
    assert "Nothing was deleted" in summary.problem
    assert len(world.texts()) == 3
    world.source.away = ""
    assert world.run().documents == {"keep": 2}


@pytest.mark.parametrize("trouble", ["failing", "incomplete"])
def test_a_partial_outage_deletes_nothing_and_says_why(world: World, trouble: str) -> None:
    world.run()
    if trouble == "failing":
        world.source.failing[A] = "503"
        world.source.incomplete = "1 page failed"
    else:
        del world.documents[A]
        world.source.incomplete = "the listing was cut off"
    summary = world.run()
    assert summary.documents == {"keep": 2}
    assert not summary.complete
    assert summary.problem
    assert len(world.texts()) == 3


def test_a_limited_run_deletes_nothing(world: World) -> None:
    world.run()
    assert world.run(limit=1).documents == {"keep": 2}


def test_a_forced_run_does_everything_again(world: World) -> None:
    world.run()
    summary = world.run(force=True)
    assert summary.work == {"fetch": 2, "partition": 2, "chunk": 2, "embed": 3}
    assert summary.reasons == {"forced": 2}
    assert world.audit().clean


def test_a_broken_document_is_quarantined_and_disturbs_no_other(world: World) -> None:
    world.documents[A] = b"\xff\xfe broken"
    summary = world.run()
    assert summary.documents == {"quarantine": 1, "add": 1}
    assert "is not UTF-8 text. Save it as UTF-8." in summary.attention[0]
    again = world.run()
    assert again.documents == {"keep": 2}
    assert again.reasons == {"quarantined": 1, "unchanged": 1}
    assert again.work["partition"] == 0, "the same bytes are not tried again"


def test_a_document_that_breaks_keeps_its_last_good_version(world: World) -> None:
    world.run()
    good = world.documents[A]
    world.documents[A] = b"\xff\xfe broken"
    world.run()
    assert len(world.texts()) == 3
    world.documents[A] = good
    summary = world.run()
    assert summary.status == "success"
    assert world.audit().clean
    [record] = [d for d in world.ledger.documents.stream() if d.uri == A]
    assert record.failure is None


def test_another_model_builds_a_generation_and_switches_when_it_is_whole(world: World) -> None:
    world.run()
    assert world.index.live() == 1
    world.embedder = CountingEmbedder(HashEmbedder(dimension=32))
    summary = world.run()
    assert summary.reasons == {Reason.MODEL.value: 2}
    assert summary.work["partition"] == 0
    assert world.index.live() == 2
    assert world.index.generations() == [2]
    assert world.audit().clean


def test_a_new_generation_waits_for_the_other_declared_sources(world: World) -> None:
    world.run()
    world.embedder = CountingEmbedder(HashEmbedder(dimension=32))
    world.run(declared=("docs", "share"))
    assert world.index.live() == 1
    assert world.index.generations() == [1, 2]


def test_a_lost_index_is_built_again_from_the_snapshots(world: World) -> None:
    world.run()
    world.lose_index()
    summary = world.run()
    assert summary.reasons == {Reason.REPAIR.value: 2}
    assert summary.work["fetch"] == summary.work["partition"] == 0
    assert len(world.texts()) == 3
    assert world.audit().clean


def test_a_lost_snapshot_is_fetched_again_by_the_next_run(world: World) -> None:
    world.run()
    for key in list(world.artifacts.keys()):
        world.artifacts.delete(key)
    world.profile = Profile(target_tokens=12, max_tokens=16, min_tokens=0)
    first = world.run()
    assert first.documents == {"quarantine": 2}
    assert len(world.texts()) == 3
    second = world.run()
    assert second.work["fetch"] == 2
    assert world.audit().clean
    assert world.run().documents == {"keep": 2}


def live_uris(world: World) -> set[str]:
    return {
        str(p.payload["source_uri"]).partition("#")[0]
        for p in world.index.scan_points(world.generation)
    }


def break_a_document(world: World) -> None:
    world.documents[A] = b"\xff\xfe broken"


def make_it_unreachable(world: World) -> None:
    del world.documents[A]
    world.source.failing[A] = "500"
    world.source.incomplete = "1 page failed"


def cut_the_listing(world: World) -> None:
    del world.documents[A]
    world.source.incomplete = "cut off"


def unlink_it(world: World) -> None:
    del world.documents[A]


@pytest.mark.parametrize(
    "trouble", [break_a_document, make_it_unreachable, cut_the_listing, unlink_it]
)
@pytest.mark.parametrize("loss", ["index", "model"])
def test_what_cannot_be_fetched_now_is_not_lost_with_its_generation(
    world: World, trouble: Callable[[World], None], loss: str
) -> None:
    world.run()
    trouble(world)
    if trouble is break_a_document:
        world.run()
    if loss == "index":
        world.lose_index()
    else:
        world.embedder = CountingEmbedder(HashEmbedder(dimension=32))
    summary = world.run()
    assert summary.status == "success"
    assert live_uris(world) == {A, B}
    assert world.index.live() == world.generation == 2
    assert world.audit().clean
    assert world.run().chunks.embedded == 0


def test_the_audit_sees_documents_whose_generation_is_gone(world: World) -> None:
    world.run()
    world.lose_index()
    world.source.away = "away"
    world.index.ensure(1, 64)
    world.index.switch(1)
    assert world.audit().counts["missing_points"] == 3


def test_changed_labels_reach_every_point_and_embed_nothing(world: World) -> None:
    world.run()
    summary = world.run(labels=("other",))
    assert summary.documents == {"metadata": 2}
    assert summary.chunks.embedded == 0
    assert {tuple(p.payload["labels"]) for p in world.index.scan_points(1)} == {("other",)}  # type: ignore[arg-type]


def test_a_lost_snapshot_of_a_document_that_must_be_parsed_again_heals_itself(world: World) -> None:
    world.run()
    for key in list(world.artifacts.keys("raw/")):
        world.artifacts.delete(key)
    world.partitioner.inner = MemoryPartitioner(version=2)
    assert world.run().documents == {"quarantine": 2}
    world.run()
    assert world.run().reasons == {"unchanged": 2}
    assert not [d for d in world.ledger.documents.stream() if d.failure]


def test_a_repair_does_not_forget_that_newer_bytes_are_broken(world: World) -> None:
    from tidemark.stages.audit.repair import rewrite
    from tidemark.stages.job import target

    world.run()
    break_a_document(world)
    world.run()
    [before] = [d for d in world.ledger.documents.stream() if d.uri == A]
    world.index.delete_points(
        1, [c.point_id for c in world.ledger.documents.chunks(before.document_id)]
    )
    job, deps = world.job(), world.deps()
    rewrite(job, deps, target(job, deps, 1), [before])
    [after] = [d for d in world.ledger.documents.stream() if d.uri == A]
    assert world.audit().clean
    assert (after.failure, after.fetched_raw_hash, after.validators, after.last_seen) == (
        before.failure, before.fetched_raw_hash, before.validators, before.last_seen
    )  # fmt: skip


def test_the_same_bytes_under_another_media_type_are_read_again(world: World) -> None:
    world.source.with_etags = False
    world.run()
    world.source.media_types[A] = "text/plain"
    summary = world.run()
    assert summary.work["partition"] == 1
    assert world.run().work["partition"] == 0


def test_what_a_later_run_removed_is_not_brought_back_by_an_older_one(world: World) -> None:
    from tidemark import pipeline

    world.run()
    world.documents[A] = page("Tides", "A newer text.")
    older, deps = world.job(), world.deps()
    pipeline.crawl(older, deps, "test")
    plan = pipeline.plan(older, deps)
    del world.documents[A]
    world.source.gone[A] = "404"
    world.run()
    for batch in plan.batches:
        pipeline.process(older, deps, plan.generation, batch)
    assert live_uris(world) == {B}
    assert world.audit().clean


def test_every_document_is_counted_once_in_the_summary(world: World) -> None:
    world.documents["https://example.org/c"] = b"\xff broken"
    for n in range(3):
        summary = world.run()
        assert sum(summary.documents.values()) == 3, n
        assert sum(summary.reasons.values()) == 3, n


def test_an_unchanged_run_tells_of_what_is_not_well(world: World) -> None:
    break_a_document(world)
    world.run()
    assert "2 documents checked, of which 1 quarantined" in world.run().sentence()
