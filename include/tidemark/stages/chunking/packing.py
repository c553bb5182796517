"""Splits to pieces: where to end one chunk and begin the next.

Each boundary has a cost: by what it parts (nothing between paragraphs, very much between a term and its
definition), and a little by the text that stands there. ``pack`` always cuts at an anchor, a boundary that is
cheaper than all others around it. Whether it is depends on nothing further away, so an edit reaches no
further than the next anchors. Between two of them it finds the cheapest segmentation: pieces near the target
are cheap, tiny ones dear. ``fill`` takes as many splits as fit, as size-driven splitters do.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

INSEPARABLE = 50.0
"""Above every cost of size: parted only where both together are over the limit."""
BREAK = -8.0
"""A boundary that is wanted, unless a piece would be tiny."""
_ANCHOR_REACH = 0.5
"""How far around an anchor, in parts of the target, no boundary is cheaper. Anchors are as far from each
other and from the section's ends, so that none makes a tiny piece."""
_ANCHOR_MOST = 0.9
"""A boundary over this cost parts what belongs together, and is no anchor however dear the others."""
_PIECE = 0.05
_SIZE_MOST = 30.0
_TINY = 1.0
_TINY_AT_BREAKS = 20.0


@dataclass(frozen=True, slots=True)
class Split:
    """A stretch of a section's text that packing does not part.

    start, end: characters in the section's text.
    first, last: indices of the first and last element in it.
    tokens: of the stretch; tokens may be estimated upwards for very long words.
    cost: of a boundary before it.
    prefix: repeated above a piece that begins here (a table's header, a signature), with its tokens.
    """

    start: int
    end: int
    first: int
    last: int
    tokens: int
    cost: float = 0.0
    prefix: str = ""
    prefix_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Sizes:
    """In tokens of a piece's own text.

    target: filled up to this. limit: never more. least: fewer is tiny.
    reach: how far over the target a piece may go at the cost of 1; four times that at twice as far.
    """

    target: int
    limit: int
    least: int
    reach: int = 0


Packer = Callable[[Sequence[Split], Sizes], list[tuple[int, int]]]


def pack(splits: Sequence[Split], sizes: Sizes) -> list[tuple[int, int]]:
    """Half-open ranges of splits, one a piece. An split over the limit is a piece of its own."""
    count = len(splits)
    if count == 1:
        return [(0, 1)]
    if not count:
        return []
    breaks = any(split.cost < 0 for split in splits[1:])
    if not breaks and sum(a.tokens for a in splits) + splits[0].prefix_tokens <= sizes.target:
        return [(0, count)]
    tiny = _TINY_AT_BREAKS if breaks else _TINY
    places = [0, *_anchors(splits, sizes.target * _ANCHOR_REACH), count]
    return [
        (first + start, first + end)
        for first, last in pairwise(places)
        for start, end in _cheapest(splits[first:last], sizes, tiny)
    ]


def _anchors(splits: Sequence[Split], reach: float) -> list[int]:
    """The boundaries that are cheaper than all others within ``reach`` tokens of them, in order.

    Of equally cheap ones the first counts.
    """
    places = [0, *accumulate(split.tokens for split in splits)]
    found: list[int] = []
    # Of the boundaries within reach behind the current one, those that none after them undercuts.
    rising: deque[int] = deque()
    for index in range(1, len(splits)):
        place, cost = places[index], splits[index].cost
        if cost > _ANCHOR_MOST:
            continue
        while rising and place - places[rising[0]] > reach:
            rising.popleft()
        while rising and splits[rising[-1]].cost > cost:
            rising.pop()
        if not rising:
            if found and place - places[found[-1]] <= reach:
                found.pop()  # it was the cheapest up to here
            if reach <= place <= places[-1] - reach:
                found.append(index)
        rising.append(index)
    return found


def _cheapest(splits: Sequence[Split], sizes: Sizes, tiny: float) -> list[tuple[int, int]]:
    count = len(splits)
    target, limit, least = sizes.target, sizes.limit, sizes.least
    reach = max(sizes.reach or limit - target, 1)
    best = [0.0] + [float("inf")] * count
    origin = [0] * (count + 1)
    for end in range(1, count + 1):
        body = 0
        for start in range(end - 1, -1, -1):
            split = splits[start]
            body += split.tokens
            if body > limit and start < end - 1:
                break
            total = body + split.prefix_tokens
            if total > limit and start < end - 1:
                continue
            off = (target - total) / target if total <= target else (total - target) / reach
            size = min(off * off, _SIZE_MOST)
            cost = best[start] + _PIECE + size + (split.cost if start else 0.0)
            if total < least:
                cost += tiny
            if cost < best[end]:
                best[end], origin[end] = cost, start
    return _ranges(origin)


def _ranges(origin: Sequence[int]) -> list[tuple[int, int]]:
    pieces: list[tuple[int, int]] = []
    end = len(origin) - 1
    while end > 0:
        pieces.append((origin[end], end))
        end = origin[end]
    pieces.reverse()
    return pieces


def fill(splits: Sequence[Split], sizes: Sizes) -> list[tuple[int, int]]:
    """Half-open ranges of splits, each as many as the target holds, a tiny rest joined where that fits."""
    pieces: list[tuple[int, int]] = []
    start, total = 0, 0
    for index, split in enumerate(splits):
        if index > start and total + split.tokens > sizes.target:
            pieces.append((start, index))
            start, total = index, 0
        total += split.tokens + (split.prefix_tokens if index == start else 0)
    if start < len(splits):
        pieces.append((start, len(splits)))
    if len(pieces) > 1 and total < sizes.least:
        before = pieces[-2][0]
        size = sum(a.tokens for a in splits[before:]) + splits[before].prefix_tokens
        if size <= sizes.limit:
            pieces[-2:] = [(before, len(splits))]
    return pieces
