"""How a PDF is read: by its own text, or by recognising what its pages show, where that is switched on."""

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from io import BytesIO
from types import ModuleType
from typing import Any

from tidemark.adapters.html_tables import header_rows_of
from tidemark.adapters.unstructured_options import PdfStrategy
from tidemark.adapters.unstructured_pdf import partition_pdf
from tidemark.domain.errors import ConfigurationError, DocumentError
from tidemark.domain.model import CELL, Element, ElementKind, PartitionedDocument

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
    return _by_recognition(content, name, max_pages)


def _by_recognition(content: bytes, name: str, max_pages: int) -> PartitionedDocument:
    """Read the pictures of pages: each page as plain text, with its number."""
    from tidemark.adapters.unstructured_html import elements_of
    from tidemark.adapters.unstructured_plain_text import read_plain_text

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
            raise DocumentError(
                "partition",
                f"{name} has more than {max_pages} pages.",
                "Exclude it from the source, or split it: this limit is no setting.",
            )
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
        raise DocumentError(
            "partition",
            f"{name} has more than {max_pages} pages.",
            "Exclude it from the source, or split it: this limit is no setting.",
        )
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
            yield _table(part, text, page)
        else:
            kind = _KINDS.get(part.category, ElementKind.TEXT)
            listed = kind is ElementKind.LIST_ITEM
            yield Element(kind, text, 1 if listed else None, page)


def _table(part: Any, text: str, page: int | None) -> Element:
    from lxml import etree

    from tidemark.adapters.html_tables import table_text

    html = part.metadata.text_as_html
    table = etree.fromstring(html, etree.HTMLParser()).find(".//table") if html else None
    read = table_text(table) if table is not None else None
    if read is None or not read.text:
        return Element(ElementKind.TABLE, text, None, page)
    rows = [line.split(CELL) for line in read.text.split("\n")]
    header = read.header_rows or header_rows_of(rows)
    return Element(ElementKind.TABLE, read.text, None, page, header_rows=header)


def _needed(package: str, strategy: str, what: str) -> ModuleType:
    try:
        return import_module(package)
    except ImportError as error:
        raise ConfigurationError(
            f'The option pdf_strategy is "{strategy}" and {what} cannot be loaded: {error}.',
            f'Install {what}, or set pdf_strategy to "fast".',
        ) from error
