"""Chunks as boxes of lines, coloured by the kind of element that each line is of."""

from collections.abc import Sequence
from dataclasses import dataclass

from drawing.svg import CARD, FAINT, INK, SOFT, WARN, Picture, measure, shorten, wrap
from tidemark.domain.chunks import Chunk
from tidemark.domain.documents import CELL, ElementKind, PartitionedDocument

KINDS = {
    "heading": "#12355b",
    "text": "#6b7a88",
    "list": "#2d7d62",
    "table": "#b06a17",
    "code": "#6b4fa3",
    "term": "#a8325e",
    "quote": "#3c7fb1",
}
"""The colour of each kind in the pictures."""
_KIND_OF = {
    ElementKind.TITLE: "heading",
    ElementKind.LIST_ITEM: "list",
    ElementKind.TABLE: "table",
    ElementKind.CODE: "code",
    ElementKind.TERM: "term",
    ElementKind.DEFINITION: "term",
    ElementKind.QUOTE: "quote",
}
BAR = "  |  "
PAD, STRIP = 6.0, 4.0
HEAD = 15.0


@dataclass(frozen=True, slots=True)
class Line:
    """One drawn line; ``again`` when it repeats what an earlier chunk has."""

    text: str
    kind: str
    again: bool = False

    @property
    def mono(self) -> bool:
        return self.kind in {"code", "table"}


@dataclass(frozen=True, slots=True)
class Block:
    """A chunk to be drawn: the headings that are new above it, its lines, and its tokens."""

    headings: tuple[str, ...]
    lines: tuple[Line, ...]
    tokens: int
    number: int

    def height(self, size: float) -> float:
        step = size * 1.28
        return len(self.headings) * HEAD + len(self.lines) * step + 2 * PAD + 8


def kind_of(element_kind: ElementKind) -> str:
    return _KIND_OF.get(element_kind, "text")


def kind_of_line(line: str, page: PartitionedDocument) -> str:
    """The kind of the element that holds a line of a chunk's text."""
    plain = line.strip()
    for element in page.elements:
        if plain in {part.strip() for part in element.text.split("\n")}:
            return kind_of(element.kind)
    for element in page.elements:
        if plain in element.text:
            return kind_of(element.kind)
    return "text"


def again_of(chunk: Chunk, before: Chunk | None) -> int:
    """How many characters of a chunk's text repeat something: a header, a signature, an overlap."""
    prefix = len(chunk.text) - (chunk.end - chunk.start)
    overlap = 0
    if before is not None and before.section_id == chunk.section_id:
        overlap = max(before.end - chunk.start, 0)
    return prefix + overlap


def lines_of(
    text: str, page: PartitionedDocument, width: float, size: float, again: int = 0
) -> list[Line]:
    """The drawn lines of a text, blank ones left out; the first ``again`` characters repeat something."""
    lines: list[Line] = []
    parts = [(text[:again], True), (text[again:], False)] if again else [(text, False)]
    for part, repeated in parts:
        for raw in part.split("\n"):
            if not raw.strip():
                continue
            kind = kind_of_line(raw, page)
            mono = kind in {"code", "table"}
            if kind == "text":
                raw = raw.strip()
            shown = raw.rstrip().replace(CELL, BAR)
            fitted = [shorten(shown, width, size, mono=True)] if mono else wrap(shown, width, size)
            lines += [Line(one, kind, repeated) for one in fitted]
    return lines


def blocks_of(
    page: PartitionedDocument, chunks: Sequence[Chunk], width: float, size: float
) -> list[Block]:
    """Chunks in order, each with the headings that the one before it did not have."""
    inner = width - 2 * PAD - STRIP
    blocks: list[Block] = []
    path: tuple[str, ...] = ()
    before: Chunk | None = None
    for chunk in chunks:
        same = 0
        while same < min(len(path), len(chunk.heading_path)):
            if path[same] != chunk.heading_path[same]:
                break
            same += 1
        headings = tuple(
            "  " * depth + chunk.heading_path[depth]
            for depth in range(same, len(chunk.heading_path))
        )
        path = chunk.heading_path
        lines = lines_of(chunk.text, page, inner, size, again_of(chunk, before))
        blocks.append(Block(headings, tuple(lines), chunk.token_count, chunk.chunk_index))
        before = chunk
    return blocks


def in_columns(blocks: Sequence[Block], count: int, size: float) -> list[list[Block]]:
    """Blocks in order over at most ``count`` columns, the highest as low as can be."""
    if count == 1:
        return [list(blocks)]
    heights = [block.height(size) for block in blocks]
    limit = max(max(heights), sum(heights) / count)
    while True:
        columns: list[list[Block]] = [[]]
        used = 0.0
        for block, height in zip(blocks, heights, strict=True):
            if columns[-1] and used + height > limit:
                columns.append([])
                used = 0.0
            columns[-1].append(block)
            used += height
        if len(columns) <= count:
            return columns
        limit += 4


def draw_block(
    picture: Picture,
    block: Block,
    place: tuple[float, float],
    width: float,
    size: float,
    *,
    stroke: str = FAINT,
    fill: str = CARD,
) -> tuple[float, float]:
    """Draw one; where its box begins and ends, from the top."""
    x, y = place
    for heading in block.headings:
        y += HEAD
        fitted = shorten(heading, width, 10.5, bold=True)
        picture.text(x, y - 4, fitted, 10.5, bold=True, fill=KINDS["heading"])
    step = size * 1.28
    height = len(block.lines) * step + 2 * PAD
    picture.rect(x, y, width, height, fill=fill, stroke=stroke)
    draw_lines(picture, block.lines, (x, y + PAD), width, size)
    label = f"{block.tokens}"
    wide = measure(label, 9) + 8
    picture.rect(x + width - wide - 2, y + height - 6, wide, 12, fill="#e6edf2", radius=6)
    picture.text(x + width - wide / 2 - 2, y + height + 3.2, label, 9, anchor="middle", fill=SOFT)
    return y, y + height


def draw_lines(
    picture: Picture,
    lines: Sequence[Line],
    place: tuple[float, float],
    width: float,
    size: float,
) -> float:
    """Draw lines with the strip of their kind at the left; the y below them."""
    x, y = place
    step = size * 1.28
    run = 0
    for number, line in enumerate(lines):
        if line.again:
            picture.rect(
                x + STRIP + 2, y + number * step, width - STRIP - 4, step, fill="#fdebd8", radius=0
            )
        picture.text(
            x + PAD + STRIP,
            y + number * step + size * 0.95,
            line.text,
            size,
            mono=line.mono,
            bold=line.kind == "heading",
            fill=WARN if line.again else INK,
        )
        last = number + 1 == len(lines) or lines[number + 1].kind != line.kind
        if last:
            picture.rect(
                x + 2, y + run * step, STRIP - 1, (number + 1 - run) * step,
                fill=KINDS[line.kind], radius=1,
            )  # fmt: skip
            run = number + 1
    return y + len(lines) * step


def legend(picture: Picture, y: float, kinds: Sequence[str], notes: Sequence[str] = ()) -> float:
    """The colours that are used, in one row; the y below it."""
    x = 16.0
    for kind in kinds:
        picture.rect(x, y, 10, 10, fill=KINDS[kind], radius=2)
        picture.text(x + 14, y + 9, kind, 10.5, fill=SOFT)
        x += 14 + measure(kind, 10.5) + 14
    for note in notes:
        picture.text(x + 4, y + 9, note, 10.5, fill=SOFT)
        x += measure(note, 10.5) + 20
    return y + 20
