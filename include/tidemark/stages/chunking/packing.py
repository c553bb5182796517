"""Atoms to pieces: where to end one chunk and begin the next.

The cheapest segmentation is found over all of a section's atoms: pieces near the target are cheap, tiny ones
dear, and each boundary has a price of its own (nothing between paragraphs, much between a term and its
definition). Prices vary a little with the text at the boundary, so that after an edit the old boundaries are
found again a few atoms further on.
"""

from collections.abc import Sequence
from dataclasses import dataclass

INSEPARABLE = 6.0
_PIECE = 0.05
_TINY = 1.0


@dataclass(frozen=True, slots=True)
class Atom:
    """A stretch of a section's text that packing does not part.

    start, end: characters in the section's text.
    first, last: indices of the first and last element in it.
    tokens: of the stretch; tokens may be estimated upwards for very long words.
    price: of a boundary before it.
    prefix: repeated above a piece that begins here (a table's header), with its tokens.
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
    """In tokens of a piece's own text: filled up to ``target``, never over ``limit``."""

    target: int
    limit: int
    least: int


def pack(atoms: Sequence[Atom], sizes: Sizes) -> list[tuple[int, int]]:
    """Half-open ranges of atoms, one a piece. An atom over the limit is a piece of its own."""
    if not atoms:
        return []
    if sum(atom.tokens for atom in atoms) + atoms[0].prefix_tokens <= sizes.target:
        return [(0, len(atoms))]
    best = [0.0] + [float("inf")] * len(atoms)
    origin = [0] * (len(atoms) + 1)
    for end in range(1, len(atoms) + 1):
        body = 0
        for start in range(end - 1, -1, -1):
            atom = atoms[start]
            body += atom.tokens
            if body > sizes.limit and start < end - 1:
                break
            total = body + atom.prefix_tokens
            if total > sizes.limit and start < end - 1:
                continue
            price = best[start] + _price(total, sizes) + (atom.price if start else 0.0)
            if price < best[end]:
                best[end], origin[end] = price, start
    pieces: list[tuple[int, int]] = []
    end = len(atoms)
    while end > 0:
        pieces.append((origin[end], end))
        end = origin[end]
    pieces.reverse()
    return pieces


def _price(tokens: int, sizes: Sizes) -> float:
    if tokens <= sizes.target:
        short = (sizes.target - tokens) / max(sizes.target, 1)
        return _PIECE + short * short + (_TINY if tokens < sizes.least else 0.0)
    over = (tokens - sizes.target) / max(sizes.limit - sizes.target, 1)
    return _PIECE + over * over
