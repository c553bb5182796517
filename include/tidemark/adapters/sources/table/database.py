"""A database that is only read: a query's rows, streamed, in a transaction that cannot write."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, NullPool, Row, create_engine, exc, make_url
from sqlalchemy.engine import URL, Engine

from tidemark.adapters.sources.credentials import extra_mapping
from tidemark.domain.connections import Credentials
from tidemark.domain.errors import ConfigurationError, PermanentError, TransientError

ROWS_AT_A_TIME = 100
_CONNECT_SECONDS = 10
_DIALECTS = {
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "pgsql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
    "mssql": "mssql+pyodbc",
    "oracle": "oracle+oracledb",
    "sqlite": "sqlite",
}
_CONNECT_ARGUMENT = {
    "postgresql": "connect_timeout",
    "mysql": "connect_timeout",
    "sqlite": "timeout",
}


@dataclass(frozen=True, slots=True)
class Cursor:
    """A query's answer: the names of its columns, and its rows as they come."""

    names: list[str]
    rows: Iterator[Row[Any]]


class TableDatabase:
    """One database, connected to anew for each query."""

    def __init__(self, url: str, credentials: Credentials | None, timeout: float) -> None:
        """Raises ``ConfigurationError`` for a URL that is none, or whose driver is not installed."""
        self._url = _read_url(url, credentials)
        self._timeout_ms = int(timeout * 1000)
        self.place = _place(self._url)
        if self._url.get_backend_name() == "sqlite":
            self._check_file()
        arguments = {}
        if name := _CONNECT_ARGUMENT.get(self._url.get_backend_name()):
            arguments[name] = _CONNECT_SECONDS
        try:
            self._engine: Engine = create_engine(
                self._url, poolclass=NullPool, hide_parameters=True, connect_args=arguments
            )
        except (ImportError, exc.ArgumentError) as error:
            raise ConfigurationError(
                f"The driver for {self._url.drivername} is not installed.",
                f"Install it ({getattr(error, 'name', None) or 'see the SQLAlchemy dialect'}), "
                "or name another one in the URL, e.g. mysql+pymysql://.",
            ) from None

    @contextmanager
    def rows(self, query: str) -> Iterator[Cursor]:
        """Run a query. Raises ``TidemarkError`` when it cannot be begun, SQLAlchemy's errors later."""
        try:
            connection = self._engine.connect()
        except (exc.SQLAlchemyError, OSError, ValueError) as error:
            raise TransientError(
                f"The {self.place} cannot be opened: {self.without_secrets(driver_message(error))}.",
                "Check that it runs and can be reached, and the connection's fields.",
            ) from error
        with connection:
            try:
                self._only_read(connection)
                answer = connection.execution_options(
                    # As the query stands: percent signs and colons in it are its own.
                    no_parameters=True,
                    stream_results=True,
                    yield_per=ROWS_AT_A_TIME,
                ).exec_driver_sql(query.strip().rstrip("; \t\r\n"))
            except (exc.SQLAlchemyError, ValueError) as error:
                raise self._refused(error) from error
            if not answer.returns_rows:
                raise PermanentError("The query gives no rows.", "Write a SELECT.")
            yield Cursor(list(answer.keys()), iter(answer))
            # Nothing to keep: leaving the connection rolls back.

    def without_secrets(self, text: str) -> str:
        """A driver's message without the password."""
        return text.replace(self._url.password, "***") if self._url.password else text

    def _check_file(self) -> None:
        database = self._url.database or ""
        is_uri = database.startswith("file:")
        if not is_uri and database not in ("", ":memory:"):
            # By its URI form, which does not create what is not there.
            self._url = self._url.set(
                database=f"{Path(database).absolute().as_uri()}",
                query={**self._url.query, "mode": "ro", "uri": "true"},
            )

    def _only_read(self, connection: Connection) -> None:
        dialect = connection.dialect.name
        if dialect == "postgresql":
            connection.execution_options(postgresql_readonly=True)
            connection.exec_driver_sql(f"SET LOCAL statement_timeout = {self._timeout_ms}")
        elif dialect in ("mysql", "mariadb"):
            is_mariadb = bool(getattr(connection.dialect, "is_mariadb", False))
            seconds = self._timeout_ms / 1000
            limit = (
                f"max_statement_time = {seconds:g}"
                if is_mariadb
                else f"max_execution_time = {self._timeout_ms}"
            )
            connection.exec_driver_sql(f"SET SESSION {limit}")
            connection.rollback()
            connection.exec_driver_sql("SET TRANSACTION READ ONLY")
        elif dialect == "oracle":
            connection.exec_driver_sql("SET TRANSACTION READ ONLY")
        elif dialect == "sqlite":
            connection.exec_driver_sql("PRAGMA query_only = ON")

    def _refused(self, error: Exception) -> TransientError | PermanentError:
        message = (
            f"The {self.place} refused the query: {self.without_secrets(driver_message(error))}."
        )
        lost = isinstance(error, exc.DBAPIError) and error.connection_invalidated
        if lost:
            return TransientError(message, "Check that it runs and can be reached.")
        return PermanentError(
            message, "Correct the query; run it by hand in the database to see why."
        )


def driver_message(error: BaseException) -> str:
    """The first line of what the driver says."""
    cause = error.orig if isinstance(error, exc.StatementError) else error
    lines = str(cause or error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".")


def _read_url(url: str, credentials: Credentials | None) -> URL:
    if not url and credentials is not None:
        return _url_of(credentials)
    try:
        parsed = make_url(url)
    except (exc.ArgumentError, ValueError):
        raise ConfigurationError(
            "The database URL cannot be read.",
            "Write it as dialect://user:password@host:port/database.",
        ) from None
    if parsed.drivername in ("postgres", "postgresql"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if credentials is not None:
        parsed = parsed.set(
            username=credentials.login or parsed.username,
            password=credentials.password or parsed.password,
        )
    return parsed


def _url_of(credentials: Credentials) -> URL:
    """The URL of a connection: its type names the dialect, its schema the database."""
    kind = credentials.kind.lower()
    driver = str(credentials.extra.get("sqlalchemy_scheme") or "") or _DIALECTS.get(kind, "")
    if not driver:
        raise ConfigurationError(
            f"The connection {credentials.name!r} is of the type {credentials.kind!r}, no database's.",
            f"Use one of {', '.join(sorted(_DIALECTS))}, or name it in the extra sqlalchemy_scheme.",
        )
    query = {name: str(value) for name, value in extra_mapping(credentials, "query").items()}
    if driver.startswith("sqlite"):
        # Airflow keeps the file's path in the host, others in the schema.
        return URL.create(driver, database=credentials.host or credentials.schema, query=query)
    for name in ("sslmode", "sslrootcert", "charset", "driver"):
        if credentials.extra.get(name):
            query.setdefault(name, str(credentials.extra[name]))
    return URL.create(
        driver,
        username=credentials.login or None,
        password=credentials.password or None,
        host=credentials.host or None,
        port=credentials.port,
        database=credentials.schema or None,
        query=query,
    )


def _place(url: URL) -> str:
    host = url.host or url.query.get("host") or ""
    where = f" on {host}" if isinstance(host, str) and host else ""
    return f'database "{url.database}"{where}' + (f":{url.port}" if url.port else "")
