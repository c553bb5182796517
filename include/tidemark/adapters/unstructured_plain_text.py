"""Plain text to blocks: headings (underlined, numbered, capital), lists, drawn tables, paragraphs.

A heading is believed only when it stands alone and looks like nothing else, since a wrong one cuts a document
apart and a missed one only makes a section longer.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from lxml import etree

from tidemark.adapters.html_lines import LINE_END, is_labelled, runs_on
from tidemark.adapters.plain_text_headings import (
    UNWRAPPED_WIDTH,
    Heading,
    below,
    marked_headings,
    unwrapped_headings,
    wiki_lists,
)
from tidemark.adapters.plain_text_lists import items_of, list_ranges, mark_of
from tidemark.adapters.plain_text_numbers import numbered_headings

_UNDERLINE = re.compile(r"([=\-~^*#+])\1{2,}\s*$")
_LEVELS = "=-~^*#+"
_ATX = re.compile(r"(#{1,6})\s+(.+?)\s*#*$")
_NUMBERED = re.compile(r"(\d{1,3}(?:\.\d{1,3})*)(\.|\))?\s+(\S.*)$")
_COLUMNS = re.compile(r"\S {3,}\S")
_DRAWN = re.compile(r"[|+][-=]{3,}|[─-╿]|[-=_]{6,}|\|.*\|")
_CODE = re.compile(
    r"[{};]\s*$|^\s*(def|class|import|from|return|if|for|#include|\$|>>>)\b|\w\(.*\)\s*[{;:]?$"
)
_MARKED = "data-marked"
_STOPS = (".", ",", ";", ":", "!", "?")
_SENTENCE_ENDS = (".", "!", "?", "。", "！", "？", "।", "؟")
_OPEN_END = re.compile(
    r"\b(?:of|the|and|for|to|in|on|a|an|with|von|der|die|das|und|für|de|la|le|et|du|del|y)$"
)
_GREETING = re.compile(r"\D{2,24},")
"""A short line that runs on and ends all the same: "Kind regards," above a name."""
_PROSE_WIDTH = 45
_LONGEST_DRAWN = 2000
_DEEPEST_ITEM = 9


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines between blank ones, or a heading found by its line."""

    lines: list[str]
    indent: int
    heading: Heading | None = None


def read_plain_text(text: str, *, titled: bool = True) -> etree._Element:
    """The blocks of a text as HTML elements under one root.

    titled: its first line may be its title; not so in a mail, which begins with a greeting.
    """
    pages = text.expandtabs(8).split("\f")
    lines = [line.rstrip() for page in _without_running_lines(pages) for line in page]
    lines = wiki_lists(lines)
    base = _base_indent(_blocks(lines, {}))
    found = marked_headings(lines)
    found |= numbered_headings(lines, base, found)
    found |= below(unwrapped_headings(lines, found), found)
    blocks = _blocks(lines, found)
    root = etree.Element("div")
    titled = titled and _is_title(blocks)
    if titled:
        head, rest = _title_lines(blocks[0].lines)
        add_block(root, "h1", " ".join(line.strip() for line in head))
        blocks = [*([_Block(rest, blocks[0].indent)] if rest else []), *blocks[1:]]
    for index, block in enumerate(blocks):
        following = blocks[index + 1] if index + 1 < len(blocks) else None
        _append(root, block, following, base)
    if len(root) and root[0].tag == "h1" and not (blocks and blocks[0].heading and not titled):
        # What heads the whole text is one level up from the headings in it.
        for heading in root.iterchildren("h1", "h2", "h3", "h4", "h5"):
            if heading is not root[0] and heading.get(_MARKED) is None:
                heading.tag = f"h{int(heading.tag[1]) + 1}"
    return root


