"""A Postgres of our own, from a pip package, started on demand under a folder.

The package's binaries are run directly. Its own launcher keeps one lock file for the whole machine in a
shared folder, which a second user cannot open, and opens every folder above the data to be listed by all.

    FOLDER/data   the cluster        FOLDER/log/postgres.log   what the server says
    FOLDER/run    its socket         FOLDER/.lock              held while it is started or stopped
"""

import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

from filelock import FileLock, Timeout
from sqlalchemy import Connection, NullPool, text
from sqlalchemy.engine import URL

from tidemark.adapters.postgres_engine import database_engine, translated
from tidemark.adapters.postgres_programs import (
    PORT,
    Postmaster,
    binaries,
    failure,
    is_postgres,
    launch_server,
    read_postmaster,
    run_program,
)
from tidemark.adapters.server_account import Account, let_read, let_through, server_account
from tidemark.domain.errors import ConfigurationError, PermanentError, TransientError

SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "max_wal_size": "256MB",
}
_SOCKET_PATH_BYTES = 100
"""The systems' limits are 103 to 107 bytes."""

_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._+-]+")
_POLL_SECONDS = 0.02
_LEFTOVERS_SECONDS = 10.0
_IN_USE = "is still in use"


class EmbeddedPostgres:
    """A server that outlives the process that started it, until ``stop``. Any process may call any
    method at any time; each folder has a server of its own.

    folder: everything of the server; made where missing.
    settings: server settings on top of ``SETTINGS``, for the start.
    timeout: seconds for a start or a stop, and to wait for another process doing either.

    Raises ``ConfigurationError`` for what must be put right (package missing, another user's folder),
    ``PermanentError`` when the server will not start, ``TransientError`` when it takes too long.
    """

    def __init__(
        self, folder: Path, *, settings: Mapping[str, str] | None = None, timeout: float = 120.0
    ) -> None:
        self.folder = folder.expanduser().resolve()
        self.data = self.folder / "data"
        self.log = self.folder / "log" / "postgres.log"
        self._settings = {**SETTINGS, **(settings or {})}
        self._timeout = timeout

    def is_running(self) -> bool:
        """Does it accept connections?"""
        postmaster = self._postmaster()
        return postmaster is not None and postmaster.ready and postmaster.answers()

    def ensure_running(self) -> None:
        """Start the server where it does not run, making its cluster the first time."""
        if self.is_running():
            return
        with self._locked():
            if self.is_running():
                return
            postmaster = self._postmaster()
            if postmaster is not None and postmaster.is_alive():
                # Started by a process that died while waiting for it, and still recovering.
                self._wait_until_ready(postmaster.pid)
                return
            self._start()

    def url(self, database: str, driver: str | None = "psycopg") -> str:
        """The SQLAlchemy URL of a database, which is created where missing; starts the server."""
        self.ensure_running()
        if not self._has_database(database):
            with self._locked():
                self._create_database(database)
        return self._url(database, driver).render_as_string(hide_password=False)

    def stop(self) -> None:
        """Stop the server, ending its connections; a server that does not run is fine."""
        if self._postmaster() is None:
            return
        with self._locked():
            postmaster = self._postmaster()
            if postmaster is not None and postmaster.is_alive():
                stop = ["stop", "-D", str(self.data), "-m", "fast", "-w", "-t", self._seconds]
                self._run(server_account(self.data), "pg_ctl", *stop)

    def _start(self) -> None:
        account = server_account(self.data)
        for folder in (self.log.parent, self.folder / "run"):
            account.own(folder)
        if account.lent:
            self._open_the_way(account)
        if not (self.data / "PG_VERSION").exists():
            self._make_cluster(account)
        sockets = self._socket_folder(account)
        # A server takes any process that has the number in these files for another server, and does not
        # start. That nothing of a killed one still works on the data, it finds out by itself.
        for left in (self.data / "postmaster.pid", sockets / f".s.PGSQL.{PORT}.lock"):
            left.unlink(missing_ok=True)
        settings = {**self._settings, "unix_socket_directories": str(sockets)}
        deadline = time.monotonic() + _LEFTOVERS_SECONDS
        while True:
            pid = launch_server(account, self.data, settings, self.log)
            try:
                self._wait_until_ready(pid)
            except PermanentError as error:
                # Of a killed server some processes live on for a moment, and keep the data.
                if _IN_USE not in error.message or time.monotonic() > deadline:
                    raise
                time.sleep(_LEFTOVERS_SECONDS / 20)
            else:
                return

    def _make_cluster(self, account: Account) -> None:
        # Made aside and renamed, so that an interruption leaves no half-made cluster behind.
        unfinished = self.folder / "data.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        account.own(unfinished)
        trust = ["--auth-local=trust", "--auth-host=reject", "--username=postgres"]
        sync = ["--no-sync"] if self._settings.get("fsync") == "off" else []
        names = ["--encoding=UTF8", "--no-locale"]
        self._run(account, "initdb", "-D", str(unfinished), *names, *trust, *sync)
        unfinished.rename(self.data)

    def _open_the_way(self, account: Account) -> None:
        let_through(self.folder / "data")
        try:
            self._run(account, "postgres", "--version")
        except PermanentError:
            let_read(binaries().parent)

    def _socket_folder(self, account: Account) -> Path:
        """The folder's own, or where its path is too long or odd for a socket a short one."""
        own = self.folder / "run"
        path = str(own / f".s.PGSQL.{PORT}")
        if len(os.fsencode(path)) <= _SOCKET_PATH_BYTES and _PLAIN_PATH.fullmatch(path):
            return own
        name = blake2b(os.fsencode(self.folder), digest_size=8).hexdigest()
        # Not the configured temporary folder: that may be long too, and differs between processes.
        short = Path("/tmp") / f"tidemark-{account.uid}-{name}"  # noqa: S108
        if short.is_symlink() or (short.exists() and short.stat().st_uid != account.uid):
            raise ConfigurationError(
                f"{short}, which the server needs for its socket, is in other hands.",
                f"Remove it, or use a shorter path than {self.folder}.",
            )
        account.own(short)
        return short

    def _has_database(self, name: str) -> bool:
        with self._maintenance() as connection:
            found = text("SELECT 1 FROM pg_database WHERE datname = :name")
            return connection.scalar(found, {"name": name}) is not None

    def _create_database(self, name: str) -> None:
        if self._has_database(name):
            return
        with self._maintenance() as connection:
            quoted = connection.dialect.identifier_preparer.quote_identifier(name)
            connection.exec_driver_sql(f"CREATE DATABASE {quoted}")

    @contextmanager
    def _maintenance(self) -> Iterator[Connection]:
        url = self._url("postgres", "psycopg")
        engine = database_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with translated(url), engine.connect() as connection:
            yield connection

    def _url(self, database: str, driver: str | None) -> URL:
        postmaster = self._postmaster()
        if postmaster is None:
            raise TransientError(
                f"The Postgres server in {self.folder} has just stopped.", "Retry."
            )
        return URL.create(
            f"postgresql+{driver}" if driver else "postgresql",
            username="postgres",
            database=database,
            # The port, too, or a PGPORT in somebody's environment would decide it.
            query={"host": str(postmaster.socket_folder), "port": str(PORT)},
        )

    def _postmaster(self) -> Postmaster | None:
        try:
            return read_postmaster(self.data)
        except OSError as error:
            raise self._unusable(error) from error

    def _wait_until_ready(self, pid: int) -> None:
        deadline = time.monotonic() + self._timeout
        while not self.is_running():
            if not is_postgres(pid):
                raise failure("postgres", "it ended at once.", self.log)
            if time.monotonic() > deadline:
                raise TransientError(
                    f"The Postgres server in {self.folder} is not ready after {self._seconds} s.",
                    f"Look into {self.log}.",
                )
            time.sleep(_POLL_SECONDS)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / ".lock")
            lock.acquire(timeout=self._timeout)
        except Timeout as error:
            raise TransientError(
                f"Another process has been starting the Postgres server in {self.folder} for "
                f"{self._seconds} s.",
                "Try again, or end that process.",
            ) from error
        except OSError as error:
            raise self._unusable(error) from error
        try:
            yield
        except OSError as error:
            raise self._unusable(error) from error
        finally:
            lock.release()

    def _unusable(self, error: OSError) -> ConfigurationError:
        return ConfigurationError(
            f"The folder {self.folder} of the Postgres server cannot be used: {error}.",
            "Run as the user who made it, or set another TIDEMARK_HOME.",
        )

    @property
    def _seconds(self) -> str:
        return f"{max(1, round(self._timeout))}"

    def _run(self, account: Account, program: str, *arguments: str) -> None:
        run_program(account, program, *arguments, log=self.log)
