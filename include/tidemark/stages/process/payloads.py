"""What a document's chunks and sections look like in the index and in the ledger."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from tidemark.domain.chunks import Chunk, ChunkedDocument, Payload, Section, SectionPayload
from tidemark.domain.hashing import (
    agree,
    are_known,
    checksum,
    digest_of,
    digest_text,
    lexical_hash,
    point_part,
    section_part,
    vectors_hash,
)
from tidemark.domain.records import ChunkRecord, SectionRecord
from tidemark.ports.embedding import LexicalEncoder
from tidemark.ports.index import VectorIndex


@dataclass(frozen=True, slots=True)
class Citation:
    """What every point of a document says about where it comes from."""

    document_id: UUID
    source: str
    uri: str
    title: str
    language: str | None
    labels: tuple[str, ...]
    fetched_at: datetime
    generation: int
    modified_at: datetime | None = None
    link: str = ""


def chunk_payload(chunk: Chunk, cited: Citation) -> Payload:
    return Payload(
        document_id=cited.document_id,
        section_id=chunk.section_id,
        source=cited.source,
        source_uri=with_fragment(cited.uri, chunk.anchor),
        title=cited.title,
        heading_path=chunk.heading_path,
        chunk_index=chunk.chunk_index,
        page_number=chunk.page_number,
        text=chunk.text,
        kinds=chunk.kinds,
        language=cited.language,
        content_hash=chunk.content_hash,
        fetched_at=cited.fetched_at,
        generation=cited.generation,
        start=chunk.start,
        end=chunk.end,
        labels=cited.labels,
        modified_at=cited.modified_at,
        link=with_fragment(cited.link, chunk.anchor) if cited.link else "",
    )


def section_payload(section: Section, cited: Citation) -> SectionPayload:
    return SectionPayload(
        document_id=cited.document_id,
        parent_section_id=section.parent_section_id,
        source=cited.source,
        source_uri=with_fragment(cited.uri, section.anchor),
        title=cited.title,
        heading_path=section.heading_path,
        ordinal=section.ordinal,
        text=section.text,
        page_number=section.page_number,
        page_end=section.page_end,
        generation=cited.generation,
    )


def with_fragment(uri: str, anchor: str | None) -> str:
    """A URI that leads to the place in the page, where the page has a name for it."""
    return f"{uri}#{anchor}" if anchor and "#" not in uri else uri


def chunk_records(
    document: ChunkedDocument, payloads: Sequence[Payload]
) -> dict[UUID, ChunkRecord]:
    return {
        chunk.chunk_id: ChunkRecord(
            chunk.chunk_id,
            chunk.section_id,
            chunk.chunk_index,
            digest_text(chunk.embed_text),
            digest_of(payload.as_dict()),
            chunk.token_count,
        )
        for chunk, payload in zip(document.chunks, payloads, strict=True)
    }


def section_records(
    document: ChunkedDocument, payloads: Iterable[SectionPayload]
) -> dict[UUID, SectionRecord]:
    return {
        section.section_id: SectionRecord(
            section.section_id,
            section.parent_section_id,
            section.ordinal,
            section.heading_path,
            digest_of(payload.as_dict()),
        )
        for section, payload in zip(document.sections, payloads, strict=True)
    }


@dataclass(frozen=True, slots=True)
class Indexed:
    """What the index holds of one document.

    points, sections: payload hashes by id.
    vectors: ``vectors_hash`` of points by id, as far as it is known.
    unusable: points without a dense vector, or with another one than was written.
    asked: was the index itself asked?
    """

    points: dict[UUID, str]
    sections: dict[UUID, str]
    vectors: dict[UUID, str | None] = field(default_factory=dict)
    unusable: frozenset[UUID] = frozenset()
    asked: bool = False


def read_indexed(
    index: VectorIndex,
    generation: int,
    document: UUID,
    written: Mapping[UUID, str | None] | None = None,
) -> Indexed:
    """Ask the index itself what it holds of a document, where the ledger cannot be trusted to know.

    ``written``: the ``vectors_hash`` of points as far as the ledger knows it, to compare with. Without, the
    vectors are not looked at.
    """
    where: dict[str, str | list[str]] = {"document_id": str(document)}
    points: dict[UUID, str] = {}
    vectors: dict[UUID, str | None] = {}
    unusable = set()
    for point in index.scan_points(generation, where, vectors=written is not None):
        points[point.point_id] = digest_of(point.payload)
        if written is None:
            continue
        found = vectors_hash(point.dense, point.lexical) if point.dense else None
        vectors[point.point_id] = found
        # Whether the lexical vector is right the text tells: it costs nothing to make it again.
        if found is None or not agree(written.get(point.point_id), found.partition(".")[0]):
            unusable.add(point.point_id)
    sections = {s.point_id: digest_of(s.payload) for s in index.scan_sections(generation, where)}
    return Indexed(points, sections, vectors, frozenset(unusable), asked=written is not None)


def without_right_words(
    lexical: LexicalEncoder, chunks: Sequence[Chunk], indexed: Indexed
) -> list[UUID]:
    """Points whose dense vector is good and whose lexical one is not that of their text.

    Nothing where the index was not asked.
    """
    usable = indexed.points.keys() - indexed.unusable if indexed.asked else set()
    there = [chunk for chunk in chunks if chunk.chunk_id in usable]
    return [
        chunk.chunk_id
        for chunk, vector in zip(there, lexical.encode([c.embed_text for c in there]), strict=True)
        if not (indexed.vectors[chunk.chunk_id] or "").endswith(f".{lexical_hash(vector)}")
    ]


def checksum_of(chunks: Iterable[ChunkRecord], sections: Iterable[SectionRecord]) -> str | None:
    """The checksum of a document as it is written; None when the vectors of some points are not known."""
    parts = [section_part(s.section_id, s.payload_hash) for s in sections]
    for chunk in chunks:
        if chunk.vector_hash is None or not are_known(chunk.vector_hash):
            return None
        parts.append(point_part(chunk.point_id, chunk.payload_hash, chunk.vector_hash))
    return checksum(parts)
