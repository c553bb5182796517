"""Which addresses a source may connect to, whichever way it connects.

A name is resolved, its addresses are judged, and the connection is made to the very address that was judged:
a name that resolves differently a moment later gains nothing.

The ranges are named here, because Python's own answer (``is_global``) differs between its patch releases.
Of IPv6 only global unicast, 2000::/3, is public at all; v6 ranges outside it are refused without a line.
"""

import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TypeVar

import httpcore
import httpx

from tidemark.domain.errors import PermanentError, TransientError

_REFUSED_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network: RFC 791, RFC 1122
        "10.0.0.0/8",  # private: RFC 1918
        "100.64.0.0/10",  # shared by a carrier's customers: RFC 6598
        "127.0.0.0/8",  # loopback: RFC 1122
        "168.63.129.16/32",  # Azure's platform (its documentation): public by its number alone
        "169.254.0.0/16",  # link-local, with the clouds' metadata: RFC 3927
        "172.16.0.0/12",  # private: RFC 1918
        "192.0.0.0/24",  # protocol assignments, some clouds' metadata: RFC 6890
        "192.0.2.0/24",  # documentation: RFC 5737
        "192.88.99.0/24",  # 6to4 relays, withdrawn: RFC 7526
        "192.168.0.0/16",  # private: RFC 1918
        "198.18.0.0/15",  # benchmarks: RFC 2544
        "198.51.100.0/24",  # documentation: RFC 5737
        "203.0.113.0/24",  # documentation: RFC 5737
        "224.0.0.0/4",  # multicast: RFC 5771
        "240.0.0.0/4",  # reserved, and broadcast: RFC 1112, RFC 919
    )
)
_PUBLIC_V6 = IPv6Network("2000::/3")  # global unicast: RFC 4291, RFC 3513
_REFUSED_V6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments (benchmarks, ORCHID): RFC 2928, RFC 5180, RFC 7343
        "2001:db8::/32",  # documentation: RFC 3849
        "3fff::/20",  # documentation: RFC 9637
        # Outside 2000::/3, named so that the table tells what is meant:
        "64:ff9b:1::/48",  # a network's own NAT64: RFC 8215
        "100::/64",  # discard: RFC 6666
        "5f00::/16",  # segment routing: RFC 9602
        "fc00::/7",  # unique local: RFC 4193
        "fe80::/10",  # link-local: RFC 4291
        "fec0::/10",  # site-local, withdrawn: RFC 3879
        "ff00::/8",  # multicast: RFC 4291
    )
)
_TEREDO = IPv6Network("2001::/32")  # RFC 4380: the v4 address is at the end, inverted
_6TO4 = IPv6Network("2002::/16")  # RFC 3056: it follows the prefix
_V4_AT_THE_END = tuple(
    IPv6Network(text)
    for text in (
        "::/96",  # v4-compatible, withdrawn, with :: and ::1 as of 0.0.0.0/8: RFC 4291
        "::ffff:0:0/96",  # v4-mapped: RFC 4291
        "::ffff:0:0:0/96",  # v4-translated (SIIT): RFC 2765
        "64:ff9b::/96",  # NAT64: RFC 6052
    )
)


