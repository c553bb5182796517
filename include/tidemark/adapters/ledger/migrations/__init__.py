"""The ledger's schema and its versions: what `tidemark migrate` runs and what start-up checks.

A version is a file ``versions/NNNN_what_it_does.py`` whose revision is its number. The number that a
database is at stands in its table ``tidemark_schema``: not Alembic's usual name, so that a ledger put
into a database beside another application that uses Alembic (Airflow does) disturbs neither.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, NullPool, text
from sqlalchemy.engine import URL

from tidemark.adapters.ledger.engine import database_engine, database_name, translated
from tidemark.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from alembic.config import Config

FOLDER = Path(__file__).parent
VERSION_TABLE = "tidemark_schema"
_LOCK_KEY = 0x7469646D_6D696772  # "tidmmigr"


def revisions() -> list[str]:
    """The versions that this Tidemark knows, oldest first (without importing Alembic)."""
    return sorted(path.stem.partition("_")[0] for path in FOLDER.glob("versions/[0-9]*_*.py"))


def upgrade(url: str | URL) -> str:
    """Bring the schema to the newest version, each step in its own transaction; returns that version.

    Safe to repeat and to run in many processes at once. Raises ``ConfigurationError`` when the database
    is of a newer Tidemark.
    """
    newest = revisions()[-1]
    with _connected(url) as connection:
        if _version(connection) == newest:
            return newest
        # Only where there is something to do: it costs every process that opens a ledger.
        from alembic import command

        connection.execute(text("SELECT pg_advisory_lock(:key)"), {"key": _LOCK_KEY})
        connection.commit()
        _refuse_newer(_version(connection), connection.engine.url)
        command.upgrade(config(connection), "head")
        connection.commit()
    return newest


def current(url: str | URL) -> str | None:
    """The version that the database is at, None when it has no schema."""
    with _connected(url) as connection:
        return _version(connection)


def check(url: str | URL) -> None:
    """Raise ``ConfigurationError``, with the hint, unless the database is at this Tidemark's version."""
    with _connected(url) as connection:
        found = _version(connection)
        database = connection.engine.url
    _refuse_newer(found, database)
    newest = revisions()[-1]
    if found is None:
        raise ConfigurationError(
            f"The {database_name(database)} has no ledger schema.", "Run `tidemark migrate`."
        )
    if found != newest:
        raise ConfigurationError(
            f"The {database_name(database)} has the ledger schema {found}, and this Tidemark needs {newest}.",
            "Run `tidemark migrate`.",
        )


def config(connection: Connection) -> "Config":
    """An Alembic configuration that works on an open connection."""
    from alembic.config import Config

    settings = Config()
    # The configuration parser would take a percent sign in the path for a reference.
    settings.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    settings.attributes["connection"] = connection
    return settings


def _refuse_newer(found: str | None, database: URL) -> None:
    if found is not None and found not in revisions():
        raise ConfigurationError(
            f"The {database_name(database)} has the ledger schema {found}, which a newer Tidemark made; "
            f"this one knows versions up to {revisions()[-1]}.",
            "Install that newer Tidemark, then run `tidemark migrate`.",
        )


def _version(connection: Connection) -> str | None:
    found: str | None = None
    if connection.scalar(text("SELECT to_regclass(:name)"), {"name": VERSION_TABLE}):
        # The name is a constant of this module.
        found = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608
    connection.commit()
    return found


@contextmanager
def _connected(url: str | URL) -> Iterator[Connection]:
    engine = database_engine(url, poolclass=NullPool)
    with translated(engine.url), engine.connect() as connection:
        yield connection
