"""Code to a syntax tree, in bounded time and memory whatever the code is."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from threading import local
from time import thread_time
from typing import Any

from tidemark.adapters.tree_sitter_grammars import GRAMMARS
from tidemark.domain.errors import PermanentError

MAX_BYTES = 2 * 2**20
_READ = 1 << 16
# The parser reports every hundred steps. Code takes one to seven reports a kilobyte, dense formulas eighteen;
# what takes many more is ambiguous to the grammar at every token, and costs time and memory without end.
_FREE_REPORTS = 60
_REPORTS_A_KILOBYTE = 25
# Nesting without end takes few steps, each dear. Of the thread's own time, so that a busy machine changes
# nothing; four times what code takes with the slowest grammar.
_SECONDS, _SECONDS_A_MEGABYTE = 0.5, 1.5
# An error deep within what goes on and on (``a => b => …``) costs memory that squares with the depth, in one
# step that cannot be stopped: 1.3 GB for 12 kB. Code ends something every few words; even its prose does.
_ENDS = bytes.maketrans(b")]},", b";;;;")
_ENDLESS = 5_000
_OWN = local()
"""What each thread has of its own: the buffer that tree-sitter reads from."""


def parse(data: bytes, syntax: str) -> Any:
    """The syntax tree of UTF-8 code in a language of ``GRAMMARS``; None when the code is over a bound.

    Raises ``PermanentError`` when the grammar is not installed.
    """
    from tree_sitter import Parser

    if len(data) > MAX_BYTES or _is_endless(data):
        return None
    expired = _bound(len(data))
    try:
        return Parser(_language(syntax)).parse(
            _reader(data), progress_callback=lambda offset, _error: expired(offset)
        )
    except ValueError:  # how it says that it was stopped
        return None


def _is_endless(data: bytes) -> bool:
    return any(len(part) > _ENDLESS for part in data.translate(_ENDS).split(b";"))


def _reader(data: bytes) -> Callable[[int, object], bytearray]:
    """Hands over the bytes from an offset on, always in the same buffer.

    tree-sitter 0.26.1 never gives back what its read callback returns: bytes would stay for ever, each of
    every file. It looks at a buffer only until it asks for the next.
    """
    buffer: bytearray = _OWN.__dict__.setdefault("buffer", bytearray())

    def read(offset: int, _point: object) -> bytearray:
        buffer[:] = data[offset : offset + _READ]
        return buffer

    return read


def _bound(size: int) -> Callable[[int], bool]:
    """Told of the parser's place at each report, says when it takes too long."""
    reports = 0
    deadline = _deadline(size)

    def expired(offset: int) -> bool:
        nonlocal reports
        reports += 1
        return (
            reports > _FREE_REPORTS + _REPORTS_A_KILOBYTE * offset / 1000
            or thread_time() > deadline
        )

    return expired


def _deadline(size: int) -> float:
    return thread_time() + _SECONDS + _SECONDS_A_MEGABYTE * size / 1e6


@cache
def _language(syntax: str) -> Any:
    """Raises ``PermanentError`` when the grammar is not installed."""
    from tree_sitter import Language

    grammar = GRAMMARS[syntax]
    try:
        pointer = getattr(import_module(grammar.module), grammar.function)()
    except ImportError as error:
        raise PermanentError(
            f"The grammar {grammar.module} cannot be loaded: {error}.",
            "Run the project's set-up again (make setup).",
        ) from error
    return Language(pointer)
