"""What each kind of source may say in `include/sources.yaml`: its keys, and what their values must be.

What a source is told is checked here as far as it can be without asking it, so that nothing that is
accepted here fails in a run for its form.
"""

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import croniter
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
)

from tidemark.domain.connections import (
    check_folder,
    check_link,
    check_location,
    check_reference,
    check_repository,
    is_url,
)
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.guards import Guards
from tidemark.domain.profile import AUTO
from tidemark.domain.urls import canonical_url, has_credentials

NAME = r"^[a-z0-9][a-z0-9_-]{0,40}$"
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""Neither a database nor a file system takes these in a text."""
_RANDOM_FIELD = re.compile(r"(?<![a-z])r(?![a-z])", re.IGNORECASE)
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def _cron(value: str) -> str:
    # Presets are left out: Airflow gives "@daily" no data interval, which backfills need.
    if len(value.split()) != 5 or not value.isascii() or not croniter.is_valid(value):
        raise ValueError("a cron expression of five fields is expected, e.g. '0 3 * * *'")
    if _RANDOM_FIELD.search(value):
        raise ValueError("a random field (R) would be another time at each look; write a number")
    moment = datetime(2026, 1, 1)  # noqa: DTZ001 - any moment will do
    try:
        croniter(value, moment).get_next(datetime)
        croniter(value, moment).get_prev(datetime)
    except ValueError:
        raise ValueError("this schedule never fires; name a day that exists") from None
    return value


def _zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("an IANA timezone is expected, e.g. 'Europe/Berlin'") from None
    return value


def _url(value: str) -> str:
    if has_credentials(value):
        raise ValueError("credentials do not belong in a URL; put them in headers")
    if canonical_url(value) is None or urlsplit(value.strip()).port == 0:
        raise ValueError(
            "an http(s) URL with a valid host and port is expected, e.g. 'https://example.org/docs/'"
        )
    return value


def _location(value: str) -> str:
    """A local folder as a path (``~`` and ``file://`` resolved; a relative one stays relative), or a URL."""
    if value.lower().startswith("file://"):
        parts = urlsplit(value)
        if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
            raise ValueError("a file URL names a folder of this machine, e.g. 'file:///srv/docs'")
        value = unquote(parts.path)
    elif is_url(value):
        _checked(check_location, value, _is_store)
        return value
    try:
        expanded = str(Path(value).expanduser())
    except RuntimeError:
        raise ValueError("the home folder '~' stands for is not known; write it out") from None
    if UNSTORABLE.search(expanded):
        raise ValueError("a path cannot have this character")
    return expanded


def _checked(check: Callable[..., None], *arguments: object) -> None:
    """Ask a rule that adapters keep too; what it refuses is a wrong value here."""
    try:
        check(*arguments)
    except ConfigurationError as error:
        raise ValueError(str(error).removesuffix(".")) from None


def _is_store(scheme: str) -> bool:
    # Imported for rare schemes alone: it takes a quarter of a second, and this file is read often.
    from fsspec.registry import known_implementations

    return scheme in known_implementations


def _repository(value: str) -> str:
    _checked(check_repository, value)
    return value


def _reference(value: str) -> str:
    _checked(check_reference, value)
    return value


def _folder(value: str) -> str:
    _checked(check_folder, value)
    return value


def _link(value: str) -> str:
    _checked(check_link, value)
    return value


def _pattern(value: str) -> str:
    if "[" in value.replace("[[]", "") and "]" not in value.partition("[")[2]:
        raise ValueError("the '[' of this pattern is never closed; write '?' for a '[' itself")
    if not value.strip("/"):
        raise ValueError("this pattern names nothing; write e.g. '*.pdf', '/archive/' or '**'")
    return value


def _proxy(value: str) -> str:
    if value and urlsplit(value).scheme not in ("http", "https"):
        raise ValueError("an http(s) URL of a proxy is expected, e.g. 'http://proxy:3128'")
    return value


def _header_names(value: object) -> object:
    for position, name in enumerate(value if isinstance(value, dict) else (), 1):
        # By position: a name with a colon in it may be a whole header, its secret included.
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise ValueError(
                f"the name of header {position} is none; write it like 'Authorization: value', "
                "with letters, digits and '-' in the name"
            )
    return value


def _header_values(value: dict[str, str]) -> dict[str, str]:
    for name, text in value.items():
        if not (text.isascii() and text.isprintable() and text == text.strip()):
            raise ValueError(
                f"the value of {name!r} cannot be sent; use plain ASCII without line breaks or "
                "spaces around it"
            )
    return value


Text = Annotated[str, StringConstraints(pattern=r"\S", max_length=2_000)]
Pattern = Annotated[Text, AfterValidator(_pattern)]
Tag = Annotated[str, StringConstraints(pattern=r"\S", max_length=100)]
"""Airflow's own limit."""
_CONNECTION = r"^[A-Za-z0-9_.-]{1,200}$"
Connection = Annotated[str, Field(pattern=r"^([A-Za-z0-9_.-]{1,200})?$")]
"""The id of an Airflow Connection."""
Headers = Annotated[dict[str, str], BeforeValidator(_header_names), AfterValidator(_header_values)]


class _Declared(BaseModel):
    # Hidden: what a person gives by mistake (a URL with a password) must not reach a log.
    # Built when a source of the kind is first met: a DAG file must not pay for kinds that nobody declares.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        allow_inf_nan=False,
        defer_build=True,
    )


