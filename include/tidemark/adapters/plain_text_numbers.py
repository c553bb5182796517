"""Headings by their numbers: "1. Scope", "2.1 Charges", "ARTICLE IV", "Section 3.", "§ 5 Haftung".

Numbers make headings only where they count up through the document; an ordinary numbered list stays a list.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tidemark.adapters.plain_text_headings import DEEPEST, LONGEST, Heading, is_title
from tidemark.adapters.plain_text_lists import mark_of

_NUMBERED = re.compile(r"(\d{1,3}(?:\.\d{1,3}){0,4})(\.|\))?\s+(\S.*)$")
_NAMED = re.compile(
    r"(?P<name>part|book|title|teil|buch|partie|parte|livre|libro|chapter|kapitel|chapitre|capítulo|capitolo|"
    r"hoofdstuk|article|artikel|artículo|articolo|artigo|section|abschnitt|sección|sezione|seção|"
    r"schedule|annex|annexe|appendix|exhibit|attachment|anlage|anhang|anexo|allegato|bijlage|clause|§+)\s*"
    r"(?P<number>(?:\d{1,3}[a-z]?(?:\.\d{1,3})*|[ivxlc]{1,7}|[A-Z])\b)(?P<rest>.*)$",
    re.IGNORECASE,
)
_ANNEX_NAMES = (
    "schedule annex annexe appendix exhibit attachment anlage anhang anexo allegato bijlage"
)
# From the outermost inwards.
_NAMES_BY_RANK = (
    f"part book title teil buch partie parte livre libro {_ANNEX_NAMES}",
    "chapter kapitel chapitre capítulo capitolo hoofdstuk",
    "article artikel artículo articolo artigo",
    "section abschnitt sección sezione seção clause",
)
_RANKS = {name: rank for rank, names in enumerate(_NAMES_BY_RANK) for name in names.split()}
_ANNEXES = frozenset(_ANNEX_NAMES.split())
_PARAGRAPH_RANK = 4
_LEADER = re.compile(r"(?:\.\s?){3,}\s*\d*$|\s{3,}\d{1,4}$")
_STOPS = (".", ",", ";", ":", "!", "?")
_SENTENCE_END = re.compile(r"[.!?;]\W*$")
_SENTENCE = re.compile(
    r"\b(?:shall|may|must|will|should|can|cannot|is|are|has|have|does|do|agrees?|undertakes?|"
    r"darf|dürfen|muss|müssen|soll|sollen|kann|können|wird|werden|ist|sind|hat|haben|"
    r"doit|doivent|peut|peuvent|est|sont|debe|deben|puede|pueden|es|son|deve|devono|può|possono|è|sono)\b",
)
"""A finite verb: a heading has none."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    index: int
    rank: int
    depth: int
    number: str
    text: str
    lines: int = 1


def numbered_headings(
    lines: Sequence[str], base: int, taken: Iterable[int] = ()
) -> dict[int, Heading]:
    """Headings by their numbers ("1. Scope", "ARTICLE IV", "§ 5 Haftung"), by the index of their first line.

    ``base`` is the indentation of running text, and ``taken`` are lines that are headings already.
    """
    claimed = set(taken)
    filled = [index for index, line in enumerate(lines) if line.strip()]
    candidates: list[_Candidate] = []
    for place, index in enumerate(filled[:-1]):
        if index in claimed:
            continue
        candidate = _named(lines, filled, place) or (
            _numbered(lines, filled, place) if _indent(lines[index]) <= base else None
        )
        if candidate:
            candidates.append(candidate)
    return _levelled(_in_sequence(_without_clauses(candidates, lines)))


