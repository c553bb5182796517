"""Which section is handed to a reader: short ones climb, a long one is read in parts."""

from collections.abc import Sequence
from itertools import groupby
from uuid import UUID

from drawing.pages import SOURCES, chunked, document, profile_of, tokens_of
from drawing.svg import CARD, FAINT, INK, SOFT, Picture, measure, shorten
from drawing.way import PARENT_COLOURS
from tidemark.domain.chunks import Chunk, ChunkedDocument

WIDTH = 920
ROW = 30.0
_TREE, _BAR, _READ = 16.0, 330.0, 600.0
_BAR_WIDTH = 230.0


def picture() -> Picture:
    profile = profile_of("by_title")
    title = "Parents: what a reader is handed for a chunk"
    drawn = Picture(
        title,
        "Above: sections of a page. A section that fits the budget together with its sub-sections is handed "
        "out whole for every chunk in them. Below: one long body, handed out in parts that end where chunks "
        "end.",
        WIDTH,
    )
    y = drawn.heading(
        title,
        f"parent_tokens is {profile.parent_tokens}. A chunk is read in the highest section around it that "
        "fits, sub-sections included; a body over the budget is read in parts.",
    )
    y = _climbing(drawn, y)
    _parting(drawn, y + 22)
    return drawn


def _climbing(drawn: Picture, y: float) -> float:
    profile = profile_of("by_title")
    result = chunked(document("nested"), profile)
    drawn.text(16, y + 12, f"Short sections climb: {SOURCES['nested']}", 12, bold=True)
    y += 36
    for x, name in (
        (_TREE, "section"),
        (_BAR, "tokens with all below it"),
        (_READ, "read for its chunks"),
    ):
        drawn.text(x, y, name, 10.5, fill=SOFT)
    y += 8
    wholes = _wholes(result)
    most = max(wholes.values())
    scale = _BAR_WIDTH / most
    limit = _BAR + profile.parent_tokens * scale
    colours = _colours(result.chunks)
    rows: dict[UUID, float] = {}
    bottom = y + ROW * len(result.sections)
    drawn.path([(limit, y - 2), (limit, bottom)], stroke="#c2560c", width=1)
    readers = {chunk.heading_path: chunk.section_id for chunk in result.chunks}
    for section in result.sections:
        depth = len(section.heading_path) - 1
        own = section.section_id if section.section_id in colours else None
        home = readers.get(section.heading_path, own)
        colour = colours[home] if home else FAINT
        left = _TREE + 18 * depth
        drawn.rect(left, y, 296 - 18 * depth, ROW - 6, fill=CARD, stroke=colour)
        fitted = shorten(section.heading_path[-1], 280 - 18 * depth, 11)
        drawn.text(left + 8, y + 16, fitted, 11, bold=section.section_id in colours)
        whole = wholes[section.section_id]
        fill = colour if home == section.section_id else "#d5dde3"
        drawn.rect(_BAR, y + 5, max(whole * scale, 2), ROW - 16, fill=fill, radius=2)
        inside = whole * scale > _BAR_WIDTH - 40
        at = _BAR + whole * scale + (-6 if inside else 5)
        shade = "#ffffff" if inside and fill != "#d5dde3" else INK
        drawn.text(at, y + 15, f"{whole}", 10, fill=shade, anchor="end" if inside else "start")
        rows[section.section_id] = y
        y += ROW
    drawn.text(limit + 4, bottom + 10, f"budget {profile.parent_tokens}", 10, fill="#c2560c")
    _brackets(drawn, result, readers, rows, colours)
    return bottom + 12


def _wholes(result: ChunkedDocument) -> dict[UUID, int]:
    """Tokens of each section with its heading and all below it."""
    own: dict[UUID, int] = {}
    paths = {chunk.heading_path: 0 for chunk in result.chunks}
    for chunk in result.chunks:
        paths[chunk.heading_path] += tokens_of(chunk.text)
    for section in result.sections:
        own[section.section_id] = paths.get(section.heading_path, 0) + tokens_of(
            section.heading_path[-1]
        )
    whole = dict(own)
    for section in reversed(result.sections):
        if section.parent_section_id is not None:
            whole[section.parent_section_id] += whole[section.section_id]
    return whole


def _brackets(
    drawn: Picture,
    result: ChunkedDocument,
    readers: dict[tuple[str, ...], UUID],
    rows: dict[UUID, float],
    colours: dict[UUID, str],
) -> None:
    """A bracket around the rows that are read together."""
    texts = {section.section_id: section.text for section in result.sections}
    names = {section.section_id: section.heading_path[-1] for section in result.sections}
    homes = [(section.section_id, readers.get(section.heading_path)) for section in result.sections]
    for home, run in groupby(homes, key=lambda pair: pair[1] or pair[0]):
        members = [one for one, _ in run]
        if home not in colours:
            continue
        top, end = rows[members[0]] + 2, rows[members[-1]] + ROW - 8
        colour = colours[home]
        drawn.path(
            [(_READ, top), (_READ + 8, top), (_READ + 8, end), (_READ, end)], stroke=colour, width=2
        )
        chunks = sum(1 for chunk in result.chunks if chunk.section_id == home)
        many = f"{chunks} chunks" if chunks > 1 else "1 chunk"
        middle = (top + end) / 2 + 4
        said = f"{names[home]}: {tokens_of(texts[home])} tokens, {many}"
        drawn.text(_READ + 16, middle, shorten(said, WIDTH - _READ - 32, 11), 11)


def _colours(chunks: Sequence[Chunk]) -> dict[UUID, str]:
    used = list(dict.fromkeys(chunk.section_id for chunk in chunks))
    return {one: PARENT_COLOURS[i % len(PARENT_COLOURS)] for i, one in enumerate(used)}


def _parting(drawn: Picture, y: float) -> None:
    profile = profile_of("by_title")
    result = chunked(document("long"), profile)
    drawn.text(16, y + 12, f"A long body is read in parts: {SOURCES['long']}", 12, bold=True)
    body = sum(tokens_of(section.text) for section in result.sections)
    said = (
        f"One heading with {body} tokens under it, no sub-heading: {len(result.chunks)} chunks, read in "
        f"{len(result.sections)} sections of the same heading path."
    )
    drawn.text(16, y + 29, said, 11, fill=SOFT)
    y += 62
    left, width = 16.0, WIDTH - 32.0
    total = sum(tokens_of(chunk.text) for chunk in result.chunks)
    scale = width / total
    colours = _colours(result.chunks)
    x = left
    for home, run in groupby(result.chunks, key=lambda chunk: chunk.section_id):
        chunks = list(run)
        begin = x
        for chunk in chunks:
            wide = tokens_of(chunk.text) * scale
            drawn.rect(x + 1, y + 30, wide - 2, 24, fill=CARD, stroke=colours[home], radius=3)
            number = f"{chunk.token_count}"
            if measure(number, 10) < wide - 4:
                drawn.text(x + wide / 2, y + 46, number, 10, anchor="middle")
            x += wide
        drawn.rect(begin + 1, y, x - begin - 2, 24, fill=colours[home], radius=3)
        text = next(s.text for s in result.sections if s.section_id == home)
        drawn.text(
            (begin + x) / 2, y + 16, f"{tokens_of(text)} tokens", 10.5,
            bold=True, fill="#ffffff", anchor="middle",
        )  # fmt: skip
    drawn.text(left, y - 6, "sections handed out", 10.5, fill=SOFT)
    drawn.text(left, y + 68, "chunks, with the tokens of what is embedded", 10.5, fill=SOFT)
