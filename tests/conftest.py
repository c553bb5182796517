"""Services that the tests start by themselves, and stop."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import disk_usage
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from sqlalchemy import Connection, NullPool, create_engine, text

from tidemark.adapters.ledger.postgres import metadata
from tidemark.adapters.services.postgres import EmbeddedPostgres

if TYPE_CHECKING:
    from sites import Site

THROWAWAY = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "autovacuum": "off",
}
"""Server settings for data that nobody minds losing; and whose plans do not hang on when it was analysed."""


MEMORY = Path("/dev/shm")
ROOM = 4 * 1024**3
"""Bytes that must be free there."""


def pytest_configure() -> None:
    """Keep what tests write in memory where there is room: the stores' syncing is most of their time.

    A folder chosen by TMPDIR is kept; the processes that tests start inherit the choice.
    """
    roomy = MEMORY.is_dir() and os.access(MEMORY, os.W_OK) and disk_usage(MEMORY).free > ROOM
    if roomy and "TMPDIR" not in os.environ:
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None


def pytest_addoption(parser: pytest.Parser) -> None:
    """Here, since pytest looks for options only in the folders that it starts from and above them."""
    parser.addoption(
        "--regenerate-golden",
        action="store_true",
        help="write tests/golden/expected instead of comparing with it; the run ends red on purpose",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take minutes come first, so that no worker is left alone with one at the end."""
    items.sort(key=lambda item: "e2e" not in item.path.parts)


@pytest.fixture
def regenerate_golden(pytestconfig: pytest.Config) -> bool:
    """Whether expected files are to be written."""
    return bool(pytestconfig.getoption("--regenerate-golden"))


@contextmanager
def short_folder() -> Iterator[Path]:
    """A folder for a home with an embedded Postgres.

    Not pytest's temporary folder: its path is long, it is kept after the session, and each new session
    takes away the permission by which the server's account passes through it.
    """
    folder = Path(tempfile.mkdtemp(prefix="tidemark-tests-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def module_folder() -> Iterator[Path]:
    """A short-lived folder for the tests of one module."""
    with short_folder() as folder:
        yield folder


@pytest.fixture
def own_folder() -> Iterator[Path]:
    """A short-lived folder for one test."""
    with short_folder() as folder:
        yield folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """A Postgres server of this test session's own."""
    with short_folder() as folder:
        server = EmbeddedPostgres(folder, settings=THROWAWAY)
        try:
            server.ensure_running()
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def ledger_database(postgres: EmbeddedPostgres) -> str:
    """The URL of this session's migrated ledger; tests take ``postgres_url``."""
    from tidemark.adapters.ledger.migrations import upgrade

    url = postgres.url("ledger")
    upgrade(url)
    return url


@pytest.fixture
def postgres_url(ledger_database: str) -> Iterator[str]:
    """The URL of a migrated, empty ledger for one test."""
    yield ledger_database
    # Emptying costs a hundredth of making a database anew.
    with _autocommit(ledger_database) as connection:
        connection.execute(_END_OTHER_SESSIONS)
        for table in reversed(metadata.sorted_tables):
            connection.execute(table.delete())


@pytest.fixture
def empty_postgres_url(postgres: EmbeddedPostgres) -> Iterator[str]:
    """The URL of a database without any table, for one test."""
    name = f"test_{uuid4().hex}"
    yield postgres.url(name)
    with _autocommit(postgres.url("postgres")) as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))


_END_OTHER_SESSIONS = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@contextmanager
def _autocommit(url: str) -> Iterator[Connection]:
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection


@pytest.fixture
def site() -> Iterator["Site"]:
    """A website over loopback, without a page at first."""
    from sites import Site

    with Site() as running:
        yield running
