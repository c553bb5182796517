"""Where the local services keep their things under TIDEMARK_HOME.

HOME/postgres    the database server: databases `tidemark` (ledger) and `airflow`
HOME/airflow     Airflow's own home, task logs, generated secrets
HOME/logs        one log per service
HOME/run         which processes were started
"""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tidemark.domain.errors import PermanentError
from tidemark_local.processes import ProcessTable

if TYPE_CHECKING:
    from tidemark.adapters.services.postgres import EmbeddedPostgres

PROJECT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Layout:
    """Paths under one home, made on demand."""

    home: Path

    @property
    def airflow(self) -> Path:
        return self.home / "airflow"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def run(self) -> Path:
        return self.home / "run"

    @property
    def state(self) -> Path:
        """What is running, for commands that join it."""
        return self.run / "airflow.state"

    @property
    def migrated(self) -> Path:
        """Which Airflow's schema the database has."""
        return self.airflow / "migrated"

    @property
    def passwords(self) -> Path:
        return self.airflow / "passwords.json"

    @property
    def password_shown(self) -> Path:
        """There once the password has been printed."""
        return self.airflow / "password-shown"

    @property
    def keys(self) -> Path:
        return self.airflow / "keys.json"

    def make(self) -> None:
        """Make the folders; only the owner may look into Airflow's."""
        self.home.mkdir(parents=True, exist_ok=True)
        for folder in (self.airflow, self.logs, self.run):
            folder.mkdir(exist_ok=True)
        self.airflow.chmod(0o700)

    def processes(self) -> ProcessTable:
        return ProcessTable(self.run)

    def postgres(self) -> "EmbeddedPostgres":
        from tidemark.adapters.services.postgres import EmbeddedPostgres

        return EmbeddedPostgres(self.home / "postgres")

    @contextmanager
    def launching(self) -> Iterator[None]:
        """Be the only launcher of this home; the death of the process frees it.

        Raises ``PermanentError`` when another one is at work.
        """
        self.make()
        with (self.run / "launcher.lock").open("w", encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise PermanentError(
                    f"Another `make` command is at work in {self.home}.",
                    "Wait for it, or give this one a home of its own: TIDEMARK_HOME=/another/folder.",
                ) from error
            yield
