"""The declared sources: `include/sources.yaml`, validated key by key.

Each error names the file, the line, the key and the cure. One wrong source does not hide the others.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import yaml
from croniter import croniter
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator

from tidemark.domain.errors import ConfigurationError
from tidemark.domain.model import Profile
from tidemark.settings import expand_environment

NAME = r"^[a-z0-9][a-z0-9_-]{0,40}$"


class _Declared(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SourceDeclaration(_Declared):
    """What every kind of source may say."""

    name: Annotated[str, Field(pattern=NAME)]
    description: str = ""
    schedule: Annotated[str, Field(description="Cron expression.")] = "0 3 * * *"
    timezone: str = "UTC"
    start_date: date = date(2026, 1, 1)
    owner: str = "data-platform"
    tags: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    profile: str = "docs"
    gone_after: Annotated[int, Field(ge=1, le=100)] = 2
    retries: Annotated[int, Field(ge=0, le=10)] = 2
    enabled: bool = True

    @property
    def kind_name(self) -> str:
        """The kind as it is declared; "undeclared" for what only the ledger knows."""
        return str(getattr(self, "kind", "undeclared"))

    @field_validator("schedule")
    @classmethod
    def _cron(cls, value: str) -> str:
        # Presets are left out: Airflow gives "@daily" no data interval, which backfills need.
        if len(value.split()) != 5 or not croniter.is_valid(value):
            raise ValueError("a cron expression of five fields is expected, e.g. '0 3 * * *'")
        return value

    @field_validator("timezone")
    @classmethod
    def _zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError):
            raise ValueError("an IANA timezone is expected, e.g. 'Europe/Berlin'") from None
        return value


class WebsiteDeclaration(SourceDeclaration):
    """A website, crawled from its start page and its sitemap."""

    kind: Literal["website"]
    url: Annotated[str, Field(pattern=r"^https?://[^\s/]+", description="http(s) start page.")]
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_pages: Annotated[int, Field(ge=1)] = 5_000
    max_depth: Annotated[int, Field(ge=0)] = 25
    delay: Annotated[float, Field(ge=0, le=600, description="Seconds between requests.")] = 0.2
    concurrency: Annotated[int, Field(ge=1, le=16)] = 2
    timeout: Annotated[float, Field(gt=0, le=600)] = 30.0
    use_sitemap: bool = True
    allow_private: bool = False
    headers: dict[str, str] = {}


class FilesDeclaration(SourceDeclaration):
    """A folder of files."""

    kind: Literal["files"]
    path: Annotated[str, Field(min_length=1, description="Folder; relative to the project.")]
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


AnySource = Annotated[WebsiteDeclaration | FilesDeclaration, Field(discriminator="kind")]
_SOURCE: TypeAdapter[WebsiteDeclaration | FilesDeclaration] = TypeAdapter(AnySource)


class ProfileDeclaration(_Declared):
    """A named chunking configuration; sizes in tokens of the embedded text."""

    strategy: Literal["by_title"] = "by_title"
    target_tokens: Annotated[int, Field(ge=16, le=8192)] = Profile().target_tokens
    max_tokens: Annotated[int, Field(ge=32, le=8192)] = Profile().max_tokens
    min_tokens: Annotated[int, Field(ge=0, le=4096)] = Profile().min_tokens

    def profile(self, name: str) -> Profile:
        return Profile(name, self.strategy, self.target_tokens, self.max_tokens, self.min_tokens)


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

    def profile(self, name: str) -> Profile:
        """Raises ``ConfigurationError`` for a profile that is not declared."""
        if name not in self.profiles:
            raise ConfigurationError(
                f"No profile is called {name!r}.", _did_you_mean(name, list(self.profiles))
            )
        return self.profiles[name]


def load_declarations(path: Path) -> Declarations:
    """Read the sources file.

    Raises ``ConfigurationError`` when the file itself cannot be read as sources; an error in one source
    is kept in ``broken``.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"The sources file {path} cannot be read ({error.strerror}).",
            "Create it, or set TIDEMARK_SOURCES_FILE.",
        ) from error
    return parse_declarations(text, path.name)


def parse_declarations(text: str, file: str = "sources.yaml") -> Declarations:
    """Validate the text of a sources file (see ``load_declarations``)."""
    try:
        tree = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text) or {}
    except yaml.YAMLError as error:
        raise ConfigurationError(
            f"{file} is not valid YAML: {error}", "Correct it there."
        ) from error
    locate = _Lines(file, tree)
    if not isinstance(data, dict):
        raise ConfigurationError(
            f"{file}: a mapping with the key 'sources' is expected.", "See the README."
        )
    _check_top_level(data, locate)
    defaults = data.get("defaults") or {}
    profiles = {"docs": Profile()} | {
        str(name): _profile(str(name), value, locate)
        for name, value in (data.get("profiles") or {}).items()
    }
    sources: dict[str, WebsiteDeclaration | FilesDeclaration] = {}
    broken: dict[str, ConfigurationError] = {}
    for key, value in (data.get("sources") or {}).items():
        name = str(key)
        try:
            sources[name] = _source(name, value, defaults, profiles, locate)
        except ConfigurationError as error:
            broken[name] = error
    return Declarations(sources, profiles, broken)


