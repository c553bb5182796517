"""OpenDocument text: styles and outline levels say what a paragraph is; what was deleted stays out."""

import re
from collections.abc import Iterator
from io import BytesIO
from zipfile import ZipFile

from lxml import etree

from tidemark.adapters.partition.data.xml import parse_xml
from tidemark.adapters.partition.formats import damaged
from tidemark.adapters.partition.html.lines import LINE_END
from tidemark.adapters.partition.html.reader import elements_of
from tidemark.adapters.partition.html.tree import language_code
from tidemark.adapters.partition.titles import sensible_title
from tidemark.domain.documents import ElementKind, PartitionedDocument

_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_DUBLIN = "{http://purl.org/dc/elements/1.1/}"
_SKIPPED = frozenset(
    {f"{_TEXT}tracked-changes", f"{_TEXT}sequence-decls", f"{_TEXT}table-of-content",
     f"{_TEXT}alphabetical-index", f"{_TEXT}illustration-index", f"{_TEXT}table-index",
     f"{_TEXT}bibliography-mark", f"{_OFFICE}annotation", f"{_OFFICE}forms", f"{_TEXT}variable-decls",
     f"{_TEXT}user-field-decls", f"{_TEXT}ruby-text"}
)  # fmt: skip
_CODE = re.compile(r"code|preformatted|source|listing|verbatim|terminal", re.IGNORECASE)
_QUOTE = re.compile(r"quot", re.IGNORECASE)
_CAPTION = re.compile(r"caption|^(illustration|figure|drawing|table)$", re.IGNORECASE)
_LEVEL = re.compile(r"heading[ _](\d)", re.IGNORECASE)
_MAX_REPEATED = 200


def partition_odt(content: bytes, name: str) -> PartitionedDocument:
    """Partition an ODT file; ``name`` names it in errors. Raises ``DocumentError``."""
    with ZipFile(BytesIO(content)) as archive:
        there = set(archive.namelist())
        if "content.xml" not in there:
            raise damaged(name, "it has no content.xml")
        root = parse_xml(archive.read("content.xml"), name)
        meta = parse_xml(archive.read("meta.xml"), name) if "meta.xml" in there else None
        styles = parse_xml(archive.read("styles.xml"), name) if "styles.xml" in there else None
    body = root.find(f"{_OFFICE}body/{_OFFICE}text")
    if body is None:
        raise damaged(name, "it has no text body")
    reader = _Reader(_style_names(root, styles))
    out = etree.Element("div")
    reader.blocks(body, out)
    for mark, note in reader.notes:
        etree.SubElement(out, "p").text = f"[{mark}] {note}"
    elements = tuple(elements_of(out))
    title, language = "", None
    if meta is not None:
        title = sensible_title(meta.findtext(f".//{_DUBLIN}title") or "")
        language = language_code(meta.findtext(f".//{_DUBLIN}language") or "")
    heading = next((e.text for e in elements if e.kind is ElementKind.TITLE), "")
    return PartitionedDocument(reader.title or title or heading, elements, language)


def _style_names(*roots: etree._Element | None) -> dict[str, str]:
    """By style the name that a reader of the program sees: automatic styles go by their parent's."""
    names: dict[str, str] = {}
    for root in roots:
        if root is None:
            continue
        for style in root.iter(f"{_STYLE}style"):
            own = style.get(f"{_STYLE}name") or ""
            shown = style.get(f"{_STYLE}display-name") or own.replace("_20_", " ")
            parent = (style.get(f"{_STYLE}parent-style-name") or "").replace("_20_", " ")
            automatic = re.fullmatch(r"[A-Z]\d+", own) is not None
            names[own] = parent if automatic and parent else shown
    return names


