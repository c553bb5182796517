"""One reader for each format; what a format needs is imported when its first document comes."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from tidemark.adapters.text_decoding import decode
from tidemark.adapters.unstructured_containers import Format
from tidemark.adapters.unstructured_options import UnstructuredOptions
from tidemark.domain.model import ElementKind, PartitionedDocument, RawDocument


@dataclass(frozen=True, slots=True)
class Reading:
    """A document to be read. furniture: blocks of its site that are dropped from its pages."""

    raw: RawDocument
    options: UnstructuredOptions
    furniture: frozenset[int] = frozenset()

    def text(self) -> str:
        """Its bytes decoded. Raises ``DocumentError`` when they are no text."""
        return decode(self.raw.content, self.raw.charset, self.raw.uri)


def _html(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.unstructured_html import partition_page

    depth = reading.options.max_html_depth
    return partition_page(reading.text(), reading.raw.uri, depth, reading.furniture)


def _markdown(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.unstructured_html import elements_of
    from tidemark.adapters.unstructured_markdown import read_markdown

    page = read_markdown(reading.text(), reading.raw.uri, reading.options.max_html_depth)
    elements = tuple(elements_of(page.root))
    return _titled(PartitionedDocument(page.title, elements, page.language))


def _text(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.unstructured_html import elements_of
    from tidemark.adapters.unstructured_plain_text import read_plain_text

    root = read_plain_text(reading.text())
    return _titled(PartitionedDocument("", tuple(elements_of(root))))


def _rst(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.unstructured_html import elements_of
    from tidemark.adapters.unstructured_rst import read_rst

    root = read_rst(reading.text(), reading.raw.uri, reading.options.max_html_depth)
    return _titled(PartitionedDocument("", tuple(elements_of(root))))


def _asciidoc(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.unstructured_asciidoc import read_asciidoc
    from tidemark.adapters.unstructured_html import elements_of

    page = read_asciidoc(reading.text(), reading.raw.uri)
    elements = tuple(elements_of(page.root))
    return _titled(PartitionedDocument(page.title, elements, page.language))


def _docx(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.unstructured_office import partition_docx

    return partition_docx(reading.raw.content, reading.raw.uri, reading.options.max_cells)


def _pptx(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.unstructured_office import partition_pptx

    return partition_pptx(reading.raw.content)


def _xlsx(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.unstructured_sheets import partition_xlsx

    return partition_xlsx(reading.raw.content, reading.raw.uri, reading.options.max_cells)


def _csv(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.unstructured_sheets import partition_csv

    return partition_csv(reading.text(), reading.raw.uri, reading.options.max_cells)


def _odt(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.unstructured_odt import partition_odt

    return partition_odt(reading.raw.content, reading.raw.uri)


def _epub(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.unstructured_epub import partition_epub

    return partition_epub(reading.raw.content, reading.raw.uri, reading.options.max_html_depth)


def _rtf(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.unstructured_rtf import partition_rtf

    return partition_rtf(reading.raw.content, reading.raw.uri)


def _pdf(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.unstructured_pdf_strategies import partition_pdf_by

    options = reading.options
    return partition_pdf_by(
        options.pdf_strategy, reading.raw.content, reading.raw.uri, options.max_pages
    )


def _email(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.unstructured_email import partition_email

    raw = reading.raw
    return partition_email(raw.content, raw.uri, reading.options.max_html_depth)


def _msg(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.unstructured_msg import partition_msg

    raw = reading.raw
    return partition_msg(raw.content, raw.uri, reading.options.max_html_depth)


def _xml(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.unstructured_xml import partition_xml

    raw, depth = reading.raw, reading.options.max_html_depth
    return partition_xml(raw.content, raw.uri, raw.charset, depth, reading.furniture)


def _json(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.unstructured_json import partition_json

    return partition_json(reading.text(), reading.raw.uri, reading.options.max_html_depth)


def _json_lines(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.unstructured_json import partition_json_lines

    return partition_json_lines(reading.text(), reading.raw.uri, reading.options.max_html_depth)


def _notebook(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.unstructured_notebook import partition_notebook

    options = reading.options
    return _titled(
        partition_notebook(
            reading.text(), reading.raw.uri, options.max_html_depth, options.max_output_characters
        )
    )


def _code(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.unstructured_code import partition_code

    return partition_code(reading.raw)


READERS: dict[Format, Callable[[Reading], PartitionedDocument]] = {
    Format.HTML: _html,
    Format.MARKDOWN: _markdown,
    Format.TEXT: _text,
    Format.RST: _rst,
    Format.ASCIIDOC: _asciidoc,
    Format.DOCX: _docx,
    Format.PPTX: _pptx,
    Format.XLSX: _xlsx,
    Format.ODT: _odt,
    Format.EPUB: _epub,
    Format.RTF: _rtf,
    Format.PDF: _pdf,
    Format.CSV: _csv,
    Format.EMAIL: _email,
    Format.MSG: _msg,
    Format.XML: _xml,
    Format.JSON: _json,
    Format.JSON_LINES: _json_lines,
    Format.NOTEBOOK: _notebook,
    Format.CODE: _code,
}


def _titled(document: PartitionedDocument) -> PartitionedDocument:
    """With its heading of the first level as the title, where nothing else names it and there is one."""
    if document.title:
        return document
    tops = [e.text for e in document.elements if e.kind is ElementKind.TITLE and e.level == 1]
    leads = bool(tops) and document.elements[0].text == tops[0]
    return replace(document, title=tops[0]) if leads or len(tops) == 1 else document
