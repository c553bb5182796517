"""The locks of sources and documents: advisory locks of a Postgres session, which end with the process.

A lock's connection is its own and sits outside any transaction, so that a run of hours holds back no
vacuum. A pooler that hands one session to many clients (transaction pooling) defeats it.

The tasks of one run share their source's lock: each holds it shared, and with it a second lock, shared too,
that is named for the source and the run. A session that holds the first without the second is of another
run. Who comes looks for such sessions and then takes both, and holds a third lock (the gate) for these two
statements: so nobody ever sees one that has come and will have to go again, and of two runs that come at
the same moment one has the source and the other waits.
"""

import logging
import os
import random
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC
from hashlib import blake2b
from uuid import UUID

from sqlalchemy import BigInteger, Connection, bindparam, exc, text
from sqlalchemy.dialects.postgresql import ARRAY

from tidemark.adapters.ledger.engine import Database, database_name, translated
from tidemark.domain.errors import LockLostError, SourceBusyError, TransientError

# How a run waits for a source that another run holds: the same for every ledger.

log = logging.getLogger(__name__)

FIRST_LINE = 2.0
"""Seconds of waiting after which the log says who is waited for."""
REMINDER = 30.0
"""Seconds between two such lines."""
POLL = (0.2, 1.0)
"""Seconds between two tries; a random time between them, so that many waiters spread out."""


def wait_for_source(attempt: Callable[[], str | None], source: str, wait_seconds: float) -> None:
    """Try until a source's lock is had.

    attempt: takes the lock and returns None, or says who holds it.
    Raises ``SourceBusyError`` when it is not had after ``wait_seconds``.
    """
    begun = time.monotonic()
    next_line = FIRST_LINE
    while (holders := attempt()) is not None:
        waited = time.monotonic() - begun
        busy = f'Another run holds the source "{source}": {holders}.'
        if waited >= wait_seconds:
            lasting = f" It was waited for {waited:.0f} s." if wait_seconds > 0 else ""
            raise SourceBusyError(
                busy + lasting, "Wait for it to end, or stop that process; its lock ends with it."
            )
        if waited >= next_line:
            log.warning("%s Waiting for it, %.0f of %.0f s.", busy, waited, wait_seconds)
            next_line = waited + REMINDER
        time.sleep(min(random.uniform(*POLL), wait_seconds - waited))  # noqa: S311 - no secret


_MASK = 0xFFFFFFFF
_LOCK_TIMEOUT = "55P03"
_NAME_BYTES = 63
"""Of an application's name, the server keeps so many."""
_HOST_BYTES = 12
# Named for the message of those who meet the lock, and never closed for being idle. The limit is for the
# gate, which is held for two statements unless its holder is stopped between them.
_INTRODUCTION = text(
    "SELECT set_config('application_name', :name, false), "
    "set_config('idle_session_timeout', '0', false), set_config('lock_timeout', '30s', false)"
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

# Sessions that hold the source and are not of the run.
_STRANGERS = text(
    """
    SELECT count(*) FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted AND l.pid <> pg_backend_pid()
      AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND l.classid = :high AND l.objid = :low
      AND l.pid NOT IN (
        SELECT r.pid FROM pg_locks r
        WHERE r.locktype = 'advisory' AND r.objsubid = 1 AND r.granted
          AND r.database = l.database AND r.classid = :run_high AND r.objid = :run_low
      )
    """
)
# Always in the order of the numbers, so that two that want some of the same never wait for each other.
_WAIT_FOR_ALL = text(
    "SELECT pg_advisory_lock(key) FROM (SELECT unnest(:keys) AS key ORDER BY 1) AS wanted"
).bindparams(bindparam("keys", type_=ARRAY(BigInteger)))


_UNLOCK = text("SELECT pg_advisory_unlock_all()")


def source_key(source: str) -> int:
    """The number of a source's lock: 64 bits, signed, equal in every process."""
    return _number(f"tidemark.source:{source}")


def document_key(document_id: UUID) -> int:
    """The number of a document's lock."""
    return _number(f"tidemark.document:{document_id}")


def _number(name: str) -> int:
    hashed = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(hashed, "big", signed=True)


def _run_key(source: str, run_id: str) -> int:
    return _number(f"tidemark.run:{len(source)}:{source}:{run_id}")


def _gate_key(source: str) -> int:
    return _number(f"tidemark.gate:{source}")


@contextmanager
def source_lock(
    database: Database, source: str, *, run_id: str | None, wait_seconds: float
) -> Iterator[None]:
    """Hold the lock of a source: alone, or with a ``run_id`` together with the other tasks of that run.

    Raises ``SourceBusyError`` when another has had it for ``wait_seconds``. Raises ``LockLostError`` at the
    end when the connection that held it was lost on the way, because another run may then have worked
    beside this one.
    """
    with _session(database, f'the source "{source}"', run_id) as connection:

        def attempt() -> str | None:
            if run_id is None:
                had = _try_alone(connection, source)
            else:
                had = _try_together(connection, source, run_id)
            return None if had else _holders(connection, source_key(source))

        with translated(database.url):
            wait_for_source(attempt, source, wait_seconds)
        yield


def is_source_locked(database: Database, source: str) -> bool:
    """Does any session hold the lock of a source?"""
    return bool(database.rows(_HOLDERS, _halves(source_key(source))))


def _try_alone(connection: Connection, source: str) -> bool:
    key = {"key": source_key(source)}
    return bool(connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), key))


