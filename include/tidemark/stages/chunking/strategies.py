"""The strategies of a profile: what is opened, which boundaries are wanted, how pieces are filled.

strategy                opened into                     boundaries                          filled
----------------------  ------------------------------  ----------------------------------  ---------
by_title, markdown      long prose into sentences,      dear within what belongs together   best fit
                        tables and code over the limit
paragraph               only over the limit             between all that is not bonded      best fit
semantic                sentences                       where neighbours' meanings part,    best fit
                                                        never within what belongs together
faq                     only over the limit             before each question                best fit
contract                only over the limit             before each numbered clause         best fit
table                   rows                            between rows                        best fit
code                    definitions, else statements    between definitions                 best fit
whole                   nothing, while all of it fits   none                                best fit
recursive               what is over the target         any                                 greedy
sentence                sentences                       any                                 greedy
fixed                   words                           any                                 greedy
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tidemark.domain.documents import Element, ElementKind
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.profile import STRATEGIES, Profile
from tidemark.ports import CodeParser, Embedder, Tokenizer
from tidemark.stages.chunking import phrases
from tidemark.stages.chunking.cohesion import ANAPHOR_PRICE, is_question
from tidemark.stages.chunking.packing import BREAK, INSEPARABLE, Atom, Packer, Sizes, fill, pack
from tidemark.stages.chunking.sections import Rendered
from tidemark.stages.chunking.splits import Opening, Splitter, cut_by_tokens

# Where meaning parts: boundaries from the distance between neighbouring sentences' embeddings.
#
# The sentences on either side of a boundary, ``window`` of them, are embedded as two texts; where their
# cosine
# distance is among the largest of the section (over a percentile) a boundary is wanted. After the idea
# of semantic chunking as G. Kamradt described it ("5 Levels of Text Splitting", 2024).

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


REACH = 0.6
"""A piece of prose may go this share over the target at the price of 1."""
_LETTERED_PRICE = 0.4
_IN_CLAUSE_PRICE = 0.6
_GREEDY = frozenset({"recursive", "sentence", "fixed"})
"""To them a section is one run of text: bonds do not count, and overlap reaches over paragraphs."""


@dataclass(frozen=True, slots=True)
class Room:
    """Tokens that a piece's own text may have: about ``target``, never more than ``limit``."""

    target: int
    limit: int
    least: int


@dataclass(frozen=True, slots=True)
class Strategy:
    """One profile's way of cutting a section."""

    profile: Profile
    tokenizer: Tokenizer
    code: CodeParser | None = None
    embedder: Embedder | None = None

    def __post_init__(self) -> None:
        if self.profile.strategy not in STRATEGIES:
            raise ConfigurationError(
                f"Profile {self.profile.name} asks for the strategy {self.profile.strategy!r}.",
                f"Use one of: {', '.join(sorted(STRATEGIES))}.",
            )
        if self.profile.strategy == "semantic" and self.embedder is None:
            raise ConfigurationError(
                f"Profile {self.profile.name} cuts by meaning, which needs an embedding model.",
                "Give the chunking an embedder, or use another strategy.",
            )

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text without the special ones."""
        if not texts:
            return []
        special = self.tokenizer.special_tokens
        return [count - special for count in self.tokenizer.count(texts)]

    @property
    def overlaps_paragraphs(self) -> bool:
        return self.profile.strategy in _GREEDY

    def atoms(
        self,
        elements: Sequence[Element],
        rendered: Rendered,
        tokens: Sequence[int],
        room: Room,
    ) -> list[Atom]:
        """The atoms of one section; ``tokens`` are those of each element."""
        if self.profile.strategy == "fixed":
            return self._windows(rendered, room)
        splitter = Splitter(self.tokenizer, room.limit, self._opening(room), self.code)
        atoms = splitter.atoms(elements, rendered, tokens)
        reprice = _REPRICED.get(self.profile.strategy)
        if reprice is not None:
            return reprice(atoms, elements, rendered)
        if self.embedder is not None and self.profile.strategy == "semantic":
            return meaning_breaks(atoms, rendered.text, self.profile, room.limit, self.embedder)
        return atoms

    def pieces(self, atoms: Sequence[Atom], room: Room) -> list[tuple[int, int]]:
        """Half-open ranges of atoms."""
        packer: Packer = fill if self.profile.strategy in _GREEDY else pack
        reach = max(int(room.target * REACH), 1)
        if self.profile.strategy in {"paragraph", "faq", "contract"}:
            reach = max(room.limit - room.target, 1)
        return packer(atoms, Sizes(room.target, room.limit, room.least, reach))

    def _opening(self, room: Room) -> Opening:
        limit, target = room.limit, room.target
        over = min(int(target * (1 + REACH)), limit)
        strategy = self.profile.strategy
        bonds = strategy not in _GREEDY
        if strategy in {"semantic", "sentence"}:
            return Opening(0, limit, limit, bonds)
        if strategy in {"paragraph", "faq", "contract", "whole"}:
            return Opening(limit, limit, limit, bonds)
        if strategy == "recursive":
            return Opening(target, target, target, bonds)
        if strategy == "table":
            return Opening(over, target, limit, bonds)
        if strategy == "code":
            return Opening(over, limit, target, bonds, definitions=True)
        return Opening(over, limit, limit, bonds, definitions=True)

    def _windows(self, rendered: Rendered, room: Room) -> list[Atom]:
        """Windows of equal size over a section's whole text, whatever stands there."""
        cuts = cut_by_tokens(rendered.text, room.target, self.tokenizer)
        counts = self.tokenizer.count([rendered.text[start:end] for start, end in cuts])
        atoms: list[Atom] = []
        for (start, end), tokens in zip(cuts, counts, strict=True):
            inside = [
                index
                for index, (first, last) in enumerate(rendered.spans)
                if first < end and last > start
            ]
            own = tokens - self.tokenizer.special_tokens
            atoms.append(Atom(start, end, inside[0], inside[-1], own))
        return atoms


