"""Real servers, in this process, for the stores that files are read from."""

import email.utils
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import quote, unquote

import paramiko
from cheroot import wsgi
from wsgidav.wsgidav_app import WsgiDAVApp

from tidemark.domain.connections import Credentials

LOGIN, PASSWORD = "reader", "s3cret-word"


@contextmanager
def s3_server() -> Iterator[str]:
    """A server that speaks S3, empty; gives its URL."""
    from botocore import loaders
    from moto.server import ThreadedMotoServer

    # Every client would read the service's description anew, which takes half a second.
    loader = loaders.create_loader()
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        with patch("botocore.session.create_loader", lambda *_: loader):
            yield f"http://{host}:{port}"
    finally:
        server.stop()


def s3_client(url: str) -> Any:
    """A client to prepare buckets with."""
    import boto3

    return boto3.client(
        "s3",
        endpoint_url=url,
        aws_access_key_id=LOGIN,
        aws_secret_access_key=PASSWORD,
        region_name="us-east-1",
    )


def s3_credentials(url: str, **extra: object) -> Credentials:
    """For a crawl; gives up on a server that is away at once."""
    quick = {"config_kwargs": {"connect_timeout": 2, "retries": {"max_attempts": 0}}}
    return Credentials(
        "bucket",
        "aws",
        LOGIN,
        PASSWORD,
        extra={"endpoint_url": url, "storage_options": quick, "region_name": "us-east-1", **extra},
    )


@dataclass
class IndexServer:
    """A web server that shows a folder as pages of links.

    failing: status by path.
    validators: whether it sends ETag and Last-Modified.
    extra_links: put into the root's page.
    requests: method and path of each.
    """

    root: Path
    failing: dict[str, int] = field(default_factory=dict)
    validators: bool = True
    extra_links: str = ""
    authorization: str = ""
    requests: list[tuple[str, str, int]] = field(default_factory=list)
    url: str = ""

    def bodies(self) -> int:
        """Files handed over since the last call."""
        count = sum(status == 200 and not path.endswith("/") for _, path, status in self.requests)
        self.requests.clear()
        return count


class _IndexHandler(BaseHTTPRequestHandler):
    told: IndexServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 - the base's name
        pass

    def do_GET(self) -> None:
        path = unquote(self.path.partition("?")[0], errors="surrogateescape")
        file = self.told.root / path.lstrip("/")
        status, headers, body = 404, {}, b"not here"
        if self.told.authorization and self.headers.get("Authorization") != self.told.authorization:
            status, body = 401, b"who?"
        elif path in self.told.failing:
            status, body = self.told.failing[path], b"trouble"
            if 300 <= status < 400:
                headers = {"Location": "http://elsewhere.example/"}
        elif path.endswith("/") and file.is_dir():
            status, headers, body = 200, {"Content-Type": "text/html"}, self._page(file)
        elif file.is_file():
            status, headers, body = self._file(file)
        self.told.requests.append((self.command, path, status))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _page(self, folder: Path) -> bytes:
        links = ['<a href="../">..</a>', '<a href="?C=M;O=A">sort</a>']
        if folder == self.told.root:
            links.append(self.told.extra_links)
        for child in sorted(folder.iterdir()):
            name = quote(child.name) + ("/" if child.is_dir() else "")
            links.append(f'<a href="{name}">{name}</a>')
        return f"<html><body>{' '.join(links)}</body></html>".encode()

    def _file(self, file: Path) -> tuple[int, dict[str, str], bytes]:
        found = file.stat()
        headers = {}
        if self.told.validators:
            headers = {
                "ETag": f'"{found.st_mtime_ns:x}-{found.st_size:x}"',
                "Last-Modified": email.utils.formatdate(found.st_mtime, usegmt=True),
            }
            if self.headers.get("If-None-Match") == headers["ETag"]:
                return 304, headers, b""
        return 200, headers, file.read_bytes()


@contextmanager
def index_server(root: Path) -> Iterator[IndexServer]:
    """One over ``root``, on a free port."""
    told = IndexServer(root)
    handler = type("Handler", (_IndexHandler,), {"told": told})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    told.url = f"http://127.0.0.1:{server.server_port}/"
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class DavServer:
    """A WebDAV server over a folder; GET of the paths in ``failing`` gives a 500."""

    root: Path
    url: str = ""
    failing: set[str] = field(default_factory=set)
    gets: list[str] = field(default_factory=list)


