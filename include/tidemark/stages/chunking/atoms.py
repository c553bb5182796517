"""A section's elements as atoms: what belongs together as one, what is too long in its natural parts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

from tidemark.domain.model import Element, ElementKind
from tidemark.ports import Tokenizer
from tidemark.stages.chunking.cuts import CHARS_PER_TOKEN, cut_by_tokens
from tidemark.stages.chunking.packing import INSEPARABLE, Atom
from tidemark.stages.chunking.rendering import Rendered
from tidemark.stages.chunking.sentences import sentence_spans

_PROSE = frozenset(
    {ElementKind.TEXT, ElementKind.DEFINITION, ElementKind.QUOTE, ElementKind.LIST_ITEM, ElementKind.TERM,
     ElementKind.CAPTION, ElementKind.TITLE}
)  # fmt: skip
_BLOCKS = frozenset({ElementKind.CODE, ElementKind.TABLE, ElementKind.FORMULA, ElementKind.QUOTE})
_COLONS = (":", "：", "﹕", "︰")
_STOPS = (".", "!", "?", ";", "…", "。", "！", "？", "।", "؟", "۔", *_COLONS)
_INTRODUCTION_CHARS = 240
_LABEL_CHARS = 80

SENTENCE_PRICE = 0.3
CONTINUATION_PRICE = 0.25
CUT_PRICE = 3.0
NEW_PLACE_PRICE = 0.12
_CLOSERS = ("}", ")", "]", "end", "</", "else", "elif", "except", "finally", "*/")


def bonded(before: Element, after: Element) -> bool:
    """Whether a reader would not part two neighbouring elements while both fit."""
    if before.kind in {ElementKind.CAPTION, ElementKind.TERM}:
        return True
    if after.kind is ElementKind.LIST_ITEM:
        return before.kind is ElementKind.LIST_ITEM or _introduces(before)
    if before.kind not in _PROSE:
        return False
    if before.kind is ElementKind.TEXT and _is_label(before.text):
        return True
    return after.kind in _BLOCKS and before.text.rstrip().endswith(_COLONS)


def _introduces(element: Element) -> bool:
    """Whether an element leads to the list after it: it ends so, or it is short."""
    if element.kind not in _PROSE:
        return False
    text = element.text.rstrip()
    return text.endswith(_COLONS) or len(text) <= _INTRODUCTION_CHARS


def _is_label(text: str) -> bool:
    """A short line without a stop, such as a bold line used as a heading."""
    return len(text) <= _LABEL_CHARS and not text.rstrip().endswith(_STOPS)


def size_of(tokens: int, chars: int) -> int:
    """Tokens, or more where a tokenizer reads very much text as very few."""
    return max(tokens, -(-chars // CHARS_PER_TOKEN))


@dataclass(frozen=True, slots=True)
class Splitter:
    """Makes the atoms of a section whose pieces may hold ``budget`` tokens."""

    tokenizer: Tokenizer
    budget: int

    def atoms(
        self, elements: Sequence[Element], rendered: Rendered, tokens: Sequence[int]
    ) -> list[Atom]:
        """Atoms in order; ``tokens`` are those of each element's rendered text."""
        atoms: list[Atom] = []
        for group in _groups(elements, rendered):
            start, end = rendered.spans[group[0]][0], rendered.spans[group[-1]][1]
            total = size_of(sum(tokens[i] for i in group), end - start)
            if total <= self.budget:
                price = _new_place(rendered.text, start, end) + _continuation(elements[group[0]])
                atoms.append(Atom(start, end, group[0], group[-1], total, price))
            else:
                atoms.extend(self._opened(group, elements, rendered, tokens))
        return atoms

    def _opened(
        self,
        group: Sequence[int],
        elements: Sequence[Element],
        rendered: Rendered,
        tokens: Sequence[int],
    ) -> Iterator[Atom]:
        """The atoms of a group that is too long to stay whole."""
        shallowest = min((elements[i].level or 1 for i in group), default=1)
        previous: int | None = None
        for position, index in enumerate(group):
            start, end = rendered.spans[index]
            price = _new_place(rendered.text, start, end)
            if previous is not None:
                price += _inner_price(elements[previous], elements[index], shallowest)
            leads = position + 1 < len(group)
            for number, atom in enumerate(
                self._parts(
                    elements[index],
                    index,
                    rendered.text[start:end],
                    start,
                    tokens[index],
                    leads=leads,
                )
            ):
                yield atom if number else _priced(atom, price)
            previous = index

    def _parts(
        self, element: Element, index: int, text: str, offset: int, tokens: int, *, leads: bool
    ) -> list[Atom]:
        size = size_of(tokens, len(text))
        # A long paragraph that introduces a list gives its last sentence to the list.
        whole = size <= self.budget and not (
            leads and element.kind in _PROSE and size > self.budget // 2
        )
        if whole:
            return [Atom(offset, offset + len(text), index, index, size)]
        if element.kind is ElementKind.TABLE:
            return self._rows(element, index, text, offset)
        if element.kind is ElementKind.CODE:
            return self._lines(index, text, offset)
        spans = sentence_spans(text)
        return self._sized(index, text, offset, [(s, e, SENTENCE_PRICE, "", 0) for s, e in spans])

    def _rows(self, element: Element, index: int, text: str, offset: int) -> list[Atom]:
        """Rows, each with the header to be repeated above it where a piece begins with it."""
        lines = _line_spans(text)
        head = min(element.header_rows, len(lines) - 1)
        header = text[: lines[head - 1][1]] if head > 0 else ""
        header_tokens = self._count([header])[0] if header else 0
        repeat = bool(header) and header_tokens <= self.budget // 2
        parts: list[tuple[int, int, float, str, int]] = []
        for number, (start, end) in enumerate(lines):
            prefix = header if repeat and number >= head else ""
            price = INSEPARABLE if 0 < number <= head else 0.0
            parts.append((start, end, price, prefix, header_tokens if prefix else 0))
        return self._sized(index, text, offset, parts)

    def _lines(self, index: int, text: str, offset: int) -> list[Atom]:
        parts: list[tuple[int, int, float, str, int]] = []
        previous_end = 0
        for start, end in _line_spans(text):
            blank_before = "\n" in text[previous_end:start].strip(" ")[1:]
            parts.append(
                (start, end, _line_price(text[start:end], blank_before=blank_before), "", 0)
            )
            previous_end = end
        return self._sized(index, text, offset, parts)

    def _sized(
        self, index: int, text: str, offset: int, parts: Sequence[tuple[int, int, float, str, int]]
    ) -> list[Atom]:
        """Atoms of parts of one element; a part over the budget is cut by words."""
        counts = self._count([text[start:end] for start, end, *_ in parts])
        atoms: list[Atom] = []
        for (start, end, price, prefix, prefix_tokens), tokens in zip(parts, counts, strict=True):
            room = self.budget - prefix_tokens
            size = size_of(tokens, end - start)
            if size <= room:
                price += _new_place(text, start, end)
                atoms.append(
                    Atom(
                        offset + start,
                        offset + end,
                        index,
                        index,
                        size,
                        price,
                        prefix,
                        prefix_tokens,
                    )
                )
                continue
            cuts = cut_by_tokens(text[start:end], room, self.tokenizer)
            sizes = self._count([text[start + s : start + e] for s, e in cuts])
            for (s, e), tokens_of_cut in zip(cuts, sizes, strict=True):
                cut = size_of(tokens_of_cut, e - s)
                where = offset + start
                cut_price = price if s == 0 else CUT_PRICE
                atoms.append(
                    Atom(where + s, where + e, index, index, cut, cut_price, prefix, prefix_tokens)
                )
        return atoms

    def _count(self, texts: Sequence[str]) -> list[int]:
        return [count - self.tokenizer.special_tokens for count in self.tokenizer.count(texts)]


