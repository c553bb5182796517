"""Connections to a Postgres database: one engine per process, errors translated, results streamed."""

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Executable, NullPool, Row, create_engine, exc, make_url
from sqlalchemy.engine import URL

from tidemark.adapters.retry import Retry
from tidemark.domain.errors import (
    ConfigurationError,
    PermanentError,
    RefusedError,
    TidemarkError,
    TransientError,
)

CONNECT_SECONDS = 10
STREAM_ROWS = 1000
"""Rows that a stream holds at a time."""
BATCH = 2000
"""Rows in one statement of a bulk read or write."""

T = TypeVar("T")

_NO_SCHEMA = ("42P01", "42703")
"""SQLSTATEs of a missing table and a missing column."""

_REFUSALS = ("authentication failed", "does not exist", "no pg_hba.conf entry")
"""How a server words a refused connection, which comes without an SQLSTATE."""

_DISK_FULL = "53100"
_TRANSIENT_CLASSES = ("08", "40", "53", "55", "57")
"""SQLSTATE classes that may pass: connection, rollback, resources, object in use, intervention."""

_VALUE_CLASSES = ("22", "54")
"""Classes of SQLSTATE in which a value is at fault (its form, its size), not the statement."""


def postgres_url(url: str | URL) -> URL:
    """Read a database URL, naming psycopg as its driver.

    Raises ``ConfigurationError``, without quoting the URL, when it is none of Postgres.
    """
    hint = "Write it as postgresql://user:password@host:5432/database."
    try:
        parsed = make_url(url)
    except (exc.ArgumentError, ValueError) as error:
        raise ConfigurationError("The database URL cannot be read.", hint) from error
    if parsed.drivername.partition("+")[0] not in ("postgresql", "postgres"):
        raise ConfigurationError(
            f"The database URL is of {parsed.drivername}, and the ledger needs Postgres.", hint
        )
    return parsed.set(drivername="postgresql+psycopg")


def database_engine(url: str | URL, **options: Any) -> Engine:
    """An engine with a pool of few connections that notices a server gone away."""
    defaults: dict[str, Any] = {
        "pool_size": 2,
        "max_overflow": 8,
        "pool_pre_ping": True,
        "pool_recycle": 1800,
    }
    keepalive = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}
    return create_engine(
        postgres_url(url),
        # Statements carry whole documents' titles; an error need not repeat them.
        hide_parameters=True,
        # It would look for an extension that is not used, once per connection.
        use_native_hstore=False,
        connect_args={"connect_timeout": CONNECT_SECONDS, **keepalive},
        **(options or defaults),
    )


def database_name(url: URL) -> str:
    """Name a database for a message: its name and host, never the password."""
    host = url.host or url.query.get("host") or "the local socket"
    where = host if isinstance(host, str) else ", ".join(host)
    return f'database "{url.database}" on {where}' + (f":{url.port}" if url.port else "")


def batches(items: Sequence[T], size: int = BATCH) -> Iterator[list[T]]:
    """Cut a list into parts that one statement takes."""
    for start in range(0, len(items), size):
        yield list(items[start : start + size])


@contextmanager
def translated(url: URL) -> Iterator[None]:
    """Raise the vendor's errors as ``TransientError`` or ``PermanentError``, naming the database."""
    try:
        yield
    except TidemarkError:
        raise
    except (exc.SQLAlchemyError, UnicodeError, ValueError) as error:
        raise _translation(error, url) from error


def _translation(error: Exception, url: URL) -> TidemarkError:
    what = _first_line(error, url)
    if isinstance(error, exc.TimeoutError):
        return TransientError(
            f"The {database_name(url)} gave no connection in time: {what}", "Try again in a moment."
        )
    kind: type[PermanentError] = PermanentError
    if isinstance(error, exc.StatementError) and isinstance(error.orig, Exception):
        state = getattr(error.orig, "sqlstate", None) or ""
        if state in _NO_SCHEMA:
            return ConfigurationError(
                f"The {database_name(url)} lacks the ledger's tables: {what}",
                "Run `tidemark migrate`.",
            )
        if not state and any(words in what for words in _REFUSALS):
            return ConfigurationError(
                f"The {database_name(url)} cannot be opened: {what}",
                "Create the database, or correct the user and password in its URL.",
            )
        unreachable = isinstance(error, exc.OperationalError | exc.InterfaceError) and not state
        lost = isinstance(error, exc.DBAPIError) and error.connection_invalidated
        if unreachable or lost or state[:2] in _TRANSIENT_CLASSES:
            full = "Free some space on the server's disk, then run again."
            away = "Check that the server runs and can be reached; the work may be tried again."
            return TransientError(
                f"The {database_name(url)} cannot be used now: {what}",
                full if state == _DISK_FULL else away,
            )
        kind = RefusedError if state[:2] in _VALUE_CLASSES else PermanentError
    return kind(
        f"The {database_name(url)} refused a statement: {what}",
        "The ledger was asked for something it cannot hold; this is a defect worth reporting.",
    )


