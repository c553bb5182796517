"""Where files may be: which paths are URLs of a store, and which of those mean one.

One rule for declarations and adapters. Nothing is opened, and no store is asked.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Protocol
from urllib.parse import urlsplit

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
AZURE = frozenset({"abfs", "abfss", "az"})
_NOT_IN_ARCHIVES = SFTP | INDEX | frozenset(WEBDAV)
_STORES = _NOT_IN_ARCHIVES | S3 | AZURE | {"gs", "gcs", "zip"}
_NAME = "[A-Za-z][A-Za-z0-9+.-]*"
# Two colons alone say nothing: an IPv6 address has them, and so may the name of a folder.
_CHAIN = re.compile(rf"(?i:zip)(?:://.*?)?::|.*::{_NAME}(?:://|::)", re.DOTALL)


def is_url(path: str) -> bool:
    """Is it a URL, or a chain of them, and not a path of this machine?"""
    return is_chained(path) or scheme_of(path) is not None


def is_chained(path: str) -> bool:
    """Is one URL read through another, as in ``zip://folder::s3://bucket/archive.zip``?"""
    return _CHAIN.match(path) is not None


def scheme_of(path: str) -> str | None:
    """What stands before ``://`` (or ``::``, in a chain); None for a plain path."""
    if is_chained(path):
        return re.split("://|::", path, maxsplit=1)[0]
    head, mark, _ = path.partition("://")
    return head if mark and "/" not in head else None


def check_location(url: str, is_store: Callable[[str], bool]) -> None:
    """Check the URL of a store; ``is_store`` is asked about a scheme that is none of the common ones.

    Raises ``ConfigurationError`` for a URL that means no store, or has credentials in it.
    """
    chained = is_chained(url)
    inner, _, outer = url.partition("::") if chained else (url, "", "")
    scheme = scheme_of(url) or ""
    if chained and (scheme != "zip" or is_chained(outer) or not outer):
        raise ConfigurationError(
            f"The path {_shown(url)!r} chains what cannot be chained.",
            "Only zip://folder/in/it::URL of an archive can.",
        )
    if scheme == "zip" and not chained:
        raise ConfigurationError(
            f"The path {_shown(inner)!r} names no archive.", "Write zip://folder/in/it::URL of it."
        )
    target = outer if chained else url
    scheme = scheme_of(target) or "file"
    if "@" in _authority(target) and scheme not in AZURE:
        raise ConfigurationError(
            f"The path {_shown(url)!r} has credentials in it.", "Put them into a connection."
        )
    if chained and scheme in _NOT_IN_ARCHIVES:
        raise ConfigurationError(
            f"An archive cannot be read in pieces over {scheme}.",
            "Give it as a local file, or in a bucket.",
        )
    if scheme in _NOT_IN_ARCHIVES and not _has_valid_host(target):
        raise ConfigurationError(
            f"The path {_shown(url)!r} has no valid port or host.",
            "Write it as scheme://host:port/folder.",
        )
    if scheme not in _STORES and not is_store(scheme):
        raise ConfigurationError(
            f"The path {_shown(url)!r} begins with {scheme!r}, which is no kind of store.",
            "Give a local folder or a URL such as s3://bucket/folder.",
        )


def _has_valid_host(url: str) -> bool:
    # Only what has ports is asked: a bucket's name may have a colon in it.
    try:
        parts = urlsplit(url)
        return parts.port is None or bool(parts.hostname)
    except ValueError:
        return False


def _authority(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def _shown(url: str) -> str:
    """The URL without what may be a password."""
    head, at, tail = url.rpartition("@")
    return f"{head.partition('://')[0]}://…@{tail}" if at else url


# What git may be given: addresses of repositories, names of branches, folders, patterns of links.
#
# Judged by their form alone, so that a declaration can be checked without git and without the network.

SCHEMES = frozenset({"http", "https", "ssh", "file"})
_BAD_REFERENCE = re.compile(r"^[-/.]|\.\.|[\x00-\x20\x7f~^:?*\[\\]|@\{|//|[/.]$|\.lock(?:/|$)")
_HELPER = re.compile(r"[A-Za-z0-9+.-]+::")


def check_repository(url: str) -> None:
    """Raises ``ConfigurationError``, never quoting the URL, for what is no repository's address."""
    if not url or url.startswith("-") or not url.isprintable() or _HELPER.match(url):
        raise ConfigurationError(
            "The URL of the repository is none that git may be given.",
            "Give an http(s) or ssh URL, or a path.",
        )
    if "://" not in url:
        return
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - reading it is what judges it
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in SCHEMES or parts.query or parts.fragment:
        raise ConfigurationError(
            "The URL of the repository is of no kind that is read.",
            "Give an http(s) or ssh URL, or a path.",
        )
    if parts.password or (parts.username and parts.scheme != "ssh"):
        raise ConfigurationError(
            "The URL of the repository has credentials in it.", "Put them into a connection."
        )
    if parts.scheme != "file" and (not parts.hostname or parts.hostname.startswith("-")):
        raise ConfigurationError("The URL of the repository names no host.", "Write it out.")
    if (parts.username or "").startswith("-"):
        raise ConfigurationError("The URL of the repository has no valid user.", "Correct it.")


def check_reference(name: str) -> None:
    """Raises ``ConfigurationError`` for no name of a branch, a tag or a commit; "" is the default one."""
    if name and (_BAD_REFERENCE.search(name) or name == "@"):
        raise ConfigurationError(
            f"The branch {name!r} is no name that git allows.",
            "Give a branch, a tag or a full commit id.",
        )


def check_folder(folder: str) -> None:
    """Raises ``ConfigurationError`` for a folder that leads out of the repository; "" is all of it."""
    inside = folder.strip("/")
    if any(part in {"", ".", ".."} for part in inside.split("/") if inside):
        raise ConfigurationError(
            f"The folder {folder!r} is no folder of a repository.", "Write it like 'docs/en'."
        )


def check_link(link: str) -> None:
    """Raises ``ConfigurationError`` for a pattern with other names than ``{commit}`` and ``{path}``."""
    try:
        fields = list(Formatter().parse(link))
    except ValueError:
        fields = [("", "", None, None)]
    # A width would be obeyed too, however large.
    if any(
        name is not None and (name not in {"commit", "path"} or spec or conversion)
        for _, name, spec, conversion in fields
    ):
        raise ConfigurationError(
            f"The link {link!r} is no pattern.",
            "Write it with {commit} and {path} and no other braces.",
        )


# What opens a source that is not public. Never logged, never stored, never part of a fingerprint.


@dataclass(frozen=True, slots=True)
class Credentials:
    """One connection as Airflow keeps it; its fields mean what the connection's form calls them.

    name: the connection's id, which may be shown.
    kind: the connection's type, e.g. "http", "aws", "sftp", "postgres"; "" when it has none.
    login, password, host, schema, port: "" or None where the connection leaves them open.
    extra: further options by name, e.g. {"cookie": "…"}; values may be secrets.
    """

    name: str
    kind: str = ""
    login: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    host: str = ""
    schema: str = ""
    port: int | None = None
    extra: Mapping[str, object] = field(default_factory=dict, repr=False)


class CredentialStore(Protocol):
    """Where connections are looked up when a source names one."""

    def get(self, name: str) -> Credentials:
        """Raises ``ConfigurationError`` that names the connection and where to make it."""