class AddressRefusedError(PermanentError):
    """A name resolves to an address that only an explicit permission opens."""


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Is it an address of the public internet? One with a v4 address in it is what that one is."""
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _REFUSED_V4)
    inner = _embedded(address)
    if inner is not None:
        return is_public(inner)
    return address in _PUBLIC_V6 and not any(address in network for network in _REFUSED_V6)


def _embedded(address: IPv6Address) -> IPv4Address | None:
    number = int(address)
    if any(address in network for network in _V4_AT_THE_END):
        return IPv4Address(number & 0xFFFFFFFF)
    if address in _6TO4:
        return IPv4Address(number >> 80 & 0xFFFFFFFF)
    if address in _TEREDO:
        return IPv4Address(~number & 0xFFFFFFFF)
    return None


def judged_addresses(host: str, port: int, *, allow_private: bool) -> list[str]:
    """The addresses of a name that may be connected to.

    Raises ``AddressRefusedError`` when there are some and none of them may, ``OSError`` when there is none.
    """
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise OSError(f"the name {host} cannot be resolved") from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in answers))
    if allow_private:
        return addresses
    public = [a for a in addresses if is_public(ip_address(a.partition("%")[0]))]
    if addresses and not public:
        raise AddressRefusedError(
            f"{host} is at {addresses[0]}, which is not on the public internet.",
            "Set allow_private for this source if that is meant.",
        )
    return public


def guarded_socket(host: str, port: int, timeout: float, *, allow_private: bool) -> socket.socket:
    """A socket that is connected to the very address that was judged; ``timeout`` in seconds.

    Raises ``AddressRefusedError`` when none may be connected to, ``OSError`` when none answers.
    """
    failure = OSError(f"the name {host} has no address")
    for address in judged_addresses(host, port, allow_private=allow_private):
        try:
            return socket.create_connection((address, port), timeout)
        except OSError as error:
            failure = error
    raise failure


class _GuardedBackend(httpcore.SyncBackend):
    """Connects to the very address that was judged."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        options = None if socket_options is None else tuple(socket_options)
        failure: Exception = httpcore.ConnectError(f"the name {host} has no address")
        try:
            addresses = judged_addresses(host, port, allow_private=self._allow_private)
        except OSError as error:
            raise httpcore.ConnectError(f"the name {host} cannot be resolved") from error
        for address in addresses:
            try:
                return super().connect_tcp(address, port, timeout, local_address, options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure


def declared_size(headers: Mapping[str, str]) -> int | None:
    """How many bytes an answer says that it has."""
    declared = headers.get("content-length", "")
    return int(declared) if declared.isdecimal() else None


def http_date(value: str | None) -> datetime | None:
    """The time that an HTTP date names (UTC), None for none and for what is no date."""
    if not value:
        return None
    try:
        at = parsedate_to_datetime(value.strip())
    except ValueError:
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


# httpx over a pool of httpcore's: httpx's own transports cannot be given a network backend.


class GuardedTransport(httpx.BaseTransport):
    """Sends requests through a pool that connects through the guard."""

    def __init__(self, *, allow_private: bool) -> None:
        self._pool = httpcore.ConnectionPool(
            ssl_context=ssl.create_default_context(),
            max_connections=4,
            keepalive_expiry=30,
            network_backend=_GuardedBackend(allow_private=allow_private),
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with httpx_errors(request):
            answer = self._pool.handle_request(pool_request(request))
        return httpx_response(answer, request)

    def close(self) -> None:
        self._pool.close()


def pool_request(request: httpx.Request) -> httpcore.Request:
    """A request of httpx's as httpcore takes it."""
    return httpcore.Request(
        method=request.method,
        url=pool_url(request.url),
        headers=request.headers.raw,
        content=request.stream,
        extensions=request.extensions,
    )


def pool_url(url: httpx.URL) -> httpcore.URL:
    return httpcore.URL(
        scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
    )


def httpx_response(answer: httpcore.Response, request: httpx.Request) -> httpx.Response:
    """An answer of httpcore's as httpx gives it; its body is read as it comes."""
    return httpx.Response(
        answer.status,
        headers=answer.headers,
        stream=_Body(answer, request),
        extensions=answer.extensions,
    )


class _Body(httpx.SyncByteStream, httpx.AsyncByteStream):
    def __init__(self, answer: httpcore.Response, request: httpx.Request) -> None:
        self._answer = answer
        self._request = request

    def __iter__(self) -> Iterator[bytes]:
        with httpx_errors(self._request):
            yield from self._answer.iter_stream()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with httpx_errors(self._request):
            async for piece in self._answer.aiter_stream():
                yield piece

    def close(self) -> None:
        self._answer.close()

    async def aclose(self) -> None:
        await self._answer.aclose()


@contextmanager
def httpx_errors(request: httpx.Request) -> Iterator[None]:
    """httpcore's errors as httpx's, which have the same names."""
    try:
        yield
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError,
            httpcore.ProxyError, httpcore.UnsupportedProtocol) as error:  # fmt: skip
        kind: type[httpx.RequestError] = getattr(httpx, type(error).__name__, httpx.NetworkError)
        raise kind(str(error), request=request) from error


# A request to somebody else's server, made again when it fails as networks do.

TRIES = 3
FIRST_WINDOW = 0.5
"""Seconds. A wait is taken at random from a window that doubles with each try."""
NO_MORE_AFTER = 20.0
"""Seconds. What failed for so long is away, and is not tried again: a timeout costs once."""

T = TypeVar("T")


def retry(request: Callable[[], T]) -> T:
    """What the request gives; one that raises ``TransientError`` is made ``TRIES`` times in all.

    Raises the last error. The request must be safe to repeat.
    """
    from tenacity import (
        Retrying,
        retry_if_exception_type,
        stop_after_attempt,
        stop_after_delay,
        wait_random_exponential,
    )

    tries = Retrying(
        stop=stop_after_attempt(TRIES) | stop_after_delay(NO_MORE_AFTER),
        wait=wait_random_exponential(multiplier=FIRST_WINDOW),
        retry=retry_if_exception_type(TransientError),
        reraise=True,
    )
    return tries(request)
