"""Elements to the tree of sections: a fold over the elements with a stack of open headings."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from tidemark.domain.model import Element, ElementKind
from tidemark.stages.chunking.rendering import Rendered, render

DEEPEST_LEVEL = 6


@dataclass(slots=True)
class Node:
    """A heading with the body that stands under it, before its first sub-heading.

    path: the headings above it and its own, outermost first.
    parent: index of the node whose heading is above this one's.
    elements: the body in document order, without the heading.
    rendered: the body as text.
    end: index past its last descendant: nodes are in document order, so a sub-tree is a range.
    """

    heading: Element | None
    path: tuple[str, ...]
    parent: int | None
    elements: list[Element] = field(default_factory=list)
    rendered: Rendered = Rendered("", ())
    end: int = 0

    @property
    def name(self) -> str:
        return self.path[-1] if self.path else ""


def fold(elements: Sequence[Element]) -> list[Node]:
    """The nodes of a document, in document order.

    A heading closes every open heading of its own level or deeper, so levels may skip, repeat and return.
    Text before the first heading makes a node with the path (). A heading without a body is a node too.
    """
    front = Node(None, (), None)
    nodes = [front]
    stack: list[tuple[int, int]] = []  # level, index
    for element in elements:
        if element.kind is not ElementKind.TITLE:
            nodes[-1].elements.append(element)
            continue
        name = " ".join(element.text.split())
        if not name:
            continue
        level = min(max(element.level or 1, 1), DEEPEST_LEVEL)
        while stack and stack[-1][0] >= level:
            nodes[stack.pop()[1]].end = len(nodes)
        parent = stack[-1][1] if stack else None
        above = nodes[parent].path if parent is not None else ()
        stack.append((level, len(nodes)))
        nodes.append(Node(element, (*above, name), parent))
    for _, index in stack:
        nodes[index].end = len(nodes)
    front.end = 1
    if not front.elements:
        nodes.pop(0)
        for node in nodes:
            node.end -= 1
            node.parent = node.parent - 1 if node.parent is not None else None
    for node in nodes:
        node.rendered = render(node.elements)
    return nodes


def as_one(elements: Sequence[Element]) -> list[Node]:
    """The whole document as the body of one node, its headings among the text; none of headings alone."""
    body = [element for element in elements if element.text.strip()]
    if all(element.kind is ElementKind.TITLE for element in body):
        return []
    return [Node(None, (), None, body, render(body), 1)]
