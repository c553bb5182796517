"""The declared sources: `include/sources.yaml`, validated key by key.

Each error names the file, the line, the key and the hint. One wrong source does not hide the others.
"""

import difflib
import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from tidemark.config.profiles import ProfileDeclaration, choice_of
from tidemark.config.settings import expand_environment
from tidemark.config.sources import (
    NAME,
    UNSTORABLE,
    GuardsDeclaration,
    Kinds,
    SourceDeclaration,
    kind_of,
)
from tidemark.domain.errors import ConfigurationError
from tidemark.domain.profile import AUTO, BUILT_IN, Profile, ProfileChoice

# YAML whose every key has a line, so that an error can point at it.
#
# Keys are the text as written (``on:`` is "on", ``1:`` is "1"), and a scalar that YAML takes for a date or
# a number but cannot read stays text: whoever validates the value refuses it, and nothing else falls.

_NO_TEXT = "(no plain text)"
"""Stands for a key that is a list or a mapping, such as a template that was not quoted."""
_QUOTED = re.compile(r"""'[^']{3,}'|"[^"]{3,}\"""")


@dataclass(frozen=True, slots=True)
class LocatedYaml:
    """A YAML document: its plain data, and where in the file each key stands.

    data: None for a file that is empty, or has only comments.
    repeated: (path, line) of each key that its mapping has already.
    """

    file: str
    data: object
    repeated: tuple[tuple[tuple[str, ...], int], ...]
    _tree: yaml.Node | None

    def where(self, path: tuple[object, ...]) -> str:
        """The file, the line and the dotted path of a key; the nearest line when it is not there."""
        node, line = self._tree, 1
        for part in path:
            child = _child(node, str(part))
            if child is None:
                break
            line, node = child
        return located(self.file, line, path)


def located(file: str, line: int, path: tuple[object, ...]) -> str:
    """How an error names a place."""
    return f"{file}, line {line}, {'.'.join(str(part) for part in path)}"


def read_yaml(text: str, file: str) -> LocatedYaml:
    """Read one document.

    Raises ``ConfigurationError`` for what is no YAML; it never quotes the text, which may hold a secret.
    """
    try:
        loader = _Loader(text)
        tree = loader.get_single_node()
        repeated = tuple(_repeated(tree, (), set()))
        is_empty = tree is None or (isinstance(tree, yaml.ScalarNode) and not tree.value)
        data = None if is_empty else loader.construct_document(tree)
    except yaml.YAMLError as error:
        raise ConfigurationError(
            f"{file}{_place(error, text)} is not valid YAML: {_problem(error)}.",
            "Correct it there; text with special characters needs quotes.",
        ) from None
    except RecursionError:
        raise ConfigurationError(
            f"{file} is nested too deeply, or an alias contains itself.", "Write it out flat."
        ) from None
    if not is_empty and data is None:
        data = False
    return LocatedYaml(file, data, repeated, tree)


class _Loader(yaml.SafeLoader):
    """A safe loader with textual keys, that keeps a scalar it cannot read as text."""

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Hashable, Any]:
        if not isinstance(node, yaml.MappingNode):
            raise yaml.constructor.ConstructorError(
                None, None, "a mapping is expected", node.start_mark
            )
        self.flatten_mapping(node)
        return {_text(key): self.construct_object(value, deep=deep) for key, value in node.value}

    def construct_or_keep(self, node: yaml.ScalarNode) -> object:
        read = yaml.SafeLoader.yaml_constructors[node.tag]
        try:
            return read(self, node)
        except (ValueError, OverflowError, LookupError, AttributeError):
            return node.value


for _kind in ("timestamp", "int", "float", "bool"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _Loader.construct_or_keep)


def _text(key: yaml.Node) -> str:
    return str(key.value) if isinstance(key, yaml.ScalarNode) else _NO_TEXT


def _repeated(
    node: yaml.Node | None, path: tuple[str, ...], seen: set[int]
) -> Iterator[tuple[tuple[str, ...], int]]:
    # An alias is the same node again; it may even contain itself.
    if node is None or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        names: set[str] = set()
        for key, value in node.value:
            name = _text(key)
            if name in names:
                yield (*path, name), key.start_mark.line + 1
            names.add(name)
            yield from _repeated(value, (*path, name), seen)
    elif isinstance(node, yaml.SequenceNode):
        for position, item in enumerate(node.value):
            yield from _repeated(item, (*path, str(position)), seen)


