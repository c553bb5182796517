"""Stores of files hold what every source promises."""

import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest
from stores import (
    LOGIN,
    PASSWORD,
    dav_server,
    index_server,
    s3_client,
    s3_credentials,
    s3_server,
    sftp_server,
)
from test_sources import *  # noqa: F403 - the cases, run on the world below
from test_sources import MAX_BYTES, World, _filled

from tidemark.adapters.sources.files.options import FilesOptions
from tidemark.adapters.sources.files.source import FilesSource
from tidemark.domain.connections import Credentials
from tidemark.ports.source import Source

pytestmark = pytest.mark.slow


class S3World:
    def __init__(self, url: str, down: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
        self._client = s3_client(url)
        self._bucket = f"docs-{uuid4().hex}"
        self._client.create_bucket(Bucket=self._bucket)
        self._url, self._down, self._bodies = url, down, 0
        from tidemark.adapters.sources.files.s3_store import S3Store

        body = S3Store._body

        def counted(store: S3Store, *arguments: object) -> bytes:
            self._bodies += 1
            return body(store, *arguments)  # type: ignore[arg-type]  # handed on

        monkeypatch.setattr(S3Store, "_body", counted)

    def source(self) -> Source:
        path = f"s3://{self._bucket}/pages"
        credentials = s3_credentials(self._url)
        return FilesSource(FilesOptions(path=path, credentials=credentials, max_bytes=MAX_BYTES))

    def uri(self, name: str) -> str:
        return f"s3://{self._bucket}/pages/{name}"

    def put(self, name: str, text: str) -> None:
        self._client.put_object(Bucket=self._bucket, Key=f"pages/{name}", Body=text.encode())

    def delete(self, name: str) -> None:
        self._client.delete_object(Bucket=self._bucket, Key=f"pages/{name}")

    def break_(self, name: str) -> None:
        self._client.put_object(
            Bucket=self._bucket, Key=f"pages/{name}", Body=b"cold", StorageClass="GLACIER"
        )

    def vanish(self) -> None:
        self._client.get_paginator("list_objects_v2")
        listed = self._client.list_objects_v2(Bucket=self._bucket).get("Contents", [])
        for found in listed:
            self._client.delete_object(Bucket=self._bucket, Key=found["Key"])
        self._client.delete_bucket(Bucket=self._bucket)

    def bodies(self) -> int:
        count, self._bodies = self._bodies, 0
        return count


class IndexWorld:
    def __init__(self, stack: ExitStack, root: Path) -> None:
        self._root = root
        self._stack = stack
        self._server = stack.enter_context(index_server(root))

    def source(self) -> Source:
        return FilesSource(
            FilesOptions(path=self._server.url, allow_private=True, max_bytes=MAX_BYTES)
        )

    def uri(self, name: str) -> str:
        return self._server.url + name

    def put(self, name: str, text: str) -> None:
        (self._root / name).write_text(text)

    def delete(self, name: str) -> None:
        (self._root / name).unlink()

    def break_(self, name: str) -> None:
        self._server.failing[f"/{name}"] = 500

    def vanish(self) -> None:
        self._stack.close()

    def bodies(self) -> int:
        return self._server.bodies()


class DavWorld(IndexWorld):
    def __init__(self, stack: ExitStack, root: Path) -> None:
        self._root = root
        self._stack = stack
        self._dav = stack.enter_context(dav_server(root))

    def source(self) -> Source:
        return FilesSource(
            FilesOptions(
                path=self._dav.url,
                allow_private=True,
                max_bytes=MAX_BYTES,
                credentials=Credentials("share", login=LOGIN, password=PASSWORD),
            )
        )

    def uri(self, name: str) -> str:
        return self._dav.url.replace("webdav://", "http://") + name

    def break_(self, name: str) -> None:
        self._dav.failing.add(f"/{name}")
        (self._root / name).write_text("changed, and not to be had")

    def bodies(self) -> int:
        count = len(self._dav.gets)
        self._dav.gets.clear()
        return count


class SftpWorld(IndexWorld):
    def __init__(self, stack: ExitStack, root: Path) -> None:
        self._root = root
        self._stack = stack
        self._sftp = stack.enter_context(sftp_server(root))

    def source(self) -> Source:
        return FilesSource(
            FilesOptions(
                path=self._sftp.url,
                allow_private=True,
                max_bytes=MAX_BYTES,
                credentials=self._sftp.credentials(),
            )
        )

    def uri(self, name: str) -> str:
        return f"{self._sftp.url}/{name}"

    def break_(self, name: str) -> None:
        self._sftp.failing.add(name)
        (self._root / name).write_text("changed, and not to be had")

    def bodies(self) -> int:
        count = len(self._sftp.opened)
        self._sftp.opened.clear()
        return count


class ZipWorld:
    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path = root / "docs.zip"
        self._texts: dict[str, str] = {}
        self._broken: set[str] = set()
        self._bodies = 0
        from tidemark.adapters.sources.files.zip_store import ZipStore

        read = ZipStore.read

        def counted(store: ZipStore, *arguments: object) -> object:
            self._bodies += 1
            return read(store, *arguments)  # type: ignore[arg-type]  # handed on

        monkeypatch.setattr(ZipStore, "read", counted)

    def source(self) -> Source:
        return FilesSource(FilesOptions(path=str(self._path), max_bytes=MAX_BYTES))

    def uri(self, name: str) -> str:
        return f"{self._path.resolve().as_uri()}!/{name}"

    def put(self, name: str, text: str) -> None:
        self._texts[name] = text
        self._write()

    def delete(self, name: str) -> None:
        del self._texts[name]
        self._write()

    def break_(self, name: str) -> None:
        self._texts[name] = "words that will be damaged"
        self._write()
        data = self._path.read_bytes()
        self._path.write_bytes(data.replace(b"will be damaged", b"will bX damaged", 1))

    def vanish(self) -> None:
        self._path.unlink()

    def bodies(self) -> int:
        count, self._bodies = self._bodies, 0
        return count

    def _write(self) -> None:
        with zipfile.ZipFile(self._path, "w") as archive:
            for name, text in self._texts.items():
                archive.writestr(zipfile.ZipInfo(name, (2026, 5, 1, 12, 0, 0)), text)


@pytest.fixture(scope="module")
def s3_url() -> Iterator[str]:
    with s3_server() as url:
        yield url


@pytest.fixture(params=["s3", "http index", "webdav", "sftp", "zip"])
def world(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    root = tmp_path / "documents"
    root.mkdir()
    with ExitStack() as stack:
        if request.param == "s3":
            url = request.getfixturevalue("s3_url")
            made: World = S3World(url, lambda: None, monkeypatch)
        elif request.param == "http index":
            made = IndexWorld(stack, root)
        elif request.param == "webdav":
            made = DavWorld(stack, root)
        elif request.param == "sftp":
            made = SftpWorld(stack, root)
        else:
            made = ZipWorld(root, monkeypatch)
        yield _filled(made)
