"""Bytes of any readable format to Elements: one reader for each (docs/partitioning.md).

Known without importing a reader: the fingerprint, so that a run with nothing to do does not pay for it.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version

from lxml import etree

from tidemark.adapters.decoding import decode
from tidemark.adapters.partition.formats import Format, damaged, detect_format, nested_too_deeply
from tidemark.adapters.partition.html.cleaner import CLEANER_VERSION
from tidemark.adapters.partition.options import PartitionOptions
from tidemark.adapters.partition.titles import title_of_name, with_title_of_headings
from tidemark.domain.documents import PartitionedDocument, RawDocument
from tidemark.domain.errors import DocumentError, PermanentError, TidemarkError
from tidemark.domain.hashing import Canonical, digest_of, fingerprint

# One reader for each format; what a format needs is imported when its first document comes.


@dataclass(frozen=True, slots=True)
class Reading:
    """A document to be read. boilerplate: blocks of its site that are dropped from its pages."""

    raw: RawDocument
    options: PartitionOptions
    boilerplate: frozenset[int] = frozenset()

    def text(self) -> str:
        """Its bytes decoded. Raises ``DocumentError`` when they are no text."""
        return decode(self.raw.content, self.raw.charset, self.raw.uri)


def _html(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.partition.html.reader import partition_page

    depth = reading.options.max_html_depth
    return partition_page(reading.text(), reading.raw.uri, depth, reading.boilerplate)


def _markdown(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.partition.html.reader import elements_of
    from tidemark.adapters.partition.text.markdown import read_markdown

    page = read_markdown(reading.text(), reading.raw.uri, reading.options.max_html_depth)
    elements = tuple(elements_of(page.root))
    return with_title_of_headings(PartitionedDocument(page.title, elements, page.language))


def _text(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.partition.html.reader import elements_of
    from tidemark.adapters.partition.text.plain import read_plain_text

    root = read_plain_text(reading.text())
    return with_title_of_headings(PartitionedDocument("", tuple(elements_of(root))))


def _rst(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.partition.html.reader import elements_of
    from tidemark.adapters.partition.text.rst import read_rst

    root = read_rst(reading.text(), reading.raw.uri, reading.options.max_html_depth)
    return with_title_of_headings(PartitionedDocument("", tuple(elements_of(root))))


def _asciidoc(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.partition.html.reader import elements_of
    from tidemark.adapters.partition.text.asciidoc import read_asciidoc

    page = read_asciidoc(reading.text(), reading.raw.uri)
    elements = tuple(elements_of(page.root))
    return with_title_of_headings(PartitionedDocument(page.title, elements, page.language))


def _docx(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.partition.office.word import partition_docx

    return partition_docx(reading.raw.content, reading.raw.uri, reading.options.max_cells)


def _pptx(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.partition.office.slides import partition_pptx

    return partition_pptx(reading.raw.content)


def _xlsx(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.partition.office.sheets import partition_xlsx

    return partition_xlsx(reading.raw.content, reading.raw.uri, reading.options.max_cells)


def _csv(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.partition.office.sheets import partition_csv

    return partition_csv(reading.text(), reading.raw.uri, reading.options.max_cells)


def _odt(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.partition.office.odt import partition_odt

    return partition_odt(reading.raw.content, reading.raw.uri)


def _epub(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.partition.office.epub import partition_epub

    return partition_epub(reading.raw.content, reading.raw.uri, reading.options.max_html_depth)


def _rtf(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.partition.office.rtf import partition_rtf

    return partition_rtf(reading.raw.content, reading.raw.uri)


def _pdf(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.partition.pdf.reader import partition_pdf_by

    options = reading.options
    return partition_pdf_by(
        options.pdf_strategy, reading.raw.content, reading.raw.uri, options.max_pages
    )


def _email(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.partition.office.mail import partition_email

    raw = reading.raw
    return partition_email(raw.content, raw.uri, reading.options.max_html_depth)


def _msg(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.partition.office.mail import partition_msg

    raw = reading.raw
    return partition_msg(raw.content, raw.uri, reading.options.max_html_depth)


def _xml(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.partition.data.xml import partition_xml

    raw, depth = reading.raw, reading.options.max_html_depth
    return partition_xml(raw.content, raw.uri, raw.charset, depth, reading.boilerplate)


def _json(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.partition.data.json import partition_json

    return partition_json(reading.text(), reading.raw.uri, reading.options.max_html_depth)


def _json_lines(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.partition.data.json import partition_json_lines

    return partition_json_lines(reading.text(), reading.raw.uri, reading.options.max_html_depth)


def _notebook(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.partition.data.json import partition_notebook

    options = reading.options
    return with_title_of_headings(
        partition_notebook(
            reading.text(), reading.raw.uri, options.max_html_depth, options.max_output_characters
        )
    )


def _code(reading: Reading) -> PartitionedDocument:
    from tidemark.adapters.partition.code.source import partition_code

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


PARTITIONER_VERSION = 6
"""Ours. Raise it with any change that alters elements: every document is then partitioned again."""

_DECIDING = (
    "unstructured",
    "mammoth",
    "lxml",
    "markdown-it-py",
    "mdit-py-plugins",
    "docutils",
    "pdfminer.six",
    "pdfplumber",
    "openpyxl",
    "python-pptx",
    "python-oxmsg",
)


class DocumentPartitioner:
    """Cleans and partitions documents of every format that ``formats`` names."""

    def __init__(
        self,
        options: PartitionOptions | None = None,
        boilerplate: frozenset[int] = frozenset(),
    ) -> None:
        self._options = options or PartitionOptions()
        self._boilerplate = boilerplate

    @cached_property
    def fingerprint(self) -> str:
        """Of the libraries that decide the elements, our own version, and the options."""
        decided: dict[str, Canonical] = {
            "version": PARTITIONER_VERSION,
            "cleaner": CLEANER_VERSION,
            "libraries": {name: _version(name) for name in _DECIDING},
            "options": asdict(self._options),
        }
        if self._boilerplate:
            decided["furniture"] = digest_of(sorted(self._boilerplate))
        return fingerprint("partition", decided)

    def with_boilerplate(self, boilerplate: frozenset[int]) -> "DocumentPartitioner":
        """One that also drops these blocks of a site from its pages."""
        if boilerplate == self._boilerplate:
            return self
        return DocumentPartitioner(self._options, boilerplate)

    def partition(self, raw: RawDocument) -> PartitionedDocument:
        """Read one document. Raises ``DocumentError`` when its bytes are at fault."""
        options = self._options
        if len(raw.content) > options.max_bytes:
            raise DocumentError(
                "partition",
                f"{raw.uri} has {len(raw.content):,} bytes; the limit is {options.max_bytes:,}.",
                "Exclude it from the source, or split it; or raise TIDEMARK_MAX_DOCUMENT_MEGABYTES.",
            )
        detected, raw = detect_format(raw, options.max_expanded_bytes, options.max_ratio)
        try:
            document = READERS[detected](Reading(raw, options, self._boilerplate))
        except etree.LxmlError as error:  # a SyntaxError too, but not one of ours
            raise damaged(raw.uri, error) from error
        except (TidemarkError, NameError, ImportError, SyntaxError, MemoryError):
            raise  # ours, or our own fault, or the machine's: no document is to blame
        except RecursionError as error:
            raise nested_too_deeply(raw.uri) from error
        except (
            Exception
        ) as error:  # whatever a broken file provokes in a parser is the file's fault
            raise DocumentError(
                "partition",
                f"{raw.uri} cannot be read as {detected.value.upper()} "
                f"({type(error).__name__}: {str(error)[:300]}).",
                "The file is damaged or was cut short: fetch or export it again.",
            ) from error
        if not document.elements:
            raise DocumentError(
                "partition",
                f"{raw.uri} holds no text.",
                "Check the document, or exclude it from the source.",
            )
        return document if document.title else replace(document, title=title_of_name(raw.uri))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError as error:
        raise PermanentError(
            f"The package {package} is not installed.",
            "Run the project's set-up again (make setup).",
        ) from error
