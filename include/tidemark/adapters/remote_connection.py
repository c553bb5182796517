"""Connects for stores on other machines: to public addresses only, unless a source allows others."""

import socket
import ssl
from collections.abc import Iterable

import httpcore
import httpx

from tidemark.adapters.address_rules import permitted


def judged_addresses(host: str, port: int, *, allow_private: bool) -> list[str]:
    """The addresses of a name that may be connected to.

    Raises ``AddressRefusedError`` when none of them may, ``OSError`` when there is none.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise OSError(f"the name {host} cannot be resolved") from error
    return permitted(host, found, allow_private=allow_private)


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


class GuardedTransport(httpx.HTTPTransport):
    """httpx's transport over a pool that connects through the guard.

    httpx has no public way to hand it a network backend, so the pool that it would make is replaced.
    """

    def __init__(self, *, allow_private: bool) -> None:
        context = ssl.create_default_context()
        super().__init__(verify=context, trust_env=False)
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            max_connections=4,
            keepalive_expiry=30,
            network_backend=_GuardedBackend(allow_private=allow_private),
        )
