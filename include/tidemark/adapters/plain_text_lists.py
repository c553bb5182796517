"""Lists in plain text: where they begin in a block, and how deep each item is.

An item begins its line with a mark: a bullet, a number, a letter, a small roman numeral. Marks that running
text may begin a wrapped line with ("12.", "(b)", "-") make items only where they count up from the first, or
where another one follows.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_BULLETS = "-*•‣◦·+–—▪■□●○◆◇►▶✓✗"
_CIRCLED = "①-⑳⑴-⒇❶-❿㊀-㊉㈠-㈩"
_MARK = re.compile(
    rf"""(?P<indent>\s*)(?:
    (?P<bullet>[{re.escape(_BULLETS)}]|\*{{2,4}})\s+(?=\S)
    |(?P<tight>[・●○■□◆◇▪•※‧∙])\s*(?=[^\s・●○■□◆◇▪•※‧∙])
    |(?P<circled>[{_CIRCLED}])\s*(?=\S)
    |(?P<wide>[（(]\d{{1,2}}[）)]|\d{{1,2}}、)\s*(?=[^\s\d])
    |(?P<number>\(?\d{{1,3}}[.)])\s+(?=\S)
    |(?P<letter>\(?(?:[a-zA-Z]|[ivxl]{{2,6}}|[IVXL]{{2,6}})[.)])\s+(?=\S)
    )""",
    re.VERBOSE,
)
_KEPT_SIGNS = frozenset("※")
"""Signs that say something themselves (a remark) and stay with their text."""
_ROMANS = ["", "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix"]
_FAR = 30
"""Lines within which the next item is looked for."""
_CLOSED = (".", "!", "?", ";", ":", "。", "！", "？", "；", "：")


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark that a line begins with.

    indent: columns before it. kind: which marks count on from it ("bullet *", "(a)", "(i)", "1.").
    values: what it may count, several where a letter is also a numeral; () for a bullet.
    shown: what of it stays in the text, "" for a bullet. rest: the line after it.
    """

    indent: int
    kind: str
    values: tuple[tuple[str, int], ...]
    shown: str
    rest: str


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a list; ``level`` is its nesting from 1, ``lines`` its text."""

    level: int
    lines: tuple[str, ...]


def mark_of(line: str) -> Mark | None:
    """The mark that a line begins with, None for a line of text."""
    found = _MARK.match(line)
    if found is None:
        return None
    indent, rest = len(found["indent"]), line[found.end() :].strip()
    bullet = found["bullet"]
    if bullet:
        depth = len(bullet) if bullet.startswith("**") else 1
        return Mark(indent + 2 * (depth - 1), f"bullet {bullet}", (), "", rest)
    sign = found["tight"] or found["circled"]
    if sign:
        shown = sign if found["circled"] or sign in _KEPT_SIGNS else ""
        return Mark(indent, f"sign {'①' if found['circled'] else sign}", (), shown, rest)
    mark = found["wide"] or found["number"] or found["letter"]
    bare = mark.strip("()（）.、")
    form = mark.replace(bare, "{}")
    return Mark(indent, form, tuple(_values(bare)), f"{mark} ", rest)


def _values(bare: str) -> list[tuple[str, int]]:
    """What a mark may count: ("1", 4) for "4"; ("a", 9) and ("i", 1) for "i"."""
    if bare.isdigit():
        return [("1", int(bare))]
    case = "A" if bare.isupper() else "a"
    values = [(case, ord(bare.lower()) - 96)] if len(bare) == 1 else []
    roman = _roman(bare.lower())
    if roman:
        values.append(("I" if bare.isupper() else "i", roman))
    return values


def _roman(text: str) -> int:
    tens = len(text) - len(text.lstrip("x"))
    rest = text[tens:]
    return tens * 10 + _ROMANS.index(rest) if rest in _ROMANS and tens < 4 else 0


@dataclass(slots=True)
class _Level:
    kind: str
    style: str
    value: int
    indent: int


def items_of(lines: Sequence[str]) -> list[Item] | None:
    """The items of lines that begin with a list, each with its continuation; None when they do not."""
    items: list[tuple[int, list[str]]] = []
    stack: list[_Level] = []
    for line in lines:
        mark = mark_of(line)
        level = _enter(stack, mark) if mark is not None else 0
        if mark is not None and level:
            items.append((level, [f"{mark.shown}{mark.rest}"]))
        elif items:
            items[-1][1].append(line.strip())
        else:
            return None
    return [Item(level, tuple(text)) for level, text in items]


def _enter(stack: list[_Level], mark: Mark) -> int:
    """The level of a mark, with ``stack`` brought up to date; 0 when it is no mark here."""
    for depth in range(len(stack), 0, -1):
        top = stack[depth - 1]
        if top.kind != mark.kind or (not mark.values and abs(mark.indent - top.indent) > 1):
            continue
        value = next(
            (v for style, v in mark.values if style == top.style and v == top.value + 1), None
        )
        if value is not None or not mark.values:
            del stack[depth:]
            top.value = value or 0
            return depth
    first = next(((style, value) for style, value in reversed(mark.values) if value == 1), None)
    if mark.values and first is None:
        if stack and mark.kind not in {level.kind for level in stack}:
            return 0
        first = mark.values[0]  # a list may begin with any number, or skip one
        same = [i for i, level in enumerate(stack) if level.kind == mark.kind]
        if same:
            stack[same[-1]].value = first[1]
            del stack[same[-1] + 1 :]
            return same[-1] + 1
    while stack and mark.indent < stack[-1].indent - 1:
        stack.pop()
    if (
        stack
        and not mark.values
        and abs(mark.indent - stack[-1].indent) <= 1
        and not stack[-1].style
    ):
        stack.pop()  # another bullet at the same place
    style, value = first or ("", 0)
    stack.append(_Level(mark.kind, style, value, mark.indent))
    return len(stack)


def list_ranges(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Half-open ranges of the lines of a block that are lists."""
    ranges: list[tuple[int, int]] = []
    index = 0
    while index < len(lines):
        mark = mark_of(lines[index])
        if mark is None or not _begins(lines, index, mark):
            index += 1
            continue
        end = _end(lines, index, mark)
        ranges.append((index, end))
        index = end
    return ranges


def _begins(lines: Sequence[str], index: int, mark: Mark) -> bool:
    """Whether a list begins at a line: at the head of the block, or where it cannot be wrapped text."""
    if index == 0:
        return True
    if not mark.values:
        above = lines[index - 1].rstrip()
        signs = mark.kind.startswith("sign") or mark.kind[-1] not in "-–—+·"
        return signs or above.endswith(_CLOSED) or _has_next(lines, index, mark)
    if all(value != 1 for _, value in mark.values):
        return False
    return _has_next(lines, index, mark)


def _has_next(lines: Sequence[str], index: int, mark: Mark) -> bool:
    """Whether a later line of the block counts on from a mark."""
    for line in lines[index + 1 : index + _FAR]:
        other = mark_of(line)
        if other is None or other.kind != mark.kind:
            continue
        if not mark.values or any(
            (style, value + 1) in other.values for style, value in mark.values
        ):
            return True
    return False


def _end(lines: Sequence[str], start: int, first: Mark) -> int:
    """Where the list that begins at ``start`` ends: at a new sentence that is set like the text before it."""
    for index in range(start + 1, len(lines)):
        line, above = lines[index], lines[index - 1].rstrip()
        if mark_of(line) is not None:
            continue
        indent = len(line) - len(line.lstrip())
        if (
            indent <= first.indent
            and above.endswith(_CLOSED[:3])
            and not line.lstrip()[:1].islower()
        ):
            return index
    return len(lines)
