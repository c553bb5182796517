import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sites import Crawled, crawl_all

from fakes.source import MemoryKnown
from tidemark.adapters.sources.files.options import FilesOptions
from tidemark.adapters.sources.files.source import FilesSource
from tidemark.domain.documents import Validators


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "documents"
    folder.mkdir()
    return folder


def write(root: Path, **texts: str) -> None:
    for name, text in texts.items():
        (root / f"{name}.md").write_text(text)


def crawl(root: Path, known: MemoryKnown | None = None, **options: Any) -> Crawled:
    return crawl_all(FilesSource(FilesOptions(path=str(root), **options)), known)


def said(root: Path, crawled: Crawled) -> dict[str, str]:
    return crawled.outcomes(root.as_uri() + "/")


def test_it_lists_documents_by_their_suffix_sorted_and_nothing_hidden(root: Path) -> None:
    for name in (
        "b.md", "a.html", "c/d.PDF", "c/e.docx", "logo.png", ".hidden.md", ".git/x.md",
        "CVS/x.md", "~$e.docx", "no-suffix",
    ):  # fmt: skip
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text("x")
    crawled = crawl(root)
    assert list(said(root, crawled)) == ["a.html", "b.md", "c/d.PDF", "c/e.docx"]
    assert [item.raw.media_type for item in crawled.items.values() if item.raw] == [
        "text/html",
        "text/markdown",
        "application/pdf",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ]
    assert crawled.end.complete
    assert crawled.end.authoritative


def test_patterns_narrow_it_and_a_wanted_file_of_no_known_format_is_told(root: Path) -> None:
    (root / "old").mkdir()
    for name in ("a.md", "b.txt", "c.zzz", "old/d.md"):
        (root / name).write_text("x")
    crawled = crawl(root, include=("*.md", "*.zzz"), exclude=("old/",))
    assert said(root, crawled) == {"a.md": "fetched", "c.zzz": "excluded"}


def test_a_uri_opens_the_file_whatever_its_name(root: Path) -> None:
    name = "ü #1 100%?.md"
    (root / name).write_text("x")
    (uri,) = crawl(root).items
    assert uri == (root / name).as_uri()


def test_names_that_are_no_text_have_a_uri_too(root: Path) -> None:
    try:
        (root / os.fsdecode(b"caf\xe9.md")).write_text("x")
    except OSError:
        pytest.skip("this file system takes only names in UTF-8")
    assert list(said(root, crawl(root))) == ["caf%E9.md"]


def test_a_base_uri_makes_identities_survive_a_move(root: Path) -> None:
    write(root, a="x")
    before = list(crawl(root, base_uri="https://example.org/docs/").items)
    moved = root.rename(root.with_name("moved"))
    assert list(crawl(moved, base_uri="https://example.org/docs").items) == before
    assert before == ["https://example.org/docs/a.md"]


def test_a_single_file_is_a_source_too(root: Path) -> None:
    write(root, a="x", b="y")
    crawled = crawl(root / "a.md")
    assert list(crawled.items) == [(root / "a.md").as_uri()]


def test_a_file_url_is_a_path(root: Path) -> None:
    write(root, a="x")
    crawled = crawl_all(FilesSource(FilesOptions(path=root.as_uri())))
    assert said(root, crawled) == {"a.md": "fetched"}


def test_size_and_time_of_change_tell_without_reading(root: Path) -> None:
    write(root, a="one")
    known = MemoryKnown()
    crawl(root, known)
    before = (root / "a.md").stat()
    (root / "a.md").write_text("two")
    os.utime(root / "a.md", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert said(root, crawl(root, known)) == {"a.md": "not_modified"}
    os.utime(root / "a.md", ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))
    assert said(root, crawl(root, known)) == {"a.md": "fetched"}


