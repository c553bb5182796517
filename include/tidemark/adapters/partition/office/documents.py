"""DOCX and PPTX through Unstructured: styles and title shapes say what a paragraph is."""

import re
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import Any
from zipfile import ZipFile

from lxml import etree

from tidemark.adapters.partition.html.tables import header_rows_of, join_cells, table_text
from tidemark.adapters.partition.html.tree import language_code
from tidemark.adapters.partition.unstructured import docx_partitioner, pptx_partitioner
from tidemark.domain.documents import CELL, Element, ElementKind, PartitionedDocument
from tidemark.domain.errors import DocumentError

_DUBLIN = "{http://purl.org/dc/elements/1.1/}"
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MEANINGLESS = re.compile(
    r"(untitled|document ?\d*|(microsoft )?word( document)?|powerpoint[ -]?(presentation|präsentation)?"
    r"|presentation ?\d*|book ?\d*|title|slide ?\d*|microsoft word - .*"
    r"|.*\.(docx?|pptx?|xlsx?|pdf|indd|tmp|qxd|dvi))",
    re.IGNORECASE,
)
_CODE_STYLE = re.compile(
    r"code|preformatted|macro|source|listing|verbatim|console|terminal", re.IGNORECASE
)
_MAX_WORD_CELLS = 50_000
_QUOTE_STYLE = re.compile(r"quot", re.IGNORECASE)


def too_many_cells(name: str, limit: int) -> DocumentError:
    """That the tables of a document are over the bound."""
    return DocumentError(
        "partition",
        f"{name} has more than {limit:,} cells in its tables.",
        "Exclude it from the source, or split it: this limit is no setting.",
    )


def partition_docx(content: bytes, name: str, max_cells: int) -> PartitionedDocument:
    """Partition a Word document; headers, footers and its table of contents are left out.

    ``name`` names it in errors. Raises ``DocumentError`` when its tables have too many cells.
    """
    _check_cells(content, name, min(max_cells, _MAX_WORD_CELLS))
    parts = docx_partitioner()(file=BytesIO(content), languages=[""])
    elements = list(_joined_code(_docx_elements(parts)))
    elements = _bold_headings(elements, parts)
    title, language = core_properties(content)
    heading = next((e.text for e in elements if e.kind is ElementKind.TITLE), "")
    styled = next((p.text for p in parts if _style(p) == "Title"), "")
    elements += _footnotes(content)
    return PartitionedDocument(styled or title or heading, tuple(elements), language)


def _check_cells(content: bytes, name: str, limit: int) -> None:
    """Count the cells before any is read: Word's tables take a millisecond each."""
    with ZipFile(BytesIO(content)) as archive:
        if "word/document.xml" not in archive.namelist():
            return
        cells = len(re.findall(rb"<\w{1,20}:tc[ >]", archive.read("word/document.xml")))
    if cells > limit:
        raise too_many_cells(name, limit)


def _docx_elements(parts: Iterable[Any]) -> Iterator[Element]:
    parts = list(parts)
    # A document title above numbered headings is one level up from them.
    deeper = int(any(_style(part) == "Title" for part in parts))
    for part in parts:
        style, page = _style(part), part.metadata.page_number
        if part.category in {"Header", "Footer", "PageBreak"} or style.lower().startswith("toc"):
            continue
        text = part.text.strip()
        if part.category == "Table":
            table = _table(part, page)
            if table is not None:
                yield table
        elif not text:
            continue
        elif part.category == "Title" and style != "Subtitle":
            depth = part.metadata.category_depth or 0
            level = 1 if style == "Title" else min(depth + 1 + deeper, 6)
            yield Element(ElementKind.TITLE, text, level, page)
        elif part.category == "ListItem":
            depth = part.metadata.category_depth or 0
            yield Element(ElementKind.LIST_ITEM, text, depth + 1, page)
        else:
            kind = _kind(style)
            yield Element(kind, part.text if kind is ElementKind.CODE else text, None, page)


def _style(part: Any) -> str:
    return getattr(part.metadata, "style_name", None) or ""


def _kind(style: str) -> ElementKind:
    if style == "Caption":
        return ElementKind.CAPTION
    if _CODE_STYLE.search(style):
        return ElementKind.CODE
    return ElementKind.QUOTE if _QUOTE_STYLE.search(style) else ElementKind.TEXT


def _joined_code(elements: Iterable[Element]) -> Iterator[Element]:
    """Word keeps each line of code as a paragraph of its own."""
    code: Element | None = None
    for element in elements:
        if element.kind is ElementKind.CODE:
            text = element.text if code is None else f"{code.text}\n{element.text}"
            code = Element(
                ElementKind.CODE, text, None, code.page_number if code else element.page_number
            )
            continue
        if code is not None:
            yield code
            code = None
        yield element
    if code is not None:
        yield code


def _bold_headings(elements: list[Element], parts: Iterable[Any]) -> list[Element]:
    """Where no heading style is used at all, short bold paragraphs are the headings."""
    if any(element.kind is ElementKind.TITLE for element in elements):
        return elements
    bold = set()
    for part in parts:
        contents = part.metadata.emphasized_text_contents or []
        tags = part.metadata.emphasized_text_tags or []
        if (
            tags
            and set(tags) == {"b"}
            and "".join("".join(contents).split()) == "".join(part.text.split())
        ):
            bold.add(part.text.strip())
    return [
        Element(ElementKind.TITLE, e.text, 2, e.page_number)
        if e.kind is ElementKind.TEXT
        and e.text in bold
        and len(e.text) <= 100
        and not e.text.endswith((".", ":"))
        else e
        for e in elements
    ]


