"""Lines of AsciiDoc that begin or end something."""

import re

HEADING = re.compile(r"(={1,6}|#{1,6})\s+(\S.*?)(?:\s+\1)?\s*$")
BLOCK_TITLE = re.compile(r"\.([^\s.].*)$")
BLOCK_ATTRIBUTES = re.compile(r"\[(?!\[)([^\]]*)\]\s*$")
ANCHOR = re.compile(r"\[\[([\w:.-]+)(?:,[^\]]*)?\]\]\s*$")
ITEM = re.compile(r"\s*(\*{1,6}|-|\.{1,6}|\d{1,4}\.|[a-zA-Z]\.|<\.>|<\d{1,3}>)\s+(\S.*)$")
TERM = re.compile(r"\s*(\S.*?)(:{2,4}|;;)(?:\s+(.*))?$")
FENCE = re.compile(r"(-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|--|```+\s*(\S*))\s*$")
TABLE = re.compile(r"([|,:!])={3,}\s*$")


def opens(line: str) -> bool:
    """Whether a line begins a delimited block or a table."""
    return bool(FENCE.match(line) or TABLE.match(line))


def above_block(line: str) -> bool:
    """Whether a line says something about the block under it."""
    return bool(BLOCK_ATTRIBUTES.match(line) or BLOCK_TITLE.match(line) or ANCHOR.match(line))


def end_of(lines: list[str], index: int) -> int:
    """The line that closes the block which a line opens, the last one where none does."""
    mark = re.sub(r"^(`+).*", r"\1", lines[index].strip())
    for end in range(index + 1, len(lines)):
        if lines[end].rstrip() == mark:
            return end
    return len(lines)