def _first_line(error: Exception, url: URL) -> str:
    cause = error.orig if isinstance(error, exc.StatementError) else error
    lines = str(cause or error).strip().splitlines() or [type(cause).__name__]
    line = lines[0]
    # The driver does not quote it today; a message in a log is no place to depend on that.
    return line.replace(url.password, "***") if url.password else line


class Database:
    """A Postgres database that may be used before and after a fork, each process with its own pool.

    Each of its calls waits for a server that is away, as ``retry`` says. shared: the one connection, in a
    transaction, on which all is done.
    """

    def __init__(
        self, target: Engine | URL | str, retry: Retry, shared: Connection | None = None
    ) -> None:
        self._engine = target if isinstance(target, Engine) else database_engine(target)
        self._pid = os.getpid()
        self._retry = retry
        self._shared = shared
        self.url = self._engine.url
        self.unpooled = database_engine(self.url, poolclass=NullPool)
        """For connections that are somebody's own; nothing is kept of it between them."""
        self.locks = threading.local()
        """``held`` while this thread is in a block under locks of documents: no call is repeated there."""

    @property
    def engine(self) -> Engine:
        if self._pid != os.getpid():
            # The pooled connections are the parent's: forget them without closing its sockets.
            self._engine.dispose(close=False)
            self._pid = os.getpid()
        return self._engine

    def _connection(self) -> AbstractContextManager[Connection]:
        return nullcontext(self._shared) if self._shared else self.engine.connect()

    @contextmanager
    def rolled_back(self) -> Iterator["Database"]:
        """One whose changes are undone when the block ends, done on a connection of its own."""
        with ExitStack() as ended:
            with translated(self.url):
                connection = ended.enter_context(self.engine.connect())
                transaction = connection.begin()
            try:
                yield Database(self._engine, Retry("The ledger"), connection)
            finally:
                with translated(self.url):
                    transaction.rollback()

    def retried(self, call: Callable[[], T]) -> T:
        """What ``call`` returns, called again while the server is away."""
        return call() if getattr(self.locks, "held", False) else self._retry(call)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Do some work in a transaction: committed when it returns, rolled back when it raises."""

        def transaction() -> T:
            with (
                translated(self.url),
                self._connection() as connection,
                connection.begin_nested() if self._shared else connection.begin(),
            ):
                return work(connection)

        return self.retried(transaction)

    def execute(self, statement: Executable, values: Mapping[str, Any] | None = None) -> int:
        """Run one statement in a transaction of its own; how many rows it met."""
        return self.write(lambda connection: connection.execute(statement, values or {}).rowcount)

    def rows(
        self, statement: Executable, values: Mapping[str, Any] | None = None
    ) -> list[Row[Any]]:
        """Run a query whose answer is small."""

        def query() -> list[Row[Any]]:
            with translated(self.url), self._connection() as connection:
                return list(connection.execute(statement, values or {}))

        return self.retried(query)

    def rows_of(self, statement: Executable, name: str, keys: Sequence[Any]) -> Iterator[Row[Any]]:
        """The rows of a query that takes a list of any length as its parameter ``name``."""
        for batch in batches(keys):
            yield from self.rows(statement, {name: batch})

    def stream(self, statement: Executable) -> Iterator[Row[Any]]:
        """Run a query through a server-side cursor, on a connection of its own."""

        def cursor() -> Iterator[Row[Any]]:
            with translated(self.url), self._connection() as connection:
                options = {"yield_per": STREAM_ROWS}
                yield from connection.execute(statement, execution_options=options)

        if getattr(self.locks, "held", False):
            return cursor()
        return self._retry.stream(cursor)

    def close(self) -> None:
        """Close the pooled connections of this process."""
        self.engine.dispose()
