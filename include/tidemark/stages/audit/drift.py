"""What an audit finds, kept on disk while it runs: an index that was lost must not fill the memory."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

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
    NOT_FOUND = "not_found"
    """Documents of the sample that a search for a sentence of their own does not bring back."""


KINDS = tuple(Kind)


class What(StrEnum):
    """In which of a generation's two collections."""

    POINTS = "points"
    SECTIONS = "sections"


class Of(StrEnum):
    """Whose a point or section is that should not be there."""

    KNOWN = "known"
    """A document that is live in this generation, without it."""
    ELSEWHERE = "elsewhere"
    """A document of which no version is live in this generation."""
    TOMBSTONED = "tombstoned"
    UNKNOWN = "unknown"
    NOBODY = "nobody"
    """It names no document."""


_EXTRA = {
    What.POINTS.value: Kind.EXTRA_POINTS.value,
    What.SECTIONS.value: Kind.EXTRA_SECTIONS.value,
}

_FOUND = """
CREATE TABLE found (document BLOB, kind TEXT, n INTEGER, source TEXT, uri TEXT,
PRIMARY KEY (document, kind)) WITHOUT ROWID
"""
_SERVED = _FOUND.replace("found", "served")
_EXTRAS = """
CREATE TABLE extra (generation INTEGER, what TEXT, id BLOB, owner TEXT, document BLOB, source TEXT,
uri TEXT, PRIMARY KEY (generation, what, id)) WITHOUT ROWID
"""
_CLAIMED = """
CREATE TABLE claimed (generation INTEGER, what TEXT, id BLOB, document BLOB, source TEXT,
PRIMARY KEY (generation, what, id)) WITHOUT ROWID
"""
# What one document should have under a wrong name is not the extra of another.
_SURPLUS = """
CREATE VIEW surplus AS SELECT * FROM extra WHERE NOT EXISTS (SELECT 1 FROM claimed
WHERE claimed.generation = extra.generation AND claimed.what = extra.what AND claimed.id = extra.id)
"""
_DOCUMENTS = """
SELECT document, source, uri FROM found WHERE :source IS NULL OR source = :source
UNION SELECT document, source, uri FROM surplus
WHERE owner = 'known' AND (:source IS NULL OR source = :source)
"""
_ORPHANS = """
SELECT document, min(source), min(uri) FROM surplus
WHERE owner IN ('elsewhere', 'tombstoned', 'unknown') AND (:source IS NULL OR source = :source)
GROUP BY document
"""
_CONCERNED = """
SELECT document FROM found WHERE :source IS NULL OR source = :source
UNION SELECT document FROM surplus
WHERE owner <> 'nobody' AND (:source IS NULL OR source = :source)
"""


@dataclass(frozen=True, slots=True)
class Named:
    """A document, as a finding names it; ``source`` and ``uri`` are "" where nobody knows them."""

    document_id: UUID
    source: str
    uri: str


@dataclass(frozen=True, slots=True)
class Stray:
    """A point or section that a document should have, with a payload that names another."""

    generation: int
    what: What
    id: UUID
    document_id: UUID
    source: str