def _groups(elements: Sequence[Element], rendered: Rendered) -> Iterator[list[int]]:
    group: list[int] = []
    for index, element in enumerate(elements):
        start, end = rendered.spans[index]
        if start == end:
            continue
        if group and not bonded(elements[group[-1]], element):
            yield group
            group = []
        group.append(index)
    if group:
        yield group


def _inner_price(before: Element, after: Element, shallowest: int) -> float:
    """Of a boundary between two elements of one group."""
    if before.kind is ElementKind.LIST_ITEM and after.kind is ElementKind.LIST_ITEM:
        return 0.05 + 0.15 * ((after.level or 1) - shallowest)
    return INSEPARABLE if bonded(before, after) else 0.0


def _continuation(element: Element) -> float:
    """Of a boundary before an element that goes on with what is above it."""
    return CONTINUATION_PRICE if element.kind in {ElementKind.DEFINITION, *_BLOCKS} else 0.0


def _priced(atom: Atom, price: float) -> Atom:
    return Atom(
        atom.start,
        atom.end,
        atom.first,
        atom.last,
        atom.tokens,
        price,
        atom.prefix,
        atom.prefix_tokens,
    )


def _new_place(text: str, start: int, end: int) -> float:
    """One place in four is cheaper than its neighbours, by what stands there and not by its position."""
    head = text[start : min(end, start + 64)].encode("utf-8", "surrogatepass")
    return 0.0 if crc32(head) % 4 == 0 else NEW_PLACE_PRICE


def _line_spans(text: str) -> list[tuple[int, int]]:
    """Ranges of the lines that hold something."""
    spans: list[tuple[int, int]] = []
    position = 0
    for line in text.split("\n"):
        if line.strip():
            spans.append((position, position + len(line)))
        position += len(line) + 1
    return spans


def _line_price(line: str, *, blank_before: bool) -> float:
    """Of a boundary before a line of code: little between definitions, more within, most before an end."""
    indent = len(line) - len(line.lstrip())
    if line.lstrip().startswith(_CLOSERS):
        return 1.0
    if blank_before:
        return 0.0 if indent == 0 else 0.15
    return 0.4 + 0.02 * min(indent, 20)
