"""One request at a time: bounded, retried, guarded. The only user of httpx."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ssl import SSLContext
from time import monotonic
from types import TracebackType
from urllib.parse import urlsplit

import httpx

from tidemark.adapters.website_addresses import GuardedTransport
from tidemark.adapters.website_decode import (
    ACCEPT_ENCODING,
    BrokenEncodingError,
    TooLargeError,
    decode_body,
)
from tidemark.adapters.website_options import WebsiteOptions
from tidemark.adapters.website_politeness import (
    MAX_RETRY_AFTER,
    HostGate,
    StoppedError,
    backoff,
    retry_after,
)
from tidemark.domain.errors import PermanentError, TransientError
from tidemark.domain.urls import canonical_url, origin_of

ACCEPT = (
    "text/html,application/xhtml+xml,text/markdown,text/plain;q=0.9,application/pdf;q=0.9,*/*;q=0.5"
)
_OUTAGES = frozenset({408, 425, 429, *range(500, 600)}) - {501, 505}
_WHOLE_ANSWER_TIMEOUTS = 10
_DRAINED_BYTES = 32_768


@dataclass(frozen=True, slots=True)
class Response:
    """What came back.

    headers: names in lower case.
    body: decoded; None when it was left, or refused because it ``refused`` ("is larger than ...").
    """

    status: int
    headers: Mapping[str, str]
    body: bytes | None = None
    refused: str = ""


Wants = Callable[[int, Mapping[str, str]], str | None]
"""Judges status and headers: "" to read the body, a reason to refuse it, None to leave it."""


def read_success(status: int, headers: Mapping[str, str]) -> str | None:
    """Read the body of a 200, leave any other."""
    return "" if status == 200 else None


class Fetcher:
    """Sends GET requests for one crawl; safe to share between threads."""

    def __init__(self, options: WebsiteOptions) -> None:
        self._options = options
        self._stop = threading.Event()
        self._gates: dict[str, HostGate] = {}
        self._lock = threading.Lock()
        self._private_to = _own_origins(options)
        limits = httpx.Limits(max_connections=64, max_keepalive_connections=32, keepalive_expiry=15)
        self._client = httpx.Client(
            transport=GuardedTransport(_context(), limits, allow_private=options.allow_private),
            timeout=httpx.Timeout(options.timeout, pool=None),
            trust_env=False,
            follow_redirects=False,
            # A jar that keeps cookies would let one page decide what the next one shows.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )

    def __enter__(self) -> "Fetcher":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def stop(self) -> None:
        """Make every request under way or waiting end soon, with ``StoppedError``."""
        self._stop.set()

    def gate(self, url: str) -> HostGate:
        """The gate of a URL's host."""
        host = origin_of(url).partition("://")[2]
        with self._lock:
            if host not in self._gates:
                self._gates[host] = HostGate(
                    self._options.concurrency, self._options.delay, self._stop
                )
            return self._gates[host]

    def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        wants: Wants = read_success,
        max_bytes: int | None = None,
    ) -> Response:
        """Ask for one URL; redirects are answers like any other.

        Raises ``TransientError`` when it stays away after the retries, ``PermanentError`` when its address
        is refused or the answer is no HTTP, ``StoppedError`` when the crawl ends.
        """
        gate = self.gate(url)
        attempts = self._options.retries + 1
        for attempt in range(attempts):
            wait = backoff(attempt, self._options.backoff)
            try:
                with gate.turn():
                    response = self._once(url, headers or {}, wants, max_bytes)
            except TransientError as error:
                problem = error.message
            else:
                if response.status not in _OUTAGES:
                    return response
                problem = f"{url} answered {response.status}"
                asked = retry_after(response.headers.get("retry-after"))
                if asked is not None and response.status in {429, 503}:
                    if asked > MAX_RETRY_AFTER:
                        raise TransientError(f"{problem} and asked to be left for {asked:.0f} s.")
                    wait = max(wait, asked)
                    gate.pause(asked)
            if attempt + 1 < attempts:
                gate.sleep(wait)
        tries = "once" if attempts == 1 else f"{attempts} times"
        raise TransientError(f"{problem} ({tries}).")

    def _once(
        self, url: str, headers: Mapping[str, str], wants: Wants, max_bytes: int | None
    ) -> Response:
        try:
            with self._client.stream("GET", url, headers=self._headers(url, headers)) as answer:
                told = {name.lower(): value for name, value in answer.headers.items()}
                refused = wants(answer.status_code, told)
                if refused is None or refused:
                    self._drain(url, answer)
                    return Response(answer.status_code, told, refused=refused or "")
                limit = self._options.max_bytes if max_bytes is None else max_bytes
                raw = self._read(url, answer, limit)
        except TooLargeError:
            return Response(answer.status_code, told, refused=f"is larger than {limit:,} bytes")
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.DecodingError) as error:
            raise PermanentError(f"{url} cannot be asked for ({type(error).__name__}).") from error
        except httpx.HTTPError as error:
            raise TransientError(f"{url} did not answer: {_told(error)}") from error
        return self._decoded(url, answer.status_code, told, raw, limit)

    def _drain(self, url: str, answer: httpx.Response) -> None:
        """Read a short body that nobody wants: cheaper than another connection."""
        declared = answer.headers.get("content-length", "")
        if declared.isdigit() and 0 < int(declared) <= _DRAINED_BYTES:
            self._read(url, answer, _DRAINED_BYTES)

    def _decoded(
        self, url: str, status: int, told: Mapping[str, str], raw: bytes, limit: int
    ) -> Response:
        try:
            body = decode_body(raw, told.get("content-encoding", ""), limit)
        except TooLargeError:
            return Response(status, told, refused=f"is larger than {limit:,} bytes")
        except BrokenEncodingError as error:
            raise TransientError(f"{url} sent a broken answer: {error}") from error
        return Response(status, told, body)

    def _read(self, url: str, answer: httpx.Response, limit: int) -> bytes:
        declared = answer.headers.get("content-length", "")
        if declared.isdigit() and int(declared) > limit:
            raise TooLargeError
        deadline = monotonic() + self._options.timeout * _WHOLE_ANSWER_TIMEOUTS
        raw = bytearray()
        for piece in answer.iter_raw():
            raw += piece
            if len(raw) > limit:
                raise TooLargeError
            if self._stop.is_set():
                raise StoppedError
            if monotonic() > deadline:
                raise TransientError(f"{url} answers too slowly")
        return bytes(raw)

    def _headers(self, url: str, extra: Mapping[str, str]) -> httpx.Headers:
        headers = httpx.Headers(
            {
                "User-Agent": self._options.agent_header,
                "Accept": ACCEPT,
                "Accept-Encoding": ACCEPT_ENCODING,
                **extra,
            }
        )
        if origin_of(url) in self._private_to:
            headers.update(self._options.headers)
        return headers


@cache
def _context() -> SSLContext:
    """One for the process: reading the authorities takes longer than a crawl of a few pages."""
    context = httpx.create_ssl_context(trust_env=False)
    # The system's authorities as well as the packaged ones: intranets have their own.
    context.load_default_certs()
    return context


def _told(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.ConnectTimeout):
        return "no connection in time"
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    if isinstance(error, httpx.ProtocolError):
        # Its text may quote a header.
        return f"no valid HTTP ({type(error).__name__})"
    return str(error) or type(error).__name__


def _own_origins(options: WebsiteOptions) -> frozenset[str]:
    """The origins that secrets may go to: the start pages', and the same host over TLS."""
    origins = {origin_of(uri) for start in options.starts if (uri := canonical_url(start))}
    secured = {
        origin.replace("http:", "https:", 1)
        for origin in origins
        if origin.startswith("http:") and urlsplit(origin).port is None
    }
    return frozenset(origins | secured)
