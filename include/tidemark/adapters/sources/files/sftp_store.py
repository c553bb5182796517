"""A folder on an SSH server. Its host key must be known: a stranger who answers in its place is refused.

    connection               meaning
    -----------------------  ---------------------------------------------------------------------------
    login, password          for the server; without a password, keys are tried
    host, port               where the URL does not name them
    extra key_file           path of a private key
    extra private_key        the key itself
    extra private_key_passphrase
    extra host_key           the server's public key, "ssh-ed25519 AAAA..."
    extra known_hosts        path of a file with host keys, instead of the account's own
    extra no_host_key_check  true accepts any server

Links are not followed: the server alone knows where they lead. The server's address is judged whether the
URL or the connection names it (``sources/network.py``).
"""

import logging
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import StringIO
from typing import Any
from urllib.parse import unquote, urlsplit

from tidemark.adapters.sources.credentials import is_set, storage_options
from tidemark.adapters.sources.files.store import (
    Body,
    Entry,
    FolderStore,
    Location,
    missing_package,
)
from tidemark.adapters.sources.network import guarded_socket
from tidemark.adapters.sources.selection import quoted
from tidemark.domain.connections import Credentials
from tidemark.domain.documents import Validators
from tidemark.domain.errors import ConfigurationError, PermanentError, TidemarkError, TransientError

_TIMEOUT_SECONDS = 30.0
_LOG = "tidemark.adapters.sources.files.sftp_store.paramiko"
"""Where paramiko writes for this adapter: to nobody, since every failure is translated and told once."""


