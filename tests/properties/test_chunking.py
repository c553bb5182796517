"""What holds for the chunks of any document."""

from collections.abc import Sequence
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.embedder import WordTokenizer
from tidemark.domain.chunks import ChunkedDocument
from tidemark.domain.documents import Element, ElementKind, PartitionedDocument
from tidemark.domain.profile import Profile
from tidemark.stages.chunking.chunk import chunk_document

pytestmark = pytest.mark.slow

DOCUMENT = UUID(int=1)
TOKENIZER = WordTokenizer(64)

ALPHABET = "abcdeXYZ019.,:;!?|-()' \n\t语言。！éà\u0301\u200d👩🏽🇫🇷\u00a0"
WORDS = st.lists(st.text("abcdefgh", min_size=1, max_size=9), min_size=1, max_size=120).map(
    " ".join
)
SENTENCES = st.lists(WORDS, min_size=1, max_size=6).map(
    lambda parts: ". ".join(p.capitalize() for p in parts)
)
TEXTS = st.one_of(SENTENCES, WORDS, st.text(ALPHABET, max_size=400), st.text("x", max_size=3000))
ROW = st.lists(WORDS.map(lambda words: words[:40]), min_size=1, max_size=4).map("\t".join)
TABLES = st.lists(ROW, min_size=1, max_size=25).map("\n".join)
CODE = st.lists(st.text("ab{}() \t", max_size=60), max_size=30).map("\n".join)
ENTRY = st.sampled_from([ElementKind.TERM, ElementKind.DEFINITION, ElementKind.CAPTION])
BODY = st.one_of(
    st.builds(Element, st.just(ElementKind.TEXT), TEXTS),
    st.builds(Element, st.just(ElementKind.LIST_ITEM), TEXTS, st.integers(1, 4)),
    st.builds(Element, ENTRY, TEXTS),
    st.builds(Element, st.just(ElementKind.CODE), CODE),
    st.builds(Element, st.just(ElementKind.TABLE), TABLES),
)
HEADING = st.builds(
    Element, st.just(ElementKind.TITLE), st.text("HIJ ", max_size=60), st.integers(1, 6)
)
DOCUMENTS = st.builds(
    PartitionedDocument,
    st.text("TUV ", max_size=40),
    st.lists(st.one_of(BODY, BODY, HEADING), max_size=25).map(tuple),
)
PROFILES = st.builds(
    lambda target, over, least, parent: Profile(
        "p", "by_title", target, target + over, min(least, target), parent_tokens=parent
    ),
    st.integers(8, 60),
    st.integers(0, 40),
    st.integers(0, 12),
    st.integers(32, 400),
)


def chunked(document: PartitionedDocument, profile: Profile) -> ChunkedDocument:
    return chunk_document(DOCUMENT, document, profile, TOKENIZER)


def visible(texts: Sequence[str]) -> str:
    return "".join("".join(text.split()) for text in texts)


@settings(deadline=None)
@given(DOCUMENTS, PROFILES)
def test_every_character_is_in_the_chunks_once_and_in_order(
    document: PartitionedDocument, profile: Profile
) -> None:
    result = chunked(document, profile)
    elements = [e.text for e in document.elements if e.kind is not ElementKind.TITLE]
    own = {section.section_id: section.text for section in result.sections}
    read = [own[chunk.section_id][chunk.start : chunk.end] for chunk in result.chunks]
    assert visible(read) == visible(elements)


@settings(deadline=None)
@given(DOCUMENTS, PROFILES)
def test_each_chunk_stands_in_its_section_where_it_says(
    document: PartitionedDocument, profile: Profile
) -> None:
    result = chunked(document, profile)
    sections = {section.section_id: section for section in result.sections}
    for chunk in result.chunks:
        read = sections[chunk.section_id].text
        assert chunk.start < chunk.end
        assert chunk.text.endswith(read[chunk.start : chunk.end])
        repeated = chunk.text.removesuffix(read[chunk.start : chunk.end])
        captions = [e.text for e in document.elements if e.kind is ElementKind.CAPTION]
        assert not repeated or visible([repeated]) in {visible([c]) for c in captions}


@settings(deadline=None)
@given(DOCUMENTS, PROFILES)
def test_no_chunk_is_over_its_bounds_or_empty(
    document: PartitionedDocument, profile: Profile
) -> None:
    for chunk in chunked(document, profile).chunks:
        assert chunk.token_count <= min(profile.max_tokens, TOKENIZER.max_tokens)
        assert chunk.token_count == TOKENIZER.count([chunk.embed_text])[0]
        assert chunk.text.strip()
        assert chunk.embed_text.endswith(chunk.text)


@settings(deadline=None)
@given(DOCUMENTS, PROFILES)
def test_each_chunk_is_of_one_section_that_has_its_heading_path(
    document: PartitionedDocument, profile: Profile
) -> None:
    result = chunked(document, profile)
    sections = {section.section_id: section for section in result.sections}
    assert len(sections) == len(result.sections)
    order = [sections[chunk.section_id].ordinal for chunk in result.chunks]
    assert order == sorted(order)
    assert [chunk.chunk_index for chunk in result.chunks] == list(range(len(result.chunks)))
    for chunk in result.chunks:
        path = sections[chunk.section_id].heading_path
        assert chunk.heading_path[: len(path)] == path
    for section in result.sections:
        if section.parent_section_id is not None:
            parent = sections[section.parent_section_id]
            assert section.heading_path[:-1] == parent.heading_path
            assert parent.ordinal < section.ordinal


@settings(deadline=None)
@given(DOCUMENTS, PROFILES)
def test_ids_are_unique_and_the_same_each_time(
    document: PartitionedDocument, profile: Profile
) -> None:
    result = chunked(document, profile)
    ids = [chunk.chunk_id for chunk in result.chunks]
    assert len(set(ids)) == len(ids)
    assert chunked(document, profile) == result


@settings(deadline=None)
@given(
    st.lists(st.lists(BODY, min_size=1, max_size=6), min_size=2, max_size=5),
    st.data(),
    st.lists(BODY, max_size=6),
    PROFILES,
)
def test_an_edit_in_one_section_leaves_the_chunks_of_the_others(
    bodies: list[list[Element]], data: st.DataObject, edited: list[Element], profile: Profile
) -> None:
    place = data.draw(st.integers(0, len(bodies) - 1))

    def ids_by_section(parts: list[list[Element]]) -> dict[tuple[str, ...], list[UUID]]:
        elements = tuple(
            element
            for number, body in enumerate(parts)
            for element in (Element(ElementKind.TITLE, f"Part {number}", 1), *body)
        )
        found: dict[tuple[str, ...], list[UUID]] = {}
        for chunk in chunked(PartitionedDocument("", elements), profile).chunks:
            found.setdefault(chunk.heading_path, []).append(chunk.chunk_id)
        return found

    before = ids_by_section(bodies)
    after = ids_by_section([*bodies[:place], edited, *bodies[place + 1 :]])
    before.pop((f"Part {place}",), None)
    after.pop((f"Part {place}",), None)
    assert before == after
