"""Where the local services keep their things under TIDEMARK_HOME, and the secrets that they share.

HOME/postgres    the database server: databases `tidemark` (ledger) and `airflow`
HOME/airflow     Airflow's own home, task logs, generated secrets
HOME/logs        one log per service
HOME/run         which processes were started
"""

import base64
import fcntl
import json
import os
import secrets
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

ADMIN = "admin"
TASKS = "tidemark"
"""The account that tasks use, to write notes on their own runs; it may not change the configuration."""


@dataclass(frozen=True, slots=True)
class LocalSecrets:
    """What the services share, and the passwords of the two accounts."""

    fernet_key: str
    jwt_secret: str
    api_secret_key: str
    admin_password: str
    tasks_password: str


class Layout:
    """Paths under one home, made on demand."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.airflow = home / "airflow"
        self.logs = home / "logs"
        self.run = home / "run"
        # What is running, for commands that join it.
        self.state = self.run / "airflow.state"
        # Which Airflow's schema the database has.
        self.migrated = self.airflow / "migrated"
        self.keys = self.airflow / "keys.json"
        self.passwords = self.airflow / "passwords.json"
        # There once the password has been printed.
        self.password_shown = self.airflow / "password-shown"

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

    def secrets(self) -> LocalSecrets:
        """The secrets of this home; what is missing is generated, readable by the owner only.

        Raises ``PermanentError`` when a file of them cannot be read.
        """
        keys = _completed(
            self.keys,
            {
                "fernet_key": base64.urlsafe_b64encode(os.urandom(32)).decode(),
                "jwt_secret": secrets.token_urlsafe(48),
                "api_secret_key": secrets.token_urlsafe(48),
            },
        )
        # In the form that Airflow's simple auth manager reads: user name to password.
        passwords = _completed(
            self.passwords, {ADMIN: secrets.token_urlsafe(12), TASKS: secrets.token_urlsafe(24)}
        )
        return LocalSecrets(
            keys["fernet_key"],
            keys["jwt_secret"],
            keys["api_secret_key"],
            passwords[ADMIN],
            passwords[TASKS],
        )


def _completed(path: Path, generated: dict[str, str]) -> dict[str, str]:
    """The values in a file, which is written anew with the generated ones that it lacks."""
    present: dict[str, str] = {}
    try:
        if path.exists():
            items = json.loads(path.read_text(encoding="utf-8")).items()
            present = {str(key): str(value) for key, value in items}
    except (OSError, ValueError, AttributeError) as error:
        raise PermanentError(
            f"The secrets in {path} cannot be read: {error}.",
            "Correct the file, or remove it to have new ones generated.",
        ) from error
    values = generated | present
    if values != present:
        unfinished = path.with_suffix(".new")
        unfinished.unlink(missing_ok=True)
        handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump(values, out, indent=1)
        unfinished.rename(path)
    return values
