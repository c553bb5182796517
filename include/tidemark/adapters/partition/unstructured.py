"""Unstructured, loaded once, with its telemetry off and its guesses answered from structure.

Every format read through it marks its headings, so the part-of-speech tagger behind Unstructured's
"is this narrative text?" is never asked: it costs nine tenths of the time and needs a language model that
Unstructured would otherwise download at its first call.
"""

import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

from lxml import etree

from tidemark.adapters.partition.html.tables import header_rows_of, table_text
from tidemark.domain.documents import CELL, Element, ElementKind
from tidemark.domain.errors import PermanentError

Partition = Callable[..., list[Any]]


@lru_cache(maxsize=1)
def _prepared() -> ModuleType:
    # Read by Unstructured when it is imported and at each call; it would report both to its maker.
    os.environ["DO_NOT_TRACK"] = "true"
    os.environ["SCARF_NO_ANALYTICS"] = "true"
    os.environ["UNSTRUCTURED_DISABLE_NOTICE"] = "1"
    try:
        package = import_module("unstructured")
        _do_without_tagger()
    except ImportError as error:
        raise PermanentError(
            f"Unstructured cannot be loaded: {error}.",
            "Run the project's set-up again (make setup).",
        ) from error
    return package


def _do_without_tagger() -> None:
    """Have Unstructured imported where spaCy is not installed, and never let it fetch a model for it.

    One of its modules imports spaCy at its head. Nothing here comes to use it, so set-up leaves it out with
    what it brings (15 packages, 190 MB); a test fails once a release does without it or needs more of it.
    """

    def refuse(*_args: Any, **_kwargs: Any) -> NoReturn:
        raise PermanentError(
            "Unstructured asked for a spaCy model that is not installed.",
            "Install spacy and en_core_web_sm; nothing is downloaded while documents are processed.",
        )

    if find_spec("spacy") is not None:
        vars(import_module("unstructured.nlp.tokenize"))["_install_spacy_model"] = refuse
        return
    absent = ModuleType("spacy")
    vars(absent)["load"] = refuse
    sys.modules["spacy"] = absent
    try:
        import_module("unstructured.nlp.tokenize")
    finally:
        # It stays with its importer alone: other packages look here whether spaCy is installed.
        del sys.modules["spacy"]


@contextmanager
def _outside_the_bound() -> Iterator[None]:
    """Load what stays for all documents without counting it to the memory that one document may take.

    It takes 800 MB of addresses, more than some bound for a document leaves.
    """
    bound, most = resource.getrlimit(resource.RLIMIT_AS)
    before = virtual_bytes()
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    try:
        yield
    finally:
        if bound != resource.RLIM_INFINITY:
            bound += virtual_bytes() - before
        resource.setrlimit(resource.RLIMIT_AS, (bound, most))


def virtual_bytes() -> int:
    """The address space that this process has in use, 0 where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[0])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * resource.getpagesize()


def partition_module(name: str) -> ModuleType:
    """The module ``unstructured.partition.<name>``, prepared as above."""
    with _outside_the_bound():
        _prepared()
        return import_module(f"unstructured.partition.{name}")


@lru_cache(maxsize=1)
def pptx_partitioner() -> Partition:
    """``partition_pptx``, which takes headings from title shapes alone."""
    module = partition_module("pptx")

    def narrative(*_args: Any, **_kwargs: Any) -> bool:
        return True

    module.__dict__["is_possible_narrative_text"] = narrative
    partition: Partition = module.__dict__["partition_pptx"]
    return partition


def table_of(part: Any) -> Element | None:
    """A table of Unstructured's as an Element, by the HTML that it gives; None for one without text."""
    html, page = part.metadata.text_as_html, part.metadata.page_number
    table = etree.fromstring(html, etree.HTMLParser()).find(".//table") if html else None
    read = table_text(table) if table is not None else None
    if read is None or not read.text:
        text = part.text.strip()
        return Element(ElementKind.TABLE, text, None, page) if text else None
    header_rows = read.header_rows or header_rows_of(
        [line.split(CELL) for line in read.text.split("\n")]
    )
    return Element(ElementKind.TABLE, read.text, None, page, header_rows=header_rows)
