"""Program code in parts: groups of lines, with the cost of a boundary before each.

    a boundary before …                                            cost
    -------------------------------------------------------------  ------------------------------------
    a definition at the top                                        0, more where no blank line is above
    a definition within another                                    small, a little more the deeper it is
    a statement after a blank line                                 small
    another statement                                              more, and more the deeper it is
    a line within a string, a list or a call that is too long      much
    the first line of a body, and what only closes or goes on      most
    (``}``, ``else``, ``except``)

A part is one line, or the lines of one statement, string or argument list while they are not many, and a
definition's comments and decorators with its first line. Parts hold every character that is not blank, in
order, each once; they begin where a line begins, so that a stretch of them is the text as it stands.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidemark.domain.documents import Definition

# What lines of code are within: bodies of definitions, and strings and lists too long to be one part.

UNIT = "unit"
"""The kind of a ``Definition`` that only says which lines belong together."""
WHOLE_CHARS = 480
"""A unit up to this long is one part; of a longer one each line is, at a high cost."""
CONTEXT_CHARS = 160
"""Of one line of context."""
_CONTEXT_LINES = 5

_REMARK = re.compile(r"/\*.*?\*/|(?:^|(?<=\s))(?://|#|--)\s.*$", re.MULTILINE)

Region = tuple[int, int, Definition]
"""Where it begins and ends, in characters, and what it is of."""


@dataclass(frozen=True, slots=True)
class OpenRegion:
    """A region that the line at hand is in: the body of a definition, or a unit that was not joined.

    indent: columns of the line that opens it.
    context: of the lines in it.
    """

    end: int
    indent: int
    kind: str
    context: tuple[str, ...]


def regions_of(text: str, definitions: Sequence[Definition]) -> Iterator[Region]:
    """Begin and end of every region that lines can be within, in order of begins."""
    regions: list[Region] = []
    for one in definitions:
        if one.kind == UNIT:
            if one.end - one.start > WHOLE_CHARS:
                regions.append((one.start, one.end, one))
        elif one.body < one.end:
            # A body without a bracket begins with its first line, which is then within it.
            first = text.rfind("\n", one.head, one.body)
            bare = first >= 0 and text[one.body] not in "{(" and not text[first : one.body].strip()
            regions.append((first if bare else one.body, one.end, one))
    regions.sort(key=lambda region: region[0])
    return iter(regions)


def open_region(text: str, region: Region, above: tuple[str, ...]) -> OpenRegion:
    """A region as the lines in it see it; ``above`` is the context of the region that it is in."""
    _, end, one = region
    before = text[max(0, one.head - CONTEXT_CHARS) : one.head]
    indent = before[before.rfind("\n") + 1 :]
    if indent.strip():
        indent = ""
    context = above if one.kind == UNIT else (*above, _signature(text, one, indent))
    if len(context) > _CONTEXT_LINES:  # the outermost tells where, the innermost tell what
        context = (context[0], *context[1 - _CONTEXT_LINES :])
    return OpenRegion(end, len(indent.expandtabs(4)), one.kind, context)


def _signature(text: str, one: Definition, indent: str) -> str:
    """A definition's first lines as one, without remarks, and bounded."""
    shown = _REMARK.sub("", text[one.head : min(one.body, one.head + 4 * CONTEXT_CHARS)])
    line = indent + " ".join(shown.split())
    return line if len(line) <= CONTEXT_CHARS else f"{line[: CONTEXT_CHARS - 2].rstrip()} …"


_BETWEEN_MEMBERS = 0.08
_DEEPER_MEMBER = 0.04
_NO_BLANK = 0.15
_AFTER_BLANK = 0.2
_BLANK_AT_TOP = 0.05
_STATEMENT = 0.4
_A_COLUMN = 0.02
_INTO_BLOCK = 0.3
_OUT_OF_BLOCK = 0.1
_AFTER_COMMENT = 0.8
_IN_UNIT = 0.7
_DEEPER_UNIT = 0.1
_BLANK_IN_UNIT = 0.45
_FIRST_MEMBER = 0.5
_CLOSING = 1.0
_COLUMNS, _DEPTH = 20, 3

