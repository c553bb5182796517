"""Lines of a text that head what is under them: wiki headings, rulers with a word, short lines above long."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

_WIKI = re.compile(r" ?(={1,6}|=(?: =){1,5}) ?(?![=\s])(.{1,200}?)(?<![=\s]) ?\1\s*$")
_WIKI_ITEM = re.compile(r"^(\*{1,4}|#{1,4})[ \t]*(?=[^\s*#])(?!\w+\*)")
# Only signs of equality open a heading alone: "--- a/file" and "*** x" begin other things.
_RULER = re.compile(
    r" ?(?:={3,10}|(?P<other>[~*_-])(?P=other){2,9}(?=.*(?P=other){3}\s*$)) (?=[^\W\d_])"
    r"(?P<text>[\w ,.'’&/()-]{1,80}?)(?: [=~*_-]{3,})?\s*$"
)
_MARKDOWN_RULER = re.compile(
    r" ?={3,10} (?=[^\W\d_])(?P<text>[\w ,.'’&/()-]{1,80}?)(?: ={3,})?\s*$"
)
_STOPS = (".", ",", ";", ":", "!", "?")
_CAPTION = re.compile(
    r"(?:fig(?:ure|\.)?|table|box|scheme|plate|chart|abb(?:ildung|\.)|tab(?:elle|leau|la|\.)|figura)\s*\w{0,2}\d",
    re.IGNORECASE,
)
# No text is wrapped so wide: each of its lines is a paragraph.
UNWRAPPED_WIDTH = 160
LONGEST = 90
_MOST_WORDS = 12
DEEPEST = 6


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading on one line, or on ``lines`` of them; ``level`` from 1, ``marked`` when it was drawn."""

    level: int
    text: str
    marked: bool
    lines: int = 1


def wiki_heading(line: str) -> tuple[int, str] | None:
    """Level and text of "== History ==" or " = = History = = "."""
    if "=" not in line[:2]:
        return None
    found = _WIKI.match(line)
    return (found[1].count("="), found[2].strip()) if found else None


def wiki_lists(lines: list[str]) -> list[str]:
    """In a text with wiki headings, its lists ("*item", "## item") with marks that any text has."""
    if not any(wiki_heading(line) for line in lines):
        return lines
    return [_WIKI_ITEM.sub(lambda found: f"{'*' * len(found[1])} ", line) for line in lines]


def marked_headings(lines: Sequence[str], *, markdown: bool = False) -> dict[int, Heading]:
    """Wiki headings and rulers with a word ("==== Body"), by the index of their line.

    In Markdown other signs than "=" draw other things. A lone " = x = " may be an equation.
    """
    wiki: dict[int, Heading] = {}
    rulers: dict[int, tuple[int, str]] = {}
    ruler = _MARKDOWN_RULER if markdown else _RULER
    for index, line in enumerate(lines):
        found = wiki_heading(line)
        if found:
            wiki[index] = Heading(found[0], found[1], marked=True)
        elif (drawn := ruler.match(line)) is not None and not drawn["text"].endswith(_STOPS):
            rulers[index] = (len(line.lstrip().split(" ")[0]), drawn["text"].strip())
    if len(wiki) == 1 and next(iter(wiki.values())).level == 1:
        wiki = {}
    lengths = sorted({length for length, _ in rulers.values()})
    drawn_headings = {
        index: Heading(min(lengths.index(length) + 1, DEEPEST), text, marked=True)
        for index, (length, text) in rulers.items()
    }
    return wiki | drawn_headings


def unwrapped_headings(lines: Sequence[str], taken: Iterable[int] = ()) -> dict[int, Heading]:
    """Short lines right above a line too long to have been wrapped, in blocks of their own; level 1 or 2.

    Of two such lines together ("Results", "Growth in spring") the second is one level down. Captions and
    what ends with a stop head nothing.
    """
    claimed = set(taken)
    headings: dict[int, Heading] = {}
    for index in range(len(lines) - 1):
        above = index - 1
        begins = above < 0 or not lines[above].strip() or above in claimed
        if not begins or index in claimed or not _may_head(lines[index]):
            continue
        if len(lines[index + 1]) > UNWRAPPED_WIDTH:
            headings[index] = Heading(1, lines[index].strip(), marked=False)
        elif (
            index + 2 < len(lines)
            and index + 1 not in claimed
            and _may_head(lines[index + 1])
            and len(lines[index + 2]) > UNWRAPPED_WIDTH
        ):
            headings[index] = Heading(1, lines[index].strip(), marked=False)
            headings[index + 1] = Heading(2, lines[index + 1].strip(), marked=False)
    return headings


def below(headings: Mapping[int, Heading], found: Mapping[int, Heading]) -> dict[int, Heading]:
    """``headings`` with their levels under that of the last of ``found`` above each."""
    lowered: dict[int, Heading] = {}
    level = 0
    for index in sorted({*headings, *found}):
        if index in found:
            level = found[index].level
        else:
            heading = headings[index]
            lowered[index] = replace(
                heading, level=min(level + heading.level, DEEPEST), marked=level > 0
            )
    return lowered


def _may_head(line: str) -> bool:
    text = line.strip()
    return (
        0 < len(text) <= LONGEST
        and is_title(text, spaced=True)
        and text[0].isalnum()
        and _CAPTION.match(text) is None
        and not any(sign in text for sign in ("|", "@", "://", ": "))
    )


def is_title(text: str, *, spaced: bool) -> bool:
    first = next((char for char in text if char.isalnum()), "")
    return (
        spaced
        and (first.isupper() or not (first.islower() or first.isupper()))
        and not text.rstrip().endswith(_STOPS)
        and len(text.split()) <= _MOST_WORDS
        and sum(1 for char in text if char.isalpha()) * 2 >= len(text.replace(" ", ""))
    )
