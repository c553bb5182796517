"""The second half of the audit: the ledger's documents against the sums of the index.

Whatever looks wrong is looked at again under the lock of the document: what a run is writing at the moment
is between two states for the ledger as for the index, and is no finding.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar
from uuid import UUID

from tidemark.domain.hashing import checksum
from tidemark.domain.records import DocumentRecord
from tidemark.stages.audit.drift import Drift, Of, What
from tidemark.stages.audit.pieces import look_again
from tidemark.stages.audit.sampling import Sampler
from tidemark.stages.audit.scope import Scope
from tidemark.stages.audit.sums import Sums, document_of, source_of
from tidemark.stages.temp_database import UsesTempDatabase

PAGE = 500
WINDOW = 32
"""Documents compared piece by piece under one lock, as many as a run writes under one."""

_NOTHING = checksum([])
T = TypeVar("T")


@dataclass(slots=True)
class Seen:
    """points: of the ledger that were compared, by source. documents: how many.

    models: by what the documents of each generation were embedded.
    """

    points: Counter[str] = field(default_factory=Counter)
    documents: int = 0
    models: dict[int, set[str]] = field(default_factory=dict)

    @property
    def checked(self) -> int:
        return self.points.total()

    def add(self, record: DocumentRecord) -> None:
        self.documents += 1
        self.points[record.source] += record.chunks
        if record.generation is not None and record.fingerprints is not None:
            self.models.setdefault(record.generation, set()).add(record.fingerprints.embed)


class _Suspects(UsesTempDatabase):
    """Documents to be looked at again, on disk. ``generation``: where something is left of them."""

    def __init__(self) -> None:
        super().__init__("CREATE TABLE suspect (document BLOB, generation INTEGER)")

    def add(self, suspects: Iterable[tuple[UUID, int | None]]) -> None:
        self._temp_db.database.executemany(
            "INSERT INTO suspect VALUES (?, ?)", ((key.bytes, number) for key, number in suspects)
        )

    def __iter__(self) -> Iterator[tuple[UUID, int | None]]:
        rows = self._temp_db.database.execute("SELECT document, generation FROM suspect")
        return ((UUID(bytes=key), number) for key, number in rows)


def compare_all(
    scope: Scope, source: str | None, drift: Drift, sampler: Sampler | None = None
) -> Seen:
    """Compare all documents (of a source), both ways. A clean index costs one pass over it."""
    seen = Seen()
    with Sums() as sums, _Suspects() as suspects:
        scope.progress.stage("read the index", None)
        for generation in scope.generations:
            sums.read(scope.index, generation, source)
        scope.progress.stage("compare", scope.ledger.documents.counts(source).indexed)
        for page in pages(scope.ledger.documents.stream(source), PAGE):
            held = sums.take([record.document_id for record in page])
            for record in page:
                if sampler is not None:
                    sampler.see(record)
                suspects.add(_suspicions(scope, record, held, seen))
            scope.progress.advance(len(page), page[-1].uri)
        suspects.add((key, number) for number, key in sums.left())
        for window in pages(iter(suspects), WINDOW):
            look_again(scope, window, drift)
        _loose(scope, sums, drift)
    return seen


def compare_some(scope: Scope, documents: Iterable[UUID], drift: Drift) -> Seen:
    """Compare some documents, piece by piece."""
    seen = Seen()
    for window in pages(iter(documents), WINDOW):
        for record in scope.ledger.documents.by_id(window).values():
            if record.generation is not None:
                seen.add(record)
        left = [(key, number) for key in window for number in scope.generations]
        look_again(scope, [*((key, None) for key in window), *left], drift)
    return seen


def pages(items: Iterator[T], size: int) -> Iterator[list[T]]:
    while page := list(islice(items, size)):
        yield page


def _suspicions(
    scope: Scope, record: DocumentRecord, held: dict[tuple[int, UUID], str], seen: Seen
) -> Iterator[tuple[UUID, int | None]]:
    """Does anything speak against a document? Its own row and sum are all that is looked at."""
    key = record.document_id
    if record.generation is not None and scope.covers(record.generation):
        seen.add(record)
        found = held.get((record.generation, key), _NOTHING)
        same = record.generation in scope.generations and found == record.checksum
        if not same or scope.of_other_model(record):
            yield key, None
    for number in scope.generations:
        if number == record.generation or scope.leaves(number, record):
            continue
        # No sum tells of a version that is served until the newest is live: it is looked at itself.
        if scope.whole if scope.serves(number, record) else (number, key) in held:
            yield key, number


def _loose(scope: Scope, sums: Sums, drift: Drift) -> None:
    """Points and sections that name no document, as far as they are still there and still do not."""
    for page in pages(sums.loose(), PAGE):
        of: dict[tuple[int, What], list[UUID]] = defaultdict(list)
        for generation, what, key in page:
            of[generation, what].append(key)
        for (generation, what), keys in of.items():
            points = what is What.POINTS
            look_up = scope.index.get_points if points else scope.index.get_sections
            for point in look_up(generation, keys):
                if document_of(point) is None:
                    drift.is_extra(
                        generation, what, [point.point_id], Of.NOBODY, None, source_of(point)
                    )
