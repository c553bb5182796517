"""What git may be given: addresses of repositories, names of branches, folders, patterns of links.

Judged by their form alone, so that a declaration can be checked without git and without the network.
"""

import re
from string import Formatter
from urllib.parse import urlsplit

from tidemark.domain.errors import ConfigurationError

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
