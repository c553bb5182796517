"""Stores that fsspec reads, and what a URL and a connection mean to them."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import fsspec
import pytest
from sites import Crawled, crawl_all

from fakes.source import MemoryKnown
from tidemark.adapters.sources.credentials import storage_options
from tidemark.adapters.sources.files.options import FilesOptions
from tidemark.adapters.sources.files.source import FilesSource
from tidemark.domain.connections import Credentials
from tidemark.domain.errors import ConfigurationError


class Versions:
    """fsspec's memory file system, with the version that buckets tell; counts reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.system = fsspec.filesystem("memory")
        self.kind = type(self.system)
        self.reads: list[str] = []
        self.generations: dict[str, int] = {}
        self.failures: dict[str, Exception] = {}
        self.patch = monkeypatch
        info, ls, opened = self.kind.info, self.kind.ls, self.kind._open

        def told(found: dict[str, Any]) -> dict[str, Any]:
            generation = self.generations.get(found["name"])
            return found | ({"generation": generation} if generation else {})

        def listed(system: Any, path: str, detail: bool = True, **options: Any) -> Any:
            if error := self.failures.get(path):
                raise error
            return [told(found) for found in ls(system, path, detail=True, **options)]

        def read(system: Any, path: str, *arguments: Any, **options: Any) -> Any:
            self.reads.append(path)
            if error := self.failures.get(path):
                raise error
            return opened(system, path, *arguments, **options)

        monkeypatch.setattr(self.kind, "info", lambda s, p, **o: told(info(s, p, **o)))
        monkeypatch.setattr(self.kind, "ls", listed)
        monkeypatch.setattr(self.kind, "_open", read)

    def put(self, path: str, text: str) -> None:
        self.kind.store.pop(path, None)
        self.system.pipe_file(path, text.encode())
        self.generations[path] = self.generations.get(path, 0) + 1
        self.reads.clear()


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[Versions]:
    made = Versions(monkeypatch)
    yield made
    made.kind.store.clear()
    made.kind.pseudo_dirs[:] = [""]


def crawl(known: MemoryKnown | None = None, path: str = "memory://docs", **options: Any) -> Crawled:
    return crawl_all(FilesSource(FilesOptions(path=path, **options)), known)


def said(crawled: Crawled) -> dict[str, str]:
    return crawled.outcomes("memory:///docs/")


def test_a_version_in_the_listing_tells_without_reading(store: Versions) -> None:
    store.put("/docs/a.md", "one")
    store.put("/docs/deep/b.md", "one")
    known = MemoryKnown()
    assert said(crawl(known)) == {"a.md": "fetched", "deep/b.md": "fetched"}
    store.put("/docs/deep/b.md", "two")
    assert said(crawl(known)) == {"a.md": "not_modified", "deep/b.md": "fetched"}
    assert store.reads == ["/docs/deep/b.md"]


def test_a_store_that_tells_no_version_is_read_every_time(store: Versions) -> None:
    store.put("/docs/a.md", "one")
    store.generations.clear()
    known = MemoryKnown()
    assert said(crawl(known)) == said(crawl(known)) == {"a.md": "fetched"}


def test_a_file_replaced_while_it_is_read_is_read_again(store: Versions) -> None:
    store.put("/docs/a.md", "one")
    opened = store.kind._open

    def replacing(system: Any, path: str, *arguments: Any, **options: Any) -> Any:
        file = opened(system, path, *arguments, **options)
        if len(store.reads) == 1:
            store.generations[path] += 1
        return file

    store.patch.setattr(store.kind, "_open", replacing)
    (item,) = crawl().items.values()
    assert len(store.reads) == 2
    assert item.item.validators.revision == "2"


def test_a_file_that_never_stops_changing_fails(store: Versions) -> None:
    store.put("/docs/a.md", "one")
    opened = store.kind._open

    def replacing(system: Any, path: str, *arguments: Any, **options: Any) -> Any:
        store.generations[path] += 1
        return opened(system, path, *arguments, **options)

    store.patch.setattr(store.kind, "_open", replacing)
    crawled = crawl()
    assert said(crawled) == {"a.md": "failed"}
    assert crawled.end.complete


def test_a_folder_that_cannot_be_listed_makes_the_listing_incomplete(store: Versions) -> None:
    store.put("/docs/a.md", "one")
    store.put("/docs/deep/b.md", "one")
    store.failures["/docs/deep"] = PermissionError("secret detail")
    crawled = crawl()
    assert said(crawled) == {"a.md": "fetched"}
    assert crawled.end.problem.startswith("The folder deep cannot be listed")
    assert "secret detail" not in crawled.end.problem


@pytest.mark.parametrize("error", [PermissionError("x"), TimeoutError("x"), ConnectionError("x")])
def test_a_store_that_refuses_or_is_away_is_no_empty_store(
    store: Versions, error: Exception
) -> None:
    store.put("/docs/a.md", "one")
    store.failures["/docs"] = error
    crawled = crawl()
    assert crawled.items == {}
    assert not crawled.end.complete


def test_a_file_that_may_not_be_read_fails_and_one_that_vanishes_is_gone(store: Versions) -> None:
    for name in "abc":
        store.put(f"/docs/{name}.md", "one")
    store.failures |= {"/docs/a.md": PermissionError("x"), "/docs/b.md": FileNotFoundError("x")}
    assert said(crawl()) == {"a.md": "failed", "b.md": "gone", "c.md": "fetched"}


