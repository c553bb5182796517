"""Who is who: identities that survive edits elsewhere.

Changing anything in this module changes every id in every index, so it is a migration.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import sha1
from uuid import UUID

from tidemark.domain.hashing import Canonical, canonical, digest_text

NAMESPACE = UUID("6f1c7d0a-3d8e-5a52-9a53-7469646d726b")


def _named(*parts: Canonical) -> UUID:
    """A version 5 UUID (RFC 9562) over bytes: ``uuid.uuid5`` refuses what is not strict UTF-8."""
    return _hashed(NAMESPACE.bytes + canonical(list(parts)))


def _hashed(name: bytes) -> UUID:
    return UUID(bytes=sha1(name, usedforsecurity=False).digest()[:16], version=5)


def document_id(source: str, uri: str) -> UUID:
    """Identify a document by its source's name and its canonical URI."""
    return _named("document", source, uri)


def section_id(document: UUID, heading_path: Sequence[str], occurrence: int) -> UUID:
    """Identify a section by its headings; ``occurrence`` counts equal paths from 0 in document order."""
    return _named("section", str(document), list(heading_path), occurrence)


def point_id(document: UUID, embed_text: str, occurrence: int) -> UUID:
    """Identify a chunk's point by what is embedded; ``occurrence`` counts equal texts from 0.

    Position is no part of it, so a chunk keeps its point and its vector when its neighbours change.
    """
    return _named("point", str(document), digest_text(embed_text), occurrence)


class Occurrences:
    """Counts equal keys: the first time a key is seen gives 0, the second 1, and so on."""

    def __init__(self) -> None:
        self._seen: Counter[object] = Counter()

    def next(self, key: object) -> int:
        occurrence = self._seen[key]
        self._seen[key] += 1
        return occurrence


def point_ids(document: UUID, embed_texts: Iterable[str]) -> list[UUID]:
    """Identify the points of one document, in order."""
    # As ``point_id`` does, with the part that all of them share encoded once: this runs for every chunk.
    shared = NAMESPACE.bytes + canonical(["point", str(document)])[:-1]
    occurrences = Occurrences()
    return [
        _hashed(b'%b,"%b",%d]' % (shared, digest_text(text).encode(), occurrences.next(text)))
        for text in embed_texts
    ]
