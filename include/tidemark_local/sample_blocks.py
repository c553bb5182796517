"""Read the small part of Markdown that the text of generated sample documents is written in."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    HEADING = "heading"
    PARAGRAPH = "paragraph"
    BULLET = "bullet"
    NUMBERED = "numbered"
    NOTE = "note"
    TABLE = "table"


@dataclass(frozen=True, slots=True)
class Block:
    """One block of a content file.

    level: of a heading from 1, else 0.
    rows: of a table, its header first.
    """

    kind: Kind
    text: str = ""
    level: int = 0
    rows: tuple[tuple[str, ...], ...] = ()


LINE = re.compile(r"(?P<mark>#{1,3}|-|\d+\.|>) (?P<text>.+)")
MARKS = {"-": Kind.BULLET, ">": Kind.NOTE}


def read_blocks(text: str) -> Iterator[Block]:
    """Blocks of the Markdown that content files use: one line a block, tables several lines."""
    rows: list[tuple[str, ...]] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("|"):
            rows.append(tuple(cell.strip() for cell in line.strip("|").split("|")))
            continue
        if rows:
            # The second row is the rule under the header.
            yield Block(Kind.TABLE, rows=(rows[0], *rows[2:]))
            rows = []
        if line:
            yield _line_block(line)


def _line_block(line: str) -> Block:
    match = LINE.fullmatch(line)
    if match is None:
        return Block(Kind.PARAGRAPH, line)
    mark, text = match["mark"], match["text"]
    if mark.startswith("#"):
        return Block(Kind.HEADING, text, level=len(mark))
    return Block(MARKS.get(mark, Kind.NUMBERED), text)


def under_headings(blocks: list[Block]) -> Iterator[tuple[Block, list[Block]]]:
    """Each heading with the blocks up to the next one."""
    starts = [i for i, block in enumerate(blocks) if block.kind is Kind.HEADING]
    for start, end in zip(starts, [*starts[1:], len(blocks)], strict=True):
        yield blocks[start], blocks[start + 1 : end]
