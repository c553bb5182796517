"""The last resort: a text that has no boundary of its own cut by tokens, at words, then at graphemes."""

import unicodedata
from bisect import bisect_left

from tidemark.ports import Tokenizer

# A tokenizer may read a kilobyte without a space as one unknown token; text is bounded in characters too.
CHARS_PER_TOKEN = 20
_LOOK_BACK = 0.4


def cut_by_tokens(text: str, budget: int, tokenizer: Tokenizer) -> list[tuple[int, int]]:
    """Cut ``text`` into balanced pieces of at most ``budget`` tokens; half-open ranges in order.

    A piece ends after white space where there is some in its last part, else between graphemes. The
    ranges cover every character but white space between pieces.
    """
    budget = max(budget, 1)
    starts = [start for start, _ in tokenizer.spans(text)]
    pieces = max(-(-len(starts) // budget), 1)
    step = max(-(-len(starts) // pieces), 1)
    spans: list[tuple[int, int]] = []
    position = 0
    while position < len(text):
        token = bisect_left(starts, position)
        end = starts[token + step] if token + step < len(starts) else len(text)
        end = min(end, position + budget * CHARS_PER_TOKEN)
        if end < len(text):
            end = _boundary(text, position, end)
        start = position
        while start < end and text[start].isspace():
            start += 1
        stop = end
        while stop > start and text[stop - 1].isspace():
            stop -= 1
        if start < stop:
            spans.append((start, stop))
        position = end
    return spans


def _boundary(text: str, start: int, end: int) -> int:
    """The best place to cut at or before ``end``, always after ``start``."""
    lowest = max(start + 1, end - max(int((end - start) * _LOOK_BACK), 1))
    for place in range(end, lowest - 1, -1):
        if text[place - 1].isspace() or (place < len(text) and text[place].isspace()):
            return place
    for place in range(end, max(start, end - 64), -1):
        if is_grapheme_boundary(text, place):
            return place
    return end


def is_grapheme_boundary(text: str, place: int) -> bool:
    """Whether a reader sees two characters, not one, around ``place``."""
    if place <= 0 or place >= len(text):
        return True
    before, after = text[place - 1], text[place]
    if unicodedata.category(after).startswith("M") or after in "\u200d\u200c\ufe0f\ufe0e":
        return False
    if before == "\u200d" or (before == "\r" and after == "\n"):
        return False
    if "\U0001f3fb" <= after <= "\U0001f3ff":  # a skin tone belongs to the sign before it
        return False
    if "\u1160" <= after <= "\u11ff":  # Hangul vowels and finals
        return False
    flags = "\U0001f1e6", "\U0001f1ff"
    if flags[0] <= after <= flags[1] and flags[0] <= before <= flags[1]:
        run = place
        while run > 0 and flags[0] <= text[run - 1] <= flags[1]:
            run -= 1
        return (place - run) % 2 == 0
    return True