class Drift(UsesTempDatabase):
    """A context: what was found is gone when it ends."""

    def __init__(self) -> None:
        super().__init__(_FOUND, _SERVED, _EXTRAS, _CLAIMED, _SURPLUS)
        self._database = self._temp_db.database

    def differs(self, document: Named, counts: Mapping[Kind, int]) -> None:
        """Note what is wrong with a document that the ledger knows, but for what it has too much of."""
        self._note("found", document, counts)

    def is_served_wrong(self, document: Named, counts: Mapping[Kind, int]) -> None:
        """Note what is wrong with the version that searches find until a document's newest one is live.

        It is counted and named as the rest; nothing writes it again, so no repair is asked for it.
        """
        self._note("served", document, counts)

    def _note(self, table: str, document: Named, counts: Mapping[Kind, int]) -> None:
        self._database.executemany(
            f"INSERT INTO {table} VALUES (?, ?, ?, ?, ?) "  # noqa: S608 - one of two names
            "ON CONFLICT DO UPDATE SET n = excluded.n",
            [
                (document.document_id.bytes, kind.value, n, document.source, document.uri)
                for kind, n in counts.items()
                if n
            ],
        )

    def is_extra(
        self,
        generation: int,
        what: What,
        ids: Iterable[UUID],
        owner: Of,
        document: Named | None,
        source: str = "",
    ) -> None:
        """Note points or sections that should not be there.

        ``document`` is None when they name none, but perhaps a ``source``.
        """
        key = document.document_id.bytes if document else None
        source, uri = (document.source, document.uri) if document else (source, "")
        self._database.executemany(
            "INSERT OR REPLACE INTO extra VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(generation, what.value, i.bytes, owner.value, key, source, uri) for i in ids],
        )

    def claim(self, generation: int, what: What, ids: Iterable[UUID], document: Named) -> None:
        """Note points or sections that are a document's, though their payloads name another."""
        key, source = document.document_id.bytes, document.source
        self._database.executemany(
            "INSERT OR REPLACE INTO claimed VALUES (?, ?, ?, ?, ?)",
            [(generation, what.value, i.bytes, key, source) for i in ids],
        )

    def counts(self, source: str | None = None) -> Counter[str]:
        """How many of each kind; of a source, or of all."""
        given = {"source": source}
        counts = self.served(source)
        for kind, n in self._database.execute(
            "SELECT kind, sum(n) FROM found WHERE :source IS NULL OR source = :source GROUP BY kind",
            given,
        ):
            counts[kind] += n
        for what, n in self._database.execute(
            "SELECT what, count(*) FROM surplus WHERE :source IS NULL OR source = :source "
            "GROUP BY what",
            given,
        ):
            counts[_EXTRA[what]] += n
        return counts

    def served(self, source: str | None = None) -> Counter[str]:
        """Of these, how many of each kind are wrong in the live generation only, until another is live."""
        rows = self._database.execute(
            "SELECT kind, sum(n) FROM served WHERE :source IS NULL OR source = :source GROUP BY kind",
            {"source": source},
        )
        return Counter(dict(rows))

    def served_documents(self) -> Iterator[UUID]:
        """Stream, each once, the documents that are served wrong."""
        rows = self._database.execute("SELECT DISTINCT document FROM served")
        return (UUID(bytes=key) for (key,) in rows)

    def count_served(self) -> int:
        """How many ``served_documents`` gives."""
        [(count,)] = self._database.execute("SELECT count(DISTINCT document) FROM served")
        return int(count)

    def examples(self, kind: str, limit: int) -> list[str]:
        """The first URIs of documents that a kind was found in."""
        what = next((w for w, k in _EXTRA.items() if k == kind), "")
        rows = self._database.execute(
            "SELECT uri FROM found WHERE kind = :kind UNION "
            "SELECT uri FROM served WHERE kind = :kind UNION "
            "SELECT uri FROM surplus WHERE what = :what ORDER BY uri LIMIT :limit",
            {"kind": kind, "what": what, "limit": limit},
        )
        return [uri or "(names no document)" for (uri,) in rows]

    def sources(self) -> list[str]:
        """Names of the sources with a finding, sorted; "" for what names none."""
        rows = self._database.execute("SELECT DISTINCT source FROM served")
        return sorted({*self.to_repair(), *(source for (source,) in rows)})

    def to_repair(self) -> list[str]:
        """Those with a finding that a repair can do something about."""
        rows = self._database.execute(
            "SELECT source FROM found UNION SELECT source FROM surplus ORDER BY source"
        )
        return [source for (source,) in rows]

    def tombstoned(self) -> int:
        """How many removed documents have points or sections left."""
        [(count,)] = self._database.execute(
            "SELECT count(DISTINCT document) FROM surplus WHERE owner = ?", (Of.TOMBSTONED.value,)
        )
        return int(count)

    def documents(self, source: str | None = None) -> Iterator[Named]:
        """Stream, each once, the documents that the ledger knows and that differ."""
        return self._named(_DOCUMENTS, source)

    def concerned(self, source: str | None = None) -> Iterator[UUID]:
        """Stream, each once, the ids of all documents with a finding, known or not."""
        rows = self._database.execute(_CONCERNED, {"source": source})
        return (UUID(bytes=key) for (key,) in rows)

    def count(self, source: str | None = None) -> int:
        """How many ``concerned`` gives."""
        counting = f"SELECT count(*) FROM ({_CONCERNED})"  # noqa: S608 - nothing of it is given
        [(count,)] = self._database.execute(counting, {"source": source})
        return int(count)

    def of_kinds(self, kinds: Iterable[Kind], documents: Iterable[UUID]) -> set[UUID]:
        """Those of some documents in which one of these kinds was found."""
        return {
            document
            for document in documents
            for kind in kinds
            if self._database.execute(
                "SELECT 1 FROM found WHERE document = ? AND kind = ?", (document.bytes, kind.value)
            ).fetchone()
        }

    def orphans(self, source: str | None = None) -> Iterator[Named]:
        """Stream, each once, the documents that should have nothing where they have something."""
        return self._named(_ORPHANS, source)

    def places(self, document: UUID) -> list[int]:
        """The generations in which an orphan has something that it should not have."""
        rows = self._database.execute(
            "SELECT DISTINCT generation FROM surplus WHERE document = ? AND owner <> 'known'",
            (document.bytes,),
        )
        return [generation for (generation,) in rows]

    def loose(self, what: What) -> Iterator[tuple[int, UUID]]:
        """Stream generation and id of what names no document, of all sources."""
        rows = self._database.execute(
            "SELECT generation, id FROM surplus WHERE owner = 'nobody' AND what = ?", (what.value,)
        )
        return ((generation, UUID(bytes=key)) for generation, key in rows)

    def strays(self) -> Iterator[Stray]:
        """Stream what documents should have under their own names."""
        rows = self._database.execute("SELECT generation, what, id, document, source FROM claimed")
        return (
            Stray(generation, What(what), UUID(bytes=key), UUID(bytes=document), source)
            for generation, what, key, document, source in rows
        )

    def _named(self, query: str, source: str | None) -> Iterator[Named]:
        rows = self._database.execute(query, {"source": source})
        return (Named(UUID(bytes=key), name, uri) for key, name, uri in rows)
