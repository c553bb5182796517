"""The words and phrases of ``language.toml``: what leans on what, and where sentences end.

Patterns are matched at the start of a text, but for EXEMPT.
"""

import re
import tomllib
from pathlib import Path

_DATA = tomllib.loads(Path(__file__).with_name("language.toml").read_text(encoding="utf-8"))
_LEADING = r"[\s\"'“‘«„(\[*_•–-]*"
_ENUMERATED = r"(?:\(?(?:[a-z]|[ivx]{1,4}|\d{1,2})[.)]\s+|\d{1,2}(?:\.\d{1,2}){1,3}\.?\s+)?"


def words(name: str) -> frozenset[str]:
    """A set of words, all in lower case."""
    return frozenset(_DATA["words"][name].split())


def _pattern(name: str, flags: re.RegexFlag = re.IGNORECASE) -> re.Pattern[str]:
    return re.compile(_DATA["patterns"][name].replace("\n", ""), flags)


def _starting(name: str, number: str = "") -> re.Pattern[str]:
    return re.compile(rf"{_LEADING}{number}(?:{_pattern(name).pattern})", re.IGNORECASE)


RESTRICTION = _starting("restriction", _ENUMERATED)
"""Restricts or excepts what was just said: apart from it, it misleads."""
TURN = _starting("turn")
ANAPHOR = _starting("anaphor")
EXEMPT = _pattern("exempt", re.NOFLAG)
"""Searched for near the start: what is exempt leans on the rule before it."""
DENIAL = _pattern("denial")
"""A whole sentence that leaves out what is denied ("The ground floor is not.")."""
NOTE_LABEL = _pattern("note_label")
CLAUSE_NUMBER = _pattern("clause_number")
CAPTION_NUMBER = _pattern("caption_number")
UNNUMBERED_CAPTION = _pattern("unnumbered_caption")
CLAUSE_BEGIN = _pattern("clause_begin")
"""How a numbered clause begins; ``main`` is there when it is no lettered item of one."""
QUESTION_LABEL = _pattern("question_label")
ANSWER_LABEL = _pattern("answer_label")
NUMBERED_CLAUSE = _pattern("numbered_clause")
"""As CLAUSE_BEGIN, but strict enough to tell a contract by how often it is seen."""
LEGAL = _pattern("legal")
STRONG_LEGAL = frozenset(_DATA["words"]["strong_legal"])
"""Of the words that LEGAL finds, those that tell most."""
