"""Elements fold into sections by their headings."""

from uuid import UUID

from fakes.embedder import WordTokenizer
from tidemark.domain.chunks import Section
from tidemark.domain.documents import Element, ElementKind, PartitionedDocument
from tidemark.domain.identity import section_id
from tidemark.domain.profile import Profile
from tidemark.stages.chunking.chunk import chunk_document
from tidemark.stages.chunking.sections import fold

DOCUMENT = UUID(int=7)


def title(text: str, level: int, page: int | None = None, anchor: str | None = None) -> Element:
    return Element(ElementKind.TITLE, text, level, page, anchor)


def text(words: str, page: int | None = None) -> Element:
    return Element(ElementKind.TEXT, words, None, page)


def sections_of(*elements: Element, parent_tokens: int = 400) -> tuple[Section, ...]:
    profile = Profile(parent_tokens=parent_tokens)
    document = PartitionedDocument("A title", elements)
    return chunk_document(DOCUMENT, document, profile, WordTokenizer()).sections


def paths_of(*elements: Element) -> list[tuple[str, ...]]:
    return [section.heading_path for section in sections_of(*elements)]


def test_text_before_the_first_heading_has_a_section_without_headings() -> None:
    bodies = sections_of(text("Read this first."), title("One", 1), text("Then this."))
    assert [b.heading_path for b in bodies] == [(), ("One",)]
    assert bodies[0].text == "Read this first."
    assert bodies[1].parent_section_id is None


def test_a_heading_closes_headings_of_its_level_and_deeper() -> None:
    paths = paths_of(
        title("One", 1), title("Deep", 2), title("Deeper", 3), title("Up again", 2), title("Two", 1)
    )
    assert paths == [
        ("One",),
        ("One", "Deep"),
        ("One", "Deep", "Deeper"),
        ("One", "Up again"),
        ("Two",),
    ]


def test_levels_may_skip_and_return() -> None:
    paths = paths_of(
        title("One", 1), title("Skipped to four", 4), title("Back to three", 3), title("Two", 2)
    )
    assert paths == [
        ("One",),
        ("One", "Skipped to four"),
        ("One", "Back to three"),
        ("One", "Two"),
    ]


def test_a_document_may_begin_below_the_first_level() -> None:
    assert paths_of(title("Three", 3), title("One", 1)) == [("Three",), ("One",)]


def test_the_parent_is_the_section_of_the_heading_above() -> None:
    one, deep, deeper = (b for b in sections_of(title("1", 1), title("2", 2), title("3", 3)))
    assert (one.parent_section_id, deep.parent_section_id) == (None, one.section_id)
    assert deeper.parent_section_id == deep.section_id


def test_equal_paths_are_told_apart_by_their_order() -> None:
    first, second = (b for b in sections_of(title("Example", 1), title("Example", 1)))
    assert first.section_id == section_id(DOCUMENT, ("Example",), 0)
    assert second.section_id == section_id(DOCUMENT, ("Example",), 1)


def test_a_section_keeps_its_id_when_another_is_put_before_it() -> None:
    alone = sections_of(title("Kept", 1), text("Body."))[0].section_id
    after = sections_of(title("New", 1), text("More."), title("Kept", 1), text("Body."))[1]
    assert after.section_id == alone


def test_a_section_that_fits_the_budget_is_read_with_its_sub_sections() -> None:
    elements = (title("Out", 1), text("Outer."), title("In", 2), text("Inner."))
    outer, inner = sections_of(*elements)
    assert (outer.text, inner.text) == ("Outer.\n\nIn\n\nInner.", "Inner.")


def test_a_section_over_the_budget_is_read_without_its_sub_sections() -> None:
    words = "word " * 40
    outer, inner = sections_of(
        title("Out", 1),
        text(f"Outer {words}."),
        title("In", 2),
        text(f"Inner {words}."),
        parent_tokens=60,
    )
    assert (outer.text, inner.text) == (f"Outer {words}.", f"Inner {words}.")


def test_chunks_of_a_short_section_name_the_highest_section_that_fits() -> None:
    elements = (
        title("Book", 1), text("All of it. " * 30), title("Chapter", 2), text("Begins."),
        title("Part", 3), text("Ends."),
    )  # fmt: skip
    profile = Profile(parent_tokens=60)
    result = chunk_document(DOCUMENT, PartitionedDocument("", elements), profile, WordTokenizer())
    paths = {s.section_id: s.heading_path for s in result.sections}
    read = {chunk.text: paths[chunk.section_id] for chunk in result.chunks}
    assert read["Ends."] == ("Book", "Chapter")
    assert result.chunks[-1].heading_path == ("Book", "Chapter", "Part")


def test_a_long_body_without_sub_headings_is_read_in_parts_of_the_budget() -> None:
    paragraphs = [text(f"Paragraph {n} tells of one thing. " * 4) for n in range(24)]
    parts = sections_of(title("Long", 1), *paragraphs, parent_tokens=200)
    assert len(parts) > 3
    assert {part.heading_path for part in parts} == {("Long",)}
    assert len({part.section_id for part in parts}) == len(parts)
    assert max(WordTokenizer().count([part.text])[0] for part in parts) <= 202
    assert "".join("".join(p.text for p in parts).split()) == "".join(
        "".join(p.text for p in paragraphs).split()
    )


def test_a_section_knows_its_pages_and_the_anchor_of_its_heading() -> None:
    section = sections_of(title("Long", 1, 3, "long"), text("a", 3), text("b", 5))[0]
    assert (section.page_number, section.page_end, section.anchor) == (3, 5, "long")


def test_a_section_reads_as_a_whole() -> None:
    section = sections_of(
        title("All", 1),
        text("You need:"),
        Element(ElementKind.LIST_ITEM, "a brush", 1),
        Element(ElementKind.LIST_ITEM, "soft", 2),
        Element(ElementKind.LIST_ITEM, "2. water", 1),
        Element(ElementKind.CAPTION, "Table 1"),
        Element(ElementKind.TABLE, "\tb\n1\t2", header_rows=1),
        Element(ElementKind.CODE, "if x:\n    y()\n"),
        Element(ElementKind.TERM, "Gauge"),
        Element(ElementKind.DEFINITION, "What measures."),
    )[0]
    assert section.text == (
        "You need:\n\na brush\n  soft\n2. water\n\nTable 1\n\tb\n1\t2\n\n"
        "if x:\n    y()\n\nGauge\nWhat measures."
    )


def test_each_element_is_found_in_the_text_of_its_section() -> None:
    elements = (title("T", 1), text("One."), text("   "), Element(ElementKind.LIST_ITEM, "x", 2))
    rendered = fold(elements)[0].rendered
    assert [rendered.text[start:end] for start, end in rendered.spans] == ["One.", "", "  x"]


def test_a_document_of_nothing_has_no_section() -> None:
    assert sections_of() == ()
