"""reStructuredText to HTML through docutils; the directives and roles of Sphinx keep their text."""

import re
from typing import Any

from docutils import nodes
from docutils.core import publish_parts
from docutils.parsers.rst import Directive, directives, roles
from docutils.parsers.rst.directives.misc import Class
from docutils.parsers.rst.languages import en
from docutils.utils import SystemMessage
from lxml import etree

from tidemark.adapters.media import canonical_syntax
from tidemark.adapters.partition.html.cleaner import parse_content
from tidemark.adapters.partition.html.tree import drop
from tidemark.domain.errors import DocumentError

_DIRECTIVE = re.compile(
    r"^[ \t]*\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([A-Za-z][\w:+.-]*)::", re.MULTILINE
)
_ROLE = re.compile(r":([A-Za-z][\w:+.-]*):`")
_SILENT = frozenset(
    {"toctree", "index", "currentmodule", "tabularcolumns", "only", "meta", "plot", "image",
     "py:currentmodule", "default-domain", "default-role", "program", "include", "literalinclude", "raw",
     "contents", "sectnum"}
)  # fmt: skip
_CODE = frozenset(
    {"code-block", "sourcecode", "code", "prompt", "doctest", "testcode", "ipython", "parsed-literal"}
)  # fmt: skip
_OURS = _SILENT | _CODE | {"class", "highlight"}
"""Names that docutils knows too, or not at all, and that are read here."""
_IMPLIED_SYNTAX = {"testcode": "python", "doctest": "pycon", "ipython": "pycon"}
# Without content, any other directive marks a place for references to it and shows nothing.
_DESCRIBING = re.compile(
    r"\w+:\w+|auto\w+|class|function|method|attribute|data|exception|property|decorator|decoratormethod|staticmethod"
    r"|classmethod|option|envvar|describe|object|confval|setting|signal|command|macro|type|var|member|struct|enum|module"
)
_MARKING = frozenset({"setting", "signal", "command", "module", "py:module"})
"""Marks for references: what they name mostly stands in the heading right under them."""
_SIGNATURE = re.compile(r"[A-Z(.\[]")
"""What the name of a class or its parameters have, and the classes of style sheets do not."""
_SPHINX = re.compile(
    r"^[ \t]*\.\. (?:(?:py:)?(?:module|method|function|attribute|exception|currentmodule|data)|auto\w+"
    r"|toctree|versionadded|versionchanged)::|:(?:py:)?(?:class|meth|func|mod|ref|attr|exc|doc):`",
    re.MULTILINE,
)
_NEAR_LINES = 12
_HIGHLIGHT = "tm-highlight"
_NO_SYNTAX = "tm-plain"
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
        if self.name == "highlight":
            syntax = canonical_syntax(argument)
            return [
                nodes.container(classes=[_HIGHLIGHT, *([f"language-{syntax}"] if syntax else [])])
            ]
        if self.name in _CODE:
            return [self._code(argument)]
        if self.name in _VERSIONS:
            return self._version(argument)
        if self.name == "seealso":
            return self._titled("See also", argument)
        if self.name == "class" and not self._is_signature(argument):
            styled: list[nodes.Node] = Class.run(self)  # the one of docutils: how something looks
            return styled
        if argument and self.content:
            return self._described(argument)
        if argument and _DESCRIBING.fullmatch(self.name):
            repeated = self.name in _MARKING and self._is_repeated_below(argument)
            return [] if repeated else self._described(argument)
        return self._inner()

    def _code(self, argument: str) -> nodes.literal_block:
        syntax = canonical_syntax(argument) or _IMPLIED_SYNTAX.get(self.name, "")
        classes = [f"language-{syntax}"] if syntax else []
        if self.name == "parsed-literal" or (argument and not syntax):
            classes = [_NO_SYNTAX]
        return nodes.literal_block("", "\n".join(self.content), classes=classes)

    def _is_signature(self, argument: str) -> bool:
        """Whether the argument of ``class`` is a class that is described, as in Sphinx."""
        described = getattr(self.state.document.settings, "tidemark_sphinx", False)
        return bool(described or _SIGNATURE.search(argument))

    def _is_repeated_below(self, argument: str) -> bool:
        """Whether what follows says the name itself, as the heading under a mark for references does."""
        source, offset = self.state_machine.input_lines, self.state_machine.line_offset + 1
        near = [line.strip() for line in source[offset : offset + _NEAR_LINES]]
        return any(argument in line for line in near if line and not line.startswith(".. "))

    def _inner(self) -> list[nodes.Node]:
        holder = nodes.container()
        memo = self.state.memo
        outside = memo.title_styles, memo.section_level
        # Headings in the content have their own order; docutils would drop them with all their text.
        memo.title_styles, memo.section_level = [], 0
        try:
            self.state.nested_parse(self.content, self.content_offset, holder, match_titles=True)
        finally:
            memo.title_styles, memo.section_level = outside
        return list(holder.children)

    def _version(self, argument: str) -> list[nodes.Node]:
        version, _, remark = argument.partition("\n")
        number, _, more = version.partition(" ")
        change = f"{_VERSIONS[self.name]} {number}".rstrip()
        text = " ".join(f"{more} {remark}".split())
        return [nodes.paragraph("", f"{change}: {text}" if text else change), *self._inner()]

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
        for signature in _signatures(argument):
            item += nodes.term("", signature)
        synopsis = self.options.get("synopsis", "")
        inner = [nodes.paragraph("", synopsis)] if synopsis else []
        inner += _fields_as_paragraphs(self._inner())
        item += nodes.definition("", *(inner or [nodes.paragraph()]))
        return [nodes.definition_list("", item)]


