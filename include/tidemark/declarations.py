"""The declared sources: `include/sources.yaml`, validated key by key.

Each error names the file, the line, the key and the cure. One wrong source does not hide the others.
What a source is told is checked here as far as it can be without asking it, so that nothing that is
accepted here fails in a run for its form.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal
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
    ValidationError,
)

from tidemark.domain.errors import ConfigurationError
from tidemark.domain.profile import AUTO, BUILT_IN, Profile, ProfileChoice
from tidemark.domain.urls import canonical_url, has_credentials
from tidemark.located_yaml import LocatedYaml, located, read_yaml
from tidemark.profile_declarations import ProfileDeclaration, choice_of
from tidemark.settings import expand_environment

NAME = r"^[a-z0-9][a-z0-9_-]{0,40}$"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
"""Neither a database nor a file system takes these in a text."""
_RANDOM_FIELD = re.compile(r"(?<![a-z])r(?![a-z])", re.IGNORECASE)
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)?(?:://|::)")


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


def _local_path(value: str) -> str:
    """The folder as a path: ``~`` and ``file://`` resolved; a relative one stays relative."""
    scheme = _SCHEME.match(value)
    if value.lower().startswith("file://"):
        parts = urlsplit(value)
        if parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
            raise ValueError("a file URL names a folder of this machine, e.g. 'file:///srv/docs'")
        value = unquote(parts.path)
    elif scheme or "::" in value:
        raise ValueError("only local folders can be read for now; mount it and give its path")
    try:
        expanded = str(Path(value).expanduser())
    except RuntimeError:
        raise ValueError("the home folder '~' stands for is not known; write it out") from None
    if _UNSTORABLE.search(expanded):
        raise ValueError("a path cannot have this character")
    return expanded


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
Tag = Annotated[str, StringConstraints(pattern=r"\S", max_length=100)]
"""Airflow's own limit."""
Headers = Annotated[dict[str, str], BeforeValidator(_header_names), AfterValidator(_header_values)]


class _Declared(BaseModel):
    # Hidden: what a person gives by mistake (a URL with a password) must not reach a log.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


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
    profile_by_path: dict[Text, str] = {}
    gone_after: Annotated[int, Field(ge=1, le=100)] = 2
    retries: Annotated[int, Field(ge=0, le=10)] = 2
    enabled: bool = True

    @property
    def kind_name(self) -> str:
        """The kind as it is declared; "undeclared" for what only the ledger knows."""
        return str(getattr(self, "kind", "undeclared"))


class WebsiteDeclaration(SourceDeclaration):
    """A website, crawled from its start page and its sitemap."""

    kind: Literal["website"]
    url: Annotated[str, Field(description="http(s) start page."), AfterValidator(_url)]
    include: tuple[Text, ...] = ()
    exclude: tuple[Text, ...] = ()
    max_pages: Annotated[int, Field(ge=1)] = 5_000
    max_depth: Annotated[int, Field(ge=0)] = 25
    delay: Annotated[float, Field(ge=0, le=600, description="Seconds between requests.")] = 0.2
    concurrency: Annotated[int, Field(ge=1, le=16)] = 2
    timeout: Annotated[float, Field(gt=0, le=600)] = 30.0
    use_sitemap: bool = True
    allow_private: bool = False
    headers: Headers = {}


class FilesDeclaration(SourceDeclaration):
    """A folder of files."""

    kind: Literal["files"]
    path: Annotated[
        str,
        Field(pattern=r"\S", description="Folder; relative to the project."),
        AfterValidator(_local_path),
    ]
    include: tuple[Text, ...] = ()
    exclude: tuple[Text, ...] = ()


_KINDS: Mapping[str, type[WebsiteDeclaration] | type[FilesDeclaration]] = {
    "website": WebsiteDeclaration,
    "files": FilesDeclaration,
}