class _Reader:
    """notes: the marks and texts of foot- and endnotes, which go to the end. title: of the title's style."""

    def __init__(self, styles: dict[str, str]) -> None:
        self._styles = styles
        self.notes: list[tuple[str, str]] = []
        self.title = ""

    def blocks(self, parent: etree._Element, out: etree._Element) -> None:
        for element in parent:
            tag = element.tag
            if tag in _SKIPPED:
                continue
            if tag == f"{_TEXT}h":
                self._heading(element, out)
            elif tag == f"{_TEXT}p":
                self._paragraph(element, out)
            elif tag == f"{_TEXT}list":
                into = etree.SubElement(out, "ul")
                for item in element:
                    if item.tag == f"{_TEXT}list-header":
                        self.blocks(item, out)
                    else:
                        self.blocks(item, etree.SubElement(into, "li"))
            elif tag == f"{_TABLE}table":
                self._table(element, out)
            else:  # sections, frames with their text boxes
                self.blocks(element, out)

    def _heading(self, element: etree._Element, out: etree._Element) -> None:
        text = self._text(element).replace(LINE_END, " ")
        level = element.get(f"{_TEXT}outline-level") or "1"
        # A title above numbered headings is one level up from them.
        number = int(level) + int(bool(self.title)) if level.isdigit() else 1
        if text.strip():
            etree.SubElement(out, f"h{min(max(number, 1), 6)}").text = " ".join(text.split())
        self._boxes(element, out)

    def _paragraph(self, element: etree._Element, out: etree._Element) -> None:
        style = self._styles.get(element.get(f"{_TEXT}style-name") or "", "")
        style = style or (element.get(f"{_TEXT}style-name") or "").replace("_20_", " ")
        text = self._text(element)
        if text.strip():
            self._styled(style, text, out)
        self._boxes(element, out)

    def _styled(self, style: str, text: str, out: etree._Element) -> None:
        level = _LEVEL.fullmatch(style)
        if style == "Title":
            self.title = self.title or " ".join(text.replace(LINE_END, " ").split())
            etree.SubElement(out, "h1").text = " ".join(text.split())
        elif level and out.tag == "div":
            etree.SubElement(out, f"h{min(int(level[1]) + int(bool(self.title)), 6)}").text = text
        elif _CODE.search(style) and out.tag == "div":
            line = text.replace(LINE_END, "\n")
            last = out[-1] if len(out) else None
            if (
                last is not None and last.tag == "pre"
            ):  # each line of code is a paragraph of its own
                last.text = f"{last.text}\n{line}"
            else:
                etree.SubElement(out, "pre").text = f"\n{line}"
        elif _QUOTE.search(style):
            etree.SubElement(etree.SubElement(out, "blockquote"), "p").text = text
        elif _CAPTION.search(style):
            etree.SubElement(out, "p", {"class": "caption"}).text = text
        else:
            etree.SubElement(out, "p").text = text

    def _boxes(self, element: etree._Element, out: etree._Element) -> None:
        """Text boxes are anchored in a paragraph and stand beside it."""
        for box in element.iter("{*}text-box"):
            self.blocks(box, out)

    def _text(self, element: etree._Element) -> str:
        return "".join(self._words(element))

    def _words(self, element: etree._Element) -> Iterator[str]:
        yield element.text or ""
        for child in element:
            yield from self._word(child)
            yield child.tail or ""

    def _word(self, child: etree._Element) -> Iterator[str]:
        tag = child.tag
        if tag in _SKIPPED or (isinstance(tag, str) and tag.endswith("}frame")):
            return
        if tag == f"{_TEXT}s":
            count = child.get(f"{_TEXT}c") or "1"
            yield " " * min(int(count) if count.isdigit() else 1, 500)
        elif tag == f"{_TEXT}tab":
            yield "\t"
        elif tag == f"{_TEXT}line-break":
            yield LINE_END
        elif tag == f"{_TEXT}note":
            mark = child.findtext(f"{_TEXT}note-citation") or str(len(self.notes) + 1)
            body = child.find(f"{_TEXT}note-body")
            note = " ".join(self._text(body).split()) if body is not None else ""
            self.notes.append((mark, note.replace(LINE_END, " ")))
            yield f"[{mark}]"
        else:
            yield from self._words(child)

    def _table(self, element: etree._Element, out: etree._Element) -> None:
        table = etree.SubElement(out, "table")
        for row in element.iter(f"{_TABLE}table-row"):
            if next(row.iterancestors(f"{_TABLE}table")) is not element:
                continue  # of a table within this one
            parent = row.getparent()
            head = parent is not None and parent.tag == f"{_TABLE}table-header-rows"
            cells = list(self._cells(row, "th" if head else "td"))
            for _ in range(_repeated(row, "rows") if any(cell.text for cell in cells) else 1):
                table.append(_copy("tr", cells))
        if all(len(row) == 0 for row in table):
            out.remove(table)

    def _cells(self, row: etree._Element, tag: str) -> Iterator[etree._Element]:
        for cell in row:
            if cell.tag != f"{_TABLE}table-cell":
                continue  # what another cell covers
            made = etree.Element(tag)
            lines = (self._text(p) for p in cell.iter(f"{_TEXT}p", f"{_TEXT}h"))
            made.text = " ".join(" ".join(line.replace(LINE_END, " ").split()) for line in lines)
            for ours, theirs in (
                ("colspan", "number-columns-spanned"),
                ("rowspan", "number-rows-spanned"),
            ):
                if cell.get(f"{_TABLE}{theirs}"):
                    made.set(ours, cell.get(f"{_TABLE}{theirs}") or "1")
            for _ in range(_repeated(cell, "columns")):
                yield made


def _copy(tag: str, cells: list[etree._Element]) -> etree._Element:
    row = etree.Element(tag)
    for cell in cells:
        made = etree.SubElement(row, cell.tag)
        made.attrib.update(cell.attrib)
        made.text = cell.text
    return row


def _repeated(element: etree._Element, what: str) -> int:
    """How often a row or a cell stands there; spreadsheets fill whole sheets so."""
    value = element.get(f"{_TABLE}number-{what}-repeated") or "1"
    return min(max(int(value), 1), _MAX_REPEATED) if value.isdigit() and len(value) < 9 else 1
