"""Answer requests from a folder of files, as an ordinary web server would. No sockets here.

Names that start with "_" or "." are never served. Two of them are read: ``_redirects`` (lines of
``/old /new``) and ``_404.html``. In ``robots.txt`` and ``sitemap.xml``, ``__ORIGIN__`` stands for
the address of the server, which both formats want to be absolute.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from hashlib import blake2b
from http import HTTPStatus
from pathlib import Path
from urllib.parse import unquote

REDIRECTS = "_redirects"
NOT_FOUND_PAGE = "_404.html"
ORIGIN_MARK = b"__ORIGIN__"
ABSOLUTE_FILES = frozenset({"robots.txt", "sitemap.xml"})
# Python's own table is merged with the machine's, so it differs from one machine to the next.
MEDIA_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".xml": "application/xml; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer before it is put on the wire.

    body: the bytes, sent unless the request is HEAD or the status has none.
    headers: beside Content-Type, Content-Length and Date.
    """

    status: HTTPStatus
    body: bytes = b""
    media_type: str = MEDIA_TYPES[".html"]
    headers: tuple[tuple[str, str], ...] = ()


class Files:
    """Answers requests from a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def answer(self, path: str, headers: Mapping[str, str], origin: str) -> Reply:
        """Answer a GET of a still encoded ``path``; ``headers`` with lower-case names."""
        target = self._redirects().get(path)
        if target is not None:
            return _moved(target)
        file = self._find(path)
        if file is None:
            return self._not_found()
        if file.is_dir():
            if not path.endswith("/"):
                return _moved(f"/{path.lstrip('/')}/")
            file = file / "index.html"
        elif path.endswith("/"):
            return self._not_found()
        try:
            body = file.read_bytes()
            modified = int(file.stat().st_mtime)
        except (FileNotFoundError, NotADirectoryError):
            return self._not_found()
        if file.name in ABSOLUTE_FILES:
            body = body.replace(ORIGIN_MARK, origin.encode())
        validators = (
            ("ETag", f'"{blake2b(body, digest_size=12).hexdigest()}"'),
            ("Last-Modified", format_datetime(datetime.fromtimestamp(modified, UTC), usegmt=True)),
            ("Cache-Control", "no-cache"),
        )
        media_type = MEDIA_TYPES.get(file.suffix.lower(), "application/octet-stream")
        if _is_held(headers, etag=validators[0][1], modified=modified):
            return Reply(HTTPStatus.NOT_MODIFIED, b"", media_type, validators)
        return Reply(HTTPStatus.OK, body, media_type, validators)

    def _find(self, path: str) -> Path | None:
        """The file or folder of a path, None where there is none that may be seen."""
        names = [name for name in unquote(path).split("/") if name]
        if any(name[0] in "._" or "\\" in name or "\0" in name for name in names):
            return None
        file = self._root.joinpath(*names).resolve()
        # A link in the folder may lead out of it.
        return file if file.is_relative_to(self._root) and file.exists() else None

    def _redirects(self) -> dict[str, str]:
        try:
            text = (self._root / REDIRECTS).read_text("utf-8")
        except FileNotFoundError:
            return {}
        rules = (line.split() for line in text.splitlines() if not line.startswith("#"))
        return {rule[0]: rule[1] for rule in rules if len(rule) == 2}

    def _not_found(self) -> Reply:
        page = self._root / NOT_FOUND_PAGE
        body = page.read_bytes() if page.is_file() else b"<!doctype html><h1>Not found</h1>\n"
        return Reply(HTTPStatus.NOT_FOUND, body)


def _moved(target: str) -> Reply:
    return Reply(HTTPStatus.MOVED_PERMANENTLY, headers=(("Location", target),))


def _is_held(headers: Mapping[str, str], *, etag: str, modified: int) -> bool:
    """Whether the client holds this version (RFC 9110: the entity tag decides where it is sent)."""
    tags = headers.get("if-none-match")
    if tags is not None:
        held = {tag.strip().removeprefix("W/") for tag in tags.split(",")}
        return etag in held or "*" in held
    since = headers.get("if-modified-since")
    if since is None:
        return False
    try:
        return modified <= parsedate_to_datetime(since).timestamp()
    except ValueError:
        return False
