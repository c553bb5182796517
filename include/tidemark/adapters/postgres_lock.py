"""The locks of sources and documents: advisory locks of a Postgres session, which end with the process.

A lock's connection is its own and sits outside any transaction, so that a run of hours holds back no
vacuum. A pooler that hands one session to many clients (transaction pooling) defeats it.
"""

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC
from hashlib import blake2b
from uuid import UUID

from sqlalchemy import BigInteger, Connection, bindparam, exc, text
from sqlalchemy.dialects.postgresql import ARRAY

from tidemark.adapters.postgres_engine import Database, place, translated
from tidemark.domain.errors import SourceBusyError, TransientError

_MASK = 0xFFFFFFFF
_LOCK_TIMEOUT = "55P03"
# Named for the message of those who meet the lock, and never closed for being idle.
_INTRODUCTION = text(
    "SELECT set_config('application_name', :name, false), "
    "set_config('idle_session_timeout', '0', false)"
)
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


# Always in the order of the numbers, so that two that want some of the same never wait for each other.
_WAIT_FOR_ALL = text(
    "SELECT pg_advisory_lock(key) FROM (SELECT unnest(:keys) AS key ORDER BY 1) AS wanted"
).bindparams(bindparam("keys", type_=ARRAY(BigInteger)))


def source_key(source: str) -> int:
    """The number of a source's lock: 64 bits, signed, equal in every process."""
    return _number(f"tidemark.source:{source}")


def document_key(document_id: UUID) -> int:
    """The number of a document's lock."""
    return _number(f"tidemark.document:{document_id}")


def _number(name: str) -> int:
    hashed = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(hashed, "big", signed=True)


@contextmanager
def source_lock(database: Database, source: str, *, shared: bool) -> Iterator[None]:
    """Hold the lock of a source. Raises ``SourceBusyError`` at once when it cannot be had.

    Raises ``TransientError`` at the end when the connection that held it was lost on the way, because
    another run may then have worked beside this one.
    """
    key = source_key(source)
    function = "pg_try_advisory_lock_shared" if shared else "pg_try_advisory_lock"
    with _session(database, f'the source "{source}"') as connection:
        with translated(database.url):
            if not connection.scalar(text(f"SELECT {function}(:key)"), {"key": key}):
                raise SourceBusyError(
                    f'Another run holds the source "{source}": {_holders(connection, key)}.',
                    "Wait for it to end, or stop that process; its lock ends with it.",
                )
        yield


@contextmanager
def document_locks(
    database: Database, document_ids: Sequence[UUID], *, wait_seconds: float
) -> Iterator[None]:
    """Hold the locks of documents, waiting for them. Raises ``TransientError`` after ``wait_seconds``."""
    keys = sorted({document_key(document_id) for document_id in document_ids})
    if not keys:
        yield
        return
    with _session(database, f"{len(keys)} documents") as connection:
        with translated(database.url):
            _wait_for_all(connection, keys, wait_seconds)
        yield


def _wait_for_all(connection: Connection, keys: list[int], wait_seconds: float) -> None:
    limit = {"limit": f"{max(1, round(wait_seconds * 1000))}ms"}
    connection.execute(text("SELECT set_config('lock_timeout', :limit, false)"), limit)
    try:
        connection.execute(_WAIT_FOR_ALL, {"keys": keys})
    except exc.OperationalError as error:
        if getattr(error.orig, "sqlstate", None) != _LOCK_TIMEOUT:
            raise
        raise TransientError(
            f"Another run has been writing one of {len(keys)} documents for {wait_seconds:.0f} s.",
            "Try again when it has ended.",
        ) from error


@contextmanager
def _session(database: Database, what: str) -> Iterator[Connection]:
    """A connection of its own for one lock; its end frees the lock, whatever happened."""
    with translated(database.url):
        connection = database.unpooled.connect().execution_options(isolation_level="AUTOCOMMIT")
    try:
        with translated(database.url):
            holder = f"tidemark process {os.getpid()} on {socket.gethostname()}"
            connection.execute(_INTRODUCTION, {"name": holder})
        yield connection
        _confirm(connection, database, what)
    finally:
        connection.invalidate()
        connection.close()


def _confirm(connection: Connection, database: Database, what: str) -> None:
    """The session that held a lock to the end still answers; one that does not lost it on the way."""
    try:
        connection.execute(text("SELECT 1"))
    except exc.DBAPIError as error:
        raise TransientError(
            f"The connection that held the lock of {what} was lost ({place(database.url)}), so another "
            "run may have worked at the same time.",
            "Run the source again; a run that finds nothing to do proves that all is well.",
        ) from error


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
