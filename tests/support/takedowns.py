"""Takedowns of a world's documents, and what is left of them."""

from collections.abc import Iterator

from kills import Fuse, Killing, killed
from worlds import SOURCE, World

from tidemark.domain.identity import document_id
from tidemark.stages.job import Stores
from tidemark.stages.takedown.requests import Found, find
from tidemark.stages.takedown.takedown import NoCache, TakenDown, take_down


def stores_of(world: World) -> Stores:
    return Stores(world.ledger, world.artifacts, world.index, lambda: world.now)


def found(world: World, uri: str) -> Found:
    [one] = find(stores_of(world), [uri], [SOURCE], SOURCE)
    return one


def taken_down(world: World, uri: str, *, everywhere: bool = False) -> TakenDown:
    return take_down(stores_of(world), NoCache(), found(world, uri), everywhere=everywhere)


def killed_takedown(world: World, uri: str, at: int | None) -> int:
    """A takedown that dies before one of its writes; how many it came to."""

    def attempt(fuse: Fuse) -> None:
        ports = [Killing(p, fuse) for p in (world.ledger, world.artifacts, world.index)]
        stores = Stores(*ports, lambda: world.now)  # type: ignore[arg-type]
        take_down(stores, NoCache(), found(world, uri))

    return killed(attempt, at)


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


def reasons(world: World, uri: str) -> tuple[str, str, str]:
    """What the last run did to a document: action, reason, detail."""
    event = world.ledger.runs.events_of(document_id(SOURCE, uri), limit=1)[0]
    return event.action, event.reason, event.detail
