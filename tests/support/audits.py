"""An index under audit: a world of two sources, the damage that can be done to it, and what is expected."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from uuid import UUID, uuid4

from worlds import START, World, page

from fakes.source import MemorySource
from tidemark.domain.chunks import PointWrite, SparseVector
from tidemark.domain.hashing import Canonical, vectors_hash
from tidemark.domain.identity import document_id
from tidemark.domain.records import Tombstone
from tidemark.pipeline import run_source
from tidemark.stages.audit.audit import AuditReport, audit_index
from tidemark.stages.audit.compare import AuditDependencies
from tidemark.stages.job import Dependencies, Job

GARBAGE = "not-a-document"
SENTENCES = [
    "The tide rises twice a day along this coast.",
    "A radar gauge hangs above the water of the inner harbour.",
    "Springs follow the new moon by about two days.",
    "The mast carries an anemometer and a small solar panel.",
    "Nothing moves in the lock between midnight and four.",
    "Salt marshes store the highest floods of the winter.",
]


@dataclass
class Audited:
    """Two sources in one index; ``names`` are those whose run will come."""

    world: World = field(default_factory=World)
    names: set[str] = field(default_factory=lambda: {"docs", "wiki"})
    _runs: "count[int]" = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.wiki = MemorySource(
            media_type="text/markdown", authoritative=False, clock=lambda: self.world.now
        )

    def fill(self, documents: int = 4) -> "Audited":
        for number in range(documents):
            first, second = SENTENCES[number % 6], SENTENCES[(number + 1) % 6]
            text = page(f"Page {number}", f"{first} ({number})", f"{second} ({number})")
            source = self.world.source if number % 2 == 0 else self.wiki
            name = "docs" if number % 2 == 0 else "wiki"
            source.documents[f"https://{name}.example.org/{number}"] = text
        self.run()
        return self

    def run(self) -> None:
        for name in ("docs", "wiki"):
            job, deps = self.job_factory(name)
            assert run_source(job, deps, "test").status == "success"
        self.world.embedder.texts.clear()

    def job_factory(self, source: str) -> tuple[Job, Dependencies]:
        deps = self.world.deps()
        if source == "wiki":
            deps = replace(deps, source=self.wiki)
        run_id = f"{source}-{next(self._runs):04d}"
        return self.world.job(source=source, run_id=run_id, declared=("docs", "wiki")), deps

    def deps(self, **changes: object) -> AuditDependencies:
        world = self.world
        given = AuditDependencies(
            ledger=world.ledger,
            index=world.index,
            index_name="tidemark",
            embedder=world.embedder,
            lexical=world.lexical,
            job_factory=self.job_factory,
            will_run=self.names.__contains__,
            clock=lambda: world.now,
            wait_seconds=0.0,
            settle_seconds=0.0,
        )
        return replace(given, **changes)  # type: ignore[arg-type]

    def audit(self, source: str | None = None, **options: object) -> AuditReport:
        return audit_index(self.deps(), source, **options)  # type: ignore[arg-type]

    def rewrite_rows(
        self, vector_hash: Callable[[str], str | None] = lambda _: None, **changes: object
    ) -> None:
        """Make the rows of all documents what an earlier version, or a lost row, would leave."""
        tables = self.world.ledger.tables  # type: ignore[attr-defined]
        for key, record in tables.documents.items():
            tables.documents[key] = replace(record, **changes)
            for point, chunk in tables.chunks[key].items():
                hashed = vector_hash(chunk.vector_hash)
                tables.chunks[key][point] = replace(chunk, vector_hash=hashed)

    # What there is

    def points(self) -> list[PointWrite]:
        """All points of the generation, by id, each with its vectors."""
        index = self.world.index
        found = [
            PointWrite(p.point_id, p.payload, p.dense, p.lexical)
            for p in index.scan_points(self.world.generation, vectors=True)
        ]
        return sorted(found, key=lambda point: point.point_id)

    def sections(self) -> list[PointWrite]:
        found = self.world.index.scan_sections(self.world.generation)
        return sorted((PointWrite(p.point_id, p.payload) for p in found), key=lambda p: p.point_id)

    def held(self) -> tuple[dict[UUID, object], dict[UUID, object]]:
        """Everything that a search could give back, with the vectors."""
        points: dict[UUID, object] = {
            p.point_id: (p.payload, vectors_hash(p.dense, p.lexical) if p.dense else None)
            for p in self.points()
        }
        return points, {p.point_id: p.payload for p in self.sections()}


@dataclass
class Damage:
    """Does damage, and knows what an audit must say of it: counts by kind, and texts to be embedded."""

    audited: Audited
    expected: Counter[str] = field(default_factory=Counter)
    embedded: int = 0

    def to_point(self, how: str, point: PointWrite) -> None:
        getattr(self, f"_{how}")(point)

    def _lose(self, point: PointWrite) -> None:
        self.audited.world.index.delete_points(self._generation, [point.point_id])
        self.expected["missing_points"] += 1
        self.embedded += 1

    def _alter(self, point: PointWrite) -> None:
        self._set(point, {**point.payload, "text": "something else"})
        self.expected["stale_payload"] += 1

    def _rename(self, point: PointWrite) -> None:
        """It names another document, which has it too much for as long."""
        others = {str(p.payload["document_id"]) for p in self.audited.points()}
        other = next((d for d in sorted(others) if d != point.payload["document_id"]), GARBAGE)
        self._set(point, {**point.payload, "document_id": other})
        self.expected["stale_payload"] += 1

    def _blank(self, point: PointWrite) -> None:
        """It names no document at all."""
        self._set(point, {"document_id": GARBAGE})
        self.expected["stale_payload"] += 1

    def _other_vector(self, point: PointWrite) -> None:
        assert point.dense is not None
        self._write(replace(point, dense=tuple(-x for x in point.dense)))
        self.expected["wrong_vectors"] += 1
        self.embedded += 1

    def _no_vector(self, point: PointWrite) -> None:
        self._write(replace(point, dense=None))
        self.expected["wrong_vectors"] += 1
        self.embedded += 1

    def _other_words(self, point: PointWrite) -> None:
        """Searches for its words find another page, or a page for other words."""
        self._write(replace(point, lexical=SparseVector((12345,), (1.0,))))
        self.expected["wrong_vectors"] += 1

    def _other_weights(self, point: PointWrite) -> None:
        assert point.lexical is not None
        values = tuple(2 * value for value in point.lexical.values)
        self._write(replace(point, lexical=replace(point.lexical, values=values)))
        self.expected["wrong_vectors"] += 1

    def _no_words(self, point: PointWrite) -> None:
        self._write(replace(point, lexical=None))
        self.expected["wrong_vectors"] += 1

    def to_section(self, how: str, section: PointWrite) -> None:
        index = self.audited.world.index
        if how == "lose":
            index.delete_sections(self._generation, [section.point_id])
            self.expected["missing_sections"] += 1
            return
        changed = {"alter": {"text": "?"}, "blank": {"document_id": GARBAGE}}[how]
        payload = {**section.payload, **changed}
        index.upsert_sections(self._generation, [PointWrite(section.point_id, payload)])
        self.expected["stale_payload"] += 1

    def add(self, whose: str, what: str) -> None:
        """A point or a section that should not be there."""
        model = self.audited.points()[0]
        payload = dict(model.payload)
        if whose == "unknown":
            payload["document_id"] = str(document_id("docs", f"https://nowhere/{uuid4()}"))
        elif whose == "nobody":
            payload["document_id"] = GARBAGE
        elif whose == "tombstoned":
            payload["document_id"] = str(self.record_tombstone())
        write = PointWrite(uuid4(), payload, model.dense)
        if what == "points":
            self._write(write)
        else:
            self.audited.world.index.upsert_sections(self._generation, [replace(write, dense=None)])
        self.expected[f"extra_{what}"] += 1

    def record_tombstone(self) -> UUID:
        """A document that was removed, and of which something was left."""
        from tidemark.domain.records import RunDocument

        uri = f"https://docs.example.org/gone/{uuid4()}"
        key = document_id("docs", uri)
        stone = Tombstone(key, "docs", uri, "Gone", None, START, "gone", "run")
        event = RunDocument("run", key, uri, "remove", "gone")
        self.audited.world.ledger.writes.remove(stone, event)
        return key

    def leave_a_generation(self) -> None:
        number = max(self.audited.world.index.generations()) + 1
        self.audited.world.index.ensure(number, 64, "another-model")
        self.expected["dead_generations"] += 1

    @property
    def _generation(self) -> int:
        return self.audited.world.generation

    def _set(self, point: PointWrite, payload: dict[str, Canonical]) -> None:
        self.audited.world.index.set_payloads(
            self._generation, [PointWrite(point.point_id, payload)]
        )

    def _write(self, point: PointWrite) -> None:
        self.audited.world.index.upsert_points(self._generation, [point])


POINT_DAMAGE = (
    "lose", "alter", "rename", "blank", "other_vector", "no_vector", "other_words", "other_weights",
    "no_words",
)  # fmt: skip
SECTION_DAMAGE = ("lose", "alter", "blank")
OWNERS = ("known", "unknown", "tombstoned", "nobody")
