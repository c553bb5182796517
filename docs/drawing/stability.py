"""One page before and after an edit: which chunks keep their vectors."""

from collections.abc import Sequence, Set
from dataclasses import replace

from drawing.pages import SOURCES, chunked, document, profile_of
from drawing.svg import FAINT, INK, SOFT, WARN, Picture, shorten, wrap
from tidemark.domain.chunks import Chunk
from tidemark.domain.documents import PartitionedDocument
from tidemark.domain.profile import Profile

WIDTH = 1000
SIZE = 10.0
ROW, GAP, LINES = 38.0, 4.0, 2
TARGET = 64
NEW = "Two spare ropes of twelve metres each, coiled and dry, under the front seat"
BEFORE = "5. "
"""The new item is put in before the one that begins so."""
_REUSED = "#e3e8ec"
_FRESH = "#fbd9b5"


def picture() -> Picture:
    page = document("stops")
    edited = _edited(page)
    title = "One new list item: which chunks are embedded again"
    drawn = Picture(
        title,
        "Two strategies, each with the chunks of a page before and after an item is put into a long list. "
        "Grey chunks keep their vectors, orange ones are embedded again.",
        WIDTH,
    )
    y = drawn.heading(
        title,
        f"{SOURCES['stops']} before and after an item is put in above the fifth; target {TARGET} tokens. A "
        "box is a chunk with the begin of its text. Grey: the vector is re-used. Orange: gone, or "
        "embedded anew.",
    )
    half = (WIDTH - 32 - 40) / 2
    for number, (strategy, note) in enumerate(
        (
            ("by_title", "anchored at content"),
            ("recursive", "each chunk is filled from the top"),
        )
    ):
        profile = replace(profile_of(strategy), target_tokens=TARGET)
        x = 16 + number * (half + 40)
        drawn.text(x, y + 10, f"{strategy}: {note}", 12, bold=True)
        _panel(drawn, page, edited, profile, (x, y + 18), half)
    return drawn


def _edited(page: PartitionedDocument) -> PartitionedDocument:
    place = next(i for i, e in enumerate(page.elements) if e.text.startswith(BEFORE))
    new = replace(page.elements[place], text=NEW, anchor=None)
    return replace(page, elements=(*page.elements[:place], new, *page.elements[place:]))


def embedded_anew(strategy: str) -> int:
    """How many chunks of the edited page have no vector yet."""
    page, profile = document("stops"), replace(profile_of(strategy), target_tokens=TARGET)
    before = {chunk.chunk_id for chunk in chunked(page, profile).chunks}
    return sum(one.chunk_id not in before for one in chunked(_edited(page), profile).chunks)


def _panel(
    drawn: Picture,
    page: PartitionedDocument,
    edited: PartitionedDocument,
    profile: Profile,
    place: tuple[float, float],
    width: float,
) -> None:
    x, y = place
    before, after = chunked(page, profile).chunks, chunked(edited, profile).chunks
    kept = {chunk.chunk_id for chunk in before} & {chunk.chunk_id for chunk in after}
    column = (width - 34) / 2
    drawn.text(x, y + 14, f"before: {len(before)} chunks", 10.5, fill=SOFT)
    fresh = sum(1 for chunk in after if chunk.chunk_id not in kept)
    drawn.text(
        x + column + 34, y + 14, f"after: {len(after)} chunks, {fresh} embedded anew", 10.5, fill=SOFT
    )  # fmt: skip
    top = y + 22
    left = _rows(drawn, before, kept, (x, top), column)
    right = _rows(drawn, after, kept, (x + column + 34, top), column)
    for one in before:
        if one.chunk_id in kept:
            drawn.curve(
                (x + column, left[one.chunk_index]),
                (x + column + 34, right[_index(after, one)]),
                stroke="#9aa7b2",
            )


def _index(chunks: Sequence[Chunk], one: Chunk) -> int:
    return next(chunk.chunk_index for chunk in chunks if chunk.chunk_id == one.chunk_id)


def _rows(
    drawn: Picture, chunks: Sequence[Chunk], kept: Set[object], place: tuple[float, float], width: float
) -> dict[int, float]:  # fmt: skip
    x, y = place
    middles: dict[int, float] = {}
    for chunk in chunks:
        again = chunk.chunk_id in kept
        fill, stroke = (_REUSED, FAINT) if again else (_FRESH, WARN)
        drawn.rect(x, y, width, ROW - GAP, fill=fill, stroke=stroke, radius=3)
        words = " ".join(chunk.text.split())
        lines = wrap(words, width - 40, SIZE)
        if len(lines) > LINES:
            lines = [*lines[: LINES - 1], shorten(" ".join(lines[LINES - 1 :]), width - 40, SIZE)]
        for number, line in enumerate(lines):
            drawn.text(x + 6, y + 14 + 13 * number, line, SIZE, fill=INK)
        drawn.text(x + width - 5, y + 14, f"{chunk.token_count}", 9, fill=SOFT, anchor="end")
        middles[chunk.chunk_index] = y + (ROW - GAP) / 2
        y += ROW
    return middles
