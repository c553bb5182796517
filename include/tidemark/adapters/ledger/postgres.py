"""The ledger in Postgres."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from uuid import UUID

from sqlalchemy import Engine
from sqlalchemy.engine import URL

from tidemark.adapters.ledger.documents import PostgresDocuments
from tidemark.adapters.ledger.engine import Database
from tidemark.adapters.ledger.generations import PostgresGenerations
from tidemark.adapters.ledger.locks import document_locks, is_source_locked, source_lock
from tidemark.adapters.ledger.runs import PostgresRuns
from tidemark.adapters.ledger.schema import metadata
from tidemark.adapters.ledger.sources import PostgresSources
from tidemark.adapters.ledger.tombstones import PostgresTombstones
from tidemark.adapters.ledger.versions import PostgresVersions
from tidemark.adapters.ledger.writes import PostgresWrites
from tidemark.adapters.retry import Retry

__all__ = ["PostgresLedger", "metadata"]


class PostgresLedger:
    """The Ledger port on Postgres, for a database that `tidemark migrate` has prepared.

    target: the database's URL, or an engine of it. Nothing is opened before the first call, and a
    ledger may be used on both sides of a fork.
    lock_seconds: how long ``lock_documents`` waits. retry_timeout: for how long a server that is away is
    asked again.
    """

    def __init__(
        self,
        target: Engine | URL | str | Database,
        *,
        lock_seconds: float = 300.0,
        retry_timeout: float = 0.0,
    ) -> None:
        if not isinstance(target, Database):
            target = Database(target, Retry("The ledger", retry_timeout))
        self._database = database = target
        self._lock_seconds = lock_seconds
        self.documents = PostgresDocuments(database)
        self.writes = PostgresWrites(database)
        self.tombstones = PostgresTombstones(database)
        self.sources = PostgresSources(database)
        self.runs = PostgresRuns(database)
        self.versions = PostgresVersions(database)
        self.generations = PostgresGenerations(database)

    def close(self) -> None:
        """Close this process's pooled connections."""
        self._database.close()

    @contextmanager
    def dry_run(self) -> Iterator["PostgresLedger"]:
        with self._database.rolled_back() as database:
            yield PostgresLedger(database, lock_seconds=self._lock_seconds)

    def lock(
        self, source: str, *, run_id: str | None = None, wait_seconds: float = 0.0
    ) -> AbstractContextManager[None]:
        return source_lock(self._database, source, run_id=run_id, wait_seconds=wait_seconds)

    def is_locked(self, source: str) -> bool:
        return is_source_locked(self._database, source)

    def lock_documents(self, document_ids: Sequence[UUID]) -> AbstractContextManager[None]:
        return document_locks(self._database, document_ids, wait_seconds=self._lock_seconds)
