"""Any store that fsspec reads, folder by folder: buckets of Google and Azure, and all it has a package for.

What tells versions apart is taken from the listing, by the names that the file systems give it; a store
whose listing has neither a time, an ETag nor a version is read whole at every crawl.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from fsspec.registry import get_filesystem_class
from fsspec.utils import get_protocol

from tidemark.adapters.sources.credentials import storage_options
from tidemark.adapters.sources.files.store import Body, Entry, FolderStore, Location
from tidemark.adapters.sources.selection import quoted
from tidemark.domain.documents import Validators
from tidemark.domain.errors import ConfigurationError, PermanentError, TidemarkError, TransientError

_SPELLED = {"gcs": "gs", "az": "abfs", "abfss": "abfs"}
_PACKAGES = {"gs": "gcsfs", "gcs": "gcsfs", "abfs": "adlfs", "abfss": "adlfs", "az": "adlfs"}
_TIMES = ("mtime", "updated", "last_modified", "LastModified", "modified", "modify")
_REVISIONS = ("generation", "version_id", "VersionId")
_REFUSALS = frozenset({401, 403})


class FsspecStore(FolderStore):
    """A ``Store`` over one file system of fsspec's."""

    def __init__(self, location: Location) -> None:
        """Raises ``ConfigurationError`` for a package that is missing or options that it refuses."""
        protocol = get_protocol(location.url)
        self._failures = _failures(protocol)
        self._connection = location.credentials.name if location.credentials else ""
        self._system = file_system(location)
        self._root = str(self._system._strip_protocol(location.url)).rstrip("/")  # noqa: SLF001 - fsspec's way
        self._scheme = _SPELLED.get(protocol, protocol)
        self.place = self._uri(self._root)

    def entries(self, problems: list[str]) -> Iterator[Entry]:
        """Walk it; a place that is one file is that file alone."""
        try:
            with self._translating(self.place):
                info = self._system.info(self._root)
        except FileNotFoundError:
            raise PermanentError(f"There is no {self.place}.", "Check the path.") from None
        if info.get("type") == "file":
            yield self._entry(self._root.rpartition("/")[2], info)
        else:
            yield from self._walk(self._root, problems)

    def read(self, entry: Entry, limit: int, held: Validators | None) -> Body:
        with (
            self._translating(entry.key),
            self._system.open(entry.key, "rb", cache_type="readahead") as file,
        ):
            content = bytes(file.read(limit + 1))
        return self._checked(entry, content, limit)

    def refresh(self, entry: Entry) -> Entry:
        with self._translating(entry.key):
            info = self._system.info(entry.key)
        return self._entry(entry.relative, info)

    def _children(self, folder: str, relative: str) -> list[tuple[str, Entry | str]]:
        try:
            listed = sorted(self._system.ls(folder, detail=True), key=lambda child: child["name"])
        except self._failures as error:
            raise self._translated(error, relative or self.place) from error
        children: list[tuple[str, Entry | str]] = []
        for child in listed:
            path = child["name"].rstrip("/")
            name = path.rpartition("/")[2]
            # Some list a folder among its own children.
            if path.strip("/") != folder.strip("/"):
                is_folder = child["type"] == "directory"
                children.append((name, path if is_folder else self._entry(name, child)))
        return children

    @contextmanager
    def _translating(self, what: str) -> Iterator[None]:
        """Let only ``FileNotFoundError`` and ``TidemarkError`` pass."""
        try:
            yield
        except FileNotFoundError:
            raise
        except self._failures as error:
            raise self._translated(error, what) from error

    def _entry(self, relative: str, info: Mapping[str, Any]) -> Entry:
        changed_at = next((t for name in _TIMES if (t := _time(info.get(name)))), None)
        etag = info.get("etag") or info.get("ETag")
        revision = next((info[name] for name in _REVISIONS if info.get(name)), None)
        size = info.get("size")
        validators = Validators()
        if changed_at or etag or revision:
            validators = Validators(
                etag=str(etag) if etag else None,
                size=size,
                mtime=changed_at.timestamp() if changed_at else None,
                revision=str(revision) if revision else None,
            )
        is_link = info.get("type") == "link" or info.get("islink")
        return Entry(
            relative,
            self._uri(str(info["name"])),
            str(info["name"]),
            validators,
            size,
            changed_at,
            "is a link; links are not followed in a store" if is_link else "",
        )

    def _uri(self, path: str) -> str:
        plain = str(self._system.unstrip_protocol(path)).partition("://")[2]
        return f"{self._scheme}://{quoted(plain)}"

    def _translated(self, error: Exception, what: str) -> TidemarkError:
        where = f"the connection {self._connection!r}" if self._connection else "a connection"
        status = getattr(error, "code", None) or getattr(error, "status_code", None)
        # gcsfs tells a refusal in words alone.
        if (
            isinstance(error, PermissionError)
            or status in _REFUSALS
            or str(error).startswith("Forbidden")
        ):
            return PermanentError(
                f"{self.place} refuses access.",
                f"Check the credentials in {where}, and that they may list and read it.",
            )
        if isinstance(error, FileNotFoundError):
            return PermanentError(f"There is no {what}.", "Check the path.")
        return TransientError(
            f"{self.place} cannot be read ({type(error).__name__}).",
            "Check the network, the credentials and the store's health.",
        )


