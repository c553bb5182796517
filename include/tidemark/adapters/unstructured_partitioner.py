"""Bytes of any readable format to Elements; the one door to Unstructured.

Known without importing Unstructured: the fingerprint, so that a run with nothing to do does not pay for it.
"""

import re
from dataclasses import asdict, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from lxml import etree

from tidemark.adapters.html_cleaner import CLEANER_VERSION
from tidemark.adapters.media import BY_SUFFIX
from tidemark.adapters.unstructured_containers import damaged
from tidemark.adapters.unstructured_options import UnstructuredOptions
from tidemark.adapters.unstructured_readers import READERS, Reading
from tidemark.adapters.unstructured_sniff import recognise
from tidemark.domain.errors import DocumentError, PermanentError, TidemarkError
from tidemark.domain.hashing import Canonical, digest_of, fingerprint
from tidemark.domain.model import PartitionedDocument, RawDocument

__all__ = ["PARTITIONER_VERSION", "UnstructuredOptions", "UnstructuredPartitioner", "title_of_name"]

PARTITIONER_VERSION = 4
"""Ours. Raise it with any change that alters elements: every document is then partitioned again."""

_DECIDING = (
    "unstructured",
    "lxml",
    "markdown-it-py",
    "mdit-py-plugins",
    "docutils",
    "pdfminer.six",
    "openpyxl",
    "python-docx",
    "python-pptx",
    "python-oxmsg",
)
_MEANINGLESS_STEMS = frozenset({"index", "readme", "default", "home", "untitled", "document"})


class UnstructuredPartitioner:
    """Cleans and partitions documents of every format that ``unstructured_sniff`` names."""

    def __init__(
        self,
        options: UnstructuredOptions | None = None,
        furniture: frozenset[int] = frozenset(),
    ) -> None:
        self._options = options or UnstructuredOptions()
        self._furniture = furniture

    @cached_property
    def fingerprint(self) -> str:
        """Of the libraries that decide the elements, our own version, and the options."""
        decided: dict[str, Canonical] = {
            "version": PARTITIONER_VERSION,
            "cleaner": CLEANER_VERSION,
            "libraries": {name: _version(name) for name in _DECIDING},
            "options": asdict(self._options),
        }
        if self._furniture:
            decided["furniture"] = digest_of(sorted(self._furniture))
        return fingerprint("partition", decided)

    def knowing(self, furniture: frozenset[int]) -> "UnstructuredPartitioner":
        """One that also drops these blocks of a site from its pages."""
        if furniture == self._furniture:
            return self
        return UnstructuredPartitioner(self._options, furniture)

    def partition(self, raw: RawDocument) -> PartitionedDocument:
        """Read one document. Raises ``DocumentError`` when its bytes are at fault."""
        options = self._options
        if len(raw.content) > options.max_bytes:
            raise DocumentError(
                "partition",
                f"{raw.uri} has {len(raw.content):,} bytes; the limit is {options.max_bytes:,}.",
                "Exclude it from the source, or split it; or raise TIDEMARK_MAX_DOCUMENT_MEGABYTES.",
            )
        found = recognise(raw, options.max_expanded_bytes, options.max_ratio)
        try:
            document = READERS[found.format](Reading(found.raw, options, self._furniture))
        except etree.LxmlError as error:  # a SyntaxError too, but not one of ours
            raise damaged(raw.uri, error) from error
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
                f"{raw.uri} cannot be read as {found.format.value.upper()} "
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
