"""Atoms to pieces: where to end one chunk and begin the next.

Each boundary has a price: by what it parts (nothing between paragraphs, very much between a term and its
definition), and a little by the text that stands there. ``pack`` always cuts at an anchor, a boundary that is
cheaper than all others around it. Whether it is depends on nothing further away, so an edit reaches no
further than the next anchors. Between two of them it finds the cheapest segmentation: pieces near the target
are cheap, tiny ones dear. ``fill`` takes as many atoms as fit, as size-driven splitters do.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

INSEPARABLE = 50.0
"""Above every price of size: parted only where both together are over the limit."""
BREAK = -8.0
"""A boundary that is wanted, unless a piece would be tiny."""
_ANCHOR_REACH = 0.5
"""How far around an anchor, in parts of the target, no boundary is cheaper. Anchors are as far from each
other and from the section's ends, so that none makes a tiny piece."""
_ANCHOR_MOST = 0.9
"""A boundary over this price parts what belongs together, and is no anchor however dear the others."""
_PIECE = 0.05
_SIZE_MOST = 30.0
_TINY = 1.0
_TINY_AT_BREAKS = 20.0


@dataclass(frozen=True, slots=True)
class Atom:
    """A stretch of a section's text that packing does not part.

    start, end: characters in the section's text.
    first, last: indices of the first and last element in it.
    tokens: of the stretch; tokens may be estimated upwards for very long words.
    price: of a boundary before it.
    prefix: repeated above a piece that begins here (a table's header, a signature), with its tokens.
    """

    start: int
    end: int
    first: int
    last: int
    tokens: int
    price: float = 0.0
    prefix: str = ""
    prefix_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Sizes:
    """In tokens of a piece's own text.

    target: filled up to this. limit: never more. least: fewer is tiny.
    reach: how far over the target a piece may go at the price of 1; four times that at twice as far.
    """

    target: int
    limit: int
    least: int
    reach: int = 0


Packer = Callable[[Sequence[Atom], Sizes], list[tuple[int, int]]]


def pack(atoms: Sequence[Atom], sizes: Sizes) -> list[tuple[int, int]]:
    """Half-open ranges of atoms, one a piece. An atom over the limit is a piece of its own."""
    count = len(atoms)
    if count == 1:
        return [(0, 1)]
    if not count:
        return []
    breaks = any(atom.price < 0 for atom in atoms[1:])
    if not breaks and sum(a.tokens for a in atoms) + atoms[0].prefix_tokens <= sizes.target:
        return [(0, count)]
    tiny = _TINY_AT_BREAKS if breaks else _TINY
    places = [0, *_anchors(atoms, sizes.target * _ANCHOR_REACH), count]
    return [
        (first + start, first + end)
        for first, last in pairwise(places)
        for start, end in _cheapest(atoms[first:last], sizes, tiny)
    ]


def _anchors(atoms: Sequence[Atom], reach: float) -> list[int]:
    """The boundaries that are cheaper than all others within ``reach`` tokens of them, in order.

    Of equally cheap ones the first counts.
    """
    places = [0, *accumulate(atom.tokens for atom in atoms)]
    found: list[int] = []
    # Of the boundaries within reach behind the current one, those that none after them undercuts.
    rising: deque[int] = deque()
    for index in range(1, len(atoms)):
        place, price = places[index], atoms[index].price
        if price > _ANCHOR_MOST:
            continue
        while rising and place - places[rising[0]] > reach:
            rising.popleft()
        while rising and atoms[rising[-1]].price > price:
            rising.pop()
        if not rising:
            if found and place - places[found[-1]] <= reach:
                found.pop()  # it was the cheapest up to here
            if reach <= place <= places[-1] - reach:
                found.append(index)
        rising.append(index)
    return found


def _cheapest(atoms: Sequence[Atom], sizes: Sizes, tiny: float) -> list[tuple[int, int]]:
    count = len(atoms)
    target, limit, least = sizes.target, sizes.limit, sizes.least
    reach = max(sizes.reach or limit - target, 1)
    best = [0.0] + [float("inf")] * count
    origin = [0] * (count + 1)
    for end in range(1, count + 1):
        body = 0
        for start in range(end - 1, -1, -1):
            atom = atoms[start]
            body += atom.tokens
            if body > limit and start < end - 1:
                break
            total = body + atom.prefix_tokens
            if total > limit and start < end - 1:
                continue
            off = (target - total) / target if total <= target else (total - target) / reach
            size = min(off * off, _SIZE_MOST)
            price = best[start] + _PIECE + size + (atom.price if start else 0.0)
            if total < least:
                price += tiny
            if price < best[end]:
                best[end], origin[end] = price, start
    return _ranges(origin)


def _ranges(origin: Sequence[int]) -> list[tuple[int, int]]:
    pieces: list[tuple[int, int]] = []
    end = len(origin) - 1
    while end > 0:
        pieces.append((origin[end], end))
        end = origin[end]
    pieces.reverse()
    return pieces


def fill(atoms: Sequence[Atom], sizes: Sizes) -> list[tuple[int, int]]:
    """Half-open ranges of atoms, each as many as the target holds, a tiny rest joined where that fits."""
    pieces: list[tuple[int, int]] = []
    start, total = 0, 0
    for index, atom in enumerate(atoms):
        if index > start and total + atom.tokens > sizes.target:
            pieces.append((start, index))
            start, total = index, 0
        total += atom.tokens + (atom.prefix_tokens if index == start else 0)
    if start < len(atoms):
        pieces.append((start, len(atoms)))
    if len(pieces) > 1 and total < sizes.least:
        before = pieces[-2][0]
        size = sum(a.tokens for a in atoms[before:]) + atoms[before].prefix_tokens
        if size <= sizes.limit:
            pieces[-2:] = [(before, len(atoms))]
    return pieces