def _table(part: Any, page: int | None) -> Element | None:
    html = part.metadata.text_as_html
    table = etree.fromstring(html, etree.HTMLParser()).find(".//table") if html else None
    if table is None:
        return Element(ElementKind.TABLE, part.text, None, page) if part.text.strip() else None
    read = table_text(table)
    if not read.text:
        return None
    rows = [line.split(CELL) for line in read.text.split("\n")]
    header_rows = read.header_rows or header_rows_of(rows)
    return Element(ElementKind.TABLE, read.text, None, page, header_rows=header_rows)


def _footnotes(content: bytes) -> list[Element]:
    """Notes at the foot of pages, which Unstructured leaves out; they go to the end."""
    elements: list[Element] = []
    with ZipFile(BytesIO(content)) as archive:
        for part in ("word/footnotes.xml", "word/endnotes.xml"):
            if part not in archive.namelist():
                continue
            root = etree.fromstring(archive.read(part), _xml_parser())
            for number, note in enumerate(root, start=-1):
                text = "".join(node.text or "" for node in note.iter(f"{_WORD}t")).strip()
                if text and note.get(f"{_WORD}type") is None:
                    elements.append(Element(ElementKind.TEXT, f"[{max(number, 1)}] {text}"))
    return elements


def core_properties(content: bytes) -> tuple[str, str | None]:
    """Title and language of an Office file; "" and None where they say nothing."""
    with ZipFile(BytesIO(content)) as archive:
        if "docProps/core.xml" not in archive.namelist():
            return "", None
        root = etree.fromstring(archive.read("docProps/core.xml"), _xml_parser())
    title = " ".join((root.findtext(f"{_DUBLIN}title") or "").split())
    language = root.findtext(f"{_DUBLIN}language") or ""
    return sensible_title(title), language_code(language)


def sensible_title(title: str) -> str:
    """A title as it is, "" for what programs write when nobody gave one."""
    title = " ".join(title.split())
    return "" if _MEANINGLESS.fullmatch(title) else title


def _xml_parser() -> etree.XMLParser:
    return etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=False)


def partition_pptx(content: bytes) -> PartitionedDocument:
    """Partition slides: each slide is a section under its title, its notes last under a heading of their own.

    What is said beside a slide is not on it: "Notes" tells it apart, as the program that shows it does.
    """
    notes, listed = _notes_and_lists(content)
    parts = pptx_partitioner()(file=BytesIO(content), languages=[""], include_slide_notes=False)
    slides: dict[int, list[Any]] = {}
    for part in parts:
        if part.category != "PageBreak" and (part.text.strip() or part.category == "Table"):
            slides.setdefault(part.metadata.page_number or 1, []).append(part)
    titled = any(part.category == "Title" for slide in slides.values() for part in slide)
    elements: list[Element] = []
    for page in sorted(slides.keys() | notes.keys()):
        elements += _slide(slides.get(page, []), page, listed.get(page, set()), titled=titled)
        if page in notes:
            elements.append(Element(ElementKind.TITLE, "Notes", 2, page))
            elements += [Element(ElementKind.TEXT, note, None, page) for note in notes[page]]
    title, language = core_properties(content)
    heading = next((e.text for e in elements if e.kind is ElementKind.TITLE and e.level == 1), "")
    return PartitionedDocument(title or heading, tuple(elements), language)


def _slide(parts: list[Any], page: int, points: set[str], *, titled: bool) -> Iterator[Element]:
    """One slide; ``points`` are the paragraphs that its layout shows with bullets."""
    titles = [part for part in parts if part.category == "Title"]
    if titles:
        yield Element(
            ElementKind.TITLE, " ".join(" ".join(t.text for t in titles).split()), 1, page
        )
    elif titled:
        # Without a heading of its own it would be read as a part of the slide before it.
        yield Element(ElementKind.TITLE, f"Slide {page}", 1, page)
    for part in parts:
        if part.category == "Title":
            continue
        if part.category == "Table":
            table = _table(part, page)
            if table is not None:
                yield table
            continue
        level = (part.metadata.category_depth or 0) + 1
        listed = part.category == "ListItem" or level > 1 or part.text.strip() in points
        kind = ElementKind.LIST_ITEM if listed else ElementKind.TEXT
        yield Element(kind, part.text.strip(), level if listed else None, page)


def _notes_and_lists(content: bytes) -> tuple[dict[int, list[str]], dict[int, set[str]]]:
    """By slide: the paragraphs of its notes, and those of its body, which layouts show as bullets."""
    from pptx import Presentation
    from pptx.enum.shapes import PP_PLACEHOLDER

    notes: dict[int, list[str]] = {}
    points: dict[int, set[str]] = {}
    for number, slide in enumerate(Presentation(BytesIO(content)).slides, start=1):
        for shape in slide.placeholders:
            body = shape.placeholder_format.type in {PP_PLACEHOLDER.BODY, PP_PLACEHOLDER.OBJECT}
            paragraphs = _paragraphs(shape.text_frame) if body and shape.has_text_frame else []
            if len(paragraphs) > 1:
                points.setdefault(number, set()).update(paragraphs)
        frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        if frame is not None and (paragraphs := _paragraphs(frame)):
            notes[number] = paragraphs
    return notes, points


def _paragraphs(frame: Any) -> list[str]:
    return [text for paragraph in frame.paragraphs if (text := paragraph.text.strip())]


__all__ = ["core_properties", "join_cells", "partition_docx", "partition_pptx", "sensible_title"]