def _child(node: yaml.Node | None, key: str) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        # From the end: what comes from a merge ("<<") stands before the mapping's own keys.
        for name, value in reversed(node.value):
            if _text(name) == key:
                return name.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and key.isdecimal() and int(key) < len(node.value):
        item = node.value[int(key)]
        return item.start_mark.line + 1, item
    return None


def _place(error: yaml.YAMLError, text: str) -> str:
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        return f", line {mark.line + 1}, column {mark.column + 1}," if mark else ""
    if isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position]
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        return f", line {line}, column {column},"
    return ""


def _problem(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError):
        # The name of an alias or a tag is text of the file too: a password may begin with "*".
        return _QUOTED.sub("(not shown)", error.problem or "it cannot be read")
    if isinstance(error, yaml.reader.ReaderError):
        return "it has a character that is not allowed"
    return "it cannot be read"


@dataclass(frozen=True, slots=True)
class Declarations:
    """Sources and profiles by name; ``broken`` holds the errors of sources that are not valid."""

    sources: Mapping[str, SourceDeclaration] = field(default_factory=dict)
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    broken: Mapping[str, ConfigurationError] = field(default_factory=dict)

    def source(self, name: str) -> SourceDeclaration:
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


def load_declarations(path: Path, kinds: Kinds) -> Declarations:
    """Read the sources file, whose sources are of some ``kinds``.

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
    return parse_declarations(text, kinds, path.name)


def parse_declarations(text: str, kinds: Kinds, file: str = "sources.yaml") -> Declarations:
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
    _check_top_level(data, kinds, read)
    defaults = data.get("defaults") or {}
    profiles = dict(BUILT_IN) | {
        name: _profile(name, value, read) for name, value in (data.get("profiles") or {}).items()
    }
    sources: dict[str, SourceDeclaration] = {}
    for name, value in (data.get("sources") or {}).items():
        if name in broken:
            continue
        try:
            sources[name] = _source(name, value, defaults, profiles, kinds, read)
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


def _check_top_level(data: dict[str, Any], kinds: Kinds, read: LocatedYaml) -> None:
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
    defaults = data.get("defaults") or {}
    known = sorted(
        {key for kind in kinds for key in _keys(kind_of(kinds, kind))} if defaults else ()
    )
    for key in defaults:
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
    values = {} if value is None else value
    _refuse_booleans(values, ProfileDeclaration, (), _Place(at), read)
    try:
        declared = ProfileDeclaration.model_validate(values)
    except ValidationError as error:
        raise _explain(error, _Place(at), read, ProfileDeclaration) from None
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
    kinds: Kinds,
    read: LocatedYaml,
) -> SourceDeclaration:
    at = ("sources", name)
    if not re.fullmatch(NAME, name):
        raise ConfigurationError(
            f"{read.where(at)}: a source cannot have this name.",
            "Use up to 41 lower-case letters, digits, '-' and '_', beginning with a letter or digit.",
        )
    if not isinstance(value, dict):
        raise ConfigurationError(
            f"{read.where(at)}: a mapping is expected.", f"Give it at least {_needs(kinds)}."
        )
    kind = _expanded({**defaults, **value}.get("kind"), read.where((*at, "kind")))
    if not isinstance(kind, str) or kind not in kinds:
        raise ConfigurationError(
            f"{read.where((*at, 'kind'))}: a source needs a kind.",
            f"Use {' or '.join(map(repr, kinds))}, with at least {_needs(kinds)}.",
        )
    model = kind_of(kinds, kind)
    for key in value:
        if key not in _keys(model):
            raise ConfigurationError(
                f"{read.where((*at, key))}: unknown key.", _did_you_mean(key, _keys(model))
            )
    place = _Place(at, frozenset(value), _keys_of(value.get("guards")), frozenset(defaults))
    expanded = {
        key: _expanded(item, read.where((*place.of((key,)), key)))
        for key, item in _with_defaults(value, defaults, model).items()
    }
    _refuse_booleans(expanded, model, (), place, read)
    try:
        source = model.model_validate({**expanded, "name": name})
    except ValidationError as error:
        raise _explain(error, place, read, model) from None
    wanted = {("profile",): source.profile} | {
        ("profile_by_path", pattern): name for pattern, name in source.profile_by_path.items()
    }
    for path, profile in wanted.items():
        if profile not in profiles and (profile != AUTO or len(path) > 1):
            raise ConfigurationError(
                f"{read.where((*place.of(path), *path))}: no profile is called {profile!r}.",
                _did_you_mean(profile, [AUTO, *profiles]),
            )
    return source


@dataclass(frozen=True, slots=True)
class _Place:
    """Where in the file a value of a source stands: in the source itself or in the defaults.

    at: the path of the source.
    own: the keys that it has itself, and ``guards`` those of its guards.
    defaults: the keys of the defaults.
    """

    at: tuple[str, ...]
    own: frozenset[str] = frozenset()
    guards: frozenset[str] | None = None
    defaults: frozenset[str] = frozenset()

    def of(self, path: tuple[str, ...]) -> tuple[str, ...]:
        """What stands in the file before the path of a value."""
        own = path[0] in self.own
        if own and path[0] == "guards" and self.guards is not None and len(path) > 1:
            own = path[1] in self.guards
        return ("defaults",) if not own and path[0] in self.defaults else self.at


def _keys_of(value: object) -> frozenset[str] | None:
    return frozenset(value) if isinstance(value, dict) else None


def _with_defaults(
    value: dict[str, object], defaults: dict[str, object], model: type[BaseModel]
) -> dict[str, object]:
    """A source's values over the defaults; guards are inherited one by one, the rest as a whole."""
    # What another kind alone knows (a delay, for a folder) is no default of this one.
    merged = {k: v for k, v in defaults.items() if k in _keys(model)} | value
    usual, own = defaults.get("guards"), value.get("guards")
    if isinstance(usual, dict) and isinstance(own, dict):
        merged["guards"] = usual | own
    return merged


