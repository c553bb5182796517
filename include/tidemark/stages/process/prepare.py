"""Prepare one document: from bytes to the difference between what is indexed and what should be.

The second half of the gates: partition only new bytes, chunk only new content, embed only new texts.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import PurePosixPath
from time import perf_counter
from typing import Protocol
from urllib.parse import unquote, urlsplit
from uuid import UUID

from tidemark.domain.blocks import MOVED_FROM, Match, blocking_text
from tidemark.domain.chunks import Chunk, ChunkedDocument, Payload, SectionPayload
from tidemark.domain.decide import Decision, Reason, Target
from tidemark.domain.documents import PartitionedDocument, RawDocument, Validators
from tidemark.domain.errors import DocumentError, TidemarkError
from tidemark.domain.hashing import fingerprint
from tidemark.domain.records import (
    ChunkRecord,
    DocumentRecord,
    RunDocument,
    SectionRecord,
    Tombstone,
)
from tidemark.stages.blocking import find_block
from tidemark.stages.chunking.choose import choose_profile
from tidemark.stages.chunking.chunk import chunk_document
from tidemark.stages.codec import Planned, decode_elements, encode_elements
from tidemark.stages.job import Dependencies, Job, is_later, raw_key
from tidemark.stages.process.payloads import (
    Citation,
    Indexed,
    chunk_payload,
    chunk_records,
    read_indexed,
    section_payload,
    section_records,
    without_right_words,
)


@dataclass(slots=True)
class Meter:
    """What the stages were asked to do, and for how long."""

    work: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str, count: int = 1) -> Iterator[None]:
        started = perf_counter()
        try:
            yield
            self.work[name] += count
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - started


@dataclass(frozen=True, slots=True)
class Context:
    """What the documents of one batch are processed with: the run, its ports, and what the plan aimed at."""

    job: Job
    deps: Dependencies
    target: Target
    meter: Meter = field(default_factory=Meter)


@dataclass(frozen=True, slots=True)
class Version:
    """The version of a document that is to be indexed."""

    planned: Planned
    raw_hash: str
    media_type: str
    charset: str | None
    validators: Validators
    fetched_at: datetime
    record: DocumentRecord | None
    in_flight: bool = False
    """An earlier write of the document was cut short: the index may hold more than the ledger says."""
    failed: RunDocument | None = None
    """This is the last good version, written again because a newer one failed: that is the event."""
    text_hash: str | None = None
    text_length: int | None = None
    modified_at: datetime | None = None
    link: str = ""

    @property
    def document_id(self) -> UUID:
        return self.planned.decision.document_id

    @property
    def uri(self) -> str:
        return self.planned.decision.uri

    @property
    def snapshot(self) -> bool:
        """Is this the version that the ledger has as live, whatever was fetched since?"""
        return self.planned.decision.snapshot or self.failed is not None

    def is_elsewhere(self, target: Target) -> bool:
        """Is what is live of the document in another generation than the one that is written?"""
        return self.record is not None and self.record.generation not in (None, target.generation)


def version_of(
    ctx: Context, planned: Planned, record: DocumentRecord | None, in_flight: bool
) -> Version | None:
    """The version to index; None when a later run has seen a newer one, or removed the document."""
    decision, observed = planned.decision, planned.observed
    if decision.snapshot:
        if record is None or record.raw_hash != decision.raw_hash:
            return None
        return as_indexed(planned, record, in_flight=in_flight)
    if observed is None or decision.raw_hash is None:
        return None
    if observed.raw_hash is None:
        return _not_modified(planned, record, in_flight=in_flight)
    fetched_at = observed.fetched_at
    if fetched_at is None:
        raise AssertionError(f"{observed.uri} was fetched at no time")
    if _is_older(ctx, decision, record, fetched_at):
        return None
    return Version(
        planned,
        decision.raw_hash,
        observed.media_type or "application/octet-stream",
        observed.charset,
        observed.validators,
        _first_fetched(record or _origin(ctx, decision), decision.raw_hash, fetched_at),
        record,
        in_flight,
        text_hash=observed.text_hash,
        text_length=observed.text_length,
        modified_at=observed.modified_at,
        link=observed.link,
    )


def as_indexed(planned: Planned, record: DocumentRecord, *, in_flight: bool) -> Version:
    """The version that the ledger has as live."""
    return Version(
        planned,
        record.raw_hash or "",
        record.media_type,
        record.charset,
        record.validators,
        record.fetched_at,
        record,
        in_flight,
        text_hash=record.text_hash,
        text_length=record.text_length,
        modified_at=record.modified_at,
        link=record.link,
    )


def _origin(ctx: Context, decision: Decision) -> DocumentRecord | None:
    """The record of the document that this one is under another address."""
    if decision.reason is not Reason.MOVED or decision.origin is None:
        return None
    return ctx.deps.ledger.documents.get(decision.origin)


def _not_modified(
    planned: Planned, record: DocumentRecord | None, *, in_flight: bool
) -> Version | None:
    """What the ledger knows of the bytes last fetched holds for them still."""
    if record is None or record.fetched_raw_hash != planned.decision.raw_hash:
        return None
    version = replace(
        as_indexed(planned, record, in_flight=in_flight), raw_hash=record.fetched_raw_hash
    )
    failure = record.failure
    if failure is None or failure.raw_hash != record.fetched_raw_hash:
        return version
    return replace(
        version,
        media_type=failure.media_type or record.media_type,
        charset=failure.charset,
        fetched_at=failure.first_at,
    )


def _is_older(
    ctx: Context, decision: Decision, record: DocumentRecord | None, fetched_at: datetime
) -> bool:
    """Was the document indexed from later bytes, or removed, after these were fetched?"""
    if record is None:
        tombstone = ctx.deps.ledger.tombstones.by_id([decision.document_id]).get(
            decision.document_id
        )
        # What was taken down stays out, however late this run fetched it.
        return tombstone is not None and (
            tombstone.taken_down or is_later(tombstone.removed_at, fetched_at, ctx.deps.clock)
        )
    other = record.raw_hash not in (None, decision.raw_hash)
    return other and is_later(record.fetched_at, fetched_at, ctx.deps.clock)


def _first_fetched(record: DocumentRecord | None, raw_hash: str, fetched_at: datetime) -> datetime:
    """When these bytes were first fetched: equal bytes fetched again are not a new version."""
    if record is not None and record.raw_hash == raw_hash:
        return record.fetched_at
    return fetched_at


def is_done(ctx: Context, version: Version) -> bool:
    """Has an earlier attempt of this run indexed the version already?"""
    record = version.record
    return (
        record is not None
        and record.last_run_id == ctx.job.run_id
        and record.raw_hash == version.raw_hash
        and record.fingerprints == ctx.target.fingerprints
        and record.generation == ctx.target.generation
        and not version.in_flight
    )


@dataclass(frozen=True, slots=True)
class Prepared:
    """A version and its difference to what is indexed.

    new: chunks whose points are to be embedded and written.
    moved: chunks whose points stay and whose payloads changed.
    kept: how many points stay, moved ones included.
    removed_points, removed_sections: ids the new version no longer has.
    changed_sections: positions of the sections to write.
    profile: name of the chunking profile that it was cut by.
    reused: how many of the new chunks have a vector that was made before, under another address or here.
    reusable: new chunks whose points are there, with a good dense vector.
    """

    version: Version
    title: str
    content_hash: str
    document: ChunkedDocument
    payloads: tuple[Payload, ...]
    section_payloads: tuple[SectionPayload, ...]
    chunk_records: dict[UUID, ChunkRecord]
    section_records: dict[UUID, SectionRecord]
    new: tuple[int, ...]
    moved: tuple[int, ...]
    kept: int
    removed_points: tuple[UUID, ...]
    removed_sections: tuple[UUID, ...]
    changed_sections: tuple[int, ...]
    seconds: float = 0.0
    profile: str = ""
    reused: int = 0
    reusable: frozenset[UUID] = frozenset()

    def new_chunks(self) -> list[Chunk]:
        return [self.document.chunks[i] for i in self.new]


@dataclass(frozen=True, slots=True)
class SameContent:
    """The bytes or the parser changed, and nothing that is indexed."""

    version: Version
    seconds: float = 0.0


class BlockedError(Exception):
    """A version is, or says the same as, what was taken down; the message says which.

    origin: the tombstone of the document that it is, where that was on its way to another address.
    """

    def __init__(self, reason: str, origin: Tombstone | None = None) -> None:
        super().__init__(reason)
        self.origin = origin


def prepare(ctx: Context, version: Version) -> Prepared | SameContent:
    """Partition and chunk one version as far as its gates demand.

    Raises ``DocumentError`` when the document is at fault, ``BlockedError`` when it was taken down.
    """
    started = perf_counter()
    partitioned = _elements(ctx, version)
    repair = version.in_flight or version.planned.decision.reason is Reason.REPAIR
    if not ctx.job.force and not repair and _same_content(ctx, version, partitioned):
        return SameContent(version, perf_counter() - started)
    with ctx.meter.stage("chunk"):
        try:
            profile = choose_profile(ctx.job.profile, version.uri, partitioned)
            document = chunk_document(
                version.document_id,
                partitioned,
                profile,
                ctx.deps.tokenizer,
                ctx.deps.code_parser,
                ctx.deps.sentence_embedder,
            )
        except TidemarkError:
            raise
        except Exception as error:
            # Whatever one document brings out in the chunker, the others go on, and its last version stays.
            raise DocumentError(
                "chunk",
                f"{version.uri} could not be cut into chunks ({type(error).__name__}: {error}).",
                "It is a defect worth reporting; another profile may do until it is mended.",
            ) from error
    prepared = _difference(ctx, version, partitioned, document)
    return replace(prepared, profile=profile.name, seconds=perf_counter() - started)


def _elements(ctx: Context, version: Version) -> PartitionedDocument:
    """The elements of the document, checked against the block list before they are kept."""
    _refuse_blocked(ctx, version, None)
    key = elements_key(version, ctx.deps.partitioner.fingerprint)
    try:
        if not ctx.job.force:
            partitioned = decode_elements(ctx.deps.artifacts.read(key))
            _refuse_blocked(ctx, version, partitioned)
            return partitioned
    except KeyError:
        pass  # Not partitioned under this fingerprint yet.
    try:
        content = ctx.deps.artifacts.read(raw_key(version.raw_hash))
    except KeyError:
        raise DocumentError(
            "fetch",
            f"The snapshot of {version.uri} is no longer in the artifact store.",
            "It is fetched again by the next run.",
        ) from None
    raw = RawDocument(version.uri, content, version.media_type, version.charset, version.fetched_at)
    with ctx.meter.stage("partition"):
        partitioned = ctx.deps.partitioner.partition(raw)
    _refuse_blocked(ctx, version, partitioned)
    ctx.deps.artifacts.write(key, encode_elements(partitioned))
    return partitioned


def _refuse_blocked(
    ctx: Context, version: Version, partitioned: PartitionedDocument | None
) -> None:
    """Raise ``BlockedError`` for a version that was taken down.

    The crawl has asked for all that it could tell. What remains are takedowns since, and texts that are known
    only once they are partitioned. What a document had before stays, and so does what another rightly has.
    """
    blocks, record, decision = ctx.job.blocks, version.record, version.planned.decision
    if decision.reason is Reason.MOVED and decision.origin is not None and partitioned is None:
        origin = ctx.deps.ledger.tombstones.by_id([decision.origin]).get(decision.origin)
        if origin is not None and origin.taken_down:
            raise BlockedError(Match(MOVED_FROM, origin).sentence, origin)
    if version.uri in blocks.by_uri:
        raise BlockedError(blocks.reason(version.uri))
    if version.snapshot:
        return
    texts = [version.text_hash or ""]
    same = False
    if partitioned is not None and blocks.by_text:
        texts.append(blocking_text(partitioned))
        same = record is not None and record.content_hash == partitioned.content_hash
    texts = [text for text in texts if text]
    match = find_block(ctx.job, ctx.deps, version.raw_hash, texts, record, same_content=same)
    if match is not None:
        raise BlockedError(match.sentence)


class Snapshot(Protocol):
    """Bytes of a document and what they are read as: a Version, a VersionRecord, a DocumentRecord."""

    @property
    def uri(self) -> str: ...
    @property
    def raw_hash(self) -> str | None: ...
    @property
    def media_type(self) -> str: ...
    @property
    def charset(self) -> str | None: ...


def elements_key(snapshot: Snapshot, partition_fingerprint: str) -> str:
    """Where the elements are kept: everything that decides them is in the name."""
    # Its end tells how the bytes are read, and the whole is the title of a document that gives itself none.
    name = PurePosixPath(unquote(urlsplit(snapshot.uri).path)).name
    made_by = fingerprint(
        "elements",
        {
            "partition": partition_fingerprint,
            "media_type": snapshot.media_type,
            "charset": snapshot.charset,
            "name": name,
        },
    )
    return f"elements/{snapshot.raw_hash}.{made_by}"


def _same_content(ctx: Context, version: Version, partitioned: PartitionedDocument) -> bool:
    record = version.record
    return (
        record is not None
        and record.content_hash == partitioned.content_hash
        and record.fingerprints is not None
        and record.fingerprints.chunk == ctx.target.fingerprints.chunk
        and record.fingerprints.embed == ctx.target.fingerprints.embed
        and record.generation == ctx.target.generation
        and record.failure is None
    )


def _difference(
    ctx: Context,
    version: Version,
    partitioned: PartitionedDocument,
    document: ChunkedDocument,
) -> Prepared:
    title = partitioned.title or title_from_uri(version.uri)
    cited = Citation(
        version.document_id,
        ctx.job.source,
        version.uri,
        title,
        partitioned.language,
        ctx.job.labels,
        version.fetched_at,
        ctx.target.generation,
        version.modified_at,
        version.link,
    )
    payloads = tuple(chunk_payload(chunk, cited) for chunk in document.chunks)
    sections = tuple(section_payload(section, cited) for section in document.sections)
    old = _indexed(ctx, version)
    new_chunks = {
        key: replace(record, vector_hash=old.vectors.get(key))
        for key, record in chunk_records(document, payloads).items()
    }
    new_sections = section_records(document, sections)
    # A point's id holds its text and its generation holds one model, so a point that is there has the
    # right vector; only a forced run embeds it again, and one that found another vector in its place.
    bad = [] if ctx.job.force else without_right_words(ctx.deps.lexical, document.chunks, old)
    new = tuple(
        i
        for i, chunk in enumerate(document.chunks)
        if ctx.job.force
        or chunk.chunk_id not in old.points
        or chunk.chunk_id in old.unusable
        or chunk.chunk_id in bad
    )
    written = set(new)
    moved = tuple(
        i
        for i, chunk in enumerate(document.chunks)
        if i not in written
        and old.points[chunk.chunk_id] != new_chunks[chunk.chunk_id].payload_hash
    )
    return Prepared(
        version=version,
        title=title,
        content_hash=partitioned.content_hash,
        document=document,
        payloads=payloads,
        section_payloads=sections,
        chunk_records=new_chunks,
        section_records=new_sections,
        new=new,
        reusable=frozenset(bad),
        moved=moved,
        kept=len(document.chunks) - len(new),
        removed_points=tuple(k for k in old.points if k not in new_chunks),
        removed_sections=tuple(k for k in old.sections if k not in new_sections),
        changed_sections=tuple(
            i
            for i, section in enumerate(document.sections)
            if ctx.job.force
            or old.sections.get(section.section_id) != new_sections[section.section_id].payload_hash
        ),
    )


def _indexed(ctx: Context, version: Version) -> Indexed:
    """What the target generation holds of the document; other generations are left as they are."""
    document, record, generation = version.document_id, version.record, ctx.target.generation
    ours = record is not None and record.generation == generation
    chunks = ctx.deps.ledger.documents.chunks(document) if ours else []
    written = {c.point_id: c.vector_hash for c in chunks}
    # Where its row tells of another generation, this one may have it of old: a model was tried and given up.
    repair = version.in_flight or version.planned.decision.reason is Reason.REPAIR
    if repair or version.is_elsewhere(ctx.target):
        return read_indexed(ctx.deps.index, generation, document, written)
    if not ours:
        return Indexed({}, {})
    return Indexed(
        {c.point_id: c.payload_hash for c in chunks},
        {s.section_id: s.payload_hash for s in ctx.deps.ledger.documents.sections(document)},
        written,
    )


def title_from_uri(uri: str) -> str:
    """A title for a document that has none: the last part of its address."""
    path = PurePosixPath(unquote(urlsplit(uri).path))
    return path.name or urlsplit(uri).netloc or uri
