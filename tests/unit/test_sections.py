"""Elements fold into sections by their headings."""

from uuid import UUID

from tidemark.domain.identity import section_id
from tidemark.domain.model import Element, ElementKind, PartitionedDocument
from tidemark.stages.chunking.sections import SectionBody, build_sections

DOCUMENT = UUID(int=7)


def title(text: str, level: int, page: int | None = None, anchor: str | None = None) -> Element:
    return Element(ElementKind.TITLE, text, level, page, anchor)


def text(words: str, page: int | None = None) -> Element:
    return Element(ElementKind.TEXT, words, None, page)


def sections_of(*elements: Element) -> tuple[SectionBody, ...]:
    return build_sections(DOCUMENT, PartitionedDocument("A title", elements))


def paths_of(*elements: Element) -> list[tuple[str, ...]]:
    return [body.section.heading_path for body in sections_of(*elements)]


def test_text_before_the_first_heading_has_a_section_without_headings() -> None:
    bodies = sections_of(text("Read this first."), title("One", 1), text("Then this."))
    assert [b.section.heading_path for b in bodies] == [(), ("One",)]
    assert bodies[0].section.text == "Read this first."
    assert bodies[1].section.parent_section_id is None


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
    one, deep, deeper = (
        b.section for b in sections_of(title("1", 1), title("2", 2), title("3", 3))
    )
    assert (one.parent_section_id, deep.parent_section_id) == (None, one.section_id)
    assert deeper.parent_section_id == deep.section_id


def test_equal_paths_are_told_apart_by_their_order() -> None:
    first, second = (b.section for b in sections_of(title("Example", 1), title("Example", 1)))
    assert first.section_id == section_id(DOCUMENT, ("Example",), 0)
    assert second.section_id == section_id(DOCUMENT, ("Example",), 1)


def test_a_section_keeps_its_id_when_another_is_put_before_it() -> None:
    alone = sections_of(title("Kept", 1), text("Body."))[0].section.section_id
    after = sections_of(title("New", 1), text("More."), title("Kept", 1), text("Body."))[1]
    assert after.section.section_id == alone


def test_a_section_has_its_own_text_without_that_of_its_children() -> None:
    outer, inner = (
        b.section
        for b in sections_of(title("Out", 1), text("Outer."), title("In", 2), text("Inner."))
    )
    assert (outer.text, inner.text) == ("Outer.", "Inner.")


def test_a_section_knows_its_pages_and_the_anchor_of_its_heading() -> None:
    section = sections_of(title("Long", 1, 3, "long"), text("a", 3), text("b", 5))[0].section
    assert (section.page_number, section.page_end, section.anchor) == (3, 5, "long")


def test_a_section_reads_as_a_whole() -> None:
    section = sections_of(
        title("All", 1),
        text("You need:"),
        Element(ElementKind.LIST_ITEM, "a brush", 1),
        Element(ElementKind.LIST_ITEM, "soft", 2),
        Element(ElementKind.LIST_ITEM, "2. water", 1),
        Element(ElementKind.CAPTION, "Table 1"),
        Element(ElementKind.TABLE, "a | b\n1 | 2", header_rows=1),
        Element(ElementKind.CODE, "if x:\n    y()\n"),
        Element(ElementKind.TERM, "Gauge"),
        Element(ElementKind.DEFINITION, "What measures."),
    )[0].section
    assert section.text == (
        "You need:\n\n- a brush\n  - soft\n2. water\n\nTable 1\na | b\n1 | 2\n\n"
        "if x:\n    y()\n\nGauge\nWhat measures."
    )


def test_each_element_is_found_in_the_text_of_its_section() -> None:
    body = sections_of(
        title("T", 1), text("One."), text("   "), Element(ElementKind.LIST_ITEM, "x", 1)
    )[0]
    pieces = [body.section.text[start:end] for start, end in body.rendered.spans]
    assert pieces == ["One.", "", "- x"]


def test_a_document_of_nothing_has_no_section() -> None:
    assert sections_of() == ()
