"""Regions to pieces: the chunks of a document before they have their parents and ids."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidemark.domain.documents import Element, ElementKind
from tidemark.domain.errors import DocumentError
from tidemark.ports import Tokenizer
from tidemark.stages.chunking.packing import Split
from tidemark.stages.chunking.sections import Region
from tidemark.stages.chunking.strategies import Room, Strategy

# The line above a chunk's text when it is embedded: where in which document it stands.

SEPARATOR = " > "
ELLIPSIS = "…"


def names_of(title: str, heading_path: Sequence[str]) -> tuple[str, ...]:
    """The document's title, where the first heading does not say it already, then the headings."""
    title = " ".join(title.split())
    if not title or (heading_path and _same(title, heading_path[0])):
        return tuple(heading_path)
    return (title, *heading_path)


def _same(one: str, other: str) -> bool:
    if one == other:
        return True
    return "".join(filter(str.isalnum, one.casefold())) == "".join(
        filter(str.isalnum, other.casefold())
    )


def heading_context(names: Sequence[str], budget: int, tokenizer: Tokenizer) -> tuple[str, int]:
    """Join names, shortened from the middle to at most ``budget`` tokens; the line and its tokens.

    The innermost name and the outermost go last, since they tell most; when even they are too long
    their own middles go.
    """
    if not names or budget < 1:
        return "", 0
    for line in _shorter_and_shorter(names):
        tokens = count_one(line, tokenizer)
        if tokens <= budget:
            return line, tokens
    return "", 0


def _shorter_and_shorter(names: Sequence[str]) -> Iterator[str]:
    yield SEPARATOR.join(names)
    for kept in range(len(names) - 1, 1, -1):
        head = (
            kept // 2
        )  # of an odd number the inner names, which are nearer to the text, keep one more
        yield SEPARATOR.join([*names[:head], ELLIPSIS, *names[len(names) - kept + head :]])
    ends = [names[0], names[-1]] if len(names) > 1 else [names[0]]
    gap = [ELLIPSIS] if len(names) > 2 else []
    for chars in (120, 60, 30):
        short = [_without_middle(name, chars) for name in ends]
        yield SEPARATOR.join([*short[:1], *gap, *short[1:]])
    for chars in (60, 30, 15):
        yield _without_middle(names[-1], chars)


def _without_middle(name: str, chars: int) -> str:
    if len(name) <= chars:
        return name
    half = chars // 2
    return f"{name[:half].rstrip()}{ELLIPSIS}{name[-half:].lstrip()}"


def count_one(text: str, tokenizer: Tokenizer) -> int:
    """Tokens of one text without the special ones."""
    return tokenizer.count([text])[0] - tokenizer.special_tokens


_CONTEXT_SHARE = 3
_ATTEMPTS = 6
_ALWAYS_CUT = frozenset({"paragraph", "faq", "contract", "semantic", "code"})
"""Strategies that part what would fit one chunk."""
_OVERLAPPING = frozenset({"text", "quote", "definition", "list_item"})


@dataclass(slots=True)
class Piece:
    """A chunk before it has its id; offsets are in its region's text.

    start: where its text begins, overlap included.
    first, last: indices of its elements.
    tokens: of ``embed_text`` without special ones, once it was counted as a whole.
    """

    region: Region
    start: int
    end: int
    first: int
    last: int
    text: str
    embed_text: str
    prefix: str = ""
    tokens: int = 0


def piece_of(
    region: Region, bounds: tuple[int, int], elements: tuple[int, int], prefix: str, above: str
) -> Piece:
    text = region.rendered.text[bounds[0] : bounds[1]]
    caption, _, below = prefix.partition("\n")
    in_table = region.elements[elements[1]].kind is ElementKind.TABLE
    if not in_table and text.endswith(f"\n{caption}"):
        prefix = below  # it stands below its table, and is in the last piece anyway
    if prefix:
        text = f"{prefix}\n{text}"
    embed_text = f"{above}\n{text}" if above else text
    return Piece(region, *bounds, *elements, text, embed_text, prefix)


