"""A section's elements as atoms: what is short stays whole, what is long is opened in its natural parts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from zlib import crc32

from tidemark.domain.model import Element, ElementKind
from tidemark.ports import CodeParser, Tokenizer
from tidemark.stages.chunking.bonds import bond_price, bonded, sentence_bond
from tidemark.stages.chunking.code_parts import code_parts, definition_groups
from tidemark.stages.chunking.cuts import CHARS_PER_TOKEN, cut_by_tokens
from tidemark.stages.chunking.packing import INSEPARABLE, Atom
from tidemark.stages.chunking.rendering import Rendered
from tidemark.stages.chunking.sentences import clause_spans, sentence_spans

SENTENCE_PRICE = 0.3
CLAUSE_PRICE = 2.0
CUT_PRICE = 3.0
NEW_PLACE_PRICE = 0.3
_MIN_ROOM_SHARE = 2
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
    bonds: bool = True
    definitions: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A range of one element's text before it is measured; as in ``Atom``."""

    start: int
    end: int
    price: float = 0.0
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class _Here:
    """One element's text, where in its section it begins, and the price of a boundary before it."""

    text: str
    start: int
    index: int
    price: float

    def whole(self, size: int) -> Atom:
        end = self.start + len(self.text)
        return Atom(self.start, end, self.index, self.index, size, self.price)


def size_of(tokens: int, chars: int) -> int:
    """Tokens, or more where a tokenizer reads very much text as very few."""
    return max(tokens, -(-chars // CHARS_PER_TOKEN))


@dataclass(frozen=True, slots=True)
class Splitter:
    """Makes the atoms of a section whose pieces may hold ``limit`` tokens of their own."""

    tokenizer: Tokenizer
    limit: int
    opening: Opening
    code: CodeParser | None = None

    def atoms(
        self, elements: Sequence[Element], rendered: Rendered, tokens: Sequence[int]
    ) -> list[Atom]:
        """Atoms in order; ``tokens`` are those of each element's rendered text."""
        atoms: list[Atom] = []
        previous: int | None = None
        for index, (start, end) in enumerate(rendered.spans):
            if start == end:
                continue
            element = elements[index]
            price = _new_place(rendered.text, start, end)
            if previous is not None and self.opening.bonds:
                price += bond_price(elements[previous], element)
            caption = self._caption(elements, previous, element, rendered)
            leads = self.opening.bonds and _leads(elements, index)
            here = _Here(rendered.text[start:end], start, index, price)
            atoms += self._element(element, here, tokens[index], caption, leads=leads)
            previous = index
        return atoms

    def _caption(
        self,
        elements: Sequence[Element],
        previous: int | None,
        element: Element,
        rendered: Rendered,
    ) -> str:
        """The caption that every piece of a table repeats."""
        if element.kind is not ElementKind.TABLE or previous is None:
            return ""
        if elements[previous].kind is not ElementKind.CAPTION:
            return ""
        start, end = rendered.spans[previous]
        return rendered.text[start:end]

    def _element(
        self, element: Element, here: _Here, tokens: int, caption: str, *, leads: bool
    ) -> list[Atom]:
        size = size_of(tokens, len(here.text))
        if element.kind is ElementKind.TABLE:
            if size <= min(self.opening.tables, self.limit):
                return [here.whole(size)]
            return self._measured(here, self._rows(element, here.text, caption))
        if element.kind is ElementKind.CODE:
            if size <= min(self.opening.code, self.limit):
                return [here.whole(size)]
            return self._measured(here, self._code(element, here.text))
        # A long paragraph that introduces a list gives its last sentence to the list.
        most = self.opening.prose // 2 if leads else self.opening.prose
        if size <= min(most, self.limit):
            return [here.whole(size)]
        return self._measured(here, self._sentences(here.text))

    def _rows(self, element: Element, text: str, caption: str) -> list[Part]:
        """Rows, each with the caption and the header to be repeated where a piece begins with it."""
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
        return [
            Part(
                start,
                end,
                INSEPARABLE if 0 < number <= head else 0.0,
                prefix if number >= max(head, 1) else "",
            )
            for number, (start, end) in enumerate(lines)
        ]

    def _code(self, element: Element, text: str) -> Iterator[Part]:
        definitions = self.code.definitions(text, element.syntax) if self.code else []
        parts = [
            Part(part.start, part.end, part.price, self._signature(part.context))
            for part in code_parts(text, definitions)
        ]
        if not self.opening.definitions:
            yield from parts
            return
        position = 0
        for start, end in definition_groups(text, definitions):
            inside = []
            while position < len(parts) and parts[position].start < end:
                inside.append(parts[position])
                position += 1
            if size_of(self._count([text[start:end]])[0], end - start) <= self.limit:
                yield Part(start, end, inside[0].price if inside else 0.0)
            else:
                yield from inside

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
            price = SENTENCE_PRICE
            if before and self.opening.bonds:
                price += sentence_bond(before, sentence)
            yield Part(start, end, price)
            before = sentence

    def _measured(self, here: _Here, parts: Iterator[Part] | list[Part]) -> list[Atom]:
        """Atoms of parts of one element; a part over the limit is cut by clauses, then by words."""
        text, index, listed = here.text, here.index, list(parts)
        prefixes = dict.fromkeys(part.prefix for part in listed if part.prefix)
        sizes = dict(zip(prefixes, self._count(list(prefixes)), strict=True))
        counts = self._count([text[part.start : part.end] for part in listed])
        atoms: list[Atom] = []
        for part, tokens in zip(listed, counts, strict=True):
            above = sizes.get(part.prefix, 0)
            size = size_of(tokens, part.end - part.start)
            dear = part.price + _new_place(text, part.start, part.end) if atoms else here.price
            if size <= self.limit - above:
                start, end = here.start + part.start, here.start + part.end
                atoms.append(Atom(start, end, index, index, size, dear, part.prefix, above))
                continue
            for start, end, price in self._cut(text, part, self.limit - above):
                size = size_of(self._count([text[start:end]])[0], end - start)
                price = dear if start == part.start else price
                start, end = here.start + start, here.start + end
                atoms.append(Atom(start, end, index, index, size, price, part.prefix, above))
        return atoms

    def _cut(self, text: str, part: Part, room: int) -> Iterator[tuple[int, int, float]]:
        """A sentence or a line that is too long: by clauses where they fit, else by words."""
        whole = text[part.start : part.end]
        clauses = clause_spans(whole)
        counts = self._count([whole[start:end] for start, end in clauses])
        for (start, end), tokens in zip(clauses, counts, strict=True):
            at = part.start + start
            if size_of(tokens, end - start) <= room:
                yield at, part.start + end, CLAUSE_PRICE
                continue
            for s, e in cut_by_tokens(whole[start:end], room, self.tokenizer):
                yield at + s, at + e, CUT_PRICE if s else CLAUSE_PRICE

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
        and bonded(element, following)
    )


def _new_place(text: str, start: int, end: int) -> float:
    """A small price by what stands at a place and not by its position: it tells places apart."""
    head = text[start : min(end, start + 64)].encode("utf-8", "surrogatepass")
    return NEW_PLACE_PRICE * crc32(head) / 2**32


def _line_spans(text: str) -> list[tuple[int, int]]:
    """Ranges of the lines that hold something."""
    spans: list[tuple[int, int]] = []
    position = 0
    for line in text.split("\n"):
        if line.strip():
            spans.append((position, position + len(line)))
        position += len(line) + 1
    return spans
