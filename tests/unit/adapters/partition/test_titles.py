"""A document that gives itself no title is called by its file's name, whatever else has the same bytes."""

from dataclasses import dataclass, replace

from worlds import World

from tidemark.adapters.partition.titles import title_of_name
from tidemark.domain.documents import PartitionedDocument, RawDocument
from tidemark.ports.partition import Partitioner

BEFORE, AFTER = "https://example.org/spring-tides.md", "https://example.org/neap-tides.md"
TEXT = "The water rises twice a day, and falls as often; the keeper writes both times down."


@dataclass
class NamingPartitioner:
    """Titles what has no heading by its file's name, as the real one does."""

    inner: Partitioner

    @property
    def fingerprint(self) -> str:
        return self.inner.fingerprint

    def partition(self, raw: RawDocument) -> PartitionedDocument:
        found = self.inner.partition(raw)
        return found if found.title else replace(found, title=title_of_name(raw.uri))

    def with_boilerplate(self, boilerplate: frozenset[int]) -> Partitioner:
        return replace(self, inner=self.inner.with_boilerplate(boilerplate))


def titles(world: World) -> dict[str, str]:
    points = world.index.scan_points(1)
    return {str(p.payload["source_uri"]): str(p.payload["title"]) for p in points}


def named_world() -> World:
    world = World()
    world.partitioner.inner = NamingPartitioner(world.partitioner.inner)
    return world


def test_a_file_that_is_renamed_is_called_by_its_new_name() -> None:
    world = named_world()
    world.documents[BEFORE] = TEXT
    world.run()
    del world.documents[BEFORE]
    world.source.gone[BEFORE] = "404"
    world.documents[AFTER] = TEXT
    world.run()
    assert titles(world) == {AFTER: "neap tides"}


def test_two_files_of_the_same_bytes_are_each_called_by_their_own_name() -> None:
    world = named_world()
    world.documents[BEFORE] = world.documents[AFTER] = TEXT
    world.run()
    assert titles(world) == {BEFORE: "spring tides", AFTER: "neap tides"}
