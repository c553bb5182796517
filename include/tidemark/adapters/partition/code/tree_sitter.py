"""Definitions in program code by tree-sitter, with the grammars that its wheels carry: nothing is fetched.

Known without importing tree-sitter: the fingerprint.
"""

import re
import tomllib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from threading import local
from time import thread_time
from typing import Any

from tidemark.domain.documents import Definition
from tidemark.domain.errors import PermanentError
from tidemark.domain.hashing import fingerprint

NAME_FIELDS = ("name", "property", "declarator", "left", "key", "function", "type")
"""Where a node keeps the name of what it defines; the first that there is."""
NAME_TYPES = frozenset({"object_reference"})
"""Nodes that are names where there is no field for one."""
DEFINITION_KINDS = ("class", "function", "type", "block")
BODY_FIELDS = ("body", "value")
BODY_TYPES = frozenset(
    {"struct_type", "interface_type", "column_definitions", "create_query", "function_body", "procedure_body"}
)  # fmt: skip
"""Nodes that are bodies where there is no field for one."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How a definition looks: its kind, and the nodes from its own down to the one that has the body.

    steps: for each level down, the types of which a child is taken. Without any the node has the body itself.
    bare: it is one without a body too; what only names something defined elsewhere has none.
    """

    kind: str
    steps: tuple[frozenset[str], ...] = ()
    bare: bool = False


Shapes = dict[str, tuple[Shape, ...]]


@dataclass(frozen=True, slots=True)
class Grammar:
    """A language's grammar.

    module, function: what gives the language.
    shapes: of definitions, by the type of their outermost node.
    attached: types of what belongs to the definition below it (comments, decorators).
    units: types of what reads as one although it may run over several lines.
    """

    module: str
    shapes: Shapes
    attached: frozenset[str]
    units: frozenset[str] = field(repr=False)
    function: str = "language"


def _grammar(table: dict[str, Any], base: Grammar) -> Grammar:
    """An entry of ``grammars.toml`` on top of the one that it extends."""
    shapes = dict(base.shapes)
    bare = table.get("bare", "").split()
    for kind in (key for key in table if key in DEFINITION_KINDS):
        for path in table[kind]:
            outermost, *steps = (part.split() for part in path.split(">"))
            for name in outermost:
                shape = Shape(kind, tuple(map(frozenset, steps)), name in bare)
                shapes[name] = (*shapes.get(name, ()), shape)
    return Grammar(
        table.get("module", base.module),
        shapes,
        base.attached.union(table.get("attached", "").split()),
        base.units.union(table.get("units", "").split()),
        table.get("language", base.function),
    )


def _grammars() -> dict[str, Grammar]:
    path = Path(__file__).with_name("grammars.toml")
    grammars = {"": Grammar("", {}, frozenset(), frozenset())}
    for name, table in tomllib.loads(path.read_text(encoding="utf-8")).items():
        grammars[name] = _grammar(table, grammars[table.get("extends", "")])
    return {name: grammar for name, grammar in grammars.items() if grammar.module}


GRAMMARS = _grammars()
"""By the canonical name of the language."""


# Code to a syntax tree, in bounded time and memory whatever the code is.

MAX_BYTES = 2 * 2**20
_READ = 1 << 16
# The parser reports every hundred steps. Code takes one to seven reports a kilobyte, dense formulas eighteen;
# what takes many more is ambiguous to the grammar at every token, and costs time and memory without end.
_FREE_REPORTS = 60
_REPORTS_A_KILOBYTE = 25
# Nesting without end takes few steps, each dear. Of the thread's own time, so that a busy machine changes
# nothing; four times what code takes with the slowest grammar.
_SECONDS, _SECONDS_A_MEGABYTE = 0.5, 1.5
# An error deep within what goes on and on (``a => b => …``) costs memory that squares with the depth, in one
# step that cannot be stopped: 1.3 GB for 12 kB. Code ends something every few words; even its prose does.
_ENDS = bytes.maketrans(b")]},", b";;;;")
_ENDLESS = 5_000
_OWN = local()
"""What each thread has of its own: the buffer that tree-sitter reads from."""


def parse(data: bytes, syntax: str) -> Any:
    """The syntax tree of UTF-8 code in a language of ``GRAMMARS``; None when the code is over a bound.

    Raises ``PermanentError`` when the grammar is not installed.
    """
    from tree_sitter import Parser

    if len(data) > MAX_BYTES or _is_endless(data):
        return None
    expired = _bound(len(data))
    try:
        return Parser(_language(syntax)).parse(
            _reader(data), progress_callback=lambda offset, _error: expired(offset)
        )
    except ValueError:  # how it says that it was stopped
        return None


def _is_endless(data: bytes) -> bool:
    return any(len(part) > _ENDLESS for part in data.translate(_ENDS).split(b";"))


