"""What a store of files is to the crawl over it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from tidemark.domain.connections import Credentials
from tidemark.domain.documents import Validators
from tidemark.domain.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Location:
    """Where a store is and what opens it; ``url`` has no credentials in it."""

    url: str
    credentials: Credentials | None = None
    allow_private: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a store as its listing tells it.

    relative: path under the root, decoded, parted by "/".
    uri: canonical, without credentials.
    key: what the store itself calls it.
    validators: of its version, empty when the listing does not tell versions apart.
    size: bytes, None when the listing does not tell.
    modified_at: UTC, None when the listing does not tell.
    refused: why it is not to be opened, "" when it is.
    """

    relative: str
    uri: str
    key: str
    validators: Validators = Validators()
    size: int | None = None
    modified_at: datetime | None = None
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Body:
    """The bytes of one version; more of them than were asked for tell of a file that is too large.

    size: of a file that is too large and was not read for that, in bytes; its content is b"" then.
    """

    content: bytes
    validators: Validators
    modified_at: datetime | None = None
    size: int | None = None


class ChangedError(Exception):
    """A file became another version while it was read."""


class Store(Protocol):
    """A store of files; every method may raise ``TidemarkError`` and, where it says so, others."""

    place: str
    """As it is named to people."""

    def entries(self, problems: list[str]) -> Iterator[Entry]:
        """Stream the files in an order that stays; what cannot be listed goes to ``problems``.

        Raises ``TidemarkError`` when the store as a whole is away.
        """

    def read(self, entry: Entry, limit: int, held: Validators | None) -> Body | None:
        """Read at most ``limit`` + 1 bytes (or ``Body.size``); None when it still is the version ``held``.

        Raises ``FileNotFoundError`` for a file that is not there any more and ``ChangedError`` for one
        that changed meanwhile.
        """

    def again(self, entry: Entry) -> Entry:
        """Look at one file again. Raises ``FileNotFoundError`` for one that is not there any more."""

    def close(self) -> None: ...


def missing_package(what: str, package: str) -> ConfigurationError:
    """The error of a store whose package is not installed."""
    return ConfigurationError(
        f"{what} needs the package {package}, which is not installed.",
        f"Install it: pip install {package} (in a container, add it to the image).",
    )
