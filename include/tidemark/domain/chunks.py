"""Sections and chunks of a document, their fingerprints, and the points that they become."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from tidemark.domain.hashing import Canonical, as_json, fingerprint


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with the body under it (parent): the text handed to a reader or an LLM.

    parent_section_id: the section whose heading is above this one's, None at the top.
    heading_path: the headings above it and its own, outermost first; () for text before any heading.
    ordinal: position in the document, from 0.
    text: its own body, blocks parted by blank lines; with all its sub-sections, their headings between, when
        chunks of theirs name this section as the whole to read (it fits the profile's ``parent_tokens``).
    page_number, page_end: first and last page, where the format has pages.
    anchor: the fragment of its heading, without "#".
    """

    section_id: UUID
    document_id: UUID
    parent_section_id: UUID | None
    heading_path: tuple[str, ...]
    ordinal: int
    text: str
    page_number: int | None = None
    page_end: int | None = None
    anchor: str | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """An embeddable piece of exactly one Section (child).

    chunk_index: position in the document, from 0.
    text: what is cited, as it stood.
    embed_text: what is embedded: the heading path, then the text.
    token_count: of ``embed_text`` with the special tokens, by the embedder's own tokenizer.
    kinds: the kinds of the elements in it, sorted, each once.
    content_hash: of ``text``.
    start, end: where in its section's text it stands, in characters, half open; what ``text`` repeats above
        that (a table's header, a signature) is not counted.
    """

    chunk_id: UUID
    document_id: UUID
    section_id: UUID
    chunk_index: int
    text: str
    embed_text: str
    token_count: int
    heading_path: tuple[str, ...]
    page_number: int | None
    kinds: tuple[str, ...]
    content_hash: str
    anchor: str | None = None
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class ChunkedDocument:
    """The sections of one document and their chunks, both in document order."""

    sections: tuple[Section, ...] = ()
    chunks: tuple[Chunk, ...] = ()


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """One fingerprint per gate: of the code and options behind that gate alone.

    They are chained through the hashes of what flows between the gates, not through each other: a new
    parser that finds the same elements re-chunks nothing, and re-chunking to equal texts embeds nothing.
    """

    fetch: str
    partition: str
    chunk: str
    embed: str

    def up_to(self, stage: str) -> str:
        """Of what was done with a document's bytes when it failed in a stage ("partition", "chunk", …)."""
        parts = {"partition": self.partition}
        if stage != "partition":
            parts["chunk"] = self.chunk
        if stage not in ("partition", "chunk"):
            parts["embed"] = self.embed
        return fingerprint("up_to", parts)


@dataclass(frozen=True, slots=True)
class SparseVector:
    """A lexical vector: token ids and their weights, of equal length."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Payload:
    """What a point of a Chunk carries beside its vectors (design: stores).

    link: where a reader opens this very version, "" when that is ``source_uri``.
    """

    document_id: UUID
    section_id: UUID
    source: str
    source_uri: str
    title: str
    heading_path: tuple[str, ...]
    chunk_index: int
    page_number: int | None
    text: str
    kinds: tuple[str, ...]
    language: str | None
    content_hash: str
    fetched_at: datetime
    generation: int
    start: int
    end: int
    labels: tuple[str, ...] = ()
    modified_at: datetime | None = None
    link: str = ""

    def as_dict(self) -> dict[str, Canonical]:
        return dict(as_json(self))


@dataclass(frozen=True, slots=True)
class SectionPayload:
    """What a point of a Section carries; it has no vectors."""

    document_id: UUID
    parent_section_id: UUID | None
    source: str
    source_uri: str
    title: str
    heading_path: tuple[str, ...]
    ordinal: int
    text: str
    page_number: int | None
    page_end: int | None
    generation: int

    def as_dict(self) -> dict[str, Canonical]:
        return dict(as_json(self))


@dataclass(frozen=True, slots=True)
class PointWrite:
    """A point to upsert: a new chunk with its vectors, or a section without any.

    dense: of the embedder's dimension, normalised to length 1; None for a section.
    payload: JSON values only.
    """

    point_id: UUID
    payload: dict[str, Canonical]
    dense: tuple[float, ...] | None = None
    lexical: SparseVector | None = None


@dataclass(frozen=True, slots=True)
class StoredPoint:
    """A point as the index returns it: ``score`` when it answers a query, its vectors when asked for.

    lexical: None also when it has no word.
    """

    point_id: UUID
    payload: dict[str, Canonical]
    score: float = 0.0
    dense: tuple[float, ...] | None = None
    lexical: SparseVector | None = None
