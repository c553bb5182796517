import io
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sites import Crawled, crawl_all

from fakes.source import MemoryKnown
from tidemark.adapters.sources.files import zip_store as remote_zip
from tidemark.adapters.sources.files.options import FilesOptions
from tidemark.adapters.sources.files.source import FilesSource


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "docs.zip"


def write(path: Path, files: dict[str, str | bytes], at: int = 2025, packed: bool = True) -> None:
    kind = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", kind) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (at, 5, 1, 12, 0, 0)), content, kind)


def crawl(path: Path | str, known: MemoryKnown | None = None, **options: Any) -> Crawled:
    return crawl_all(FilesSource(FilesOptions(path=str(path), **options)), known)


def said(path: Path, crawled: Crawled) -> dict[str, str]:
    return crawled.outcomes(f"{path.as_uri()}!/")


def test_an_archive_is_listed_like_a_folder(path: Path) -> None:
    write(
        path,
        {
            "b/ü 1.md": "x",
            "a.html": "y",
            "a.png": "z",
            ".h/x.md": "x",
            "__MACOSX/a.html": "x",
            "b/": "",
        },
    )
    crawled = crawl(path)
    assert said(path, crawled) == {"a.html": "fetched", "b/%C3%BC%201.md": "fetched"}
    (item, *_) = crawled.items.values()
    assert item.raw is not None
    assert item.raw.content == b"y"
    assert item.raw.modified_at == datetime(2025, 5, 1, 12, tzinfo=UTC)
    assert crawled.end.complete
    assert crawled.end.authoritative


def test_a_folder_in_an_archive_is_named_by_a_url(path: Path) -> None:
    write(path, {"docs/a.md": "x", "docs/b.txt": "x", "other/c.md": "x"})
    crawled = crawl(f"zip://docs/::{path.as_uri()}", include=("*.md",))
    assert said(path, crawled) == {"docs/a.md": "fetched"}
    based = crawl(f"zip://docs::{path.as_uri()}", base_uri="https://docs.example.org/")
    assert list(based.items) == ["https://docs.example.org/a.md", "https://docs.example.org/b.txt"]


def test_a_checksum_tells_what_changed_though_size_and_time_are_the_same(path: Path) -> None:
    write(path, {"a.md": "one", "b.md": "one"})
    known = MemoryKnown()
    crawl(path, known)
    write(path, {"a.md": "one", "b.md": "two"})
    assert said(path, crawl(path, known)) == {"a.md": "not_modified", "b.md": "fetched"}


def test_a_file_that_unpacks_to_a_multiple_of_its_size_is_not_unpacked(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(path, {"bomb.md": b"0" * 5_000_000, "a.md": "x"})
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("it was opened"))
    crawled = crawl(path, MemoryKnown(), include=("bomb.md",))
    assert said(path, crawled) == {"bomb.md": "excluded"}
    assert "times its size" in next(iter(crawled.items.values())).detail


def test_a_file_in_an_archive_over_the_limit_is_told_with_its_size(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(path, {"a.md": "x" * 11, "b.md": "x" * 10})
    crawled = crawl(path, max_bytes=10)
    assert said(path, crawled) == {"a.md": "too_large", "b.md": "fetched"}
    item = crawled.items[f"{path.as_uri()}!/a.md"]
    assert item.detail == "has 11 bytes, more than the 10 that are fetched"
    assert crawled.end.complete


def test_an_archive_that_unpacks_to_too_much_is_refused_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_zip, "MAX_UNPACKED_BYTES", 100)
    write(path, {"a.md": "x" * 60, "b.md": "y" * 60})
    crawled = crawl(path)
    assert crawled.items == {}
    assert "unpack to more" in crawled.end.problem


def test_an_archive_of_too_many_entries_is_refused_before_its_directory_is_read(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_zip, "MAX_ENTRIES", 2)
    write(path, {f"{number}.md": "x" for number in range(3)})
    monkeypatch.setattr(zipfile, "ZipFile", lambda *_: pytest.fail("it was read"))
    assert "more than 2 entries" in crawl(path).end.problem


def test_a_size_that_is_a_lie_unpacks_no_more_than_it_says(path: Path) -> None:
    write(path, {"a.md": b"0123456789" * 100}, packed=True)
    data = bytearray(path.read_bytes())
    entry = data.rfind(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = (5).to_bytes(4, "little")
    path.write_bytes(data)
    assert said(path, crawl(path)) == {"a.md": "failed"}


@pytest.mark.parametrize("name", ["../up.md", "a/../../up.md", "/abs.md", "c:/x.md", "a\\..\\x.md"])
def test_a_name_that_leads_out_of_the_archive_is_refused(path: Path, name: str) -> None:
    write(path, {name: "x"})
    (item,) = crawl(path).items.values()
    assert item.outcome.value == "excluded"
    assert "leads out" in item.detail


def test_links_and_encrypted_files_are_refused_and_archives_in_it_stay_shut(path: Path) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("x.md", "x")
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("link.md")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/hostname")
        archive.writestr("inner.zip", inner.getvalue())
        archive.writestr("secret.md", "x")
    data = bytearray(path.read_bytes())
    entry = data.rfind(b"PK\x01\x02")
    data[entry + 8] |= 1
    path.write_bytes(data)
    crawled = crawl(path)
    assert said(path, crawled) == {"link.md": "excluded", "secret.md": "excluded"}


@pytest.mark.parametrize(
    "content", [b"", b"no archive", b"PK\x05\x06", b"PK\x05\x06" + b"\xff" * 18]
)
def test_what_is_no_archive_is_told_and_deletes_nothing(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    crawled = crawl(path)
    assert crawled.items == {}
    assert not crawled.end.complete
    assert "docs.zip" in crawled.end.problem


def test_a_folder_whose_name_ends_like_an_archive_is_a_folder(path: Path) -> None:
    path.mkdir()
    (path / "a.md").write_text("x")
    assert list(crawl(path).items) == [(path / "a.md").as_uri()]


def test_an_archive_in_a_store_is_read_in_place(path: Path) -> None:
    import fsspec

    write(path, {"a.md": "x"})
    system = fsspec.filesystem("memory")
    system.pipe_file("/archives/docs.zip", path.read_bytes())
    try:
        crawled = crawl("zip://::memory://archives/docs.zip")
        assert list(crawled.items) == ["memory://archives/docs.zip!/a.md"]
        assert crawled.end.complete
        assert "not there" in crawl("zip://::memory://archives/none.zip").end.problem
    finally:
        system.rm("/archives", recursive=True)


@pytest.mark.parametrize(
    "url",
    [
        "zip://docs",
        "zip://a::zip://b::file:///c.zip",
        "zip://::https://h/a.zip",
        "simplecache::s3://b/k",
    ],
)
def test_a_chain_that_cannot_be_read_is_told_at_once(url: str) -> None:
    with pytest.raises(ValueError):
        FilesOptions(path=url)
