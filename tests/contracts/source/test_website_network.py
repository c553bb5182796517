"""The website source over real sockets: TLS, HTTP/2, proxies, secrets, and nothing left behind."""

import asyncio
import logging
import socket
import ssl
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, cast
from urllib.request import ProxyHandler, build_opener

import h2.config
import h2.connection
import h2.events
import httpcore
import pytest
import trustme
from sites import Crawled, Page, Site, crawl_all, website

from fakes.source import MemoryKnown
from tidemark.domain.connections import Credentials
from tidemark.domain.errors import ConfigurationError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> str:
    path = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(path))
    return str(path)


def server_context(authority: trustme.CA, *protocols: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    if protocols:
        context.set_alpn_protocols(list(protocols))
    return context


def crawl(url: str, known: MemoryKnown | None = None, **options: Any) -> Crawled:
    return crawl_all(website(url, **options), known)


# TLS


def test_an_intranets_own_authority_is_trusted_when_it_is_named(
    authority: trustme.CA, ca_file: str
) -> None:
    with Site({"/": "home"}, tls=server_context(authority)) as site:
        crawled = crawl(site.url, ca_file=ca_file)
        assert crawled.outcomes(site.origin) == {"/": "fetched"}


def test_a_certificate_of_nobody_known_is_never_accepted(authority: trustme.CA) -> None:
    with Site({"/": "home"}, tls=server_context(authority)) as site:
        crawled = crawl(site.url)
        assert crawled.items == {}
        assert "ca_file" in crawled.end.problem


def test_a_certificate_for_another_host_is_never_accepted(
    authority: trustme.CA, ca_file: str
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("elsewhere.example").configure_cert(context)
    with Site({"/": "home"}, tls=context) as site:
        assert crawl(site.url, ca_file=ca_file).items == {}


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_authorities_that_cannot_be_read_are_told_before_anything_is_asked(
    site: Site, tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "authority.pem"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigurationError, match="ca_file"):
        crawl(site.url, ca_file=str(path))
    assert site.seen == []


# HTTP/2


class TwoServer:
    """Answers every HTTP/2 request with a page, and counts connections and requests."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.context = context
        self.connections = 0
        self.paths: list[str] = []
        self.port = 0
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))

    def __enter__(self) -> "TwoServer":
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0, ssl=self.context)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._stop.wait()
        server.close()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        talk = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        talk.initiate_connection()
        writer.write(talk.data_to_send())
        while data := await reader.read(65_536):
            for event in talk.receive_data(data):
                if isinstance(event, h2.events.RequestReceived):
                    self._answer(talk, event)
            writer.write(talk.data_to_send())
        writer.close()

    def _answer(self, talk: h2.connection.H2Connection, event: Any) -> None:
        path = dict(event.headers)[b":path"].decode()
        self.paths.append(path)
        links = "".join(f"<a href='/{n}'>{n}</a>" for n in range(20)) if path == "/" else "leaf"
        found = path != "/robots.txt"
        headers = [(":status", "200" if found else "404"), ("content-type", "text/html")]
        talk.send_headers(event.stream_id, headers)
        talk.send_data(event.stream_id, links.encode(), end_stream=True)


def test_http_2_is_spoken_where_the_server_does_over_few_connections(
    authority: trustme.CA, ca_file: str
) -> None:
    with TwoServer(server_context(authority, "h2")) as server:
        crawled = crawl(f"https://127.0.0.1:{server.port}/", ca_file=ca_file, concurrency=4)
        assert len(crawled.items) == 21
        assert crawled.end.complete
        assert len(server.paths) == 22
        assert server.connections == 1


# Proxies


class Proxy(ThreadingHTTPServer):
    """Forwards plain requests and tunnels; ``asked`` has method, target and Proxy-Authorization."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, *, wants: str = "", answers: bytes = b"") -> None:
        self.asked: list[tuple[str, str, str]] = []
        self.wants = wants
        self.answers = answers
        super().__init__(("127.0.0.1", 0), _ProxyHandler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _ProxyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _admits(self) -> bool:
        proxy = cast(Proxy, self.server)
        grant = self.headers.get("Proxy-Authorization", "")
        proxy.asked.append((self.command, self.path, grant))
        if proxy.wants and grant != proxy.wants:
            self.send_response(407)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return False
        return True

    def do_GET(self) -> None:
        if not self._admits():
            return
        body, status = cast(Proxy, self.server).answers, 200
        if not body:
            with build_opener(ProxyHandler({})).open(self.path) as answer:
                body, status = answer.read(), answer.status
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_CONNECT(self) -> None:
        if not self._admits():
            return
        host, _, port = self.path.partition(":")
        with socket.create_connection((host, int(port))) as there:
            self.send_response(200)
            self.end_headers()
            back = threading.Thread(target=_copy, args=(there, self.connection), daemon=True)
            back.start()
            _copy(self.connection, there)
            back.join(5)
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Quiet."""


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


@contextmanager
def proxy(**options: Any) -> Iterator[Proxy]:
    made = Proxy(**options)
    thread = threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.shutdown()
        made.server_close()


def test_a_plain_site_is_asked_for_through_the_proxy(site: Site) -> None:
    site.pages.update({"/": "<a href='/a'>a</a>", "/a": "a", "/robots.txt": "User-agent: *"})
    with proxy() as through:
        crawled = crawl(site.url, proxy=through.url)
        assert crawled.outcomes(site.origin) == {"/": "fetched", "/a": "fetched"}
        assert [target for _, target, _ in through.asked] == [
            site.url + "robots.txt", site.url, site.url + "a",
        ]  # fmt: skip


def test_a_secure_site_is_reached_through_a_tunnel(authority: trustme.CA, ca_file: str) -> None:
    with Site({"/": "home"}, tls=server_context(authority)) as site, proxy() as through:
        crawled = crawl(site.url, proxy=through.url, ca_file=ca_file)
        assert crawled.outcomes(site.origin) == {"/": "fetched"}
        assert {method for method, _, _ in through.asked} == {"CONNECT"}


def test_the_proxy_gets_its_password_and_the_site_does_not(site: Site) -> None:
    site.pages.update({"/": "home", "/robots.txt": "User-agent: *"})
    with proxy(wants="Basic cmVhZGVyOmh1c2g=") as through:
        told = through.url.replace("http://", "http://reader:hush@")
        assert crawl(site.url, proxy=told).outcomes(site.origin) == {"/": "fetched"}
        assert all("proxy-authorization" not in headers for _, headers in site.seen)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_wants_a_password_is_told_without_showing_the_one_it_got(scheme: str) -> None:
    with proxy(wants="Basic other") as through:
        told = through.url.replace("http://", "http://reader:hush@")
        crawled = crawl(f"{scheme}://127.0.0.1:9/", proxy=told)
        assert crawled.items == {}
        assert "proxy" in crawled.end.problem
        assert "hush" not in crawled.end.problem


def test_the_proxys_own_address_may_be_private_and_the_sites_may_not(site: Site) -> None:
    site.pages["/"] = "home"
    with proxy(answers=b"User-agent: *") as through:
        crawled = crawl(site.url, proxy=through.url, allow_private=False)
        assert "allow_private" in crawled.end.problem
        assert through.asked == []
        crawled = crawl("http://93.184.216.34/", proxy=through.url, allow_private=False)
        assert list(crawled.items) == ["http://93.184.216.34/"]


# Secrets


SECRETS: list[dict[str, Any]] = [
    {"credentials": Credentials("intranet", login="reader", password="hush-password")},
    {"credentials": Credentials("intranet", password="hush-token")},
    {"credentials": Credentials("intranet", extra={"cookies": {"session": "hush-cookie"}})},
    {"credentials": Credentials("intranet", extra={"headers": {"X-Key": "hush-key"}})},
    {"headers": {"Authorization": "hush-header"}},
]


@pytest.mark.parametrize("options", SECRETS)
def test_secrets_go_to_the_start_pages_origin_and_to_nobody_else(
    options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with Site({"/robots.txt": "User-agent: *", "/sitemap.xml": "x", "/": "elsewhere"}) as elsewhere:
        away = elsewhere.url
        pages: dict[str, str | Page] = {
            "/robots.txt": Page(location=f"{away}robots.txt"),
            "/sitemap.xml": Page(location=f"{away}sitemap.xml"),
            "/": f"<a href='/out'>out</a><a href='/error'>e</a><a href='{away}'>away</a>",
            "/out": Page(location=away),
            "/error": Page(status=403),
        }
        with Site(pages) as site:
            known = MemoryKnown()
            crawled = crawl(site.url, known, use_sitemap=True, **options)
            asked = next(headers for path, headers in site.seen if path == "/")
            assert len({"authorization", "cookie", "x-key"} & asked.keys()) == 1
            assert elsewhere.seen
            for _, headers in elsewhere.seen:
                assert not {"authorization", "cookie", "x-key"} & headers.keys()
    assert "fetched" in crawled.outcomes().values()
    shown = repr(crawled) + caplog.text
    assert caplog.text
    for secret in ("hush", "cmVhZGVy"):
        assert secret not in shown


def test_a_site_that_wants_a_password_opens_with_it(site: Site) -> None:
    page = Page("inside")
    site.pages["/"] = page

    def judged(path: str) -> None:
        given = site.seen[-1][1].get("authorization")
        page.status = 200 if given == "Basic cmVhZGVyOmh1c2g=" else 401

    site.on_request = judged
    crawled = crawl(site.url)
    assert "credentials" in crawled.end.problem
    opened = Credentials("intranet", login="reader", password="hush")
    assert crawl(site.url, credentials=opened).outcomes(site.origin) == {"/": "fetched"}


# Addresses


def test_a_redirect_to_a_private_address_is_refused_on_the_address_it_leads_to(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = {"docs.example": "93.184.216.34", "www.docs.example": "127.0.0.1"}
    connect = httpcore.AnyIOBackend.connect_tcp

    def getaddrinfo(host: str, port: int, *_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (where[host], port))]

    async def to_the_test_site(backend: Any, address: str, port: int, *told: Any) -> Any:
        assert address == "93.184.216.34"
        return await connect(backend, "127.0.0.1", site.port, *told)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", to_the_test_site)
    site.pages.update(
        {"/": "<a href='/a'>a</a><a href='/b'>b</a>", "/b": "b",
         "/a": Page(location="http://www.docs.example/inside")}
    )  # fmt: skip
    crawled = crawl("http://docs.example/", allow_private=False)
    assert crawled.outcomes("http://docs.example") == {
        "/": "fetched", "/b": "fetched", "http://www.docs.example/inside": "failed",
    }  # fmt: skip
    assert "allow_private" in crawled.items["http://www.docs.example/inside"].detail
    # It stays so until somebody decides otherwise: no reason to call the listing incomplete for ever.
    assert crawled.end.complete
    assert site.requests["/inside"] == 0


# Connections


def test_answers_without_a_body_and_short_error_pages_leave_the_connection_open(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections = 0
    connect = httpcore.AnyIOBackend.connect_tcp

    async def counted(*told: Any) -> Any:
        nonlocal connections
        connections += 1
        return await connect(*told)

    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", counted)
    names = [f"/{n}" for n in range(20)]
    site.pages["/"] = "".join(f"<a href='{name}'>x</a><a href='/no{name}'>x</a>" for name in names)
    site.pages.update(dict.fromkeys(names, "text"))
    known = MemoryKnown()
    for _ in range(2):
        assert len(crawl(site.url, known, concurrency=1).items) == 41
    assert connections == 2


# Nothing is left behind


def left_behind(folder: Path) -> list[str]:
    threads = [t.name for t in threading.enumerate() if t.name.startswith("crawl")]
    return threads + [path.name for path in folder.glob("tidemark-crawl-*")]


def test_no_thread_and_no_file_outlives_a_crawl_however_it_ends(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A folder of its own: other tests crawl meanwhile, and their files are theirs.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    site.pages["/"] = "".join(f"<a href='/{n}'>{n}</a>" for n in range(30))
    site.pages.update({f"/{n}": Page("x", delay=0.02) for n in range(30)})
    before = set(left_behind(tmp_path))
    crawl(site.url)
    assert set(left_behind(tmp_path)) <= before

    class BrokenKnown(MemoryKnown):
        def validators(self, uri: str) -> Any:
            if uri.endswith("/7"):
                raise RuntimeError("the ledger is away")
            return None

    with pytest.raises(RuntimeError, match="ledger"):
        crawl(site.url, BrokenKnown())
    assert set(left_behind(tmp_path)) <= before
    running = website(site.url, use_sitemap=True).crawl(MemoryKnown())
    next(running)
    assert set(left_behind(tmp_path)) - before
    del running
    assert set(left_behind(tmp_path)) <= before


def test_whoever_takes_items_slowly_is_not_overrun(site: Site) -> None:
    site.pages["/"] = "".join(f"<a href='/{n}'>{n}</a>" for n in range(200))
    site.pages.update({f"/{n}": "x" * 1_000 for n in range(200)})
    running = website(site.url, concurrency=2).crawl(MemoryKnown())
    for _ in range(5):
        next(running)
    threading.Event().wait(0.3)
    assert site.bodies.total() <= 5 + 8 + 2
    assert len(list(running)) == 197


def test_large_bodies_that_nobody_took_yet_hold_further_requests_back(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemark.adapters.sources.website.crawl.MAX_HELD_BYTES", 100_000)
    site.pages["/"] = "".join(f"<a href='/{n}'>{n}</a>" for n in range(60))
    site.pages.update({f"/{n}": "x" * 60_000 for n in range(60)})
    running = website(site.url, concurrency=8).crawl(MemoryKnown())
    most = 0
    for taken, _ in enumerate(running):
        threading.Event().wait(0.01)
        most = max(most, site.bodies.total() - taken)
    assert site.bodies.total() == 61
    # Two fill the budget, eight are under way; without it 32 would be fetched ahead.
    assert 2 <= most <= 2 + 8 + 1
