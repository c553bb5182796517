"""What only web, WebDAV and SSH servers do as places of files."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import paramiko
import pytest
from sites import Crawled, crawl_all
from stores import (
    LOGIN,
    PASSWORD,
    DavServer,
    IndexServer,
    SftpServer,
    dav_server,
    index_server,
    sftp_server,
)

from fakes.source import MemoryKnown
from tidemark.adapters.sources import network as network_tries
from tidemark.adapters.sources.files.options import FilesOptions
from tidemark.adapters.sources.files.source import FilesSource
from tidemark.domain.connections import Credentials
from tidemark.domain.documents import Outcome

pytestmark = pytest.mark.slow

LOGGED_IN = Credentials("share", login=LOGIN, password=PASSWORD)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    for name in ("a.md", "deep/down/ü #1.html", "deep/logo.png", ".hidden/x.md", "old/z.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("text")
        os.utime(folder / name, (1_750_000_000, 1_750_000_000))
    return folder


@pytest.fixture
def index(root: Path) -> Iterator[IndexServer]:
    with index_server(root) as server:
        yield server


@pytest.fixture
def dav(root: Path) -> Iterator[DavServer]:
    with dav_server(root) as server:
        yield server


@pytest.fixture
def sftp(root: Path) -> Iterator[SftpServer]:
    with sftp_server(root) as server:
        yield server


def crawl(path: str, known: MemoryKnown | None = None, **options: Any) -> Crawled:
    return crawl_all(
        FilesSource(FilesOptions(path=path, **{"allow_private": True, **options})), known
    )


LISTED = {"a.md": "fetched", "deep/down/%C3%BC%20%231.html": "fetched"}


def test_pages_of_links_are_followed_downwards_only(index: IndexServer) -> None:
    index.extra_links = (
        '<a href="/etc/passwd.md">x</a> <a href="http://other.example/y.md">y</a>'
        '<a href="a.md?download">a</a> <a href="//z.md">z</a> <a href="mailto:x">m</a>'
    )
    crawled = crawl(index.url, exclude=("old/",))
    assert crawled.outcomes(index.url) == LISTED
    assert crawled.end.complete
    (item, *_) = crawled.items.values()
    assert item.raw is not None
    assert item.raw.modified_at == datetime.fromtimestamp(1_750_000_000, UTC)


def test_an_unchanged_file_costs_one_conditional_request(index: IndexServer) -> None:
    known = MemoryKnown()
    crawl(f"{index.url}deep/", known)
    index.requests.clear()
    crawl(f"{index.url}deep/", known)
    assert index.requests == [
        ("GET", "/deep/", 200),
        ("GET", "/deep/down/", 200),
        ("GET", "/deep/down/ü #1.html", 304),
    ]


def test_a_server_without_validators_hands_over_everything_again(index: IndexServer) -> None:
    index.validators = False
    known = MemoryKnown()
    for _ in range(2):
        assert set(crawl(index.url, known).outcomes().values()) == {"fetched"}


def test_a_page_that_cannot_be_listed_makes_the_listing_incomplete(index: IndexServer) -> None:
    known = MemoryKnown()
    crawl(index.url, known)
    index.failing["/deep/"] = 503
    crawled = crawl(index.url, known)
    assert "a.md" in crawled.outcomes(index.url)
    assert crawled.end.problem.startswith("The folder deep cannot be listed")
    index.failing["/"] = 500
    assert crawl(index.url, known).items == {}


def test_a_redirect_is_not_followed_and_a_deleted_file_is_gone(index: IndexServer) -> None:
    index.failing |= {"/a.md": 302, "/old/z.md": 410}
    crawled = crawl(index.url)
    assert crawled.outcomes(index.url)["a.md"] == "failed"
    assert "elsewhere.example" in crawled.items[f"{index.url}a.md"].detail
    assert crawled.outcomes(index.url)["old/z.md"] == "gone"


def test_a_file_that_is_no_page_of_links_is_told(index: IndexServer) -> None:
    assert list(crawl(f"{index.url}a.md").items) == [f"{index.url}a.md"]
    assert "cannot be listed" in crawl(f"{index.url}nowhere/").end.problem


def test_a_large_file_is_not_read_to_its_end(index: IndexServer, root: Path) -> None:
    (root / "a.md").write_bytes(b"x" * 1_000_000)
    item = crawl(index.url, max_bytes=1_000).items[f"{index.url}a.md"]
    assert item.outcome is Outcome.TOO_LARGE
    assert item.detail == "has 1,000,000 bytes, more than the 1,000 that are fetched"


@pytest.mark.parametrize("kind", ["index", "dav"])
def test_a_private_address_is_refused_unless_it_is_allowed(
    kind: str, request: pytest.FixtureRequest
) -> None:
    server = request.getfixturevalue(kind)
    crawled = crawl(server.url, allow_private=False, credentials=LOGGED_IN)
    assert crawled.items == {}
    assert "allow_private" in crawled.end.problem


def test_a_login_is_sent_and_a_wrong_one_is_told_without_being_shown(index: IndexServer) -> None:
    index.authorization = "Bearer t0ken-word"
    assert crawl(index.url, credentials=Credentials("share", password="t0ken-word")).end.complete
    wrong = crawl(index.url, credentials=Credentials("share", password="wr0ng-word"))
    assert "refuses access" in wrong.end.problem
    assert "wr0ng-word" not in wrong.end.problem


def test_ten_outages_in_a_row_end_a_crawl(
    index: IndexServer, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_tries, "FIRST_WINDOW", 0.0)
    for number in range(30):
        (root / f"b{number:02}.md").write_text("x")
        index.failing[f"/b{number:02}.md"] = 503
    crawled = crawl(index.url)
    assert sum(o == "failed" for o in crawled.outcomes().values()) == 10
    assert crawled.end.problem.startswith("10 files in a row could not be read")


def test_a_dav_folder_is_listed_by_folders_and_its_times_are_told(dav: DavServer) -> None:
    crawled = crawl(dav.url, credentials=LOGGED_IN, exclude=("old/",))
    base = dav.url.replace("webdav:", "http:")
    assert crawled.outcomes(base) == LISTED
    (item, *_) = crawled.items.values()
    assert item.raw is not None
    assert item.raw.modified_at == datetime.fromtimestamp(1_750_000_000, UTC)
    below = crawl(f"{dav.url}deep", credentials=LOGGED_IN)
    assert below.outcomes(base) == {"deep/down/%C3%BC%20%231.html": "fetched"}
    alone = crawl(f"{dav.url}a.md", credentials=LOGGED_IN)
    assert alone.outcomes(base) == {"a.md": "fetched"}


def test_a_dav_file_that_changes_while_it_is_read_is_read_again(
    dav: DavServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidemark.adapters.sources.files.http_store import WebdavStore

    read, reads = WebdavStore.read, []

    def changing(store: WebdavStore, entry: Any, *arguments: Any) -> Any:
        reads.append(entry)
        if len(reads) == 1:
            (dav.root / "a.md").write_text("another text")
        return read(store, entry, *arguments)

    monkeypatch.setattr(WebdavStore, "read", changing)
    (item,) = crawl(f"{dav.url}a.md", credentials=LOGGED_IN).items.values()
    assert item.raw is not None
    assert item.raw.content == b"another text"
    assert len(reads) == 2


def test_a_server_that_does_not_speak_dav_is_told(index: IndexServer) -> None:
    crawled = crawl(index.url.replace("http:", "webdav:"))
    assert not crawled.end.complete
    assert crawled.items == {}


def test_a_dav_login_that_is_wrong_is_told_without_being_shown(dav: DavServer) -> None:
    end = crawl(dav.url, credentials=Credentials("share", login=LOGIN, password="wr0ng-word")).end
    assert "refuses access" in end.problem
    assert "wr0ng-word" not in end.problem


def test_a_folder_on_an_ssh_server_is_read_and_links_in_it_are_not_followed(
    sftp: SftpServer,
) -> None:
    (sftp.root / "link.md").symlink_to("/etc/hostname")
    crawled = crawl(sftp.url, credentials=sftp.credentials(), exclude=("old/",))
    assert crawled.outcomes(f"{sftp.url}/") == {**LISTED, "link.md": "excluded"}
    (item, *_) = crawled.items.values()
    assert item.raw is not None
    assert item.raw.modified_at == datetime.fromtimestamp(1_750_000_000, UTC)
    alone = crawl(f"{sftp.url}/a.md", credentials=sftp.credentials())
    assert list(alone.items) == [f"{sftp.url}/a.md"]


def test_an_ssh_server_that_is_not_known_is_refused_unless_that_is_said(
    sftp: SftpServer, tmp_path: Path
) -> None:
    empty = tmp_path / "known_hosts"
    empty.touch()
    stranger = replace(sftp.credentials(), extra={"known_hosts": str(empty)})
    end = crawl(sftp.url, credentials=stranger).end
    assert "host key" in end.problem
    assert "host_key" in end.problem
    trusting = replace(stranger, extra={"no_host_key_check": "true"})
    assert crawl(sftp.url, credentials=trusting).end.complete


def test_an_ssh_server_with_another_key_than_the_known_one_is_refused(sftp: SftpServer) -> None:
    other = paramiko.ECDSAKey.generate()
    line = f"{other.get_name()} {other.get_base64()}"
    end = crawl(sftp.url, credentials=sftp.credentials(host_key=line)).end
    assert "another host key" in end.problem
    assert sftp.opened == []


def test_a_wrong_password_for_an_ssh_server_is_told_without_being_shown(sftp: SftpServer) -> None:
    end = crawl(sftp.url, credentials=replace(sftp.credentials(), password="wr0ng-word")).end
    assert "refuses the login" in end.problem
    assert "wr0ng-word" not in end.problem


def test_an_ssh_server_on_a_private_address_is_not_even_connected_to(sftp: SftpServer) -> None:
    end = crawl(sftp.url, credentials=sftp.credentials(), allow_private=False).end
    assert "allow_private" in end.problem
    assert sftp.connections == 0


def test_an_ssh_server_is_reached_at_the_address_that_was_judged_and_known_by_its_name(
    sftp: SftpServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = socket.getaddrinfo

    def getaddrinfo(host: str, *others: Any, **named: Any) -> Any:
        if host == "files.example":
            asked.append(host)
            # It would resolve elsewhere a moment later.
            host = "127.0.0.1" if len(asked) == 1 else "127.0.0.2"
        return real(host, *others, **named)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    named = sftp.url.replace("127.0.0.1", "files.example")
    assert crawl(named, credentials=sftp.credentials()).end.complete
    assert asked == ["files.example"]
    line = sftp.credentials().extra["host_key"]
    known = sftp.root.parent / "known_hosts"
    known.write_text(f"[127.0.0.1]:{sftp.port} {line}\n")
    asked.clear()
    by_address = replace(sftp.credentials(), extra={"known_hosts": str(known)})
    assert "host key" in crawl(named, credentials=by_address).end.problem


def test_a_server_that_is_no_ssh_server_is_told_once_and_nothing_is_printed(
    index: IndexServer, capfd: pytest.CaptureFixture[str]
) -> None:
    program = (
        "from tidemark.adapters.sources.files.source import FilesOptions, FilesSource\n"
        f"options = FilesOptions(path='sftp://127.0.0.1:{urlsplit(index.url).port}/a', allow_private=True)\n"
        "*_, end = FilesSource(options).crawl(type('K', (), {'uris': lambda self: iter(())})())\n"
        "print(end.problem)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    told = capfd.readouterr()
    assert "cannot be read" in told.out
    assert told.err == ""


@pytest.mark.parametrize("key", ["nonsense", "ssh-ed25519 AAAA", "ssh-ed25519 ###"])
def test_a_host_key_that_is_none_is_told(sftp: SftpServer, key: str) -> None:
    end = crawl(sftp.url, credentials=sftp.credentials(host_key=key)).end
    assert "host_key" in end.problem


def test_a_folder_that_is_not_on_the_ssh_server_is_told(sftp: SftpServer) -> None:
    end = crawl(f"{sftp.url}/nowhere", credentials=sftp.credentials()).end
    assert "There is no" in end.problem
