"""What every artifact store holds to: which keys there are, and how lines are written."""

from collections.abc import Iterable, Iterator

from tidemark.domain.errors import PermanentError

TEMPORARY = ".tmp"
"""Where a store on a file system keeps what is not whole yet; no key may begin with it."""

ENCODING = "utf-8"
ENCODING_ERRORS = "surrogatepass"


def checked_key(key: str) -> str:
    """Return the key. Raises ``PermanentError`` when it could lead out of the store or name a folder."""
    parts = key.split("/")
    if "\0" in key or parts[0] == TEMPORARY or any(part in ("", ".", "..") for part in parts):
        raise PermanentError(
            f"{key!r} is no key of an artifact.",
            'A key is names parted by "/", none of them empty, "." or "..".',
        )
    return key


def checked_line(text: str) -> str:
    """Return the line. Raises ``PermanentError`` when it would be read back as two."""
    if "\n" in text:
        raise PermanentError("A line of an artifact may not contain a line break.", "Escape it.")
    return text


def without_ends(lines: Iterable[str], key: str) -> Iterator[str]:
    """Lines as they were written. Raises ``PermanentError`` for what is no text."""
    try:
        for line in lines:
            yield line.removesuffix("\n")
    except UnicodeDecodeError as error:
        raise PermanentError(
            f"The artifact {key} is no text in UTF-8.", "Read it as bytes."
        ) from error
