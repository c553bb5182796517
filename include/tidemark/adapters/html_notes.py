"""Notes at the foot of a page: each a block of its own that begins with its mark, "[1] See the archive."."""

import re

from lxml import etree

from tidemark.adapters.html_furniture import text_of
from tidemark.adapters.html_pruner import drop

_ROLES = frozenset({"doc-footnote", "doc-endnote", "doc-biblioentry"})
_NOTE_CLASSES = frozenset({"footnote", "citation", "footnote-item"})
_NOTE_ID = re.compile(r"(?:fn|footnote|endnote)[:_.-]?\w", re.IGNORECASE)
_MARK = re.compile(r"\w{1,12}|[*†‡§¶]{1,3}")


def superscript_mark(element: etree._Element) -> None:
    """The mark of a note in running text, in brackets: "them.[1]"."""
    text = text_of(element).strip("[]()")
    if next(element.iter("a"), None) is not None and re.fullmatch(r"\w{1,4}|[*†‡]", text):
        for child in list(element):
            element.remove(child)
        element.text = f"[{text}]"


def join_note_marks(root: etree._Element) -> None:
    """Put the mark of each note before its text, in whichever way the page parts the two."""
    for note in list(root.iter("aside", "div", "dl", "table", "li")):
        classes = set((note.get("class") or "").split())
        listed = note.tag == "li" and _NOTE_ID.match(note.get("id") or "")
        if note is not root and (classes & _NOTE_CLASSES or note.get("role") in _ROLES or listed):
            _SHAPES.get(str(note.tag), _labelled)(note)


def _labelled(note: etree._Element) -> None:
    """A note that begins with its label, as docutils writes it."""
    if len(note) and "label" in (note[0].get("class") or "").split():
        _join(note[0], note)


def _entries(notes: etree._Element) -> None:
    """Notes as terms with definitions, as Sphinx wrote them."""
    for term in list(notes.iterchildren("dt")):
        text = term.getnext()
        if text is not None and text.tag == "dd" and _join(term, text):
            text.tag = "div"
    if not notes.findall("dt"):
        notes.tag = "div"


def _rows(notes: etree._Element) -> None:
    """Notes as a table of two columns, as docutils wrote them once."""
    for row in list(notes.iter("tr")):
        cells = [cell for cell in row if cell.tag in {"td", "th"}]
        if len(cells) == 2 and _join(cells[0], cells[1]):
            cells[1].tag = "div"
    if next(notes.iter("td", "th"), None) is None:
        for part in list(notes.iter("table", "tbody", "tr", "colgroup")):
            part.tag = "div"


def _unlisted(item: etree._Element) -> None:
    """A note written as an item of a list, which numbers nothing but the notes."""
    found = re.search(r"(\d+|[*†‡])$", item.get("id") or "")
    notes = item.getparent()
    if notes is None or notes.tag not in {"ol", "ul", "div"}:
        return
    mark = found[1] if found else str(notes.index(item) + 1)
    item.tag = "div"
    _lead(item, f"[{mark}] ")
    if all(child.tag == "div" for child in notes):
        notes.tag = "div"


def _join(label: etree._Element, text: etree._Element) -> bool:
    """Put a label before a text, unless it says more than a mark does."""
    mark = text_of(label).strip("[]() ")
    if not _MARK.fullmatch(mark):
        return False
    drop(label)
    _lead(text, f"[{mark}] ")
    return True


def _lead(block: etree._Element, mark: str) -> None:
    """Write ``mark`` where the first text of a block begins."""
    first = block
    while not (first.text or "").strip() and len(first) and first[0].tag in {"p", "div"}:
        first = first[0]
    first.text = mark + (first.text or "").lstrip()


_SHAPES = {"li": _unlisted, "dl": _entries, "table": _rows}