def _signatures(argument: str) -> list[str]:
    """The signatures of one description; one over several lines is one."""
    signatures: list[str] = []
    for line in re.sub(r"\\\n\s*", "", argument).split("\n"):
        if signatures and (signatures[-1].count("(") > signatures[-1].count(")")):
            signatures[-1] += f" {line.strip()}"
        elif line.strip():
            signatures.append(line.strip())
    return signatures


def _fields_as_paragraphs(inner: list[nodes.Node]) -> list[nodes.Node]:
    """Fields (":param name: …") as paragraphs of what they describe: each is no entry of its own."""
    out: list[nodes.Node] = []
    for node in inner:
        if not isinstance(node, nodes.field_list):
            out.append(node)
            continue
        for field in node:
            name, body = field[0], list(field[1])
            first = body.pop(0) if body and isinstance(body[0], nodes.paragraph) else None
            inline = list(first.children) if first is not None else []
            label = nodes.Text(f"{name.astext()}: " if inline else f"{name.astext()}:")
            out += [nodes.paragraph("", "", label, *inline), *body]
    return out


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
        settings = _SETTINGS | {"tidemark_sphinx": bool(_SPHINX.search(text))}
        parts = publish_parts(text, writer="html5", settings_overrides=settings)
    except (SystemMessage, RecursionError, ValueError, AttributeError) as error:
        raise DocumentError(
            "partition",
            f"{name} cannot be read as reStructuredText: {error}.",
            "Correct its markup.",
        ) from error
    root = parse_content(f"<html><body>{parts['body']}</body></html>", name, max_depth)
    _name_syntaxes(root)
    return root


def _name_syntaxes(root: etree._Element) -> None:
    """Blocks of code take the language that the last ``highlight`` above them names."""
    named = ""
    for element in list(root.iter("div", "pre")):
        classes = (element.get("class") or "").split()
        if _HIGHLIGHT in classes:
            named = element.get("lang") or ""  # what docutils writes for "language-python"
            drop(element)
        elif element.tag == "pre" and named and "literal-block" in classes:
            element.set("lang", element.get("lang") or ("" if _NO_SYNTAX in classes else named))


def _register_unknown(text: str) -> None:
    for directive in sorted(set(_DIRECTIVE.findall(text)) | _OURS):
        known = directive.lower() in en.directives and directive not in _OURS
        if not known:
            directives.register_directive(directive, _Passing)
    for role in set(_ROLE.findall(text)):
        if role.lower() not in en.roles:
            roles.register_local_role(role, _role)
