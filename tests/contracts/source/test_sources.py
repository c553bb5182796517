"""What every source promises, whatever it crawls."""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Protocol, cast

import pytest
from sites import Crawled, Page, Site, crawl_all

from fakes.source import MemoryKnown, MemorySource
from tidemark.adapters.sources.files.options import FilesOptions
from tidemark.adapters.sources.files.source import FilesSource
from tidemark.adapters.sources.website.crawl import WebsiteSource
from tidemark.adapters.sources.website.options import WebsiteOptions
from tidemark.ports.source import Source

NAMES = ("alpha.html", "beta.html", "gamma.html")
MAX_BYTES = 1_000


class World(Protocol):
    """A place with documents that a test changes, and the source over it."""

    def source(self) -> Source: ...

    def uri(self, name: str) -> str: ...

    def put(self, name: str, text: str) -> None: ...

    def delete(self, name: str) -> None: ...

    def break_(self, name: str) -> None:
        """Make one document impossible to read, though it is there."""

    def vanish(self) -> None:
        """Make the whole place unreachable."""

    def bodies(self) -> int:
        """Bodies handed over since the last call."""


class MemoryWorld:
    def __init__(self) -> None:
        self._source = MemorySource()

    def source(self) -> Source:
        return self._source

    def uri(self, name: str) -> str:
        return f"memory:{name}"

    def put(self, name: str, text: str) -> None:
        uri = self.uri(name)
        self._source.documents[uri] = text
        self._source.too_large.pop(uri, None)
        if len(text) > MAX_BYTES:
            self._source.too_large[uri] = f"has {len(text):,} bytes, more than {MAX_BYTES:,}"

    def delete(self, name: str) -> None:
        del self._source.documents[self.uri(name)]

    def break_(self, name: str) -> None:
        self._source.failing[self.uri(name)] = "is broken"

    def vanish(self) -> None:
        self._source.away = "It is away."

    def bodies(self) -> int:
        count = self._source.fetched.total()
        self._source.fetched.clear()
        return count


class WebsiteWorld:
    def __init__(self, site: Site) -> None:
        self._site = site
        site.pages["/"] = Page(headers={"X-Robots-Tag": "noindex"}, etag="")
        self._names: list[str] = []

    def source(self) -> Source:
        return WebsiteSource(
            WebsiteOptions(
                url=self._site.url,
                allow_private=True,
                request_retries=0,
                timeout=5,
                max_bytes=MAX_BYTES,
            )
        )

    def uri(self, name: str) -> str:
        return self._site.url + name

    def put(self, name: str, text: str) -> None:
        self._names = sorted({*self._names, name})
        self._site.pages[f"/{name}"] = Page(text)
        self._link()

    def delete(self, name: str) -> None:
        self._names.remove(name)
        del self._site.pages[f"/{name}"]
        self._link()

    def break_(self, name: str) -> None:
        self._site.pages[f"/{name}"] = Page(status=500)

    def vanish(self) -> None:
        self._site.close()

    def bodies(self) -> int:
        # The page of links is no document, so that it is read every time is no news.
        count = sum(n for path, n in self._site.bodies.items() if path != "/")
        self._site.forget()
        return count

    def _link(self) -> None:
        links = " ".join(f'<a href="{name}">{name}</a>' for name in self._names)
        self._site.pages["/"] = Page(links, headers={"X-Robots-Tag": "noindex"}, etag="")


class FilesWorld:
    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root = root
        self._bodies = 0
        self._source = FilesSource(FilesOptions(path=str(root), max_bytes=MAX_BYTES))

        def counted(path: str, mode: str) -> IO[bytes]:
            self._bodies += 1
            return cast(IO[bytes], Path(path).open(mode))

        monkeypatch.setattr("tidemark.adapters.sources.files.source.open", counted, raising=False)

    def source(self) -> Source:
        return self._source

    def uri(self, name: str) -> str:
        return (self._root.resolve() / name).as_uri()

    def put(self, name: str, text: str) -> None:
        (self._root / name).write_text(text)

    def delete(self, name: str) -> None:
        (self._root / name).unlink()

    def break_(self, name: str) -> None:
        file = self._root / name
        file.unlink()
        # Leads to itself: cannot be opened, not even by root.
        file.symlink_to(file)

    def vanish(self) -> None:
        self._root.rename(self._root.with_name("elsewhere"))

    def bodies(self) -> int:
        count, self._bodies = self._bodies, 0
        return count


