"""The documents in the pictures: their elements as partitioning found them, and their chunks.

Partitioning loads a heavy library, so its results are kept beside the pictures. Tokens are counted by
``WordTokenizer`` and meanings by ``HashEmbedder``: without a model everyone gets the same pictures.
"""

import gzip
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from uuid import UUID

from fakes.embedder import HashEmbedder, WordTokenizer
from tidemark.adapters.media import media_type_of_suffix
from tidemark.adapters.partition.code.tree_sitter import TreeSitterCodeParser
from tidemark.domain.chunks import ChunkedDocument
from tidemark.domain.documents import Element, ElementKind, PartitionedDocument, RawDocument
from tidemark.domain.profile import BUILT_IN, Profile
from tidemark.stages.chunking.chunk import chunk_document
from tidemark.stages.codec import decode_elements, encode_elements

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
ELEMENTS = PICTURES / "elements.jsonl"
_GOLDEN = "tests/golden/documents"
_SITE = "include/samples/site"
SOURCES = {
    "page": "docs/pictures/page.md",
    "code": f"{_GOLDEN}/queue.py",
    "table": f"{_GOLDEN}/street-assets.csv",
    "contract": f"{_GOLDEN}/terms.txt",
    "faq": f"{_GOLDEN}/faq.md",
    "whole": "include/samples/files/notices/dredging-2026-11.txt",
    "nested": f"{_SITE}/help/troubleshooting.html",
    "long": f"{_GOLDEN}/long-section.html",
    "places": f"{_GOLDEN}/table-long.html",
    "options": f"{_GOLDEN}/definitions.html",
    "calibration": f"{_SITE}/policies/calibration.html",
    "stops": f"{_GOLDEN}/long-list.md",
}
"""Name of each document in the pictures, and its file in the repository."""
SMALL_TARGET = 64
TOKENIZER = WordTokenizer()
_DOCUMENT = UUID(int=1)
_FETCHED = datetime(2026, 1, 1, tzinfo=UTC)


def partition_all() -> str:
    """Partition every source anew: one line of JSON a document, in the order of ``SOURCES``."""
    from tidemark.adapters.partition.partitioner import DocumentPartitioner

    partitioner = DocumentPartitioner()
    lines = []
    for source in SOURCES.values():
        path = ROOT / source
        media_type = media_type_of_suffix(path.suffix) or "text/plain"
        raw = RawDocument(f"file:///{path.name}", path.read_bytes(), media_type, None, _FETCHED)
        lines.append(gzip.decompress(encode_elements(partitioner.partition(raw))).decode())
    return "\n".join(lines) + "\n"


@lru_cache(maxsize=1)
def _documents() -> dict[str, PartitionedDocument]:
    lines = ELEMENTS.read_text(encoding="utf-8").splitlines()
    return {
        name: decode_elements(gzip.compress(line.encode()))
        for name, line in zip(SOURCES, lines, strict=True)
    }


def document(name: str) -> PartitionedDocument:
    return _documents()[name]


def section_of(name: str, heading: str) -> PartitionedDocument:
    """One section of a document, with its heading alone above it."""
    whole = document(name)
    taken: list[Element] = []
    for element in whole.elements:
        if element.kind is ElementKind.TITLE and taken:
            break
        if taken or (element.kind is ElementKind.TITLE and element.text.strip() == heading):
            taken.append(element)
    if not taken:
        raise ValueError(f"{name} has no heading {heading!r}")
    return replace(whole, title=heading, elements=tuple(taken))


def chunked(page: PartitionedDocument, profile: Profile) -> ChunkedDocument:
    embedder = HashEmbedder() if profile.strategy == "semantic" else None
    return chunk_document(_DOCUMENT, page, profile, TOKENIZER, TreeSitterCodeParser(), embedder)


def profile_of(strategy: str) -> Profile:
    """The first built-in profile of a strategy."""
    return next(profile for profile in BUILT_IN.values() if profile.strategy == strategy)


def small_profile_of(strategy: str) -> Profile:
    """The same with a small target, so that one page shows what takes several pages otherwise."""
    return replace(profile_of(strategy), target_tokens=SMALL_TARGET)


def tokens_of(text: str) -> int:
    return TOKENIZER.count([text])[0] - TOKENIZER.special_tokens
