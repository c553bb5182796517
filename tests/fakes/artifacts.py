"""Artifacts in this process's memory: for tests and trials."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import StringIO

from tidemark.adapters.artifacts import (
    ENCODING,
    ENCODING_ERRORS,
    checked_key,
    checked_line,
    without_ends,
)
from tidemark.ports.artifacts import ArtifactEntry
from tidemark.ports.progress import Clock


def _now() -> datetime:
    return datetime.now(UTC)


class MemoryArtifacts:
    """The ArtifactStore port on a dictionary. ``clock``: by which values get old."""

    def __init__(self, clock: Clock = _now) -> None:
        self._clock = clock
        self._values: dict[str, bytes] = {}
        self._written_at: dict[str, datetime] = {}

    def write(self, key: str, data: bytes) -> None:
        self._values[checked_key(key)] = bytes(data)
        self._written_at[key] = self._clock()

    def read(self, key: str) -> bytes:
        return self._values[checked_key(key)]

    def exists(self, key: str) -> bool:
        return checked_key(key) in self._values

    def delete(self, key: str, *, written_before: datetime | None = None) -> bool:
        if checked_key(key) in self._values:
            if written_before is not None and self._written_at[key] >= written_before:
                return False
            del self._values[key], self._written_at[key]
        return True

    def keys(self, prefix: str = "") -> Iterator[str]:
        return iter([key for key in self._values if key.startswith(prefix)])

    def entries(self, prefix: str = "") -> Iterator[ArtifactEntry]:
        for key in self.keys(prefix):
            if key in self._values:
                yield ArtifactEntry(key, len(self._values[key]), self._written_at[key])

    def discard_unfinished(
        self, written_before: datetime, *, dry_run: bool = False
    ) -> tuple[int, int]:
        return 0, 0  # what is unfinished dies with its writer

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