def _named(lines: Sequence[str], filled: Sequence[int], place: int) -> _Candidate | None:
    """A line such as "ARTICLE IV", "Section 3. Payment", "§ 5 Haftung", with a title on the next line."""
    index = filled[place]
    line = lines[index].strip()
    found = _NAMED.match(line)
    if found is None or len(line) > LONGEST or not _stands_alone(lines, index):
        return None
    name, rest = found["name"].casefold(), found["rest"]
    title = rest.lstrip(" .:–—-\t)")
    if rest and not title and rest.strip() not in {".", ":", "-", "–", "—"}:
        return None
    if title and not is_title(title, spaced=rest[:1] in {" ", "\t", ".", ":"}):
        return None
    rank = _PARAGRAPH_RANK if name.startswith("§") else _RANKS[name]
    depth = found["number"].count(".")
    number = "" if name in _ANNEXES else found["number"]
    text, used = line, 1
    if not title:
        after = filled[place + 1]
        below = _title_below(lines, after) if after - index <= 2 else []
        if below:
            text, used = " ".join([line, *below]), after - index + len(below)
    return _Candidate(index, rank, depth, number, text, used)


def _title_below(lines: Sequence[str], index: int) -> list[str]:
    """The lines of a title under "ARTICLE I": up to three of capitals, or one that looks like a title."""
    block = [line.strip() for line in _rest_of_block(lines, index)]
    if not block or _NAMED.match(block[0]) or _NUMBERED.match(block[0]) or mark_of(block[0]):
        return []
    if len(block) <= 3 and all(line.isupper() for line in block):
        return block
    titled = is_title(block[0], spaced=True) and len(block[0]) <= LONGEST
    return block if len(block) == 1 and titled and not _SENTENCE.search(block[0]) else []


def _numbered(lines: Sequence[str], filled: Sequence[int], place: int) -> _Candidate | None:
    """A line such as "1. Scope" or "2.1 Length of stay" with something else under it."""
    index = filled[place]
    line = lines[index].strip()
    found = _NUMBERED.match(line)
    if found is None or len(line) > LONGEST or _LEADER.search(line):
        return None
    depth = found[1].count(".")
    if not is_title(found[3], spaced=True) or found[2] == ")":
        return None
    after = filled[place + 1]
    if depth == 0 and found[2] is None and after == index + 1:
        return None  # "30 Days" within a paragraph
    if not (_stands_alone(lines, index) or _ends_paragraph(lines, index)):
        return None
    before = lines[filled[place - 1]] if place else ""
    if _is_neighbour(before, found[1], -1) or _is_neighbour(lines[after], found[1], 1):
        return None  # one after the other they are a list
    if _is_in_contents(lines, index):
        return None
    if after == index + 1 and not _NUMBERED.match(lines[after].strip()):
        body = _rest_of_block(lines, after)
        first = lines[after].lstrip()[:1]
        # A wrapped sentence fills its line; a second line set deeper belongs to an item of a list.
        if first.islower() or len(line) >= 0.7 * max(len(x.strip()) for x in body):
            return None
        if depth == 0 and _indent(lines[after]) > _indent(lines[index]):
            return None
    return _Candidate(index, _PARAGRAPH_RANK + 1, depth, found[1], line)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _rest_of_block(lines: Sequence[str], index: int) -> list[str]:
    """Up to eight lines from ``index`` to the next blank one."""
    block: list[str] = []
    for line in lines[index : index + 8]:
        if not line.strip():
            break
        block.append(line)
    return block


def _is_in_contents(lines: Sequence[str], index: int) -> bool:
    """Whether three numbered lines stand together, as in a table of contents."""
    first = last = index
    while first > max(index - 2, 0) and _NUMBERED.match(lines[first - 1].strip()):
        first -= 1
    while last < min(index + 2, len(lines) - 1) and _NUMBERED.match(lines[last + 1].strip()):
        last += 1
    return last - first >= 2


def _is_neighbour(line: str, number: str, step: int) -> bool:
    """Whether a line has the number that stands ``step`` after ``number`` and is as short as a heading."""
    other = _NUMBERED.match(line.strip())
    if other is None or len(line.strip()) > LONGEST or _LEADER.search(line):
        return False
    outer, _, last = number.rpartition(".")
    beside = f"{outer}." if outer else ""
    if other[1] != f"{beside}{int(last) + step}":
        return False
    return bool(outer) or other[2] is not None or is_title(other[3], spaced=True)


