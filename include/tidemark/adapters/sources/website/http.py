"""One request at a time: bounded, retried, guarded. The only sender of requests."""

import asyncio
import random
import zlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from itertools import chain
from ssl import SSLContext, SSLError
from time import monotonic
from typing import Protocol
from urllib.parse import urlsplit

import brotli
import httpx
import zstandard

from tidemark.adapters.sources.network import declared_size, http_date
from tidemark.adapters.sources.selection import size_problem
from tidemark.adapters.sources.website.options import WebsiteOptions
from tidemark.adapters.sources.website.transport import GuardedTransport
from tidemark.domain.errors import ConfigurationError, PermanentError, TransientError
from tidemark.domain.urls import canonical_url, origin_of

# Whom a crawl trusts: the authorities that sign certificates, and the origins that may hear secrets.


@cache
def tls_context(ca_file: str) -> SSLContext:
    """One for the process: reading the authorities takes longer than a crawl of a few pages.

    Raises ``ConfigurationError`` for authorities that cannot be read.
    """
    context = httpx.create_ssl_context(trust_env=False)
    # The system's authorities as well as the packaged ones: intranets have their own.
    context.load_default_certs()
    if ca_file:
        try:
            context.load_verify_locations(cafile=ca_file)
        except (OSError, SSLError) as error:
            raise ConfigurationError(
                f"The certificate authorities in {ca_file} cannot be read ({error}).",
                "Let ca_file name a PEM file that this process may read.",
            ) from error
    return context


def own_origins(options: WebsiteOptions) -> frozenset[str]:
    """The origins that secrets may go to: the start pages', and the same host over TLS."""
    origins = {origin_of(uri) for start in options.starts if (uri := canonical_url(start))}
    secured = {
        origin.replace("http:", "https:", 1)
        for origin in origins
        if origin.startswith("http:") and urlsplit(origin).port is None
    }
    return frozenset(origins | secured)


# How much may be fetched ahead of whoever consumes a crawl.

MAX_HELD_BYTES = 32_000_000
"""Of bodies fetched and not yet handed on, beside those of the requests under way."""


class Budget:
    """Counts bodies in and out. Fetches are numbered in the order of asking, from 0.

    The oldest fetch that is not yet handed on always goes ahead: all others may be waiting for it. What
    is fetched is counted in the event loop, what is handed on where the crawl is consumed.
    """

    def __init__(
        self, call_soon: Callable[[Callable[[], None]], object], limit: int = MAX_HELD_BYTES
    ) -> None:
        self._call_soon = call_soon
        self._limit = limit
        self._fetched = 0
        self._handed_on = 0
        self._fetches = 0
        self._waiting = 0
        self._freed = asyncio.Event()

    def fetched(self, size: int) -> None:
        """In the loop: so many bytes are held from now on."""
        self._fetched += size

    def handed_on(self, size: int) -> None:
        """In the consumer: the oldest fetch is done, and so many bytes with it."""
        self._handed_on += size
        self._fetches += 1
        # Read after the counts were written, as ``wait`` does the other way round: no wake-up gets lost.
        if self._waiting:
            self._call_soon(self._freed.set)

    def allows(self, number: int) -> bool:
        """May this fetch send its request now?"""
        return self._fetched - self._handed_on < self._limit or number <= self._fetches

    async def wait(self, number: int) -> None:
        """In the loop: wait until the fetch may go ahead."""
        self._waiting += 1
        try:
            while not self.allows(number):
                self._freed.clear()
                await self._freed.wait()
        finally:
            self._waiting -= 1


# How often and how many at once: per host, shared by all that fetch in one event loop.

MAX_CRAWL_DELAY = 60.0
"""Seconds. A longer Crawl-delay would make a crawl last for weeks; it is obeyed up to here."""
MAX_RETRY_AFTER = 120.0
"""Seconds. A server that asks for more is left until the next run."""
_MAX_BACKOFF = 30.0


