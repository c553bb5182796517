"""What an audit adds up and what it finds, kept on disk while it runs: memory stays flat.

An index that was lost differs in every document, and a large one has more documents than memory holds sums.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
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
from tidemark.ports.index import VectorIndex
from tidemark.stages.temp_database import UsesTempDatabase


class Kind(StrEnum):
    """A way in which ledger and index differ."""

    MISSING_POINTS = "missing_points"
    EXTRA_POINTS = "extra_points"
    STALE_PAYLOAD = "stale_payload"
    MISSING_SECTIONS = "missing_sections"
    EXTRA_SECTIONS = "extra_sections"
    WRONG_VECTORS = "wrong_vectors"
    """Points without a vector, or with another one than was written: of another model or text."""
    WRONG_MODEL = "wrong_model"
    """Documents embedded by another model than their generation is built under; generations of which the
    ledger and the index say different things."""
    DEAD_GENERATIONS = "dead_generations"
    LIVE_NAME = "live_name"
    """The alias of the live generation is over the wrong one, or over none."""
    NOT_FOUND = "not_found"
    """Documents of the sample that a search for a sentence of their own does not bring back."""


KINDS = tuple(Kind)


class Collection(StrEnum):
    """One of a generation's two."""

    POINTS = "points"
    SECTIONS = "sections"


class Owner(StrEnum):
    """Whose a finding is."""

    KNOWN = "known"
    """A document that is live in this generation."""
    SERVED = "served"
    """A document whose newest version is in a generation being built: searches find an older one here."""
    ELSEWHERE = "elsewhere"
    """A document of which no version is live in this generation."""
    TOMBSTONED = "tombstoned"
    UNKNOWN = "unknown"
    NOBODY = "nobody"
    """It names no document."""


@dataclass(frozen=True, slots=True)
class DocumentName:
    """A document, as a finding names it; ``source`` and ``uri`` are "" where nobody knows them."""

    document_id: UUID
    source: str
    uri: str


@dataclass(frozen=True, slots=True)
class Misattributed:
    """A point or section that a document should have, with a payload that names another, or none."""

    generation: int
    collection: Collection
    id: UUID
    document_id: UUID
    source: str


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


def look_up(
    index: VectorIndex, generation: int, collection: Collection, ids: Sequence[UUID]
) -> list[StoredPoint]:
    """Points or sections by their ids."""
    get = index.get_points if collection is Collection.POINTS else index.get_sections
    return get(generation, ids)


# What the index holds

IN_MEMORY = 20_000
"""Documents whose sums are held in memory (some 8 MB) before they are added to those on disk."""

_CHECKSUMS = """
CREATE TABLE checksum (document BLOB, generation INTEGER, total TEXT,
PRIMARY KEY (document, generation)) WITHOUT ROWID
"""
_UNOWNED = """
CREATE TABLE unowned (generation INTEGER, collection TEXT, id BLOB,
PRIMARY KEY (generation, collection, id)) WITHOUT ROWID
"""
_SUSPECTS = "CREATE TABLE suspect (document BLOB, generation INTEGER)"