def _paragraphs(
    atoms: Sequence[Atom], elements: Sequence[Element], _rendered: Rendered
) -> list[Atom]:
    """A boundary is wanted before each element that nothing binds to the one before it."""
    repriced: list[Atom] = list(atoms[:1])
    for before, atom in pairwise(atoms):
        within = before.last == atom.first
        listed = elements[atom.first].kind is ElementKind.LIST_ITEM
        loose = not within and not listed and atom.price < ANAPHOR_PRICE
        repriced.append(replace(atom, price=BREAK) if loose else atom)
    return repriced


def _questions(
    atoms: Sequence[Atom], elements: Sequence[Element], rendered: Rendered
) -> list[Atom]:
    """A boundary is wanted before each question, and none within its answer while it fits."""
    repriced: list[Atom] = list(atoms[:1])
    asked = elements[atoms[0].first] if atoms and _asks(elements, rendered, atoms[0]) else None
    for before, atom in pairwise(atoms):
        element = elements[atom.first]
        asks = atom.first != before.last and _asks(elements, rendered, atom)
        if asks and asked is not None and element.kind is ElementKind.LIST_ITEM:
            # A list within an answer may ask too; only where questions are items does an item begin one.
            asks = asked.kind is ElementKind.LIST_ITEM
        # Questions in a row share their answer, but a list of questions is not part of the first of them.
        above = elements[before.last]
        in_a_row = _asks(elements, rendered, before) and (
            above.kind is not ElementKind.LIST_ITEM or element.kind is ElementKind.LIST_ITEM
        )
        if asks and not in_a_row and above.kind is not ElementKind.TITLE:
            repriced.append(replace(atom, price=BREAK))
        else:
            bound = INSEPARABLE if asked is not None else 0.0
            repriced.append(replace(atom, price=max(atom.price, bound)))
        asked = element if asks else asked
    return repriced


def _asks(elements: Sequence[Element], rendered: Rendered, atom: Atom) -> bool:
    return elements[atom.first].kind is not ElementKind.CODE and is_question(
        rendered.text[atom.start : atom.end]
    )


def _clauses(atoms: Sequence[Atom], elements: Sequence[Element], rendered: Rendered) -> list[Atom]:
    """A boundary is wanted before each numbered clause; its lettered items stay with it while they fit."""
    repriced: list[Atom] = list(atoms[:1])
    for before, atom in pairwise(atoms):
        new = atom.first != before.last
        number = (
            phrases.CLAUSE_BEGIN.match(rendered.text[atom.start : atom.start + 40]) if new else None
        )
        headed = elements[before.last].kind is ElementKind.TITLE
        bound = headed or atom.price >= INSEPARABLE  # an exception is a clause of its own at times
        if number and number.group("main") and not bound:
            repriced.append(replace(atom, price=BREAK))
        elif number:
            repriced.append(replace(atom, price=max(atom.price, _LETTERED_PRICE)))
        else:
            repriced.append(replace(atom, price=atom.price + _IN_CLAUSE_PRICE))
    return repriced


_REPRICED: dict[str, Callable[[Sequence[Atom], Sequence[Element], Rendered], list[Atom]]] = {
    "paragraph": _paragraphs,
    "faq": _questions,
    "contract": _clauses,
}
