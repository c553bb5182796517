"""A table on disk for what a stage must remember of a whole source, so that memory does not grow with it."""

import sqlite3
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self


class TempDatabase:
    """A temporary SQLite database, gone when it is closed; safe to share between threads."""

    def __init__(self, *schema: str) -> None:
        self._folder = TemporaryDirectory(prefix="tidemark-")
        self.database = sqlite3.connect(
            Path(self._folder.name) / "scratch.sqlite",
            check_same_thread=False,
            isolation_level=None,
        )
        # Nothing here outlives the process, so nothing is kept safe from its death.
        for statement in ("PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", *schema):
            self.database.execute(statement)

    def close(self) -> None:
        self.database.close()
        self._folder.cleanup()


class UsesTempDatabase:
    """Something that keeps what it knows in a ``Scratch``: a context, at whose end that is gone."""

    def __init__(self, *schema: str) -> None:
        self._temp_db = TempDatabase(*schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._temp_db.close()