def file_system(location: Location) -> Any:
    """The file system of a location. Raises ``ConfigurationError`` without its package or its options."""
    protocol = get_protocol(location.url)
    try:
        kind = _kind(protocol)
    except ImportError as error:
        package = _PACKAGES.get(protocol, f"that fsspec names for {protocol}")
        raise ConfigurationError(
            f"A place on {protocol}:// needs the package {package}, which is not installed.",
            f"Install it: {error}." if protocol not in _PACKAGES else f"pip install {package}",
        ) from error
    options = storage_options(protocol, location.credentials)
    # What the URL itself says (a host, an account) is said to some constructors as well.
    options = kind._get_kwargs_from_urls(location.url) | options  # noqa: SLF001 - fsspec's way
    try:
        return kind(**options, skip_instance_cache=True, use_listings_cache=False)
    except (TypeError, ValueError, KeyError) as error:
        raise ConfigurationError(
            f"The options for {protocol}:// are not accepted ({type(error).__name__}).",
            "Check the connection's fields and its storage_options.",
        ) from None
    except _failures(protocol) as error:
        raise TransientError(
            f"A place on {protocol}:// cannot be reached ({type(error).__name__}).",
            "Check the network and the connection.",
        ) from error


def _kind(protocol: str) -> Any:
    """Raises ``ImportError`` for a package that is missing."""
    if protocol in {"gs", "gcs"}:
        # Its default asks a second service which kind of bucket it is, for minutes where that is not reached.
        from gcsfs.core import GCSFileSystem

        return GCSFileSystem
    return get_filesystem_class("abfs" if protocol == "abfss" else protocol)


def _failures(protocol: str) -> tuple[type[Exception], ...]:
    """What the package of a protocol raises for an outage or a refusal."""
    kinds: list[type[Exception]] = [OSError, EOFError, ValueError]
    if protocol in {"gs", "gcs"}:
        try:
            from aiohttp import ClientError
            from gcsfs.retry import HttpError
            from google.auth.exceptions import GoogleAuthError
        except ImportError:
            return tuple(kinds)
        kinds += [ClientError, HttpError, GoogleAuthError]
    if protocol in {"abfs", "abfss", "az"}:
        try:
            from azure.core.exceptions import AzureError
        except ImportError:
            return tuple(kinds)
        kinds += [AzureError]
    if protocol == "ftp":
        from ftplib import Error

        kinds += [Error]
    return tuple(kinds)


def _time(value: object) -> datetime | None:
    """A time as the file systems tell it: aware, naive (in UTC), in seconds, or as text."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return datetime.fromtimestamp(value, UTC)
    return None