def _is_title(blocks: list[_Block]) -> bool:
    """Whether a text begins with a few short lines that head it all."""
    if len(blocks) < 3 or len(blocks[0].lines) > 3 or blocks[0].heading:
        return False
    lines = [line.strip() for line in blocks[0].lines]
    if any(len(line) > 80 or line.endswith(_STOPS) or mark_of(line) for line in lines):
        return False
    plain = not any(
        _UNDERLINE.fullmatch(line) or _ATX.match(line) or _NUMBERED.match(line) for line in lines
    )
    after = blocks[1]
    # Another short line after it belongs to a list of such lines, unless these are capitals.
    prose = len(after.lines) == 1 and _is_prose(after.lines[0], lines[0])
    headed = prose or len(after.lines) > 1 or after.heading is not None
    return plain and (lines[0].isupper() or headed)


def _is_prose(line: str, title: str) -> bool:
    """Whether a line is a paragraph that nobody wrapped, several times as long as the title above it."""
    text = line.strip()
    ended = text.endswith(_SENTENCE_ENDS) or len(text) > UNWRAPPED_WIDTH
    return len(text) > max(3 * len(title), 60) and ended


def _title_lines(lines: list[str]) -> tuple[list[str], list[str]]:
    """The lines of a title that was broken, and those under it that say something else."""
    end = 1
    while end < len(lines) and (
        runs_on(lines[end - 1].strip(), lines[end].strip())
        or _OPEN_END.search(lines[end - 1].strip())
        or (lines[end - 1].isupper() and lines[end].isupper())
    ):
        end += 1
    return lines[:end], lines[end:]


