"""What is handed to a reader: of each chunk the largest whole that fits a budget.

the sub-tree of …                               then the reader gets …
----------------------------------------------  ------------------------------------------------------
an ancestor fits the budget                     the highest such ancestor with all its sub-sections
the section itself fits                         the section with all its sub-sections
only its own body, without sub-sections, fits   that body
not even that                                   a part of the body, cut where chunks end
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidemark.stages.chunking.sections import Node

BETWEEN = "\n\n"


@dataclass(frozen=True, slots=True)
class Homes:
    """For each node of a document: which node's section is read, and where its own body begins in it.

    home: index of the node that is read.
    offset: characters of that section's text before this node's body.
    text: of each node's section.
    """

    home: tuple[int, ...]
    offset: tuple[int, ...]
    text: tuple[str, ...]


def find_homes(nodes: Sequence[Node], tokens: Sequence[int], budget: int) -> Homes:
    """Let short sections climb; ``tokens`` are those of each node's heading and body."""
    whole = list(tokens)
    for index in range(len(nodes) - 1, -1, -1):
        parent = nodes[index].parent
        if parent is not None:
            whole[parent] += whole[index]
    home: list[int] = []
    for index, node in enumerate(nodes):
        above = home[node.parent] if node.parent is not None else index
        home.append(above if whole[above] <= budget else index)
    offset = [0] * len(nodes)
    text = [node.rendered.text for node in nodes]
    for index, node in enumerate(nodes):
        if home[index] == index and node.end > index + 1 and whole[index] <= budget:
            text[index] = _assemble(nodes, index, offset)
    return Homes(tuple(home), tuple(offset), tuple(text))


def _assemble(nodes: Sequence[Node], top: int, offset: list[int]) -> str:
    parts: list[str] = []
    position = 0
    for index, part in _parts(nodes, top):
        if parts:
            parts.append(BETWEEN)
            position += len(BETWEEN)
        if index is not None:
            offset[index] = position
        parts.append(part)
        position += len(part)
    return "".join(parts)


def _parts(nodes: Sequence[Node], top: int) -> Iterator[tuple[int | None, str]]:
    """The pieces of a whole section: headings (None) and bodies (the node's index)."""
    for index in range(top, nodes[top].end):
        if index != top:
            yield None, nodes[index].name
        if nodes[index].rendered.text:
            yield index, nodes[index].rendered.text
