"""One request at a time: bounded, retried, guarded. The only sender of requests."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from time import monotonic
from types import TracebackType
from typing import Protocol

import httpx

from tidemark.adapters.size_bound import told_size
from tidemark.adapters.website_addresses import GuardedTransport
from tidemark.adapters.website_budget import Permit
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
    backoff,
    retry_after,
)
from tidemark.adapters.website_trust import own_origins, tls_context
from tidemark.domain.errors import PermanentError, TransientError
from tidemark.domain.urls import origin_of

ACCEPT = (
    "text/html,application/xhtml+xml,text/markdown,text/plain;q=0.9,application/pdf;q=0.9,*/*;q=0.5"
)
_OUTAGES = frozenset({408, 425, 429, *range(500, 600)}) - {501, 505}
_WHOLE_ANSWER_TIMEOUTS = 10
_DRAINED_BYTES = 32_768
_BODILESS = frozenset({204, 304})


@dataclass(frozen=True, slots=True)
class Response:
    """What came back.

    headers: names in lower case; of one that came several times the values are joined, with line ends
        where each line stands for itself (X-Robots-Tag), else with commas.
    body: decoded; None when it was left, or refused because it ``refused`` ("has more than ..."); b"" when
        it went into a spool, as sent.
    too_large: refused for its size.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes | None = None
    refused: str = ""
    too_large: bool = False


class Spool(Protocol):
    """A file that a large body goes into."""

    def write(self, data: bytes, /) -> int: ...

    def seek(self, offset: int, whence: int = ..., /) -> int: ...

    def truncate(self, size: int | None = ..., /) -> int: ...


Wants = Callable[[int, Mapping[str, str]], str | None]
"""Judges status and headers: "" to read the body, a reason to refuse it, None to leave it."""


def read_success(status: int, headers: Mapping[str, str]) -> str | None:
    """Read the body of a 200, leave any other."""
    return "" if status == 200 else None


