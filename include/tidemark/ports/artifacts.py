"""What the stages ask of the artifact store."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class ArtifactEntry:
    """One artifact: its size in bytes, and when it was last written (UTC)."""

    key: str
    size: int
    written_at: datetime


class ArtifactStore(Protocol):
    """Immutable values by key, e.g. "raw/<hash>". A key is written whole or not at all."""

    def write(self, key: str, data: bytes) -> None:
        """Write atomically. A key that exists with these bytes keeps them, and counts as written now."""

    def read(self, key: str) -> bytes:
        """Raises ``KeyError`` when there is no such key."""

    def exists(self, key: str) -> bool: ...

    def delete(self, key: str, *, written_before: datetime | None = None) -> bool:
        """Is it gone? Missing is fine. With a time, what was written since then stays."""

    def keys(self, prefix: str = "") -> Iterator[str]:
        """Stream the keys that start with ``prefix``."""

    def entries(self, prefix: str = "") -> Iterator[ArtifactEntry]:
        """Stream what ``keys`` names, with size and age; one deleted on the way may be left out."""

    def discard_unfinished(
        self, written_before: datetime, *, dry_run: bool = False
    ) -> tuple[int, int]:
        """Delete what writers left unfinished that died before a time; how many, and their bytes."""

    def writer(self, key: str) -> AbstractContextManager["LineWriter"]:
        """Stream lines to a key, which appears, atomically, when the context ends without an error."""

    def lines(self, key: str) -> Iterator[str]:
        """Stream the lines of a key, without their ends. Raises ``KeyError`` when there is none."""


class LineWriter(Protocol):
    def line(self, text: str) -> None: ...
