"""What every kind of source may say in `include/sources.yaml`: its keys, and what their values must be.

A kind of source declares its own keys beside its adapter, in a class derived from ``SourceDeclaration``:
the declaration is the adapter's options. What a source is told is checked as far as it can be without
asking it, so that nothing that is accepted fails in a run for its form.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from importlib import import_module
from typing import Annotated, Any, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from croniter import croniter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from tidemark.config.settings import Settings
from tidemark.domain.connections import Credentials
from tidemark.domain.documents import CrawlEnd, CrawlItem
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.guards import Guards
from tidemark.domain.profile import AUTO
from tidemark.ports.source import Known, Source

NAME = r"^[a-z0-9][a-z0-9_-]{0,40}$"
UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""Neither a database nor a file system takes these in a text."""
_RANDOM_FIELD = re.compile(r"(?<![a-z])r(?![a-z])", re.IGNORECASE)


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


def checked(check: Callable[..., None], *arguments: object) -> None:
    """Ask a rule of the domain; what it refuses is a wrong value here."""
    try:
        check(*arguments)
    except ConfigurationError as error:
        raise ValueError(str(error).removesuffix(".")) from None


def obeys(check: Callable[[str], None]) -> AfterValidator:
    """Validates a text by a rule of the domain."""

    def validated(value: str) -> str:
        checked(check, value)
        return value

    return AfterValidator(validated)


def _pattern(value: str) -> str:
    if "[" in value.replace("[[]", "") and "]" not in value.partition("[")[2]:
        raise ValueError("the '[' of this pattern is never closed; write '?' for a '[' itself")
    if not value.strip("/"):
        raise ValueError("this pattern names nothing; write e.g. '*.pdf', '/archive/' or '**'")
    return value


Text = Annotated[str, StringConstraints(pattern=r"\S", max_length=2_000)]
Pattern = Annotated[Text, AfterValidator(_pattern)]
Tag = Annotated[str, StringConstraints(pattern=r"\S", max_length=100)]
"""Airflow's own limit."""
CONNECTION = r"^[A-Za-z0-9_.-]{1,200}$"
Connection = Annotated[str, Field(pattern=r"^([A-Za-z0-9_.-]{1,200})?$")]
"""The id of an Airflow Connection."""
INTERNAL: Any = Field(exclude=True, repr=False)
"""Marks an option that is not declared: it comes from the settings or the connection, or is for tests."""


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

    name: Annotated[str, Field(pattern=NAME)] = "source"
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

    def in_context(self, context: "SourceContext", **more: object) -> Self:
        """With what the settings and the connection say, for kinds that have these options."""
        values = {
            "credentials": context.credentials,
            "max_bytes": context.settings.max_document_bytes,
        }
        return self.model_copy(update=values | more)

    def open(self, context: "SourceContext") -> Source:
        """The source itself; what only the ledger knows can be audited, not crawled."""
        return UndeclaredSource()


@dataclass(frozen=True, slots=True)
class SourceContext:
    """What a source is opened with beside its declaration.

    credentials: of the connection that it names, None when it names none.
    """

    settings: Settings
    credentials: Credentials | None = None


class UndeclaredSource:
    """A source that the ledger knows and no one declares."""

    fingerprint = ""

    def crawl(self, known: Known, limit: int | None = None) -> Iterator[CrawlItem | CrawlEnd]:
        yield CrawlEnd(
            complete=False, authoritative=False, problem="The source is not declared any more."
        )


Kinds = Mapping[str, str]
"""Kinds of sources: their names, and where the class of their declarations is (``module:Class``)."""


def kind_of(kinds: Kinds, name: str) -> type[SourceDeclaration]:
    """The class of a kind's declarations, imported when it is first met. Raises ``KeyError``."""
    module, _, attribute = kinds[name].partition(":")
    declared: type[SourceDeclaration] = getattr(import_module(module), attribute)
    return declared
