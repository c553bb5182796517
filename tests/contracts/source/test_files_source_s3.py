"""What only buckets do, on a server that speaks S3."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.request import Request, urlopen
from uuid import uuid4

import pytest
from sites import Crawled, crawl_all
from stores import PASSWORD, s3_client, s3_credentials, s3_server

from fakes.source import MemoryKnown
from tidemark.adapters.sources.files.options import FilesOptions
from tidemark.adapters.sources.files.s3_store import S3Store
from tidemark.adapters.sources.files.source import FilesSource
from tidemark.domain.connections import Credentials
from tidemark.domain.documents import Validators

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with s3_server() as started:
        yield started


class Bucket:
    def __init__(self, url: str) -> None:
        self.url = url
        self.client = s3_client(url)
        self.name = f"docs-{uuid4().hex}"
        self.client.create_bucket(Bucket=self.name)

    def put(self, key: str, text: str = "x") -> None:
        self.client.put_object(Bucket=self.name, Key=key, Body=text.encode())

    def fill(self, keys: Iterable[str]) -> None:
        """Many objects at once, past the server's HTTP."""
        from moto.s3.models import s3_backends

        store = s3_backends["123456789012"]["aws"]
        for key in keys:
            store.put_object(self.name, key, b"many")

    def delete(self, key: str) -> None:
        self.client.delete_object(Bucket=self.name, Key=key)

    def crawl(
        self,
        path: str = "",
        known: MemoryKnown | None = None,
        credentials: Credentials | None = None,
        **options: Any,
    ) -> Crawled:
        opened = credentials or s3_credentials(self.url)
        made = FilesOptions(path=f"s3://{self.name}{path}", credentials=opened, **options)
        return crawl_all(FilesSource(made), known)

    def said(self, crawled: Crawled) -> dict[str, str]:
        return crawled.outcomes(f"s3://{self.name}/")


