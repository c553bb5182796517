"""YAML whose every key has a line, so that an error can point at it.

Keys are the text as written (``on:`` is "on", ``1:`` is "1"), and a scalar that YAML takes for a date or
a number but cannot read stays text: whoever validates the value refuses it, and nothing else falls.
"""

import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from tidemark.domain.errors import ConfigurationError

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
            found = _child(node, str(part))
            if found is None:
                break
            line, node = found
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
