"""Blocks of code on a page: their text as it stands, and the language that the markup names."""

from lxml import etree

from tidemark.adapters.html_furniture import HEADINGS
from tidemark.adapters.html_pruner import drop
from tidemark.adapters.syntaxes import syntax_of_attributes

SYNTAX = "data-tm-syntax"
LINE_NUMBERS = frozenset(
    {"linenos", "linenumbers", "lineno", "linenodiv", "gutter", "line-numbers-rows"}
)
_WRAPPING = frozenset({"div", "figure", "span", "td", "tr", "tbody", "table"})
_PROSE = frozenset({"p", "ul", "ol", "dl", "section", "article", "blockquote"}) | HEADINGS
_WRAPPERS = 4
"""How far above the code a wrapper may name its language."""
_BLOCK_IN_PRE = frozenset({"div", "p", "li", "tr", "ol", "ul", "table"})


def flatten_code(element: etree._Element) -> None:
    """Code as one verbatim text: no line numbers, no copy button, a line for each block in it."""
    syntax = _syntax(element)
    if syntax:
        element.set(SYNTAX, syntax)
    _drop_controls(element)
    parts: list[str] = []
    for event, part in etree.iterwalk(element, events=("start", "end")):
        if event == "start":
            if part.tag == "br":
                parts.append("\n")
            parts.append(part.text or "")
        elif part is not element:
            if part.tag in _BLOCK_IN_PRE and not (parts and parts[-1].endswith("\n")):
                parts.append("\n")
            parts.append(part.tail or "")
    text = "".join(parts).replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ")
    for child in list(element):
        element.remove(child)
    lines = text.expandtabs(4).rstrip().split("\n")
    while lines and not lines[0].strip():
        lines = lines[1:]
    # The first and the last line end are the markup's own and are taken off again by the partitioner.
    element.text = "\n" + "\n".join(line.rstrip() for line in lines) + "\n"
    element.tag = "pre"


def _drop_controls(pre: etree._Element) -> None:
    for part in list(pre.iter("*")):
        names = set((part.get("class") or "").split())
        if part is not pre and (part.tag == "button" or names & LINE_NUMBERS):
            drop(part)


def _syntax(pre: etree._Element) -> str:
    """The language of a block of code: as itself tells, the ``code`` in it, or a wrapper around it."""
    for part in [pre, *pre.iter("code")]:
        named = syntax_of_attributes(_attributes(part), is_code=True)
        if named:
            return named
    for level, wrapper in enumerate(pre.iterancestors()):
        if level == _WRAPPERS or wrapper.tag not in _WRAPPING or _says_more(wrapper):
            break
        named = syntax_of_attributes(_attributes(wrapper), is_code=False)
        if named:
            return named
    return ""


def _says_more(wrapper: etree._Element) -> bool:
    """Whether there is prose in it: then its classes are not about the code."""
    return any(child.tag in _PROSE for child in wrapper)


def _attributes(element: etree._Element) -> dict[str, str]:
    return {str(name): str(value) for name, value in element.attrib.items()}
