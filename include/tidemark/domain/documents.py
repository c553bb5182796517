"""The values that flow between stages."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from tidemark.domain.hashing import Canonical, digest_of

# What a first, cheap look at a fetched page tells: how much it says, and whether to believe it.


class Anomaly(StrEnum):
    """Why a page that was answered with success is probably not what its address stands for."""

    SOFT_404 = "soft_404"
    """It says that there is nothing here, with a status that says otherwise."""
    LOGIN_WALL = "login_wall"
    CONSENT_WALL = "consent_wall"
    PARKED = "parked"
    """The domain is for sale, or a host's placeholder answers."""
    NEEDS_JAVASCRIPT = "needs_javascript"
    """An empty shell that a browser would fill."""
    SHRUNK = "shrunk"
    """It lost most of its text since the version that is live."""
    REPEATED_TEXT = "repeated_text"
    """Several addresses suddenly show one text."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """A page or a text, looked at without partitioning it.

    text_hash: of its main text, white space folded; equal for pages that differ in boilerplate alone.
    text_length: of that text, in characters.
    blocks: 64-bit digests of the blocks left after cleaning by structure, in order, each once; what is on
        most pages of a site is boilerplate (``domain.boilerplate``).
    anomaly, detail: why the page is not to be believed, and on which evidence.
    """

    text_hash: str
    text_length: int
    blocks: tuple[int, ...] = ()
    anomaly: Anomaly | None = None
    detail: str = ""


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
    text_hash, text_length, anomaly: of the Inspection, for pages that were inspected.
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
    anomaly: Anomaly | None = None


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
        """Hash of the normalised elements: equal when only boilerplate, markup or white space changed."""
        return digest_of(
            [_folded(self.title), self.language, [e.canonical() for e in self.elements]]
        )