def _try_together(connection: Connection, source: str, run_id: str) -> bool:
    key, run_key = source_key(source), _run_key(source, run_id)
    run_halves = {f"run_{name}": half for name, half in _halves(run_key).items()}
    gate = {"key": _gate_key(source)}
    connection.execute(text("SELECT pg_advisory_lock(:key)"), gate)
    try:
        # The server reads its locks twice for this, and a task of this run that ends in between passes for a
        # stranger once; a real one is there again.
        if all(connection.scalar(_STRANGERS, {**_halves(key), **run_halves}) for _ in range(3)):
            return False
        if not connection.scalar(text("SELECT pg_try_advisory_lock_shared(:key)"), {"key": key}):
            return False
        connection.execute(text("SELECT pg_advisory_lock_shared(:key)"), {"key": run_key})
        return True
    finally:
        connection.execute(text("SELECT pg_advisory_unlock(:key)"), gate)


@contextmanager
def document_locks(
    database: Database, document_ids: Sequence[UUID], *, wait_seconds: float
) -> Iterator[None]:
    """Hold the locks of documents, waiting for them. Raises ``TransientError`` after ``wait_seconds``."""
    keys = sorted({document_key(document_id) for document_id in document_ids})
    with ExitStack() as session:
        if keys:
            # Nothing has been done under the locks yet, so getting them may be tried again.
            database.retried(
                lambda: session.enter_context(_held_together(database, keys, wait_seconds))
            )
        database.locks.held = True
        try:
            yield
        finally:
            database.locks.held = False


@contextmanager
def _held_together(database: Database, keys: list[int], wait_seconds: float) -> Iterator[None]:
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
def _session(database: Database, what: str, run_id: str | None = None) -> Iterator[Connection]:
    """A connection of its own for one lock; its end frees the lock, whatever happened."""
    with translated(database.url):
        connection = database.unpooled.connect().execution_options(isolation_level="AUTOCOMMIT")
    try:
        with translated(database.url):
            connection.execute(_INTRODUCTION, {"name": _own_name(run_id)})
        try:
            yield connection
        except Exception:
            with suppress(exc.DBAPIError):
                connection.execute(_UNLOCK)
            raise
        _let_go(connection, database, what)
    finally:
        connection.invalidate()
        connection.close()


def _let_go(connection: Connection, database: Database, what: str) -> None:
    """Free the locks of a session at once, not when the server has noticed its end.

    One that does not answer any more lost them on the way.
    """
    try:
        connection.execute(_UNLOCK)
    except exc.DBAPIError as error:
        raise LockLostError(
            f"The connection that held the lock of {what} was lost ({database_name(database.url)}), so "
            "another run may have worked at the same time.",
            "Run the source again; a run that finds nothing to do proves that all is well.",
        ) from error


def _own_name(run_id: str | None) -> str:
    """What those who meet a lock are told of its holder, in the bytes that the server keeps."""
    host, process = socket.gethostname(), os.getpid()
    if run_id is None:
        return f"tidemark process {process} on {host}"
    frame = f"tidemark run {{}}, process {process} on {host[:_HOST_BYTES]}"
    space = _NAME_BYTES - len(frame.encode()) + 2
    # A run's name ends in what tells it from others, and begins with its source's.
    shown = run_id if len(run_id.encode()) <= space else f"..{run_id[3 - space :]}"
    return frame.format(shown)


def _halves(key: int) -> dict[str, int]:
    """A lock's number as the server's list of locks shows it."""
    return {"high": (key >> 32) & _MASK, "low": key & _MASK}


def _holders(connection: Connection, key: int) -> str:
    holders = []
    for row in connection.execute(_HOLDERS, _halves(key)):
        who = row.application_name or "a process that does not give its name"
        where = f" from {row.address}" if row.address else ""
        since = ""
        if row.backend_start:
            since = f" since {row.backend_start.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        holders.append(f"{who}{where} (database session {row.pid}){since}")
    return "; ".join(holders) or "a process that has ended in this moment"