class Checksums(UsesTempDatabase):
    """A context: the checksum of what the index holds of each document, by generation.

    suspects: documents that are to be compared piece by piece.
    """

    def __init__(self) -> None:
        super().__init__(_CHECKSUMS, _UNOWNED, _SUSPECTS)
        self._database = self._temp_db.database
        # A sum has 128 bits, and SQLite's numbers have 64.
        self._database.create_function(
            "add_checksums", 2, lambda *both: checksum(int(one, 16) for one in both)
        )
        self._recent: Counter[tuple[bytes, int]] = Counter()

    def read(self, index: VectorIndex, generation: int, source: str | None) -> None:
        """Add up a generation, of one source or whole. Work in proportion to it, memory flat."""
        where: dict[str, str | list[str]] | None = {"source": source} if source else None
        for point in index.scan_points(generation, where, vectors=True):
            vector = vectors_hash(point.dense, point.lexical) if point.dense else UNKNOWN
            part = point_part(point.point_id, digest_of(point.payload), vector)
            self._add(generation, Collection.POINTS, point, part)
        for section in index.scan_sections(generation, where):
            part = section_part(section.point_id, digest_of(section.payload))
            self._add(generation, Collection.SECTIONS, section, part)
        self._write_down()

    def take(self, documents: Sequence[UUID]) -> dict[tuple[int, UUID], str]:
        """The checksums of documents by generation and id; what is taken is not ``left``."""
        found = {
            (generation, document): total
            for document in documents
            for generation, total in self._database.execute(
                "SELECT generation, total FROM checksum WHERE document = ?", (document.bytes,)
            )
        }
        self._database.executemany(
            "DELETE FROM checksum WHERE document = ?", [(key.bytes,) for _, key in found]
        )
        return found

    def left(self) -> Iterator[tuple[UUID, int]]:
        """Stream the documents that nobody has taken, each with its generation."""
        return self._pairs("SELECT document, generation FROM checksum ORDER BY generation")

    def unowned(self) -> Iterator[tuple[int, Collection, UUID]]:
        """Stream what names no document."""
        rows = self._database.execute("SELECT generation, collection, id FROM unowned")
        return ((number, Collection(what), UUID(bytes=key)) for number, what, key in rows)

    def suspect(self, documents: Iterable[tuple[UUID, int | None]]) -> None:
        """Note documents, each with the generation where something of it should not be, if there is one."""
        self._database.executemany(
            "INSERT INTO suspect VALUES (?, ?)", ((key.bytes, number) for key, number in documents)
        )

    def suspects(self) -> Iterator[tuple[UUID, int | None]]:
        return self._pairs("SELECT document, generation FROM suspect")

    def _pairs(self, query: str) -> Iterator[tuple[UUID, Any]]:
        return ((UUID(bytes=key), number) for key, number in self._database.execute(query))

    def _add(self, generation: int, where: Collection, point: StoredPoint, part: int) -> None:
        document = document_of(point)
        if document is None:
            self._database.execute(
                "INSERT OR IGNORE INTO unowned VALUES (?, ?, ?)",
                (generation, where.value, point.point_id.bytes),
            )
            return
        self._recent[document.bytes, generation] += part
        if len(self._recent) >= IN_MEMORY:
            self._write_down()

    def _write_down(self) -> None:
        self._database.execute("BEGIN")
        self._database.executemany(
            "INSERT INTO checksum VALUES (?, ?, ?) "
            "ON CONFLICT DO UPDATE SET total = add_checksums(total, excluded.total)",
            [(*key, checksum([total])) for key, total in sorted(self._recent.items())],
        )
        self._database.execute("COMMIT")
        self._recent.clear()


# What was found

_COUNTED = """
CREATE TABLE counted (document BLOB, kind TEXT, owner TEXT, n INTEGER, source TEXT, uri TEXT,
PRIMARY KEY (document, kind, owner)) WITHOUT ROWID
"""
_EXTRA = """
CREATE TABLE extra (generation INTEGER, collection TEXT, id BLOB, owner TEXT, document BLOB, source TEXT,
uri TEXT, PRIMARY KEY (generation, collection, id)) WITHOUT ROWID
"""
_MISATTRIBUTED = """
CREATE TABLE misattributed (generation INTEGER, collection TEXT, id BLOB, document BLOB, source TEXT,
PRIMARY KEY (generation, collection, id)) WITHOUT ROWID
"""
# What one document should have under a wrong name is not the extra of another.
_SURPLUS = """
CREATE VIEW surplus AS SELECT * FROM extra WHERE NOT EXISTS (SELECT 1 FROM misattributed AS m
WHERE m.generation = extra.generation AND m.collection = extra.collection AND m.id = extra.id)
"""
_FINDINGS = """
CREATE VIEW finding AS SELECT document, kind, owner, n, source, uri FROM counted
UNION ALL SELECT document, 'extra_' || collection, owner, 1, source, uri FROM surplus
"""
_REPAIRED = "owner NOT IN ('served', 'nobody')"


