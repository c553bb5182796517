"""Elements to the tree of sections: a fold over the elements with a stack of open headings."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from tidemark.domain.identity import Occurrences, section_id
from tidemark.domain.model import Element, ElementKind, PartitionedDocument, Section
from tidemark.stages.chunking.rendering import Rendered, render

DEEPEST_LEVEL = 6


@dataclass(frozen=True, slots=True)
class SectionBody:
    """A section with what it was made of.

    elements: its body in document order, without its heading.
    rendered: the body as ``section.text``, with the place of each element in it.
    """

    section: Section
    elements: tuple[Element, ...]
    rendered: Rendered


@dataclass(slots=True)
class _Open:
    """A heading with the body that was read under it so far."""

    heading: Element | None
    path: tuple[str, ...]
    parent: "_Open | None"
    body: list[Element]


def build_sections(document_id: UUID, document: PartitionedDocument) -> tuple[SectionBody, ...]:
    """Fold a document's elements into its sections, in document order.

    A heading closes every open heading of its own level or deeper, so levels may skip, repeat and return.
    Text before the first heading makes a section with the path (). A heading without a body is a section
    with an empty text.
    """
    return _identify(document_id, _fold(document.elements))


def _fold(elements: Sequence[Element]) -> list[_Open]:
    front = _Open(None, (), None, [])
    sections = [front]
    stack: list[tuple[int, _Open]] = []
    for element in elements:
        if element.kind is not ElementKind.TITLE:
            sections[-1].body.append(element)
            continue
        name = " ".join(element.text.split())
        if not name:
            continue
        level = min(max(element.level or 1, 1), DEEPEST_LEVEL)
        while stack and stack[-1][0] >= level:
            stack.pop()
        parent = stack[-1][1] if stack else None
        opened = _Open(element, (*(parent.path if parent else ()), name), parent, [])
        stack.append((level, opened))
        sections.append(opened)
    return sections if front.body else sections[1:]


def _identify(document_id: UUID, opened: Sequence[_Open]) -> tuple[SectionBody, ...]:
    occurrences = Occurrences()
    ids: dict[int, UUID] = {}
    bodies: list[SectionBody] = []
    for ordinal, part in enumerate(opened):
        identifier = section_id(document_id, part.path, occurrences.next(part.path))
        ids[id(part)] = identifier
        rendered = render(part.body)
        pages = [
            element.page_number
            for element in (part.heading, *part.body)
            if element is not None and element.page_number is not None
        ]
        section = Section(
            section_id=identifier,
            document_id=document_id,
            parent_section_id=ids[id(part.parent)] if part.parent else None,
            heading_path=part.path,
            ordinal=ordinal,
            text=rendered.text,
            page_number=min(pages, default=None),
            page_end=max(pages, default=None),
            anchor=part.heading.anchor if part.heading else None,
        )
        bodies.append(SectionBody(section, tuple(part.body), rendered))
    return tuple(bodies)
