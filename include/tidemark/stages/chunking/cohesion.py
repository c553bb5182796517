"""What belongs together: the cost of a boundary between two neighbours, in the unit of ``packing``.

Everything here looks at two neighbours alone and at a bounded part of them, so that an edit changes the
costs next to it and no others.
"""

import re
from collections.abc import Sequence

from tidemark.domain.documents import Element, ElementKind
from tidemark.stages.chunking import language
from tidemark.stages.chunking.packing import INSEPARABLE

_PROSE = frozenset(
    {ElementKind.TEXT, ElementKind.DEFINITION, ElementKind.QUOTE, ElementKind.LIST_ITEM, ElementKind.TERM,
     ElementKind.CAPTION, ElementKind.TITLE}
)  # fmt: skip
_BLOCKS = frozenset({ElementKind.CODE, ElementKind.TABLE, ElementKind.FORMULA, ElementKind.QUOTE})
_PICTURED = frozenset({ElementKind.CODE, ElementKind.TABLE, ElementKind.FORMULA})
_COLONS = (":", "：", "﹕", "︰")
_STOPS = (".", "!", "?", ";", "…", "。", "！", "？", "।", "؟", "۔", *_COLONS)
_QUESTION_MARKS = ("?", "？", "؟", "⁇", "՞", "፧", ";")
_QUOTES = "\"'”’»)*_ "
_AFTER_LAST_STOP = re.compile(rf"[^\w{re.escape(''.join(_STOPS))}]+$")
_INTRODUCTION_CHARS = 240
_LABEL_CHARS = 80
_QUESTION_CHARS = 240
_LEAD_CHARS = 160
_EXEMPT_CHARS = 72
_DENIAL_CHARS = 100

TURN_COST = 2.0
ANAPHOR_COST = 1.0
ANSWER_COST = 1.5
RUN_ON_COST = 1.0
NESTED_ITEM_COST = 0.2
ITEM_COST = 0.05
BLOCK_COST = 0.25


def coherent(before: Element, after: Element, following: Element | None = None) -> bool:
    """Whether a reader would not part two neighbouring elements while both fit.

    following: what comes after the second, which tells whose a caption is.
    """
    if before.kind is ElementKind.CAPTION:
        return after.kind in _PICTURED or not _is_closing_caption(before.text) or _restricts(after)
    if after.kind is ElementKind.CAPTION and _is_closing_caption(after.text):
        return following is None or following.kind not in _PICTURED or _captions(before, after)
    if before.kind is ElementKind.TERM or _captions(before, after) or _restricts(after):
        return True
    if before.kind is ElementKind.DEFINITION and after.kind is ElementKind.DEFINITION:
        return True
    if is_question(before.text):
        return before.kind in _PROSE and not is_question(after.text)
    if after.kind is ElementKind.LIST_ITEM:
        return (
            before.kind is ElementKind.LIST_ITEM or _introduces(before) or _is_answer(before, after)
        )
    if before.kind not in _PROSE:
        return False
    if before.kind is ElementKind.TEXT and _is_label(before.text):
        return True
    if after.kind in _BLOCKS:
        return _ends_open(before.text)
    return _is_answer(before, after)


def cohesion_cost(before: Element, after: Element, following: Element | None = None) -> float:
    """The cost of a boundary between two neighbouring elements; ``following`` as in ``bonded``.

    0.0 for none, ``INSEPARABLE`` for what is never parted while both fit, about 1.0 for a paragraph that
    leans on the one before it. Within a list it grows with the depth of the second item.
    """
    if before.kind is ElementKind.LIST_ITEM and after.kind is ElementKind.LIST_ITEM:
        if _restricts(after) or (is_question(before.text) and not is_question(after.text)):
            return INSEPARABLE
        deeper = max((after.level or 1) - (before.level or 1), 0)
        return ITEM_COST + NESTED_ITEM_COST * ((after.level or 1) - 1) + 1.5 * deeper
    if before.kind is ElementKind.TITLE or coherent(before, after, following):
        return INSEPARABLE
    cost = BLOCK_COST if after.kind in {ElementKind.DEFINITION, *_BLOCKS} else 0.0
    if after.kind in _PROSE:
        cost = max(cost, leaning(after.text))
        if _runs_on(before, after):
            cost = max(cost, RUN_ON_COST)
    return cost


def sentence_cohesion(before: str, after: str) -> float:
    """The cost of a boundary between two neighbouring sentences of one paragraph, above that of any."""
    if _ends_open(before) or language.CLAUSE_NUMBER.fullmatch(before.strip()[:_LABEL_CHARS]):
        return INSEPARABLE
    if _asks(before) and not _asks(after):
        return ANSWER_COST
    return leaning(after)