def _refuse_booleans(
    values: Mapping[str, object],
    model: type[BaseModel],
    above: tuple[str, ...],
    place: _Place,
    read: LocatedYaml,
) -> None:
    """Raises ``ConfigurationError`` for true or false (also "yes", "on") in the place of a number."""
    for key, value in values.items():
        field_info = model.model_fields.get(key)
        kind = field_info.annotation if field_info else None
        path = (*above, key)
        if isinstance(value, bool) and kind in (int, float, int | None):
            raise ConfigurationError(
                f"{read.where((*place.of(path), *path))}: a number is expected (got {value}).",
                "Correct the value there.",
            )
        if isinstance(value, dict) and isinstance(kind, type) and issubclass(kind, BaseModel):
            _refuse_booleans(value, kind, path, place, read)


def _keys(model: type[BaseModel]) -> list[str]:
    """What may be written; a source's name is its place."""
    return [key for key, info in model.model_fields.items() if key != "name" and not info.exclude]


def _expanded(value: object, where: str) -> object:
    if isinstance(value, str):
        text = expand_environment(value, where)
        if UNSTORABLE.search(text):
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
    error: ValidationError, place: _Place, read: LocatedYaml, model: type[BaseModel]
) -> ConfigurationError:
    first = error.errors(include_url=False, include_context=False)[0]
    path = tuple(str(part) for part in first["loc"] if part != "[key]")
    where = read.where((*place.of(path), *path))
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        known = _keys(GuardsDeclaration if path[0] == "guards" else model)
        return ConfigurationError(f"{where}: unknown key.", _did_you_mean(path[-1], known))
    if first["type"] == "missing":
        return ConfigurationError(f"{where}: this key is required.", "Add it to the source.")
    if first["type"] == "string_pattern_mismatch":
        message = "some text is expected"
    if first["type"] == "tuple_type":
        message = f"a list is expected, e.g. {_LISTS.get(path[0], '[docs]')}"
    if first["type"] in ("model_type", "dict_type"):
        message = "a mapping of keys to values is expected"
    # A header or a URL may carry a credential, which must not reach a log.
    got = "" if path[0] in _SECRET else f" (got {_shortened(first.get('input'))})"
    return ConfigurationError(f"{where}: {message}{got}.", "Correct the value there.")


_LISTS = {
    "include": '["*.pdf"]',
    "exclude": '["*.pdf"]',
    "seeds": '["https://example.org/guide/"]',
}
"""How a list is written, by its key."""
_SECRET = ("headers", "url", "proxy", "seeds", "path", "query")


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}…"


def _did_you_mean(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f"Did you mean {close[0]!r}?"
    return f"Known are: {', '.join(sorted(known)) or 'none'}."


def _needs(kinds: Kinds) -> str:
    """What each kind cannot do without, as a hint says it."""
    needs = {
        kind: [key for key, info in kind_of(kinds, kind).model_fields.items() if info.is_required()]
        for kind in kinds
    }
    return "; ".join(f"kind: {kind} with {' and '.join(keys)}" for kind, keys in needs.items())