@pytest.fixture
def bucket(url: str) -> Bucket:
    return Bucket(url)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests of crawls, by their S3 names."""
    made: list[str] = []
    call = S3Store._call

    def noted(store: S3Store, method: str, *arguments: Any, **options: Any) -> Any:
        made.append(method)
        return call(store, method, *arguments, **options)

    monkeypatch.setattr(S3Store, "_call", noted)
    return made


def test_a_bucket_of_many_pages_is_listed_whole_with_one_request_a_page(
    bucket: Bucket, calls: list[str]
) -> None:
    bucket.fill(f"pages/{number:04}.md" for number in range(1_205))
    first = bucket.crawl(max_bytes=1)
    assert len(first.items) == 1_205

    class Held(MemoryKnown):
        def validators(self, uri: str) -> Validators | None:
            return first.items[uri].item.validators

    calls.clear()
    crawled = bucket.crawl(known=Held())
    assert set(bucket.said(crawled).values()) == {"not_modified"}
    assert calls == ["list_objects_v2"] * 2
    assert crawled.end.complete


def test_a_document_has_the_time_at_which_its_object_was_written(bucket: Bucket) -> None:
    bucket.put("a.md", "text")
    (item,) = bucket.crawl().items.values()
    assert item.raw is not None
    assert item.raw.modified_at is not None
    assert abs(item.raw.modified_at - datetime.now(UTC)) < timedelta(minutes=1)
    assert item.raw.validators.size == 4
    assert item.raw.validators.etag


def test_only_wanted_keys_below_the_folder_are_listed(bucket: Bucket) -> None:
    for key in (
        "docs/a.md", "docs/b/ü c#1.html", "docs/logo.png", "docs/.hidden/x.md", "docs-old/z.md",
        "docs/", "docs/old/y.md",
    ):  # fmt: skip
        bucket.put(key)
    for path in ("/docs", "/docs/"):
        crawled = bucket.crawl(path, exclude=("old/",))
        assert bucket.said(crawled) == {
            "docs/a.md": "fetched",
            "docs/b/%C3%BC%20c%231.html": "fetched",
        }


def test_a_single_object_is_a_source_too(bucket: Bucket) -> None:
    bucket.put("docs/a.md")
    bucket.put("docs/a.md.txt")
    assert bucket.said(bucket.crawl("/docs/a.md")) == {"docs/a.md": "fetched"}


def test_an_object_that_is_replaced_while_it_is_read_is_read_again(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.put("a.md", "first")
    read, reads = S3Store.read, []

    def replacing(store: S3Store, entry: Any, *arguments: Any) -> Any:
        reads.append(entry.validators.etag)
        if len(reads) == 1:
            bucket.put("a.md", "second")
        return read(store, entry, *arguments)

    monkeypatch.setattr(S3Store, "read", replacing)
    known = MemoryKnown()
    (item,) = bucket.crawl(known=known).items.values()
    assert item.raw is not None
    assert item.raw.content == b"second"
    assert len(set(reads)) == 2
    assert bucket.said(bucket.crawl(known=known)) == {"a.md": "not_modified"}


def test_an_object_that_is_deleted_after_it_was_listed_is_gone(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.put("a.md")
    read = S3Store.read

    def deleting(store: S3Store, entry: Any, *arguments: Any) -> Any:
        bucket.delete("a.md")
        return read(store, entry, *arguments)

    monkeypatch.setattr(S3Store, "read", deleting)
    assert bucket.said(bucket.crawl()) == {"a.md": "gone"}


def test_a_versioned_bucket_is_read_by_version_and_shows_no_deleted_object(bucket: Bucket) -> None:
    bucket.client.put_bucket_versioning(
        Bucket=bucket.name, VersioningConfiguration={"Status": "Enabled"}
    )
    for text in ("first", "second"):
        bucket.put("a.md", text)
        bucket.put("b.md", text)
    bucket.delete("b.md")
    aware = s3_credentials(bucket.url, version_aware=True)
    for credentials in (aware, None):
        known = MemoryKnown()
        crawled = bucket.crawl(known=known, credentials=credentials)
        assert bucket.said(crawled) == {"a.md": "fetched"}
        (item,) = crawled.items.values()
        assert item.raw is not None
        assert item.raw.content == b"second"
        assert bool(item.raw.validators.revision) is (credentials is aware)
        again = bucket.crawl(known=known, credentials=credentials)
        assert bucket.said(again) == {"a.md": "not_modified"}


def test_a_large_object_is_told_without_being_read(bucket: Bucket, calls: list[str]) -> None:
    bucket.put("a.md", "0123456789")
    assert bucket.said(bucket.crawl(max_bytes=9)) == {"a.md": "too_large"}
    assert "get_object" not in calls


def test_an_archived_object_fails_alone(bucket: Bucket) -> None:
    bucket.put("a.md")
    bucket.client.put_object(Bucket=bucket.name, Key="b.md", Body=b"x", StorageClass="GLACIER")
    crawled = bucket.crawl()
    assert bucket.said(crawled) == {"a.md": "fetched", "b.md": "failed"}
    assert crawled.end.complete


def test_a_bucket_that_is_not_there_is_told(bucket: Bucket) -> None:
    bucket.client.delete_bucket(Bucket=bucket.name)
    end = bucket.crawl().end
    assert end.problem.startswith(f"There is no bucket {bucket.name}.")


def test_an_empty_folder_where_documents_are_known_is_not_believed(bucket: Bucket) -> None:
    bucket.put("docs/a.md")
    known = MemoryKnown()
    bucket.crawl("/docs", known)
    bucket.delete("docs/a.md")
    assert "allow_empty" in bucket.crawl("/docs", known).end.problem
    assert bucket.crawl("/docs", known, allow_empty=True).end.complete


def test_an_endpoint_that_is_down_is_an_outage(bucket: Bucket) -> None:
    end = bucket.crawl(credentials=s3_credentials("http://127.0.0.1:9")).end
    assert not end.complete
    assert "cannot be reached" in end.problem


def test_wrong_keys_are_told_and_never_shown(bucket: Bucket) -> None:
    bucket.put("a.md")

    def enforce(after: bytes) -> None:
        request = Request(
            f"{bucket.url}/moto-api/reset-auth", after, {"Content-Type": "text/plain"}
        )
        urlopen(request).close()

    enforce(b"0")
    try:
        credentials = s3_credentials(bucket.url)
        end = bucket.crawl(credentials=credentials).end
    finally:
        enforce(b"inf")
    assert "refuses access" in end.problem
    assert "'bucket'" in end.problem
    assert PASSWORD not in end.problem + repr(credentials)


@pytest.mark.parametrize(
    "options",
    [
        {"storage_options": {"no_such": 1}},
        {"endpoint_url": "no url"},
        {"storage_options": {"username": "x"}},
    ],
)
def test_options_that_are_not_accepted_are_told(bucket: Bucket, options: dict[str, Any]) -> None:
    end = bucket.crawl(credentials=s3_credentials(bucket.url, **options)).end
    assert "not accepted" in end.problem


def test_a_name_that_no_bucket_can_have_is_told(url: str) -> None:
    made = FilesOptions(path="s3://a b/docs", credentials=s3_credentials(url))
    assert "not accepted" in crawl_all(FilesSource(made)).end.problem
