"""What a text as a whole says of its sentences: where they end or cannot, whether it has capitals."""

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter

from tidemark.stages.chunking import phrases

_LONGEST_ASIDE = 300
_SIGNS = re.compile(r"`[^`\n]{1,200}`|[()\[\]（）「」『』【】]|\n[^\S\n]*\n")
_PARTNER = {")": "(", "]": "[", "）": "（", "」": "「", "』": "『", "】": "【"}
_FILLED = re.compile(r"[^\S\n]*\S")
_BLANK = re.compile(r"\n[^\S\n]*\n")
_BULLET = re.compile(r"[^\S\n]*(?:[-*+–—•‣◦▪●·]|\[[ xX]\])[^\S\n]+\S")
_NUMBER = re.compile(r"[^\S\n]*\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})[.)][^\S\n]+\S")
_QUESTION = re.compile(
    r"[^\S\n]*(?:Q|A|Question|Answer|Frage|Antwort|F|P|R)\s?\d{0,2}\s?[:：]\s", re.I
)
_SPEAKER = re.compile(r"[^\S\n]*[^\W\d_][\w.'’-]*(?: [\w.'’-]+){0,2}\s?[:：](?:\s|$)")
_LEAST_SHORT_LINES = 4
_SPACES = re.compile(r"\s+")
_SPACED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff]")  # Thai, Lao, Khmer
_AFTER_STOP = re.compile(r"[^\W\d_]{2}[.!?]\s+([^\W\d_])")
_GLANCE = 24
_REGIME_WINDOW = 20_000
_LONG_RUN = 160


@dataclass(frozen=True, slots=True)
class Protected:
    """Ranges without a boundary in them, in order and disjoint."""

    ranges: list[tuple[int, int]]

    def holds(self, start: int, end: int) -> bool:
        """Whether a mark at ``start`` stands in one that does not end by ``end``."""
        index = bisect_right(self.ranges, start, key=itemgetter(0)) - 1
        return index >= 0 and end < self.ranges[index][1]


def protected_ranges(text: str) -> Protected:
    """Where no sentence ends: in short brackets, in quotations between corners, in code."""
    ranges: list[tuple[int, int]] = []
    stack: list[tuple[str, int]] = []
    for sign in _SIGNS.finditer(text):
        mark = sign[0]
        if mark[0] == "`":
            _add(ranges, sign.start(), sign.end())
        elif mark[0] == "\n":
            stack.clear()
        elif mark not in _PARTNER:
            stack.append((mark, sign.start()))
        elif stack and stack[-1][0] == _PARTNER[mark]:
            _, start = stack.pop()
            if sign.end() - start <= _LONGEST_ASIDE:
                _add(ranges, start, sign.end())
    return Protected(ranges)


def _add(ranges: list[tuple[int, int]], start: int, end: int) -> None:
    while ranges and ranges[-1][0] >= start:
        ranges.pop()
    ranges.append((start, end))


def line_boundaries(text: str) -> list[int]:
    """Places between lines where a sentence ends whatever its last sign, in order.

    Blank lines part paragraphs. Within a paragraph a line ends a sentence when the next is an item of a
    list or a turn of a dialogue, or when the lines are entries of a list without bullets.
    """
    if "\n" not in text:
        return []
    places: list[int] = []
    position = 0
    for blank in [*_BLANK.finditer(text), None]:
        end = blank.start() if blank else len(text)
        if text.find("\n", position, end) >= 0:
            places += _within(text, position, end)
        if blank and end > 0:
            places.append(end)
        position = end + 1
    return sorted(set(places))


def _within(text: str, start: int, end: int) -> list[int]:
    begins: list[int] = []
    position = start
    while position < end:
        if _FILLED.match(text, position, end):
            begins.append(position)
        line_end = text.find("\n", position, end)
        position = end if line_end < 0 else line_end + 1
    if len(begins) < 2:
        return []
    numbered = [b for b in begins if _NUMBER.match(text, b, end)]
    speakers = [b for b in begins if _SPEAKER.match(text, b, end)]
    if _are_entries(text, begins, end):
        return begins[1:]
    several = {*(numbered if len(numbered) > 1 else ()), *(speakers if len(speakers) > 1 else ())}
    return [
        b
        for b in begins[1:]
        if b in several or _BULLET.match(text, b, end) or _QUESTION.match(text, b, end)
    ]


def _are_entries(text: str, begins: list[int], end: int) -> bool:
    """Whether lines are entries, one each: all begin with a capital or a digit, and were not wrapped."""
    if len(begins) < _LEAST_SHORT_LINES:
        return False
    for begin in begins:
        first = next((c for c in text[begin : begin + 12] if c.isalnum()), "")
        if not (first.isupper() or first.isdigit()):
            return False
    lengths = [after - before for before, after in pairwise(begins)]
    return max(lengths) - min(lengths) > max(lengths) * 0.25


def stretch(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    """Append a range to ``spans`` without the white space at its ends, if anything is left."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        spans.append((start, end))


def is_lower_case(text: str) -> bool:
    """Whether a text is written without capitals, so that small letters tell nothing; by its beginning."""
    text = text[:_REGIME_WINDOW]
    first = next((char for char in text if char.isalpha()), "")
    if not first.islower():
        return False
    following = [match[1] for match in _AFTER_STOP.finditer(text)]
    small = sum(1 for char in following if char.islower())
    capitals = sum(1 for char in text if char.isupper())
    if not small:
        return False
    return capitals == 0 or (
        small >= 4 and len(following) - small <= small // 20 and capitals <= len(text) // 50
    )


def with_wordless_joined(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join what has no letter (a reference, a sign, a face) to the sentence before it on its line."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and end - start <= _GLANCE:
            before = joined[-1]
            apart = "\n" in text[before[1] : start]
            if not apart and not any(char.isalpha() for char in text[start:end]):
                joined[-1] = (before[0], end)
                continue
        joined.append((start, end))
    return joined


def with_long_runs_cut(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Cut long stretches of scripts that write no stops at their spaces, which part clauses."""
    cut: list[tuple[int, int]] = []
    for start, end in spans:
        if end - start > _LONG_RUN and _SPACED.search(text, start, min(end, start + _GLANCE)):
            position = start
            for space in _SPACES.finditer(text, start, end):
                place = space.start()
                if _leans(text, space.end()):
                    continue  # an exception is not cut from what it excepts
                if place - position >= _LONG_RUN // 2 and end - place >= _LONG_RUN // 4:
                    stretch(cut, text, position, place)
                    position = place
            stretch(cut, text, position, end)
        else:
            cut.append((start, end))
    return cut


def _leans(text: str, place: int) -> bool:
    head = text[place : place + _GLANCE]
    return bool(phrases.RESTRICTION.match(head) or phrases.TURN.match(head))
