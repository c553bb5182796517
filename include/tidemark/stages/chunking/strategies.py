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
from tidemark.ports.embedding import Embedder, Tokenizer
from tidemark.ports.partition import CodeParser
from tidemark.stages.chunking import language
from tidemark.stages.chunking.cohesion import ANAPHOR_COST, is_question
from tidemark.stages.chunking.packing import BREAK, INSEPARABLE, Packer, Sizes, Split, fill, pack
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
    splits: Sequence[Split], text: str, profile: Profile, most: int, embedder: Embedder
) -> list[Split]:
    """The splits with the boundaries wanted where meaning parts, and others at a cost.

    most: tokens of the longest text that the embedder is given.
    Raises what the embedder raises.
    """
    if len(splits) < 3:
        return list(splits)
    distances = _distances(splits, text, profile.window, most, embedder)
    ordered = sorted(distances)
    edge = ordered[min(len(ordered) * profile.percentile // 100, len(ordered) - 1)]
    adjusted = [splits[0]]
    for split, distance in zip(splits[1:], distances, strict=True):
        wanted = distance >= edge and distance > 0 and split.cost < _BREAKS_UNDER
        cost = BREAK if wanted else max(_WITHIN * (1 - distance), split.cost)
        adjusted.append(replace(split, cost=cost))
    return adjusted


def _distances(
    splits: Sequence[Split], text: str, window: int, most: int, embedder: Embedder
) -> list[float]:
    """The cosine distance over each boundary; each side's text is embedded once."""
    befores: list[str] = []
    afters: list[str] = []
    for index in range(1, len(splits)):
        first = _reach(splits, range(index - 1, max(index - window, 0) - 1, -1), most)
        last = _reach(splits, range(index, min(index + window, len(splits))), most)
        befores.append(text[splits[first].start : splits[index - 1].end])
        afters.append(text[splits[index].start : splits[last].end])
    unique = list(dict.fromkeys([*befores, *afters]))
    vectors: dict[str, tuple[float, ...]] = {}
    for first in range(0, len(unique), _MOST):
        part = unique[first : first + _MOST]
        vectors.update(zip(part, embedder.embed(part), strict=True))
    return [
        1.0 - sum(x * y for x, y in zip(vectors[one], vectors[other], strict=True))
        for one, other in zip(befores, afters, strict=True)
    ]


def _reach(splits: Sequence[Split], indices: range, most: int) -> int:
    """The last of the indices whose splits together have at most ``most`` tokens; the first always counts."""
    reached, total = indices[0], 0
    for index in indices:
        total += splits[index].tokens
        if total > most:
            break
        reached = index
    return reached


REACH = 0.6
"""A piece of prose may go this share over the target at the cost of 1."""
_LETTERED_COST = 0.4
_IN_CLAUSE_COST = 0.6
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

    def splits(
        self,
        elements: Sequence[Element],
        rendered: Rendered,
        tokens: Sequence[int],
        room: Room,
    ) -> list[Split]:
        """The splits of one section; ``tokens`` are those of each element."""
        if self.profile.strategy == "fixed":
            return self._windows(rendered, room)
        splitter = Splitter(self.tokenizer, room.limit, self._opening(room), self.code)
        splits = splitter.splits(elements, rendered, tokens)
        adjust = _ADJUSTMENTS.get(self.profile.strategy)
        if adjust is not None:
            return adjust(splits, elements, rendered)
        if self.embedder is not None and self.profile.strategy == "semantic":
            return meaning_breaks(splits, rendered.text, self.profile, room.limit, self.embedder)
        return splits

    def pieces(self, splits: Sequence[Split], room: Room) -> list[tuple[int, int]]:
        """Half-open ranges of splits."""
        packer: Packer = fill if self.profile.strategy in _GREEDY else pack
        reach = max(int(room.target * REACH), 1)
        if self.profile.strategy in {"paragraph", "faq", "contract"}:
            reach = max(room.limit - room.target, 1)
        return packer(splits, Sizes(room.target, room.limit, room.least, reach))

    def _opening(self, room: Room) -> Opening:
        limit, target = room.limit, room.target
        over = min(int(target * (1 + REACH)), limit)
        strategy = self.profile.strategy
        cohesion = strategy not in _GREEDY
        if strategy in {"semantic", "sentence"}:
            return Opening(0, limit, limit, cohesion)
        if strategy in {"paragraph", "faq", "contract", "whole"}:
            return Opening(limit, limit, limit, cohesion)
        if strategy == "recursive":
            return Opening(target, target, target, cohesion)
        if strategy == "table":
            return Opening(over, target, limit, cohesion)
        if strategy == "code":
            return Opening(over, limit, target, cohesion, definitions=True)
        return Opening(over, limit, limit, cohesion, definitions=True)

    def _windows(self, rendered: Rendered, room: Room) -> list[Split]:
        """Windows of equal size over a section's whole text, whatever stands there."""
        cuts = cut_by_tokens(rendered.text, room.target, self.tokenizer)
        counts = self.tokenizer.count([rendered.text[start:end] for start, end in cuts])
        splits: list[Split] = []
        for (start, end), tokens in zip(cuts, counts, strict=True):
            inside = [
                index
                for index, (first, last) in enumerate(rendered.spans)
                if first < end and last > start
            ]
            own = tokens - self.tokenizer.special_tokens
            splits.append(Split(start, end, inside[0], inside[-1], own))
        return splits


def _paragraphs(
    splits: Sequence[Split], elements: Sequence[Element], _rendered: Rendered
) -> list[Split]:
    """A boundary is wanted before each element that nothing binds to the one before it."""
    adjusted: list[Split] = list(splits[:1])
    for before, split in pairwise(splits):
        within = before.last == split.first
        listed = elements[split.first].kind is ElementKind.LIST_ITEM
        loose = not within and not listed and split.cost < ANAPHOR_COST
        adjusted.append(replace(split, cost=BREAK) if loose else split)
    return adjusted


def _questions(
    splits: Sequence[Split], elements: Sequence[Element], rendered: Rendered
) -> list[Split]:
    """A boundary is wanted before each question, and none within its answer while it fits."""
    adjusted: list[Split] = list(splits[:1])
    asked = elements[splits[0].first] if splits and _asks(elements, rendered, splits[0]) else None
    for before, split in pairwise(splits):
        element = elements[split.first]
        asks = split.first != before.last and _asks(elements, rendered, split)
        if asks and asked is not None and element.kind is ElementKind.LIST_ITEM:
            # A list within an answer may ask too; only where questions are items does an item begin one.
            asks = asked.kind is ElementKind.LIST_ITEM
        # Questions in a row share their answer, but a list of questions is not part of the first of them.
        above = elements[before.last]
        in_a_row = _asks(elements, rendered, before) and (
            above.kind is not ElementKind.LIST_ITEM or element.kind is ElementKind.LIST_ITEM
        )
        if asks and not in_a_row and above.kind is not ElementKind.TITLE:
            adjusted.append(replace(split, cost=BREAK))
        else:
            bound = INSEPARABLE if asked is not None else 0.0
            adjusted.append(replace(split, cost=max(split.cost, bound)))
        asked = element if asks else asked
    return adjusted


def _asks(elements: Sequence[Element], rendered: Rendered, split: Split) -> bool:
    return elements[split.first].kind is not ElementKind.CODE and is_question(
        rendered.text[split.start : split.end]
    )


def _clauses(
    splits: Sequence[Split], elements: Sequence[Element], rendered: Rendered
) -> list[Split]:
    """A boundary is wanted before each numbered clause; its lettered items stay with it while they fit."""
    adjusted: list[Split] = list(splits[:1])
    for before, split in pairwise(splits):
        new = split.first != before.last
        number = (
            language.CLAUSE_BEGIN.match(rendered.text[split.start : split.start + 40])
            if new
            else None
        )
        headed = elements[before.last].kind is ElementKind.TITLE
        bound = headed or split.cost >= INSEPARABLE  # an exception is a clause of its own at times
        if number and number.group("main") and not bound:
            adjusted.append(replace(split, cost=BREAK))
        elif number:
            adjusted.append(replace(split, cost=max(split.cost, _LETTERED_COST)))
        else:
            adjusted.append(replace(split, cost=split.cost + _IN_CLAUSE_COST))
    return adjusted


_ADJUSTMENTS: dict[str, Callable[[Sequence[Split], Sequence[Element], Rendered], list[Split]]] = {
    "paragraph": _paragraphs,
    "faq": _questions,
    "contract": _clauses,
}