def leaning(text: str) -> float:
    """How much a text leans on the one before it: an exception wholly, a turn, a pronoun; else 0.0."""
    head = text[:_LEAD_CHARS]
    if language.RESTRICTION.match(head):
        return INSEPARABLE
    if language.TURN.match(head) or language.EXEMPT.search(head, 0, _EXEMPT_CHARS):
        return TURN_COST
    if (
        len(text) <= _DENIAL_CHARS
        and text.rstrip(" .\n").endswith(("not", "n't", "n’t"))
        and language.DENIAL.fullmatch(text)
    ):
        return TURN_COST
    return ANAPHOR_COST if language.ANAPHOR.match(head) else 0.0


def is_question(text: str) -> bool:
    """Whether a text is one question: short with its mark at the end, or labelled as one."""
    if language.QUESTION_LABEL.match(text[:_LABEL_CHARS]):
        return True
    return len(text) <= _QUESTION_CHARS and _asks(text)


def _asks(text: str) -> bool:
    return text.rstrip(_QUOTES)[-1:] in _QUESTION_MARKS[:-1] or _asks_in_greek(text)


def _asks_in_greek(text: str) -> bool:
    stripped = text.rstrip(_QUOTES)
    return stripped.endswith(_QUESTION_MARKS[-1]) and "\u0370" <= stripped[-2:-1] <= "\u1fff"


def _is_answer(before: Element, after: Element) -> bool:
    """Whether a labelled answer follows what need not look like a question."""
    label = language.ANSWER_LABEL.match(after.text[:_LABEL_CHARS])
    return bool(label) and bool(language.QUESTION_LABEL.match(before.text[:_LABEL_CHARS]))


def _captions(before: Element, after: Element) -> bool:
    """Whether a numbered caption stands above or below what it names."""
    if before.kind in _PICTURED and after.kind in {ElementKind.CAPTION, ElementKind.TEXT}:
        return _is_caption(after.text)
    return after.kind in _PICTURED and before.kind is ElementKind.TEXT and _is_caption(before.text)


def _is_caption(text: str) -> bool:
    head = text[:_LABEL_CHARS]
    return len(text) <= 2 * _INTRODUCTION_CHARS and bool(
        language.CAPTION_NUMBER.match(head) or language.UNNUMBERED_CAPTION.match(head)
    )


def _is_closing_caption(text: str) -> bool:
    """Whether a caption tells of what is above it (a picture, mostly), and does not head what follows."""
    stripped = text.strip()
    if language.NOTE_LABEL.fullmatch(stripped) or _ends_open(stripped):
        return False
    return (
        _is_caption(text)
        or len(stripped) > _LABEL_CHARS
        or stripped.endswith((".", "。", "।", "۔"))
    )


def caption_of(elements: Sequence[Element], table: int) -> int | None:
    """The index of the caption of the table at an index: the one above it, else the one below it."""
    if elements[table].kind is not ElementKind.TABLE:
        return None
    before = elements[table - 1] if table else None
    if before is not None and (
        before.kind is ElementKind.CAPTION
        or (before.kind is ElementKind.TEXT and _is_caption(before.text))
    ):
        return table - 1
    after = elements[table + 1] if table + 1 < len(elements) else None
    if after is None:
        return None
    following = elements[table + 2] if table + 2 < len(elements) else None
    if following is not None and following.kind in _PICTURED:
        return None  # it is rather the caption of the next
    closing = after.kind is ElementKind.CAPTION and _is_closing_caption(after.text)
    return table + 1 if closing or _captions(elements[table], after) else None


def _introduces(element: Element) -> bool:
    """Whether an element leads to the list after it: it ends so, or it is short."""
    if element.kind not in _PROSE:
        return False
    return _ends_open(element.text) or len(element.text.rstrip()) <= _INTRODUCTION_CHARS


def _ends_open(text: str) -> bool:
    return text.rstrip("*_ \n\t").endswith(_COLONS)


def _is_label(text: str) -> bool:
    """A short line that heads what follows: without a stop, "Note:", the number of a clause alone."""
    if len(text) > 2 * _LABEL_CHARS:
        return False
    stripped = text.strip()
    if len(stripped) > _LABEL_CHARS:
        return False
    # A quotation mark or a face after the stop takes nothing from it.
    if not _AFTER_LAST_STOP.sub("", stripped).endswith(_STOPS) or _ends_open(stripped):
        return True
    return bool(
        language.NOTE_LABEL.fullmatch(stripped) or language.CLAUSE_NUMBER.fullmatch(stripped)
    )


def _restricts(after: Element) -> bool:
    return after.kind in _PROSE and bool(language.RESTRICTION.match(after.text[:_LEAD_CHARS]))


def _runs_on(before: Element, after: Element) -> bool:
    """Whether one sentence goes on from the first to the second (a page break, a formula between)."""
    if before.kind is not ElementKind.TEXT or after.kind is not ElementKind.TEXT:
        return False
    last = before.text.rstrip()[-1:]
    return after.text.lstrip()[:1].islower() and (last.isalpha() or last in {",", ";", "-", "–"})