class GuardsDeclaration(_Declared):
    """How much may change at once before a person is asked."""

    changed_percent: Annotated[float, Field(ge=0, le=100)] = Guards().changed_percent
    shrunk_percent: Annotated[float, Field(ge=0, le=100)] = Guards().shrunk_percent
    gone_percent: Annotated[float, Field(ge=0, le=100)] = Guards().gone_percent
    changed_documents: Annotated[int | None, Field(ge=0)] = None
    shrunk_documents: Annotated[int | None, Field(ge=0)] = None
    gone_documents: Annotated[int | None, Field(ge=0)] = None
    quarantined_percent: Annotated[float, Field(ge=0, le=100)] = Guards().quarantined_percent
    quarantined_documents: Annotated[int | None, Field(ge=0)] = None
    at_least: Annotated[int, Field(ge=1)] = Guards().at_least

    @property
    def guards(self) -> Guards:
        return Guards(**self.model_dump())


class SourceDeclaration(_Declared):
    """What every kind of source may say."""

    name: Annotated[str, Field(pattern=NAME)]
    description: str = ""
    schedule: Annotated[
        str, Field(max_length=200, description="Cron expression."), AfterValidator(_cron)
    ] = "0 3 * * *"
    timezone: Annotated[str, AfterValidator(_zone)] = "UTC"
    start_date: Annotated[date, Field(ge=date(1970, 1, 1), le=date(2200, 1, 1))] = date(2026, 1, 1)
    owner: Annotated[str, Field(pattern=r"\S", max_length=250)] = "data-platform"
    tags: tuple[Tag, ...] = ()
    labels: tuple[Text, ...] = ()
    profile: str = AUTO
    profile_by_path: dict[Pattern, str] = {}
    gone_after: Annotated[int, Field(ge=1, le=100)] = 2
    guards: GuardsDeclaration = GuardsDeclaration()
    grace_days: Annotated[int, Field(ge=0, le=3650)] = 30
    retries: Annotated[int, Field(ge=0, le=10)] = 2
    enabled: bool = True

    @property
    def kind_name(self) -> str:
        """The kind as it is declared; "undeclared" for what only the ledger knows."""
        return str(getattr(self, "kind", "undeclared"))


class WebsiteDeclaration(SourceDeclaration):
    """A website, crawled from its start pages, its sitemaps and its links."""

    kind: Literal["website"]
    url: Annotated[str, Field(description="http(s) start page."), AfterValidator(_url)]
    seeds: tuple[Annotated[str, AfterValidator(_url)], ...] = ()
    include: tuple[Pattern, ...] = ()
    exclude: tuple[Pattern, ...] = ()
    max_pages: Annotated[int, Field(ge=1)] = 5_000
    max_depth: Annotated[int, Field(ge=0)] = 25
    max_queries: Annotated[int, Field(ge=1)] = 1_000
    max_repeats: Annotated[int, Field(ge=1)] = 3
    delay: Annotated[float, Field(ge=0, le=600, description="Seconds between requests.")] = 0.2
    concurrency: Annotated[int, Field(ge=1, le=16)] = 2
    timeout: Annotated[float, Field(gt=0, le=600)] = 30.0
    use_sitemap: bool = True
    allow_private: bool = False
    headers: Headers = {}
    connection: Connection = ""
    proxy: Annotated[str, AfterValidator(_proxy)] = ""
    ca_file: str = ""
    judge: bool = True


class FilesDeclaration(SourceDeclaration):
    """A folder of files, local or in any store that fsspec reads."""

    kind: Literal["files"]
    path: Annotated[
        str,
        Field(pattern=r"\S", description="Folder, relative to the project, or an fsspec URL."),
        AfterValidator(_location),
    ]
    include: tuple[Pattern, ...] = ()
    exclude: tuple[Pattern, ...] = ()
    base_uri: str = ""
    allow_empty: bool = False
    allow_private: bool = False
    connection: Connection = ""

    @property
    def is_url(self) -> bool:
        """Is the path a store's, not one of this machine?"""
        return is_url(self.path)


class GitDeclaration(SourceDeclaration):
    """The files of a git repository at a branch."""

    kind: Literal["git"]
    url: Annotated[
        str,
        Field(pattern=r"\S", description="Of the repository, or its path."),
        AfterValidator(_repository),
    ]
    branch: Annotated[str, AfterValidator(_reference)] = ""
    folder: Annotated[str, AfterValidator(_folder)] = ""
    include: tuple[Pattern, ...] = ()
    exclude: tuple[Pattern, ...] = ()
    link: Annotated[str, AfterValidator(_link)] = ""
    allow_private: bool = False
    connection: Connection = ""


class TableDeclaration(SourceDeclaration):
    """The rows of a SQL query."""

    kind: Literal["table"]
    query: Annotated[str, Field(pattern=r"\S", description="A SELECT.")]
    connection: Annotated[str, Field(pattern=_CONNECTION)]
    id_column: str = "id"
    title_column: str = "title"
    body_column: str = "body"
    updated_column: str = "updated_at"
    link_column: str = ""
    media_type: Literal["text/plain", "text/markdown", "text/html"] = "text/plain"
    base_uri: str = ""


Declaration = WebsiteDeclaration | FilesDeclaration | GitDeclaration | TableDeclaration

KINDS: Mapping[str, type[Declaration]] = {
    "website": WebsiteDeclaration,
    "files": FilesDeclaration,
    "git": GitDeclaration,
    "table": TableDeclaration,
}
"""A new kind of source is declared here, adapted in one file, and wired by one line in `wiring.py`."""
