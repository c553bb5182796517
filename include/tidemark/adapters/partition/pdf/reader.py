"""How a PDF is read: by its own text, or by OCR of what its pages show, where that is switched on."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from io import BytesIO
from types import ModuleType
from typing import Any

from tidemark.adapters.partition.formats import over_limit
from tidemark.adapters.partition.html.tables import header_rows_of, join_cells
from tidemark.adapters.partition.html.tree import language_code
from tidemark.adapters.partition.options import PdfStrategy
from tidemark.adapters.partition.pdf.lines import Line, read_pdf
from tidemark.adapters.partition.titles import sensible_title
from tidemark.adapters.partition.unstructured import table_of
from tidemark.domain.documents import Element, ElementKind, PartitionedDocument
from tidemark.domain.errors import ConfigurationError, DocumentError

# PDF to Elements: headings by their fonts, paragraphs and lists by their lines, pages by their numbers.
#
# Unstructured's own "fast" strategy reads PDFs with the same pdfminer, but its module cannot be imported
# without gigabytes of vision models, and it drops the fonts, which tell headings better than words do.

_BULLET = re.compile(r"\s*([•‣◦▪■●○·∙–—*\uf0b7\uf0a7-])\s+(?=\S)")
_NUMBER = re.compile(r"\s*\(?(\d{1,2}|[a-z]|[ivx]{1,4})[.)]\s+\S")
_CAPTION = re.compile(
    r"(figure|fig\.|table|abbildung|tabelle|listing|box|chart)\s+[\dA-Z][\d.]*\s*[:.–—|-]",
    re.IGNORECASE,
)
_LARGER = 1.12
_HEADING_CHARS = 160
_HEADING_LINES = 3


@dataclass(frozen=True, slots=True)
class _Paragraph:
    lines: tuple[Line, ...]

    @property
    def first(self) -> Line:
        return self.lines[0]


def partition_pdf(content: bytes, name: str, max_pages: int) -> PartitionedDocument:
    """Partition a PDF's text layer; ``name`` names it in errors. Raises ``DocumentError``."""
    read = read_pdf(content, name, max_pages)
    body = _body_font(read.lines)
    paragraphs = list(_paragraphs(read.lines, body))
    levels = _heading_levels(paragraphs, body)
    words = {
        word for line in read.lines for word in re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)*", line.text)
    }
    elements = list(_across_pages(_text_elements(paragraphs, levels, words), words))
    title = sensible_title(read.title)
    if not title:
        # The largest heading of the first page stands for a title.
        heads = [e for e in elements if e.kind is ElementKind.TITLE and e.page_number == 1]
        title = min(heads, key=lambda e: e.level or 9).text if heads else ""
    return PartitionedDocument(title, tuple(elements), language_code(read.language))


def _body_font(lines: Sequence[Line]) -> tuple[float, bool]:
    """Size and weight of most of the text."""
    fonts: Counter[tuple[float, bool]] = Counter()
    for line in lines:
        if not line.mono and line.table is None:
            fonts[(line.size, line.bold)] += len(line.text)
    return fonts.most_common(1)[0][0] if fonts else (0.0, False)


def _paragraphs(lines: Sequence[Line], body: tuple[float, bool]) -> Iterator[_Paragraph]:
    current: list[Line] = []
    for line in lines:
        if current and _parts(current, line, body):
            yield _Paragraph(tuple(current))
            current = []
        current.append(line)
    if current:
        yield _Paragraph(tuple(current))


def _parts(current: Sequence[Line], line: Line, body: tuple[float, bool]) -> bool:
    """Whether ``line`` begins a paragraph after ``current``."""
    before = current[-1]
    if line.page != before.page or line.table is not None or before.table is not None:
        return True
    same_font = (line.size, line.bold, line.mono) == (before.size, before.bold, before.mono)
    if not same_font and (
        line.mono != before.mono or _stands_out(line, body) != _stands_out(before, body)
    ):
        return True
    if _stands_out(line, body) and line.size != before.size:
        return True
    gap, height = line.top - before.bottom, max(line.bottom - line.top, 1.0)
    if line.box != before.box and not (line.mono and before.mono and 0 <= gap < height):
        return gap < -height / 2 or gap > height * 0.5 or not _runs_on(before, line)
    if line.mono and before.mono:
        return gap > height * 2.5
    if _BULLET.match(line.text) or (_NUMBER.match(line.text) and line.x0 <= current[0].x0 + 2):
        return True
    return gap > height * 0.6


def _runs_on(before: Line, line: Line) -> bool:
    """Whether the next block goes on with the sentence of the one before."""
    return line.text.lstrip()[:1].islower() and not before.text.rstrip().endswith(
        (".", ":", "!", "?")
    )


def _stands_out(line: Line, body: tuple[float, bool]) -> bool:
    size, bold = body
    return line.size >= size * _LARGER or (line.bold and not bold and line.size >= size * 0.97)


