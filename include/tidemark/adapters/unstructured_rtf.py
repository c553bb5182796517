"""RTF to Elements: styles and outline levels are its headings, list marks its items, rows its tables."""

import re

from lxml import etree

from tidemark.adapters.html_lines import LINE_END
from tidemark.adapters.rtf_reader import Paragraph, read_rtf, rows_of
from tidemark.adapters.unstructured_containers import damaged
from tidemark.adapters.unstructured_html import elements_of
from tidemark.adapters.unstructured_office import sensible_title
from tidemark.adapters.unstructured_plain_text import add_block
from tidemark.domain.model import ElementKind, PartitionedDocument

_HEADING = re.compile(
    r"(?:heading|überschrift|titre|título|titolo|kop|rubrik) ?(\d)", re.IGNORECASE
)
_CODE = re.compile(r"code|preformatted|source|listing|verbatim|macro", re.IGNORECASE)
_QUOTE = re.compile(r"quot", re.IGNORECASE)
_LABEL = re.compile(r"\(?(?:\w{1,3}|\d{1,3}(?:\.\d{1,3})*)[.)]?")


def partition_rtf(content: bytes, name: str) -> PartitionedDocument:
    """Partition an RTF file; ``name`` names it in errors. Raises ``DocumentError``."""
    rtf = read_rtf(content)
    if not rtf.whole:
        raise damaged(name, "its groups are not closed")
    out = etree.Element("div")
    titled = any(paragraph.style.lower() == "title" for paragraph in rtf.paragraphs)
    for part in rows_of(rtf.paragraphs):
        if isinstance(part, list):
            _table(part, out)
        else:
            _block(part, out, deeper=int(titled))
    for number, note in enumerate(rtf.notes, start=1):
        add_block(out, "p", f"[{number}] {note}")
    elements = tuple(elements_of(out))
    heading = next((e.text for e in elements if e.kind is ElementKind.TITLE), "")
    return PartitionedDocument(sensible_title(rtf.title) or heading, elements)


def _block(paragraph: Paragraph, out: etree._Element, *, deeper: int) -> None:
    text, style = paragraph.text, paragraph.style
    heading = _HEADING.match(style)
    level = int(heading[1]) if heading else paragraph.level
    if style.lower() == "title":
        add_block(out, "h1", _folded(text))
    elif level:
        add_block(out, f"h{min(max(level + deeper, 1), 6)}", _folded(text))
    elif paragraph.mark is not None:
        _item(paragraph, out)
    elif paragraph.mono or _CODE.search(style):
        _code(text.replace(LINE_END, "\n"), out)
    elif _QUOTE.search(style):
        add_block(etree.SubElement(out, "blockquote"), "p", text)
    else:
        caption = add_block(out, "p", text)
        if style.lower() == "caption":
            caption.set("class", "caption")


def _item(paragraph: Paragraph, out: etree._Element) -> None:
    last = out[-1] if len(out) else None
    listing = last if last is not None and last.tag == "ul" else etree.SubElement(out, "ul")
    for _ in range(paragraph.depth - 1):
        inner = listing[-1] if len(listing) and listing[-1].tag == "ul" else None
        listing = inner if inner is not None else etree.SubElement(listing, "ul")
    label = (paragraph.mark or "").strip()
    said = f"{label} " if _LABEL.fullmatch(label) and label.lower() != "o" else ""
    add_block(listing, "li", said + paragraph.text)


def _code(text: str, out: etree._Element) -> None:
    """Each line of code is a paragraph of its own."""
    last = out[-1] if len(out) else None
    if last is not None and last.tag == "pre":
        block = add_block(etree.Element("div"), "pre", f"{last.text}\n{text}")
        out.replace(last, block)
    else:
        add_block(out, "pre", f"\n{text}")


def _table(cells: list[Paragraph], out: etree._Element) -> None:
    table = etree.SubElement(out, "table")
    rows: dict[int, dict[int, list[str]]] = {}
    headers: set[int] = set()
    for paragraph in cells:
        rows.setdefault(paragraph.row, {}).setdefault(paragraph.cell, []).append(paragraph.text)
        if paragraph.header:
            headers.add(paragraph.row)
    for number, columns in sorted(rows.items()):
        line = etree.SubElement(table, "tr")
        for column in range(max(columns) + 1):
            text = _folded(" ".join(columns.get(column, [])))
            add_block(line, "th" if number in headers else "td", text)


def _folded(text: str) -> str:
    return " ".join(text.replace(LINE_END, " ").split())
