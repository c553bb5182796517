"""Nested data (of JSON, of XML records) as a person would write it down: names, values, tables, sections."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from tidemark.adapters.partition.formats import nested_too_deeply
from tidemark.domain.documents import CELL, Element, ElementKind

Data: TypeAlias = "str | list[Data] | dict[str, Data] | None"
"""Scalars are texts, just as the file writes them."""

_SHORT = 300
_CELL = 200
_COLUMNS = 24
_DEEPEST_HEADING = 6
_MAX_DEPTH = 100
_NAMES = ("title", "name", "label", "heading", "question", "subject", "term", "headline")
_KEYS = ("id", "key", "slug", "code", "url", "loc", "link")
_BODIES = frozenset({"description", "content", "encoded", "body", "summary", "text", "html"})
"""Keys whose long text is what a record is about: a reader needs no label for it."""
_MARKUP = re.compile(
    r"<(?:p|div|br|ul|ol|table|h[1-6]|pre|blockquote|strong|em|a|span)\b[^<>]*>", re.IGNORECASE
)


def data_elements(data: Data, name: str, max_depth: int = 150) -> Iterator[Element]:
    """The elements of a value; ``name`` names the document in errors.

    Flat records are one table, others a section each under the name they have; what is nested in an object is
    a section under its key. Raises ``DocumentError`` for what is nested deeper than 100.
    """
    yield from _Writer(name, max_depth).value(data, "", 1, 0)


def title_of(data: Data) -> str:
    """What an object calls itself, "" when it does not or is none."""
    return _named(data, _NAMES) if isinstance(data, dict) else ""


class _Writer:
    def __init__(self, name: str, max_depth: int) -> None:
        self._name = name
        self._max_depth = max_depth

    def value(self, data: Data, key: str, level: int, depth: int) -> Iterator[Element]:
        if depth > _MAX_DEPTH:
            raise nested_too_deeply(self._name, f" (over {_MAX_DEPTH})")
        if isinstance(data, dict):
            yield from self._object(data, level, depth)
        elif isinstance(data, list):
            yield from self._list(data, key, level, depth)
        elif data:
            yield from self._text("", data, level)

    def _object(self, data: Mapping[str, Data], level: int, depth: int) -> Iterator[Element]:
        lines: list[str] = []
        later: list[tuple[str, Data]] = []
        for key, value in data.items():
            line = _line(value)
            if line is None:
                later.append((key, value))
            elif line:
                lines.append(f"{key}: {line}" if key else line)
        if lines:
            yield Element(ElementKind.TEXT, "\n".join(lines))
        # Texts before sections, so that none ends up under the heading of another key.
        for key, value in sorted(later, key=lambda pair: not isinstance(pair[1], str)):
            if isinstance(value, str):
                yield from self._text(key, value, level)
            elif _has_text(value):
                if key:
                    yield _heading(key, level)
                yield from self.value(value, key, level + 1, depth + 1)

    def _list(self, data: Sequence[Data], key: str, level: int, depth: int) -> Iterator[Element]:
        rows = _table(data)
        if rows is not None:
            header = int(isinstance(data[0], dict))
            text = "\n".join(CELL.join(row).rstrip(CELL) for row in rows)
            yield Element(ElementKind.TABLE, text, header_rows=header)
            return
        for number, item in enumerate(data, start=1):
            if isinstance(item, dict):
                name = _named(item, _NAMES)
                rest = {k: v for k, v in item.items() if k.lower() not in _NAMES or v != name}
                name = name or _named(item, _KEYS) or f"{key or 'Record'} {number}"
                yield _heading(name, level)
                yield from self.value(rest, key, level + 1, depth + 1)
            elif isinstance(item, list):
                line = _line(item)
                if line is None:
                    yield from self.value(item, key, level, depth + 1)
                elif line:
                    yield Element(ElementKind.LIST_ITEM, line, 1)
            elif item:
                yield Element(ElementKind.LIST_ITEM, item, 1)

    def _text(self, key: str, text: str, level: int) -> Iterator[Element]:
        """A long text, which may well be HTML."""
        if key.lower() in _BODIES:
            key = ""
        if _MARKUP.search(text):
            yield from self._html(key, text, level)
            return
        paragraphs = [p.strip() for p in re.split(r"\n\s*\n", text) if p.strip()]
        for index, paragraph in enumerate(paragraphs):
            line = f"{key}: {paragraph}" if key and index == 0 else paragraph
            yield Element(ElementKind.TEXT, line)

    def _html(self, key: str, text: str, level: int) -> Iterator[Element]:
        from tidemark.adapters.partition.html.cleaner import parse_content
        from tidemark.adapters.partition.html.reader import elements_of

        if key:
            yield Element(ElementKind.TERM, key)
        page = f"<html><body>{text}</body></html>"
        for element in elements_of(parse_content(page, self._name, self._max_depth)):
            if element.kind is ElementKind.TITLE:
                deeper = min(level + (element.level or 1) - 1, _DEEPEST_HEADING)
                yield Element(ElementKind.TITLE, element.text, deeper, anchor=element.anchor)
            else:
                yield element


def _heading(text: str, level: int) -> Element:
    return Element(ElementKind.TITLE, " ".join(text.split()), min(level, _DEEPEST_HEADING))


def _line(value: Data) -> str | None:
    """A value that fits on a line, "" for none, None for one that does not fit."""
    if value is None:
        return ""
    if isinstance(value, str):
        fits = len(value) <= _SHORT and "\n" not in value.strip() and not _MARKUP.search(value)
        return " ".join(value.split()) if fits else None
    if isinstance(value, list) and all(isinstance(item, str | None) for item in value):
        texts = [item for item in value if isinstance(item, str) and item]
        line = ", ".join(texts)
        return line if len(line) <= _SHORT and "\n" not in line else None
    return "" if not value else None


def _named(data: Mapping[str, Data], names: Sequence[str]) -> str:
    lower = {key.lower(): value for key, value in data.items()}
    for name in names:
        value = lower.get(name)
        if isinstance(value, str) and 0 < len(value.strip()) <= 160 and not _MARKUP.search(value):
            return value
    return ""


def _has_text(value: Data) -> bool:
    """Whether there is any text in a value."""
    pending: list[Data] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
        elif item:
            return True
    return False


def _table(data: Sequence[Data]) -> list[list[str]] | None:
    """Rows of flat records under the names of their fields, or of lists; None when they are no table."""
    if len(data) < 2:
        return None
    if all(isinstance(item, dict) for item in data):
        records = [item for item in data if isinstance(item, dict)]
        columns = list(dict.fromkeys(key for record in records for key in record))
        if not 1 < len(columns) <= _COLUMNS:
            return None
        filled = sum(map(len, records))
        if filled * 2 < len(columns) * len(records):
            return None  # records of several kinds
        rows = [[_cell(record.get(column)) for column in columns] for record in records]
        table = [_kept(columns), *map(_kept, rows)]
    elif all(isinstance(item, list) and len(item) > 1 for item in data):
        table = [_kept([_cell(value) for value in item or ()]) for item in data]
    else:
        return None
    return None if any(row is None for row in table) else [row for row in table if row is not None]


def _cell(value: Data) -> str | None:
    """A value that fits into a cell, None for one that does not."""
    line = _line(value)
    return None if line is None or len(line) > _CELL else line


def _kept(row: Sequence[str | None]) -> list[str] | None:
    kept = [cell for cell in row if cell is not None]
    return [" ".join(cell.split()) for cell in kept] if len(kept) == len(row) else None
