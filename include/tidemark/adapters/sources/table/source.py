"""The table source: the rows of a SQL query, each a document.

    row                                     outcome
    --------------------------------------  --------------------------------------------------------------
    time of update (or text) as held        NOT_MODIFIED
    changed, or new                         FETCHED; the title is its first heading
    no id, an id that came before           FAILED, at an address of its own; nothing is merged
    a body or a title that is no text       FAILED
    larger than max_bytes, and not as held  TOO_LARGE
    not in the answer any more              not listed: the listing is authoritative
    the query fails, at once or in between  the listing is incomplete
    a column is missing                     the listing is incomplete, and empty

Rows are streamed through the server's cursor in a transaction that can only read, and is rolled back.
"""

import html
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import quote

from sqlalchemy import Row, exc

from tidemark.adapters.sources.selection import too_large, utc_now
from tidemark.adapters.sources.table.database import Cursor, TableDatabase, driver_message
from tidemark.adapters.sources.table.options import DEFAULT_UPDATED, TableOptions
from tidemark.domain.documents import (
    CrawlEnd,
    CrawlItem,
    Outcome,
    RawDocument,
    SourceItem,
    Validators,
)
from tidemark.domain.errors import ConfigurationError, TidemarkError
from tidemark.domain.hashing import digest_of
from tidemark.ports.progress import Clock
from tidemark.ports.source import Known

# The values of a row as a document.

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
    for spelled in (names, [other.lower() for other in names]):
        wanted = name if spelled is names else name.lower()
        if spelled.count(wanted) == 1:
            return spelled.index(wanted)
        if spelled.count(wanted) > 1:
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


class TableSource:
    """Runs the query and hands over its rows (a ``Source``)."""

    def __init__(self, options: TableOptions, clock: Clock = utc_now) -> None:
        """Raises ``ConfigurationError`` for a database that is none, or whose driver is not installed."""
        self.fingerprint = options.fingerprint
        self._options = options
        self._database = TableDatabase(
            options.database_url, options.credentials, options.query_timeout
        )
        self._clock = clock

    def crawl(self, known: Known, limit: int | None = None) -> Iterator[CrawlItem | CrawlEnd]:
        """Run the query once; holds a hundred rows at a time (``Source.crawl``)."""
        problem = ""
        count = number = 0
        try:
            with self._database.rows(self._options.query) as cursor, closing(_Seen()) as seen:
                reader = _Rows(self._options, self._columns(cursor), seen, self._clock)
                for number, row in enumerate(cursor.rows, 1):
                    item = reader.item(row, number, known)
                    yield item
                    count += item.outcome in {Outcome.FETCHED, Outcome.NOT_MODIFIED}
                    if count == limit:
                        problem = f"It was limited to {limit:,} documents."
                        break
        except TidemarkError as error:
            problem = str(error)
        except (exc.SQLAlchemyError, UnicodeError, ValueError, OSError) as error:
            reason = self._database.without_secrets(driver_message(error))
            problem = (
                f"The query failed after {number:,} rows: {reason}."
                " Run it by hand in the database to see why."
            )
        yield CrawlEnd(complete=not problem, authoritative=True, problem=problem)

    def _columns(self, cursor: Cursor) -> Columns:
        """Where each column is. Raises ``ConfigurationError`` that names one that is missing."""
        options, names = self._options, cursor.names
        updated: int | None = None
        if options.updated_column:
            # Its default is a guess, so it need not be there.
            needed = options.updated_column != DEFAULT_UPDATED
            updated = column_of(names, "updated_column", options.updated_column, needed=needed)
        identity = column_of(names, "id_column", options.id_column)
        body = column_of(names, "body_column", options.body_column)
        return Columns(
            identity=-1 if identity is None else identity,
            body=-1 if body is None else body,
            title=column_of(names, "title_column", options.title_column),
            updated=updated,
            link=column_of(names, "link_column", options.link_column),
        )


@dataclass(frozen=True, slots=True)
class _Rows:
    options: TableOptions
    columns: Columns
    seen: "_Seen"
    clock: Clock

    def item(self, row: Row[Any], number: int, known: Known) -> CrawlItem:
        identity = as_text(row[self.columns.identity], binary=True).strip()
        if not identity:
            detail = f"Row {number:,} has no {self.options.id_column}. Leave it out of the query."
            return CrawlItem(SourceItem(self._misplaced("", number)), Outcome.FAILED, detail=detail)
        if not self.seen.add(identity):
            detail = (
                f"Row {number:,} has the {self.options.id_column} {identity!r} of a row before it."
                " Let the query give each id once."
            )
            uri = self._misplaced(identity, number)
            return CrawlItem(SourceItem(uri), Outcome.FAILED, detail=detail)
        uri = self._uri(identity)
        try:
            return self._document(uri, row, known)
        except (UnicodeDecodeError, TypeError) as error:
            detail = f"Row {number:,} ({self.options.id_column} {identity}): {error}"
            return CrawlItem(SourceItem(uri), Outcome.FAILED, detail=detail)

    def _document(self, uri: str, row: Row[Any], known: Known) -> CrawlItem:
        """Raises ``UnicodeDecodeError`` or ``TypeError`` for values that are no text."""
        columns = self.columns
        updated = row[columns.updated] if columns.updated is not None else None
        title = body = ""
        link = as_text(row[columns.link]) if columns.link is not None else ""
        if updated is not None:
            validators = Validators(revision=as_text(updated))
        else:
            title, body = self._texts(row)
            validators = Validators(revision=digest_of([title, body, link]))
        item = SourceItem(uri, validators)
        if known.validators(uri) == validators:
            return CrawlItem(item, Outcome.NOT_MODIFIED)
        if updated is not None:
            title, body = self._texts(row)
        content = as_document(title, body, self.options.media_type).encode("utf-8", "replace")
        if len(content) > self.options.max_bytes:
            return too_large(item, self.options.max_bytes, len(content))
        raw = RawDocument(
            uri,
            content,
            self.options.media_type,
            "utf-8",
            self.clock(),
            validators,
            modified_at=as_time(updated),
            link=link,
        )
        return CrawlItem(item, Outcome.FETCHED, raw)

    def _texts(self, row: Row[Any]) -> tuple[str, str]:
        title = as_text(row[self.columns.title]) if self.columns.title is not None else ""
        return title, as_text(row[self.columns.body])

    def _uri(self, identity: str) -> str:
        return f"{self.options.base}/{quote(identity, safe='', errors='replace')}"

    def _misplaced(self, identity: str, number: int) -> str:
        return f"{self._uri(identity)}?row={number}"


class _Seen:
    """Which ids came already, in a database that spills to disk: the answer may have millions."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("CREATE TABLE seen (id TEXT PRIMARY KEY) WITHOUT ROWID")

    def add(self, identity: str) -> bool:
        """False for one that came before."""
        encoded = identity.encode("utf-8", "surrogatepass")
        return (
            self._database.execute("INSERT OR IGNORE INTO seen VALUES (?)", (encoded,)).rowcount
            == 1
        )

    def close(self) -> None:
        self._database.close()
