"""Where sentences end, in any script, without a model.

A wrong cut costs more than a missed one, so a stop ends a sentence only when nothing speaks against it: an
abbreviation, an initial, a number, an ellipsis, a bracket or code around it, a small letter after it. Every
look around a stop is bounded, so the time is linear in the text.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter

from tidemark.stages.chunking import language

NEVER_LAST = language.words("never_last")
"""Abbreviations that are always followed by what they belong to."""
NEVER_LAST_AS_NAME = language.words("never_last_as_name")
"""As above, when they begin with a capital; as words of their own they may end a sentence."""
MAY_BE_LAST = language.words("may_be_last")
"""They end a sentence when the next word is one that begins sentences."""
MONTHS_AND_DAYS = language.words("months_and_days")
"""With a capital: also words or parts of them."""
LAST_BEFORE_CAPITAL = language.words("last_before_capital")
"""Of lists: after them a capital begins a sentence, a small letter does not."""
BEFORE_NUMBER = language.words("before_number")
"""Before a number, a letter of an enumeration or a Roman numeral."""
EXCLAIMED_NAMES = language.words("exclaimed_names")
"""Names that end with their own mark."""
STARTERS = language.words("starters")
"""With a capital in the middle of a text these begin a sentence."""
CLEAR_STARTERS = language.words("clear_starters")
"""Those that do so even where nothing is written with a capital."""
AFTER_ORDINAL = language.words("after_ordinal")
"""A number with a stop before one of these is an ordinal (3. Oktober)."""
BEFORE_ORDINAL = language.words("before_ordinal")
"""A number with a stop after one of these is an ordinal (der 3. Stock)."""
SPEECH = "说道問问答喊叫称讲云曰"


# What a text as a whole says of its sentences: where they end or cannot, whether it has capitals.

_LONGEST_ASIDE = 300
_SIGNS = re.compile(r"`[^`\n]{1,200}`|[()\[\]（）「」『』【】]|\n[^\S\n]*\n")
_PARTNER = {")": "(", "]": "[", "）": "（", "」": "「", "』": "『", "】": "【"}
_FILLED = re.compile(r"[^\S\n]*\S")
_BLANK = re.compile(r"\n[^\S\n]*\n")
_BULLET = re.compile(r"[^\S\n]*(?:[-*+–—•‣◦▪●·]|\[[ xX]\])[^\S\n]+\S")
_NUMBER = re.compile(r"[^\S\n]*\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4})[.)][^\S\n]+\S")
_QUESTION = re.compile(
    r"[^\S\n]*(?:Q|A|Question|Answer|Frage|Antwort|F|P|R)\s?\d{0,2}\s?[:：]\s", re.I
)
_SPEAKER = re.compile(r"[^\S\n]*[^\W\d_][\w.'’-]*(?: [\w.'’-]+){0,2}\s?[:：](?:\s|$)")
_LEAST_SHORT_LINES = 4
_SPACES = re.compile(r"\s+")
_SPACED = re.compile(r"[\u0e00-\u0eff\u1780-\u17ff]")  # Thai, Lao, Khmer
_AFTER_STOP = re.compile(r"[^\W\d_]{2}[.!?]\s+([^\W\d_])")
_GLANCE = 24
_REGIME_WINDOW = 20_000
_LONG_RUN = 160


@dataclass(frozen=True, slots=True)
class Protected:
    """Ranges without a boundary in them, in order and disjoint."""

    ranges: list[tuple[int, int]]

    def holds(self, start: int, end: int) -> bool:
        """Whether a mark at ``start`` stands in one that does not end by ``end``."""
        index = bisect_right(self.ranges, start, key=itemgetter(0)) - 1
        return index >= 0 and end < self.ranges[index][1]


def protected_ranges(text: str) -> Protected:
    """Where no sentence ends: in short brackets, in quotations between corners, in code."""
    ranges: list[tuple[int, int]] = []
    stack: list[tuple[str, int]] = []
    for sign in _SIGNS.finditer(text):
        mark = sign[0]
        if mark[0] == "`":
            _add(ranges, sign.start(), sign.end())
        elif mark[0] == "\n":
            stack.clear()
        elif mark not in _PARTNER:
            stack.append((mark, sign.start()))
        elif stack and stack[-1][0] == _PARTNER[mark]:
            _, start = stack.pop()
            if sign.end() - start <= _LONGEST_ASIDE:
                _add(ranges, start, sign.end())
    return Protected(ranges)


def _add(ranges: list[tuple[int, int]], start: int, end: int) -> None:
    while ranges and ranges[-1][0] >= start:
        ranges.pop()
    ranges.append((start, end))


def line_boundaries(text: str) -> list[int]:
    """Places between lines where a sentence ends whatever its last sign, in order.

    Blank lines part paragraphs. Within a paragraph a line ends a sentence when the next is an item of a
    list or a turn of a dialogue, or when the lines are entries of a list without bullets.
    """
    if "\n" not in text:
        return []
    places: list[int] = []
    position = 0
    for blank in [*_BLANK.finditer(text), None]:
        end = blank.start() if blank else len(text)
        if text.find("\n", position, end) >= 0:
            places += _within(text, position, end)
        if blank and end > 0:
            places.append(end)
        position = end + 1
    return sorted(set(places))


def _within(text: str, start: int, end: int) -> list[int]:
    begins: list[int] = []
    position = start
    while position < end:
        if _FILLED.match(text, position, end):
            begins.append(position)
        line_end = text.find("\n", position, end)
        position = end if line_end < 0 else line_end + 1
    if len(begins) < 2:
        return []
    numbered = [b for b in begins if _NUMBER.match(text, b, end)]
    speakers = [b for b in begins if _SPEAKER.match(text, b, end)]
    if _are_entries(text, begins, end):
        return begins[1:]
    several = {*(numbered if len(numbered) > 1 else ()), *(speakers if len(speakers) > 1 else ())}
    return [
        b
        for b in begins[1:]
        if b in several or _BULLET.match(text, b, end) or _QUESTION.match(text, b, end)
    ]


def _are_entries(text: str, begins: list[int], end: int) -> bool:
    """Whether lines are entries, one each: all begin with a capital or a digit, and were not wrapped."""
    if len(begins) < _LEAST_SHORT_LINES:
        return False
    for begin in begins:
        first = next((c for c in text[begin : begin + 12] if c.isalnum()), "")
        if not (first.isupper() or first.isdigit()):
            return False
    lengths = [after - before for before, after in pairwise(begins)]
    return max(lengths) - min(lengths) > max(lengths) * 0.25


def stretch(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    """Append a range to ``spans`` without the white space at its ends, if anything is left."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    if start < end:
        spans.append((start, end))


