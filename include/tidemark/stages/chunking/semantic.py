"""Where meaning parts: boundaries from the distance between neighbouring sentences' embeddings.

The sentences on either side of a boundary, ``window`` of them, are embedded as two texts; where their cosine
distance is among the largest of the section (over a percentile) a boundary is wanted. After the idea of
semantic chunking as G. Kamradt described it ("5 Levels of Text Splitting", 2024).
"""

from collections.abc import Sequence
from dataclasses import replace

from tidemark.domain.profile import Profile
from tidemark.ports import Embedder
from tidemark.stages.chunking.packing import BREAK, Atom

_WITHIN = 0.5
_BREAKS_UNDER = 1.0
"""A dearer boundary parts what belongs together, or a sentence, whatever the distance."""
_MOST = 8_192
"""Sentences embedded at a time, which bounds memory."""


def meaning_breaks(
    atoms: Sequence[Atom], text: str, profile: Profile, most: int, embedder: Embedder
) -> list[Atom]:
    """The atoms with the boundaries wanted where meaning parts, and others at a price.

    most: tokens of the longest text that the embedder is given.
    Raises what the embedder raises.
    """
    if len(atoms) < 3:
        return list(atoms)
    distances = _distances(atoms, text, profile.window, most, embedder)
    ordered = sorted(distances)
    edge = ordered[min(len(ordered) * profile.percentile // 100, len(ordered) - 1)]
    repriced = [atoms[0]]
    for atom, distance in zip(atoms[1:], distances, strict=True):
        wanted = distance >= edge and distance > 0 and atom.price < _BREAKS_UNDER
        price = BREAK if wanted else max(_WITHIN * (1 - distance), atom.price)
        repriced.append(replace(atom, price=price))
    return repriced


def _distances(
    atoms: Sequence[Atom], text: str, window: int, most: int, embedder: Embedder
) -> list[float]:
    """The cosine distance over each boundary; each side's text is embedded once."""
    befores: list[str] = []
    afters: list[str] = []
    for index in range(1, len(atoms)):
        first = _reach(atoms, range(index - 1, max(index - window, 0) - 1, -1), most)
        last = _reach(atoms, range(index, min(index + window, len(atoms))), most)
        befores.append(text[atoms[first].start : atoms[index - 1].end])
        afters.append(text[atoms[index].start : atoms[last].end])
    unique = list(dict.fromkeys([*befores, *afters]))
    vectors: dict[str, tuple[float, ...]] = {}
    for first in range(0, len(unique), _MOST):
        part = unique[first : first + _MOST]
        vectors.update(zip(part, embedder.embed(part), strict=True))
    return [
        1.0 - sum(x * y for x, y in zip(vectors[one], vectors[other], strict=True))
        for one, other in zip(befores, afters, strict=True)
    ]


def _reach(atoms: Sequence[Atom], indices: range, most: int) -> int:
    """The last of the indices whose atoms together have at most ``most`` tokens; the first always counts."""
    reached, total = indices[0], 0
    for index in indices:
        total += atoms[index].tokens
        if total > most:
            break
        reached = index
    return reached