@contextmanager
def dav_server(root: Path) -> Iterator[DavServer]:
    """One over ``root``, on a free port, that asks for LOGIN and PASSWORD."""
    told = DavServer(root)
    app = WsgiDAVApp(
        {
            "provider_mapping": {"/": str(root)},
            "simple_dc": {"user_mapping": {"*": {LOGIN: {"password": PASSWORD}}}},
            "http_authenticator": {
                "accept_basic": True,
                "accept_digest": False,
                "default_to_digest": False,
            },
            "verbose": 0,
            "logging": {"enable": False},
        }
    )

    def judged(environ: dict[str, Any], start_response: Any) -> Any:
        if environ["REQUEST_METHOD"] == "GET":
            told.gets.append(environ["PATH_INFO"])
            if environ["PATH_INFO"] in told.failing:
                start_response("500 Trouble", [("Content-Length", "0")])
                return [b""]
        return app(environ, start_response)

    server = wsgi.Server(("127.0.0.1", 0), judged, numthreads=2)
    server.prepare()
    thread = threading.Thread(target=server.serve)
    thread.start()
    told.url = f"webdav://127.0.0.1:{server.bind_addr[1]}/"
    try:
        yield told
    finally:
        server.stop()
        thread.join()


@dataclass
class SftpServer:
    """An SSH server that shows a folder; files in ``failing`` cannot be opened.

    opened: paths that were.
    connections: how many came.
    """

    root: Path
    host_key: paramiko.PKey
    port: int = 0
    failing: set[str] = field(default_factory=set)
    opened: list[str] = field(default_factory=list)
    connections: int = 0

    @property
    def url(self) -> str:
        return f"sftp://127.0.0.1:{self.port}/docs"

    def credentials(self, **extra: object) -> Credentials:
        known = f"{self.host_key.get_name()} {self.host_key.get_base64()}"
        return Credentials("share", "sftp", LOGIN, PASSWORD, extra={"host_key": known, **extra})


class _Login(paramiko.ServerInterface):
    def check_auth_password(self, username: str, password: str) -> int:
        right = (username, password) == (LOGIN, PASSWORD)
        return paramiko.AUTH_SUCCESSFUL if right else paramiko.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def get_allowed_auths(self, username: str) -> str:
        return "password"


class _Folder(paramiko.SFTPServerInterface):
    told: SftpServer

    def _real(self, path: str) -> str:
        relative = self.canonicalize(path).lstrip("/")
        return str(self.told.root / relative.removeprefix("docs").lstrip("/"))

    def list_folder(self, path: str) -> Any:
        try:
            entries = list(os.scandir(self._real(path)))
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno or 0)
        return [
            paramiko.SFTPAttributes.from_stat(e.stat(follow_symlinks=False), e.name)
            for e in entries
        ]

    def stat(self, path: str) -> Any:
        return self._stat(path, os.stat)

    def lstat(self, path: str) -> Any:
        return self._stat(path, os.lstat)

    def _stat(self, path: str, look: Any) -> Any:
        try:
            return paramiko.SFTPAttributes.from_stat(look(self._real(path)))
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno or 0)

    def open(self, path: str, flags: int, attr: object) -> Any:
        if Path(path).name in self.told.failing:
            return paramiko.SFTP_PERMISSION_DENIED
        self.told.opened.append(path)
        handle = paramiko.SFTPHandle(flags)
        try:
            handle.readfile = open(self._real(path), "rb")  # noqa: SIM115, PTH123 - the handle closes it
        except OSError as error:
            return paramiko.SFTPServer.convert_errno(error.errno or 0)
        return handle


@contextmanager
def sftp_server(root: Path) -> Iterator[SftpServer]:
    """One over ``root`` as /docs, on a free port; LOGIN and PASSWORD open it."""
    told = SftpServer(root, paramiko.ECDSAKey.generate())
    listener = socket.create_server(("127.0.0.1", 0))
    told.port = listener.getsockname()[1]
    transports: list[paramiko.Transport] = []
    folder = type("Folder", (_Folder,), {"told": told})

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            told.connections += 1
            transport = paramiko.Transport(connection)
            transports.append(transport)
            transport.add_server_key(told.host_key)
            transport.set_subsystem_handler("sftp", paramiko.SFTPServer, folder)
            try:
                transport.start_server(server=_Login())
            except (paramiko.SSHException, EOFError):
                continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield told
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for transport in transports:
            transport.close()
        thread.join(5)
