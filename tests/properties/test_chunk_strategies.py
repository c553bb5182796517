"""What holds for the chunks of every strategy, over generated documents and those that people wrote."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reading import GOLDEN_DOCUMENTS, read

from fakes.embedder import HashEmbedder, WordTokenizer
from tidemark.adapters.partition.code.tree_sitter import TreeSitterCodeParser
from tidemark.domain.chunks import Chunk, ChunkedDocument, Section
from tidemark.domain.documents import Element, ElementKind, PartitionedDocument
from tidemark.domain.profile import BUILT_IN, STRATEGIES, Profile
from tidemark.stages.chunking.chunk import chunk_document

DOCUMENT = UUID(int=2)
TOKENIZER = WordTokenizer(128)
EMBEDDER = HashEmbedder(16, 4096)
PARSER = TreeSitterCodeParser()

WORD = ["ab", "cd", "Ef", "gh.", "Ij,", "kl:", "mn?", "3.5", "é", "語。", "x"]
WORDS = st.lists(st.sampled_from(WORD), min_size=1, max_size=40).map(
    " ".join
)  # fmt: skip
LINES = st.lists(st.sampled_from(["def f():", "    a = 1", "", "}", "x(", "\tb {"]), max_size=30)
ROWS = st.lists(
    st.lists(st.sampled_from(["a", "b c", "d e f g", ""]), min_size=2, max_size=4), max_size=20
)
KINDS = [ElementKind.TEXT, ElementKind.TEXT, ElementKind.TERM, ElementKind.DEFINITION, ElementKind.CAPTION,
         ElementKind.QUOTE]  # fmt: skip
BODY = st.one_of(
    st.builds(Element, st.sampled_from(KINDS), WORDS),
    st.builds(Element, st.just(ElementKind.LIST_ITEM), WORDS, st.integers(1, 3)),
    st.builds(
        Element,
        st.just(ElementKind.CODE),
        LINES.map("\n".join),
        syntax=st.sampled_from(["python", ""]),
    ),
    st.builds(
        Element,
        st.just(ElementKind.TABLE),
        ROWS.map(lambda rows: "\n".join(map("\t".join, rows))),
        header_rows=st.integers(0, 2),
    ),
)
HEADING = st.builds(
    Element,
    st.just(ElementKind.TITLE),
    st.lists(st.sampled_from(["Heading", "Other", "Why?"]), min_size=1, max_size=6).map(" ".join),
    st.integers(1, 4),
)
DOCUMENTS = st.builds(
    PartitionedDocument,
    st.sampled_from(["", "Handbook"]),
    st.lists(st.one_of(BODY, BODY, BODY, HEADING), max_size=16).map(tuple),
)
SIZES = st.tuples(
    st.integers(10, 60), st.integers(0, 60), st.integers(0, 10), st.sampled_from([32, 120, 400]),
    st.sampled_from([0.0, 0.15, 0.5]), st.booleans(),
)  # fmt: skip


def profile_of(strategy: str, sizes: tuple[int, int, int, int, float, bool]) -> Profile:
    target, over, least, parent, overlap, merge = sizes
    return Profile("p", strategy, target, target + over, least, parent, overlap, merge, 80)


def chunked(document: PartitionedDocument, profile: Profile) -> ChunkedDocument:
    return chunk_document(DOCUMENT, document, profile, TOKENIZER, PARSER, EMBEDDER)


def visible(text: str) -> str:
    return "".join(text.split())


def check(document: PartitionedDocument, profile: Profile) -> None:
    if profile.overlap:
        # The parts of a long body overlap too, and no offset tells by how much: here bodies stay whole.
        profile = replace(profile, parent_tokens=100_000)
    result = chunked(document, profile)
    sections = {section.section_id: section for section in result.sections}
    assert len(sections) == len(result.sections)
    read_once(document, result, sections)
    for chunk in result.chunks:
        stands_in_its_section(chunk, sections[chunk.section_id], profile)
    counts = TOKENIZER.count([chunk.embed_text for chunk in result.chunks])
    limit = min(profile.max_tokens, TOKENIZER.max_tokens)
    assert [chunk.token_count for chunk in result.chunks] == counts
    assert all(count <= limit for count in counts)
    assert [chunk.chunk_index for chunk in result.chunks] == list(range(len(result.chunks)))
    assert len({chunk.chunk_id for chunk in result.chunks}) == len(result.chunks)
    parents_are_bounded(result, profile)
    assert chunked(document, profile) == result


def read_once(
    document: PartitionedDocument, result: ChunkedDocument, sections: dict[UUID, Section]
) -> None:
    """Every character of every element in order, each once but for overlap."""
    seen: list[str] = []
    before: Chunk | None = None
    for chunk in result.chunks:
        section = sections[chunk.section_id]
        start = chunk.start
        if before is not None and before.section_id == chunk.section_id:
            start = max(start, before.end)
            assert chunk.end > before.end
        seen.append(section.text[start : chunk.end])
        before = chunk
    headings = any("title" in chunk.kinds for chunk in result.chunks)
    wanted = [e.text for e in document.elements if e.kind is not ElementKind.TITLE]
    if not headings:
        assert visible("".join(seen)) == visible("".join(wanted))
    else:
        _in_order(visible("".join(seen)), map(visible, wanted))


def _in_order(seen: str, wanted: Sequence[str]) -> None:
    position = 0
    for text in wanted:
        found = seen.find(text, position)
        assert found >= 0, f"{text!r} is in no chunk"
        position = found + len(text)


def stands_in_its_section(chunk: Chunk, section: Section, profile: Profile) -> None:
    stretch = section.text[chunk.start : chunk.end]
    assert stretch.strip()
    assert chunk.text.endswith(stretch)
    assert chunk.embed_text.endswith(chunk.text)
    repeated = chunk.text.removesuffix(stretch)
    assert not repeated or {"table", "code"} & set(chunk.kinds), "only a header or a signature is"
    assert chunk.heading_path[: len(section.heading_path)] == section.heading_path
    assert chunk.kinds != ("title",), "a heading alone"


def parents_are_bounded(result: ChunkedDocument, profile: Profile) -> None:
    for section in result.sections:
        own = [chunk for chunk in result.chunks if chunk.section_id == section.section_id]
        tokens = TOKENIZER.count([section.text])[0] - TOKENIZER.special_tokens
        if tokens > profile.parent_tokens:
            assert len(own) <= 1, f"{tokens} tokens for {len(own)} chunks"


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(document=DOCUMENTS, sizes=SIZES)
def test_every_rule_holds_for_any_document(
    strategy: str, document: PartitionedDocument, sizes: tuple[int, int, int, int, float, bool]
) -> None:
    check(document, profile_of(strategy, sizes))


PATHS = sorted(GOLDEN_DOCUMENTS.iterdir())


@lru_cache(maxsize=1)
def _profiles() -> list[Profile]:
    small = [replace(p, target_tokens=40, max_tokens=90, min_tokens=6) for p in BUILT_IN.values()]
    return [p for pair in zip(BUILT_IN.values(), small, strict=True) for p in pair]


@pytest.mark.model
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_every_rule_holds_for_documents_that_people_wrote(path: Path) -> None:
    document = read(path)
    for profile in _profiles():
        check(document, profile)
