"""What holds for the chunks of documents that people wrote: the golden ones, the bundled samples, corpora.

The generated documents of ``test_chunking`` reach corners that nobody writes; these have the mixtures that
nobody generates. The corpora lie in a folder beside the checkout; where there is none they are left out.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from uuid import UUID

import pytest
from reading import GOLDEN_DOCUMENTS, read

from fakes.embedder import WordTokenizer
from tidemark.adapters.media import media_type_of_suffix
from tidemark.domain.chunks import Chunk, ChunkedDocument, Section
from tidemark.domain.documents import ElementKind
from tidemark.domain.errors import DocumentError
from tidemark.domain.profile import Profile
from tidemark.stages.chunking.chunk import chunk_document

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "include" / "samples"
CORPORA = ROOT.parent / "shared"
TAKEN = {
    "corpora/mix100": 10,
    "corpora/fastapi-md": 10,
    "corpora/scrapy-rst": 10,
    "eval/data/condqa/html": 10,
}
"""How many files of each folder of the corpora."""
DOCUMENT = UUID(int=1)
TOKENIZER = WordTokenizer(256)
PROFILES = {
    "docs": Profile(),
    "small": Profile("small", target_tokens=40, max_tokens=72, min_tokens=8),
}


def _documents(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and media_type_of_suffix(p.suffix))


def _spread(paths: Sequence[Path], count: int) -> list[Path]:
    """Some of the paths, at equal distances, so that it is always the same ones."""
    step = max(len(paths) // count, 1)
    return list(paths[::step][:count])


def _all_paths() -> list[Path]:
    paths = sorted(GOLDEN_DOCUMENTS.iterdir()) + _documents(SAMPLES / "files")
    paths += _spread(_documents(SAMPLES / "site"), 8)
    for folder, count in TAKEN.items():
        paths += _spread(_documents(CORPORA / folder), count)
    return paths


PATHS = _all_paths()

pytestmark = pytest.mark.model
each_document = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
each_profile = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)


@lru_cache(maxsize=512)
def chunked(path: Path, profile: Profile) -> ChunkedDocument:
    try:
        document = read(path)
    except DocumentError as error:
        pytest.skip(f"this file holds nothing to read: {error.message}")
    return chunk_document(DOCUMENT, document, profile, TOKENIZER)


def visible(text: str) -> str:
    return "".join(text.split())


def own_chunks(result: ChunkedDocument, section: Section) -> list[Chunk]:
    return [chunk for chunk in result.chunks if chunk.section_id == section.section_id]


def placed(chunk: Chunk, section: Section, start: int) -> tuple[int, int]:
    """Where a chunk's text stands in its section at or after ``start``; without a table's header repeated.

    Raises ``ValueError`` when it does not stand there.
    """
    lines = chunk.text.split("\n")
    for repeated in range(len(lines)):
        text = "\n".join(lines[repeated:])
        position = section.text.find(text, start)
        # What is repeated is in the section too: a header further up, a caption perhaps further down.
        if position >= 0 and all(line in section.text for line in lines[:repeated]):
            return position, position + len(text)
    raise ValueError(f"chunk {chunk.chunk_index} is not a stretch of its section: {chunk.text!r}")


@each_profile
@each_document
def test_every_character_of_every_element_is_in_the_chunks_in_order(
    path: Path, profile: Profile
) -> None:
    result = chunked(path, profile)
    seen = visible("".join(chunk.text for chunk in result.chunks))
    position = 0
    for element in read(path).elements:
        if element.kind is ElementKind.TITLE:
            continue
        for character in visible(element.text):  # bullets and repeated headers may stand between
            found = seen.find(character, position)
            assert found >= 0, f"{character!r} of {element.text[:80]!r} is in no chunk"
            position = found + 1


@each_profile
@each_document
def test_each_chunk_is_a_stretch_of_its_section_and_they_cover_it(
    path: Path, profile: Profile
) -> None:
    result = chunked(path, profile)
    headings = {
        " ".join(e.text.split()) for e in read(path).elements if e.kind is ElementKind.TITLE
    }

    def left_out(text: str) -> set[str]:
        """Lines that are no headings of the sections that are read within this one."""
        return {line for line in map(str.strip, text.split("\n")) if line} - headings

    for section in result.sections:
        position = 0
        for chunk in own_chunks(result, section):
            start, end = placed(chunk, section, position)
            assert not left_out(section.text[position:start]), "a stretch is in no chunk"
            position = end
        if own_chunks(result, section):
            assert not left_out(section.text[position:]), "the end is in no chunk"


@each_profile
@each_document
def test_no_chunk_is_over_the_limit_or_only_a_heading(path: Path, profile: Profile) -> None:
    result = chunked(path, profile)
    counts = TOKENIZER.count([chunk.embed_text for chunk in result.chunks])
    for chunk, count in zip(result.chunks, counts, strict=True):
        assert chunk.token_count == count <= min(profile.max_tokens, TOKENIZER.max_tokens)
        assert chunk.text.strip()
        assert chunk.kinds != (ElementKind.TITLE.value,)
        assert chunk.embed_text.endswith(chunk.text)


@each_profile
@each_document
def test_indices_pages_and_paths_agree_with_the_sections(path: Path, profile: Profile) -> None:
    result = chunked(path, profile)
    sections = {section.section_id: section for section in result.sections}
    assert len(sections) == len(result.sections)
    assert [chunk.chunk_index for chunk in result.chunks] == list(range(len(result.chunks)))
    ordinals = [sections[chunk.section_id].ordinal for chunk in result.chunks]
    assert ordinals == sorted(ordinals)
    pages = [chunk.page_number for chunk in result.chunks if chunk.page_number is not None]
    assert pages == sorted(pages)
    for chunk in result.chunks:
        path_of_section = sections[chunk.section_id].heading_path
        assert chunk.heading_path[: len(path_of_section)] == path_of_section


@each_profile
@each_document
def test_ids_are_unique_and_a_second_run_gives_the_same(path: Path, profile: Profile) -> None:
    result = chunked(path, profile)
    identifiers = [chunk.chunk_id for chunk in result.chunks]
    assert len(set(identifiers)) == len(identifiers)
    assert chunk_document(DOCUMENT, read(path), profile, TOKENIZER) == result


def test_there_are_enough_documents_to_mean_something() -> None:
    assert len(PATHS) >= 40
