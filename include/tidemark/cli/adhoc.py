"""Sources that nobody declared: what a person types on the command line."""

import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from tidemark.adapters.sources.files.options import FilesOptions
from tidemark.adapters.sources.website.options import WebsiteOptions
from tidemark.domain.documents import RawDocument
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.hashing import digest_text


def adhoc_website(url: str) -> WebsiteOptions:
    """A source for `--url`; allowed to be on a private address, since a person typed it.

    Raises ``ConfigurationError`` when it is no web address.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.scheme in ("http", "https") and parts.port != 0 else None
        if not host:
            raise ValueError("no host")
        return WebsiteOptions(
            name=_adhoc_name("url", host, url), kind="website", url=url, allow_private=True
        )
    except ValueError as error:  # pydantic's too
        raise ConfigurationError(
            f"{url!r} is not the address of a website.",
            "Write it whole, as in https://docs.example.org/.",
        ) from error


def adhoc_files(path: Path) -> FilesOptions:
    """A source for `--path`: a folder, or one file of a known format.

    Raises ``ConfigurationError`` when it is neither, or its name is not valid UTF-8.
    """
    from tidemark.adapters.media import media_type_of_suffix, suffix_of

    # Unlike pathlib's, these raise nothing for a loop of links or an unknown user.
    # os.path, which leaves an unknown ~name and a loop of links as they are, where pathlib raises.
    folder = Path(os.path.realpath(os.path.expanduser(path)))  # noqa: PTH111
    location = str(folder)
    try:
        location.encode()
        mode = folder.stat().st_mode
    except UnicodeEncodeError as error:
        raise ConfigurationError(
            f"The path {location!r} is not valid UTF-8.", "Rename the folder."
        ) from error
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read ({error.strerror}).", "Name a folder that exists."
        ) from error
    readable = stat.S_ISREG(mode) and media_type_of_suffix(suffix_of(folder.as_uri()))
    if not stat.S_ISDIR(mode) and not readable:
        raise ConfigurationError(
            f"{path} is neither a folder nor a file of a known format.", "Name a folder."
        )
    return FilesOptions(
        name=_adhoc_name("path", folder.name, location), kind="files", path=location
    )


def _adhoc_name(kind: str, label: str, location: str) -> str:
    """A name that a person recognises and that two locations never share."""
    kept = "".join(c if c.isalnum() and c.isascii() else "-" for c in label.lower())
    words = "-".join(part for part in kept.split("-") if part)[:24]
    return f"{kind}-{words}-{digest_text(location)[:8]}"


def read_file(path: Path) -> RawDocument:
    """One local file as a document.

    Raises ``ConfigurationError`` when it cannot be read.
    """
    from tidemark.adapters.media import detect, media_type_of_suffix, suffix_of

    file = Path(os.path.realpath(path))
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            # Reading from a pipe or a device may never end.
            raise ConfigurationError(f"{path} is not a regular file.", "Copy it into one.")
        content = file.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read ({error.strerror}).", "Check the file and its permissions."
        ) from error
    media_type = media_type_of_suffix(suffix_of(file.as_uri())) or detect(content)
    return RawDocument(file.as_uri(), content, media_type, None, datetime.now(UTC))