def _check_top_level(data: dict[str, Any], locate: "_Lines") -> None:
    known = ["defaults", "profiles", "sources"]
    for key, value in data.items():
        if key not in known:
            raise ConfigurationError(
                f"{locate((key,))}: unknown key.", _did_you_mean(str(key), known)
            )
        if value is not None and not isinstance(value, dict):
            raise ConfigurationError(
                f"{locate((key,))}: a mapping of names is expected.", "See the README."
            )


def _profile(name: str, value: object, locate: "_Lines") -> Profile:
    try:
        declared = ProfileDeclaration.model_validate(value or {})
    except ValidationError as error:
        raise _explain(error, ("profiles", name), locate, ProfileDeclaration) from None
    if not declared.min_tokens <= declared.target_tokens <= declared.max_tokens:
        raise ConfigurationError(
            f"{locate(('profiles', name))}: min_tokens <= target_tokens <= max_tokens must hold "
            f"(got {declared.min_tokens}, {declared.target_tokens}, {declared.max_tokens}).",
            "Change one of them.",
        )
    return declared.profile(name)


def _source(
    name: str,
    value: object,
    defaults: dict[str, object],
    profiles: Mapping[str, Profile],
    locate: "_Lines",
) -> WebsiteDeclaration | FilesDeclaration:
    at = ("sources", name)
    if not isinstance(value, dict):
        raise ConfigurationError(
            f"{locate(at)}: a mapping is expected.", "Give it at least 'kind' and 'url' or 'path'."
        )
    merged = {**defaults, **value, "name": name}
    expanded = {key: _expanded(item, locate((*at, str(key)))) for key, item in merged.items()}
    model = FilesDeclaration if value.get("kind") == "files" else WebsiteDeclaration
    try:
        source = _SOURCE.validate_python(expanded)
    except ValidationError as error:
        raise _explain(error, at, locate, model) from None
    if source.profile not in profiles:
        raise ConfigurationError(
            f"{locate((*at, 'profile'))}: no profile is called {source.profile!r}.",
            _did_you_mean(source.profile, list(profiles)),
        )
    return source


def _expanded(value: object, where: str) -> object:
    if isinstance(value, str):
        return expand_environment(value, where)
    if isinstance(value, dict):
        return {key: _expanded(item, where) for key, item in value.items()}
    if isinstance(value, list):
        return [_expanded(item, where) for item in value]
    return value


def _explain(
    error: ValidationError, at: tuple[str, ...], locate: "_Lines", model: type[BaseModel]
) -> ConfigurationError:
    first = error.errors(include_url=False, include_context=False)[0]
    # The discriminated union puts the kind itself into the path; the file has no such key.
    path = [str(part) for part in first["loc"] if part not in ("website", "files")]
    where = locate((*at, *path))
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        return ConfigurationError(
            f"{where}: unknown key.", _did_you_mean(path[-1], list(model.model_fields))
        )
    if first["type"] == "missing":
        return ConfigurationError(f"{where}: this key is required.", "Add it to the source.")
    if first["type"].startswith("union_tag"):
        return ConfigurationError(
            f"{locate((*at, 'kind'))}: a source needs a kind.", "Use 'website' or 'files'."
        )
    # A header may carry a credential, which must not reach a log.
    got = "" if "headers" in path else f" (got {first.get('input')!r})"
    return ConfigurationError(f"{where}: {message}{got}.", "Correct the value there.")


def _did_you_mean(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f"Did you mean {close[0]!r}?"
    return f"Known are: {', '.join(sorted(known)) or 'none'}."


class _Lines:
    """Finds the line of a key, so that an error can point at it."""

    def __init__(self, file: str, tree: yaml.Node | None) -> None:
        self._file = file
        self._tree = tree

    def __call__(self, path: tuple[object, ...]) -> str:
        node, line = self._tree, 1
        for part in path:
            found = self._child(node, str(part))
            if found is None:
                break
            line, node = found
        return f"{self._file}, line {line}, {'.'.join(str(p) for p in path)}"

    @staticmethod
    def _child(node: yaml.Node | None, key: str) -> tuple[int, yaml.Node] | None:
        if isinstance(node, yaml.MappingNode):
            for name, value in node.value:
                if name.value == key:
                    return name.start_mark.line + 1, value
        if isinstance(node, yaml.SequenceNode) and key.isdigit() and int(key) < len(node.value):
            item = node.value[int(key)]
            return item.start_mark.line + 1, item
        return None