@dataclass(frozen=True, slots=True)
class Declarations:
    """Sources and profiles by name; ``broken`` holds the errors of sources that are not valid."""

    sources: Mapping[str, WebsiteDeclaration | FilesDeclaration] = field(default_factory=dict)
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    broken: Mapping[str, ConfigurationError] = field(default_factory=dict)

    def source(self, name: str) -> WebsiteDeclaration | FilesDeclaration:
        """Raises ``ConfigurationError`` for a source that is not declared, or not valid."""
        if name in self.broken:
            raise self.broken[name]
        if name not in self.sources:
            raise ConfigurationError(
                f"No source is called {name!r}.", _did_you_mean(name, list(self.sources))
            )
        return self.sources[name]

    def choice(self, declared: SourceDeclaration) -> ProfileChoice:
        """Which profile each document of a source gets.

        Raises ``ConfigurationError`` for a profile that is not declared.
        """
        for name in (declared.profile, *declared.profile_by_path.values()):
            if name != AUTO:
                self.profile(name)
        return choice_of(declared.profile, declared.profile_by_path, self.profiles)

    def choice_named(self, name: str) -> ProfileChoice:
        """One profile for every document, or "auto". Raises ``ConfigurationError`` for an unknown name."""
        if name != AUTO:
            self.profile(name)
        return choice_of(name, {}, self.profiles)

    def profile(self, name: str) -> Profile:
        """Raises ``ConfigurationError`` for a profile that is not declared."""
        if name not in self.profiles:
            raise ConfigurationError(
                f"No profile is called {name!r}.", _did_you_mean(name, [AUTO, *self.profiles])
            )
        return self.profiles[name]


def load_declarations(path: Path) -> Declarations:
    """Read the sources file.

    Raises ``ConfigurationError`` when the file itself cannot be read as sources; an error in one source
    is kept in ``broken``.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigurationError(
            f"The sources file {path} cannot be read ({error.strerror}).",
            "Create it, or set TIDEMARK_SOURCES_FILE.",
        ) from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigurationError(
            f"{path.name}, line {line}: this is not UTF-8 text.", "Save the file as UTF-8."
        ) from None
    return parse_declarations(text, path.name)


def parse_declarations(text: str, file: str = "sources.yaml") -> Declarations:
    """Validate the text of a sources file (see ``load_declarations``).

    A text that is empty, or has only comments, declares nothing.
    """
    read = read_yaml(text, file)
    data = {} if read.data is None else read.data
    if not isinstance(data, dict):
        raise ConfigurationError(
            f"{file}: a mapping with the key 'sources' is expected.", "See the README."
        )
    broken = _repeated_keys(read)
    _check_top_level(data, read)
    defaults = data.get("defaults") or {}
    profiles = dict(BUILT_IN) | {
        name: _profile(name, value, read) for name, value in (data.get("profiles") or {}).items()
    }
    sources: dict[str, WebsiteDeclaration | FilesDeclaration] = {}
    for name, value in (data.get("sources") or {}).items():
        if name in broken:
            continue
        try:
            sources[name] = _source(name, value, defaults, profiles, read)
        except ConfigurationError as error:
            broken[name] = error
        except RecursionError:
            where = read.where(("sources", name))
            broken[name] = ConfigurationError(
                f"{where}: an alias contains itself.", "Write it out."
            )
    return Declarations(sources, profiles, broken)


def _repeated_keys(read: LocatedYaml) -> dict[str, ConfigurationError]:
    """Errors of sources with a repeated key, by their names; one that concerns all is raised."""
    broken: dict[str, ConfigurationError] = {}
    for path, line in read.repeated:
        error = ConfigurationError(
            f"{located(read.file, line, path)}: this key is there twice.", "Remove one of them."
        )
        if path[0] != "sources" or len(path) < 2:
            raise error
        broken.setdefault(path[1], error)
    return broken


def _check_top_level(data: dict[str, Any], read: LocatedYaml) -> None:
    known = ["defaults", "profiles", "sources"]
    for key, value in data.items():
        if key not in known:
            raise ConfigurationError(
                f"{read.where((key,))}: unknown key.", _did_you_mean(key, known)
            )
        if value is not None and not isinstance(value, dict):
            raise ConfigurationError(
                f"{read.where((key,))}: a mapping of names is expected.", "See the README."
            )
    known = sorted({key for model in _KINDS.values() for key in _keys(model)})
    for key in data.get("defaults") or {}:
        if key not in known:
            raise ConfigurationError(
                f"{read.where(('defaults', key))}: unknown key.", _did_you_mean(key, known)
            )


def _profile(name: str, value: object, read: LocatedYaml) -> Profile:
    at = ("profiles", name)
    if value is not None and not isinstance(value, dict):
        raise ConfigurationError(
            f"{read.where(at)}: a mapping is expected.", "Give it sizes, e.g. {max_tokens: 240}."
        )
    try:
        declared = ProfileDeclaration.model_validate({} if value is None else value)
    except ValidationError as error:
        raise _explain(error, at, read, ProfileDeclaration) from None
    if name == AUTO:
        raise ConfigurationError(
            f"{read.where(at)}: {AUTO!r} stands for the choice by content.", "Use another name."
        )
    profile = declared.profile(name)
    if not profile.min_tokens <= profile.target_tokens <= profile.max_tokens:
        raise ConfigurationError(
            f"{read.where(at)}: min_tokens <= target_tokens <= max_tokens must hold "
            f"(got {profile.min_tokens}, {profile.target_tokens}, {profile.max_tokens}).",
            "Change one of them.",
        )
    return profile


def _source(
    name: str,
    value: object,
    defaults: dict[str, object],
    profiles: Mapping[str, Profile],
    read: LocatedYaml,
) -> WebsiteDeclaration | FilesDeclaration:
    at = ("sources", name)
    if not re.fullmatch(NAME, name):
        raise ConfigurationError(
            f"{read.where(at)}: a source cannot have this name.",
            "Use up to 41 lower-case letters, digits, '-' and '_', beginning with a letter or digit.",
        )
    if not isinstance(value, dict):
        raise ConfigurationError(
            f"{read.where(at)}: a mapping is expected.",
            "Give it at least 'kind' and 'url' or 'path'.",
        )
    kind = _expanded({**defaults, **value}.get("kind"), read.where((*at, "kind")))
    model = _KINDS.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise ConfigurationError(
            f"{read.where((*at, 'kind'))}: a source needs a kind.", "Use 'website' or 'files'."
        )
    for key in value:
        if key not in _keys(model):
            raise ConfigurationError(
                f"{read.where((*at, key))}: unknown key.", _did_you_mean(key, _keys(model))
            )
    # What another kind alone knows (a delay, for a folder) is no default of this one.
    inherited = {k: v for k, v in defaults.items() if k in _keys(model) and k not in value}
    places = dict.fromkeys(value, at) | dict.fromkeys(inherited, ("defaults",))
    expanded = {
        key: _expanded(item, read.where((*places[key], key)))
        for key, item in {**inherited, **value}.items()
    }
    try:
        source = model.model_validate({**expanded, "name": name})
    except ValidationError as error:
        wrong = str(error.errors()[0]["loc"][0])
        raise _explain(error, places.get(wrong, at), read, model) from None
    wanted = {("profile",): source.profile} | {
        ("profile_by_path", pattern): name for pattern, name in source.profile_by_path.items()
    }
    for path, profile in wanted.items():
        if profile not in profiles and (profile != AUTO or len(path) > 1):
            raise ConfigurationError(
                f"{read.where((*places.get(path[0], at), *path))}: "
                f"no profile is called {profile!r}.",
                _did_you_mean(profile, [AUTO, *profiles]),
            )
    return source


def _keys(model: type[BaseModel]) -> list[str]:
    """What may be written; a source's name is its place."""
    return [key for key in model.model_fields if key != "name"]


