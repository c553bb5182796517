"""What a git source is told: which repository, at which branch."""

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field

from tidemark.config.settings import PROJECT
from tidemark.config.sources import (
    INTERNAL,
    Connection,
    Pattern,
    SourceContext,
    SourceDeclaration,
    obeys,
)
from tidemark.domain.connections import (
    Credentials,
    check_folder,
    check_link,
    check_reference,
    check_repository,
)
from tidemark.domain.hashing import Canonical, fingerprint
from tidemark.ports.source import Source

_ADAPTER_VERSION = 2
"""Raised when the same file would be given other bytes or another media type than before."""
_SCP_LIKE = re.compile(r"(?:(?P<user>[\w.-]+)@)?(?P<host>[\w.-]+):(?P<path>[^/\\:][^:]*)")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, slots=True)
class Remote:
    """A repository's address in its parts.

    scheme: "http", "https", "ssh" or "file".
    address: what git is given.
    host: "" for a file path.
    port: None for the scheme's own.
    path: without slashes around it and ".git" at its end.
    """

    scheme: str
    address: str
    host: str
    port: int | None
    path: str

    @classmethod
    def of(cls, url: str) -> "Remote":
        """Raises ``ConfigurationError`` for what is no repository's address, or has credentials in it."""
        check_repository(url)
        short = None if "://" in url or Path(url).exists() else _SCP_LIKE.fullmatch(url)
        if short is not None:
            user = f"{short['user']}@" if short["user"] else ""
            url = f"ssh://{user}{short['host']}/{short['path']}"
        if "://" not in url:
            url = Path(url).expanduser().absolute().as_uri()
        # Once more, for what the short form stood for.
        check_repository(url)
        parts = urlsplit(url)
        path = parts.path.strip("/").removesuffix(".git")
        return cls(parts.scheme, url, parts.hostname or "", parts.port, path)


class GitOptions(SourceDeclaration):
    """The files of a git repository at a branch.

    url: http(s) or ssh URL (also as ``git@host:path``), ``file://`` URL or path; without credentials.
    branch: a branch, tag or full commit id; "" for the repository's default branch.
    folder: the only folder to index, "" for all of it.
    include, exclude: patterns over paths relative to the folder (``selection.py``).
    link: where a file is shown at a commit, with ``{commit}`` and ``{path}``; "" for the host's own way.
    allow_private: the host may be on this machine or in a private network.
    max_bytes: of one file; larger ones are not read.
    timeout: seconds that one exchange with the remote may take.
    credentials: login and password or token (http), a key (ssh).
    """

    kind: Literal["git"] = "git"
    url: Annotated[
        str,
        Field(pattern=r"\S", description="Of the repository, or its path."),
        obeys(check_repository),
    ]
    branch: Annotated[str, obeys(check_reference)] = ""
    folder: Annotated[str, obeys(check_folder)] = ""
    include: tuple[Pattern, ...] = ()
    exclude: tuple[Pattern, ...] = ()
    link: Annotated[str, obeys(check_link)] = ""
    allow_private: bool = False
    connection: Connection = ""
    max_bytes: Annotated[int, INTERNAL] = 50_000_000
    timeout: Annotated[float, INTERNAL] = 900.0
    credentials: Annotated[Credentials | None, INTERNAL] = None

    def open(self, context: SourceContext) -> Source:
        """The source itself."""
        from tidemark.adapters.sources.git.source import GitSource

        is_path = "://" not in self.url and ":" not in self.url
        url = str(PROJECT / Path(self.url).expanduser()) if is_path else self.url
        options = self.in_context(context, url=url)
        return GitSource(options, context.settings.home / "cache" / "git")

    @cached_property
    def remote(self) -> Remote:
        """The repository's address in its parts. Raises ``ConfigurationError`` for what is none."""
        return Remote.of(self.url)

    @property
    def is_commit(self) -> bool:
        return _COMMIT.fullmatch(self.branch) is not None

    @property
    def fingerprint(self) -> str:
        """Of what decides what is handed over with a file: this adapter, and where links lead."""
        options: dict[str, Canonical] = {
            "kind": "git",
            "version": _ADAPTER_VERSION,
            "link": self.link,
        }
        return fingerprint("fetch", options)
