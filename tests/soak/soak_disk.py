"""A disk of a few megabytes, so that it can really be full: a tmpfs in a mount namespace of its own.

It needs no privileges where the kernel lets users make namespaces (``unshare -Urm``), and nobody outside the
namespace sees it. It goes when its keeper ends.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_KEEP = 'mount -t tmpfs -o "size=$1,mode=0755" tmpfs "$2" && echo ready && exec sleep 1800'


class NoNamespaceError(Exception):
    """The kernel, or the container, does not let this user make one."""


@dataclass(frozen=True)
class SmallDisk:
    """path: where it is mounted, for those in its namespace. prefix: puts a command there."""

    path: Path
    keeper: int

    @property
    def prefix(self) -> tuple[str, ...]:
        user = () if os.geteuid() == 0 else ("--user", "--preserve-credentials")
        return ("nsenter", *user, "--mount", "--target", str(self.keeper))

    @property
    def seen(self) -> Path:
        """The same folder, as those outside the namespace reach it."""
        return Path(f"/proc/{self.keeper}/root{self.path}")

    @property
    def room(self) -> int:
        """Bytes that are free."""
        found = os.statvfs(self.seen)
        return found.f_bavail * found.f_frsize

    def fill(self, leave: int = 0) -> None:
        """Take all room but so many bytes."""
        self.free()
        with (self.seen / "ballast").open("wb") as file:
            for _ in range(max(0, self.room - leave) // 4096):
                file.write(bytes(4096))

    def free(self) -> None:
        """Give the room back."""
        (self.seen / "ballast").unlink(missing_ok=True)


@contextmanager
def small_disk(path: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Mount one at a new folder. Raises ``NoNamespaceError`` where that is not allowed."""
    path.mkdir(parents=True)
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    command = ["unshare", *user, "--mount", "sh", "-c", _KEEP, "sh", f"{megabytes}m", str(path)]
    try:
        keeper = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    except OSError as error:
        raise NoNamespaceError(str(error)) from error
    try:
        assert keeper.stdout is not None
        assert keeper.stderr is not None
        if keeper.stdout.readline() != "ready\n":
            raise NoNamespaceError(keeper.stderr.read().strip())
        yield SmallDisk(path, keeper.pid)
    finally:
        keeper.kill()
        keeper.communicate()
