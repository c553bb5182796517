"""Which profile a document gets: by its path, by its source, or by its own content."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from urllib.parse import unquote, urlsplit

from tidemark.domain.documents import Element, ElementKind, PartitionedDocument
from tidemark.domain.profile import BUILT_IN, Profile, ProfileChoice
from tidemark.stages.chunking import language
from tidemark.stages.chunking.cohesion import is_question

# What kind of document one is, by its elements alone; "docs" unless something else is clear.

_HEAD = 400
_SHORT = 160
_CODE_SHARE = 0.9
_TABLE_SHARE = 0.8
_LEAST_QUESTIONS = 3
_QUESTION_SHARE = 0.4
_LEAST_CLAUSES = 5
_CLAUSE_SHARE = 0.3
_LEAST_LEGAL_WORDS = 5
_LEGAL_SHARE = 0.15
_PROSE_CHARS = 6000
_CHARS_PER_HEADING = 9000
_PARAGRAPH_CHARS = 350
_SPOKEN_CHARS = 80
_STRUCTURE_SHARE = 0.15


@dataclass(slots=True)
class _Counts:
    """Sums over the elements of one document; characters unless named otherwise."""

    total: int = 0
    code: int = 0
    largest_code: int = 0
    table: int = 0
    prose: int = 0
    structure: int = 0
    paragraphs: int = 0
    headings: int = 0
    short: int = 0
    answered: int = 0
    answered_headings: int = 0
    blocks: int = 0
    clauses: int = 0
    pending: Element | None = None

    def add(self, element: Element) -> None:
        size = len(element.text)
        self.total += size
        self._add_question(element, size)
        if element.kind is ElementKind.CODE:
            self.code += size
            self.largest_code = max(self.largest_code, size)
        elif element.kind is ElementKind.TABLE:
            self.table += size
        else:
            self._add_text(element, size)

    def _add_text(self, element: Element, size: int) -> None:
        head = element.text[:_HEAD]
        self.blocks += 1
        if element.kind is ElementKind.TITLE:
            self.headings += 1
        elif element.kind is ElementKind.TEXT:
            self.paragraphs += 1
            self.prose += size
        else:
            self.structure += size
        if language.NUMBERED_CLAUSE.match(head.lstrip()):
            self.clauses += 1

    def _add_question(self, element: Element, size: int) -> None:
        """Count a question when something that is no question follows it."""
        asked = self.pending is not None and element.kind is not ElementKind.TITLE
        questions = element.kind is not ElementKind.CODE and is_question(element.text[:_HEAD])
        if asked and not questions:
            self.answered += 1
            if self.pending is not None and self.pending.kind is ElementKind.TITLE:
                self.answered_headings += 1
        if questions:
            self.short += 1
            self.pending = element
        else:
            self.pending = None
            if element.kind is ElementKind.TITLE or (
                size <= _SHORT
                and element.kind is ElementKind.TEXT
                and not element.text.rstrip().endswith(".")
            ):
                self.short += 1


def detect_content(document: PartitionedDocument) -> str:
    """One of "code", "table", "faq", "contract", "prose" and "docs", by a bounded look at each element."""
    counts = _Counts()
    for element in document.elements:
        counts.add(element)
    if counts.total == 0:
        return "docs"
    if counts.largest_code >= _CODE_SHARE * counts.total:
        return "code"
    if counts.table >= _TABLE_SHARE * counts.total:
        return "table"
    if _is_faq(counts):
        return "faq"
    if _is_numbered(counts) and _is_worded_as_contract(document.elements):
        return "contract"
    return "prose" if _is_prose(counts) else "docs"


def _is_faq(counts: _Counts) -> bool:
    enough = counts.answered >= _LEAST_QUESTIONS
    return enough and counts.answered >= _QUESTION_SHARE * max(counts.short, counts.headings)


def _is_numbered(counts: _Counts) -> bool:
    """Whether numbered clauses make up much of a document."""
    return counts.clauses >= _LEAST_CLAUSES and counts.clauses >= _CLAUSE_SHARE * counts.blocks


def _is_worded_as_contract(elements: Sequence[Element]) -> bool:
    """Whether the words are those of agreements and laws, by the head of each element."""
    found = [word.casefold() for e in elements for word in language.LEGAL.findall(e.text[:_HEAD])]
    strong = sum(1 for word in found if word in language.STRONG_LEGAL)
    enough = max(_LEAST_LEGAL_WORDS, _LEGAL_SHARE * len(elements))
    return len(found) >= enough and strong >= _LEAST_LEGAL_WORDS // 2


def _is_prose(counts: _Counts) -> bool:
    """Much text under few headings with little else between: long paragraphs, or a speech in short ones."""
    if counts.prose < _PROSE_CHARS or counts.paragraphs == 0:
        return False
    plain = counts.structure + counts.code + counts.table <= _STRUCTURE_SHARE * counts.total
    headed = counts.headings * _CHARS_PER_HEADING
    mean = counts.prose / counts.paragraphs
    long = mean >= _PARAGRAPH_CHARS and headed <= max(counts.total, _CHARS_PER_HEADING)
    spoken = mean >= _SPOKEN_CHARS and headed * 4 <= counts.total >= 2 * _PROSE_CHARS
    return plain and (long or spoken)


def choose_profile(choice: ProfileChoice, uri: str, document: PartitionedDocument) -> Profile:
    """The first pattern that fits decides, then the default, then what the content looks like.

    A pattern fits the whole path of a URI, or its end after a "/"; ``*`` stands for any characters.
    """
    path = unquote(urlsplit(uri).path)
    for pattern, profile in choice.by_path:
        if fnmatchcase(path, pattern) or fnmatchcase(path, f"*/{pattern.lstrip('/')}"):
            return profile
    if choice.default is not None:
        return choice.default
    kind = detect_content(document)
    return choice.by_content.get(kind) or BUILT_IN[kind]