def _reader(data: bytes) -> Callable[[int, object], bytearray]:
    """Hands over the bytes from an offset on, always in the same buffer.

    tree-sitter 0.26.1 never gives back what its read callback returns: bytes would stay for ever, each of
    every file. It looks at a buffer only until it asks for the next.
    """
    buffer: bytearray = _OWN.__dict__.setdefault("buffer", bytearray())

    def read(offset: int, _point: object) -> bytearray:
        buffer[:] = data[offset : offset + _READ]
        return buffer

    return read


def _bound(size: int) -> Callable[[int], bool]:
    """Told of the parser's place at each report, says when it takes too long."""
    reports = 0
    deadline = _deadline(size)

    def expired(offset: int) -> bool:
        nonlocal reports
        reports += 1
        return (
            reports > _FREE_REPORTS + _REPORTS_A_KILOBYTE * offset / 1000
            or thread_time() > deadline
        )

    return expired


def _deadline(size: int) -> float:
    return thread_time() + _SECONDS + _SECONDS_A_MEGABYTE * size / 1e6


@cache
def _language(syntax: str) -> Any:
    """Raises ``PermanentError`` when the grammar is not installed."""
    from tree_sitter import Language

    grammar = GRAMMARS[syntax]
    try:
        pointer = getattr(import_module(grammar.module), grammar.function)()
    except ImportError as error:
        raise PermanentError(
            f"The grammar {grammar.module} cannot be loaded: {error}.",
            "Run the project's set-up again (make setup).",
        ) from error
    return Language(pointer)


PARSER_VERSION = 1
"""Ours. Raise it with any change that alters definitions: all code is then chunked again."""

_CONTINUING = bytes(range(0x80, 0xC0))
"""In UTF-8, the bytes of a character after its first."""
_NAME_CHARS = 120
_INDENT = 200
_DECLARATOR = re.compile(r"(?:[\w:~$.]|<[^<>()\n]*>)+(?=\s*\()")
_WORDS = re.compile(r"(?:\A|\n)[ \t]*([A-Za-z_][\w \t]*[ \t])\Z")

_Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Match:
    """What a node of the tree is; all offsets in bytes, then in characters."""

    kind: str
    start: int
    end: int
    body: int
    name: _Span | None


class TreeSitterCodeParser:
    """A ``CodeParser`` for the languages of ``GRAMMARS``."""

    @cached_property
    def fingerprint(self) -> str:
        """Of tree-sitter, the grammars, and our own version."""
        packages = {"tree-sitter", *(g.module.replace("_", "-") for g in GRAMMARS.values())}
        return fingerprint(
            "code",
            {"version": PARSER_VERSION, "libraries": {p: _version(p) for p in sorted(packages)}},
        )

    def definitions(self, code: str, syntax: str) -> list[Definition]:
        """Definitions and units in order (``CodeParser.definitions``)."""
        data = code.encode("utf-8", "surrogatepass")
        if syntax not in GRAMMARS:
            return []
        matches, attached = _search(data, syntax)
        if not code.isascii():
            place = _characters(data, matches, attached)
            matches = [_placed(one, place) for one in matches]
            attached = [(place[start], place[end]) for start, end in attached]
        return _ordered(code, matches, _Attached(code, attached))


class _Attached:
    """Comments and decorators, by where they begin and by where they end."""

    def __init__(self, code: str, spans: Iterable[_Span]) -> None:
        self._code = code
        self._begins: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        for start, end in spans:
            trimmed = end  # the grammar of Rust counts the line's end to its comments
            while trimmed > start and code[trimmed - 1] in "\r\n":
                trimmed -= 1
            self._begins[start] = trimmed
            self._ends[trimmed] = start

    def head(self, start: int, end: int) -> int:
        """Where the declaration that starts with decorators at ``start`` begins itself."""
        while start in self._begins and self._begins[start] < end:
            start = self._begins[start]
            while start < end and self._code[start].isspace():
                start += 1
        return start

    def start(self, start: int) -> int:
        """Where what is directly above ``start``, and goes with it, begins."""
        code = self._code
        line = _line_of(code, start)
        while line:  # neither None nor the first
            above = line - 1
            while above > 0 and code[above - 1] in " \t\r":
                above -= 1
            begin = self._ends.get(above)
            line = _line_of(code, begin) if begin is not None else None
            if begin is None or line is None:
                return start
            start = begin
        return start


def _search(data: bytes, syntax: str) -> tuple[list[_Match], list[_Span]]:
    """Definitions and units, and what is attached to definitions; ([], []) when the bound is reached."""
    tree = parse(data, syntax)
    if tree is None:
        return [], []
    grammar = GRAMMARS[syntax]
    line_ends = [match.start() for match in re.finditer(b"\n", data)]
    matches: list[_Match] = []
    attached: list[_Span] = []
    # Not a query of its own making: that takes five times as long, and squares with the length of an error.
    pending = [tree.root_node]
    while pending:
        node = pending.pop()
        name = node.type
        start, end = node.byte_range
        if name in grammar.attached:
            attached.append((start, end))
        ending = bisect_left(line_ends, start)
        many_lines = ending < len(line_ends) and line_ends[ending] < end
        shaped = _shaped(node, grammar, many_lines=many_lines) if name in grammar.shapes else None
        if shaped is not None:
            matches.append(shaped)
        elif many_lines and name in grammar.units:
            matches.append(_Match("unit", start, end, end, None))
        # What is within one line parts nothing.
        if many_lines:
            pending.extend(node.named_children)
    return matches, attached


