"""Where the ends of lines say something: addresses, telephone numbers, opening hours, verses, signatures.

A line end that is kept travels through Unstructured, which folds white space, as ``LINE_END``.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from lxml import etree

from tidemark.adapters.partition.html.tree import HEADINGS

LINE_END = "\ufdd0"
"""A character that Unicode sets aside for use within a program: no document has it."""

SHORT_LINE = 90
_STOPS = (".", "!", "?", ":", ";", "…", "。", "！", "？", "：", "।", "؟")
_LABELLED = re.compile(r"[^\W\d_][^:：.!?\n]{0,30}(?::\s|：)\s*\S")
_PHRASES = frozenset(
    {"a", "abbr", "b", "bdi", "bdo", "big", "br", "cite", "code", "del", "dfn", "em", "font", "i", "ins",
     "kbd", "label", "mark", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup",
     "time", "tt", "u", "var", "wbr"}
)  # fmt: skip


def is_labelled(line: str) -> bool:
    """Whether a line begins with a label: "Telephone: 0800 555 0112"."""
    return _LABELLED.match(line.strip()) is not None


def runs_on(before: str, after: str) -> bool:
    """Whether a sentence goes on from one line to the next."""
    head = after.lstrip("\"'“‘(«„ ")
    if before.rstrip().endswith((",", "-", "–")) and head[:1].isalpha():
        return head[:1].islower()
    return head[:1].islower() and not before.rstrip("\"'”’)» ").endswith(_STOPS)


def keeps_its_lines(lines: Sequence[str]) -> bool:
    """Whether lines that were set apart on purpose are a list of such (an address), not broken prose."""
    if sum(map(is_labelled, lines)) * 2 >= max(len(lines), 4):
        return True
    broken = any(runs_on(before, after) for before, after in pairwise(lines))
    return not broken and all(len(line) <= SHORT_LINE for line in lines)


def with_line_ends(root: etree._Element) -> None:
    """Decide about every ``br`` under ``root``: a line end that stays, a new paragraph, or a space."""
    blocks: dict[etree._Element, None] = {}
    for mark in root.iter("br"):
        owner = next((a for a in mark.iterancestors() if a.tag not in _PHRASES), root)
        if owner.tag != "pre":
            blocks.setdefault(owner)
    for block in blocks:
        for paragraph in _parted(block) if block.tag not in HEADINGS else [block]:
            _decide(paragraph)


def _decide(block: etree._Element) -> None:
    lines, breaks = _lines(block)
    listed = block.tag == "address" or keeps_its_lines([line for line in lines if line])
    for mark, index in breaks:
        before, after = lines[index], lines[index + 1]
        ended = before.rstrip("\"'”’)» ").endswith(_STOPS)
        kept = bool(before and after) and (listed or ended or is_labelled(after))
        mark.tag = "span"
        mark.text = LINE_END if kept and block.tag not in HEADINGS else " "


def _lines(block: etree._Element) -> tuple[list[str], list[tuple[etree._Element, int]]]:
    """The lines of a block, and its breaks with the index of the line that each ends."""
    lines: list[list[str]] = [[]]
    breaks: list[tuple[etree._Element, int]] = []
    inner = 0  # how deep within a block of this block, whose breaks are its own
    for event, element in etree.iterwalk(block, events=("start", "end")):
        apart = element is not block and element.tag not in _PHRASES
        if event == "start":
            if element.tag == "br" and not inner:
                breaks.append((element, len(lines) - 1))
            inner += apart
            if apart or element.tag == "br":
                lines.append([])
            lines[-1].append(element.text or "")
        elif element is not block:
            inner -= apart
            if apart:
                lines.append([])
            lines[-1].append(element.tail or "")
    return [" ".join("".join(line).split()) for line in lines], breaks


def _parted(block: etree._Element) -> list[etree._Element]:
    """The paragraphs of a block that an empty line between two breaks parts; the block itself if none."""
    children = list(block)
    if any(child.tag not in _PHRASES for child in children):
        return [block]
    for child, after in pairwise(children):
        if child.tag == "br" and after.tag == "br" and not (child.tail or "").strip():
            return _rebuilt(block, children)
    return [block]


def _rebuilt(block: etree._Element, children: list[etree._Element]) -> list[etree._Element]:
    current = etree.Element("p")
    current.text = block.text
    paragraphs = [current]
    for child in children:
        block.remove(child)
        last = current[-1] if len(current) else None
        before = (last.tail if last is not None else current.text) or ""
        if child.tag == "br" and not before.strip() and (last is None or last.tag == "br"):
            if last is not None:
                current.remove(last)
                current = etree.Element("p")
                paragraphs.append(current)
            current.text = f"{current.text or ''}{child.tail or ''}"
        else:
            current.append(child)
    if block.tag == "p":
        for paragraph in paragraphs:
            paragraph.attrib.update(block.attrib)
        block.tag = "div"
    block.text = None
    block.extend(paragraphs)
    return paragraphs
