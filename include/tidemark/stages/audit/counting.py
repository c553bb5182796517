"""What a repair writes, counted where it is written."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, cast

from tidemark.ports import VectorIndex

_COUNTED = {
    "upsert_points": "points_written",
    "set_payloads": "payloads_set",
    "upsert_sections": "sections_written",
    "delete_points": "points_deleted",
    "delete_sections": "sections_deleted",
}


class _Counted:
    """The index, with every write of points and sections added to a tally."""

    def __init__(self, index: VectorIndex, tally: Counter[str]) -> None:
        self._index = index
        self._tally = tally

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._index, name)
        return self._counting(method, _COUNTED[name]) if name in _COUNTED else method

    def _counting(self, method: Callable[..., None], what: str) -> Callable[..., None]:
        def call(generation: int, items: Sequence[object]) -> None:
            method(generation, items)
            self._tally[what] += len(items)

        return call


def counted(index: VectorIndex, tally: Counter[str]) -> VectorIndex:
    """The same index; what is written through it is counted under the names of a repair's account."""
    return cast(VectorIndex, _Counted(index, tally))
