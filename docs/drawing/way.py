"""The way of one page: its blocks, the tree of its sections, its chunks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from drawing.blocks import (
    HEAD,
    KINDS,
    PAD,
    blocks_of,
    draw_block,
    draw_lines,
    kind_of,
    legend,
    lines_of,
)
from drawing.pages import SOURCES, chunked, document, profile_of, tokens_of
from drawing.svg import CARD, FAINT, SOFT, Picture, shorten, wrap
from tidemark.domain.chunks import Chunk, Section
from tidemark.domain.documents import Element, ElementKind

SIZE = 10.0
WIDTH = 1040
LEFT, MIDDLE, RIGHT = (16.0, 352.0), (396.0, 208.0), (664.0, 360.0)
"""Each column's begin and width."""
PARENT_COLOURS = ("#1f6f8b", "#8a5a00", "#5a4a9c", "#2d7d62", "#a8325e", "#4d6a1e")


@dataclass(frozen=True, slots=True)
class _Row:
    """A section in the tree: the middle of its box, and its colour when chunks name it."""

    y: float
    colour: str


def picture() -> Picture:
    page = document("page")
    result = chunked(page, profile_of("by_title"))
    title = "The way of a page: blocks, sections, chunks"
    drawn = Picture(
        title,
        "Left: the page as typed blocks. Middle: the tree of its sections; filled ones are handed to a "
        "reader. Right: the chunks with their headings, each joined to the section it is read in.",
        WIDTH,
    )
    y = drawn.heading(
        title,
        f"{SOURCES['page']} with the profile docs. Middle: a coloured frame marks a section that is handed "
        "to a reader (a parent); a dashed one is read within the section above it.",
    )
    for (x, _), name in zip(
        (LEFT, MIDDLE, RIGHT),
        (
            f"{len(page.elements)} elements",
            f"{len(result.sections)} sections",
            f"{len(result.chunks)} chunks",
        ),
        strict=True,
    ):
        drawn.text(x, y + 10, name, 12, bold=True)
    top = y + 20
    places, left_end = _left(drawn, page.elements, top)
    right = _right(drawn, result.chunks, top)
    colours = _colours(result.sections, {chunk.section_id for chunk in result.chunks})
    rows = _tree(drawn, result.sections, colours, places, top)
    for chunk in result.chunks:
        row = rows[chunk.section_id]
        drawn.curve(
            (MIDDLE[0] + MIDDLE[1], row.y), (RIGHT[0], right[chunk.chunk_index]), stroke=row.colour
        )
    legend(drawn, max(left_end, drawn.bottom) + 12, ["heading", "text", "list", "table", "code"])
    return drawn


def _left(
    drawn: Picture, elements: tuple[Element, ...], y: float
) -> tuple[dict[str, float], float]:
    """Draw the page; where each heading stands, and the end."""
    x, width = LEFT
    page = document("page")
    places: dict[str, float] = {}
    previous: Element | None = None
    for element in elements:
        if element.kind is ElementKind.TITLE:
            y += 6
            size = {1: 13.0, 2: 11.5}.get(element.level or 1, 10.5)
            drawn.rect(x + 2, y + 1, 3, 15, fill=KINDS["heading"], radius=1)
            shown = shorten(element.text, width - 14, size, bold=True)
            drawn.text(x + 10, y + 12, shown, size, bold=True, fill=KINDS["heading"])
            places[element.text] = y + 8
            y += 20
        else:
            joined = previous is not None and previous.kind is element.kind is ElementKind.LIST_ITEM
            y -= 4 if joined else 0
            mark = "• " if element.kind is ElementKind.LIST_ITEM else ""
            lines = lines_of(mark + element.text, page, width - 2 * PAD - 4, SIZE)
            own = [replace(line, kind=kind_of(element.kind)) for line in lines]
            drawn.rect(x, y, width, len(own) * SIZE * 1.28 + 5, fill=CARD, radius=2)
            y = draw_lines(drawn, own, (x, y + 2), width, SIZE) + 7
        previous = element
    return places, y


def _right(drawn: Picture, chunks: Sequence[Chunk], y: float) -> dict[int, float]:
    """Draw the chunks under their paths; the middle of each."""
    x, width = RIGHT
    middles: dict[int, float] = {}
    page = document("page")
    for block in blocks_of(page, chunks, width, SIZE):
        path = " > ".join(chunks[block.number].heading_path[1:]) or "(the page's own text)"
        drawn.text(x, y + 11, shorten(path, width, 10, bold=True), 10, bold=True, fill=SOFT)
        bare = replace(block, headings=())
        begin, end = draw_block(drawn, bare, (x, y + HEAD), width, SIZE)
        middles[block.number] = (begin + end) / 2
        y = end + 10
    return middles


def _colours(sections: tuple[Section, ...], read: set[UUID]) -> dict[UUID, str]:
    used = [section.section_id for section in sections if section.section_id in read]
    return {one: PARENT_COLOURS[i % len(PARENT_COLOURS)] for i, one in enumerate(used)}


def _tree(
    drawn: Picture,
    sections: tuple[Section, ...],
    colours: dict[UUID, str],
    places: dict[str, float],
    top: float,
) -> dict[UUID, _Row]:
    x, width = MIDDLE
    rows: dict[UUID, _Row] = {}
    y = top
    for section in sections:
        depth = len(section.heading_path) - 1
        y = max(y, places.get(section.heading_path[-1], y) - 14)
        colour = colours.get(section.section_id, "")
        left = x + 16 * depth
        lines = wrap(section.heading_path[-1], width - 16 * depth - 14, 10.5)
        height = 13 * len(lines) + 20
        drawn.rect(
            left, y, width - 16 * depth, height,
            fill=CARD, stroke=colour or FAINT, dashed=not colour,
        )  # fmt: skip
        for number, line in enumerate(lines):
            drawn.text(left + 7, y + 14 + 13 * number, line, 10.5, bold=True)
        note = f"{tokens_of(section.text)} tokens to read" if colour else "read with the one above"
        drawn.text(left + 7, y + height - 7, note, 9, fill=SOFT)
        middle = y + height / 2
        above = section.parent_section_id
        if above in rows:
            drawn.path([(left - 8, rows[above].y + 16), (left - 8, middle), (left, middle)])
        rows[section.section_id] = _Row(middle, colour)
        y += height + 8
    return rows