def _shaped(node: Any, grammar: Grammar, *, many_lines: bool) -> _Match | None:
    """The definition that a node is, None when its shape is not that of one."""
    for shape in grammar.shapes[node.type]:
        if shape.steps and not many_lines:
            continue  # ``const f = x => x`` is a statement like any other, and there are many
        path = _path(node, shape)
        body = _part(path[-1], BODY_FIELDS, BODY_TYPES) if path else None
        if path and (body is not None or shape.bare):
            name = next(filter(None, (_part(p, NAME_FIELDS, NAME_TYPES) for p in path)), None)
            start, end = node.byte_range
            return _Match(
                shape.kind,
                start,
                end,
                body.start_byte if body is not None else end,
                name.byte_range if name is not None else None,
            )
    return None


def _path(node: Any, shape: Shape) -> list[Any]:
    """The nodes from a definition's own to the one with its body; [] when it is not of this shape."""
    path = [node]
    for types in shape.steps:
        child = next((c for c in path[-1].named_children if c.type in types), None)
        if child is None:
            return []
        path.append(child)
    return path


def _part(node: Any, fields: Iterable[str], types: frozenset[str]) -> Any:
    for name in fields:
        child = node.child_by_field_name(name)
        if child is not None:
            return child
    return next((c for c in node.named_children if c.type in types), None) if types else None


def _characters(
    data: bytes, matches: Iterable[_Match], attached: Iterable[_Span]
) -> dict[int, int]:
    """The character offset of each byte offset that is in use, counted in one pass."""
    wanted = {offset for span in attached for offset in span}
    for one in matches:
        wanted.update((one.start, one.end, one.body, *(one.name or ())))
    place: dict[int, int] = {}
    last = characters = 0
    for offset in sorted(wanted):
        # An offset within a character, which only broken input has, counts as the one after it.
        characters += len(data[last:offset].translate(None, _CONTINUING))
        place[offset] = characters
        last = offset
    return place


def _placed(one: _Match, place: dict[int, int]) -> _Match:
    name = (place[one.name[0]], place[one.name[1]]) if one.name else None
    return _Match(one.kind, place[one.start], place[one.end], place[one.body], name)


def _ordered(code: str, matches: Iterable[_Match], attached: _Attached) -> list[Definition]:
    """In order, each once, with levels."""
    definitions: dict[int | _Span, Definition] = {}
    bodies: dict[int, _Span] = {}
    for one in sorted(matches, key=lambda f: (f.start, -f.end, f.kind == "unit")):
        span = (one.start, one.end)
        # A template and the class in it, a typedef and its struct: one definition, the wider one.
        if span in definitions or (one.kind != "unit" and one.body in bodies):
            continue
        if one.kind == "unit":
            definitions[span] = Definition(*span, 0, "", "unit", one.end, one.start)
            continue
        if one.body < one.end:
            bodies[one.body] = span
        head = attached.head(_led(code, one.start), one.end)
        start = attached.start(min(head, one.start))
        name = _name(code[slice(*one.name)][:_NAME_CHARS]) if one.name else ""
        definitions[span] = Definition(start, one.end, 0, name, one.kind, one.body, head)
    return list(_levelled(sorted(definitions.values(), key=lambda d: (d.start, -d.end))))


def _levelled(ordered: Iterable[Definition]) -> Iterator[Definition]:
    open_ends: list[int] = []
    for one in ordered:
        while open_ends and open_ends[-1] <= one.start:
            open_ends.pop()
        yield replace(one, level=len(open_ends))
        if one.kind != "unit":
            open_ends.append(one.end)


def _line_of(code: str, offset: int) -> int | None:
    """Where the line begins of which ``offset`` is the first thing; None when something is before it."""
    before = code[max(0, offset - _INDENT) : offset]
    indent = before[before.rfind("\n") + 1 :]
    if indent.strip() or len(indent) == _INDENT:
        return None
    return offset - len(indent)


def _led(code: str, start: int) -> int:
    """Where a declaration begins whose node begins after words like ``export default``."""
    before = code[max(0, start - _INDENT) : start]
    led = _WORDS.search(before)
    return start - len(led[1]) if led else start


def _name(text: str) -> str:
    """A name as written; of a C declarator (``*find(int key)``) the name in it."""
    declared = _DECLARATOR.search(text)
    return declared[0] if declared else " ".join(text.split())


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError as error:
        raise PermanentError(
            f"The package {package} is not installed.",
            "Run the project's set-up again (make setup).",
        ) from error
