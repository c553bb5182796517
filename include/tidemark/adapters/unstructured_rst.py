"""reStructuredText to HTML through docutils; the directives and roles of Sphinx keep their text."""

import re
from typing import Any

from docutils import nodes
from docutils.core import publish_parts
from docutils.parsers.rst import Directive, directives, roles
from docutils.parsers.rst.languages import en
from docutils.utils import SystemMessage
from lxml import etree

from tidemark.adapters.html_cleaner import parse_content
from tidemark.adapters.syntaxes import canonical_syntax
from tidemark.domain.errors import DocumentError

_DIRECTIVE = re.compile(
    r"^[ \t]*\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([A-Za-z][\w:+.-]*)::", re.MULTILINE
)
_ROLE = re.compile(r":([A-Za-z][\w:+.-]*):`")
_SILENT = frozenset(
    {"toctree", "index", "currentmodule", "highlight", "tabularcolumns", "only", "meta", "plot", "image",
     "py:currentmodule", "default-domain", "module", "py:module", "include", "literalinclude", "raw",
     "contents", "sectnum"}
)  # fmt: skip
_CODE = frozenset(
    {
        "code-block",
        "sourcecode",
        "code",
        "prompt",
        "doctest",
        "testcode",
        "ipython",
        "parsed-literal",
    }
)
_SPOKEN = {"testcode": "python", "doctest": "pycon", "ipython": "pycon"}
# Without content, any other directive marks a place for references to it and shows nothing.
_DESCRIBING = re.compile(
    r"(\w+:)?(auto\w+|class|function|method|attribute|data|exception|property|decorator|staticmethod|classmethod"
    r"|option|envvar|describe|object|confval|macro|type|var|member|struct|enum)"
)
_VERSIONS = {
    "versionadded": "Added in version",
    "versionchanged": "Changed in version",
    "deprecated": "Deprecated since version",
    "versionremoved": "Removed in version",
}
_SETTINGS = {
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "_disable_config": True,
    "report_level": 5,
    "halt_level": 5,
    "doctitle_xform": False,
    "sectsubtitle_xform": False,
    "initial_header_level": 1,
    "syntax_highlight": "none",
    "embed_stylesheet": False,
    "stylesheet_path": "",
    "math_output": "LaTeX",
    "line_length_limit": 1_000_000,
    "smart_quotes": False,
    "toc_backlinks": False,
    "footnote_backlinks": False,
}


class _AnyOptions(dict[str, Any]):
    """Options of a directive that is not known: each is taken as it is."""

    def __missing__(self, name: str) -> Any:
        return directives.unchanged


class _Passing(Directive):  # type: ignore[misc]  # docutils has no types
    """A directive of which docutils knows nothing: its argument and its content stay readable."""

    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True
    option_spec = _AnyOptions({"class": directives.unchanged})  # an empty one would mean none

    def run(self) -> list[nodes.Node]:
        argument = self.arguments[0].strip() if self.arguments else ""
        if self.name in _SILENT:
            return []
        if self.name in _CODE:
            syntax = canonical_syntax(argument) or _SPOKEN.get(self.name, "")
            classes = [f"language-{syntax}"] if syntax else []
            return [nodes.literal_block("", "\n".join(self.content), classes=classes)]
        if self.name in _VERSIONS:
            return self._version(argument)
        if self.name == "seealso":
            return self._titled("See also", argument)
        if argument and (self.content or _DESCRIBING.fullmatch(self.name)):
            return self._described(argument)
        return self._inner()

    def _inner(self) -> list[nodes.Node]:
        holder = nodes.container()
        self.state.nested_parse(self.content, self.content_offset, holder)
        return list(holder.children)

    def _version(self, argument: str) -> list[nodes.Node]:
        version, _, remark = argument.partition("\n")
        number, _, more = version.partition(" ")
        said = f"{_VERSIONS[self.name]} {number}".rstrip()
        text = " ".join(f"{more} {remark}".split())
        return [nodes.paragraph("", f"{said}: {text}" if text else said), *self._inner()]

    def _titled(self, title: str, argument: str) -> list[nodes.Node]:
        box = nodes.admonition("", classes=["note"])
        box += nodes.title("", title)
        if argument:
            parsed, messages = self.state.inline_text(argument, self.lineno)
            box += nodes.paragraph("", "", *parsed, *messages)
        box.extend(self._inner())
        return [box]

    def _described(self, argument: str) -> list[nodes.Node]:
        """Something and what is said of it (a function, a setting): a term with its definition."""
        item = nodes.definition_list_item()
        for line in argument.split("\n"):
            item += nodes.term("", line.strip().rstrip("\\"))
        inner = self._inner()
        item += nodes.definition("", *(inner or [nodes.paragraph()]))
        return [nodes.definition_list("", item)]


def _role(
    _name: str, rawtext: str, text: str, *_args: Any, **_kwargs: Any
) -> tuple[list[nodes.Node], list[nodes.system_message]]:
    """What a role shows: its label, or the last part of what it points to."""
    labelled = re.match(r"(.+?)\s*<[^<>]+>$", text, re.DOTALL)
    shown = labelled[1] if labelled else text.lstrip("!")
    if shown.startswith("~"):
        shown = shown[1:].rpartition(".")[2]
    return [nodes.inline(rawtext, shown)], []


def read_rst(text: str, name: str, max_depth: int) -> etree._Element:
    """Parse reStructuredText; nothing is included, run or fetched. Raises ``DocumentError``."""
    _register_unknown(text)
    try:
        parts = publish_parts(text, writer="html5", settings_overrides=_SETTINGS)
    except (SystemMessage, RecursionError, ValueError, AttributeError) as error:
        raise DocumentError(
            "partition",
            f"{name} cannot be read as reStructuredText: {error}.",
            "Correct its markup.",
        ) from error
    return parse_content(f"<html><body>{parts['body']}</body></html>", name, max_depth)


def _register_unknown(text: str) -> None:
    for directive in sorted(set(_DIRECTIVE.findall(text)) | _SILENT | _CODE):
        known = directive.lower() in en.directives and directive not in _SILENT | _CODE
        if not known:
            directives.register_directive(directive, _Passing)
    for role in set(_ROLE.findall(text)):
        if role.lower() not in en.roles:
            roles.register_local_role(role, _role)
