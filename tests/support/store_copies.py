"""Stores that can be copied and put back, as from a backup."""

from copy import deepcopy
from typing import Any, Protocol

from fakes.index import MemoryIndex
from fakes.ledger import MemoryLedger
from tidemark.ports.index import VectorIndex
from tidemark.ports.ledger import Ledger


class Stores(Protocol):
    """A ledger and an index of some kind, empty at first."""

    ledger: Ledger
    index: VectorIndex

    def copy(self, which: str) -> Any:
        """A copy of "ledger" or "index" as it is now."""

    def restore(self, which: str, copied: Any) -> None:
        """Put a copy in its place."""

    def wipe(self, which: str) -> None:
        """Put an empty one in its place."""


class MemoryStores:
    """The stores in memory."""

    def __init__(self) -> None:
        self.ledger: Ledger = MemoryLedger()
        self.index: VectorIndex = MemoryIndex("tidemark")

    def copy(self, which: str) -> Any:
        return deepcopy(getattr(self, which))

    def restore(self, which: str, copy: Any) -> None:
        setattr(self, which, deepcopy(copy))

    def wipe(self, which: str) -> None:
        self.restore(which, MemoryLedger() if which == "ledger" else MemoryIndex("tidemark"))