def test_a_large_file_is_told_with_its_size_and_not_read(store: Versions) -> None:
    store.put("/docs/a.md", "0123456789")
    crawled = crawl(max_bytes=9)
    assert said(crawled) == {"a.md": "too_large"}
    assert store.reads == []
    item = crawled.items["memory:///docs/a.md"]
    assert item.detail == "has 10 bytes, more than the 9 that are fetched"
    assert item.item.validators.revision == "1"
    assert crawled.end.complete


def test_a_large_file_that_is_held_already_is_kept(store: Versions) -> None:
    store.put("/docs/a.md", "0123456789")
    known = MemoryKnown()
    crawl(known)
    assert said(crawl(known, max_bytes=9)) == {"a.md": "not_modified"}
    store.put("/docs/a.md", "9876543210")
    assert said(crawl(known, max_bytes=9)) == {"a.md": "too_large"}
    # What was met last is not held, so a higher bound fetches it.
    assert said(crawl(known, max_bytes=9)) == {"a.md": "too_large"}
    assert said(crawl(known, max_bytes=10)) == {"a.md": "fetched"}


def test_a_base_uri_makes_identities_survive_a_move_to_another_store(store: Versions) -> None:
    store.put("/docs/ü a.md", "one")
    assert list(crawl().items) == ["memory:///docs/%C3%BC%20a.md"]
    based = crawl(base_uri="https://docs.example.org/")
    assert list(based.items) == ["https://docs.example.org/%C3%BC%20a.md"]


@pytest.mark.parametrize(
    "url",
    [
        "s3://key:word@bucket/docs", "sftp://login:word@host/docs", "https://login:word@host/docs/",
        "zip://::s3://key:word@bucket/a.zip", "unknown://host/docs", "sftp://host:port/docs",
    ],
)  # fmt: skip
def test_credentials_in_a_url_and_unknown_stores_are_told_at_once(url: str) -> None:
    with pytest.raises(ValueError) as raised:
        FilesOptions(path=url)
    assert "word" not in str(raised.value)


def test_an_azure_container_with_its_account_is_no_url_with_credentials() -> None:
    FilesOptions(path="abfss://docs@account.dfs.core.windows.net/handbook")


@pytest.mark.parametrize(
    ("protocol", "credentials", "expected"),
    [
        (
            "s3",
            Credentials("c", "aws", "K", "S", "minio", port=9000, schema="http"),
            {"key": "K", "secret": "S", "endpoint_url": "http://minio:9000"},
        ),
        (
            "s3",
            Credentials(
                "c",
                extra={
                    "aws_access_key_id": "K", "aws_secret_access_key": "S", "session_token": "T",
                    "region_name": "eu-1", "endpoint_url": "https://s3.example.org",
                },
            ),
            {
                "key": "K", "secret": "S", "token": "T", "endpoint_url": "https://s3.example.org",
                "client_kwargs": {"region_name": "eu-1"},
            },
        ),
        ("s3", Credentials("c", extra={"anon": "true"}), {"anon": True}),
        (
            "gs",
            Credentials("c", extra={"token": "/k.json", "project": "p"}),
            {"token": "/k.json", "project": "p"},
        ),
        ("gs", Credentials("c", extra={"keyfile_dict": '{"type": "x"}'}), {"token": {"type": "x"}}),
        ("gcs", Credentials("c", extra={"anon": True}), {"token": "anon"}),
        (
            "abfs",
            Credentials("c", "wasb", "account", "KEY"),
            {"account_name": "account", "account_key": "KEY"},
        ),
        ("az", Credentials("c", extra={"connection_string": "CS"}), {"connection_string": "CS"}),
        (
            "ftp",
            Credentials("c", "", "L", "P", "h", port=21),
            {"username": "L", "password": "P", "host": "h", "port": 21},
        ),
        (
            "s3",
            Credentials(
                "c", "aws", "K", "S", extra={"storage_options": '{"key": "other", "use_ssl": false}'}
            ),
            {"key": "other", "secret": "S", "use_ssl": False},
        ),
        ("s3", None, {}),
    ],
)  # fmt: skip
def test_a_connection_is_the_options_of_a_file_system(
    protocol: str, credentials: Credentials | None, expected: dict[str, Any]
) -> None:
    assert storage_options(protocol, credentials) == expected


def test_options_that_are_no_mapping_are_told_without_being_shown() -> None:
    with pytest.raises(ConfigurationError, match="storage_options") as raised:
        storage_options("s3", Credentials("c", extra={"storage_options": "S3CRET"}))
    assert "S3CRET" not in str(raised.value)


@pytest.mark.parametrize(
    ("path", "module", "package"),
    [
        ("s3://bucket/docs", "s3fs", "s3fs"),
        ("gs://bucket/docs", "gcsfs", "gcsfs"),
        ("abfs://container/docs", "adlfs", "adlfs"),
        ("sftp://host/docs", "paramiko", "paramiko"),
    ],
)
def test_a_package_that_is_not_installed_is_named(
    path: str, module: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, module, None)
    end = crawl(path=path).end
    assert not end.complete
    assert f"pip install {package}" in end.problem


def test_times_are_taken_as_file_systems_tell_them() -> None:
    from tidemark.adapters.sources.files.fsspec_store import _time

    expected = datetime(2026, 5, 1, 12, tzinfo=UTC)
    naive = expected.replace(tzinfo=None)
    for value in ("2026-05-01T12:00:00Z", naive, expected.timestamp(), expected):
        assert _time(value) == expected
    assert _time("soon") is None
    assert _time(None) is None