class SftpStore(FolderStore):
    """A ``Store`` over one folder, or one file; one connection for the whole crawl."""

    _passed_over = (PermanentError,)

    def __init__(self, location: Location) -> None:
        """Raises ``TidemarkError`` for a server that is away, unknown or refuses the login."""
        try:
            import paramiko
        except ImportError as error:
            raise missing_package("An SFTP server", "paramiko") from error
        parts = urlsplit(location.url)
        options = storage_options("sftp", location.credentials)
        self._host = parts.hostname or str(options.get("host", ""))
        self._port = parts.port or int(options.get("port", 22))
        self._allow_private = location.allow_private
        if not self._host:
            raise ConfigurationError(
                "The SFTP URL names no server.",
                "Write sftp://host/folder, or name it in the connection.",
            )
        self._failures = (paramiko.SSHException, OSError, EOFError)
        path = unquote(parts.path, errors="surrogateescape") or "/"
        self._root = path.removeprefix("/~/") if path.startswith("/~/") else path
        port = "" if self._port == 22 else f":{self._port}"
        self._base = f"sftp://{self._host}{port}"
        self.place = self._base + quoted(path)
        self._client = paramiko.SSHClient()
        _silence(logging.getLogger(_LOG))
        self._client.set_log_channel(_LOG)
        try:
            self._sftp: Any = self._connected(paramiko, options, location.credentials)
            self._root = self._sftp.normalize(self._root).rstrip("/")
        except BaseException:
            self._client.close()
            raise

    def entries(self, problems: list[str]) -> Iterator[Entry]:
        """Walk it; a place that is one file is that file alone."""
        try:
            with self._translating():
                status = self._sftp.stat(self._root or "/")
        except FileNotFoundError:
            raise PermanentError(f"There is no {self.place}.", "Check the path.") from None
        if stat.S_ISREG(status.st_mode):
            yield self._entry(self._root.rpartition("/")[2], self._root, status)
        else:
            yield from self._walk(self._root, problems)

    def read(self, entry: Entry, limit: int, held: Validators | None) -> Body:
        with self._translating(entry.relative), self._sftp.open(entry.key, "rb") as file:
            file.prefetch(min(entry.size or 0, limit + 1))
            content = bytes(file.read(limit + 1))
        return self._checked(entry, content, limit)

    def refresh(self, entry: Entry) -> Entry:
        with self._translating(entry.relative):
            status = self._sftp.lstat(entry.key)
        return self._entry(entry.relative, entry.key, status)

    def close(self) -> None:
        self._client.close()

    def _children(self, folder: str, relative: str) -> list[tuple[str, Entry | str]]:
        try:
            listed = sorted(self._sftp.listdir_attr(folder or "/"), key=lambda c: c.filename)
        except self._failures as error:
            if relative and isinstance(error, (PermissionError, FileNotFoundError)):
                raise PermanentError(f"{error.strerror or error}.") from error
            raise self._translated(error) from error
        children: list[tuple[str, Entry | str]] = []
        for child in listed:
            path, mode = f"{folder}/{child.filename}", child.st_mode or 0
            if stat.S_ISDIR(mode):
                children.append((child.filename, path))
            elif stat.S_ISREG(mode) or stat.S_ISLNK(mode):
                children.append((child.filename, self._entry(child.filename, path, child)))
        return children

    @contextmanager
    def _translating(self, what: str = "") -> Iterator[None]:
        """Let only ``FileNotFoundError`` and ``TidemarkError`` pass."""
        try:
            yield
        except FileNotFoundError:
            raise
        except self._failures as error:
            raise self._translated(error, what) from error

    def _entry(self, relative: str, path: str, status: Any) -> Entry:
        is_link = stat.S_ISLNK(status.st_mode or 0)
        validators = Validators(size=status.st_size, mtime=float(status.st_mtime))
        return Entry(
            relative,
            self._base + quoted(path),
            path,
            validators,
            status.st_size,
            datetime.fromtimestamp(status.st_mtime, UTC),
            "is a link; links are not followed on a server" if is_link else "",
        )

    def _connected(
        self, paramiko: Any, options: dict[str, Any], credentials: Credentials | None
    ) -> Any:
        self._know_hosts(paramiko, credentials)
        extra = credentials.extra if credentials else {}
        key = _private_key(paramiko, credentials)
        key_file = extra.get("key_file")
        password = options.get("password")
        alone = not (key or key_file or password)
        connected = None
        try:
            connected = guarded_socket(
                self._host, self._port, _TIMEOUT_SECONDS, allow_private=self._allow_private
            )
            # The name is still given: the host key is known under it.
            self._client.connect(
                self._host,
                self._port,
                sock=connected,
                username=options.get("username"),
                password=password,
                pkey=key,
                key_filename=str(key_file) if key_file else None,
                passphrase=extra.get("private_key_passphrase"),
                timeout=_TIMEOUT_SECONDS,
                banner_timeout=_TIMEOUT_SECONDS,
                auth_timeout=_TIMEOUT_SECONDS,
                channel_timeout=_TIMEOUT_SECONDS,
                allow_agent=alone,
                look_for_keys=alone,
            )
            sftp = self._client.open_sftp()
            connected = None
        except paramiko.AuthenticationException as error:
            raise PermanentError(
                f"The server {self._host} refuses the login.",
                "Check the login and its password or key in the connection.",
            ) from error
        except paramiko.BadHostKeyException as error:
            raise PermanentError(
                f"The server {self._host} shows another host key than the one known.",
                "Find out whether it was set up anew, or whether another one answers in its place.",
            ) from error
        except self._failures as error:
            if "not found in known_hosts" in str(error):
                raise PermanentError(
                    f"The host key of the server {self._host} is not known.",
                    'Put it into the connection\'s extra: {"host_key": "ssh-ed25519 AAAA..."}.',
                ) from error
            raise self._translated(error) from error
        finally:
            if connected is not None:
                connected.close()
        channel = sftp.get_channel()
        if channel is not None:
            channel.settimeout(_TIMEOUT_SECONDS)
        return sftp

    def _know_hosts(self, paramiko: Any, credentials: Credentials | None) -> None:
        extra = credentials.extra if credentials else {}
        if is_set(credentials, "no_host_key_check"):
            self._client.set_missing_host_key_policy(paramiko.AutoAddPolicy())
            return
        self._client.set_missing_host_key_policy(paramiko.RejectPolicy())
        if extra.get("host_key"):
            name = self._host if self._port == 22 else f"[{self._host}]:{self._port}"
            try:
                line = paramiko.hostkeys.HostKeyEntry.from_line(f"{name} {extra['host_key']}")
            except (paramiko.hostkeys.InvalidHostKey, paramiko.SSHException, ValueError):
                line = None
            if line is None or line.key is None:
                raise ConfigurationError(
                    "The connection's host_key is no public key.",
                    'Write it as in known_hosts: "ssh-ed25519 AAAA...".',
                )
            self._client.get_host_keys().add(name, line.key.get_name(), line.key)
            return
        known_hosts = extra.get("known_hosts")
        try:
            self._client.load_system_host_keys(str(known_hosts) if known_hosts else None)
        except OSError as error:
            raise ConfigurationError(
                f"The known_hosts file {known_hosts} cannot be read ({error.strerror}).",
                "Correct the path in the connection's extra.",
            ) from error

    def _translated(self, error: Exception, what: str = "") -> TidemarkError:
        place = f"{what} on {self._host}" if what else self.place
        if isinstance(error, PermissionError):
            return PermanentError(f"{place} may not be read.", "Give the login the right to.")
        told = getattr(error, "strerror", None) or type(error).__name__
        return TransientError(
            f"{place} cannot be read ({told}).", "Check that the server and the network are up."
        )


def _silence(log: logging.Logger) -> None:
    log.propagate = False
    if not log.handlers:
        log.addHandler(logging.NullHandler())


def _private_key(paramiko: Any, credentials: Credentials | None) -> Any:
    text = str(credentials.extra.get("private_key") or "") if credentials else ""
    if not text or credentials is None:
        return None
    passphrase = credentials.extra.get("private_key_passphrase")
    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        try:
            return kind.from_private_key(StringIO(text), str(passphrase) if passphrase else None)
        except (paramiko.SSHException, ValueError):
            continue
    raise ConfigurationError(
        f"The private_key in the connection {credentials.name!r} cannot be used.",
        "Give an Ed25519, ECDSA or RSA key, and its private_key_passphrase if it has one.",
    )
