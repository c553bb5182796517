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

from tidemark.domain.chunks import Chunk, ChunkedDocument, Payload, SectionPayload
from tidemark.domain.decide import Reason, Target
from tidemark.domain.documents import PartitionedDocument, RawDocument, Validators
from tidemark.domain.errors import DocumentError, TidemarkError
from tidemark.domain.hashing import fingerprint
from tidemark.domain.profile import Profile
from tidemark.domain.records import ChunkRecord, DocumentRecord, RunDocument, SectionRecord
from tidemark.stages.chunking.choose import choose_profile
from tidemark.stages.chunking.chunk import chunk_document
from tidemark.stages.codec import Planned, decode_elements, encode_elements
from tidemark.stages.job import Dependencies, Job, raw_key
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
    def uri(self) -> str:
        return self.planned.decision.uri

    @property
    def snapshot(self) -> bool:
        """Is this the version that the ledger has as live, whatever was fetched since?"""
        return self.planned.decision.snapshot or self.failed is not None


@dataclass(frozen=True, slots=True)
class Prepared:
    """A version and its difference to what is indexed.

    new: chunks whose points are to be embedded and written.
    moved: chunks whose points stay and whose payloads changed.
    kept: how many points stay, moved ones included.
    removed_points, removed_sections: ids the new version no longer has.
    changed_sections: positions of the sections to write.
    profile: name of the chunking profile that it was cut by.
    carried: how many of the new chunks have a vector that was made before, under another address or here.
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
    carried: int = 0
    reusable: frozenset[UUID] = frozenset()

    def new_chunks(self) -> list[Chunk]:
        return [self.document.chunks[i] for i in self.new]


@dataclass(frozen=True, slots=True)
class SameContent:
    """The bytes or the parser changed, and nothing that is indexed."""

    version: Version
    seconds: float = 0.0


def prepare(
    job: Job, deps: Dependencies, target: Target, version: Version, meter: Meter
) -> Prepared | SameContent:
    """Partition and chunk one version as far as its gates demand.

    Raises ``DocumentError`` when the document is at fault.
    """
    started = perf_counter()
    partitioned = _elements(job, deps, version, meter)
    content_hash = partitioned.content_hash
    record = version.record
    repair = version.in_flight or version.planned.decision.reason is Reason.REPAIR
    trusted = not job.force and not repair
    if trusted and record is not None and _same_content(record, content_hash, target):
        return SameContent(version, perf_counter() - started)
    with meter.stage("chunk"):
        profile, document = _chunked(job, deps, version, partitioned)
    prepared = _difference(job, deps, target, version, partitioned, document)
    return replace(
        prepared,
        content_hash=content_hash,
        profile=profile.name,
        seconds=perf_counter() - started,
    )


def _chunked(
    job: Job, deps: Dependencies, version: Version, partitioned: PartitionedDocument
) -> tuple[Profile, ChunkedDocument]:
    try:
        profile = choose_profile(job.profile, version.uri, partitioned)
        document = chunk_document(
            version.planned.decision.document_id,
            partitioned,
            profile,
            deps.tokenizer,
            deps.code_parser,
            deps.sentence_embedder,
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
    return profile, document


def _elements(job: Job, deps: Dependencies, version: Version, meter: Meter) -> PartitionedDocument:
    key = elements_key(version, deps.partitioner.fingerprint)
    if not job.force:
        try:
            return decode_elements(deps.artifacts.read(key))
        except KeyError:
            pass  # Not partitioned under this fingerprint yet.
    try:
        content = deps.artifacts.read(raw_key(version.raw_hash))
    except KeyError:
        raise DocumentError(
            "fetch",
            f"The snapshot of {version.uri} is no longer in the artifact store.",
            "It is fetched again by the next run.",
        ) from None
    raw = RawDocument(version.uri, content, version.media_type, version.charset, version.fetched_at)
    with meter.stage("partition"):
        partitioned = deps.partitioner.partition(raw)
    deps.artifacts.write(key, encode_elements(partitioned))
    return partitioned


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


def _same_content(record: DocumentRecord, content_hash: str, target: Target) -> bool:
    return (
        record.content_hash == content_hash
        and record.fingerprints is not None
        and record.fingerprints.chunk == target.fingerprints.chunk
        and record.fingerprints.embed == target.fingerprints.embed
        and record.generation == target.generation
        and record.failure is None
    )


def _difference(
    job: Job,
    deps: Dependencies,
    target: Target,
    version: Version,
    partitioned: PartitionedDocument,
    document: ChunkedDocument,
) -> Prepared:
    decision = version.planned.decision
    title = partitioned.title or title_from_uri(decision.uri)
    cited = Citation(
        decision.document_id,
        job.source,
        decision.uri,
        title,
        partitioned.language,
        job.labels,
        version.fetched_at,
        target.generation,
        version.modified_at,
        version.link,
    )
    payloads = tuple(chunk_payload(chunk, cited) for chunk in document.chunks)
    sections = tuple(section_payload(section, cited) for section in document.sections)
    old = _indexed(deps, target, version)
    new_chunks = {
        key: replace(record, vector_hash=old.vectors.get(key))
        for key, record in chunk_records(document, payloads).items()
    }
    new_sections = section_records(document, sections)
    # A point's id holds its text and its generation holds one model, so a point that is there has the
    # right vector; only a forced run embeds it again, and one that found another vector in its place.
    bad = [] if job.force else without_right_words(deps.lexical, document.chunks, old)
    new = tuple(
        i
        for i, chunk in enumerate(document.chunks)
        if job.force
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
        content_hash="",
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
            if job.force
            or old.sections.get(section.section_id) != new_sections[section.section_id].payload_hash
        ),
    )


def _indexed(deps: Dependencies, target: Target, version: Version) -> Indexed:
    """What the target generation holds of the document; other generations are left as they are."""
    document, record = version.planned.decision.document_id, version.record
    ours = record is not None and record.generation == target.generation
    # Its row tells of another generation: this one may have it of old, when a model was tried and given up.
    elsewhere = not ours and record is not None and record.generation is not None
    chunks = deps.ledger.chunks(document) if ours else []
    written = {c.point_id: c.vector_hash for c in chunks}
    if version.in_flight or elsewhere or version.planned.decision.reason is Reason.REPAIR:
        return read_indexed(deps.index, target.generation, document, written)
    if not ours:
        return Indexed({}, {})
    return Indexed(
        {c.point_id: c.payload_hash for c in chunks},
        {s.section_id: s.payload_hash for s in deps.ledger.sections(document)},
        written,
    )


def title_from_uri(uri: str) -> str:
    """A title for a document that has none: the last part of its address."""
    path = PurePosixPath(unquote(urlsplit(uri).path))
    return path.name or urlsplit(uri).netloc or uri
