"""Chunking files without a store: what `tidemark chunk` prints."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tidemark.domain.errors import ConfigurationError, DocumentError
from tidemark.domain.identity import document_id
from tidemark.domain.model import (
    ChunkedDocument,
    CrawlEnd,
    Outcome,
    PartitionedDocument,
    Profile,
    RawDocument,
    Validators,
)
from tidemark.stages.chunk import chunk_document
from tidemark.wiring import Workshop, adhoc_files, read_file

SOURCE = "chunk"
"""The name under which documents outside any source get their ids."""


def chunk_paths(
    shop: Workshop, paths: list[Path], profile: str, base_url: str | None
) -> Iterator[dict[str, Any]]:
    """Chunk files and folders, one document at a time, in the order of their paths.

    A document that fails is a result too, with its error. Raises ``ConfigurationError`` for a path that
    does not exist or a profile that is not declared.
    """
    chosen = shop.declarations.profile(profile)
    for path in paths:
        if not path.exists():
            raise ConfigurationError(f"{path} does not exist.", "Name a file or a folder.")
    for path in paths:
        for raw in _documents(shop, path, base_url):
            if isinstance(raw, RawDocument):
                yield _chunked(shop, raw, chosen)
            else:
                yield _result(raw[0], "", None, ChunkedDocument(), raw[1])


def _documents(
    shop: Workshop, path: Path, base_url: str | None
) -> Iterator[RawDocument | tuple[str, str]]:
    """The documents under a path; of one that cannot be read, its URI and why."""
    if path.is_file():
        raw = read_file(path)
        yield _renamed(raw, path.name, base_url)
        return
    root = path.expanduser().resolve()
    for value in shop.source(adhoc_files(path)).crawl(_Nothing()):
        if isinstance(value, CrawlEnd):
            if not value.complete:
                raise ConfigurationError(f"{path}: {value.problem}", "Name a folder with files.")
        elif value.raw is not None:
            yield _renamed(value.raw, _relative(value.raw.uri, root), base_url)
        elif value.outcome is Outcome.FAILED:
            yield value.item.uri, value.detail


def _relative(uri: str, root: Path) -> str:
    return uri.removeprefix(root.as_uri()).lstrip("/")


def _renamed(raw: RawDocument, relative: str, base_url: str | None) -> RawDocument:
    if base_url is None:
        return raw
    uri = base_url.rstrip("/") + "/" + quote(relative, safe="/%")
    return RawDocument(uri, raw.content, raw.media_type, raw.charset, raw.fetched_at)


def _chunked(shop: Workshop, raw: RawDocument, profile: Profile) -> dict[str, Any]:
    try:
        partitioned = shop.partitioner.partition(raw)
        document = chunk_document(
            document_id(SOURCE, raw.uri), partitioned, profile, shop.tokenizer
        )
    except DocumentError as error:
        return _result(raw.uri, raw.media_type, None, ChunkedDocument(), str(error))
    return _result(raw.uri, raw.media_type, partitioned, document, None)


def _result(
    uri: str,
    media_type: str,
    partitioned: PartitionedDocument | None,
    document: ChunkedDocument,
    error: str | None,
) -> dict[str, Any]:
    return {
        "document": {
            "uri": uri,
            "title": partitioned.title if partitioned else "",
            "media_type": media_type,
            "content_hash": partitioned.content_hash if partitioned else None,
            "language": partitioned.language if partitioned else None,
            "error": error,
        },
        "sections": [
            {
                "section_id": str(section.section_id),
                "parent_section_id": str(section.parent_section_id)
                if section.parent_section_id
                else None,
                "heading_path": list(section.heading_path),
                "ordinal": section.ordinal,
                "text": section.text,
                "page_number": section.page_number,
            }
            for section in document.sections
        ],
        "chunks": [
            {
                "chunk_id": str(chunk.chunk_id),
                "section_id": str(chunk.section_id),
                "chunk_index": chunk.chunk_index,
                "text": chunk.text,
                "embed_text": chunk.embed_text,
                "token_count": chunk.token_count,
                "heading_path": list(chunk.heading_path),
                "page_number": chunk.page_number,
                "kinds": list(chunk.kinds),
                "content_hash": chunk.content_hash,
            }
            for chunk in document.chunks
        ],
    }


class _Nothing:
    """A Known that knows nothing: everything is read."""

    def validators(self, uri: str) -> Validators | None:
        return None

    def uris(self) -> Iterator[str]:
        return iter(())

    def content(self, uri: str) -> tuple[bytes, str] | None:
        return None
