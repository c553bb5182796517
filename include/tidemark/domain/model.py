"""The values that flow between stages."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from tidemark.domain.hashing import Canonical, digest_of, fingerprint
from tidemark.domain.inspection import Suspicion


@dataclass(frozen=True, slots=True)
class Validators:
    """What a source says about a version of an item without handing over its bytes.

    etag: HTTP entity tag, as sent.
    last_modified: HTTP Last-Modified, as sent.
    size: bytes.
    mtime: seconds since the epoch.
    revision: a version name of the store (an object version, a commit).
    """

    etag: str | None = None
    last_modified: str | None = None
    size: int | None = None
    mtime: float | None = None
    revision: str | None = None

    def __bool__(self) -> bool:
        return self != Validators()


@dataclass(frozen=True, slots=True)
class SourceItem:
    """One listed URI (canonical) with its validators."""

    uri: str
    validators: Validators = Validators()


@dataclass(frozen=True, slots=True)
class RawDocument:
    """Fetched bytes of one item.

    uri: canonical, after redirects; what the document is known by.
    content: the bytes as served, after transfer and content decoding.
    media_type: lower case, without parameters, e.g. "text/html".
    charset: as declared by the server or the file, else None.
    fetched_at: UTC.
    modified_at: when its content was last changed, as the source tells (UTC), None when it does not.
    link: where a reader opens this very version, "" when that is the URI.
    """

    uri: str
    content: bytes
    media_type: str
    charset: str | None
    fetched_at: datetime
    validators: Validators = Validators()
    modified_at: datetime | None = None
    link: str = ""


class Outcome(StrEnum):
    """What became of one item during a crawl."""

    FETCHED = "fetched"
    NOT_MODIFIED = "not_modified"
    GONE = "gone"
    """The source says that it does not exist any more (404, 410): evidence of removal."""
    FAILED = "failed"
    """An outage or a refusal: evidence of nothing; the live version stays."""
    EXCLUDED = "excluded"
    """Present but not wanted (robots.txt, noindex, a pattern): never indexed."""
    TOO_LARGE = "too_large"
    """Wanted and larger than is fetched: a fault of its own; its last good version stays."""
    MOVED = "moved"
    """It is now, for good, at ``target``, which is in the same listing: the document moves there."""
    ALIAS = "alias"
    """It shows the document at ``target``, which is in the same listing: kept once, there."""


@dataclass(frozen=True, slots=True)
class CrawlItem:
    """The outcome of one item, as a source yields it.

    raw: only when FETCHED.
    target: the canonical URI of the document, only when MOVED or ALIAS.
    """

    item: SourceItem
    outcome: Outcome
    raw: RawDocument | None = None
    detail: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class CrawlEnd:
    """The last value that a source yields.

    complete: every item was listed, so that absence means something.
    authoritative: absence from a complete listing is proof at once (a folder), not a hint (links).
    problem: why it is not complete, for a person.
    state: what ``Known.state`` tells the next crawl once this one is indexed (a commit); "" for nothing.
    """

    complete: bool
    authoritative: bool
    problem: str = ""
    state: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """One line of a stored listing: an item, its outcome and the key of its bytes.

    raw_hash: of the fetched bytes when FETCHED, else None.
    size: bytes, when known.
    target: the document's canonical URI when MOVED or ALIAS; when EXCLUDED as a copy of one that was taken
        down, the address of that.
    modified_at, link: as in RawDocument.
    text_hash, text_length, suspicion: of the Inspection, for pages that were inspected.
    """

    uri: str
    outcome: Outcome
    validators: Validators = Validators()
    raw_hash: str | None = None
    media_type: str | None = None
    charset: str | None = None
    fetched_at: datetime | None = None
    size: int | None = None
    detail: str = ""
    target: str = ""
    modified_at: datetime | None = None
    link: str = ""
    text_hash: str | None = None
    text_length: int | None = None
    suspicion: Suspicion | None = None


CELL = "\t"
"""Between the cells of a table's row: white space, so that a row says no more than the document."""


