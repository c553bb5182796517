"""Refuses addresses that a crawler must not reach, at the moment of connecting.

Behind a proxy it is the proxy that connects. Its own address was chosen by whoever configured it and may be
private. The name asked for is still resolved and judged here first; but the proxy resolves it again, and
may find another address, so a proxy should have rules of its own. A name that only the proxy can resolve
is not asked for, unless private addresses are allowed.
"""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from ssl import SSLContext
from time import monotonic
from types import TracebackType
from typing import Any, TypeVar

import httpcore
import httpx

from tidemark.adapters.sources.network import permitted

# Network streams for httpcore right on asyncio's transports.
#
# httpcore's own go through a further library, and ask the system about every idle connection at every
# request; that is half the cost of a short answer.

_MAX_BUFFERED_BYTES = 262_144
_WOKEN, _TOO_LATE = True, False


class Connection(asyncio.Protocol):
    """One connection: what came in, and who waits for it."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.arrived = bytearray()
        self.ended = False
        self.failure: Exception | None = None
        self._is_paused = False
        self._is_full = False
        self._waiting: set[asyncio.Future[bool]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.arrived += data
        if len(self.arrived) > _MAX_BUFFERED_BYTES and not self._is_paused and self.transport:
            self._is_paused = True
            self.transport.pause_reading()
        self._wake()

    def eof_received(self) -> bool:
        self.ended = True
        self._wake()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended = True
        self.failure = exc
        self._is_full = False
        self._wake()

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False
        self._wake()

    def taken(self, size: int) -> bytes:
        """Take what arrived, to so many bytes."""
        piece = bytes(self.arrived[:size])
        del self.arrived[:size]
        if self._is_paused and not self.ended and self.transport:
            self._is_paused = False
            self.transport.resume_reading()
        return piece

    async def until_readable(self, seconds: float | None) -> bool:
        """Wait for bytes or the end; False when the time is over."""
        while not self.arrived and not self.ended:
            if not await self._woken(seconds):
                return False
        return True

    async def until_writable(self, seconds: float | None) -> bool:
        """Wait for room; False when the time is over."""
        while self._is_full and not self.ended:
            if not await self._woken(seconds):
                return False
        return True

    async def _woken(self, seconds: float | None) -> bool:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[bool] = loop.create_future()
        self._waiting.add(waiter)
        timer = None if seconds is None else loop.call_later(seconds, _answer, waiter, _TOO_LATE)
        try:
            return await waiter
        finally:
            self._waiting.discard(waiter)
            if timer is not None:
                timer.cancel()

    def _wake(self) -> None:
        for waiter in self._waiting:
            _answer(waiter, _WOKEN)


def _answer(waiter: "asyncio.Future[bool]", answer: bool) -> None:
    if not waiter.done():
        waiter.set_result(answer)


class Stream(httpcore.AsyncNetworkStream):
    """A ``Connection`` as httpcore wants it."""

    def __init__(self, connection: Connection, transport: asyncio.Transport) -> None:
        self._connection = connection
        self._transport = transport

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        connection = self._connection
        if not await connection.until_readable(timeout):
            raise httpcore.ReadTimeout
        if not connection.arrived and connection.failure is not None:
            raise httpcore.ReadError(str(connection.failure)) from connection.failure
        return connection.taken(max_bytes)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        if not buffer:
            return
        if self._transport.is_closing():
            raise httpcore.WriteError("the connection is closed")
        self._transport.write(buffer)
        if not await self._connection.until_writable(timeout):
            raise httpcore.WriteTimeout

    async def aclose(self) -> None:
        # All that matters was sent: nothing is lost, and nobody waits for the other side's farewell.
        self._transport.abort()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore.AsyncNetworkStream:
        loop = asyncio.get_running_loop()
        secured = Connection()
        try:
            async with asyncio.timeout(timeout):
                transport = await loop.start_tls(
                    self._transport, secured, ssl_context, server_hostname=server_hostname
                )
        except TimeoutError as error:
            self._transport.abort()
            raise httpcore.ConnectTimeout("no secure connection in time") from error
        except OSError as error:
            self._transport.abort()
            raise httpcore.ConnectError(str(error)) from error
        if transport is None:
            raise httpcore.ConnectError("the connection was closed")
        secured.connection_made(transport)
        return Stream(secured, transport)

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":
            # An idle connection on which something arrives was given up by the other side.
            return bool(self._connection.arrived) or self._connection.ended
        names = {"client_addr": "sockname", "server_addr": "peername"}
        return self._transport.get_extra_info(names.get(info, info))


async def connect(
    address: str,
    port: int,
    seconds: float | None,
    local_address: str | None = None,
    options: tuple[httpcore.SOCKET_OPTION, ...] = (),
) -> Stream:
    """Connect to an address, not a name. Raises ``httpcore.ConnectError`` and ``ConnectTimeout``."""
    loop = asyncio.get_running_loop()
    local = None if local_address is None else (local_address, 0)
    try:
        async with asyncio.timeout(seconds):
            transport, connection = await loop.create_connection(
                Connection, address, port, local_addr=local
            )
    except TimeoutError as error:
        raise httpcore.ConnectTimeout("no connection in time") from error
    except OSError as error:
        raise httpcore.ConnectError(str(error)) from error
    for option in options:
        transport.get_extra_info("socket").setsockopt(*option)
    return Stream(connection, transport)


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


# An event loop in one background thread: asynchronous fetching for a synchronous crawl.

Result = TypeVar("Result")
THREAD_NAME = "crawl"
_NAME_LOOKUPS = 4


class LoopThread:
    """Runs coroutines until its context ends; then none of them, and no thread, is left.

    resource: entered in the loop before anything else and left after everything else.
    """

    def __init__(self, resource: AbstractAsyncContextManager[object]) -> None:
        self._resource = resource
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        # A daemon, so that an interpreter that ends in the middle of a crawl does end.
        self._thread = threading.Thread(target=self._main, name=THREAD_NAME, daemon=True)

    def __enter__(self) -> "LoopThread":
        self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._loop is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop.set)
        # A forgotten crawl may be collected, and so be closed, in any thread, in this one too.
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def submit(self, work: Coroutine[Any, Any, Result]) -> "Future[Result]":
        """Start a coroutine; its result or exception is in the future."""
        if self._loop is None:
            work.close()
            raise RuntimeError("the loop does not run")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call it in the loop; nothing happens once that is closed."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(callback)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Wait for a coroutine's result."""
        return self.submit(work).result()

    def _main(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001 - raised again where the crawl is consumed
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(_NAME_LOOKUPS, f"{THREAD_NAME}-names"))
        async with self._resource:
            self._ready.set()
            await self._stop.wait()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
