"""Chunk files; no store is touched."""

import os
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import typer
from rich.console import Group, RenderableType
from rich.text import Text

from tidemark.cli.adhoc import adhoc_files, read_file
from tidemark.cli.output import (
    Json,
    Output,
    add_row,
    errors_to,
    open_container,
    safe,
    table_of,
    text,
)
from tidemark.domain.chunks import ChunkedDocument
from tidemark.domain.documents import (
    CrawlEnd,
    Outcome,
    PartitionedDocument,
    RawDocument,
    Validators,
)
from tidemark.domain.errors import ConfigurationError, DocumentError
from tidemark.domain.identity import document_id
from tidemark.domain.profile import Profile, ProfileChoice
from tidemark.stages.chunking.choose import choose_profile
from tidemark.stages.chunking.chunk import chunk_document
from tidemark.stages.process.payloads import with_fragment
from tidemark.wiring import Container

SOURCE = "chunk"
"""The name under which documents outside any source get their ids."""


def chunk(
    paths: Annotated[list[Path], typer.Argument(help="Files or whole folders.")],
    profile: Annotated[
        str,
        typer.Option(
            help="A declared or built-in profile; auto lets each document's content choose.",
            callback=text,
        ),
    ] = "auto",
    base_url: Annotated[
        str | None, typer.Option(help="The address the files are known by.", callback=text)
    ] = None,
    as_json: Json = False,
) -> None:
    """Clean, partition, section and chunk files; no store is touched. JSON: one document a line."""
    output = Output(as_json)
    failed = False
    with errors_to(output):
        for document in chunk_paths(open_container(), paths, profile, base_url):
            failed |= document["document"]["error"] is not None
            output.line(document, partial(render_chunks, document))
    if failed:
        raise typer.Exit(1)


def chunk_paths(
    container: Container, paths: list[Path], profile: str, base_url: str | None
) -> Iterator[dict[str, Any]]:
    """Chunk files and folders, one document at a time, in the order of their paths.

    A document that fails, and a file or folder that cannot be read, is a result too, with its error.
    Raises ``ConfigurationError``, before anything is done, for a path that does not exist or a profile
    that is not declared.
    """
    chosen = container.declarations.choice_named(profile)
    for path in paths:
        _must_exist(path)
    for path in paths:
        for raw in _documents(container, path, base_url):
            if isinstance(raw, RawDocument):
                yield _chunked(container, raw, chosen)
            else:
                yield _result(raw[0], "", None, None, ChunkedDocument(), raw[1])


def _must_exist(path: Path) -> None:
    try:
        path.stat()
    except PermissionError:
        return  # there may be something: reading it says what is wrong
    except OSError as error:
        # pathlib's own test raises for a name that is too long.
        what = "is a link that leads nowhere" if os.path.islink(path) else "does not exist"  # noqa: PTH114
        raise ConfigurationError(
            f"{path} {what} ({error.strerror}).", "Name a file or a folder."
        ) from error
    if path.is_dir():
        adhoc_files(path)  # its name may be none that can be declared


def _documents(
    container: Container, path: Path, base_url: str | None
) -> Iterator[RawDocument | tuple[str, str]]:
    """The documents under a path; of one that cannot be read, its URI and why."""
    # Unlike pathlib's resolve, this raises nothing for a loop of links.
    root = Path(os.path.realpath(path))
    if not root.is_dir():
        try:
            raw = read_file(path)
        except ConfigurationError as error:
            yield root.as_uri(), str(error)
        else:
            yield _renamed(raw, quote(os.fsencode(path.name)), base_url)
        return
    for value in container.source(adhoc_files(path)).crawl(_Nothing()):
        if isinstance(value, CrawlEnd):
            if not value.complete:
                yield root.as_uri(), value.problem
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


def _chunked(container: Container, raw: RawDocument, choice: ProfileChoice) -> dict[str, Any]:
    try:
        partitioned = container.partitioner.partition(raw)
        profile = choose_profile(choice, raw.uri, partitioned)
        document = chunk_document(
            document_id(SOURCE, raw.uri),
            partitioned,
            profile,
            container.tokenizer,
            container.code_parser,
            container.sentence_embedder if profile.strategy == "semantic" else None,
        )
    except DocumentError as error:
        return _result(raw.uri, raw.media_type, None, None, ChunkedDocument(), str(error))
    return _result(raw.uri, raw.media_type, partitioned, profile, document, None, raw.fetched_at)


def _result(
    uri: str,
    media_type: str,
    partitioned: PartitionedDocument | None,
    profile: Profile | None,
    document: ChunkedDocument,
    error: str | None,
    fetched_at: datetime | None = None,
) -> dict[str, Any]:
    said = {
        "title": partitioned.title if partitioned else "",
        "language": partitioned.language if partitioned else None,
        "fetched_at": fetched_at.isoformat() if fetched_at else None,
    }
    return {
        "document": {
            "uri": uri,
            "media_type": media_type,
            "content_hash": partitioned.content_hash if partitioned else None,
            "profile": profile.name if profile else None,
            "error": error,
            **said,
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
                "page_end": section.page_end,
                "source_uri": with_fragment(uri, section.anchor),
                **said,
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
                "start": chunk.start,
                "end": chunk.end,
                "source_uri": with_fragment(uri, chunk.anchor),
                **said,
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

    def state(self) -> str:
        return ""


def render_chunks(document: Mapping[str, Any]) -> RenderableType:
    about = document["document"]
    if about["error"]:
        return Text(safe(f"{about['uri']}: {about['error']}"), style="red")
    table = table_of("#", "tokens", "page", "headings", "text")
    for chunk in document["chunks"]:
        text = " ".join(chunk["text"].split())
        add_row(
            table, chunk["chunk_index"], chunk["token_count"], chunk["page_number"] or "",
            " › ".join(chunk["heading_path"]), text[:160] + ("…" if len(text) > 160 else ""),
        )  # fmt: skip
    counts = f"{len(document['sections'])} sections, {len(document['chunks'])} chunks"
    counts += f", profile {about['profile']}"
    return Group(Text(safe(f"{about['uri']}  ({about['title']}): {counts}")), table)
