"""The values of a row as a document."""

import html
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime

from tidemark.domain.errors import ConfigurationError

_MILLISECONDS_FROM = 100_000_000_000
"""A number this large is a time in milliseconds: in seconds it would be in the year 5138."""
_HEADING = re.compile(r"#{1,6}[ \t]+(?P<text>.+?)[ \t]*#*[ \t]*(?:\n|$)")


@dataclass(frozen=True, slots=True)
class Columns:
    """Where the values are in a row; None for one that is not asked for."""

    identity: int
    body: int
    title: int | None
    updated: int | None
    link: int | None


def column_of(names: list[str], option: str, name: str, *, needed: bool = True) -> int | None:
    """The position of a column, None for none; case decides only between two that differ in nothing else.

    Raises ``ConfigurationError`` that names the option and the columns that there are.
    """
    if not name:
        return None
    for found in (names, [other.lower() for other in names]):
        wanted = name if found is names else name.lower()
        if found.count(wanted) == 1:
            return found.index(wanted)
        if found.count(wanted) > 1:
            raise ConfigurationError(
                f"The query gives the column {name!r} more than once.", "Name each one with AS."
            )
    if not needed:
        return None
    raise ConfigurationError(
        f"The query gives no column {name!r}, which {option} names; it gives {', '.join(names)}.",
        f"Correct {option}, or name the column in the query with AS.",
    )


def as_text(value: object, *, binary: bool = False) -> str:
    """A value as text, "" for NULL. With ``binary``, bytes that are no text become hexadecimal digits.

    Raises ``UnicodeDecodeError`` for other bytes and ``TypeError`` for what has no plain form.
    """
    if value is None:
        return ""
    if isinstance(value, memoryview):
        value = value.tobytes()
    if isinstance(value, (bytes, bytearray)):
        try:
            return bytes(value).decode("utf-8")
        except UnicodeDecodeError:
            if binary:
                return bytes(value).hex()
            raise
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    if isinstance(value, (list, dict, set, tuple)):
        raise TypeError(f"a value is a {type(value).__name__}, not text; cast it in the query")
    return str(value)


def as_time(value: object) -> datetime | None:
    """A time (UTC) from what databases keep one in; without a zone it is taken for UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        return aware.astimezone(UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        seconds = value / 1000 if value >= _MILLISECONDS_FROM else value
        try:
            return datetime.fromtimestamp(seconds, UTC)
        except (ValueError, OverflowError, OSError):
            return None
    return None


def as_document(title: str, body: str, media_type: str) -> str:
    """The body under its title as the first heading, unless that is there already."""
    title = " ".join(title.split())
    if not title:
        return body
    if media_type == "text/html":
        escaped = html.escape(title)
        return (
            f'<!doctype html><html><head><meta charset="utf-8"><title>{escaped}</title></head>'
            f"<body><h1>{escaped}</h1>\n{body}</body></html>"
        )
    if media_type == "text/markdown":
        first = _HEADING.match(body.lstrip())
        if first is not None and first["text"] == title:
            return body
        return f"# {_plain(title)}\n\n{body}"
    first_line = body.lstrip().partition("\n")[0].strip()
    if first_line == title:
        body = body.lstrip().partition("\n")[2]
    return f"{title}\n{'=' * max(len(title), 3)}\n\n{body}"


def _plain(title: str) -> str:
    """A title whose signs mean nothing in Markdown."""
    return re.sub(r"([\\`*_\[\]<>#|~$])", r"\\\1", title)