def _expanded(value: object, where: str) -> object:
    if isinstance(value, str):
        text = expand_environment(value, where)
        if _UNSTORABLE.search(text):
            raise ConfigurationError(
                f"{where}: a NUL or half a character is in this text.", "Remove it."
            )
        return text
    if isinstance(value, dict):
        return {key: _expanded(item, where) for key, item in value.items()}
    if isinstance(value, list):
        return [_expanded(item, where) for item in value]
    return value


def _explain(
    error: ValidationError, at: tuple[str, ...], read: LocatedYaml, model: type[BaseModel]
) -> ConfigurationError:
    first = error.errors(include_url=False, include_context=False)[0]
    path = [str(part) for part in first["loc"]]
    where = read.where((*at, *path))
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        return ConfigurationError(f"{where}: unknown key.", _did_you_mean(path[-1], _keys(model)))
    if first["type"] == "missing":
        return ConfigurationError(f"{where}: this key is required.", "Add it to the source.")
    if first["type"] == "string_pattern_mismatch":
        message = "some text is expected"
    # A header or a URL may carry a credential, which must not reach a log.
    got = "" if path[0] in ("headers", "url") else f" (got {_shortened(first.get('input'))})"
    return ConfigurationError(f"{where}: {message}{got}.", "Correct the value there.")


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def _did_you_mean(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f"Did you mean {close[0]!r}?"
    return f"Known are: {', '.join(sorted(known)) or 'none'}."
