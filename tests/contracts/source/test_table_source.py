"""Rows of a query as a source: its promises as a source, and what only tables do."""

import re
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sites import Crawled, crawl_all
from sqlalchemy import create_engine, text
from test_sources import *  # noqa: F403 - the cases, run on the world below
from test_sources import MAX_BYTES, World, _filled

from fakes.source import MemoryKnown
from tidemark.adapters.sources.table import source as table_source
from tidemark.adapters.sources.table.options import TableOptions
from tidemark.adapters.sources.table.source import TableSource
from tidemark.domain.connections import Credentials
from tidemark.domain.errors import ConfigurationError
from tidemark.ports.source import Source

QUERY = "SELECT * FROM article ORDER BY id"
BASE = "table://help/"


class TableWorld:
    """A SQLite table; a document's text is its body, and its time of update is counted up."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path = path
        self._count = self._bodies = 0
        self._run("CREATE TABLE article (id TEXT, title TEXT, body, updated_at INTEGER)")
        document = table_source.as_document

        def counted(*arguments: str) -> str:
            self._bodies += 1
            return document(*arguments)

        monkeypatch.setattr(table_source, "as_document", counted)

    def source(self) -> Source:
        return TableSource(
            TableOptions(
                name="help",
                connection="help",
                query=QUERY,
                database_url=f"sqlite:///{self._path}",
                media_type="text/html",
                max_bytes=MAX_BYTES,
            )
        )

    def uri(self, name: str) -> str:
        return BASE + name

    def put(self, name: str, text: str | bytes) -> None:
        self._count += 1
        self.delete(name)
        self._run("INSERT INTO article VALUES (?, '', ?, ?)", name, text, self._count)

    def delete(self, name: str) -> None:
        self._run("DELETE FROM article WHERE id = ?", name)

    def break_(self, name: str) -> None:
        self.put(name, b"\xff\xfe\xff")

    def vanish(self) -> None:
        self._path.unlink()

    def bodies(self) -> int:
        count, self._bodies = self._bodies, 0
        return count

    def _run(self, statement: str, *values: object) -> None:
        with sqlite3.connect(self._path) as database:
            database.execute(statement, values)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return _filled(TableWorld(tmp_path / "help.sqlite", monkeypatch))


Place = tuple[str, Any]


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.services)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A database's URL and a way to run statements in it."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'help.sqlite'}"
    else:
        url = request.getfixturevalue("postgres_url")
    engine = create_engine(url)

    def run(*statements: str) -> None:
        with engine.begin() as connection:
            for statement in statements:
                connection.execute(text(statement))

    run(
        "CREATE TABLE article (id INTEGER, title TEXT, body TEXT, url TEXT, updated_at TIMESTAMP)",
        "INSERT INTO article VALUES"
        " (1, 'First', 'Body one', 'https://example.org/1', '2026-05-01 12:00:00'),"
        " (2, 'Second', 'Body two, 100% \\:plain', NULL, '2026-05-02 12:00:00.5')",
    )
    try:
        yield url, run
    finally:
        run("DROP TABLE article")
        engine.dispose()


def crawl(place: Place, known: MemoryKnown | None = None, **options: Any) -> Crawled:
    made = {"query": QUERY, **options}
    return crawl_all(
        TableSource(TableOptions(name="help", connection="help", database_url=place[0], **made)),
        known,
    )


def contents(crawled: Crawled) -> dict[str, str]:
    return {
        uri.removeprefix(BASE): item.raw.content.decode()
        for uri, item in crawled.items.items()
        if item.raw
    }


def test_a_row_is_a_document_under_its_title_with_its_time_and_its_link(place: Place) -> None:
    crawled = crawl(place, link_column="url")
    assert contents(crawled) == {
        "1": "First\n=====\n\nBody one",
        "2": "Second\n======\n\nBody two, 100% :plain",
    }
    first, second = (item.raw for item in crawled.items.values())
    assert first is not None
    assert second is not None
    assert first.modified_at == datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert (first.link, second.link) == ("https://example.org/1", "")
    assert (first.media_type, first.charset) == ("text/plain", "utf-8")
    assert crawled.end.complete
    assert crawled.end.authoritative


def test_only_a_row_with_a_new_time_is_handed_over_again(place: Place) -> None:
    known = MemoryKnown()
    crawl(place, known)
    place[1](
        "UPDATE article SET body = 'new', updated_at = '2026-06-01 00:00:00' WHERE id = 2",
        "DELETE FROM article WHERE id = 1",
    )
    assert crawl(place, known).outcomes(BASE) == {"2": "fetched"}
    assert crawl(place, known).outcomes(BASE) == {"2": "not_modified"}


def test_without_a_time_of_update_the_text_tells(place: Place) -> None:
    known = MemoryKnown()
    query = "SELECT id, title, body FROM article ORDER BY id"
    crawl(place, known, query=query)
    place[1]("UPDATE article SET title = 'Renamed' WHERE id = 2")
    told = crawl(place, known, query=query).outcomes(BASE)
    assert told == {"1": "not_modified", "2": "fetched"}


def test_a_row_without_a_time_is_told_apart_by_its_text(place: Place) -> None:
    place[1]("UPDATE article SET updated_at = NULL")
    known = MemoryKnown()
    crawl(place, known)
    place[1]("UPDATE article SET body = 'other' WHERE id = 1")
    assert crawl(place, known).outcomes(BASE) == {"1": "fetched", "2": "not_modified"}


def test_percent_signs_and_colons_in_a_query_are_its_own(place: Place) -> None:
    query = "SELECT * FROM article WHERE title LIKE 'Fir%' AND body <> ':none' ;\n"
    assert list(contents(crawl(place, query=query))) == ["1"]


def test_a_row_without_an_id_and_a_second_one_with_an_id_fail_by_name(place: Place) -> None:
    place[1](
        "INSERT INTO article VALUES (1, 'Again', 'Later', NULL, NULL), (NULL, 'None', 'x', NULL, NULL)"
    )
    query = "SELECT * FROM article ORDER BY COALESCE(id, 9), body"
    crawled = crawl(place, query=query)
    said = {uri.removeprefix(BASE): item for uri, item in crawled.items.items()}
    assert {uri: item.outcome.value for uri, item in said.items()} == {
        "1": "fetched",
        "1?row=2": "failed",
        "2": "fetched",
        "?row=4": "failed",
    }
    assert said["1?row=2"].detail.startswith("Row 2 has the id '1' of a row before it")
    assert said["?row=4"].detail.startswith("Row 4 has no id")


def test_a_missing_column_is_named_with_those_that_there_are(place: Place) -> None:
    for options, named in (
        ({"id_column": "key"}, "id_column"),
        ({"title_column": "headline"}, "title_column"),
        ({"updated_column": "changed"}, "updated_column"),
        ({"link_column": "href"}, "link_column"),
    ):
        crawled = crawl(place, **options)
        assert crawled.items == {}
        assert named in crawled.end.problem
        assert "id, title, body, url, updated_at" in crawled.end.problem
    assert crawl(place, title_column="", updated_column="").end.complete


def test_a_query_that_fails_is_told_and_deletes_nothing(place: Place) -> None:
    known = MemoryKnown()
    crawl(place, known)
    end = crawl(place, known, query="SELECT * FROM no_such_table").end
    assert not end.complete
    assert "no_such_table" in end.problem


@pytest.mark.parametrize(
    "query",
    ["DELETE FROM article", "UPDATE article SET title = '' RETURNING *", "DROP TABLE article"],
)
def test_a_query_can_never_write(place: Place, query: str) -> None:
    assert not crawl(place, query=query).end.complete
    assert len(contents(crawl(place))) == 2


def test_many_rows_come_through_a_cursor(place: Place) -> None:
    place[1](
        "INSERT INTO article WITH RECURSIVE n(i) AS"
        " (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 500)"
        " SELECT i, 'T', 'B', NULL, NULL FROM n"
        if place[0].startswith("sqlite")
        else "INSERT INTO article SELECT i, 'T', 'B', NULL, NULL FROM generate_series(3, 500) AS i"
    )
    assert len(contents(crawl(place))) == 500


@pytest.mark.services
def test_a_query_that_fails_in_the_middle_leaves_the_listing_incomplete(postgres_url: str) -> None:
    query = "SELECT i AS id, 'T' AS title, 10 / (300 - i) AS body FROM generate_series(1, 400) AS i"
    crawled = crawl((postgres_url, None), query=query)
    assert 100 <= len(crawled.items) < 300
    assert not crawled.end.complete
    assert "division by zero" in crawled.end.problem


@pytest.mark.services
def test_a_function_that_writes_is_refused(postgres_url: str) -> None:
    query = "SELECT 1 AS id, 'T' AS title, lo_create(0)::text AS body"
    assert "read-only" in crawl((postgres_url, None), query=query).end.problem


@pytest.mark.services
def test_a_query_that_takes_too_long_is_ended_by_the_server(postgres_url: str) -> None:
    query = "SELECT 1 AS id, 'T' AS title, pg_sleep(30)::text AS body"
    end = crawl((postgres_url, None), query=query, query_timeout=0.2).end
    assert "timeout" in end.problem


def test_a_server_that_is_away_is_told_without_the_password() -> None:
    credentials = Credentials(
        "help", "postgres", "reader", "s3cret-word", host="127.0.0.1", schema="help", port=9
    )
    made = TableSource(
        TableOptions(name="help", connection="help", query=QUERY, credentials=credentials)
    )
    crawled = crawl_all(made)
    assert crawled.items == {}
    assert 'database "help" on 127.0.0.1:9' in crawled.end.problem
    assert "s3cret-word" not in crawled.end.problem
    assert "s3cret-word" not in repr(made._options)


def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "missing.sqlite"
    crawled = crawl((f"sqlite:///{path}", None))
    assert not crawled.end.complete
    assert not path.exists()


def test_a_large_row_is_told_with_its_size(place: Place) -> None:
    crawled = crawl(place, max_bytes=25)
    assert crawled.outcomes(BASE) == {"1": "fetched", "2": "too_large"}
    detail = crawled.items[f"{BASE}2"].detail
    assert re.fullmatch(r"has \d+ bytes, more than the 25 that are fetched", detail)


def test_a_database_whose_driver_is_not_installed_is_told_when_it_is_declared() -> None:
    with pytest.raises(ConfigurationError, match="driver"):
        TableSource(
            TableOptions(
                name="help", connection="help", query=QUERY, database_url="mysql+mysqldb://h/db"
            )
        )


@pytest.mark.parametrize(
    "options",
    [{"query": " ; "}, {"id_column": ""}, {"media_type": "application/pdf"}, {"connection": ""}],
)
def test_what_cannot_be_read_is_told_when_it_is_declared(options: dict[str, str]) -> None:
    with pytest.raises(ValueError):
        TableOptions(**{"name": "help", "query": QUERY, "connection": "help", **options})
