"""A section's elements as splits: what is short stays whole, what is long is opened in its natural parts."""

import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

from tidemark.domain.documents import Definition, Element, ElementKind
from tidemark.ports.embedding import Tokenizer
from tidemark.ports.partition import CodeParser
from tidemark.stages.chunking.code import UNIT, code_parts, definition_groups
from tidemark.stages.chunking.cohesion import caption_of, coherent, cohesion_cost, sentence_cohesion
from tidemark.stages.chunking.packing import INSEPARABLE, Split
from tidemark.stages.chunking.sections import Rendered
from tidemark.stages.chunking.sentences import clause_spans, sentence_spans

# The last resort: a text that has no boundary of its own cut by tokens, at words, then at graphemes.

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


SENTENCE_COST = 0.3
CLAUSE_COST = 2.0
CUT_COST = 3.0
POSITION_COST = 0.3
CODE_SPREAD = 0.2
"""Of it in code, whose own costs tell its places apart in smaller steps."""
_MIN_ROOM_SHARE = 2
_DEEPEST = 3
"""Level of the definitions that are kept whole within one that is too long."""
_HEADING = frozenset({ElementKind.TITLE, ElementKind.CAPTION})
_INTRODUCED = frozenset({ElementKind.LIST_ITEM, ElementKind.TABLE, ElementKind.CODE})


@dataclass(frozen=True, slots=True)
class Opening:
    """Above how many tokens an element is opened, by its kind; and what a reader would not part.

    prose: into sentences. tables: into rows. code: into statements. Never more than the limit.
    bonds: whether boundaries cost by what they part (a list and its introduction, an exception).
    definitions: whether the top-level definitions of code stay whole while each fits the limit.
    """

    prose: int
    tables: int
    code: int
    cohesion: bool = True
    definitions: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A range of one element's text before it is measured; as in ``Split``."""

    start: int
    end: int
    cost: float = 0.0
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class _Here:
    """One element's text, where in its section it begins, and the cost of a boundary before it.

    beside: tokens of the heading or the caption that no piece may part from it: it is opened where it fits
        only without them.
    caption: of a table, to be repeated. below: its tokens when it stands below the table, else 0.
    """

    text: str
    start: int
    index: int
    cost: float
    beside: int = 0
    caption: str = ""
    below: int = 0

    def whole(self, size: int) -> Split:
        end = self.start + len(self.text)
        return Split(self.start, end, self.index, self.index, size, self.cost)


