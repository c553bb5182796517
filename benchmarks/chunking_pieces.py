"""Pieces of a document, where each stands in it, and whether an edit touched it."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from chunking_corpus import Page, letters_of
from chunking_edits import Edit, Elements, Range
from chunking_peers import Peer

from tidemark.domain.documents import ElementKind, PartitionedDocument
from tidemark.domain.profile import Profile
from tidemark.ports.embedding import Tokenizer
from tidemark.stages.chunking.chunk import chunk_document

DOCUMENT = UUID(int=1)


@dataclass(frozen=True, slots=True)
class Piece:
    """A text to embed and the ranges of the page's letters that decide it."""

    text: str
    ranges: tuple[Range, ...]

    @property
    def size(self) -> int:
        return self.ranges[0][1] - self.ranges[0][0]


Cut = Callable[[PartitionedDocument, Page], list[Piece]]


def tidemark_cut(tokenizer: Tokenizer, profile: Profile) -> Cut:
    def cut(document: PartitionedDocument, page: Page) -> list[Piece]:
        chunks = chunk_document(DOCUMENT, document, profile, tokenizer).chunks
        places = _places([chunk.text for chunk in chunks], page.letters, overlaps=False)
        heads = _heads(document.elements)
        starts = [start for start, _ in page.ranges]
        pieces: list[Piece] = []
        for chunk, place in zip(chunks, places, strict=True):
            own = max(bisect_left(starts, place[0] + 1) - 1, 0)
            above = tuple(page.ranges[i] for i in heads[own])
            pieces.append(Piece(chunk.embed_text, (place, *above)))
        return pieces

    return cut


def peer_cut(peer: Peer) -> Cut:
    def cut(_document: PartitionedDocument, page: Page) -> list[Piece]:
        texts = peer.split(page.text)
        places = _places(texts, page.letters, overlaps=peer.overlaps)
        return [Piece(text, (place,)) for text, place in zip(texts, places, strict=True)]

    return cut


def _heads(elements: Elements) -> list[tuple[int, ...]]:
    """The headings above each element."""
    stack: list[tuple[int, int]] = []
    found: list[tuple[int, ...]] = []
    for index, element in enumerate(elements):
        if element.kind is ElementKind.TITLE:
            level = element.level or 1
            while stack and stack[-1][0] >= level:
                stack.pop()
            stack.append((level, index))
        found.append(tuple(i for _, i in stack))
    return found


def _places(texts: Sequence[str], letters: str, *, overlaps: bool) -> Iterator[Range]:
    """Where each text stands; its first lines may be a header that is repeated from further up."""
    start = end = 0
    for text in texts:
        lines = text.split("\n")
        least = start + 1 if overlaps and end else end
        found, own = -1, ""
        while lines and found < 0:
            own = letters_of("".join(lines))
            found = letters.find(own, least)
            lines.pop(0)
        if found >= 0 and own:
            start, end = found, found + len(own)
            yield start, end
        else:
            yield end, end


def touched(piece: Piece, changes: Sequence[Range]) -> bool:
    """An empty change is a seam: it touches what reaches over it."""
    for start, end in piece.ranges:
        for first, last in changes:
            if first < last and start < last and first < end:
                return True
            if first == last and start < first < end:
                return True
    return False


def with_wake(old: Sequence[Piece], before: Sequence[Range], after: Sequence[Range]) -> list[Range]:
    """The changes after an edit and the letters beside them that shared an old piece with what went.

    What is left of a piece from which something was taken, or into which something was put, cannot be the
    same as before, however it is cut.
    """
    owns = [piece.ranges[0] for piece in old]

    def parted(place: int) -> bool:
        return any(start < place < end for start, end in owns)

    if len(before) == 1:
        (first, last), (start, end) = before[0], after[0]
        return [(start - parted(first), end + parted(last))]
    wide = any(parted(first) for first, _ in before)
    return [(start - wide, end + wide) for start, end in after]


def changes_of(edit: Edit, old: Page, new: Page) -> tuple[list[Range], list[Range]]:
    """The changed letters before and after; of one element that was altered, only what differs in it."""
    before = [(_at(old, place), _at(old, place)) for place in edit.seams_before]
    after = [(_at(new, place), _at(new, place)) for place in edit.seams_after]
    if edit.seams_before:
        return before, after
    one, other = _span(old, edit.before), _span(new, edit.after)
    if edit.before[1] - edit.before[0] == edit.after[1] - edit.after[0] == 1:
        a, b = old.letters[slice(*one)], new.letters[slice(*other)]
        head = _common(a, b)
        tail = _common(a[head:][::-1], b[head:][::-1])
        one = (one[0] + head, one[1] - tail)
        other = (other[0] + head, other[1] - tail)
    return [one], [other]


def _common(a: str, b: str) -> int:
    return next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )


def _at(page: Page, element: int) -> int:
    return page.ranges[element][0] if element < len(page.ranges) else len(page.letters)


def _span(page: Page, elements: Range) -> Range:
    return _at(page, elements[0]), _at(page, elements[1])
