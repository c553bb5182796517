"""Unstructured, loaded once, with its telemetry off and its guesses answered from structure.

Every format read through it marks its headings, so the part-of-speech tagger behind Unstructured's
"is this narrative text?" is never asked: it costs nine tenths of the time and needs a language model that
Unstructured would otherwise download at its first call.
"""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

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
        _forbid_downloads()
    except ImportError as error:
        raise PermanentError(
            f"Unstructured cannot be loaded: {error}.",
            "Run the project's set-up again (make setup).",
        ) from error
    return package


def _forbid_downloads() -> None:
    """Never let Unstructured fetch a tagger: no format here asks for one."""
    tokenize = import_module("unstructured.nlp.tokenize")

    def refuse() -> NoReturn:
        raise PermanentError(
            "Unstructured asked for a spaCy model that is not installed.",
            "Install en_core_web_sm; nothing is downloaded while documents are processed.",
        )

    vars(tokenize)["_install_spacy_model"] = refuse


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


@lru_cache(maxsize=1)
def docx_partitioner() -> Partition:
    """``partition_docx``, which takes headings from paragraph styles alone."""
    return _office("docx")


@lru_cache(maxsize=1)
def pptx_partitioner() -> Partition:
    """``partition_pptx``, which takes headings from title shapes alone."""
    return _office("pptx")


def _office(name: str) -> Partition:
    with _outside_the_bound():
        _prepared()
        module = import_module(f"unstructured.partition.{name}")

    def narrative(*_args: Any, **_kwargs: Any) -> bool:
        return True

    module.__dict__["is_possible_narrative_text"] = narrative
    partition: Partition = module.__dict__[f"partition_{name}"]
    return partition
