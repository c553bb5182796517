"""Stores that can be copied and put back, as from a backup."""

from copy import deepcopy
from dataclasses import replace
from typing import Any, Protocol

from fakes.index import MemoryIndex
from fakes.ledger import MemoryLedger
from tidemark.ports import Ledger, VectorIndex


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
        return copied(getattr(self, which))

    def restore(self, which: str, copy: Any) -> None:
        setattr(self, which, copied(copy))

    def wipe(self, which: str) -> None:
        self.restore(which, MemoryLedger() if which == "ledger" else MemoryIndex("tidemark"))


def copied(store: Any) -> Any:
    """A copy of a store in memory; what is frozen in it is shared, its locks are new."""
    if isinstance(store, MemoryLedger):
        return deepcopy(store)
    new = type(store)()
    for name, value in vars(store).items():
        setattr(new, name, _copy(value))
    return new


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in value.items()}
    if isinstance(value, list | set):
        return type(value)(value)
    if type(value).__name__ in ("_Collection", "_Generation"):
        return replace(value, **{n: _copy(getattr(value, n)) for n in value.__slots__})
    return value
