"""A small website over loopback for tests: it answers as told and counts what it was asked.

    with Site({"/": "<a href='/a'>a</a>", "/a": Page("<p>text</p>")}) as site:
        ...  # site.url, site.requests["/a"], site.bodies["/a"]

Pages may be changed, added and removed while it runs. Every page has an ETag of its content and answers
conditional requests with 304, unless told otherwise.
"""

import hashlib
import mimetypes
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from fakes.source import MemoryKnown
from tidemark.adapters.sources.website.crawl import WebsiteSource
from tidemark.adapters.sources.website.options import WebsiteOptions
from tidemark.domain.documents import CrawlEnd, CrawlItem, Outcome
from tidemark.ports.source import Known, Source


@dataclass(slots=True)
class Page:
    """One answer.

    etag: None takes one of the body, "" sends none.
    location: makes it a redirect when ``status`` is not a 3xx already (302).
    delay: seconds before the answer.
    declared_length: a Content-Length other than the truth; the connection then closes early.
    endless: repeats the body without a Content-Length until the client hangs up.
    failures: answer ``failure_status`` so many times before the real answer.
    raw: what goes over the wire instead of an answer; the connection then closes.
    drip: seconds before each byte of the body.
    """

    body: str | bytes = ""
    media_type: str = "text/html; charset=utf-8"
    status: int = 200
    etag: str | None = None
    last_modified: str | None = None
    location: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    delay: float = 0.0
    declared_length: int | None = None
    endless: bool = False
    failures: int = 0
    failure_status: int = 503
    raw: bytes | None = None
    drip: float = 0.0

    @property
    def content(self) -> bytes:
        return self.body.encode() if isinstance(self.body, str) else self.body

    @property
    def tag(self) -> str:
        if self.etag is not None:
            return self.etag
        return f'"{hashlib.sha256(self.content).hexdigest()[:16]}"'


