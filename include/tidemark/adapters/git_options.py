"""Which repository, at which branch, and how its files are addressed."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlsplit

from tidemark.domain.credentials import Credentials
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.hashing import Canonical, fingerprint
from tidemark.domain.repositories import (
    check_folder,
    check_link,
    check_reference,
    check_repository,
)

_ADAPTER_VERSION = 2
"""Raised when the same file would be given other bytes or another media type than before."""
_SCP_LIKE = re.compile(r"(?:(?P<user>[\w.-]+)@)?(?P<host>[\w.-]+):(?P<path>[^/\\:][^:]*)")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_URI_SAFE = "/!$&'()*+,;=:@~"


@dataclass(frozen=True, slots=True)
class GitOptions:
    """A git repository to index.

    url: http(s) or ssh URL (also as ``git@host:path``), ``file://`` URL or path; without credentials.
    branch: a branch, tag or full commit id; "" for the repository's default branch.
    folder: the only folder to index, "" for all of it.
    include, exclude: patterns over paths relative to the folder (``adapters/patterns.py``).
    link: where a file is shown at a commit, with ``{commit}`` and ``{path}``; "" for the host's own way.
    max_bytes: of one file; larger ones are not read.
    allow_private: the host may be on this machine or in a private network.
    timeout: seconds that one exchange with the remote may take.
    credentials: login and password or token (http), a key (ssh).
    """

    url: str
    branch: str = ""
    folder: str = ""
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    link: str = ""
    max_bytes: int = 50_000_000
    allow_private: bool = False
    timeout: float = 900.0
    credentials: Credentials | None = None
    remote: "Remote" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Raises ``ConfigurationError`` for what git would misunderstand."""
        object.__setattr__(self, "remote", Remote.of(self.url))
        check_reference(self.branch)
        check_link(self.link)
        check_folder(self.folder)
        if self.max_bytes < 1:
            raise ConfigurationError(f"max_bytes is {self.max_bytes}.", "It must be 1 or more.")

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


@dataclass(frozen=True, slots=True)
class Addresses:
    """How one branch's files are addressed.

    A document's URI stays when the file changes: where it is shown at the branch, for hosts that are known
    (so it opens in a browser), else ``git+<url of the repository>/blob/<branch>/<path>``. A link leads to
    the file as it was at a commit; "" where no address for that is known.
    """

    document: str
    version: str

    @classmethod
    def of(cls, options: GitOptions, branch: str) -> "Addresses":
        """``branch`` is the one that was found, when none was declared."""
        remote = options.remote
        port = f":{remote.port}" if remote.port and remote.scheme != "ssh" else ""
        web = "http" if remote.scheme == "http" else "https"
        shown = f"{web}://{remote.host}{port}/{remote.path}"
        found = _shown_by(remote.host)
        if remote.scheme == "file" or found is None:
            ssh_port = f":{remote.port}" if remote.port else ""
            base = f"{remote.scheme}://{remote.host}{ssh_port}/{remote.path}"
            return cls(f"git+{base}/blob/{quote(branch, safe='/')}/", options.link)
        at_branch, at_commit = found
        document = f"{shown}/{at_branch}/{quote(branch, safe='/')}/"
        return cls(document, options.link or f"{_escaped(shown)}/{at_commit}/{{commit}}/{{path}}")

    def uri(self, path: str) -> str:
        return self.document + _quoted(path)

    def link(self, path: str, commit: str) -> str:
        """ "" without a commit, and where no address is known."""
        if not self.version or not commit:
            return ""
        return self.version.format(commit=commit, path=_quoted(path))


def _shown_by(host: str) -> tuple[str, str] | None:
    """What stands between a repository's address and a branch, and a commit, on a host's pages."""
    name = host.removeprefix("www.")
    if name == "github.com" or name.startswith("github."):
        return "blob", "blob"
    if name == "gitlab.com" or name.startswith("gitlab."):
        return "-/blob", "-/blob"
    if name == "bitbucket.org":
        return "src", "src"
    if name in {"gitea.com", "codeberg.org"} or name.startswith(("gitea.", "forgejo.")):
        return "src/branch", "src/commit"
    return None


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _quoted(path: str) -> str:
    return quote(path, safe=_URI_SAFE, errors="surrogateescape")
