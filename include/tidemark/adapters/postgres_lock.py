"""The lock of a source: a Postgres advisory lock of a session, which ends with the process.

The connection is the lock's own and sits outside any transaction, so that a run of hours holds back no
vacuum. A pooler that hands one session to many clients (transaction pooling) defeats it.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from hashlib import blake2b

from sqlalchemy import Connection, NullPool, exc, text

from tidemark.adapters.postgres_engine import Database, database_engine, place, translated
from tidemark.domain.errors import SourceBusyError, TransientError

_MASK = 0xFFFFFFFF
_HOLDERS = text(
    """
    SELECT l.pid, l.mode, a.application_name, a.client_addr::text AS address, a.backend_start
    FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)
    WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND l.classid = :high AND l.objid = :low
    ORDER BY a.backend_start
    """
)


def lock_key(source: str) -> int:
    """The lock's number: 64 bits, signed, equal in every process."""
    name = f"tidemark.source:{source}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(name, digest_size=8).digest(), "big", signed=True)


@contextmanager
def source_lock(database: Database, source: str, *, shared: bool) -> Iterator[None]:
    """Hold the lock of a source. Raises ``SourceBusyError`` at once when it cannot be had.

    Raises ``TransientError`` at the end when the connection that held it was lost on the way, because
    another run may then have worked beside this one.
    """
    engine = database_engine(database.url, poolclass=NullPool)
    with translated(database.url):
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
    try:
        with translated(database.url):
            _take(connection, source, shared=shared)
        yield
        _give_back(connection, database, source, shared=shared)
    finally:
        # Closing the session frees the lock whatever happened.
        connection.invalidate()
        connection.close()


def _take(connection: Connection, source: str, *, shared: bool) -> None:
    holder = f"tidemark process {os.getpid()} on {socket.gethostname()}"
    connection.execute(
        text("SELECT set_config('application_name', :name, false)"), {"name": holder}
    )
    connection.execute(text("SET idle_session_timeout = 0"))
    key = lock_key(source)
    function = "pg_try_advisory_lock_shared" if shared else "pg_try_advisory_lock"
    if connection.scalar(text(f"SELECT {function}(:key)"), {"key": key}):
        return
    raise SourceBusyError(
        f'Another run holds the source "{source}": {_holders(connection, key)}.',
        "Wait for it to end, or stop that process; the lock is free as soon as it is gone.",
    )


def _holders(connection: Connection, key: int) -> str:
    halves = {"high": (key >> 32) & _MASK, "low": key & _MASK}
    found = []
    for row in connection.execute(_HOLDERS, halves):
        who = row.application_name or "a process that does not give its name"
        where = f" from {row.address}" if row.address else ""
        since = ""
        if row.backend_start:
            since = f" since {row.backend_start.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        found.append(f"{who}{where} (database session {row.pid}){since}")
    return "; ".join(found) or "a process that has ended in this moment"


def _give_back(connection: Connection, database: Database, source: str, *, shared: bool) -> None:
    function = "pg_advisory_unlock_shared" if shared else "pg_advisory_unlock"
    try:
        held = connection.scalar(text(f"SELECT {function}(:key)"), {"key": lock_key(source)})
    except exc.DBAPIError:
        held = False
    if not held:
        raise TransientError(
            f'The connection that held the lock of the source "{source}" was lost '
            f"({place(database.url)}), so another run may have worked at the same time.",
            "Run the source again; a run that finds nothing to do proves that all is well.",
        )
