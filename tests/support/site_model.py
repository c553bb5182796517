"""A small site as it should be: what stands at each address, how it is indexed, and what that comes to."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import takewhile
from typing import Any

from worlds import SOURCE, CountingPartitioner, World

from fakes.embedder import HashEmbedder
from fakes.inspector import MarkInspector
from fakes.partitioner import MemoryPartitioner
from tidemark.domain.errors import PermanentError, RefusedError
from tidemark.domain.guards import Guards
from tidemark.domain.hashing import vectors_hash
from tidemark.domain.identity import document_id
from tidemark.domain.profile import Profile
from tidemark.ports.index import VectorIndex
from tidemark.stages.job import Job

URIS = tuple(f"https://example.org/{name}" for name in "abcde")
PARAGRAPHS = (
    "The tide rises.",
    "The tide falls.",
    "A gauge hangs at the pier and is read each hour by whoever has the watch.",
    "A mast stands.",
    "Nothing moves. Nothing is heard. Nobody comes, and nobody is waited for any more at all.",
)
NOT_EMBEDDED = "The model refuses this."
NOT_TAKEN = "The index refuses this."
VOLATILE = frozenset({"fetched_at", "generation", "modified_at"})
HEALTHY = frozenset({"page"})
SICK = frozenset({"broken", "too_large", "not_embedded", "not_taken"})
LEADING = frozenset({"moved", "alias"})
ABSENT = frozenset({"gone", "unlisted", "excluded"})


@dataclass(frozen=True, slots=True)
class Page:
    """What stands at an address.

    kind: "page", one of ``SICK``, ``LEADING`` or ``ABSENT``. target: what a leading one leads to.
    pad: white space around the content, as the boilerplate of a page.
    """

    kind: str = "page"
    title: str = "A page"
    paragraphs: tuple[str, ...] = PARAGRAPHS[:1]
    pad: int = 0
    target: str = ""

    def body(self) -> str | bytes:
        extra = {"not_embedded": NOT_EMBEDDED, "not_taken": NOT_TAKEN}.get(self.kind)
        if self.kind == "broken":
            return b"\xff" + self.title.encode()
        told = [*self.paragraphs, *([extra] if extra else [])]
        sections = [f"## Part {i}\n\n{text}" for i, text in enumerate(told, 1)]
        return "\n\n".join([f"# {self.title}", *sections]) + "\n\n" * self.pad


@dataclass(frozen=True, slots=True)
class Setup:
    """How a source is indexed; the fields before the last decide what is in the index.

    etags: without, all bytes are fetched every time.
    judge: doubt what is suspected, keep equal pages once, believe only by and by that a page is gone.
    """

    tokens: int = 40
    labels: tuple[str, ...] = ("one",)
    parser: int = 1
    dimension: int = 16
    etags: bool = True
    judge: bool = False

    def apply(self, world: World) -> None:
        world.profile = Profile(target_tokens=self.tokens, max_tokens=self.tokens + 8, min_tokens=0)
        world.partitioner = CountingPartitioner(MemoryPartitioner(self.parser))
        world.embedder.inner = _embedder(self.dimension)
        world.embedder.before = _refuse_texts
        world.source.with_etags = self.etags
        world.inspector = MarkInspector() if self.judge else None

    def job(self, world: World, **changes: Any) -> Job:
        """Asks nobody."""
        guards = Guards(100, 100, 100, quarantined_percent=100)
        told = {"labels": self.labels, "guards": guards, "judge": self.judge}
        told["gone_after"] = 2 if self.judge else 1
        return world.job(**{**told, **changes})


@lru_cache
def _embedder(dimension: int) -> HashEmbedder:
    return HashEmbedder(dimension)


def _refuse_texts(texts: Any) -> None:
    if any(NOT_EMBEDDED in text for text in texts):
        raise PermanentError("The model refuses a text.")


class RefusingIndex:
    """An index that refuses one text, after it took those before it."""

    def __init__(self, inner: VectorIndex) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def upsert_points(self, generation: int, points: Any) -> None:
        taken = list(takewhile(lambda p: NOT_TAKEN not in str(p.payload["text"]), points))
        self.inner.upsert_points(generation, taken)
        if len(taken) < len(points):
            raise RefusedError("The index refuses a point.")


Site = Mapping[str, Page]


def lay_out(world: World, site: Site) -> None:
    """Make the source show the site."""
    source = world.source
    for told in (source.documents, source.gone, source.excluded, source.too_large, source.moved,
                 source.aliases, source.failing):  # fmt: skip
        told.clear()
    for uri, page in site.items():
        if page.kind == "gone":
            source.gone[uri] = "answers 404"
        elif page.kind == "excluded":
            source.excluded[uri] = "says noindex"
        elif page.kind == "too_large":
            source.too_large[uri] = f"has {len(page.paragraphs)} GB"
        elif page.kind == "moved":
            source.moved[uri] = page.target
        elif page.kind == "alias":
            source.aliases[uri] = page.target
        elif page.kind != "unlisted":
            source.documents[uri] = page.body()


def with_page(site: Site, uri: str, page: Page) -> dict[str, Page]:
    """The site with another page at an address; what leads to one that is not there is gone too."""
    new = {**site, uri: page}
    while lost := [u for u, p in new.items() if p.kind in LEADING and new[p.target].kind != "page"]:
        new |= dict.fromkeys(lost, Page("gone"))
    return new


@dataclass(frozen=True, slots=True)
class Held:
    """Points or sections of one document by id: payload without what differs run by run, vector's hash."""

    items: Mapping[str, tuple[dict[str, Any], str]] = field(default_factory=dict)


