"""Make the golden documents of binary formats: ``PYTHONPATH=include python tests/golden/make_binary.py``.

Their text is in ``binary_content``, the results in ``documents`` are committed, and running it twice changes
no byte: the makers are those of the sample documents. Needs the development requirements, as they do.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from tidemark_local import make_sample_files

HERE = Path(__file__).parent
DOCUMENTS = HERE / "documents"


def build() -> Iterator[tuple[str, bytes]]:
    """Yield each document as its name and its bytes."""
    return make_sample_files.build(HERE / "binary_content")


def main() -> None:
    """Write the documents, over those that are there."""
    for name, data in build():
        (DOCUMENTS / name).write_bytes(data)
        sys.stdout.write(f"{DOCUMENTS / name} ({len(data):,} bytes)\n")


if __name__ == "__main__":
    main()
