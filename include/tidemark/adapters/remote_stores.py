"""Which store a URL means.

    s3, s3a                                        an S3 bucket, on AWS or any server that speaks S3
    gs, gcs · abfs, abfss, az                      Google and Azure buckets, through fsspec
    sftp, ssh                                      a folder on an SSH server
    webdav, dav, webdav+http · webdavs, davs, ...  a WebDAV folder over HTTP · over HTTPS
    http, https                                    a folder that a web server shows as a page of links
    zip://folder/in/it::URL                        a zip archive: a local one, or one in a bucket
    any other of fsspec's                          as fsspec's package for it reads it

Credentials never stand in the URL. Packages that only one kind of store needs are imported by it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from fsspec.registry import known_implementations
from fsspec.utils import get_protocol

from tidemark.adapters.remote_types import Location, Store
from tidemark.domain.errors import ConfigurationError

S3 = frozenset({"s3", "s3a"})
SFTP = frozenset({"sftp", "ssh"})
INDEX = frozenset({"http", "https"})
WEBDAV = {
    "webdav": "http",
    "dav": "http",
    "webdav+http": "http",
    "webdavs": "https",
    "davs": "https",
    "webdav+https": "https",
}
_NOT_IN_ARCHIVES = SFTP | INDEX | frozenset(WEBDAV)


def check_location(url: str) -> None:
    """Raises ``ConfigurationError`` for a URL that means no store, or has credentials in it."""
    inner, chained, outer = url.partition("::")
    protocol = get_protocol(inner)
    if chained and (protocol != "zip" or "::" in outer or not outer):
        raise ConfigurationError(
            f"The path {_shown(url)!r} chains what cannot be chained.",
            "Only zip://folder/in/it::URL of an archive can.",
        )
    if protocol == "zip" and not chained:
        raise ConfigurationError(
            f"The path {_shown(url)!r} names no archive.", "Write zip://folder/in/it::URL of it."
        )
    target = outer if chained else url
    if "@" in _authority(target) and get_protocol(target) not in {"abfs", "abfss", "az"}:
        raise ConfigurationError(
            f"The path {_shown(url)!r} has credentials in it.", "Put them into a connection."
        )
    if chained:
        protocol = get_protocol(target)
        if protocol in _NOT_IN_ARCHIVES:
            raise ConfigurationError(
                f"An archive cannot be read in pieces over {protocol}.",
                "Give it as a local file, or in a bucket.",
            )
    if not _has_valid_port(target):
        raise ConfigurationError(
            f"The path {_shown(url)!r} has no valid port.", "Write it as scheme://host:port/folder."
        )
    if protocol not in (*known_implementations, *WEBDAV, "abfss"):
        raise ConfigurationError(
            f"The path {_shown(url)!r} begins with {protocol!r}, which is no kind of store.",
            "Give a local folder or a URL such as s3://bucket/folder.",
        )


@contextmanager
def open_store(location: Location) -> Iterator[Store]:
    """Open the store of a location that was checked.

    Raises ``TidemarkError`` when it is away, and ``ConfigurationError`` for a package that is missing.
    """
    store = _store(location)
    try:
        yield store
    finally:
        store.close()


def _store(location: Location) -> Store:
    protocol = get_protocol(location.url)
    if protocol == "zip":
        from tidemark.adapters.remote_zip import ZipStore

        return ZipStore(location)
    if protocol in S3:
        from tidemark.adapters.remote_s3 import S3Store

        return S3Store(location)
    if protocol in SFTP:
        from tidemark.adapters.remote_sftp import SftpStore

        return SftpStore(location)
    if protocol in INDEX:
        from tidemark.adapters.remote_http import HttpIndexStore

        return HttpIndexStore(location)
    if protocol in WEBDAV:
        from tidemark.adapters.remote_webdav import WebdavStore

        scheme = WEBDAV[protocol]
        url = scheme + location.url[len(protocol) :]
        return WebdavStore(Location(url, location.credentials, location.allow_private))
    from tidemark.adapters.remote_fsspec import FsspecStore

    return FsspecStore(location)


def _has_valid_port(url: str) -> bool:
    try:
        urlsplit(url).port  # noqa: B018 - reading it is what judges it
    except ValueError:
        # Only these have ports: a bucket's name may have a colon in it.
        return get_protocol(url) not in _NOT_IN_ARCHIVES
    return True


def _authority(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def _shown(url: str) -> str:
    """The URL without what may be a password."""
    head, at, tail = url.rpartition("@")
    return f"{head.partition('://')[0]}://…@{tail}" if at else url
