"""Edits as people make them to a document, at the level of its elements, each from a seed.

Every edit tells where it changed the document, so that what it left alone is known exactly.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tidemark.domain.documents import CELL, Element, ElementKind

Range = tuple[int, int]

_SENTENCES = (
    "The limit was raised after the last review.",
    "Ask the owner of the service before you switch it off.",
    "Older releases behave differently and are no longer maintained.",
    "This takes effect on the first day of the following month.",
    "If both values are given, the more specific one wins.",
    "Keep a copy of the receipt, since it may be asked for later.",
    "The default suits most installations of a moderate size.",
    "You can repeat the step without doing any harm.",
    "A request that arrives twice is answered once.",
    "Measurements are taken every ten minutes and averaged by the hour.",
    "People under 18 need the consent of a parent or guardian.",
    "Nothing is written until the whole batch has been checked.",
    "The form can be sent by post as well as online.",
    "See the section on errors for what happens when it fails.",
    "In 2025 the threshold was 340, and it has been 365 since.",
    "Such a value is ignored, and a warning appears in the log.",
)
_WORDS = (
    "usually", "partly", "service", "record", "carefully", "weekly", "given", "plain", "region",
    "before", "method", "further", "local", "early", "version", "separate", "normal", "written",
    "amount", "current", "reader", "direct", "signal",
)  # fmt: skip
_HEADINGS = ("Before you begin", "What has changed", "Known limits", "How to get help")
_TEXTUAL = frozenset(
    {ElementKind.TEXT, ElementKind.LIST_ITEM, ElementKind.DEFINITION, ElementKind.QUOTE}
)
_SENTENCE = re.compile(r"[^.!?]+(?:[.!?]+|$)")
_NUMBER = re.compile(r"\d+")
_LONG = 300


@dataclass(frozen=True, slots=True)
class Edit:
    """The elements after an edit, and what it touched in elements before and after.

    before, after: half-open ranges of elements that were replaced by each other.
    seams: places where elements that were neighbours no longer are (before), or newly are (after).
    """

    kind: str
    elements: tuple[Element, ...]
    before: Range = (0, 0)
    after: Range = (0, 0)
    seams_before: tuple[int, ...] = ()
    seams_after: tuple[int, ...] = ()


Elements = tuple[Element, ...]
Maker = Callable[[Elements, random.Random], Elements | None]


def edits_of(elements: Elements, seed: str) -> list[Edit]:
    """One edit of each kind that the document allows; the same for the same seed."""
    made: list[Edit] = []
    for kind, make in MAKERS.items():
        changed = make(elements, random.Random(f"{seed}:{kind}"))
        if changed is not None and changed != elements:
            made.append(_located(kind, elements, changed))
    moved = _move_section(elements, random.Random(f"{seed}:move"))
    if moved is not None:
        made.append(moved)
    return made


def _located(kind: str, old: Elements, new: Elements) -> Edit:
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return Edit(kind, new, (start, len(old) - end), (start, len(new) - end))


def sections_of(elements: Sequence[Element]) -> list[Range]:
    """The ranges of elements under each heading, without it; text before any heading is one too."""
    heads = [i for i, e in enumerate(elements) if e.kind is ElementKind.TITLE]
    starts = [0, *(i + 1 for i in heads)]
    ends = [*heads, len(elements)]
    return [(s, e) for s, e in zip(starts, ends, strict=True) if s < e]


def _paragraph(rng: random.Random) -> Element:
    return Element(ElementKind.TEXT, " ".join(rng.sample(_SENTENCES, rng.randint(1, 5))))


def _pick(elements: Elements, rng: random.Random, usable: Callable[[Element], bool]) -> int | None:
    """An element, the likelier the longer it is."""
    found = [i for i, e in enumerate(elements) if usable(e)]
    if not found:
        return None
    return rng.choices(found, [len(elements[i].text) for i in found])[0]


def _with(elements: Elements, index: int, text: str) -> Elements:
    changed = replace(elements[index], text=text)
    return (*elements[:index], changed, *elements[index + 1 :])


def _reword(elements: Elements, rng: random.Random) -> Elements | None:
    index = _pick(elements, rng, lambda e: e.kind in _TEXTUAL and len(e.text.split()) >= 5)
    if index is None:
        return None
    text = elements[index].text
    sentence = rng.choice([m for m in _SENTENCE.finditer(text) if m.group().strip()])
    words = sentence.group().split(" ")
    for _ in range(max(len(words) // 6, 1)):
        place = rng.randrange(len(words))
        words[place] = rng.choice(_WORDS)
    if rng.random() < 0.5:
        words.insert(rng.randrange(len(words)), rng.choice(_WORDS))
    return _with(
        elements, index, text[: sentence.start()] + " ".join(words) + text[sentence.end() :]
    )


def _number(elements: Elements, rng: random.Random) -> Elements | None:
    index = _pick(
        elements,
        rng,
        lambda e: e.kind is not ElementKind.TITLE and _NUMBER.search(e.text) is not None,
    )
    if index is None:
        return None
    text = elements[index].text
    found = rng.choice(list(_NUMBER.finditer(text)))
    value = str(int(found.group()) + rng.randint(1, 90))
    return _with(elements, index, text[: found.start()] + value + text[found.end() :])


def _insert(where: str) -> Maker:
    def make(elements: Elements, rng: random.Random) -> Elements | None:
        sections = [s for s in sections_of(elements) if s[1] - s[0] >= 2]
        if not sections:
            return None
        start, end = rng.choices(sections, [e - s for s, e in sections])[0]
        inner = [
            i
            for i in range(start + 1, end)
            if not elements[i - 1].kind is elements[i].kind is ElementKind.LIST_ITEM
        ]
        if where == "middle" and not inner:
            return None
        place = {"start": start, "end": end}.get(where)
        place = rng.choice(inner) if place is None else place
        return (*elements[:place], _paragraph(rng), *elements[place:])

    return make


def _delete(elements: Elements, rng: random.Random) -> Elements | None:
    index = _pick(elements, rng, lambda e: e.kind is ElementKind.TEXT)
    if index is None or len(elements) < 4:
        return None
    return (*elements[:index], *elements[index + 1 :])


def _rename(elements: Elements, rng: random.Random) -> Elements | None:
    """Not the first heading, which is mostly the document's own name."""
    heads = [i for i, e in enumerate(elements) if e.kind is ElementKind.TITLE][1:]
    if not heads:
        return None
    index = rng.choice(heads)
    words = elements[index].text.split() or ["Notes"]
    words[rng.randrange(len(words))] = rng.choice(_WORDS)
    return _with(elements, index, " ".join(words))


