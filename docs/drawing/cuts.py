"""One page cut by each strategy: an overview of all, and a picture with the text of each."""

from collections.abc import Sequence
from statistics import mean

from drawing.blocks import (
    KINDS,
    Line,
    blocks_of,
    draw_block,
    in_columns,
    legend,
)
from drawing.pages import SMALL_TARGET, SOURCES, chunked, document, profile_of, small_profile_of
from drawing.svg import ACCENT, CARD, SOFT, Picture
from tidemark.domain.chunks import Chunk
from tidemark.domain.documents import PartitionedDocument
from tidemark.domain.profile import STRATEGIES, Profile

OWN = ("code", "table", "contract", "faq", "whole")
"""Strategies whose picture with text shows a document of their own kind, not the common page."""
SIZE = 10.5
WIDTH = 920
_TINTS = ("#ffffff", "#eef5f9")


def said_of(profile: Profile, chunks: Sequence[Chunk]) -> str:
    if len(chunks) == 1:
        return f"1 chunk of {chunks[0].token_count} tokens"
    return f"{len(chunks)} chunks, {mean(c.token_count for c in chunks):.0f} tokens on average"


def detail(strategy: str) -> Picture:
    """One document with its text, cut by one strategy."""
    name = strategy if strategy in OWN else "page"
    profile = profile_of(strategy) if strategy in OWN else small_profile_of(strategy)
    page = document(name)
    chunks = chunked(page, profile).chunks
    title = f"{strategy}: {said_of(profile, chunks)}"
    options = f"target {profile.target_tokens}, at most {profile.max_tokens} tokens"
    if profile.overlap:
        options += f", overlap {profile.overlap:.0%}"
    if profile.merge_sections:
        options += ", sections that are read as one are cut as one"
    picture = Picture(
        title,
        f"The file {SOURCES[name]} cut by the strategy {strategy} into {len(chunks)} chunks. Each box is "
        "a chunk; headings above the boxes are not part of their text.",
        WIDTH,
    )
    y = picture.heading(
        title,
        f"{SOURCES[name]} · profile {profile.name}: {options}. A box is a chunk, the number at its "
        "corner the tokens of what is embedded; a line above a box is its heading.",
    )
    count = 2 if len(chunks) > 1 else 1
    gap = 24
    width = (WIDTH - 32 - gap * (count - 1)) / count
    top = y
    blocks = blocks_of(page, chunks, width, SIZE)
    for number, column in enumerate(in_columns(blocks, count, SIZE)):
        y = top
        for block in column:
            tint = _TINTS[block.number % 2]
            _, end = draw_block(
                picture, block, (16 + number * (width + gap), y), width, SIZE, stroke=ACCENT, fill=tint
            )  # fmt: skip
            y = end + 8
    used = {line.kind for block in blocks for line in block.lines}
    repeats = any(line.again for block in blocks for line in block.lines)
    legend(
        picture,
        picture.bottom + 10,
        [kind for kind in KINDS if kind in used],
        ["on orange ground: repeated from further up"] if repeats else (),
    )
    return picture


def overview() -> Picture:
    """The common page as twelve columns of bars, one line of text a bar."""
    page = document("page")
    title = "The same page cut by each strategy"
    picture = Picture(
        title,
        "Twelve columns, one a strategy. In each the page runs from top to bottom; a box is a chunk, a bar "
        "a line of its text, a dark bar between boxes a heading. Under each column are the number of chunks "
        "and their mean tokens.",
        1000,
    )
    y = picture.heading(
        title,
        f"{SOURCES['page']}, target {SMALL_TARGET} tokens (whole as built in: the page is over its limit "
        "and cut by sections). A box is a chunk, a bar a line of its text in the colour of its kind; dark "
        "bars between boxes are headings. On orange ground: text that an earlier chunk has too.",
    )
    width, gap = 72.0, 9.0
    tops = y + 18
    deepest = 0.0
    profiles = {name: small_profile_of(name) for name in STRATEGIES}
    profiles["whole"] = profile_of("whole")
    cuts = [(name, chunked(page, profile).chunks) for name, profile in profiles.items()]
    for number, (name, chunks) in enumerate(cuts):
        x = 16 + number * (width + gap)
        picture.text(x + width / 2, tops - 6, name, 10.5, bold=True, anchor="middle")
        deepest = max(deepest, _column(picture, page, chunks, (x, tops), width))
    for number, (_, chunks) in enumerate(cuts):
        x = 16 + number * (width + gap) + width / 2
        many = f"{len(chunks)} chunks" if len(chunks) > 1 else "1 chunk"
        picture.text(x, deepest + 18, many, 10.5, anchor="middle")
        average = f"mean {mean(c.token_count for c in chunks):.0f}"
        picture.text(x, deepest + 32, average, 10.5, anchor="middle", fill=SOFT)
    legend(picture, deepest + 46, ["heading", "text", "list", "table", "code"])
    return picture


def _column(
    picture: Picture,
    page: PartitionedDocument,
    chunks: Sequence[Chunk],
    place: tuple[float, float],
    width: float,
) -> float:
    """One column of the overview; where it ends."""
    x, y = place
    step, full = 5.0, 330.0
    for block in blocks_of(page, chunks, full, SIZE):
        for heading in block.headings:
            indent = len(heading) - len(heading.lstrip())
            picture.rect(
                x + indent, y + 1, width * 0.6 - indent, 3, fill=KINDS["heading"], radius=1
            )
            y += 6
        height = len(block.lines) * step + 5
        picture.rect(x, y, width, height, fill=CARD, stroke=ACCENT, radius=3)
        for number, line in enumerate(block.lines):
            _bar(picture, line, (x + 4, y + 3.5 + number * step), (width - 8, full))
        y += height + 4
    return y


def _bar(
    picture: Picture, line: Line, place: tuple[float, float], widths: tuple[float, float]
) -> None:
    """A line of text as a bar, as long in ``widths[0]`` as the line is in ``widths[1]``."""
    share = min(len(line.text) * 5.2 / widths[1], 1.0)
    if line.again:
        picture.rect(place[0] - 2, place[1] - 1, widths[0] + 4, 5, fill="#f7c99b", radius=1)
    picture.rect(*place, max(widths[0] * share, 3), 3, fill=KINDS[line.kind], radius=1)
