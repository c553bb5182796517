"""Serve the sample website over loopback, as an ordinary web server would.

``python -m tidemark_local.sample_site --port 8931`` for a person; ``SampleSite`` for tests, with
counters and with failures on demand. Files are read at each request, so an edit shows at once.

Names that start with "_" or "." are never served. Two of them are read: ``_redirects`` (lines of
``/old /new``) and ``_404.html``. In ``robots.txt`` and ``sitemap.xml``, ``__ORIGIN__`` stands for
the address of the server, which both formats want to be absolute.
"""

import argparse
import errno
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from hashlib import blake2b
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from types import FrameType, TracebackType
from typing import Any, Self, TextIO
from urllib.parse import unquote, urlsplit

from tidemark.domain.errors import PermanentError, TidemarkError
from tidemark_local.processes import HOST

ROOT = Path(__file__).resolve().parent.parent / "samples" / "site"
IDLE_SECONDS = 30


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


@dataclass(frozen=True, slots=True)
class Counts:
    """What was asked and answered since the start or the last ``reset``.

    requests: all of them, of any status.
    bodies: answers that carried a file's bytes (status 200, not HEAD).
    statuses: answers by status code.
    bodies_by_path: the bodies, by the path asked for, without a query.
    """

    requests: int
    bodies: int
    statuses: Mapping[int, int]
    bodies_by_path: Mapping[str, int]


class SampleSite:
    """The site, served from a thread of this process while the context is open.

    root: folder to serve, the bundled site when None.
    port: 0 picks a free one.
    log: where to write one line a request, nowhere when None.

    ``failures`` maps paths to the status they shall answer with instead, e.g. ``{"/": 503}``.
    Raises ``PermanentError`` when the folder is missing or the port cannot be had.
    """

    def __init__(self, root: Path | None = None, port: int = 0, log: TextIO | None = None) -> None:
        self.root = ROOT if root is None else root
        self.failures: dict[str, int] = {}
        self._port = port
        self._log = log
        self._lock = threading.Lock()
        self._statuses: Counter[int] = Counter()
        self._bodies: Counter[str] = Counter()
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Address of the home page; known once started, and kept after a stop."""
        return f"http://{HOST}:{self._port}/"

    @property
    def counts(self) -> Counts:
        with self._lock:
            return Counts(
                requests=self._statuses.total(),
                bodies=self._bodies.total(),
                statuses=dict(self._statuses),
                bodies_by_path=dict(self._bodies),
            )

    def reset(self) -> None:
        """Start counting from nought."""
        with self._lock:
            self._statuses.clear()
            self._bodies.clear()

    def start(self) -> None:
        """Begin to answer. After a stop it comes back under the same port."""
        if not self.root.is_dir():
            raise PermanentError(f"There is no folder {self.root} to serve.", "Check --root.")
        try:
            self._server = _Server(self, self._port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PermanentError(
                    f"Port {self._port} on {HOST} is taken.", "Choose another with --port."
                ) from error
            raise PermanentError(
                f"Cannot listen on {HOST}:{self._port}: {error.strerror}.",
                "Choose another with --port.",
            ) from error
        self._port = self._server.server_port
        # The default poll of 0.5 s would be the time that each stop takes.
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), name="sample-site", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop answering and cut the connections that clients keep open."""
        if self._server is None or self._thread is None:
            return
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self._server.cut_connections()
        self._server = self._thread = None

    def answer(self, path: str, headers: Mapping[str, str], origin: str) -> Reply:
        status = self.failures.get(path)
        if status is not None:
            return Reply(HTTPStatus(status), b"<!doctype html><h1>Out of order</h1>\n")
        return Files(self.root).answer(path, headers, origin)

    def note(self, method: str, path: str, reply: Reply) -> None:
        with self._lock:
            self._statuses[reply.status.value] += 1
            if method == "GET" and reply.status is HTTPStatus.OK:
                self._bodies[path] += 1
            if self._log is not None:
                now = datetime.now(UTC).isoformat(timespec="milliseconds")
                self._log.write(f"{now} {method} {path} {reply.status.value} {len(reply.body)}\n")
                self._log.flush()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, site: SampleSite, port: int) -> None:
        self.site = site
        self._connections: set[socket.socket] = set()
        self._connections_lock = threading.Lock()
        super().__init__((HOST, port), _Handler)

    def server_bind(self) -> None:
        # HTTPServer's own asks the resolver for this machine's name, which may take seconds.
        TCPServer.server_bind(self)
        self.server_name, self.server_port = HOST, self.server_address[1]

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, address = super().get_request()
        with self._connections_lock:
            self._connections.add(connection)
        return connection, address

    def shutdown_request(self, request: Any) -> None:
        with self._connections_lock:
            self._connections.discard(request)
        super().shutdown_request(request)

    def cut_connections(self) -> None:
        with self._connections_lock:
            for connection in self._connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError as error:
                    if error.errno != errno.ENOTCONN:
                        raise

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no news; anything else is."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version = "SampleSite"
    timeout = IDLE_SECONDS
    # Headers and body leave in two writes; with Nagle's algorithm the second would wait for an ACK.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = urlsplit(self.path).path
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.server.site.answer(path, headers, self._origin(headers.get("host", "")))
        # Counted before it is sent: a client that has the answer must find it counted.
        self.server.site.note(self.command, path, reply)
        self.send_response(reply.status)
        if reply.status is not HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Type", reply.media_type)
            self.send_header("Content-Length", str(len(reply.body)))
        for name, value in reply.headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)

    def _origin(self, host: str) -> str:
        """The address the client used, where it is one of ours: a Host header may hold anything."""
        port = self.server.server_port
        return f"http://{host if host == f'localhost:{port}' else f'{HOST}:{port}'}"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
        """Say nothing on stderr; ``SampleSite`` writes the log."""


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{number} is no port (0 to 65535)")
    return number


def _arguments(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tidemark_local.sample_site",
        description="Serve the sample website on 127.0.0.1.",
    )
    parser.add_argument("--port", type=_port, required=True, help="0 picks a free one")
    parser.add_argument("--root", type=Path, default=ROOT, help="folder to serve")
    parser.add_argument("--lifetime", type=float, help="end by itself after this many seconds")
    parser.add_argument("--log", type=Path, help="append one line a request to this file")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Serve until SIGINT, SIGTERM or the end of the lifetime; returns the exit status."""
    arguments = _arguments(argv)
    ended = threading.Event()

    def end(signum: int, frame: FrameType | None) -> None:
        ended.set()

    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    log: TextIO | None = None
    try:
        if arguments.log is not None:
            log = arguments.log.open("a", encoding="utf-8")
        with SampleSite(arguments.root, arguments.port, log) as site:
            sys.stdout.write(f"The sample site is at {site.url}\n")
            sys.stdout.flush()
            ended.wait(arguments.lifetime)
    except (TidemarkError, OSError) as error:
        sys.stderr.write(f"sample site: {error}\n")
        return 1
    finally:
        if log is not None:
            log.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
