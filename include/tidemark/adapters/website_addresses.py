"""Refuses addresses that a crawler must not reach, at the moment of connecting.

Behind a proxy it is the proxy that connects. Its own address was chosen by whoever configured it and may be
private. The name asked for is still resolved and judged here first; but the proxy resolves it again, and
may find another address, so a proxy should have rules of its own. A name that only the proxy can resolve
is not asked for, unless private addresses are allowed.
"""

import asyncio
import socket
from collections.abc import Iterable
from ssl import SSLContext
from time import monotonic

import httpcore
import httpx

from tidemark.adapters.address_rules import permitted
from tidemark.adapters.website_streams import connect

_JUDGED_FOR_SECONDS = 60.0
_MAX_JUDGED = 1_000


async def permitted_addresses(host: str, port: int, *, allow_private: bool) -> list[str]:
    """The addresses of a name that may be connected to.

    Raises ``AddressRefusedError`` when none of them may, ``httpcore.ConnectError`` when there is none.
    """
    try:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpcore.ConnectError(f"the name {host} cannot be resolved") from error
    return permitted(host, found, allow_private=allow_private)


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Connects to public addresses only, or to any with ``allow_private``."""

    def __init__(self, *, allow_private: bool) -> None:
        self._allow_private = allow_private

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the base class has it so
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        options = tuple(socket_options or ())
        failure: Exception = httpcore.ConnectError(f"the name {host} has no address")
        try:
            async with asyncio.timeout(timeout):
                addresses = await permitted_addresses(host, port, allow_private=self._allow_private)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"the name {host} cannot be resolved in time") from error
        for address in addresses:
            try:
                return await connect(address, port, timeout, local_address, options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class GuardedTransport(httpx.AsyncHTTPTransport):
    """httpx's transport over a pool that connects through the guard, or through a proxy.

    httpx has no public way to hand it a network backend, so the pool that it would make is replaced.
    """

    def __init__(
        self,
        context: SSLContext,
        limits: httpx.Limits,
        *,
        allow_private: bool,
        proxy: httpx.Proxy | None = None,
    ) -> None:
        super().__init__(verify=context, trust_env=False, http2=True, limits=limits)
        self._judges = proxy is not None and not allow_private
        self._judged: dict[tuple[str, int], float] = {}
        self._pool = (
            httpcore.AsyncConnectionPool(
                ssl_context=context,
                max_connections=limits.max_connections,
                max_keepalive_connections=limits.max_keepalive_connections,
                keepalive_expiry=limits.keepalive_expiry,
                http1=True,
                http2=True,
                network_backend=GuardedBackend(allow_private=allow_private),
            )
            if proxy is None
            else _proxy_pool(context, limits, proxy)
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self._judges:
            await self._judge(request.url)
        return await super().handle_async_request(request)

    async def _judge(self, url: httpx.URL) -> None:
        target = (url.host, url.port or (443 if url.scheme == "https" else 80))
        if self._judged.get(target, 0.0) > monotonic():
            return
        try:
            await permitted_addresses(*target, allow_private=False)
        except httpcore.ConnectError as error:
            raise httpx.ConnectError(str(error)) from error
        if len(self._judged) >= _MAX_JUDGED:
            self._judged.clear()
        self._judged[target] = monotonic() + _JUDGED_FOR_SECONDS


def _proxy_pool(
    context: SSLContext, limits: httpx.Limits, proxy: httpx.Proxy
) -> httpcore.AsyncHTTPProxy:
    return httpcore.AsyncHTTPProxy(
        proxy_url=httpcore.URL(
            scheme=proxy.url.raw_scheme,
            host=proxy.url.raw_host,
            port=proxy.url.port,
            target=proxy.url.raw_path,
        ),
        proxy_auth=proxy.raw_auth,
        ssl_context=context,
        proxy_ssl_context=context if proxy.url.scheme == "https" else None,
        max_connections=limits.max_connections,
        max_keepalive_connections=limits.max_keepalive_connections,
        keepalive_expiry=limits.keepalive_expiry,
        http1=True,
        http2=True,
        network_backend=GuardedBackend(allow_private=True),
    )
