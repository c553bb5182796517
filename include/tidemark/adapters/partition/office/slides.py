"""PPTX by Unstructured, which takes headings from title shapes; notes and bullets by python-pptx."""

from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from typing import Any

from tidemark.adapters.partition.titles import core_properties
from tidemark.adapters.partition.unstructured import pptx_partitioner, table_of
from tidemark.domain.documents import Element, ElementKind, PartitionedDocument


def partition_pptx(content: bytes) -> PartitionedDocument:
    """Partition slides: each slide is a section under its title, its notes last under a heading of their own.

    What is said beside a slide is not on it: "Notes" tells it apart, as the program that shows it does.
    """
    notes, listed = _notes_and_lists(content)
    parts = pptx_partitioner()(file=BytesIO(content), languages=[""], include_slide_notes=False)
    slides: dict[int, list[Any]] = {}
    for part in parts:
        if part.category != "PageBreak" and (part.text.strip() or part.category == "Table"):
            slides.setdefault(part.metadata.page_number or 1, []).append(part)
    titled = any(part.category == "Title" for slide in slides.values() for part in slide)
    elements: list[Element] = []
    for page in sorted(slides.keys() | notes.keys()):
        elements += _slide(slides.get(page, []), page, listed.get(page, set()), titled=titled)
        if page in notes:
            elements.append(Element(ElementKind.TITLE, "Notes", 2, page))
            elements += [Element(ElementKind.TEXT, note, None, page) for note in notes[page]]
    title, language = core_properties(content)
    heading = next((e.text for e in elements if e.kind is ElementKind.TITLE and e.level == 1), "")
    return PartitionedDocument(title or heading, tuple(elements), language)


def _slide(parts: list[Any], page: int, points: set[str], *, titled: bool) -> Iterator[Element]:
    """One slide; ``points`` are the paragraphs that its layout shows with bullets."""
    titles = [part for part in parts if part.category == "Title"]
    if titles:
        yield Element(
            ElementKind.TITLE, " ".join(" ".join(t.text for t in titles).split()), 1, page
        )
    elif titled:
        # Without a heading of its own it would be read as a part of the slide before it.
        yield Element(ElementKind.TITLE, f"Slide {page}", 1, page)
    for part in parts:
        if part.category == "Title":
            continue
        if part.category == "Table":
            table = table_of(part)
            if table is not None:
                yield replace(table, page_number=page)
            continue
        level = (part.metadata.category_depth or 0) + 1
        listed = part.category == "ListItem" or level > 1 or part.text.strip() in points
        kind = ElementKind.LIST_ITEM if listed else ElementKind.TEXT
        yield Element(kind, part.text.strip(), level if listed else None, page)


def _notes_and_lists(content: bytes) -> tuple[dict[int, list[str]], dict[int, set[str]]]:
    """By slide: the paragraphs of its notes, and those of its body, which layouts show as bullets."""
    from pptx import Presentation
    from pptx.enum.shapes import PP_PLACEHOLDER

    notes: dict[int, list[str]] = {}
    points: dict[int, set[str]] = {}
    for number, slide in enumerate(Presentation(BytesIO(content)).slides, start=1):
        for shape in slide.placeholders:
            body = shape.placeholder_format.type in {PP_PLACEHOLDER.BODY, PP_PLACEHOLDER.OBJECT}
            paragraphs = _paragraphs(shape.text_frame) if body and shape.has_text_frame else []
            if len(paragraphs) > 1:
                points.setdefault(number, set()).update(paragraphs)
        frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        if frame is not None and (paragraphs := _paragraphs(frame)):
            notes[number] = paragraphs
    return notes, points


def _paragraphs(frame: Any) -> list[str]:
    return [text for paragraph in frame.paragraphs if (text := paragraph.text.strip())]
