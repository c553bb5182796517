"""Refuses addresses that a crawler must not reach, at the moment of connecting.

Behind a proxy it is the proxy that connects. Its own address was chosen by whoever configured it and may be
private. The name asked for is still resolved and judged here first; but the proxy resolves it again, and
may find another address, so a proxy should have rules of its own. A name that only the proxy can resolve
is not asked for, unless private addresses are allowed.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from ssl import SSLContext
from time import monotonic
from typing import Any, TypeVar

import httpcore
import httpx

from tidemark.adapters.sources.network import (
    httpx_errors,
    httpx_response,
    judged_addresses,
    pool_request,
    pool_url,
)

_JUDGED_FOR_SECONDS = 60.0
_MAX_JUDGED = 1_000


async def permitted_addresses(host: str, port: int, *, allow_private: bool) -> list[str]:
    """The addresses of a name that may be connected to.

    Raises ``AddressRefusedError`` when none of them may, ``httpcore.ConnectError`` when there is none.
    """
    judged = partial(judged_addresses, host, port, allow_private=allow_private)
    try:
        return await asyncio.get_running_loop().run_in_executor(None, judged)
    except OSError as error:
        raise httpcore.ConnectError(f"the name {host} cannot be resolved") from error


class GuardedBackend(httpcore.AnyIOBackend):
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
        """Connect to the very address that was judged: a name may mean another one by then."""
        failure: Exception = httpcore.ConnectError(f"the name {host} has no address")
        try:
            async with asyncio.timeout(timeout):
                addresses = await permitted_addresses(host, port, allow_private=self._allow_private)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(f"the name {host} cannot be resolved in time") from error
        for address in addresses:
            try:
                return await super().connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure


class GuardedTransport(httpx.AsyncBaseTransport):
    """Sends requests through a pool that connects through the guard, or through a proxy."""

    def __init__(
        self,
        context: SSLContext,
        limits: httpx.Limits,
        *,
        allow_private: bool,
        proxy: httpx.Proxy | None = None,
    ) -> None:
        self._judges = proxy is not None and not allow_private
        self._judged: dict[tuple[str, int], float] = {}
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=context,
            proxy=None if proxy is None else _proxy(proxy, context),
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            http1=True,
            http2=True,
            network_backend=GuardedBackend(allow_private=allow_private or proxy is not None),
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self._judges:
            await self._judge(request.url)
        with httpx_errors(request):
            answer = await self._pool.handle_async_request(pool_request(request))
        return httpx_response(answer, request)

    async def aclose(self) -> None:
        await self._pool.aclose()

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


def _proxy(proxy: httpx.Proxy, context: SSLContext) -> httpcore.Proxy:
    return httpcore.Proxy(
        url=pool_url(proxy.url),
        auth=proxy.raw_auth,
        ssl_context=context if proxy.url.scheme == "https" else None,
    )


# An event loop in one background thread: asynchronous fetching for a synchronous crawl.

Result = TypeVar("Result")
THREAD_NAME = "crawl"
_NAME_LOOKUPS = 4


class LoopThread:
    """Runs coroutines until its context ends; then none of them, and no thread, is left.

    at_end: called in the loop after everything else.
    """

    def __init__(self, at_end: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._at_end = at_end
        self._loop = asyncio.new_event_loop()
        self._loop.set_default_executor(ThreadPoolExecutor(_NAME_LOOKUPS, f"{THREAD_NAME}-names"))
        # A daemon, so that an interpreter that ends in the middle of a crawl does end.
        self._thread = threading.Thread(target=self._main, name=THREAD_NAME, daemon=True)

    def __enter__(self) -> "LoopThread":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.submit(self._stop())
        # A forgotten crawl may be collected, and so be closed, in any thread, in this one too.
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def submit(self, work: Coroutine[Any, Any, Result]) -> "Future[Result]":
        """Start a coroutine; its result or exception is in the future."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Wait for a coroutine's result."""
        return self.submit(work).result()

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Call it in the loop; nothing happens once that is closed."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(callback)

    def _main(self) -> None:
        with closing(self._loop) as loop:
            loop.run_forever()
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.run_until_complete(loop.shutdown_default_executor())

    async def _stop(self) -> None:
        try:
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await self._at_end()
        finally:
            self._loop.stop()