def _is_heading(paragraph: _Paragraph, body: tuple[float, bool]) -> bool:
    text = " ".join(line.text.strip() for line in paragraph.lines)
    if (
        paragraph.first.table
        or paragraph.first.mono
        or len(text) > _HEADING_CHARS
        or len(paragraph.lines) > _HEADING_LINES
    ):
        return False
    if not all(_stands_out(line, body) for line in paragraph.lines):
        return False
    if text.endswith((".", ",", ";", ":")) and not re.fullmatch(r"[\d.]+", text) and len(text) > 60:
        return False
    bullet = _BULLET.match(text)
    return bool(re.search(r"[^\W\d_]", text)) and bullet is None and not _CAPTION.match(text)


def _heading_levels(paragraphs: Sequence[_Paragraph], body: tuple[float, bool]) -> dict[int, int]:
    """Level of each paragraph that is a heading, by its index: larger is higher, bold of body size lowest."""
    headings = {i: p.first for i, p in enumerate(paragraphs) if _is_heading(p, body)}
    if len(headings) > 0.6 * len(paragraphs) and len(paragraphs) > 5:
        return {}  # when most of it stands out, nothing does
    sizes = sorted({line.size for line in headings.values()}, reverse=True)
    return {i: min(sizes.index(line.size) + 1, 6) for i, line in headings.items()}


def _text_elements(
    paragraphs: Sequence[_Paragraph], levels: dict[int, int], words: set[str]
) -> Iterator[Element]:
    for index, paragraph in enumerate(paragraphs):
        page = paragraph.first.page
        if paragraph.first.table is not None:
            yield _ruled_table(paragraph.first.table, page)
            continue
        if paragraph.first.mono:
            yield Element(ElementKind.CODE, _verbatim(paragraph.lines), None, page)
            continue
        text = _joined([line.text for line in paragraph.lines], words)
        if not text:
            continue
        bullet = _BULLET.match(text)
        if index in levels:
            yield Element(ElementKind.TITLE, text, levels[index], page)
        elif bullet:
            if text[bullet.end() :].strip():
                yield Element(ElementKind.LIST_ITEM, text[bullet.end() :], 1, page)
        elif _NUMBER.match(text):
            yield Element(ElementKind.LIST_ITEM, text, 1, page)
        elif _CAPTION.match(text):
            yield Element(ElementKind.CAPTION, text, None, page)
        else:
            yield Element(ElementKind.TEXT, text, None, page)


def _ruled_table(rows: Sequence[Sequence[str]], page: int) -> Element:
    cells = [list(row) for row in rows]
    text = "\n".join(join_cells(row) for row in cells)
    return Element(ElementKind.TABLE, text, None, page, header_rows=header_rows_of(cells))