@dataclass(frozen=True, slots=True)
class Cutter:
    """Cuts the regions of one document.

    limit: tokens of an ``embed_text``, special ones among them.
    """

    title: str
    strategy: Strategy
    limit: int

    def pieces(self, regions: Sequence[Region]) -> list[list[Piece]]:
        room = self.limit - self.strategy.tokenizer.special_tokens
        pieces = [self._cut(region, room) for region in regions]
        # The tokens of a whole may differ from the sum of its parts: what was packed is counted as it is.
        self._weigh([piece for own in pieces for piece in own])
        for index, own in enumerate(pieces):
            largest = max((piece.tokens for piece in own), default=0)
            if largest > room:
                pieces[index] = self._cut_smaller(regions[index], room, largest)
        return pieces

    def _weigh(self, pieces: Sequence[Piece]) -> None:
        for piece, tokens in zip(
            pieces, self.strategy.count([piece.embed_text for piece in pieces]), strict=True
        ):
            piece.tokens = tokens

    def _cut_smaller(self, region: Region, room: int, largest: int) -> list[Piece]:
        """Cut again with less room until every piece fits when it is counted as a whole."""
        allowed = room
        for _ in range(_ATTEMPTS):
            allowed = max(min(allowed - (largest - room) - 1, allowed * 9 // 10), 1)
            pieces = self._cut(region, allowed)
            self._weigh(pieces)
            largest = max(piece.tokens for piece in pieces)
            if largest <= room:
                return pieces
        raise DocumentError(
            "chunk",
            f"A text in the section {' > '.join(region.path) or '(start)'} has "
            f"{largest} tokens however it is cut; {room} are allowed.",
            "Raise the profile's max_tokens or use a model that reads more.",
        )

    def _cut(self, region: Region, allowed: int) -> list[Piece]:
        text = region.rendered.text
        if not text:
            return []
        profile = self.strategy.profile
        names = names_of(self.title, region.path)
        above, above_tokens = heading_context(
            names, allowed // _CONTEXT_SHARE, self.strategy.tokenizer
        )
        budget = allowed - above_tokens
        target = profile.target_tokens - self.strategy.tokenizer.special_tokens
        # A long path must not starve the text of a chunk that is small on purpose.
        target = max(min(max(target - above_tokens, target // 2), budget), 1)
        repeat = int(target * profile.overlap)
        room = Room(target, max(budget - repeat, 1), profile.min_tokens)
        total = sum(region.tokens)
        if total <= min(room.target, room.limit) and profile.strategy not in _ALWAYS_CUT:
            last = len(region.elements) - 1
            return [piece_of(region, (0, len(text)), (0, last), "", above)]
        splits = self.strategy.splits(region.elements, region.rendered, region.tokens, room)
        pieces: list[Piece] = []
        for first, last in self.strategy.pieces(splits, room):
            begin = self._begin(splits, first, region, repeat) if pieces and repeat else None
            head, tail = splits[first], splits[last - 1]
            if kinds_of(region.elements[head.first : tail.last + 1]) == (ElementKind.TITLE.value,):
                continue  # more headings on end than fit with a text: their place in the tree is enough
            bounds = (head.start if begin is None else begin, tail.end)
            pieces.append(piece_of(region, bounds, (head.first, tail.last), head.prefix, above))
        return pieces

    def _begin(
        self, splits: Sequence[Split], first: int, region: Region, repeat: int
    ) -> int | None:
        """Where a piece begins that repeats the end of the one before it; None when it does not."""
        head, before = splits[first], splits[first - 1]
        if head.prefix or not self._overlaps(region, before, head):
            return None
        start: int | None = None
        left = repeat
        for number in range(first - 1, -1, -1):
            split = splits[number]
            if split.tokens > left or split.prefix or not self._overlaps(region, split, head):
                break
            left -= split.tokens
            start = split.start
        if start is not None:
            return start
        text = region.rendered.text[before.start : before.end]
        tokens = self.strategy.tokenizer.spans(text)
        if self.strategy.profile.strategy != "fixed" or len(tokens) <= repeat:
            return None
        place = tokens[len(tokens) - repeat][0]
        while place < len(text) and not text[place - 1].isspace():
            place += 1
        return before.start + place if place < len(text) else None

    def _overlaps(self, region: Region, split: Split, head: Split) -> bool:
        """Whether an split may be repeated above another: no structure is between them."""
        between = range(split.first, head.first + 1)
        prose = all(region.elements[index].kind.value in _OVERLAPPING for index in between)
        return prose and (split.first == head.first or self.strategy.overlaps_paragraphs)


def kinds_of(elements: Sequence[Element]) -> tuple[str, ...]:
    """The kinds of some elements, sorted, each once."""
    return tuple(sorted({element.kind.value for element in elements}))
