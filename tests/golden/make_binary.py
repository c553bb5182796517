"""Make the golden documents of binary formats.

    PYTHONPATH=include:tests:tests/support:tests/contracts/partition python tests/golden/make_binary.py

Their text is in ``binary_content`` and ``binary_texts.py``, the results in ``documents`` are committed, and
running it twice changes no byte: the makers are those of the sample documents and of the tests of formats.
Needs the development requirements, as they do.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from format_makers import epub, msg, odt
from make_samples import build_files

from golden.binary_texts import CHAPTERS, LETTER, MANUAL

HERE = Path(__file__).parent
DOCUMENTS = HERE / "documents"


def build() -> Iterator[tuple[str, bytes]]:
    """Yield each document as its name and its bytes."""
    yield from build_files(HERE / "binary_content")
    yield "tide-tables.epub", epub(CHAPTERS)
    yield "pump-manual.odt", odt(MANUAL)
    yield "winter-berths.msg", msg(LETTER, subject="Berths for the winter")


def main() -> None:
    """Write the documents, over those that are there."""
    for name, data in build():
        (DOCUMENTS / name).write_bytes(data)
        sys.stdout.write(f"{DOCUMENTS / name} ({len(data):,} bytes)\n")


if __name__ == "__main__":
    main()