class ElementKind(StrEnum):
    """The type of a block, as partitioning tells it."""

    TITLE = "title"
    TEXT = "text"
    LIST_ITEM = "list_item"
    TERM = "term"
    DEFINITION = "definition"
    TABLE = "table"
    CODE = "code"
    QUOTE = "quote"
    CAPTION = "caption"
    FORMULA = "formula"


@dataclass(frozen=True, slots=True)
class Element:
    """One typed block of a document.

    kind: what it is.
    text: its text; for a table one line a row, cells parted by ``CELL``; for code verbatim.
    level: of a TITLE 1 (outermost) to 6; of a list item its nesting from 1; else None.
    page_number: from 1, where the format has pages.
    anchor: the fragment under which the page shows it, without "#".
    header_rows: of a TABLE, how many leading lines of ``text`` are its header.
    syntax: of CODE, the programming language by its canonical name in lower case, "" when unknown.
    """

    kind: ElementKind
    text: str
    level: int | None = None
    page_number: int | None = None
    anchor: str | None = None
    header_rows: int = 0
    syntax: str = ""

    def canonical(self) -> Canonical:
        """Everything that decides what is indexed; white space is folded except in code."""
        if self.kind is ElementKind.CODE:
            text = self.text.rstrip()
        elif self.kind is ElementKind.TABLE:
            text = "\n".join(
                CELL.join(map(_folded, row.split(CELL))) for row in self.text.split("\n")
            )
        else:
            text = _folded(self.text)
        fields: list[Canonical] = [
            self.kind.value,
            text,
            self.level,
            self.page_number,
            self.anchor,
            self.header_rows,
        ]
        # Only where it is set: the hashes of all other elements stay what they were before there was one.
        return [*fields, self.syntax] if self.syntax else fields


def _folded(text: str) -> str:
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


@dataclass(frozen=True, slots=True)
class Definition:
    """A range of a code text that a reader takes as one; offsets are characters from the text's begin.

    start, end: of the whole, with its decorators, attributes and the comment directly above it.
    level: how many other definitions it is in.
    name: as declared, "" when it has none.
    kind: "class" (or another holder of members), "function", "type", "block" (a call that is handed a
        function, as tests are written) or "unit": lines that belong together and define nothing (a string or
        an argument list over several lines, a multi-line statement).
    body: where the body begins, ``end`` when there is none; ``text[start:body]`` is the signature.
    head: where the declaration itself begins, below its comments and decorators.
    """

    start: int
    end: int
    level: int
    name: str
    kind: str
    body: int
    head: int


@dataclass(frozen=True, slots=True)
class PartitionedDocument:
    """What partitioning made of one RawDocument.

    title: the document's own title, "" when it has none.
    language: ISO 639-1 code when declared or known, else None.
    """

    title: str
    elements: tuple[Element, ...]
    language: str | None = None

    @property
    def content_hash(self) -> str:
        """Hash of the normalised elements: equal when only furniture, markup or white space changed."""
        return digest_of(
            [_folded(self.title), self.language, [e.canonical() for e in self.elements]]
        )


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
        return {
            "document_id": str(self.document_id),
            "section_id": str(self.section_id),
            "source": self.source,
            "source_uri": self.source_uri,
            "title": self.title,
            "heading_path": list(self.heading_path),
            "chunk_index": self.chunk_index,
            "page_number": self.page_number,
            "text": self.text,
            "kinds": list(self.kinds),
            "language": self.language,
            "content_hash": self.content_hash,
            "fetched_at": self.fetched_at.isoformat(),
            "generation": self.generation,
            "start": self.start,
            "end": self.end,
            "labels": list(self.labels),
            "modified_at": self.modified_at.isoformat() if self.modified_at else None,
            "link": self.link,
        }


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
        return {
            "document_id": str(self.document_id),
            "parent_section_id": str(self.parent_section_id) if self.parent_section_id else None,
            "source": self.source,
            "source_uri": self.source_uri,
            "title": self.title,
            "heading_path": list(self.heading_path),
            "ordinal": self.ordinal,
            "text": self.text,
            "page_number": self.page_number,
            "page_end": self.page_end,
            "generation": self.generation,
        }


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