class Folder(MutableMapping[str, "str | Page"]):
    """The files of a folder as pages, read when asked for; ``/a/`` is ``/a/index.html``."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._over: dict[str, str | Page | None] = {}

    def __getitem__(self, path: str) -> "str | Page":
        if path in self._over:
            page = self._over[path]
            if page is None:
                raise KeyError(path)
            return page
        file = self._root / unquote(path).lstrip("/")
        if path.endswith("/"):
            file /= "index.html"
        elif file.is_dir():
            return Page(status=301, location=f"{path}/")
        if not file.is_file():
            raise KeyError(path)
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        return Page(file.read_bytes(), media_type=kind)

    def __setitem__(self, path: str, page: "str | Page") -> None:
        self._over[path] = page

    def __delitem__(self, path: str) -> None:
        self._over[path] = None

    def __iter__(self) -> Iterator[str]:
        return iter(self._over)

    def __len__(self) -> int:
        return len(self._over)


class Site:
    """The running site.

    requests: how often a path was asked for since the last `forget`.
    bodies: how often its body was sent with status 200.
    seen: path and headers (names in lower case) of every request.
    on_request: called with the path before each answer.
    """

    def __init__(
        self,
        pages: "MutableMapping[str, str | Page] | None" = None,
        tls: ssl.SSLContext | None = None,
        port: int = 0,
    ) -> None:
        self.pages: MutableMapping[str, str | Page] = {} if pages is None else pages
        self.requests: Counter[str] = Counter()
        self.bodies: Counter[str] = Counter()
        self.bytes_sent = 0
        self.most_at_once = 0
        self.seen: list[tuple[str, dict[str, str]]] = []
        self.on_request: Callable[[str], None] | None = None
        self.closed = False
        self._at_once = 0
        self._lock = threading.Lock()
        self._scheme = "https" if tls else "http"
        self._server = _Server(self, port)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def origin(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.origin}/"

    def __enter__(self) -> "Site":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop answering; connections are refused from now on. Repeating it is fine."""
        self.closed = True
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def forget(self) -> None:
        """Set all counters to zero."""
        with self._lock:
            self.requests.clear()
            self.bodies.clear()
            self.seen.clear()
            self.bytes_sent = 0
            self.most_at_once = 0

    def entered(self, path: str, headers: Mapping[str, str]) -> None:
        with self._lock:
            self.requests[path] += 1
            self.seen.append((path, {name.lower(): value for name, value in headers.items()}))
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        if self.on_request is not None:
            self.on_request(path)

    def left(self) -> None:
        with self._lock:
            self._at_once -= 1

    def sent(self, path: str, size: int) -> None:
        with self._lock:
            self.bodies[path] += 1
            self.bytes_sent += size

    def page(self, path: str) -> Page:
        """The page for a path with its query, else for the path alone, else a 404."""
        for key in (path, urlsplit(path).path):
            page = self.pages.get(key)
            if page is not None:
                break
        else:
            return Page("<h1>Not found</h1>", status=404, etag="")
        if isinstance(page, str):
            return Page(page)
        with self._lock:
            if page.failures > 0:
                page.failures -= 1
                return Page("busy", status=page.failure_status, etag="", headers=page.headers)
        return page


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, site: Site, port: int) -> None:
        self.site = site
        super().__init__(("127.0.0.1", port), _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def site(self) -> Site:
        return cast(_Server, self.server).site

    def do_GET(self) -> None:
        if self.site.closed:
            # Connections that were kept open die with the site.
            self.close_connection = True
            return
        self.site.entered(self.path, dict(self.headers.items()))
        try:
            self._answer(self.site.page(self.path))
        finally:
            self.site.left()

    do_HEAD = do_GET  # noqa: N815 - the name that http.server looks for

    def _answer(self, page: Page) -> None:
        if page.delay:
            time.sleep(page.delay)
        if page.raw is not None:
            self.wfile.write(page.raw)
            self.close_connection = True
            return
        status = page.status
        if page.location is not None and not 300 <= status < 400:
            status = 302
        unchanged = status == 200 and self._holds(page)
        content = b"" if unchanged or page.location is not None else page.content
        self.send_response(304 if unchanged else status)
        for name, value in self._headers(page, unchanged):
            self.send_header(name, value)
        if not unchanged and not page.endless:
            length = len(content) if page.declared_length is None else page.declared_length
            self.send_header("Content-Length", str(length))
        self.end_headers()
        if content and self.command == "GET":
            self._send(page, status, content)
        while content and page.endless and not self.site.closed:
            self.wfile.write(content)
        if page.declared_length is not None or page.endless:
            self.close_connection = True

    def _send(self, page: Page, status: int, content: bytes) -> None:
        for piece in _dripping(content, page.drip):
            self.wfile.write(piece)
        if status == 200:
            self.site.sent(self.path, len(content))

    def _headers(self, page: Page, unchanged: bool) -> Iterator[tuple[str, str]]:
        if not unchanged and page.media_type:
            yield "Content-Type", page.media_type
        if page.tag and page.status == 200:
            yield "ETag", page.tag
        if page.last_modified:
            yield "Last-Modified", page.last_modified
        if page.location is not None:
            yield "Location", page.location
        yield from page.headers.items()

    def _holds(self, page: Page) -> bool:
        asked = self.headers.get("If-None-Match")
        if asked is not None:
            return bool(page.tag) and page.tag in [tag.strip() for tag in asked.split(",")]
        since = self.headers.get("If-Modified-Since")
        return page.last_modified is not None and since == page.last_modified

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Quiet: the counters tell."""


def _dripping(content: bytes, seconds: float) -> Iterator[bytes]:
    if not seconds:
        yield content
        return
    for place in range(len(content)):
        time.sleep(seconds)
        yield content[place : place + 1]


@dataclass(slots=True)
class Crawled:
    """A finished crawl: its items by URI, in order, and its end."""

    items: dict[str, CrawlItem]
    end: CrawlEnd

    def outcomes(self, origin: str = "") -> dict[str, str]:
        """Outcomes by URI, without the ``origin``."""
        return {uri.removeprefix(origin): item.outcome.value for uri, item in self.items.items()}


def crawl_all(source: Source, known: Known | None = None, limit: int | None = None) -> Crawled:
    """Crawl to the end, hold it to the port's promises, and let a `MemoryKnown` learn."""
    detector = MemoryKnown() if known is None else known
    items: dict[str, CrawlItem] = {}
    end: CrawlEnd | None = None
    for found in source.crawl(detector, limit):
        assert end is None, "CrawlEnd was not the last"
        if isinstance(found, CrawlEnd):
            end = found
            continue
        assert found.item.uri not in items, f"{found.item.uri} came twice"
        assert (found.raw is not None) == (found.outcome is Outcome.FETCHED)
        items[found.item.uri] = found
    assert end is not None, "there was no CrawlEnd"
    assert end.complete != bool(end.problem), "a problem, or complete"
    for item in items.values():
        assert bool(item.target) == (item.outcome in {Outcome.MOVED, Outcome.ALIAS})
        if item.target:
            there = items[item.target].outcome
            assert there in {Outcome.FETCHED, Outcome.NOT_MODIFIED}, f"{item.target} is no document"
    if isinstance(detector, MemoryKnown):
        for item in items.values():
            detector.remember(item)
    return Crawled(items, end)


def website(url: str, **options: Any) -> WebsiteSource:
    """A source over a site of this module: without waits, retries and sitemaps, if not told otherwise."""
    defaults = {
        "url": url, "allow_private": True, "request_retries": 0, "backoff": 0, "delay": 0.0, "timeout": 5,
        "use_sitemap": False,
    }  # fmt: skip
    return WebsiteSource(WebsiteOptions(**defaults | options))


def crawl_site(
    site: Site, known: Known | None = None, *, limit: int | None = None, **options: Any
) -> Crawled:
    return crawl_all(website(**{"url": site.url} | options), known, limit)


def links(*targets: str) -> str:
    return "".join(f"<a href='{target}'>{target}</a>" for target in targets)
