"""What a files source is told."""

import os
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, Field

from tidemark.config.settings import PROJECT
from tidemark.config.sources import (
    INTERNAL,
    UNSTORABLE,
    Connection,
    Pattern,
    SourceContext,
    SourceDeclaration,
    checked,
)
from tidemark.domain.connections import (
    Credentials,
    check_location,
    is_chained,
    is_url,
    scheme_of,
)
from tidemark.domain.hashing import fingerprint
from tidemark.ports.source import Source

_ADAPTER_VERSION = 1
"""Raised when the same file would be given other bytes or another media type than before."""


def _location(value: str) -> str:
    """A local folder as a path (``~`` and ``file://`` resolved; a relative one stays relative), or a URL."""
    if value.lower().startswith("file://"):
        parts = urlsplit(value)
        if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
            raise ValueError("a file URL names a folder of this machine, e.g. 'file:///srv/docs'")
        value = unquote(parts.path)
    elif is_url(value):
        checked(check_location, value, _is_store)
        return value
    try:
        expanded = str(Path(value).expanduser())
    except RuntimeError:
        raise ValueError("the home folder '~' stands for is not known; write it out") from None
    if UNSTORABLE.search(expanded):
        raise ValueError("a path cannot have this character")
    return expanded


def _is_store(scheme: str) -> bool:
    # Imported for rare schemes alone: it takes a quarter of a second, and this file is read often.
    from fsspec.registry import known_implementations

    return scheme in known_implementations


class FilesOptions(SourceDeclaration):
    """A folder of files, local or in any store that fsspec reads.

    path: of a folder or a single file; a URL of a store (``open_store`` names them), or a zip archive as
        ``zip://folder/in/it::URL`` or by its local path.
    include, exclude: patterns over paths relative to it (``selection.py``).
    base_uri: what URIs start with instead of the place's own URL.
    allow_empty: an empty place means that everything in it was deleted.
    allow_private: a web, WebDAV or SFTP server may be on this machine or in a private network.
    max_bytes: of one file; larger ones are not read.
    credentials: what opens the store.
    """

    kind: Literal["files"] = "files"
    path: Annotated[
        str,
        Field(pattern=r"\S", description="Folder, relative to the project, or an fsspec URL."),
        AfterValidator(_location),
    ]
    include: tuple[Pattern, ...] = ()
    exclude: tuple[Pattern, ...] = ()
    base_uri: str = ""
    allow_empty: bool = False
    allow_private: bool = False
    connection: Connection = ""

    max_bytes: Annotated[int, INTERNAL] = 50_000_000
    credentials: Annotated[Credentials | None, INTERNAL] = None

    def open(self, context: SourceContext) -> Source:
        """The source itself."""
        from tidemark.adapters.sources.files.source import FilesSource

        return FilesSource(self.in_context(context))

    @property
    def _is_local(self) -> bool:
        return not is_chained(self.path) and scheme_of(self.path) in {None, "file", "local"}

    @property
    def is_remote(self) -> bool:
        """Is it read through a store (a zip archive is one) and not as a local folder or file?"""
        return not self._is_local or (
            self.path.lower().endswith(".zip") and not Path(self.root).is_dir()
        )

    @property
    def root(self) -> str:
        """The absolute path of a local place, links in it resolved."""
        path = unquote(urlsplit(self.path).path) if scheme_of(self.path) else self.path
        return os.path.realpath(PROJECT / path)

    @property
    def location(self) -> str:
        """The URL of a store."""
        return self.path if not self._is_local else f"zip://::{Path(self.root).as_uri()}"

    @property
    def fingerprint(self) -> str:
        """Of what decides the bytes handed over: nothing but this adapter."""
        return fingerprint("fetch", {"kind": "files", "version": _ADAPTER_VERSION})
