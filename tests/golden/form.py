"""The sections and chunks of a document as a text that a person can review in a diff; ids are left out."""

from collections.abc import Iterator
from textwrap import indent
from uuid import UUID

from tidemark.domain.chunks import Chunk, ChunkedDocument, Section
from tidemark.domain.documents import PartitionedDocument
from tidemark.domain.profile import Profile
from tidemark.ports.embedding import Tokenizer

MARGIN = "    "


def form(
    name: str,
    document: PartitionedDocument,
    profile: Profile,
    chunked: ChunkedDocument,
    tokenizer: Tokenizer,
) -> str:
    """Head, outline of the sections, then each chunk; ends with a line end."""
    sizes = (
        f"target {profile.target_tokens}, max {profile.max_tokens}, min {profile.min_tokens} tokens"
    )
    lines = [
        f"# {name}",
        "",
        f"title: {document.title or '(none)'}",
        f"language: {document.language or '(not told)'}",
        f"profile: {profile.name} ({profile.strategy}, {sizes})",
        "",
        f"## Sections ({len(chunked.sections)})",
        "",
        *_outline(chunked.sections, tokenizer),
        "",
        f"## Chunks ({len(chunked.chunks)})",
    ]
    for chunk in chunked.chunks:
        lines += ["", *_chunk(chunk, document.title)]
    return "\n".join(lines) + "\n"


def _outline(sections: tuple[Section, ...], tokenizer: Tokenizer) -> Iterator[str]:
    depths: dict[UUID, int] = {}
    for section in sections:
        parent = section.parent_section_id
        depths[section.section_id] = depth = depths[parent] + 1 if parent else 0
        tokens = tokenizer.count([section.text])[0] - tokenizer.special_tokens
        notes = [f"{tokens} tokens" if section.text else "no text"]
        if section.page_number is not None:
            last = section.page_end if section.page_end != section.page_number else None
            notes.append(
                f"page {section.page_number}"
                if last is None
                else f"pages {section.page_number}–{last}"
            )
        if section.anchor:
            notes.append(f"#{section.anchor}")
        heading = section.heading_path[-1] if section.heading_path else "(start)"
        yield f"{MARGIN * depth}- {heading} [{', '.join(notes)}]"


def _chunk(chunk: Chunk, title: str) -> Iterator[str]:
    yield f"### {chunk.chunk_index} · {' > '.join(chunk.heading_path) or '(start)'}"
    notes = [f"{chunk.token_count} tokens", ", ".join(chunk.kinds)]
    if chunk.page_number is not None:
        notes.append(f"page {chunk.page_number}")
    if chunk.anchor:
        notes.append(f"#{chunk.anchor}")
    yield " · ".join(notes)
    yield ""
    yield indent(chunk.text, MARGIN)
    # Only what is not the plain heading path above the text.
    plain = {" > ".join(chunk.heading_path), " > ".join((title, *chunk.heading_path))}
    if chunk.embed_text.endswith(chunk.text):
        above = chunk.embed_text.removesuffix(chunk.text).rstrip("\n")
        if above not in plain:
            yield from ("", "embedded under:", "", indent(above or "(nothing)", MARGIN))
    else:
        yield from ("", "embedded as:", "", indent(chunk.embed_text, MARGIN))
