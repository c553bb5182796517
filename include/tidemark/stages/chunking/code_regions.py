"""What lines of code are within: bodies of definitions, and strings and lists too long to be one part."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidemark.domain.model import Definition

UNIT = "unit"
"""The kind of a ``Definition`` that only says which lines belong together."""
WHOLE_CHARS = 480
"""A unit up to this long is one part; of a longer one each line is, at a high price."""
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