def size_of(tokens: int, chars: int) -> int:
    """Tokens, or more where a tokenizer reads very much text as very few."""
    return max(tokens, -(-chars // CHARS_PER_TOKEN))


@dataclass(frozen=True, slots=True)
class Splitter:
    """Makes the splits of a section whose pieces may hold ``limit`` tokens of their own."""

    tokenizer: Tokenizer
    limit: int
    opening: Opening
    code: CodeParser | None = None

    def splits(
        self, elements: Sequence[Element], rendered: Rendered, tokens: Sequence[int]
    ) -> list[Split]:
        """Splits in order; ``tokens`` are those of each element's rendered text."""
        shown = [index for index, (start, end) in enumerate(rendered.spans) if start < end]
        seen = [elements[index] for index in shown]
        splits: list[Split] = []
        beside = 0
        for place, index in enumerate(shown):
            start, end = rendered.spans[index]
            beside = beside if place and seen[place - 1].kind in _HEADING else 0
            cost = _position_cost(rendered.text, start, end) + self._cohesion(seen, place)
            caption, below = "", 0
            about = caption_of(seen, place)
            if about is not None:
                first, last = rendered.spans[shown[about]]
                caption = rendered.text[first:last]
                below = tokens[shown[about]] if about > place else 0
            whole = rendered.text[start:end]
            here = _Here(whole, start, index, cost, beside + below, caption, below)
            splits += self._element(seen, place, here, tokens)
            beside += tokens[index]
        return splits

    def _cohesion(self, seen: Sequence[Element], place: int) -> float:
        if not place or not self.opening.cohesion:
            return 0.0
        before = seen[place - 1]
        if place == 1 and before.kind is ElementKind.CAPTION:
            return INSEPARABLE  # nothing is above it that it could belong to
        return cohesion_cost(
            before, seen[place], seen[place + 1] if place + 1 < len(seen) else None
        )

    def _element(
        self, seen: Sequence[Element], place: int, here: _Here, tokens: Sequence[int]
    ) -> list[Split]:
        element = seen[place]
        size = size_of(tokens[here.index], len(here.text))
        room = max(self.limit - here.beside, 1)
        if element.kind is ElementKind.TABLE:
            if size <= min(self.opening.tables, room):
                return [here.whole(size)]
            return self._measured(here, self._rows(element, here))
        if element.kind is ElementKind.CODE:
            if size <= min(self.opening.code, room):
                return [here.whole(size)]
            return self._measured(here, self._code(element, here.text), spread=CODE_SPREAD)
        # A long paragraph that introduces a list gives its last sentence to the list.
        leads = self.opening.cohesion and _leads(seen, place)
        most = self.opening.prose // 2 if leads else self.opening.prose
        if size <= min(most, room):
            return [here.whole(size)]
        return self._measured(here, self._sentences(here.text))

    def _rows(self, element: Element, here: _Here) -> list[Part]:
        """Rows, each with the caption and the header to be repeated where a piece begins with it.

        The first piece repeats a caption that stands below the table; one above is in it.
        """
        text, caption = here.text, here.caption
        lines = _line_spans(text)
        head = min(element.header_rows, len(lines) - 1)
        header = text[: lines[head - 1][1]] if head > 0 else ""
        # A header or a caption that would leave the rows no room is not repeated.
        both = f"{caption}\n{header}" if caption and header else ""
        prefix = next(
            (
                lines
                for lines in (both, header, caption)
                if lines and self._count([lines])[0] <= self.limit // _MIN_ROOM_SHARE
            ),
            "",
        )
        first = caption if here.below and prefix.startswith(caption) else ""
        return [
            Part(
                start,
                end,
                INSEPARABLE if 0 < number <= head else 0.0,
                prefix if number >= max(head, 1) else first if number == 0 else "",
            )
            for number, (start, end) in enumerate(lines)
        ]

    def _code(self, element: Element, text: str) -> Iterator[Part]:
        definitions = self.code.definitions(text, element.syntax) if self.code else []
        parts = [
            Part(part.start, part.end, part.cost, self._signature(part.context))
            for part in code_parts(text, definitions)
        ]
        if self.opening.definitions:
            yield from self._whole_definitions(text, parts, definitions, 0)
        else:
            yield from parts

    def _whole_definitions(
        self, text: str, parts: Sequence[Part], definitions: Sequence[Definition], level: int
    ) -> Iterator[Part]:
        """The parts of each definition as one where it fits, else those of what is defined in it."""
        position = 0
        starts = [one.start for one in definitions if one.level == level and one.kind != UNIT]
        for start, end in definition_groups(text, definitions, level):
            first = position
            while position < len(parts) and parts[position].start < end:
                position += 1
            inside = parts[first:position]
            if not inside:
                continue
            defined = bisect_left(starts, start) < bisect_left(starts, end)
            if (defined or level == 0) and self._fits(text, inside):
                yield replace(inside[0], end=inside[-1].end)
            elif defined and level < _DEEPEST:
                yield from self._whole_definitions(text, inside, definitions, level + 1)
            else:
                yield from inside

    def _fits(self, text: str, parts: Sequence[Part]) -> bool:
        """Whether parts that follow each other fit one piece, with what is repeated above it."""
        whole = text[parts[0].start : parts[-1].end]
        shown = f"{parts[0].prefix}\n{whole}" if parts[0].prefix else whole
        return size_of(self._count([shown])[0], len(shown)) <= self.limit

    def _signature(self, lines: tuple[str, ...]) -> str:
        """The lines above a piece of a definition, as many of the innermost as leave it room."""
        for first in range(len(lines)):
            prefix = "\n".join(lines[first:])
            if self._count([prefix])[0] <= self.limit // 3:
                return prefix
        return ""

    def _sentences(self, text: str) -> Iterator[Part]:
        before = ""
        for start, end in sentence_spans(text):
            sentence = text[start:end]
            cost = SENTENCE_COST
            if before and self.opening.cohesion:
                cost += sentence_cohesion(before, sentence)
            yield Part(start, end, cost)
            before = sentence

    def _measured(
        self, here: _Here, parts: Iterator[Part] | list[Part], spread: float = 1.0
    ) -> list[Split]:
        """Splits of parts of one element; a part over the limit is cut by clauses, then by words."""
        text, index, listed = here.text, here.index, list(parts)
        prefixes = dict.fromkeys(part.prefix for part in listed if part.prefix)
        sizes = dict(zip(prefixes, self._count(list(prefixes)), strict=True))
        counts = self._count([text[part.start : part.end] for part in listed])
        splits: list[Split] = []
        for part, tokens in zip(listed, counts, strict=True):
            above = sizes.get(part.prefix, 0)
            size = size_of(tokens, part.end - part.start)
            first_cost = here.cost
            if splits:
                first_cost = part.cost + spread * _position_cost(text, part.start, part.end)
            # What no piece may part from the element's begin leaves its first part less room.
            beside = here.beside if not splits else 0
            room = max(self.limit - above - beside, 1)
            if size <= room:
                start, end = here.start + part.start, here.start + part.end
                splits.append(Split(start, end, index, index, size, first_cost, part.prefix, above))
                continue
            for start, end, cost in self._cut(text, part, room):
                size = size_of(self._count([text[start:end]])[0], end - start)
                cost = first_cost if start == part.start else cost
                start, end = here.start + start, here.start + end
                splits.append(Split(start, end, index, index, size, cost, part.prefix, above))
        return splits

    def _cut(self, text: str, part: Part, room: int) -> Iterator[tuple[int, int, float]]:
        """A sentence or a line that is too long: by clauses where they fit, else by words."""
        whole = text[part.start : part.end]
        clauses = clause_spans(whole)
        counts = self._count([whole[start:end] for start, end in clauses])
        for (start, end), tokens in zip(clauses, counts, strict=True):
            at = part.start + start
            if size_of(tokens, end - start) <= room:
                yield at, part.start + end, CLAUSE_COST
                continue
            for s, e in cut_by_tokens(whole[start:end], room, self.tokenizer):
                yield at + s, at + e, CUT_COST if s else CLAUSE_COST

    def _count(self, texts: Sequence[str]) -> list[int]:
        return [count - self.tokenizer.special_tokens for count in self.tokenizer.count(texts)]


def _leads(elements: Sequence[Element], index: int) -> bool:
    """Whether a paragraph introduces the list, the table or the code after it."""
    following = elements[index + 1] if index + 1 < len(elements) else None
    element = elements[index]
    return (
        following is not None
        and element.kind is ElementKind.TEXT
        and following.kind in _INTRODUCED
        and coherent(element, following)
    )


def _position_cost(text: str, start: int, end: int) -> float:
    """A small cost by what stands at a place and not by its position: it tells places apart."""
    head = text[start : min(end, start + 64)].encode("utf-8", "surrogatepass")
    return POSITION_COST * crc32(head) / 2**32


def _line_spans(text: str) -> list[tuple[int, int]]:
    """Ranges of the lines that hold something."""
    spans: list[tuple[int, int]] = []
    position = 0
    for line in text.split("\n"):
        if line.strip():
            spans.append((position, position + len(line)))
        position += len(line) + 1
    return spans
