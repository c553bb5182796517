"""Bytes of any readable format to Elements; the one door to Unstructured.

Known without importing Unstructured: the fingerprint, so that a run with nothing to do does not pay for it.
"""

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from tidemark.adapters.html_cleaner import CLEANER_VERSION
from tidemark.adapters.media import BY_SUFFIX
from tidemark.adapters.text_decoding import decode
from tidemark.adapters.unstructured_sniff import Format, detect
from tidemark.domain.errors import DocumentError, PermanentError, TidemarkError
from tidemark.domain.hashing import fingerprint
from tidemark.domain.model import ElementKind, PartitionedDocument, RawDocument

PARTITIONER_VERSION = 3
"""Ours. Raise it with any change that alters elements: every document is then partitioned again."""

_DECIDING = (
    "unstructured",
    "lxml",
    "markdown-it-py",
    "mdit-py-plugins",
    "docutils",
    "pdfminer.six",
)
_MEANINGLESS_STEMS = frozenset({"index", "readme", "default", "home", "untitled", "document"})


@dataclass(frozen=True, slots=True)
class UnstructuredOptions:
    """Bounds of what is read.

    max_bytes: of a document as fetched. max_expanded_bytes: of an archive (DOCX, PPTX, XLSX) when unpacked.
    max_ratio: times its packed size that it may unpack to. max_html_depth: nested elements.
    max_pages: of a PDF.
    """

    max_bytes: int = 64 * 2**20
    max_expanded_bytes: int = 512 * 2**20
    max_ratio: int = 300
    max_html_depth: int = 150
    max_pages: int = 3000


class UnstructuredPartitioner:
    """Cleans and partitions documents of every format that ``unstructured_sniff`` names."""

    def __init__(self, options: UnstructuredOptions | None = None) -> None:
        self._options = options or UnstructuredOptions()

    @cached_property
    def fingerprint(self) -> str:
        """Of the libraries that decide the elements, our own version, and the options."""
        return fingerprint(
            "partition",
            {
                "version": PARTITIONER_VERSION,
                "cleaner": CLEANER_VERSION,
                "libraries": {name: _version(name) for name in _DECIDING},
                "options": asdict(self._options),
            },
        )

    def partition(self, raw: RawDocument) -> PartitionedDocument:
        """Read one document. Raises ``DocumentError`` when its bytes are at fault."""
        options = self._options
        if len(raw.content) > options.max_bytes:
            raise DocumentError(
                "partition",
                f"{raw.uri} has {len(raw.content):,} bytes; the limit is {options.max_bytes:,}.",
                "Split it, or raise the partitioner's max_bytes.",
            )
        kind = detect(raw, options.max_expanded_bytes, options.max_ratio)
        try:
            document = _READERS[kind](raw, options)
        except (TidemarkError, NameError, ImportError, SyntaxError, MemoryError):
            raise  # ours, or our own fault, or the machine's: no document is to blame
        except RecursionError as error:
            raise DocumentError(
                "partition", f"{raw.uri} is nested too deeply.", "Simplify it."
            ) from error
        except (
            Exception
        ) as error:  # whatever a broken file provokes in a parser is the file's fault
            raise DocumentError(
                "partition",
                f"{raw.uri} cannot be read as {kind.value.upper()} ({type(error).__name__}: {error}).",
                "The file is damaged or was cut short: fetch or export it again.",
            ) from error
        if not document.elements:
            raise DocumentError(
                "partition",
                f"{raw.uri} holds no text.",
                "Check the document, or exclude it from the source.",
            )
        return document if document.title else replace(document, title=title_of_name(raw.uri))


def _html(raw: RawDocument, options: UnstructuredOptions) -> PartitionedDocument:
    from tidemark.adapters.unstructured_html import partition_page

    text = decode(raw.content, raw.charset, raw.uri)
    return partition_page(text, raw.uri, options.max_html_depth)


