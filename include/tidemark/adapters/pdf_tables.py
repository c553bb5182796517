"""Ruled tables of a PDF page: the lines drawn around cells tell which characters belong to which cell."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pdfminer.layout import LTChar, LTContainer, LTCurve, LTItem, LTLine, LTRect

_SNAP = 3.0
_THIN = 2.5
_MAX_RULES = 4000


@dataclass(frozen=True, slots=True)
class RuledTable:
    """rows: texts of the cells. x0, bottom, x1, top: points, from the page's lower left corner."""

    rows: tuple[tuple[str, ...], ...]
    x0: float
    bottom: float
    x1: float
    top: float

    def holds(self, x: float, y: float) -> bool:
        return self.x0 <= x <= self.x1 and self.bottom <= y <= self.top


@dataclass(slots=True)
class _Rule:
    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def horizontal(self) -> bool:
        return self.x1 - self.x0 > self.y1 - self.y0

    def touches(self, other: "_Rule") -> bool:
        return (
            self.x0 <= other.x1 + _SNAP
            and other.x0 <= self.x1 + _SNAP
            and self.y0 <= other.y1 + _SNAP
            and other.y0 <= self.y1 + _SNAP
        )


def ruled_tables(layout: Iterable[LTItem]) -> list[RuledTable]:
    """The tables of a page that have lines between their rows and their columns."""
    rules = list(_rules(layout))
    if not 5 <= len(rules) <= _MAX_RULES:
        return []
    grids = []
    for group in _connected(rules):
        xs = _positions(
            [r.x0 for r in group if not r.horizontal] + [r.x1 for r in group if not r.horizontal]
        )
        ys = _positions(
            [r.y0 for r in group if r.horizontal] + [r.y1 for r in group if r.horizontal]
        )
        if len(xs) >= 3 and len(ys) >= 3:
            grids.append((xs, ys, group))
    if not grids:
        return []
    chars = list(_chars(layout))
    tables = [_table(xs, ys, group, chars) for xs, ys, group in grids]
    return [
        table for table in tables if sum(1 for row in table.rows if sum(map(bool, row)) > 1) >= 2
    ]


def _rules(items: Iterable[LTItem]) -> Iterator[_Rule]:
    for item in items:
        if isinstance(item, LTLine | LTRect) or (isinstance(item, LTCurve) and item.pts):
            wide, high = item.x1 - item.x0, item.y1 - item.y0
            if wide <= _THIN or high <= _THIN:
                yield _Rule(item.x0, item.y0, item.x1, item.y1)
            elif isinstance(item, LTRect):
                yield _Rule(item.x0, item.y0, item.x0, item.y1)
                yield _Rule(item.x1, item.y0, item.x1, item.y1)
                yield _Rule(item.x0, item.y0, item.x1, item.y0)
                yield _Rule(item.x0, item.y1, item.x1, item.y1)


def _connected(rules: Sequence[_Rule]) -> list[list[_Rule]]:
    """Rules in groups of those that touch, in the order of the page from the top."""
    groups: list[tuple[_Rule, list[_Rule]]] = []
    for rule in sorted(rules, key=lambda r: (-r.y1, r.x0)):
        box, members = _Rule(rule.x0, rule.y0, rule.x1, rule.y1), [rule]
        apart: list[tuple[_Rule, list[_Rule]]] = []
        for other, theirs in groups:
            if box.touches(other):
                box = _Rule(
                    min(box.x0, other.x0),
                    min(box.y0, other.y0),
                    max(box.x1, other.x1),
                    max(box.y1, other.y1),
                )
                members = theirs + members
            else:
                apart.append((other, theirs))
        groups = [*apart, (box, members)]
    return [members for _, members in groups]


def _positions(values: Iterable[float]) -> list[float]:
    """Distinct positions, near ones as one."""
    found: list[float] = []
    for value in sorted(values):
        if not found or value - found[-1] > _SNAP:
            found.append(value)
    return found


def _chars(items: Iterable[LTItem]) -> Iterator[LTChar]:
    for item in items:
        if isinstance(item, LTChar):
            yield item
        elif isinstance(item, LTContainer):
            yield from _chars(item)


def _table(
    xs: Sequence[float], ys: Sequence[float], rules: Sequence[_Rule], chars: Sequence[LTChar]
) -> RuledTable:
    spans = _spans(xs, ys, rules)
    cells: dict[tuple[int, int], list[LTChar]] = {}
    for char in chars:
        column = _slot(xs, (char.x0 + char.x1) / 2)
        row = _slot(ys, (char.y0 + char.y1) / 2)
        if column is not None and row is not None:
            cells.setdefault(spans[row, column], []).append(char)
    texts = {place: _text(found) for place, found in cells.items()}
    top = len(ys) - 2
    rows: list[tuple[str, ...]] = []
    for row in range(top, -1, -1):
        line: list[str] = []
        for column in range(len(xs) - 1):
            place = spans[row, column]
            # A cell is said again in the rows that it reaches into; over columns only where it names them.
            again = place[1] == column or row == top
            line.append(texts.get(place, "") if again else "")
        rows.append(tuple(line))
    return RuledTable(tuple(row for row in rows if any(row)), xs[0], ys[0], xs[-1], ys[-1])


def _spans(
    xs: Sequence[float], ys: Sequence[float], rules: Sequence[_Rule]
) -> dict[tuple[int, int], tuple[int, int]]:
    """For each slot of the grid the first slot, from the upper left, of the cell that it belongs to.

    Two slots are one cell where no line is drawn between them.
    """
    upright: set[tuple[int, int]] = set()
    level: set[tuple[int, int]] = set()
    for rule in rules:
        for place, edge in enumerate(ys if rule.horizontal else xs):
            if abs(edge - (rule.y0 if rule.horizontal else rule.x0)) > _SNAP:
                continue
            along, low, high = (xs, rule.x0, rule.x1) if rule.horizontal else (ys, rule.y0, rule.y1)
            for slot in range(len(along) - 1):
                if low - _SNAP <= (along[slot] + along[slot + 1]) / 2 <= high + _SNAP:
                    (level if rule.horizontal else upright).add((place, slot))
    owners: dict[tuple[int, int], tuple[int, int]] = {}
    for row in range(len(ys) - 2, -1, -1):
        for column in range(len(xs) - 1):
            owner = (row, column)
            if column and (column, row) not in upright:
                owner = owners[row, column - 1]
            elif row < len(ys) - 2 and (row + 1, column) not in level:
                owner = owners[row + 1, column]
            owners[row, column] = owner
    return owners


def _slot(edges: Sequence[float], value: float) -> int | None:
    for index in range(len(edges) - 1):
        if edges[index] - _SNAP / 2 <= value < edges[index + 1]:
            return index
    return None


def _text(chars: Sequence[LTChar]) -> str:
    """Characters of a cell as its reader takes them: by lines from the top, by place within a line."""
    parts: list[str] = []
    before: LTChar | None = None
    for char in sorted(
        chars, key=lambda c: (-round((c.y0 + c.y1) / 2 / max(c.size * 0.6, 1)), c.x0)
    ):
        if before is not None and (char.x0 < before.x0 or char.x0 - before.x1 > before.size * 0.18):
            parts.append(" ")
        parts.append(char.get_text())
        before = char
    return " ".join("".join(parts).split())
