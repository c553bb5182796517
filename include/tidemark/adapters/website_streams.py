"""Network streams for httpcore right on asyncio's transports.

httpcore's own go through a further library, and ask the system about every idle connection at every
request; that is half the cost of a short answer.
"""

import asyncio
import ssl
from typing import Any

import httpcore

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
