"""Wiring of the sources: from what is declared of one to the adapter that crawls it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidemark.declarations import (
    FilesDeclaration,
    GitDeclaration,
    SourceDeclaration,
    TableDeclaration,
    WebsiteDeclaration,
)
from tidemark.domain.credentials import Credentials
from tidemark.domain.model import CrawlEnd, CrawlItem
from tidemark.ports import Known, Source
from tidemark.settings import PROJECT, Settings


@dataclass(frozen=True, slots=True)
class Given:
    """What a source is made with beside its declaration.

    credentials: of the connection that it names, None when it names none.
    """

    settings: Settings
    credentials: Credentials | None


def source_of(
    declared: SourceDeclaration,
    settings: Settings,
    credentials: Callable[[str], Credentials | None],
) -> Source:
    """The source that a declaration asks for."""
    make = SOURCES.get(type(declared))
    if make is None:
        return _Undeclared()
    return make(declared, Given(settings, credentials(getattr(declared, "connection", ""))))


def _website(declared: WebsiteDeclaration, given: Given) -> Source:
    from tidemark.adapters.website import WebsiteSource
    from tidemark.adapters.website_options import WebsiteOptions

    return WebsiteSource(
        WebsiteOptions(
            url=declared.url,
            seeds=declared.seeds,
            include=declared.include,
            exclude=declared.exclude,
            max_pages=declared.max_pages,
            max_depth=declared.max_depth,
            max_queries=declared.max_queries,
            max_repeats=declared.max_repeats,
            max_bytes=given.settings.max_document_bytes,
            concurrency=declared.concurrency,
            delay=declared.delay,
            timeout=declared.timeout,
            user_agent=given.settings.user_agent,
            allow_private=declared.allow_private,
            headers=tuple(declared.headers.items()),
            use_sitemap=declared.use_sitemap,
            credentials=given.credentials,
            proxy=declared.proxy,
            ca_file=str(PROJECT / declared.ca_file) if declared.ca_file else "",
        )
    )


def _files(declared: FilesDeclaration, given: Given) -> Source:
    from tidemark.adapters.files import FilesOptions, FilesSource

    return FilesSource(
        FilesOptions(
            path=declared.path if declared.is_url else str(PROJECT / declared.path),
            include=declared.include,
            exclude=declared.exclude,
            max_bytes=given.settings.max_document_bytes,
            base_uri=declared.base_uri,
            allow_empty=declared.allow_empty,
            credentials=given.credentials,
            allow_private=declared.allow_private,
        )
    )


def _git(declared: GitDeclaration, given: Given) -> Source:
    from tidemark.adapters.git_source import GitOptions, GitSource

    is_path = "://" not in declared.url and ":" not in declared.url
    options = GitOptions(
        url=str(PROJECT / Path(declared.url).expanduser()) if is_path else declared.url,
        branch=declared.branch,
        folder=declared.folder,
        include=declared.include,
        exclude=declared.exclude,
        link=declared.link,
        max_bytes=given.settings.max_document_bytes,
        allow_private=declared.allow_private,
        credentials=given.credentials,
    )
    return GitSource(options, given.settings.home / "cache" / "git")


def _table(declared: TableDeclaration, given: Given) -> Source:
    from tidemark.adapters.table_source import TableOptions, TableSource

    return TableSource(
        TableOptions(
            name=declared.name,
            query=declared.query,
            credentials=given.credentials,
            id_column=declared.id_column,
            title_column=declared.title_column,
            body_column=declared.body_column,
            updated_column=declared.updated_column,
            link_column=declared.link_column,
            media_type=declared.media_type,
            base_uri=declared.base_uri,
            max_bytes=given.settings.max_document_bytes,
        )
    )


SOURCES: Mapping[type[SourceDeclaration], Callable[[Any, Given], Source]] = {
    WebsiteDeclaration: _website,
    FilesDeclaration: _files,
    GitDeclaration: _git,
    TableDeclaration: _table,
}
"""A new kind of source is one adapter file and one line here."""


class _Undeclared:
    """A source that the ledger knows and no one declares: it can be audited, not crawled."""

    fingerprint = ""

    def crawl(self, known: Known, limit: int | None = None) -> Iterator[CrawlItem | CrawlEnd]:
        yield CrawlEnd(
            complete=False, authoritative=False, problem="The source is not declared any more."
        )


class Emptied:
    """What a source is to be that a person wants forgotten: listed whole, and nothing in it."""

    fingerprint = ""

    def crawl(self, known: Known, limit: int | None = None) -> Iterator[CrawlItem | CrawlEnd]:
        yield CrawlEnd(complete=True, authoritative=True)