def is_lower_case(text: str) -> bool:
    """Whether a text is written without capitals, so that small letters tell nothing; by its beginning."""
    text = text[:_REGIME_WINDOW]
    first = next((char for char in text if char.isalpha()), "")
    if not first.islower():
        return False
    following = [match[1] for match in _AFTER_STOP.finditer(text)]
    small = sum(1 for char in following if char.islower())
    capitals = sum(1 for char in text if char.isupper())
    if not small:
        return False
    return capitals == 0 or (
        small >= 4 and len(following) - small <= small // 20 and capitals <= len(text) // 50
    )


def with_wordless_joined(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join what has no letter (a reference, a sign, a face) to the sentence before it on its line."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and end - start <= _GLANCE:
            before = joined[-1]
            apart = "\n" in text[before[1] : start]
            if not apart and not any(char.isalpha() for char in text[start:end]):
                joined[-1] = (before[0], end)
                continue
        joined.append((start, end))
    return joined


def with_long_runs_cut(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Cut long stretches of scripts that write no stops at their spaces, which part clauses."""
    cut: list[tuple[int, int]] = []
    for start, end in spans:
        if end - start > _LONG_RUN and _SPACED.search(text, start, min(end, start + _GLANCE)):
            position = start
            for space in _SPACES.finditer(text, start, end):
                place = space.start()
                if _leans(text, space.end()):
                    continue  # an exception is not cut from what it excepts
                if place - position >= _LONG_RUN // 2 and end - place >= _LONG_RUN // 4:
                    stretch(cut, text, position, place)
                    position = place
            stretch(cut, text, position, end)
        else:
            cut.append((start, end))
    return cut


def _leans(text: str, place: int) -> bool:
    head = text[place : place + _GLANCE]
    return bool(language.RESTRICTION.match(head) or language.TURN.match(head))


_CLOSING = "\"'”’“‘»«›)\\]}」』）】》〉］｝*_"
_STOPS = "。！？｡．‼⁇⁈⁉।॥؟۔։።፧፨។៕៚᠃᠉꘎꘏⸮။᙮᱾᱿꯫᥄᥅߹༎༏༐"
_CJK = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uac00-\ud7a3"
_LATIN = ".!?…‽"
_GREEK = "\u0370-\u03ff\u1f00-\u1fff"
# Begins with a plain set of characters, for which the search is many times faster.
_STOP = re.compile(
    rf"[{_LATIN}{_STOPS}།;](?:"
    rf"(?<=[{_LATIN}])(?P<latin>(?:(?<=\.)(?:[^\S\n]\.){{2,}}|[{_LATIN}]*))"
    rf"(?:[{_CLOSING}]|[ \u00a0\u202f]»)*(?:\[\d{{1,3}}\]|[¹²³⁰-⁹]+)*(?=\s|\Z)"
    rf"|(?<=[{_CJK}][!?])(?P<dense>[!?]*)[{_CLOSING}]*(?=[{_CJK}])"
    rf"|(?<=[{_STOPS}།])(?P<other>[{_STOPS}།]*(?:[^\S\n]*།)*)[{_CLOSING}!?！？…]*"
    rf"|(?<=[{_GREEK}];)(?P<greek>)(?=\s+[Α-ΩΆΈΉΊΌΎΏ«]))"
)
_WORD_BEFORE = re.compile(r"([^\W_]+(?:[.'’&-][^\W_]+)*°?)$")
_TOKEN_BEFORE = re.compile(r"(\S+)\s+\S+$")
_WORD_AFTER = re.compile(r"[^\W\d_]+")
_DOTTED = re.compile(r"(?:^|[-])(?:[^\W\d_]{1,2}\.)+[^\W\d_]{1,2}$")
_ROMAN = re.compile(r"[IVXLC]{1,6}\b|[A-Z]\d{0,3}\b")
_MARKER_AFTER = re.compile(r"\(?(?:[a-zA-Z]|\d{1,2}|[ivx]{1,4})\)\s|[a-z]\.\s+[A-Z]")
_NUMBER_AT_START = re.compile(r"[^\w\s]?(\d{1,3})[.)]\s")
_OPENING = "\"'“‘«‹„([{¿¡「『（【《〈*_`#—–-•‣◦"
_MARGIN = _OPENING + " \t\n§"
_ELIDED = re.compile(r"^[^\W\d_]{1,2}['’]")
_LOW_ROMAN = re.compile(r"[ivx]{1,5}")
_FACES = re.compile(r"[ \t]+[\u2600-\u27bf\U0001f300-\U0001faff\ufe0f\u200d]+(?=\s|\Z)")
_PARTICLES = (
    "と",
    "って",
    "など",
    "、",
    "，",
    "の",
    "が",
    "を",
    "は",
    "に",
    "で",
    "も",
    "라고",
    "고",
    "라는",
)
_LOOK_BACK = 40
_LOOK_AHEAD = 24
_LEAST_CLAUSE = 16
_LEAST_LAST_CLAUSE = 12


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Half-open ranges of the sentences of ``text``, in order, without the white space between them."""
    reader = _Reader(text, protected_ranges(text), is_lower_case(text))
    spans: list[tuple[int, int]] = []
    lines = iter([*line_boundaries(text), len(text)])
    line = next(lines)
    start = 0
    quotes = 0
    counted = 0
    for stop in _STOP.finditer(text):
        while line <= stop.start():
            stretch(spans, text, start, line)
            start, quotes, counted = line, 0, line
            line = next(lines)
        if stop.start() < start:
            continue
        end = stop.end()
        quotes += text.count('"', counted, end)
        counted = end
        if quotes % 2 and text.startswith(' "', end) and text[end + 2 : end + 3] in {"", " ", "\n"}:
            end += 2  # a closing quotation mark with spaces around it
        faces = _FACES.match(text, end)
        end = faces.end() if faces else end
        cut = reader.end_of_sentence(start, stop, end)
        if cut is not None and cut > start:
            stretch(spans, text, start, cut)
            start = cut
    while line < len(text):
        stretch(spans, text, start, line)
        start, line = line, next(lines)
    stretch(spans, text, start, len(text))
    return with_long_runs_cut(text, with_wordless_joined(text, spans))


def clause_spans(text: str) -> list[tuple[int, int]]:
    """Half-open ranges of the clauses of one long sentence, each with the mark that ends it."""
    protected = protected_ranges(text)
    spans: list[tuple[int, int]] = []
    start = 0
    for mark in _CLAUSE.finditer(text):
        # Marks too near to the clause's start end a word of a list, not a clause.
        if _is_short(text, start, mark.end(), _LEAST_CLAUSE) or protected.holds(
            mark.start(), mark.end()
        ):
            continue
        if (
            text[mark.start() - 1 : mark.start()].isdigit()
            and text[mark.end() :].lstrip()[:1].isdigit()
        ):
            continue
        stretch(spans, text, start, mark.end())
        start = mark.end()
    if spans and _is_short(text.rstrip(), start, len(text.rstrip()), _LEAST_LAST_CLAUSE):
        start = spans.pop()[0]
    stretch(spans, text, start, len(text))
    return spans


def _is_short(text: str, start: int, end: int, least: int) -> bool:
    """Whether a stretch is shorter than ``least`` letters; a sign that is a word counts as three."""
    if end - start > least:
        return False
    return sum(3 if char > "\u2e7f" else 1 for char in text[start:end].strip()) < least


_CLAUSE = re.compile(
    r"[;:,][\"'”’»)\]]*(?=\s)|\s[—–-]{1,3}(?=\s)|—|[；：，、،؛၊፣፤፥՝、︰]|,(?=[\u3040-\u9fff])"
    r"|(?<=[\u0e00-\u0eff\u1780-\u17ff])[ ]"
)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Looks around the stops of one text; ``lower`` when it is written without capitals."""

    text: str
    protected: Protected
    lower: bool

    def end_of_sentence(self, start: int, stop: re.Match[str], end: int) -> int | None:
        """Where the sentence that began at ``start`` ends, if it does at ``stop``; else None."""
        if self.protected.holds(stop.start(), end):
            return None
        if stop.lastgroup == "greek" or stop.lastgroup == "dense":
            return end
        if stop.lastgroup == "other":
            return None if self._other_goes_on(stop, end) else end
        marks = self.text[stop.start() : stop.end("latin")]
        after = self._first_after(end)
        if not self._may_begin(after):
            return None
        dots = marks.replace(" ", "")
        if set(dots) <= {".", "…"} and dots != ".":
            return end if dots.count(".") == 4 or after == len(self.text) else None
        if dots != ".":
            return None if self._is_exclaimed_name(start, stop, after) else end
        return self._end_at_full_stop(start, stop, end, after)

    def _other_goes_on(self, stop: re.Match[str], end: int) -> bool:
        """Whether a sentence in a script with its own stops goes on: a quotation inside it, a decimal."""
        text = self.text
        if text[stop.start() : stop.end("other")] == "．":
            digits = text[max(stop.start() - 1, 0) : stop.start()] + text[end : end + 1]
            return len(digits) == 2 and digits.isdigit()
        if not text[end - 1 : end] or text[end - 1] not in "」』”’）)】":
            return False
        following = text[end : end + 8]
        if following.startswith(_PARTICLES):
            return True
        spoken = re.split(r"[，。、！？：\s]", following, maxsplit=1)[0]
        return any(verb in spoken for verb in SPEECH)

    def _first_after(self, position: int) -> int:
        """The place of the first letter, digit or other sign of what follows."""
        text, end = self.text, min(len(self.text), position + _LOOK_AHEAD)
        while position < end and (text[position].isspace() or text[position] in _OPENING):
            if _MARKER_AFTER.match(text, position):
                break
            position += 1
        return position

    def _may_begin(self, place: int) -> bool:
        """Whether a sentence may begin at ``place``: no small letter stands there, or it means nothing."""
        char = self.text[place : place + 1]
        if char in {",", ";", ":", ")", "]", "=", "&"}:
            return False
        if not char.islower() or self.lower or _MARKER_AFTER.match(self.text, place):
            return True
        word = _WORD_AFTER.match(self.text, place, place + _LOOK_AHEAD)
        return word is not None and any(c.isupper() for c in word[0][1:3])  # iPhone

    def _is_exclaimed_name(self, start: int, stop: re.Match[str], after: int) -> bool:
        word = self._word_before(start, stop.start())
        return word.casefold() in EXCLAIMED_NAMES and not self._starter(after)

    def _word_before(self, start: int, place: int) -> str:
        # A word longer than this is no abbreviation; looking further back would make long texts slow.
        lowest = max(start, place - _LOOK_BACK)
        while place > lowest and self.text[place - 1] in " \t":
            place -= 1
        token = self.text[max(self.text.rfind(" ", lowest, place) + 1, lowest) : place]
        if token.isalpha():
            return token
        if "://" in token or "@" in token:  # an address is a word of its own
            return ""
        found = _WORD_BEFORE.search(token)
        return found[1] if found else ""

    def _starter(self, place: int) -> bool:
        """Whether a word stands at ``place`` that begins sentences, and no initial."""
        word = _WORD_AFTER.match(self.text, place, place + _LOOK_AHEAD)
        if word is None or self.text[word.end() : word.end() + 1] == ".":
            return False
        folded = word[0].casefold()
        if word[0][0].islower():
            return self.lower and folded in CLEAR_STARTERS
        return folded in STARTERS and (word[0][1:].islower() or len(word[0]) == 1)

    def _end_at_full_stop(
        self, start: int, stop: re.Match[str], end: int, after: int
    ) -> int | None:
        place = stop.start()
        word = self._word_before(start, place)
        if not word or (end - place > 1 and word[-1:].isdigit()):
            marker = word and not self.text[start : place - len(word)].strip(_MARGIN)
            return None if marker and self.text[end - 1] == ")" else end  # 1.)
        if after == len(self.text):
            return end
        if word.replace(".", "").isdigit():
            return self._end_at_number(start, place, end, after, word)
        return None if self._is_abbreviation(start, place, after, word) else end

    def _end_at_number(self, start: int, place: int, end: int, after: int, word: str) -> int | None:
        text = self.text
        while text[place - 1].isspace():
            place -= 1
        begin = place - len(word)
        if not text[start:begin].strip(_MARGIN):
            # The number of a clause or of a list item, not the end of one.
            return end if len(word) > 3 and "." not in word else None
        first = _NUMBER_AT_START.match(text[start:begin].lstrip()[:8])
        if first and word.isdigit() and int(word) == int(first[1]) + 1:
            return begin
        if len(word) > 2 or "." in word:
            return end
        before = _TOKEN_BEFORE.search(text, max(start, place - _LOOK_BACK), place)
        ahead = _WORD_AFTER.match(text, after, after + _LOOK_AHEAD)
        following = ahead[0].casefold() if ahead else ""
        if following in AFTER_ORDINAL:
            return None
        if before and before[1].casefold() in BEFORE_ORDINAL and not self._starter(after):
            return None
        small = text[after].islower() and not self._starter(after)
        return None if small else end

    def _is_abbreviation(self, start: int, place: int, after: int, word: str) -> bool:
        folded = _ELIDED.sub("", word.casefold())  # l'art
        following = self.text[after]
        if folded.endswith("str") and len(folded) > 5:  # Hauptstr. 5
            return not self._starter(after)
        if _LOW_ROMAN.fullmatch(word) and not self.text[start : place - len(word)].strip(_MARGIN):
            return True
        capital = word[0].isupper() or self.lower
        if len(word) == 1 or _DOTTED.search(word):
            return self._letters_go_on(start, place, after, word)
        if folded in LAST_BEFORE_CAPITAL:
            return not following.isupper() and not (self.lower and self._starter(after))
        if folded in BEFORE_NUMBER and (
            following.isdigit() or (_ROMAN.match(self.text, after) and not self._starter(after))
        ):
            return True
        if folded in NEVER_LAST or (word[0].isupper() and folded in NEVER_LAST_AS_NAME):
            return folded not in MAY_BE_LAST or not self._starter(after)
        if folded in MAY_BE_LAST or (capital and folded in MONTHS_AND_DAYS):
            return not self._starter(after)
        # Where nothing has capitals, a short word without a vowel is rather an abbreviation.
        return self.lower and following.islower() and len(word) < 3 and not self._starter(after)

    def _letters_go_on(self, start: int, place: int, after: int, word: str) -> bool:
        """Whether single letters with stops (initials, "U.S.", "p.m.", "e.g.") belong to what follows."""
        if word.replace(".", "").casefold() in NEVER_LAST or not self._starter(after):
            return True
        if len(word) > 1:
            return False
        # "J. The" is no name; "plan B. The" ends a sentence, "J. A. Smith" is one.
        before = _TOKEN_BEFORE.search(self.text, max(start, place - _LOOK_BACK), place)
        return before is None or not before[1][-1:].isalnum() or not before[1][:1].islower()
