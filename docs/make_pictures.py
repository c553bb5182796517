"""Makes the pictures and the tables of docs/chunking.md from the code: `python docs/make_pictures.py`.

Nothing is downloaded and no model is loaded. A test compares what this makes with what is committed.
"""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "include")]

from drawing import bonds, cuts, pages, parents, stability, tables, way
from drawing.svg import Picture

from tidemark.domain.profile import STRATEGIES

PAGE = pages.ROOT / "docs" / "chunking.md"
PICTURES: Mapping[str, Callable[[], Picture]] = {
    "way": way.picture,
    "parents": parents.picture,
    "strategies": cuts.overview,
    "stability": stability.picture,
    "bonds": bonds.picture,
    **{f"cut-{name}": partial(cuts.detail, name) for name in STRATEGIES},
}


def main() -> None:
    """Write the elements, the pictures and the tables."""
    pages.ELEMENTS.write_text(pages.partition_all(), encoding="utf-8")
    for name, draw in PICTURES.items():
        (pages.PICTURES / f"{name}.svg").write_text(draw().render(), encoding="utf-8")
    PAGE.write_text(tables.with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
