import asyncio
import socket
from ipaddress import ip_address

import httpcore
import pytest

from tidemark.adapters.sources.network import AddressRefusedError, is_public
from tidemark.adapters.sources.website.transport import GuardedBackend


@pytest.mark.parametrize(
    "address",
    [
        "93.184.216.34",
        "2606:2800:220:1::1",
        "::ffff:93.184.216.34",
        "64:ff9b::5db8:d822",
        "::ffff:0:5db8:d822",
        "2002:5db8:d822::1",
        "168.63.129.17",
    ],
)
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1",
        "169.254.169.254", "100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1",
        "fd00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1",
        "2002:7f00:1::", "2002:a00:1::", "64:ff9b:1::7f00:1", "64:ff9b:1::5db8:d822",
        "::ffff:0:7f00:1", "::127.0.0.1", "fec0::1", "192.0.0.1", "192.0.0.9", "192.0.0.192",
        "192.88.99.1", "3fff::1", "5f00::1", "168.63.129.16", "2001:db8::1", "2001:20::1",
        "100::1", "4000::1", "2001:0:5db8:d822::80ff:fffe", "198.18.0.1", "203.0.113.9",
    ],
)  # fmt: skip
def test_addresses_of_a_machine_or_a_network_are_not(address: str) -> None:
    assert not is_public(ip_address(address))


def resolving_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    def getaddrinfo(host: str, port: int, **_: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, port)) for a in addresses]

    monkeypatch.setattr("socket.getaddrinfo", getaddrinfo)


def connected(
    monkeypatch: pytest.MonkeyPatch, *, failing: frozenset[str] = frozenset()
) -> list[str]:
    tried: list[str] = []

    async def connect(_backend: object, host: str, *_: object) -> httpcore.AsyncNetworkStream:
        tried.append(host)
        if host in failing:
            raise httpcore.ConnectError("refused")
        return httpcore.AsyncNetworkStream()

    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", connect)
    return tried


def reach(host: str, port: int, *, allow_private: bool) -> None:
    asyncio.run(GuardedBackend(allow_private=allow_private).connect_tcp(host, port))


def test_it_refuses_a_name_that_leads_to_a_private_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolving_to(monkeypatch, "169.254.169.254")
    tried = connected(monkeypatch)
    with pytest.raises(AddressRefusedError, match="allow_private"):
        reach("innocent.example", 80, allow_private=False)
    assert tried == []


def test_it_connects_to_the_very_address_it_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving_to(monkeypatch, "10.0.0.1", "93.184.216.34")
    tried = connected(monkeypatch)
    reach("both.example", 80, allow_private=False)
    assert tried == ["93.184.216.34"]


def test_it_tries_the_next_address_when_one_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolving_to(monkeypatch, "93.184.216.34", "93.184.216.35")
    tried = connected(monkeypatch, failing=frozenset({"93.184.216.34"}))
    reach("two.example", 80, allow_private=False)
    assert tried == ["93.184.216.34", "93.184.216.35"]


def test_private_addresses_are_open_with_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    resolving_to(monkeypatch, "10.0.0.1")
    tried = connected(monkeypatch)
    reach("intranet.example", 80, allow_private=True)
    assert tried == ["10.0.0.1"]


@pytest.mark.parametrize("host", ["2130706433", "0x7f000001", "127.1", "localhost"])
def test_no_spelling_of_loopback_gets_through(host: str) -> None:
    with pytest.raises(AddressRefusedError):
        reach(host, 9, allow_private=False)


def test_a_name_that_does_not_resolve_is_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    def getaddrinfo(*_: object, **__: object) -> list[object]:
        raise socket.gaierror("unknown")

    monkeypatch.setattr("socket.getaddrinfo", getaddrinfo)
    with pytest.raises(httpcore.ConnectError, match="nowhere"):
        reach("nowhere.example", 80, allow_private=False)