class Drift(UsesTempDatabase):
    """A context: what was found is gone when it ends. ``source`` None stands for all sources."""

    def __init__(self) -> None:
        super().__init__(_COUNTED, _EXTRA, _MISATTRIBUTED, _SURPLUS, _FINDINGS)
        self._database = self._temp_db.database

    def differs(
        self, document: DocumentName, counts: Mapping[Kind, int], owner: Owner = Owner.KNOWN
    ) -> None:
        """Note what is wrong with a document that the ledger knows, but for what it has too much of.

        What is wrong with a version that is ``SERVED`` is counted and named as the rest; nothing writes it
        again, so no repair is asked for it.
        """
        key, source, uri = document.document_id.bytes, document.source, document.uri
        self._database.executemany(
            "INSERT OR REPLACE INTO counted VALUES (?, ?, ?, ?, ?, ?)",
            [(key, kind.value, owner.value, n, source, uri) for kind, n in counts.items() if n],
        )

    def is_extra(
        self,
        generation: int,
        collection: Collection,
        ids: Iterable[UUID],
        owner: Owner,
        document: DocumentName | None,
        source: str = "",
    ) -> None:
        """Note points or sections that should not be there.

        ``document`` is None when they name none, but perhaps a ``source``.
        """
        key = document.document_id.bytes if document else None
        source, uri = (document.source, document.uri) if document else (source, "")
        self._database.executemany(
            "INSERT OR REPLACE INTO extra VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(generation, collection.value, i.bytes, owner.value, key, source, uri) for i in ids],
        )

    def is_misattributed(
        self, generation: int, collection: Collection, ids: Iterable[UUID], document: DocumentName
    ) -> None:
        """Note points or sections that are a document's, though their payloads do not name it."""
        key, source = document.document_id.bytes, document.source
        self._database.executemany(
            "INSERT OR REPLACE INTO misattributed VALUES (?, ?, ?, ?, ?)",
            [(generation, collection.value, i.bytes, key, source) for i in ids],
        )

    def counts(self, source: str | None = None, *, served: bool = False) -> Counter[str]:
        """How many of each kind; ``served``: only what is wrong in the live generation until another is."""
        where = "owner = 'served'" if served else "TRUE"
        return Counter(dict(self._rows("kind, sum(n)", where, source, "GROUP BY kind")))

    def examples(self, kind: str, limit: int) -> list[str]:
        """The first URIs of documents that a kind was found in."""
        order = f"ORDER BY uri LIMIT {limit}"
        rows = self._rows("DISTINCT uri", "kind = :kind", None, order, kind=kind)
        return [uri or "(names no document)" for (uri,) in rows]

    def sources(self, *, to_repair: bool = False) -> list[str]:
        """Names of the sources with a finding, sorted; "" for what names none.

        ``to_repair``: only those for which a repair can do something.
        """
        where = "owner <> 'served'" if to_repair else "TRUE"
        return [name for (name,) in self._rows("DISTINCT source", where, None, "ORDER BY source")]

    def count_documents(self, source: str | None = None, owner: Owner | None = None) -> int:
        """How many documents have a finding that a repair heals; with ``owner``, those of one."""
        where = f"owner = '{owner.value}'" if owner else _REPAIRED
        [(count,)] = self._rows("count(DISTINCT document)", where, source)
        return int(count)

    def concerned(self, source: str | None = None, *, served: bool = False) -> Iterator[UUID]:
        """Stream, each once, the ids of all documents with a finding that a repair heals, known or not.

        ``served``: with those that heal when another generation is live.
        """
        where = "owner <> 'nobody'" if served else _REPAIRED
        return (UUID(bytes=key) for (key,) in self._rows("DISTINCT document", where, source))

    def documents(self, source: str | None = None) -> Iterator[DocumentName]:
        """Stream, each once, the documents that the ledger knows and that differ."""
        rows = self._rows("DISTINCT document, source, uri", "owner = 'known'", source)
        return (DocumentName(UUID(bytes=key), name, uri) for key, name, uri in rows)

    def of_kinds(self, kinds: Iterable[Kind], documents: Iterable[UUID]) -> set[UUID]:
        """Those of some documents in which one of these kinds was found."""
        query = "SELECT 1 FROM counted WHERE document = ? AND kind = ? AND owner = 'known'"
        return {
            document
            for document in documents
            for kind in kinds
            if self._database.execute(query, (document.bytes, kind.value)).fetchone()
        }

    def orphans(self, source: str | None = None) -> Iterator[DocumentName]:
        """Stream, each once, the documents that should have nothing where they have something."""
        rows = self._rows(
            "document, min(source), min(uri)",
            "owner IN ('elsewhere', 'tombstoned', 'unknown')",
            source,
            "GROUP BY document",
        )
        return (DocumentName(UUID(bytes=key), name, uri) for key, name, uri in rows)

    def generations_of(self, orphan: UUID) -> list[int]:
        """The generations in which an orphan has something that it should not have."""
        rows = self._database.execute(
            "SELECT DISTINCT generation FROM surplus WHERE document = ? AND owner <> 'known'",
            (orphan.bytes,),
        )
        return [generation for (generation,) in rows]

    def unowned(self, collection: Collection) -> Iterator[tuple[int, UUID]]:
        """Stream generation and id of what names no document, of all sources."""
        rows = self._database.execute(
            "SELECT generation, id FROM surplus WHERE owner = 'nobody' AND collection = ?",
            (collection.value,),
        )
        return ((generation, UUID(bytes=key)) for generation, key in rows)

    def misattributed(self) -> Iterator[Misattributed]:
        """Stream what documents should have under their own names."""
        rows = self._database.execute(
            "SELECT generation, collection, id, document, source FROM misattributed"
        )
        return (
            Misattributed(number, Collection(what), UUID(bytes=key), UUID(bytes=document), source)
            for number, what, key, document, source in rows
        )

    def _rows(
        self, columns: str, where: str, source: str | None, end: str = "", **given: str
    ) -> Iterable[tuple[Any, ...]]:
        return self._database.execute(
            f"SELECT {columns} FROM finding WHERE {where} "  # noqa: S608 - all written here
            f"AND (:source IS NULL OR source = :source) {end}",
            {"source": source, **given},
        )
