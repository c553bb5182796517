"""What a store of files is to the crawl over it."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from tidemark.adapters.sources.selection import is_hidden
from tidemark.domain.connections import Credentials
from tidemark.domain.documents import Validators
from tidemark.domain.errors import ConfigurationError, TidemarkError


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


class Store(ABC):
    """A store of files; every method may raise ``TidemarkError`` and, where it says so, others."""

    place: str
    """As it is named to people."""

    @abstractmethod
    def entries(self, problems: list[str]) -> Iterator[Entry]:
        """Stream the files in an order that stays; what cannot be listed goes to ``problems``.

        Raises ``TidemarkError`` when the store as a whole is away.
        """

    @abstractmethod
    def read(self, entry: Entry, limit: int, held: Validators | None) -> Body | None:
        """Read at most ``limit`` + 1 bytes (or ``Body.size``); None when it still is the version ``held``.

        Raises ``FileNotFoundError`` for a file that is not there any more and ``ChangedError`` for one
        that changed meanwhile.
        """

    def refresh(self, entry: Entry) -> Entry:
        """Look at one file again, if that may tell something new.

        Raises ``FileNotFoundError`` for one that is not there any more.
        """
        return entry

    def close(self) -> None:  # noqa: B027 - nothing need be done
        """Most hold nothing open between requests."""

    def _checked(self, entry: Entry, content: bytes, limit: int) -> Body:
        """What was read, if the file still is the version that was listed; else ``ChangedError``."""
        now = self.refresh(entry)
        if now.validators != entry.validators or (
            now.size is not None and now.size != len(content) <= limit
        ):
            raise ChangedError(entry.key)
        return Body(content, entry.validators, entry.modified_at)


class FolderStore(Store):
    """A store that is listed folder by folder, in order of names; one folder a level is held."""

    _deepest = 100
    _passed_over: tuple[type[Exception], ...] = (FileNotFoundError, TidemarkError)
    """What keeps one folder from being listed, but not the others."""

    @abstractmethod
    def _children(self, folder: str, relative: str) -> Iterable[tuple[str, Entry | str]]:
        """The names right below a folder, each with its entry, or the key of a folder.

        ``relative`` is the folder's path under the root, "" for that itself. Raises what ``_passed_over``
        names, and ``TidemarkError``.
        """

    def _walk(self, folder: str, problems: list[str], relative: str = "") -> Iterator[Entry]:
        try:
            children = self._children(folder, relative)
        except self._passed_over as error:
            if not relative:
                raise
            problems.append(f"The folder {relative} cannot be listed: {error}")
            return
        if relative.count("/") >= self._deepest:
            problems.append(f"The folder {relative} is nested too deep.")
            return
        for name, child in children:
            below = f"{relative}/{name}" if relative else name
            if is_hidden(name):
                continue
            if isinstance(child, Entry):
                yield replace(child, relative=below)
            else:
                yield from self._walk(child, problems, below)


def missing_package(what: str, package: str) -> ConfigurationError:
    """The error of a store whose package is not installed."""
    return ConfigurationError(
        f"{what} needs the package {package}, which is not installed.",
        f"Install it: pip install {package} (in a container, add it to the image).",
    )
