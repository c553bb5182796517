"""Which addresses a source may connect to, whichever way it connects.

A name is resolved, its addresses are judged, and the connection is made to the very address that was judged:
a name that resolves differently a moment later gains nothing.
"""

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import Any

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


def permitted(host: str, found: Iterable[Any], *, allow_private: bool) -> list[str]:
    """Of the answers of ``getaddrinfo`` for a host, the addresses that may be connected to.

    Raises ``AddressRefusedError`` when there are some and none of them may.
    """
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    if allow_private:
        return addresses
    public = [a for a in addresses if is_public(ip_address(a.partition("%")[0]))]
    if addresses and not public:
        raise AddressRefusedError(
            f"{host} is at {addresses[0]}, which is not on the public internet.",
            "Set allow_private for this source if that is meant.",
        )
    return public
