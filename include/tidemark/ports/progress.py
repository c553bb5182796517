"""What is told of the work as it goes, and the clock."""

from collections.abc import Callable
from datetime import datetime
from typing import Protocol


class Progress(Protocol):
    """Told of the work as it goes; for a bar, a log line or nothing."""

    def stage(self, name: str, total: int | None) -> None:
        """A stage begins; ``total`` items are ahead, None when unknown."""

    def advance(self, count: int = 1, detail: str = "") -> None: ...


Clock = Callable[[], datetime]


def quiet() -> Progress:
    """A Progress that says nothing."""
    return _Quiet()


class _Quiet:
    def stage(self, name: str, total: int | None) -> None: ...

    def advance(self, count: int = 1, detail: str = "") -> None: ...