def difference(found: Mapping[str, Held], wanted: Mapping[str, Held]) -> dict[str, Any]:
    """What is held and should not be, and what should be and is not, by URI; {} when they are equal."""
    differing = {}
    for uri in sorted(found.keys() | wanted.keys()):
        here, there = found.get(uri, Held()).items, wanted.get(uri, Held()).items
        if here != there:
            keys = [key for key in here.keys() | there.keys() if here.get(key) != there.get(key)]
            differing[uri] = {key: (here.get(key), there.get(key)) for key in keys}
    return differing


@dataclass(frozen=True, slots=True)
class Expected:
    """What an index made anew of a site holds, and the ledger's rows, by URI."""

    points: Mapping[str, Held]
    sections: Mapping[str, Held]
    rows: Mapping[str, tuple[Any, ...]]
    aliases: Mapping[str, str]

    def ids(self, uri: str) -> frozenset[str]:
        return frozenset(self.points[uri].items)


def expected(site: Site, setup: Setup) -> Expected:
    """What the healthy documents of a site come to."""
    healthy = {u: p for u, p in site.items() if p.kind not in SICK | ABSENT}
    return _expected(tuple(sorted(healthy.items())), setup)


@lru_cache(maxsize=5000)
def _expected(pages: tuple[tuple[str, Page], ...], setup: Setup) -> Expected:
    world = World()
    setup.apply(world)
    lay_out(world, dict(pages))
    run(world, setup)
    return Expected(
        held(world, "scan_points"), held(world, "scan_sections"), rows(world), aliases(world)
    )


def run(world: World, setup: Setup, **changes: Any) -> Any:
    """One undisturbed run."""
    from tidemark.pipeline import run_source

    return run_source(setup.job(world, **changes), world.deps(), "test")


def held(world: World, scan: str) -> dict[str, Held]:
    """All points, or sections, of the generation that runs write, by their document's URI."""
    found: dict[str, dict[str, tuple[dict[str, Any], str]]] = {}
    vectors = {"vectors": True} if scan == "scan_points" else {}
    for point in getattr(world.index, scan)(world.generation, **vectors):
        uri = str(point.payload["source_uri"]).partition("#")[0]
        assert str(document_id(SOURCE, uri)) == point.payload["document_id"]
        payload = {k: v for k, v in point.payload.items() if k not in VOLATILE}
        vector = vectors_hash(point.dense, point.lexical) if point.dense else ""
        of_document = found.setdefault(uri, {})
        assert str(point.point_id) not in of_document, "each once"
        of_document[str(point.point_id)] = payload, vector
    return {uri: Held(items) for uri, items in found.items()}


def rows(world: World) -> dict[str, tuple[Any, ...]]:
    """What the ledger says of each document, without times."""
    return {
        r.uri: (
            r.title, r.status, r.raw_hash, r.fetched_raw_hash, r.content_hash, r.fingerprints, r.sections,
            r.chunks, r.failure, r.missing_runs, r.validators, r.fetch_fingerprint,
            [replace(c, payload_hash="") for c in world.ledger.documents.chunks(r.document_id)],
            [replace(s, payload_hash="") for s in world.ledger.documents.sections(r.document_id)],
        )
        for r in world.ledger.documents.stream(SOURCE)
    }  # fmt: skip


def aliases(world: World) -> dict[str, str]:
    by_id = {str(document_id(SOURCE, uri)): uri for uri in URIS}
    return {a.uri: by_id[str(a.document_id)] for a in world.ledger.sources.aliases(SOURCE)}