class HostGate:
    """Lets requests to one host through: so many at once, so far apart, none while it wants quiet."""

    def __init__(self, concurrency: int, delay: float) -> None:
        self._slots = asyncio.Semaphore(concurrency)
        self._delay = delay
        self._next = 0.0

    def slow_down(self, delay: float) -> None:
        """Keep at least ``delay`` seconds between two starts (Crawl-delay)."""
        self._delay = max(self._delay, min(delay, MAX_CRAWL_DELAY))
        self._next = max(self._next, monotonic() + self._delay)

    def pause(self, seconds: float) -> None:
        """Let no request start for so long (Retry-After)."""
        self._next = max(self._next, monotonic() + seconds)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn and hold it."""
        async with self._slots:
            # Whoever waits is not woken: the time may be put off meanwhile, never brought forward.
            while (wait := self._claim()) > 0:  # noqa: ASYNC110
                await asyncio.sleep(wait)
            yield

    def _claim(self) -> float:
        """Take the next start if it is now; else how many seconds to wait before asking again."""
        now = monotonic()
        if now < self._next:
            return self._next - now
        self._next = now + self._delay
        return 0.0


def retry_after(value: str | None, now: datetime | None = None) -> float | None:
    """Seconds that a Retry-After header asks for, None without a usable one."""
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    at = http_date(text)
    return None if at is None else max(0.0, (at - (now or datetime.now(UTC))).total_seconds())


def backoff(attempt: int, base: float) -> float:
    """Seconds before retry ``attempt`` (from 0): doubled each time, with jitter, bounded."""
    spread = 0.75 + random.random() / 2  # noqa: S311 - spreads load, guards nothing
    return min(_MAX_BACKOFF, base * 2.0**attempt) * spread


# Undoes content encodings piece by piece, without ever making more bytes than allowed.

ACCEPT_ENCODING = "gzip, deflate, br, zstd"
_MAX_WINDOW_BYTES = 2**27
_PIECE_BYTES = 65_536
_ZSTD_STEP_BYTES = 256

Pieces = Iterable[bytes]


class TooLargeError(Exception):
    """More bytes would come out than allowed."""


class BrokenEncodingError(Exception):
    """The bytes are not what their encoding says, or end too early."""


def decode_body(raw: bytes, encodings: str, limit: int) -> bytes:
    """Undo a Content-Encoding header's encodings, last one first, to at most ``limit`` bytes.

    Raises ``TooLargeError`` and ``BrokenEncodingError``.
    """
    if not encodings and len(raw) <= limit:
        return raw
    return b"".join(decoded([raw], encodings, limit))


def decoded(pieces: Pieces, encodings: str, limit: int) -> Iterator[bytes]:
    """Stream what ``decode_body`` gives; of the memory it takes the limit is no part.

    Raises as it does, at the piece that is too many or broken.
    """
    for name in reversed([part.strip().lower() for part in encodings.split(",")]):
        if name in {"", "identity"}:
            continue
        decoder = _DECODERS.get(name)
        if decoder is None:
            raise BrokenEncodingError(f"the encoding {name!r} was not asked for")
        pieces = _bounded(_undone(decoder, name, pieces), limit)
    yield from _bounded(pieces, limit)


def gunzipped(pieces: Pieces, limit: int) -> Iterator[bytes]:
    """Undo gzip or zlib, of one or several members, to at most ``limit`` bytes.

    Raises ``TooLargeError`` and ``BrokenEncodingError``.
    """
    return _bounded(_undone(_gunzip, "gzip", pieces), limit)


def _undone(
    decoder: Callable[[Pieces], Iterator[bytes]], name: str, raw: Pieces
) -> Iterator[bytes]:
    try:
        yield from decoder(raw)
    except (zlib.error, brotli.error, zstandard.ZstdError) as error:
        raise BrokenEncodingError(f"the body is no valid {name}") from error


def _bounded(pieces: Pieces, limit: int) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > limit:
            raise TooLargeError
        yield piece


def _cut(pieces: Pieces, size: int) -> Iterator[bytes]:
    """The same bytes in short pieces: decoders copy what they have not got to yet."""
    for piece in pieces:
        for start in range(0, len(piece), size):
            yield piece[start : start + size]


def _end(*, whole: bool) -> None:
    if not whole:
        raise BrokenEncodingError("the compressed body ends too early")


def _gunzip(pieces: Pieces, wbits: int = 47) -> Iterator[bytes]:
    member: zlib._Decompress | None = None
    for piece in _cut(pieces, _PIECE_BYTES):
        data = piece
        while data:
            if member is None or member.eof:
                # Some servers pad with zeros; that is no further member.
                data = data.lstrip(b"\0") if member else data
                if not data:
                    break
                member = zlib.decompressobj(wbits)
            out = member.decompress(data, _PIECE_BYTES)
            data = member.unconsumed_tail or member.unused_data
            if out:
                yield out
    # What the last piece holds back comes out without further input.
    while member is not None and not member.eof and (rest := member.decompress(b"", _PIECE_BYTES)):
        yield rest
    _end(whole=member is None or member.eof)


def _inflate(pieces: Pieces) -> Iterator[bytes]:
    # "deflate" should be zlib; some servers send it bare. The first two bytes tell.
    first = b""
    rest = iter(pieces)
    while len(first) < 2:
        piece = next(rest, None)
        if piece is None:
            break
        first += piece
    is_zlib = len(first) >= 2 and first[0] & 15 == 8 and (first[0] * 256 + first[1]) % 31 == 0
    return _gunzip(chain([first], rest), 15 if is_zlib else -15)


def _unbrotli(pieces: Pieces) -> Iterator[bytes]:
    decoder = brotli.Decompressor()
    empty = True
    for piece in pieces:
        empty = False
        out = decoder.process(piece, output_buffer_limit=_PIECE_BYTES)
        while out:
            yield out
            if decoder.is_finished():
                break
            out = decoder.process(b"", output_buffer_limit=_PIECE_BYTES)
    _end(whole=empty or decoder.is_finished())


def _unzstd(pieces: Pieces) -> Iterator[bytes]:
    decoder = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
    frame = None
    # A block of 4 bytes may stand for 128 KiB: small steps keep the overshoot to a few MB.
    for step in _cut(pieces, _ZSTD_STEP_BYTES):
        data = step
        while data:
            if frame is None or frame.eof:
                frame = decoder.decompressobj()
            out = frame.decompress(data)
            data = frame.unused_data if frame.eof else b""
            if out:
                yield out
    _end(whole=frame is None or frame.eof)


_DECODERS: dict[str, Callable[[Pieces], Iterator[bytes]]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _inflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}

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

    async def aclose(self) -> None:
        """Close all connections."""
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
        turn: tuple[Budget, int] | None = None,
    ) -> Response:
        """Ask for one URL; redirects are answers like any other.

        ``turn`` is the fetch that this belongs to: its budget is asked at the last moment before sending.

        Raises ``TransientError`` when it stays away after the retries, ``PermanentError`` when its address
        is refused or the answer is no HTTP.
        """
        gate = self.gate(url)
        attempts = self._options.request_retries + 1
        for attempt in range(attempts):
            wait = backoff(attempt, self._options.backoff)
            try:
                response = await self._in_turn(
                    gate, turn, lambda: self._once(url, headers or {}, wants, max_bytes, spool)
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
        turn: tuple[Budget, int] | None,
        request: Callable[[], Coroutine[object, object, Response]],
    ) -> Response:
        while True:
            async with gate.turn():
                if turn is None or turn[0].allows(turn[1]):
                    return await request()
            # Not in turn: the one that all wait for may need it.
            await turn[0].wait(turn[1])

    async def _once(
        self,
        url: str,
        conditions: Mapping[str, str],
        wants: Wants,
        max_bytes: int | None,
        spool: Spool | None,
    ) -> Response:
        headers: dict[str, str] = {}
        limit = self._options.max_bytes if max_bytes is None else max_bytes
        try:
            request = self._client.build_request("GET", url, headers=self._headers(url, conditions))
            answer = await self._client.send(request, stream=True)
            try:
                headers = _joined(answer.headers)
                refused = wants(answer.status_code, headers)
                if refused is None or refused:
                    await self._drain(url, answer, headers)
                    return Response(answer.status_code, headers, refused=refused or "")
                raw = await self._read(url, answer, headers, limit, spool)
            finally:
                await answer.aclose()
        except TooLargeError:
            return _too_large(answer.status_code, headers, limit)
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.DecodingError) as error:
            raise PermanentError(f"{url} cannot be asked for ({type(error).__name__}).") from error
        except httpx.HTTPError as error:
            raise TransientError(f"{url} did not answer: {_reason(error)}") from error
        if spool is not None:
            return Response(answer.status_code, headers, b"")
        return self._decoded(url, answer.status_code, headers, raw, limit)

    async def _drain(self, url: str, answer: httpx.Response, headers: Mapping[str, str]) -> None:
        """Read a short body that nobody wants, or none at all: cheaper than another connection."""
        declared = declared_size(headers)
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
        self, url: str, status: int, headers: Mapping[str, str], raw: bytes, limit: int
    ) -> Response:
        try:
            body = decode_body(raw, headers.get("content-encoding", ""), limit)
        except TooLargeError:
            return _too_large(status, headers, limit)
        except BrokenEncodingError as error:
            raise TransientError(f"{url} sent a broken answer: {error}") from error
        return Response(status, headers, body)

    async def _read(
        self,
        url: str,
        answer: httpx.Response,
        headers: Mapping[str, str],
        limit: int,
        spool: Spool | None,
    ) -> bytes:
        """The body as sent, or b"" when it went into the spool."""
        if (declared_size(headers) or 0) > limit:
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


def _too_large(status: int, headers: Mapping[str, str], limit: int) -> Response:
    declared = declared_size(headers)
    # What is sent may be within the limit, and only what comes out of it over it.
    size = declared if declared is not None and declared > limit else None
    return Response(status, headers, refused=size_problem(limit, size), too_large=True)


def _joined(headers: httpx.Headers) -> dict[str, str]:
    joined: dict[str, str] = {}
    for raw_name, raw_value in headers.raw:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        between = "\n" if name == "x-robots-tag" else ", "
        joined[name] = f"{joined[name]}{between}{value}" if name in joined else value
    return joined


def _reason(error: httpx.HTTPError) -> str:
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