class Fetcher:
    """Sends GET requests for one crawl, many at a time, in one event loop."""

    def __init__(self, options: WebsiteOptions) -> None:
        """Raises ``ConfigurationError`` for certificate authorities that cannot be read."""
        self._options = options
        self._gates: dict[str, HostGate] = {}
        self._private_to = own_origins(options)
        self._common = httpx.Headers(
            {
                "User-Agent": options.agent_header,
                "Accept": ACCEPT,
                "Accept-Encoding": ACCEPT_ENCODING,
            }
        )
        self._private = self._common.copy()
        for name, value in options.private_headers:
            self._private[name] = value
        limits = httpx.Limits(max_connections=64, max_keepalive_connections=32, keepalive_expiry=15)
        self._client = httpx.AsyncClient(
            transport=GuardedTransport(
                tls_context(options.ca_file),
                limits,
                allow_private=options.allow_private,
                proxy=httpx.Proxy(options.proxy) if options.proxy else None,
            ),
            timeout=httpx.Timeout(options.timeout, pool=None),
            trust_env=False,
            follow_redirects=False,
            # A jar that keeps cookies would let one page decide what the next one shows.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
        )

    async def __aenter__(self) -> "Fetcher":
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client.aclose()

    def gate(self, url: str) -> HostGate:
        """The gate of a URL's host."""
        host = origin_of(url).partition("://")[2]
        gate = self._gates.get(host)
        if gate is None:
            gate = HostGate(self._options.concurrency, self._options.delay)
            self._gates[host] = gate
        return gate

    async def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        wants: Wants = read_success,
        max_bytes: int | None = None,
        spool: Spool | None = None,
        permit: Permit | None = None,
    ) -> Response:
        """Ask for one URL; redirects are answers like any other.

        Raises ``TransientError`` when it stays away after the retries, ``PermanentError`` when its address
        is refused or the answer is no HTTP.
        """
        gate = self.gate(url)
        attempts = self._options.retries + 1
        for attempt in range(attempts):
            wait = backoff(attempt, self._options.backoff)
            try:
                response = await self._in_turn(
                    gate, permit, lambda: self._once(url, headers or {}, wants, max_bytes, spool)
                )
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
                await asyncio.sleep(wait)
        tries = "once" if attempts == 1 else f"{attempts} times"
        raise TransientError(f"{problem} ({tries}).")

    async def _in_turn(
        self,
        gate: HostGate,
        permit: Permit | None,
        request: Callable[[], Coroutine[object, object, Response]],
    ) -> Response:
        while True:
            async with gate.turn():
                if permit is None or permit.given():
                    return await request()
            # Not in turn: the one that all wait for may need it.
            await permit.changed()

    async def _once(
        self,
        url: str,
        headers: Mapping[str, str],
        wants: Wants,
        max_bytes: int | None,
        spool: Spool | None,
    ) -> Response:
        told: dict[str, str] = {}
        limit = self._options.max_bytes if max_bytes is None else max_bytes
        try:
            request = self._client.build_request("GET", url, headers=self._headers(url, headers))
            answer = await self._client.send(request, stream=True)
            try:
                told = _told_headers(answer)
                refused = wants(answer.status_code, told)
                if refused is None or refused:
                    await self._drain(url, answer, told)
                    return Response(answer.status_code, told, refused=refused or "")
                raw = await self._read(url, answer, told, limit, spool)
            finally:
                await answer.aclose()
        except TooLargeError:
            return _too_large(answer.status_code, told, limit)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.DecodingError) as error:
            raise PermanentError(f"{url} cannot be asked for ({type(error).__name__}).") from error
        except httpx.HTTPError as error:
            raise TransientError(f"{url} did not answer: {_told(error)}") from error
        if spool is not None:
            return Response(answer.status_code, told, b"")
        return self._decoded(url, answer.status_code, told, raw, limit)

    async def _drain(self, url: str, answer: httpx.Response, told: Mapping[str, str]) -> None:
        """Read a short body that nobody wants, or none at all: cheaper than another connection."""
        declared = _declared(told)
        short = declared is not None and declared <= _DRAINED_BYTES
        # Without a length it is read only where it is an error page or the like, and to a bound.
        if (
            short
            or answer.status_code in _BODILESS
            or (declared is None and answer.status_code != 200)
        ):
            with suppress(TooLargeError):
                await self._read(url, answer, {}, _DRAINED_BYTES, None)

    def _decoded(
        self, url: str, status: int, told: Mapping[str, str], raw: bytes, limit: int
    ) -> Response:
        try:
            body = decode_body(raw, told.get("content-encoding", ""), limit)
        except TooLargeError:
            return _too_large(status, told, limit)
        except BrokenEncodingError as error:
            raise TransientError(f"{url} sent a broken answer: {error}") from error
        return Response(status, told, body)

    async def _read(
        self,
        url: str,
        answer: httpx.Response,
        told: Mapping[str, str],
        limit: int,
        spool: Spool | None,
    ) -> bytes:
        """The body as sent, or b"" when it went into the spool."""
        if (_declared(told) or 0) > limit:
            raise TooLargeError
        if spool is not None:
            spool.seek(0)
            spool.truncate(0)
        deadline = monotonic() + self._options.timeout * _WHOLE_ANSWER_TIMEOUTS
        pieces: list[bytes] = []
        size = 0
        async for piece in answer.aiter_raw():
            size += len(piece)
            if size > limit:
                raise TooLargeError
            if monotonic() > deadline:
                raise TransientError(f"{url} answers too slowly")
            if spool is None:
                pieces.append(piece)
            else:
                spool.write(piece)
        return b"".join(pieces)

    def _headers(self, url: str, extra: Mapping[str, str]) -> httpx.Headers:
        headers = self._private if origin_of(url) in self._private_to else self._common
        if extra:
            # What a crawl asks for counts less than what its owner says.
            headers = httpx.Headers({**extra, **headers})
        return headers


def _declared(told: Mapping[str, str]) -> int | None:
    """How many bytes are sent, as the headers say."""
    declared = told.get("content-length", "")
    return int(declared) if declared.isdecimal() else None


def _too_large(status: int, told: Mapping[str, str], limit: int) -> Response:
    declared = _declared(told)
    # What is sent may be within the limit, and only what comes out of it over it.
    size = declared if declared is not None and declared > limit else None
    return Response(status, told, refused=told_size(limit, size), too_large=True)


def _told_headers(answer: httpx.Response) -> dict[str, str]:
    told: dict[str, str] = {}
    for raw_name, raw_value in answer.headers.raw:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        between = "\n" if name == "x-robots-tag" else ", "
        told[name] = f"{told[name]}{between}{value}" if name in told else value
    return told


def _told(error: httpx.HTTPError) -> str:
    if isinstance(error, httpx.ConnectTimeout):
        return "no connection in time"
    if isinstance(error, httpx.TimeoutException):
        return "no answer in time"
    if isinstance(error, httpx.ProxyError):
        return f"the proxy refused ({error})"
    if isinstance(error, httpx.ProtocolError):
        # Its text may quote a header.
        return f"no valid HTTP ({type(error).__name__})"
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return "its certificate is signed by nobody known (name that authority in ca_file)"
    return str(error) or type(error).__name__
