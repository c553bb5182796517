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

from fsspec.registry import known_implementations
from fsspec.utils import get_protocol

from tidemark.adapters.remote_types import Location, Store
from tidemark.domain import locations
from tidemark.domain.locations import INDEX, S3, SFTP, WEBDAV


def check_location(url: str) -> None:
    """Raises ``ConfigurationError`` for a URL that means no store, or has credentials in it."""
    locations.check_location(url, known_implementations.__contains__)


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