@pytest.mark.parametrize("text", ["second, and longer", "later"])
def test_a_file_that_changes_while_it_is_read_is_read_again(
    root: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    write(root, a="first")
    reads = []

    def changing(path: str, mode: str) -> Any:
        reads.append(path)
        if len(reads) == 1:
            Path(path).write_text(text)
            os.utime(path, (0, 1_700_000_000))
        return Path(path).open(mode)

    monkeypatch.setattr("tidemark.adapters.sources.files.source.open", changing, raising=False)
    (item,) = crawl(root).items.values()
    assert item.raw is not None
    assert item.raw.content == text.encode()
    assert item.raw.validators == Validators(size=len(text), mtime=1_700_000_000)
    assert len(reads) == 2


def test_a_file_that_never_stops_changing_fails(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, a="x")

    def growing(path: str, mode: str) -> Any:
        with Path(path).open("a") as file:
            file.write("x")
        return Path(path).open(mode)

    monkeypatch.setattr("tidemark.adapters.sources.files.source.open", growing, raising=False)
    crawled = crawl(root)
    assert said(root, crawled) == {"a.md": "failed"}
    assert crawled.end.complete


def test_a_file_deleted_between_listing_and_reading_is_gone(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, a="x", b="y")

    def deleting(path: str, mode: str) -> Any:
        Path(path).unlink()
        return Path(path).open(mode)

    monkeypatch.setattr("tidemark.adapters.sources.files.source.open", deleting, raising=False)
    assert said(root, crawl(root)) == {"a.md": "gone", "b.md": "gone"}


def test_a_file_that_may_not_be_read_fails_and_is_still_listed(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, a="x")

    def refusing(path: str, mode: str) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tidemark.adapters.sources.files.source.open", refusing, raising=False)
    crawled = crawl(root)
    assert said(root, crawled) == {"a.md": "failed"}
    assert "Permission denied" in crawled.items[(root / "a.md").as_uri()].detail
    assert crawled.end.complete


def test_a_file_over_the_limit_is_told_with_its_size(root: Path) -> None:
    write(root, a="x" * 11, b="x" * 10)
    crawled = crawl(root, max_bytes=10)
    assert said(root, crawled) == {"a.md": "too_large", "b.md": "fetched"}
    item = crawled.items[(root / "a.md").as_uri()]
    assert item.detail == "has 11 bytes, more than the 10 that are fetched"
    assert item.item.validators.size == 11
    assert crawled.end.complete


def test_links_never_lead_out_of_the_folder(root: Path) -> None:
    outside = root.with_name("outside")
    outside.mkdir()
    write(outside, secret="hush")
    (root / "file.md").symlink_to(outside / "secret.md")
    (root / "folder").symlink_to(outside)
    (root / "up").symlink_to("..")
    crawled = crawl(root)
    assert said(root, crawled) == dict.fromkeys(["file.md", "folder", "up"], "excluded")


def test_a_link_to_what_is_listed_anyway_brings_nothing_twice(root: Path) -> None:
    (root / "sub").mkdir()
    write(root / "sub", a="x")
    (root / "again.md").symlink_to("sub/a.md")
    (root / "sub" / "loop").symlink_to("..")
    (root / "twice").symlink_to("sub")
    assert said(root, crawl(root)) == {"sub/a.md": "fetched"}


def test_links_to_hidden_data_are_followed_as_mounted_configurations_need(root: Path) -> None:
    (root / "..2026").mkdir()
    write(root / "..2026", a="x")
    (root / "..data").symlink_to("..2026")
    (root / "a.md").symlink_to("..data/a.md")
    assert said(root, crawl(root)) == {"a.md": "fetched"}


def test_a_dangling_link_is_a_failure(root: Path) -> None:
    (root / "a.md").symlink_to("nowhere.md")
    crawled = crawl(root)
    assert said(root, crawled) == {"a.md": "failed"}
    assert crawled.end.complete


def test_a_missing_folder_is_a_problem_and_not_an_empty_one(root: Path) -> None:
    crawled = crawl(root / "missing")
    assert crawled.items == {}
    assert not crawled.end.complete
    assert str(root / "missing") in crawled.end.problem


def test_a_folder_found_empty_is_believed_only_when_told_to(root: Path) -> None:
    assert crawl(root).end.complete
    write(root, a="x")
    known = MemoryKnown()
    crawl(root, known)
    (root / "a.md").unlink()
    assert "mounted" in crawl(root, known).end.problem
    assert crawl(root, known, allow_empty=True).end.complete


def test_a_subfolder_that_cannot_be_listed_makes_the_listing_incomplete(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "closed").mkdir()
    write(root, a="x")
    scandir = os.scandir

    def refusing(path: str) -> Any:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr("tidemark.adapters.sources.selection.os.scandir", refusing)
    crawled = crawl(root)
    assert said(root, crawled) == {"a.md": "fetched"}
    assert crawled.end.problem == "The folder closed cannot be listed: Permission denied."


@pytest.mark.parametrize(
    ("path", "told"),
    [("", "path"), ("gopher://h/", "no kind of store"), ("s3://a:b@c/", "connection")],
)
def test_a_path_it_cannot_read_is_told_at_once(path: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        FilesOptions(path=path)


def test_a_document_has_the_time_of_its_file(root: Path) -> None:
    write(root, a="x")
    os.utime(root / "a.md", (0, 1_750_000_000))
    (item,) = crawl(root).items.values()
    assert item.raw is not None
    assert item.raw.modified_at == datetime.fromtimestamp(1_750_000_000, UTC)


def test_an_address_with_two_colons_in_it_is_no_chain(root: Path) -> None:
    for url in ("http://[2001:db8::1]/docs/", "webdav://[2001:db8::1]:8080/", "sftp://[fe80::1]/x"):
        options = FilesOptions(path=url)
        assert (options.is_remote, options.location) == (True, url)
    with pytest.raises(ValueError, match="chains what cannot be chained"):
        FilesOptions(path="zip://a::zip://b::s3://bucket/c.zip")
    odd = root / "minutes::2026"
    odd.mkdir()
    (odd / "a.md").write_text("# A")
    assert not FilesOptions(path=str(odd)).is_remote
    assert [uri.rpartition("/")[2] for uri in crawl(odd).items] == ["a.md"]
