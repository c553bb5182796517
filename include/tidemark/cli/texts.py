"""Text for a terminal: tables, and nothing by which a document could write what it is not."""

import re

from rich.table import Table
from rich.text import Text

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")
"""What writes on the terminal elsewhere than where it stands; the last two ranges turn text around."""
_UNSEEN = re.compile(r"[\u061c\u200b\u200e\u200f\u2060-\u2064\ufeff\U000e0000-\U000e007f]")
"""What takes no room: in a name or an address it hides that it is another one. Joiners (U+200C, U+200D)
are left, for words of several scripts and many emoji are written with them."""
_BREAK = re.compile(r"[\t\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")


def table_of(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def add_row(table: Table, *cells: object) -> None:
    # What comes from documents must not be read as markup.
    table.add_row(*(Text(safe(str(cell))) for cell in cells))


def safe(text: str) -> str:
    """One line, without the characters by which a document could write or forge other ones."""
    return _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", safe_lines(_BREAK.sub(" ", text)))


def safe_lines(text: str) -> str:
    """A text of several lines, without the control characters that a document could use on a terminal."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
