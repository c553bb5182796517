"""Who the embedded Postgres runs as: it refuses to run as root, so root lends it an account."""

import logging
import os
import pwd
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tidemark.domain.errors import ConfigurationError

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