_ENDS_ONLY = re.compile(
    r"(?:[\])};,]+|\{|\"{3}|'{3}|`+|end(?:\s+(?:if|loop|case|while|for))?|fi|done|esac|\*/|\$\$)[);,]*",
    re.IGNORECASE,
)
_CONTINUES = re.compile(
    r"[\])}]|\*/|</|\.\w|&&|\|\||=>|\?\s|do$"
    r"|(?:else|elif|elsif|elseif|except|finally|catch|rescue|ensure|end|fi|done|esac|then)\b(?!\s*(?:=|\.|\+))",
    re.IGNORECASE,
)
_COMMENT = re.compile(
    r"//|/\*|\*(?:\s|$)|--|#(?!\s*(?:include|define|undef|if|ifdef|ifndef|else|elif|endif|pragma|error|import)\b)"
)
_DEFINES = re.compile(
    r"(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub|override|open|sealed"
    r"|data|local|declare)\s+)*(?:def|class|interface|trait|object|module|namespace|struct|enum|func|function|fun|fn"
    r"|impl|type|create)\b(?!\s*[=:(.])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class CodePart:
    """A range of a code text that packing does not part, in whole lines.

    start, end: characters, half open; without the line's end.
    cost: of a boundary before it.
    context: the first lines of the definitions that it is within, outermost first and indented as they stand:
        to be repeated above a piece that begins here.
    """

    start: int
    end: int
    cost: float
    context: tuple[str, ...] = ()


@dataclass(slots=True)
class _Line:
    """A line that is not blank; ``end`` is that of its last visible character.

    indent: columns, tabs counted as four.
    blank: whether the line above it is blank.
    """

    start: int
    end: int
    text: str
    indent: int
    blank: bool
    glued: bool = False
    cost: float = 0.0
    context: tuple[str, ...] = ()


def code_parts(text: str, definitions: Sequence[Definition]) -> list[CodePart]:
    """Cut ``text`` into parts; ``definitions`` are those of a ``CodeParser``, in its order, or none."""
    lines = _lines(text)
    _glue_units(lines, definitions)
    _glue_heads(text, lines, definitions)
    _set_costs(text, lines, definitions)
    parts: list[CodePart] = []
    for line in lines:
        last = parts[-1] if parts else None
        only_ends = _ENDS_ONLY.fullmatch(line.text) is not None
        if last and (line.glued or only_ends) and line.end - last.start <= 2 * WHOLE_CHARS:
            parts[-1] = CodePart(last.start, line.end, last.cost, last.context)
        else:
            cost = max(line.cost, _IN_UNIT) if line.glued else line.cost
            parts.append(CodePart(line.start, line.end, cost, line.context))
    return parts


def definition_groups(
    text: str, definitions: Sequence[Definition], level: int = 0
) -> list[tuple[int, int]]:
    """Ranges of ``text`` in whole lines: each definition of a level with its comments, and the rest.

    Together they hold every character that is not blank, in order. Without definitions it is one range.
    """
    tops = [d for d in definitions if d.kind != UNIT and d.level == level]
    groups: list[tuple[int, int]] = []
    within = 0
    owner: object = None
    for line in _lines(text):
        while within < len(tops) and tops[within].end <= line.start:
            within += 1
        now = tops[within] if within < len(tops) and tops[within].start < line.end else None
        # A line that still belongs to the definition before it does not begin the next.
        goes_on = bool(groups) and (
            now is owner or (isinstance(owner, Definition) and owner.end > line.start)
        )
        if goes_on or (groups and now is None and _ENDS_ONLY.fullmatch(line.text)):
            groups[-1] = (groups[-1][0], line.end)
            continue
        groups.append((line.start, line.end))
        owner = now
    return groups


def _lines(text: str) -> list[_Line]:
    lines: list[_Line] = []
    position, blank = 0, True
    for raw in text.split("\n"):
        shown = raw.strip()
        if shown:
            columns = raw[: len(raw) - len(raw.lstrip())].expandtabs(4)
            end = position + len(raw.rstrip())
            lines.append(_Line(position, end, shown, len(columns), blank))
        blank = not shown
        position += len(raw) + 1
    return lines


def _glue_units(lines: Sequence[_Line], definitions: Sequence[Definition]) -> None:
    """Join the lines of every unit that is not long."""
    at = 0
    for unit in definitions:
        if unit.kind != UNIT or unit.end - unit.start > WHOLE_CHARS:
            continue
        while at < len(lines) and lines[at].start <= unit.start:
            at += 1
        # Units come in order, so lines before ``at`` were joined, or not, by an earlier one.
        while at < len(lines) and lines[at].start < unit.end:
            lines[at].glued = True
            at += 1


def _glue_heads(text: str, lines: Sequence[_Line], definitions: Sequence[Definition]) -> None:
    """Join the lines of a signature, and what is above it and belongs to it."""
    at = 0
    for one in definitions:
        # Without a body the whole is the signature, and may be long.
        signed = min(one.body, one.head + WHOLE_CHARS)
        last = one.head + len(text[one.head : signed].rstrip())
        if last - one.start > WHOLE_CHARS:
            last = one.head
        if one.kind == UNIT or last - one.start > WHOLE_CHARS:
            continue
        while at < len(lines) and lines[at].start <= one.start:
            at += 1
        while at < len(lines) and lines[at].start <= last:
            lines[at].glued = True
            at += 1


def _set_costs(text: str, lines: Sequence[_Line], definitions: Sequence[Definition]) -> None:
    """Give each line its cost and its context."""
    heads = {one.start: one for one in definitions if one.kind != UNIT}
    regions = regions_of(text, definitions)
    region = next(regions, None)
    opened: list[OpenRegion] = []
    previous: _Line | None = None
    for line in lines:
        ended = False
        while opened and opened[-1].end <= line.start:
            ended |= opened.pop().kind != UNIT
        first_of: str | None = None
        while region is not None and region[0] < line.start:
            if region[1] > line.start:
                opened.append(open_region(text, region, opened[-1].context if opened else ()))
                first_of = opened[-1].kind
            ended |= region[1] <= line.start and region[2].kind != UNIT
            region = next(regions, None)
        line.context = opened[-1].context if opened else ()
        first = line.end - len(line.text)
        if first in heads:
            line.cost = _definition_cost(heads[first], line, first_of, previous)
        else:
            line.cost = _line_cost(
                line, opened, first_of, previous, ended=ended, parsed=bool(heads)
            )
        previous = line


def _definition_cost(
    one: Definition, line: _Line, first_of: str | None, previous: _Line | None
) -> float:
    if first_of is not None and first_of != UNIT:
        return _FIRST_MEMBER
    cost = 0.0
    if one.level:
        cost = _BETWEEN_MEMBERS + _DEEPER_MEMBER * min(one.level - 1, _DEPTH)
    if previous is not None and not line.blank:
        cost += _NO_BLANK
    return cost


def _line_cost(
    line: _Line,
    opened: Sequence[OpenRegion],
    first_of: str | None,
    previous: _Line | None,
    *,
    ended: bool,
    parsed: bool,
) -> float:
    if _CONTINUES.match(line.text):
        return _CLOSING
    inner = opened[-1] if opened else None
    if inner is not None and inner.kind == UNIT:
        depth = sum(one.kind == UNIT for one in opened[-_DEPTH:])
        return _BLANK_IN_UNIT if line.blank else _IN_UNIT + _DEEPER_UNIT * depth
    if first_of is not None:
        return _CLOSING if first_of == "function" else _FIRST_MEMBER
    base = inner.indent if inner is not None else 0
    depth = min(max(line.indent - base, 0), _COLUMNS)
    if not parsed and _DEFINES.match(line.text):
        # Without a parser, indentation and the first words have to tell.
        return (0.0 if line.blank else _NO_BLANK) + _A_COLUMN * min(depth, _COLUMNS // 2)
    if ended:
        return _BETWEEN_MEMBERS + (0.0 if line.blank else _NO_BLANK)
    if previous is not None and _COMMENT.match(previous.text) and not line.blank:
        return _AFTER_COMMENT
    if line.blank:
        return _BLANK_AT_TOP if depth == 0 and inner is None else _AFTER_BLANK
    cost = _STATEMENT + _A_COLUMN * depth
    if previous is not None and line.indent > previous.indent:
        return cost + _INTO_BLOCK
    if previous is not None and line.indent < previous.indent:
        return cost - _OUT_OF_BLOCK
    return cost
