"""Elements to the tree of sections: a fold over the elements with a stack of open headings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tidemark.domain.documents import Element, ElementKind

# A section's elements as one readable text, and where in it each element stands.
#
# Only white space is added: what a chunk cites is what the document says, no bullet and no bar more.

INDENT = "  "
_ENTRY = frozenset({ElementKind.TERM, ElementKind.DEFINITION})


@dataclass(frozen=True, slots=True)
class Rendered:
    """A text and the half-open character range of each element in it, in order."""

    text: str
    spans: tuple[tuple[int, int], ...]


def render(elements: Sequence[Element]) -> Rendered:
    """Join blocks by blank lines, and the lines of a list or of an entry by line ends.

    Elements without a visible character get an empty range.
    """
    parts: list[str] = []
    spans: list[tuple[int, int]] = []
    position = 0
    previous: Element | None = None
    for element in elements:
        text = render_element(element)
        if not text:
            spans.append((position, position))
            continue
        between = separator(previous, element) if previous is not None else ""
        position += len(between)
        parts += (between, text)
        spans.append((position, position + len(text)))
        position += len(text)
        previous = element
    return Rendered("".join(parts), tuple(spans))


def render_element(element: Element) -> str:
    """One element as text: code verbatim, a table's empty corner kept, a nested list item indented."""
    if element.kind is ElementKind.CODE:
        lines = element.text.rstrip().split("\n")
        while lines and not lines[0].strip():
            lines.pop(0)
        return "\n".join(lines)
    if element.kind is ElementKind.TABLE:
        return element.text.strip("\n ").rstrip()
    text = element.text.strip()
    if element.kind is not ElementKind.LIST_ITEM or not text:
        return text
    return INDENT * (max(element.level or 1, 1) - 1) + text


def separator(before: Element, after: Element) -> str:
    """What stands between two neighbouring elements."""
    same_list = before.kind is ElementKind.LIST_ITEM and after.kind is ElementKind.LIST_ITEM
    same_entry = before.kind in _ENTRY and after.kind is ElementKind.DEFINITION
    same_entry = same_entry or (before.kind is ElementKind.TERM and after.kind is ElementKind.TERM)
    captioned = before.kind is ElementKind.CAPTION and after.kind is not ElementKind.CAPTION
    return "\n" if same_list or same_entry or captioned else "\n\n"


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


# What is handed to a reader: of each chunk the largest whole that fits a budget.
#
# the sub-tree of …                               then the reader gets …
# ----------------------------------------------  ------------------------------------------------------
# an ancestor fits the budget                     the highest such ancestor with all its sub-sections
# the section itself fits                         the section with all its sub-sections
# only its own body, without sub-sections, fits   that body
# not even that                                   a part of the body, cut where chunks end

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


# The runs of text that are cut into chunks: each section's body, or several sections' together.


@dataclass(frozen=True, slots=True)
class Region:
    """A run of elements that no chunk leaves.

    node: index of the node that it begins with.
    path: the heading path of the whole run.
    tokens: of each element's text.
    paths: the heading path of each element, where the run holds several sections; else ().
    page, anchor: of the heading, for chunks whose elements have none.
    """

    node: int
    path: tuple[str, ...]
    elements: tuple[Element, ...]
    rendered: Rendered
    tokens: tuple[int, ...]
    page: int | None
    anchor: str | None
    paths: tuple[tuple[str, ...], ...] = ()

    def path_of(self, first: int, last: int) -> tuple[str, ...]:
        """The headings that are above all of the elements ``first`` to ``last``."""
        if not self.paths:
            return self.path
        common = self.paths[first]
        for path in self.paths[first + 1 : last + 1]:
            same = 0
            while same < min(len(common), len(path)) and common[same] == path[same]:
                same += 1
            common = common[:same]
        return common


def regions_of(
    nodes: Sequence[Node],
    counts: Sequence[Sequence[int]],
    headings: Sequence[int],
    homes: Homes,
    *,
    merge: bool,
) -> list[Region]:
    """The regions of a document, in order; with ``merge`` the sections read as one are one region.

    counts: tokens of each node's elements. headings: of each node's own heading.
    """
    regions: list[Region] = []
    for index, node in enumerate(nodes):
        if merge and homes.home[index] != index:
            continue
        if merge and any(homes.home[i] == index for i in range(index + 1, node.end)):
            regions.append(_merged(nodes, counts, headings, homes, index))
        else:
            regions.append(
                Region(
                    index,
                    node.path,
                    tuple(node.elements),
                    node.rendered,
                    tuple(counts[index]),
                    _page(node),
                    _anchor(node),
                )
            )
    return regions


def _merged(
    nodes: Sequence[Node],
    counts: Sequence[Sequence[int]],
    headings: Sequence[int],
    homes: Homes,
    top: int,
) -> Region:
    elements: list[Element] = []
    spans: list[tuple[int, int]] = []
    tokens: list[int] = []
    paths: list[tuple[str, ...]] = []
    text = homes.text[top]
    position = 0
    # A heading under which nothing more comes is no text of its own: its place in the tree is enough.
    last = max(i for i in range(top, nodes[top].end) if i == top or nodes[i].rendered.text)
    for index in range(top, nodes[top].end):
        node = nodes[index]
        if index > last:
            break
        if index != top and node.heading is not None:
            start = text.index(node.name, position)
            position = start + len(node.name)
            elements.append(node.heading)
            spans.append((start, position))
            tokens.append(headings[index])
            paths.append(node.path)
        base = homes.offset[index]
        for element, (start, end), count in zip(
            node.elements, node.rendered.spans, counts[index], strict=True
        ):
            elements.append(element)
            spans.append((base + start, base + end) if end > start else (position, position))
            tokens.append(count)
            paths.append(node.path)
            position = max(position, base + end)
    return Region(
        top,
        nodes[top].path,
        tuple(elements),
        Rendered(text[:position], tuple(spans)),
        tuple(tokens),
        _page(nodes[top]),
        _anchor(nodes[top]),
        tuple(paths),
    )


def _page(node: Node) -> int | None:
    heading = (node.heading,) if node.heading is not None else ()
    return next(
        (e.page_number for e in (*heading, *node.elements) if e.page_number is not None), None
    )


def _anchor(node: Node) -> str | None:
    return node.heading.anchor if node.heading is not None else None
