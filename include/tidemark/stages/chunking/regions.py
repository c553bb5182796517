"""The runs of text that are cut into chunks: each section's body, or several sections' together."""

from collections.abc import Sequence
from dataclasses import dataclass

from tidemark.domain.model import Element
from tidemark.stages.chunking.parents import Homes
from tidemark.stages.chunking.rendering import Rendered
from tidemark.stages.chunking.sections import Node


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
