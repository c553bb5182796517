"""Takedowns of a world's documents, and what is left of them."""

from collections.abc import Callable, Iterator

from kills import Fuse, Killing, killed
from worlds import SOURCE, World

from tidemark import pipeline
from tidemark.domain.identity import document_id
from tidemark.ports.embedding import VectorCache
from tidemark.stages.job import Stores
from tidemark.stages.takedown.requests import DocumentRef, find
from tidemark.stages.takedown.takedown import TakedownResult, take_down


def stores_of(world: World, fuse: Fuse | None = None, cache: VectorCache | None = None) -> Stores:
    """A world's stores, which die when a fuse burns."""
    ports = [Killing(p, fuse or Fuse()) for p in (world.ledger, world.artifacts, world.index)]
    kept = Killing(cache, fuse or Fuse()) if cache is not None else None
    return Stores(*ports, lambda: world.now, kept)  # type: ignore[arg-type]


def meant(world: World, uri: str) -> DocumentRef:
    [ref] = find(stores_of(world), [uri], [SOURCE], SOURCE)
    return ref


def taken_down(
    world: World, uri: str, *, all_sources: bool = False, cache: VectorCache | None = None
) -> TakedownResult:
    return take_down(stores_of(world, cache=cache), meant(world, uri), all_sources=all_sources)


def killed_takedown(world: World, uri: str, at: int | None) -> int:
    """A takedown that dies before one of its writes; how many it came to."""
    ref = meant(world, uri)
    return killed(lambda fuse: take_down(stores_of(world, fuse), ref), at)


def run_until(world: World, stage: str, then: Callable[[], object]) -> None:
    """A run in which something happens after one of its stages: crawled, planned or processed."""
    job, deps = world.job(), world.deps()
    pipeline.crawl(job, deps, "test")
    if stage == "crawled":
        then()
    plan = pipeline.plan(job, deps)
    if stage == "planned":
        then()
    for key in plan.batches:
        pipeline.process(job, deps, plan.generation, key)
    if stage == "processed":
        then()
    pipeline.sweep(job, deps, plan.generation)


def live_uris(world: World) -> set[str]:
    points = world.index.scan_points(world.generation)
    return {str(p.payload["source_uri"]).partition("#")[0] for p in points}


def holders(world: World, text: str) -> Iterator[str]:
    """Where in any store a text still is."""
    for generation in world.index.generations():
        for scan in (world.index.scan_points, world.index.scan_sections):
            yield from (str(p.point_id) for p in scan(generation) if text in repr(p.payload))
    for key in world.artifacts.keys(""):
        if text.encode() in world.artifacts.read(key):
            yield key
    if text in repr(list(world.ledger.documents.stream())):
        yield "the ledger"


def reasons(world: World, uri: str) -> tuple[str, str, str]:
    """What the last run did to a document: action, reason, detail."""
    event = world.ledger.runs.events_of(document_id(SOURCE, uri), limit=1)[0]
    return event.action, event.reason, event.detail
