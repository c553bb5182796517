"""What stands on most pages of a site is its boilerplate, wherever on the page it stands.

A page says its blocks as numbers (``Inspection.blocks``): one for each part of it, from a paragraph to a box
of several, that is long enough to be recognised. What many pages of a reference have in common without being
boilerplate is short: headings ("See also"), labels ("Parameters:") and stock lines ("This widget sends no
messages."). So a short part must be on nearly all pages, and a label goes only with a larger part around it.
"""

from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from itertools import islice
from unicodedata import east_asian_width

LONG = 60
"""Columns (characters; wide ones count twice) from which a text is longer than stock lines are."""
SHORT = 20
"""Columns under which a text is a label and never a block."""
LONGEST = 2000
"""Characters over which a part of a page is no block; its own parts are."""
LEAST_PAGES = 8
"""Pages that a block must be on: those of a smaller site may well all have to say the same."""
MOST_PAGES = 1000
"""Pages that are looked at; more would not change what is on half of them, and memory stays bounded."""
SHARE_LONG = 0.5
"""Of the pages, for a long block: "on most pages"."""
SHARE_SHORT = 0.9
"""Of the pages, for a short one: a reference's stock line is on many pages, a site's slogan on all."""
MOST_BLOCKS = 500
"""Blocks that are kept of a site, the most frequent first."""


def block_of(text: str) -> int | None:
    """The number of a text (white space folded), None when it is too short or too long to be recognised.

    A positive number of 62 bits, odd when the text is short.
    """
    if not text or len(text) > LONGEST:
        return None
    columns = len(text)
    if columns < LONG and not text.isascii():
        columns += sum(east_asian_width(char) in "WF" for char in text)
    # A label introduces what follows, and that differs from page to page.
    if columns < SHORT or (columns < LONG and text.endswith((":", "："))):
        return None
    number = int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())
    return (number >> 3) << 1 | (columns < LONG)


def detect_boilerplate(pages: Iterable[tuple[int, ...]]) -> frozenset[int]:
    """The blocks of a site's boilerplate from those of its pages (a sample will do)."""
    counts: Counter[int] = Counter()
    looked_at = 0
    for blocks in islice(pages, MOST_PAGES):
        looked_at += 1
        counts.update(set(blocks))
    found = [
        (-count, block)
        for block, count in counts.items()
        if count >= LEAST_PAGES and count >= looked_at * (SHARE_SHORT if block & 1 else SHARE_LONG)
    ]
    return frozenset(block for _, block in sorted(found)[:MOST_BLOCKS])
