"""Lists of AsciiDoc: items by their marks, terms with their meanings, and what is attached to either."""

import re
from typing import Protocol

from lxml import etree

from tidemark.adapters.asciidoc_inline import Inline
from tidemark.adapters.asciidoc_lines import HEADING, ITEM, TERM, above_block, end_of, opens
from tidemark.adapters.unstructured_plain_text import add_block

_CHECK = re.compile(r"\[[ x*]\]\s+")


class Blocks(Protocol):
    """Reads the lines of blocks into an element; ``depth`` counts how deep they are nested."""

    def __call__(self, lines: list[str], out: etree._Element, depth: int) -> None: ...


class ListReader:
    """Reads lists; ``blocks`` reads the lines of a block that is attached to an item, at a depth."""

    def __init__(self, inline: Inline, blocks: Blocks) -> None:
        self._inline = inline
        self._blocks = blocks

    def read(self, lines: list[str], index: int, out: etree._Element, depth: int) -> int:
        """Add a list with all that hangs on it, until a blank line that no item follows.

        The number of lines that it takes.
        """
        start, holders = index, [(("", 0), out)]
        target: etree._Element | None = None
        while index < len(lines):
            line = lines[index]
            item, term = ITEM.match(line), TERM.match(line)
            if item or term:
                target = self._entry(holders, item, term)
                index += 1
            elif line.strip() == "+" and target is not None:
                end = _end_of_attached(lines, index + 1)
                self._blocks(lines[index + 1 : end], target, depth + 1)
                index = end
            elif not line.strip():
                after = _after_blank(lines, index, target)
                if after == index:
                    break
                index = after
            elif opens(line) or HEADING.match(line) or above_block(line):
                break
            else:
                self._more(target, line)
                index += 1
        return max(index - start, 1)

    def _entry(
        self,
        holders: list[tuple[tuple[str, int], etree._Element]],
        item: re.Match[str] | None,
        term: re.Match[str] | None,
    ) -> etree._Element:
        """Add an item to the list of its mark, which is within the list of the item before or around it."""
        mark = item[1] if item else (term[2] if term else "")
        depth = len(mark) if mark[:1] in {"*", ".", ":"} else 0
        kind = (re.sub(r"[\w<>]", "1", mark[:1]) if item else ":", depth)
        for place, (known, _) in enumerate(holders):
            if known == kind:
                del holders[place + 1 :]
                break
        else:
            parent = holders[-1][1]
            if len(holders) > 1 and len(parent):
                parent = parent[-1]
            tag = "dl" if not item else ("ul" if mark[0] in "*-" else "ol")
            holders.append((kind, etree.SubElement(parent, tag)))
        listing = holders[-1][1]
        if item:
            return add_block(listing, "li", self._inline.text(_CHECK.sub("", item[2])))
        said, meant = (term[1], term[3]) if term else ("", "")
        add_block(listing, "dt", self._inline.text(said))
        meaning = etree.SubElement(listing, "dd")
        if meant:
            add_block(meaning, "p", self._inline.text(meant))
        return meaning

    def _more(self, target: etree._Element | None, line: str) -> None:
        """A further line of an item's text."""
        text = self._inline.text(line.strip())
        if target is None:
            return
        if target.tag == "dd":
            if len(target) == 0:
                add_block(target, "p", text)
            else:
                target[-1].text = f"{target[-1].text or ''} {text}"
        elif len(target):
            add_block(target, "p", text)
        else:
            target.text = f"{target.text or ''} {text}"


def _end_of_attached(lines: list[str], index: int) -> int:
    """The line after a block that "+" attaches to an item."""
    while index < len(lines) and above_block(lines[index]):
        index += 1
    if index < len(lines) and opens(lines[index]):
        return end_of(lines, index) + 1
    while (
        index < len(lines)
        and lines[index].strip() not in {"", "+"}
        and not ITEM.match(lines[index])
    ):
        index += 1
    return index


def _after_blank(lines: list[str], index: int, target: etree._Element | None) -> int:
    """Where a list goes on after blank lines; ``index`` when it ends there."""
    after = index
    while after < len(lines) and not lines[after].strip():
        after += 1
    following = lines[after] if after < len(lines) else ""
    waits = target is not None and target.tag == "dd" and len(target) == 0
    goes_on = ITEM.match(following) or TERM.match(following) or (waits and following)
    return after if goes_on and not following.startswith("//") else index