@pytest.fixture(params=["memory", "website", "files"])
def world(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    if request.param == "memory":
        made: World = MemoryWorld()
        yield _filled(made)
    elif request.param == "files":
        root = tmp_path / "documents"
        root.mkdir()
        yield _filled(FilesWorld(root, monkeypatch))
    else:
        with Site() as site:
            yield _filled(WebsiteWorld(site))


def _filled(world: World) -> World:
    for name in NAMES:
        world.put(name, f"<p>The text of {name}.</p>")
    return world


def outcomes(world: World, crawled: Crawled) -> dict[str, str]:
    return {
        name: crawled.items[world.uri(name)].outcome.value
        for name in NAMES
        if world.uri(name) in crawled.items
    }


def test_the_first_crawl_hands_over_every_document_and_says_that_it_is_complete(
    world: World,
) -> None:
    crawled = crawl_all(world.source())
    assert outcomes(world, crawled) == dict.fromkeys(NAMES, "fetched")
    assert crawled.end.complete
    raw = crawled.items[world.uri("beta.html")].raw
    assert raw is not None
    assert raw.uri == world.uri("beta.html")
    assert raw.content == b"<p>The text of beta.html.</p>"
    assert raw.media_type == "text/html"
    assert raw.fetched_at.utcoffset() is not None
    assert raw.validators


def test_a_second_crawl_hands_over_no_bytes_when_nothing_changed(world: World) -> None:
    known = MemoryKnown()
    crawl_all(world.source(), known)
    assert world.bodies() == 3
    crawled = crawl_all(world.source(), known)
    assert outcomes(world, crawled) == dict.fromkeys(NAMES, "not_modified")
    assert world.bodies() == 0
    assert crawled.end.complete


def test_only_the_changed_document_is_handed_over_again(world: World) -> None:
    known = MemoryKnown()
    crawl_all(world.source(), known)
    world.bodies()
    world.put("beta.html", "<p>Another text, and a longer one.</p>")
    crawled = crawl_all(world.source(), known)
    assert outcomes(world, crawled)["beta.html"] == "fetched"
    assert world.bodies() == 1
    assert known.content(world.uri("beta.html")) == (
        b"<p>Another text, and a longer one.</p>",
        "text/html",
    )


def test_a_deleted_document_is_gone_or_absent_from_a_complete_listing(world: World) -> None:
    known = MemoryKnown()
    crawl_all(world.source(), known)
    world.delete("beta.html")
    crawled = crawl_all(world.source(), known)
    assert crawled.end.complete
    said = outcomes(world, crawled).get("beta.html")
    assert said == "gone" or (said is None and crawled.end.authoritative)


def test_a_document_that_cannot_be_read_fails_alone(world: World) -> None:
    known = MemoryKnown()
    crawl_all(world.source(), known)
    world.break_("beta.html")
    crawled = crawl_all(world.source(), known)
    assert outcomes(world, crawled) == {
        "alpha.html": "not_modified",
        "beta.html": "failed",
        "gamma.html": "not_modified",
    }
    assert crawled.items[world.uri("beta.html")].detail


def test_a_document_that_is_too_large_is_named_with_both_sizes(world: World) -> None:
    known = MemoryKnown()
    crawl_all(world.source(), known)
    world.put("beta.html", "x" * 1_234)
    for _ in range(2):
        crawled = crawl_all(world.source(), known)
        assert list(outcomes(world, crawled).values()) == [
            "not_modified", "too_large", "not_modified",
        ]  # fmt: skip
        detail = crawled.items[world.uri("beta.html")].detail
        assert "1,234" in detail
        assert "1,000" in detail
        assert crawled.end.complete
    assert world.uri("beta.html") in set(known.uris())
    world.put("beta.html", "small again")
    assert outcomes(world, crawl_all(world.source(), known))["beta.html"] == "fetched"


def test_a_place_that_is_away_is_never_an_empty_place(world: World) -> None:
    known = MemoryKnown()
    crawl_all(world.source(), known)
    world.vanish()
    crawled = crawl_all(world.source(), known)
    assert crawled.items == {}
    assert not crawled.end.complete
    assert crawled.end.problem


def test_a_limited_crawl_stops_there_and_is_not_complete(world: World) -> None:
    crawled = crawl_all(world.source(), limit=2)
    assert len(outcomes(world, crawled)) == 2
    assert world.bodies() == 2
    assert not crawled.end.complete


def test_a_limited_crawl_counts_documents_that_did_not_change(world: World) -> None:
    known = MemoryKnown()
    crawl_all(world.source(), known)
    crawled = crawl_all(world.source(), known, limit=2)
    assert list(outcomes(world, crawled).values()) == ["not_modified"] * 2


def test_the_listing_comes_in_the_same_order_every_time(world: World) -> None:
    assert list(crawl_all(world.source()).items) == list(crawl_all(world.source()).items)


def test_it_may_be_left_in_the_middle_and_crawled_again(world: World) -> None:
    source = world.source()
    crawl = source.crawl(MemoryKnown())
    next(crawl)
    crawl.close()  # type: ignore[attr-defined]  # a generator, as all sources are
    assert crawl_all(source).end.complete


def test_two_sources_declared_alike_have_one_fingerprint(world: World) -> None:
    assert world.source().fingerprint == world.source().fingerprint != ""
