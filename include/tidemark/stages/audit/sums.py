"""The first half of the audit: one pass over the index adds up the checksum of every document in it."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from tidemark.domain.chunks import StoredPoint
from tidemark.domain.hashing import (
    UNKNOWN,
    checksum,
    digest_of,
    point_part,
    section_part,
    vectors_hash,
)
from tidemark.ports import VectorIndex
from tidemark.stages.audit.drift import What
from tidemark.stages.temp_database import UsesTempDatabase

IN_MEMORY = 20_000
"""Documents whose sums are held in memory (some 8 MB) before they are added to those on disk."""

_LIMB = (1 << 32) - 1
# A sum has 128 bits and SQLite's numbers have 64: four parts of 32, which leaves room to add.
_HELD = """
CREATE TABLE held (generation INTEGER, document BLOB, a INTEGER, b INTEGER, c INTEGER, d INTEGER,
PRIMARY KEY (document, generation)) WITHOUT ROWID
"""
_LOOSE = """
CREATE TABLE loose (generation INTEGER, what TEXT, id BLOB,
PRIMARY KEY (generation, what, id)) WITHOUT ROWID
"""


def document_of(point: StoredPoint) -> UUID | None:
    """The document that a point or section names; None when it names none."""
    named = point.payload.get("document_id")
    try:
        document = UUID(str(named))
    except ValueError:
        return None
    # Only as it is written is it found by a filter.
    return document if str(document) == named else None


def source_of(point: StoredPoint) -> str:
    named = point.payload.get("source")
    return named if isinstance(named, str) else ""


class Sums(UsesTempDatabase):
    """A context: per generation and document the sum of what the index holds of it."""

    def __init__(self) -> None:
        super().__init__(_HELD, _LOOSE)
        self._database = self._temp_db.database
        self._recent: dict[tuple[int, bytes], int] = {}

    def read(self, index: VectorIndex, generation: int, source: str | None) -> None:
        """Add up a generation, of one source or whole. Work in proportion to it, memory flat."""
        where: dict[str, str | list[str]] | None = {"source": source} if source else None
        for point in index.scan_points(generation, where, vectors=True):
            vector = vectors_hash(point.dense, point.lexical) if point.dense else UNKNOWN
            part = point_part(point.point_id, digest_of(point.payload), vector)
            self._add(generation, What.POINTS, point, part)
        for section in index.scan_sections(generation, where):
            part = section_part(section.point_id, digest_of(section.payload))
            self._add(generation, What.SECTIONS, section, part)
        self._write_down()

    def take(self, documents: Sequence[UUID]) -> dict[tuple[int, UUID], str]:
        """The checksums of documents by generation and id; what is taken is not ``left``."""
        found = {}
        for document in documents:
            for generation, a, b, c, d in self._database.execute(
                "SELECT generation, a, b, c, d FROM held WHERE document = ?", (document.bytes,)
            ):
                total = a + (b << 32) + (c << 64) + (d << 96)
                found[generation, document] = checksum([total])
        self._database.executemany(
            "DELETE FROM held WHERE document = ?", [(document.bytes,) for _, document in found]
        )
        return found

    def left(self) -> Iterator[tuple[int, UUID]]:
        """Stream generation and id of the documents that nobody has taken."""
        rows = self._database.execute("SELECT generation, document FROM held ORDER BY generation")
        return ((generation, UUID(bytes=key)) for generation, key in rows)

    def loose(self) -> Iterator[tuple[int, What, UUID]]:
        """Stream what names no document."""
        rows = self._database.execute("SELECT generation, what, id FROM loose")
        return ((generation, What(what), UUID(bytes=key)) for generation, what, key in rows)

    def _add(self, generation: int, what: What, point: StoredPoint, part: int) -> None:
        document = document_of(point)
        if document is None:
            self._database.execute(
                "INSERT OR IGNORE INTO loose VALUES (?, ?, ?)",
                (generation, what.value, point.point_id.bytes),
            )
            return
        key = (generation, document.bytes)
        self._recent[key] = self._recent.get(key, 0) + part
        if len(self._recent) >= IN_MEMORY:
            self._write_down()

    def _write_down(self) -> None:
        self._database.execute("BEGIN")
        self._database.executemany(
            "INSERT INTO held VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
            "a = a + excluded.a, b = b + excluded.b, c = c + excluded.c, d = d + excluded.d",
            [
                (generation, key, total & _LIMB, total >> 32 & _LIMB, total >> 64 & _LIMB,
                 total >> 96 & _LIMB)
                for (generation, key), total in sorted(self._recent.items())
            ],
        )  # fmt: skip
        self._database.execute("COMMIT")
        self._recent.clear()