def _markdown(raw: RawDocument, options: UnstructuredOptions) -> PartitionedDocument:
    from tidemark.adapters.unstructured_html import elements_of
    from tidemark.adapters.unstructured_markdown import read_markdown

    text = decode(raw.content, raw.charset, raw.uri)
    page = read_markdown(text, raw.uri, options.max_html_depth)
    elements = tuple(elements_of(page.root))
    return _titled(PartitionedDocument(page.title, elements, page.language))


def _text(raw: RawDocument, _options: UnstructuredOptions) -> PartitionedDocument:
    from tidemark.adapters.unstructured_html import elements_of
    from tidemark.adapters.unstructured_plain_text import read_plain_text

    root = read_plain_text(decode(raw.content, raw.charset, raw.uri))
    return _titled(PartitionedDocument("", tuple(elements_of(root))))


def _rst(raw: RawDocument, options: UnstructuredOptions) -> PartitionedDocument:
    from tidemark.adapters.unstructured_html import elements_of
    from tidemark.adapters.unstructured_rst import read_rst

    root = read_rst(decode(raw.content, raw.charset, raw.uri), raw.uri, options.max_html_depth)
    return _titled(PartitionedDocument("", tuple(elements_of(root))))


def _docx(raw: RawDocument, _options: UnstructuredOptions) -> PartitionedDocument:
    from tidemark.adapters.unstructured_office import partition_docx

    return partition_docx(raw.content)


def _pptx(raw: RawDocument, _options: UnstructuredOptions) -> PartitionedDocument:
    from tidemark.adapters.unstructured_office import partition_pptx

    return partition_pptx(raw.content)


def _xlsx(raw: RawDocument, _options: UnstructuredOptions) -> PartitionedDocument:
    from tidemark.adapters.unstructured_sheets import partition_xlsx

    return partition_xlsx(raw.content)


def _csv(raw: RawDocument, _options: UnstructuredOptions) -> PartitionedDocument:
    from tidemark.adapters.unstructured_sheets import partition_csv

    return partition_csv(decode(raw.content, raw.charset, raw.uri))


def _pdf(raw: RawDocument, options: UnstructuredOptions) -> PartitionedDocument:
    from tidemark.adapters.unstructured_pdf import partition_pdf

    return partition_pdf(raw.content, raw.uri, options.max_pages)


def _email(raw: RawDocument, options: UnstructuredOptions) -> PartitionedDocument:
    from tidemark.adapters.unstructured_email import partition_email

    return partition_email(raw.content, raw.uri, options.max_html_depth)


def _code(raw: RawDocument, _options: UnstructuredOptions) -> PartitionedDocument:
    from tidemark.adapters.unstructured_code import partition_code

    return partition_code(raw)


_READERS: dict[Format, Callable[[RawDocument, UnstructuredOptions], PartitionedDocument]] = {
    Format.HTML: _html,
    Format.MARKDOWN: _markdown,
    Format.TEXT: _text,
    Format.RST: _rst,
    Format.DOCX: _docx,
    Format.PPTX: _pptx,
    Format.XLSX: _xlsx,
    Format.CSV: _csv,
    Format.PDF: _pdf,
    Format.EMAIL: _email,
    Format.CODE: _code,
}


def _titled(document: PartitionedDocument) -> PartitionedDocument:
    """With its heading of the first level as the title, where nothing else names it and there is one."""
    if document.title:
        return document
    tops = [e.text for e in document.elements if e.kind is ElementKind.TITLE and e.level == 1]
    leads = bool(tops) and document.elements[0].text == tops[0]
    return replace(document, title=tops[0]) if leads or len(tops) == 1 else document


def title_of_name(uri: str) -> str:
    """A title from a file's name, "" where it says nothing (index.html, a URL without a file)."""
    path = PurePosixPath(unquote(urlsplit(uri).path or uri))
    if path.suffix.lower() not in BY_SUFFIX:
        return ""
    words = re.sub(r"[-_.\s]+", " ", path.stem).strip()
    return "" if words.lower() in _MEANINGLESS_STEMS else words


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError as error:
        raise PermanentError(
            f"The package {package} is not installed.",
            "Run the project's set-up again (make setup).",
        ) from error
