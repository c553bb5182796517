"""The text of a mail: what its writer says, what they quote, and how they sign."""

import re
from collections.abc import Iterator, Sequence

from lxml import etree

from tidemark.adapters.html_lines import LINE_END
from tidemark.adapters.unstructured_plain_text import add_block, read_plain_text

_QUOTED = re.compile(r"\s?((?:> ?)+)(.*)$")
_SIGNATURE = re.compile(r"--\s*$")
_LONGEST_SIGNATURE = 12


def read_mail_text(text: str) -> etree._Element:
    """The blocks of a mail's plain text as HTML elements under one root.

    Lines after ">" become quotations without that mark, one for each depth; the lines after "--" one block.
    """
    lines = text.replace("\r\n", "\n").expandtabs(8).split("\n")
    lines, signature = _signed(lines)
    root = etree.Element("div")
    for depth, part in _by_depth(lines):
        blocks = read_plain_text("\n".join(part), titled=False)
        if depth:
            quote = etree.SubElement(root, "blockquote")
            quote.extend(list(blocks))
        else:
            root.extend(list(blocks))
    if signature:
        add_block(root, "p", LINE_END.join(signature))
    return root


def _signed(lines: list[str]) -> tuple[list[str], list[str]]:
    """The lines of a mail without its signature, and those of that; both without the mark between them."""
    for index in range(len(lines) - 1, -1, -1):
        if not _SIGNATURE.fullmatch(lines[index]):
            continue
        below = [line.strip() for line in lines[index + 1 :]]
        signature: list[str] = []
        for line in below:
            if _QUOTED.match(line) or (not line and signature and len(signature) > 3):
                break
            signature += [line] if line else []
        filled = [line for line in below if line]
        if signature == filled and len(signature) <= _LONGEST_SIGNATURE:
            return lines[:index], signature
        return lines, []
    return lines, []


def _by_depth(lines: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Runs of lines that are quoted equally deep, 0 for the writer's own."""
    depth, run = 0, list[str]()
    for line in lines:
        found = _QUOTED.match(line)
        here = found[1].count(">") if found else 0
        if here != depth and run:
            if any(part.strip() for part in run):
                yield depth, run
            run = []
        depth = here
        run.append(found[2] if found else line)
    if any(part.strip() for part in run):
        yield depth, run
