"""Where sentences end, in any script, without a model.

A wrong cut costs more than a missed one, so a stop ends a sentence only when nothing speaks against it: an
abbreviation, an initial, a number, an ellipsis or a small letter after it.
"""

import re

_WORDS = (
    "adj adm adv al apr approx apt art assn assoc asst atty aug ave bldg blvd bros ca capt cf "
    "ch chap cmd co col comdr corp cpl ct dec dept dist div dr ed eds eg eng eq eqs esp est "
    "etc ex excl ext fed feb ff fig figs fr fri ft gen gov hon hr hrs ibid ie inc incl insp "
    "int jan jr jul jun lat lib lt ltd maj mar messrs misc mlle mme mon mr mrs ms msgr mt mtn "
    "nb nos nov nr oct op orig para pers pg ph pl pp pres prof pt pub ref rep rev sat sec sen "
    "sep sept sgt sr st stat subst supt tel thu thur thurs transl tue tues univ viz vol vols "
    "vs wed abs abt bzw bspw bsp d dgl geb ggf inkl std str u usw vgl z zzgl zb av env ndlr p "
    "sra srta ud uds dott ing sig cit "
)
_ABBREVIATIONS = frozenset(_WORDS.split())
# "No." and "Sun." end sentences as words and do not before a number.
_BEFORE_NUMBER = frozenset(
    {"no", "sun", "art", "fig", "nr", "para", "eq", "vol", "ch", "sec", "pp", "p", "v"}
)

_CLOSING = "\"'”’»›)\\]」』）】》〉"
_STOP = re.compile(
    rf"(?P<latin>[.!?]+)[{_CLOSING}]*(?=\s)"
    rf"|(?P<other>[。！？｡．‼⁇⁈⁉]+|[।॥؟۔։።፧፨။៖។᠃᠉꘎꘏⸮])[{_CLOSING}]*"
    r"|(?P<blank>\n[^\S\n]*\n)"
)
_WORD_BEFORE = re.compile(r"([^\W_]+(?:[.'’-][^\W_]+)*)$")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]$")
_OPENING = "\"'“‘«‹([¿¡「『（【《〈*_`#—–-"


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Half-open ranges of the sentences of ``text``, in order, without the white space between them."""
    spans: list[tuple[int, int]] = []
    start = 0
    for stop in _STOP.finditer(text):
        if stop.lastgroup == "latin" and not _ends_here(text, start, stop):
            continue
        _append(spans, text, start, stop.end())
        start = stop.end()
    _append(spans, text, start, len(text))
    return spans


def _append(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        spans.append((start, end))


def _ends_here(text: str, start: int, stop: re.Match[str]) -> bool:
    """Whether a Latin stop ends a sentence that began at ``start``."""
    marks = stop.group("latin")
    following = _next_letter(text, stop.end())
    if following.islower() or (len(marks) > 1 and set(marks) == {"."}):
        return False
    if marks != ".":
        return True
    # A word longer than this is no abbreviation; looking further back would make long texts slow.
    found = _WORD_BEFORE.search(text, max(start, stop.start() - 40), stop.start())
    if found is None:
        return True
    return not _is_abbreviation(found.group(1), following, at_start=found.start() <= start + 1)


def _is_abbreviation(word: str, following: str, *, at_start: bool) -> bool:
    if word.isdigit():  # the number of a clause or of a list item, not the end of one
        return at_start and len(word) <= 3
    if len(word) == 1 and word.isalpha() and word.isupper():
        return True
    if _DOTTED.search(word):
        return True
    folded = word.casefold()
    if folded == "etc":
        return not following.isupper()
    if folded in _BEFORE_NUMBER and following.isdigit():
        return True
    # "may", "sun" and "no" are words first.
    return folded in _ABBREVIATIONS


def _next_letter(text: str, position: int) -> str:
    end = min(len(text), position + 20)
    while position < end and (text[position].isspace() or text[position] in _OPENING):
        position += 1
    return text[position] if position < end else ""