def _verbatim(lines: Sequence[Line]) -> str:
    """Code with the indentation that its place on the page shows."""
    left = min(line.x0 for line in lines)
    widths = [(line.x1 - line.x0) / len(line.text.rstrip()) for line in lines if line.text.strip()]
    width = sorted(widths)[len(widths) // 2] if widths else 5.0
    rows: list[str] = []
    for line in lines:
        indent = round((line.x0 - left) / width) if width > 0 else 0
        rows.append(" " * min(indent, 60) + line.text.strip())
    return "\n".join(rows)


def _joined(lines: Sequence[str], words: set[str]) -> str:
    """Lines as one, words that were parted at a line's end made whole."""
    text = ""
    for line in (" ".join(line.split()) for line in lines):
        if not line:
            continue
        text = _with_next(text, line, words) if text else line
    return text.replace("\u00ad", "")


def _with_next(text: str, line: str, words: set[str]) -> str:
    parted = re.search(r"([^\W\d_]+(?:-[^\W\d_]+)*)[-\u00ad]$", text)
    begun = re.match(r"[^\W\d_]+", line)
    if parted is None or begun is None or not begun[0][0].islower():
        return f"{text} {line}"
    hyphenated = f"{parted[1]}-{begun[0]}"
    # A compound that is written with its hyphen elsewhere keeps it.
    if hyphenated in words and parted[1] + begun[0] not in words:
        return text + line
    return text[:-1] + line


def _across_pages(elements: Iterator[Element], words: set[str]) -> Iterator[Element]:
    """Join a sentence that a page break parted; it belongs to the page where it begins."""
    held: Element | None = None
    for element in elements:
        if held is not None and _continues_table(held, element):
            rest = element.text.split("\n")[held.header_rows :]
            held = replace(held, text="\n".join([held.text, *rest]))
            continue
        if held is not None and _continues(held, element):
            held = replace(held, text=_with_next(held.text, element.text, words))
            continue
        if held is not None:
            yield held
        held = element
    if held is not None:
        yield held


def _continues_table(before: Element, after: Element) -> bool:
    """A table that goes on over the page under the same header."""
    if before.kind is not ElementKind.TABLE or after.kind is not ElementKind.TABLE:
        return False
    rows = before.header_rows
    same = before.text.split("\n")[:rows] == after.text.split("\n")[:rows]
    return rows > 0 and same and before.page_number != after.page_number


def _continues(before: Element, after: Element) -> bool:
    prose = (
        before.kind in {ElementKind.TEXT, ElementKind.LIST_ITEM} and after.kind is ElementKind.TEXT
    )
    turned = before.page_number != after.page_number
    open_end = not before.text.rstrip().endswith((".", ":", "!", "?", "”", '"'))
    return prose and turned and open_end and after.text[:1].islower()


# What recognises text in pictures, where a PDF has none of its own or its layout is asked for.

_DPI = 200
_MAX_PIXELS = 40_000_000
_KINDS = {"ListItem": ElementKind.LIST_ITEM, "FigureCaption": ElementKind.CAPTION,
          "Formula": ElementKind.FORMULA, "CodeSnippet": ElementKind.CODE}  # fmt: skip
_RUNNING = frozenset({"Header", "Footer", "PageNumber", "PageBreak", "Image"})


def partition_pdf_by(
    strategy: PdfStrategy, content: bytes, name: str, max_pages: int
) -> PartitionedDocument:
    """Partition a PDF; ``name`` names it in errors.

    Raises ``DocumentError``, and ``ConfigurationError`` when a package that the strategy needs is missing.
    """
    if strategy == "hi_res":
        return _by_layout(content, name, max_pages)
    try:
        return partition_pdf(content, name, max_pages)
    except DocumentError as error:
        if "only images" not in error.message:
            raise
        if strategy == "fast":
            raise DocumentError(
                error.stage,
                error.message,
                "Recognise its text (OCR) and save it again; or install tesseract and the package "
                'pytesseract, and set pdf_strategy to "ocr".',
            ) from error
    return _by_ocr(content, name, max_pages)


def _by_ocr(content: bytes, name: str, max_pages: int) -> PartitionedDocument:
    """Read the pictures of pages: each page as plain text, with its number."""
    from tidemark.adapters.partition.html.reader import elements_of
    from tidemark.adapters.partition.text.plain import read_plain_text

    tesseract = _needed("pytesseract", "ocr", "tesseract and the package pytesseract")
    elements: list[Element] = []
    for number, picture in _pages(content, name, max_pages):
        try:
            text = str(tesseract.image_to_string(picture))
        except tesseract.TesseractNotFoundError as error:
            raise ConfigurationError(
                'The option pdf_strategy is "ocr" and the program tesseract is not installed.',
                'Install tesseract (tesseract-ocr), or set pdf_strategy to "fast".',
            ) from error
        root = read_plain_text(text, titled=number == 1)
        elements += [replace(element, page_number=number) for element in elements_of(root)]
    if not elements:
        raise DocumentError(
            "partition", f"{name} shows no text that could be recognised.", "Scan it again."
        )
    title = next((e.text for e in elements if e.kind is ElementKind.TITLE), "")
    return PartitionedDocument(title, tuple(elements))


def _pages(content: bytes, name: str, max_pages: int) -> Iterator[tuple[int, Any]]:
    pdfium = _needed("pypdfium2", "ocr", "the package pypdfium2")
    document = pdfium.PdfDocument(BytesIO(content))
    try:
        if len(document) > max_pages:
            raise over_limit(name, f"has more than {max_pages} pages")
        for index in range(len(document)):
            page = document[index]
            width, height = page.get_size()
            # A page may be declared as large as a house.
            scale = min(_DPI / 72, (_MAX_PIXELS / max(width * height, 1)) ** 0.5)
            yield index + 1, page.render(scale=scale, grayscale=True).to_pil()
            page.close()
    finally:
        document.close()


def _by_layout(content: bytes, name: str, max_pages: int) -> PartitionedDocument:
    """Read a PDF by Unstructured's layout model."""
    module = _needed("unstructured.partition.pdf", "hi_res", "unstructured[pdf] and tesseract")
    partition = vars(module)["partition_pdf"]
    parts = partition(
        file=BytesIO(content), strategy="hi_res", languages=["eng"], infer_table_structure=True
    )
    elements = tuple(_elements(parts))
    if elements and (elements[-1].page_number or 0) > max_pages:
        raise over_limit(name, f"has more than {max_pages} pages")
    title = next((e.text for e in elements if e.kind is ElementKind.TITLE), "")
    return PartitionedDocument(title, elements)


def _elements(parts: list[Any]) -> Iterator[Element]:
    for part in parts:
        text, page = (part.text or "").strip(), part.metadata.page_number
        if part.category in _RUNNING or not text:
            continue
        if part.category == "Title":
            level = min((part.metadata.category_depth or 0) + 1, 6)
            yield Element(ElementKind.TITLE, " ".join(text.split()), level, page)
        elif part.category == "Table":
            table = table_of(part)
            if table is not None:
                yield table
        else:
            kind = _KINDS.get(part.category, ElementKind.TEXT)
            listed = kind is ElementKind.LIST_ITEM
            yield Element(kind, text, 1 if listed else None, page)


def _needed(package: str, strategy: str, what: str) -> ModuleType:
    try:
        return import_module(package)
    except ImportError as error:
        raise ConfigurationError(
            f'The option pdf_strategy is "{strategy}" and {what} cannot be loaded: {error}.',
            f'Install {what}, or set pdf_strategy to "fast".',
        ) from error