def _stands_alone(lines: Sequence[str], index: int) -> bool:
    return index == 0 or not lines[index - 1].strip()


def _ends_paragraph(lines: Sequence[str], index: int) -> bool:
    """Whether the line above ends a paragraph, though no blank line follows it."""
    above = lines[index - 1].strip()
    return above.endswith((".", "!", "?", ";", ":")) or bool(
        _NUMBERED.match(above) and len(above) < 60
    )


def _without_clauses(candidates: Sequence[_Candidate], lines: Sequence[str]) -> list[_Candidate]:
    """Without the numbers that begin a sentence, and without those whose siblings do ("4.1", "4.2").

    Of two clauses of one parent one may be short enough for a heading; they are treated alike.
    """
    heads = {c.index for c in candidates}
    clauses = {
        found[1].rpartition(".")[0]
        for index, line in enumerate(lines)
        if index not in heads and (found := _NUMBERED.match(line.strip())) and "." in found[1]
        if _stands_alone(lines, index) and not _LEADER.search(line)
        if len(line.strip()) > LONGEST or _rest_runs_on(lines, index)
    }
    return [
        c
        for c in candidates
        if c.rank <= _PARAGRAPH_RANK
        or not (
            (c.depth and c.number.rpartition(".")[0] in clauses and not _has_body(lines, c.index))
            or _is_open(lines, c.index)
        )
    ]


def _rest_runs_on(lines: Sequence[str], index: int) -> bool:
    """Whether a numbered line is, with the lines under it, a sentence."""
    block = _rest_of_block(lines, index)
    return bool(_SENTENCE_END.search(block[-1])) or len(block) > 2


def _has_body(lines: Sequence[str], index: int) -> bool:
    """Whether a numbered line stands alone above text without a number: it heads that, if anything does."""
    if index + 1 >= len(lines) or lines[index + 1].strip():
        return False
    after = next((line.strip() for line in lines[index + 1 :] if line.strip()), "")
    return bool(after) and not _NUMBERED.match(after) and mark_of(after) is None


def _is_open(lines: Sequence[str], index: int) -> bool:
    """Whether a numbered line begins a sentence that its items complete: "4.2 The customer may not"."""
    line = lines[index].strip()
    below = next((text for text in map(str.strip, lines[index + 1 : index + 4]) if text), "")
    found = _NUMBERED.match(line)
    said = found[3] if found else line
    listed = mark_of(below) is not None
    return bool(_SENTENCE.search(said)) and (listed or below[:1].islower())


def _in_sequence(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Without the numbers of a kind that do not count up: each follows the last, or begins again at 1."""
    tops = [c for c in candidates if c.rank > _PARAGRAPH_RANK and c.depth == 0]
    steady = sum(
        1
        for before, after in zip([None, *tops], tops, strict=False)
        if int(after.number) == 1 or (before and int(after.number) == int(before.number) + 1)
    )
    consistent = steady * 10 >= len(tops) * 7
    return [c for c in candidates if c.rank <= _PARAGRAPH_RANK or c.depth or consistent]


def _levelled(candidates: Sequence[_Candidate]) -> dict[int, Heading]:
    """Levels by rank and depth: the outermost kind that the document has is 1."""
    names = sorted({c.rank for c in candidates if c.rank <= _PARAGRAPH_RANK and c.number})
    depths = [c.depth for c in candidates if c.rank > _PARAGRAPH_RANK]
    least = min(depths, default=0)
    shallowest = {rank: min(c.depth for c in candidates if c.rank == rank) for rank in names}
    headings: dict[int, Heading] = {}
    for candidate in candidates:
        if candidate.rank > _PARAGRAPH_RANK:
            level = len(names) + 1 + candidate.depth - (least if names else 0)
        elif candidate.number:
            level = names.index(candidate.rank) + 1 + candidate.depth - shallowest[candidate.rank]
        else:
            level = 1
        headings[candidate.index] = Heading(
            min(level, DEEPEST), candidate.text, marked=False, lines=candidate.lines
        )
    return headings