def _without_running_lines(pages: list[str]) -> list[list[str]]:
    """Lines of each page without the headers and footers that return on most pages."""
    split = [page.split("\n") for page in pages]
    if len(split) < 3:
        return split
    edges: Counter[str] = Counter()
    for page in split:
        edges.update({_shape(page[i]) for i in _edge(page)})
    running = {shape for shape, count in edges.items() if count >= max(3, len(split) // 2)}
    return [
        [line for i, line in enumerate(page) if _shape(line) not in running or i not in _edge(page)]
        for page in split
    ]


def _edge(page: list[str]) -> list[int]:
    """Indices of the first and last two lines of a page that hold something."""
    filled = [i for i, line in enumerate(page) if line.strip()]
    return [*filled[:2], *filled[-2:]]


def _shape(line: str) -> str:
    return re.sub(r"\d+", "#", " ".join(line.split()))


def _blocks(lines: list[str], headings: Mapping[int, Heading]) -> list[_Block]:
    blocks: list[_Block] = []
    current: list[str] = []
    taken = 0
    for index, line in enumerate([*lines, ""]):
        if index < taken:
            continue
        heading = headings.get(index)
        if line.strip() and heading is None:
            current.append(line)
            continue
        if current:
            blocks.append(_Block(current, min(len(x) - len(x.lstrip()) for x in current)))
            current = []
        if heading is not None:
            taken = index + heading.lines
            blocks.append(_Block([line], len(line) - len(line.lstrip()), heading))
    return blocks


def _base_indent(blocks: list[_Block]) -> int:
    """The indentation of running text."""
    counts: Counter[int] = Counter()
    for block in blocks:
        if len(block.lines) > 1:
            counts[block.indent] += len(block.lines)
    return counts.most_common(1)[0][0] if counts else 0


def _append(
    root: etree._Element,
    block: _Block,
    following: _Block | None,
    base: int,
) -> None:
    if block.heading is not None:
        heading_element = add_block(root, f"h{block.heading.level}", block.heading.text)
        if block.heading.marked:
            heading_element.set(_MARKED, "")
        return
    lines = block.lines
    if (
        len(lines) >= 2
        and _UNDERLINE.fullmatch(lines[1].strip())
        and not _UNDERLINE.fullmatch(lines[0].strip())
    ):
        if len(lines[1].strip()) >= len(lines[0].strip()) // 2:
            level = min(_LEVELS.index(lines[1].strip()[0]) + 1, 6)
            add_block(root, f"h{level}", lines[0].strip())
            lines = lines[2:]
    elif (
        len(lines) == 3
        and lines[0].strip() == lines[2].strip()
        and _UNDERLINE.fullmatch(lines[0].strip())
    ):
        add_block(root, "h1", lines[1].strip())
        return
    if not lines:
        return
    rest = _Block(lines, block.indent)
    heading = _heading(rest, following, base) if lines is block.lines else None
    if heading:
        add_block(root, f"h{heading[0]}", heading[1])
    else:
        _body(root, rest, base)


def _body(root: etree._Element, block: _Block, base: int) -> None:
    """A block that is no heading: its lists, and what stands before, between and after them."""
    ranges = list_ranges(block.lines)
    drawn = _is_preformatted(block, base)
    if drawn and not (ranges and ranges[0] == (0, len(block.lines))):
        text = "\n".join(line[block.indent :] for line in block.lines)
        add_block(root, "pre", f"\n{text}\n")
        return
    begin = 0
    for start, end in [*ranges, (len(block.lines), len(block.lines))]:
        if start > begin:
            _paragraphs(root, block.lines[begin:start])
        if end > start:
            _list(root, block.lines[start:end])
        begin = end


def _heading(block: _Block, following: _Block | None, base: int) -> tuple[int, str] | None:
    """Level and text of a block that is a heading."""
    text = block.lines[0].strip()
    if len(block.lines) > 1 or len(text) > 90 or block.indent > base or following is None:
        return None
    atx = _ATX.match(text)
    if atx:
        return len(atx[1]), atx[2]
    if text.endswith(_STOPS) or len(text.split()) > 12 or _NUMBERED.match(text):
        return None
    if text.isupper() and len(re.findall(r"[^\W\d_]", text)) >= 3 and not _is_capitals(following):
        return 1, text
    return None


def _is_capitals(block: _Block) -> bool:
    return len(block.lines) == 1 and block.lines[0].isupper()


def _is_preformatted(block: _Block, base: int) -> bool:
    """Columns, drawings and code keep their lines."""
    # The expressions here take the square of a line's length; nobody draws in lines this long.
    lines = [line for line in block.lines if len(line) <= _LONGEST_DRAWN]
    if not lines:
        return False
    columns = sum(1 for line in lines if _COLUMNS.search(line.strip()))
    drawn = sum(1 for line in lines if _DRAWN.search(line))
    code = sum(1 for line in lines if _CODE.search(line))
    share = len(block.lines) * 0.5
    if len(lines) >= 2 and (columns > share or drawn > share):
        return True
    return block.indent > base + 1 and code >= max(1, share)


def _list(root: etree._Element, lines: list[str]) -> None:
    """Items with their continuation lines; those of a deeper level are items of an inner list."""
    lists: list[etree._Element] = []
    for item in items_of(lines) or []:
        level = min(item.level, _DEEPEST_ITEM)
        del lists[level:]
        while len(lists) < level:
            lists.append(etree.SubElement(lists[-1] if lists else root, "ul"))
        add_block(lists[-1], "li", " ".join(item.lines))


def _paragraphs(root: etree._Element, lines: list[str]) -> None:
    """One paragraph of wrapped lines; one each where nobody wrapped them; one with its line ends where these
    say something ("Present: …", "Apologies: …", an address)."""
    lines = [line.strip() for line in lines]
    longest = max(map(len, lines))
    if longest > UNWRAPPED_WIDTH:
        for line in lines:
            add_block(root, "p", line)
        return
    pairs = list(pairwise(lines))
    labelled = sum(map(is_labelled, lines))
    broken = sum(runs_on(a, b) and not _GREETING.fullmatch(a) for a, b in pairs)
    short = longest < _PROSE_WIDTH and broken * 2 <= len(pairs)
    text = lines[0]
    for before, line in pairs:
        ended = short or (labelled >= 2 and is_labelled(lines[0]) and is_labelled(line))
        ended = ended or (before.endswith((":", "：")) and len(before) < 0.75 * longest)
        text += f"{LINE_END if ended else ' '}{line}"
    add_block(root, "p", text)


def add_block(parent: etree._Element, tag: str, text: str) -> etree._Element:
    # XML has no place for other control characters.
    element = etree.SubElement(parent, tag)
    element.text = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]", "", text)
    return element
