"""Artifacts in this process's memory: for tests and trials."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO

from tidemark.adapters.artifact_rules import (
    ENCODING,
    ENCODING_ERRORS,
    checked_key,
    checked_line,
    without_ends,
)


class MemoryArtifacts:
    """The ArtifactStore port on a dictionary."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    def write(self, key: str, data: bytes) -> None:
        self._values[checked_key(key)] = bytes(data)

    def read(self, key: str) -> bytes:
        return self._values[checked_key(key)]

    def exists(self, key: str) -> bool:
        return checked_key(key) in self._values

    def delete(self, key: str) -> None:
        self._values.pop(checked_key(key), None)

    def keys(self, prefix: str = "") -> Iterator[str]:
        return iter([key for key in self._values if key.startswith(prefix)])

    @contextmanager
    def writer(self, key: str) -> Iterator["_Lines"]:
        checked_key(key)
        lines = _Lines()
        yield lines
        self.write(key, lines.text().encode(ENCODING, ENCODING_ERRORS))

    def lines(self, key: str) -> Iterator[str]:
        return without_ends(_decoded(self.read(key)), key)


class _Lines:
    def __init__(self) -> None:
        self._text = StringIO(newline="")

    def line(self, text: str) -> None:
        self._text.write(f"{checked_line(text)}\n")

    def text(self) -> str:
        return self._text.getvalue()


def _decoded(data: bytes) -> Iterator[str]:
    # Only "\n" ends a line: splitlines() would also split at a form feed or U+2028 inside one.
    yield from StringIO(data.decode(ENCODING, ENCODING_ERRORS), newline="\n")