def _list_item(elements: Elements, rng: random.Random) -> Elements | None:
    items = [i for i, e in enumerate(elements) if e.kind is ElementKind.LIST_ITEM]
    if not items:
        return None
    index = rng.choice(items)
    added = replace(elements[index], text=rng.choice(_SENTENCES), anchor=None)
    return (*elements[: index + 1], added, *elements[index + 1 :])


def _table_row(elements: Elements, rng: random.Random) -> Elements | None:
    index = _pick(
        elements, rng, lambda e: e.kind is ElementKind.TABLE and len(e.text.split("\n")) > 2
    )
    if index is None:
        return None
    rows = elements[index].text.split("\n")
    place = rng.randint(max(elements[index].header_rows, 1), len(rows))
    columns = rows[0].count(CELL) + 1
    rows.insert(place, CELL.join(rng.choice(_WORDS) for _ in range(columns)))
    return _with(elements, index, "\n".join(rows))


def _code_line(elements: Elements, rng: random.Random) -> Elements | None:
    index = _pick(elements, rng, lambda e: e.kind is ElementKind.CODE and len(e.text) > 40)
    if index is None:
        return None
    lines = elements[index].text.split("\n")
    place = rng.randrange(len(lines))
    indent = lines[place][: len(lines[place]) - len(lines[place].lstrip())]
    lines.insert(
        place, f"{indent}{rng.choice(_WORDS)} = {rng.choice(_WORDS)}({rng.randint(1, 99)})"
    )
    return _with(elements, index, "\n".join(lines))


def _section_at_top(elements: Elements, rng: random.Random) -> Elements:
    """Before the first heading under the document's own, so that its title stays what it was."""
    heads = [i for i, e in enumerate(elements) if e.kind is ElementKind.TITLE]
    leads = bool(heads) and heads[0] == 0
    place = heads[1] if leads and len(heads) > 1 else (len(elements) if leads else 0)
    level = min((elements[i].level or 1 for i in heads[1:]), default=2)
    added = [Element(ElementKind.TITLE, rng.choice(_HEADINGS), level)]
    added += [_paragraph(rng) for _ in range(rng.randint(1, 3))]
    return (*elements[:place], *added, *elements[place:])


def _append(elements: Elements, rng: random.Random) -> Elements | None:
    index = _pick(elements, rng, lambda e: e.kind is ElementKind.TEXT and len(e.text) >= _LONG)
    if index is None:
        return None
    return _with(elements, index, f"{elements[index].text} {rng.choice(_SENTENCES)}")


def _move_section(elements: Elements, rng: random.Random) -> Edit | None:
    """A section with what is under it to another place among its own siblings."""
    heads = [i for i, e in enumerate(elements) if e.kind is ElementKind.TITLE]
    blocks: list[tuple[int, Range]] = []
    for number, start in enumerate(heads):
        level = elements[start].level or 1
        deeper = (h for h in heads[number + 1 :] if (elements[h].level or 1) <= level)
        blocks.append((level, (start, next(deeper, len(elements)))))
    pairs = [
        (a, b)
        for i, (level, a) in enumerate(blocks)
        for other, b in blocks[i + 1 :]
        if other == level and not any(x < level and a[0] < r[0] < b[0] for x, r in blocks)
    ]
    if not pairs:
        return None
    (start, stop), (_, place) = rng.choice(pairs)
    moved = (*elements[:start], *elements[stop:place], *elements[start:stop], *elements[place:])
    landed = place - (stop - start)
    return Edit(
        "move a section",
        moved,
        seams_before=(start, stop, place),
        seams_after=(start, landed, place),
    )


MAKERS: dict[str, Maker] = {
    "reword a sentence": _reword,
    "change a number": _number,
    "insert a paragraph at the start": _insert("start"),
    "insert a paragraph in the middle": _insert("middle"),
    "insert a paragraph at the end": _insert("end"),
    "delete a paragraph": _delete,
    "rename a heading": _rename,
    "add a list item": _list_item,
    "add a table row": _table_row,
    "add a line of code": _code_line,
    "add a section at the top": _section_at_top,
    "append a sentence": _append,
}
