"""Refuses addresses that a crawler must not reach, at the moment of connecting.

A name is resolved here, its addresses are judged, and the connection is made to the very address that
was judged: a name that resolves differently a moment later gains nothing.
"""

import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from ssl import SSLContext

import httpcore
import httpx

from tidemark.domain.errors import PermanentError

_NAT64 = IPv6Network("64:ff9b::/96")


class AddressRefusedError(PermanentError):
    """A name resolves to an address that only an explicit permission opens."""


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Is it an address of the public internet, seen through every way to write a v4 address as v6?"""
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address.teredo is not None:
            inner = address.teredo[1]
        if address in _NAT64:
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
    return address.is_global and not address.is_multicast


class GuardedBackend(httpcore.SyncBackend):
    """Connects to public addresses only, or to any with ``allow_private``."""

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
        if socket_options is not None:
            socket_options = tuple(socket_options)
        failure: Exception = httpcore.ConnectError(f"the name {host} has no address")
        for address in self._addresses(host, port):
            try:
                return super().connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    def _addresses(self, host: str, port: int) -> list[str]:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"the name {host} cannot be resolved") from error
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        if self._allow_private:
            return addresses
        public = [a for a in addresses if is_public(ip_address(a.partition("%")[0]))]
        if addresses and not public:
            raise AddressRefusedError(
                f"{host} is at {addresses[0]}, which is not on the public internet.",
                "Set allow_private for this source if that is meant.",
            )
        return public


class GuardedTransport(httpx.HTTPTransport):
    """httpx's transport over a pool that connects through the guard.

    httpx has no public way to hand it a network backend, so the pool that it would make is replaced.
    """

    def __init__(self, context: SSLContext, limits: httpx.Limits, *, allow_private: bool) -> None:
        super().__init__(verify=context, trust_env=False, http2=True, limits=limits)
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            http1=True,
            http2=True,
            network_backend=GuardedBackend(allow_private=allow_private),
        )
