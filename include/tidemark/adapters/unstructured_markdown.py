"""Markdown to HTML: CommonMark with tables, footnotes and definition lists, and the common admonitions."""

import re
from dataclasses import dataclass
from functools import lru_cache

from lxml import etree
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.footnote import footnote_plugin

from tidemark.adapters.html_cleaner import parse_content
from tidemark.adapters.html_furniture import HEADINGS, text_of
from tidemark.adapters.html_titles import language_code
from tidemark.adapters.markdown_dialects import (
    FENCE,
    with_blocks,
    with_placeholders,
    with_wiki_headings,
)
from tidemark.adapters.syntaxes import syntax_of_info

_FRONT = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.*?)\n\1[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD = re.compile(
    r"^(title|lang|language|locale)\s*[:=]\s*(.+?)\s*$", re.MULTILINE | re.IGNORECASE
)
_SLASHES = re.compile(r"(/{3,})(?:\s+([\w-]+)(?:\s*\|\s*(.+))?)?\s*$")
_COLONS = re.compile(r"(:{3,})\s*(?:\{?([\w-]+)\}?(?:\[(.+)\]|\s+(.+))?)?\s*$")
_BANGS = re.compile(r"(?:!!!|\?\?\?\+?)\s+([\w-]+)(?:[\w \t-]*?)(?:\s+\"(.*)\")?\s*$")
_TAB = re.compile(r"===[!+]?\s+\"(.+)\"\s*$")
_ALERT = re.compile(r"((?:>\s?)+)\[!(\w+)\]\s*$")
# A line that some other program would replace by something: an include, a template's tag.
_DIRECTIVE = re.compile(r"\s*(\{\*.*\*\}|\{%.*%\}|\{!.*!\}|\[TOC\])\s*$")
_ADMONITION_NAMES = (
    "note tip warning danger info important caution hint example quote abstract summary "
    "success question failure bug attention error seealso details check todo tldr faq "
    "secondary "
)
_ADMONITIONS = frozenset(_ADMONITION_NAMES.split())
# The place where a generator would put the documentation of an object: its name is what there is.
_OBJECT = re.compile(r":::\s+([\w.]+)\s*$")
_HEADING_ID = re.compile(r"\s*\{:?\s*#([\w:.-]+)[^}]*\}\s*$")


@dataclass(frozen=True, slots=True)
class MarkdownPage:
    """The content of a Markdown file; title and language are those of its front matter."""

    root: etree._Element
    title: str
    language: str | None


def read_markdown(text: str, name: str, max_depth: int) -> MarkdownPage:
    """Parse Markdown; ``name`` names the document in errors."""
    fields: dict[str, str] = {}
    front = _FRONT.match(text)
    if front:
        fields = {key.lower(): value.strip("\"'") for key, value in _FIELD.findall(front.group(2))}
        text = text[front.end() :]
    lines = with_placeholders(with_wiki_headings(with_blocks(text.split("\n"))))
    html = _parser().render("\n".join(_admonitions(lines)))
    root = parse_content(f"<html><body>{html}</body></html>", name, max_depth)
    _give_ids(root)
    language = fields.get("lang") or fields.get("language") or fields.get("locale") or ""
    return MarkdownPage(root, fields.get("title", ""), language_code(language))


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    # At its own bound the parser drops what follows without a word; ours, on the page's depth, is an error.
    parser = MarkdownIt("commonmark", {"html": True, "maxNesting": 10_000}).enable(
        ["table", "strikethrough"]
    )
    parser.core.ruler.push("syntax", _name_syntaxes)
    return parser.use(footnote_plugin).use(deflist_plugin)


def _name_syntaxes(state: StateCore) -> None:
    """Leave of each fence's info string the language alone, by its canonical name."""
    for token in state.tokens:
        if token.type == "fence":
            token.info = syntax_of_info(token.info)


def _give_ids(root: etree._Element) -> None:
    """Headings get the fragment that sites give them: their own attribute, else a slug."""
    seen: dict[str, int] = {}
    for heading in root.iter(*HEADINGS):
        last = heading[-1] if len(heading) else None
        tail = (last.tail if last is not None else heading.text) or ""
        declared = _HEADING_ID.search(tail)
        if declared:
            rest = tail[: declared.start()]
            if last is not None:
                last.tail = rest
            else:
                heading.text = rest
        slug = declared.group(1) if declared else heading.get("id") or _slug(text_of(heading))
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        if slug:
            heading.set("id", slug if count == 0 else f"{slug}-{count}")


def _slug(text: str) -> str:
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text.lower()).strip())


def _admonitions(lines: list[str]) -> list[str]:
    """Rewrite the block syntaxes of documentation generators as HTML around Markdown."""
    out: list[str] = []
    fence = ""
    open_marks: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        mark = FENCE.match(line)
        if fence or mark:
            if mark and not fence:
                fence = mark.group(1)
            elif mark and mark.group(1).startswith(fence):
                fence = ""
            out.append(line)
            continue
        indented = _BANGS.match(line) or _TAB.match(line)
        if indented:
            index, body = _indented(lines, index)
            out += _opening(*_label(indented)) + _admonitions(body) + ["", "</div>", ""]
        elif _OBJECT.match(line) and line.split()[1].lower() not in _ADMONITIONS:
            out.append(line.split()[1])
        elif _opens_or_closes(line, open_marks, out) or _DIRECTIVE.match(line):
            continue
        else:
            alert = _ALERT.match(line)
            out += (
                [f"{alert[1]}**{alert[2].capitalize()}**", alert[1].rstrip()] if alert else [line]
            )
    return out + ["", "</div>"] * len(open_marks)


def _label(match: re.Match[str]) -> tuple[str, str]:
    if match.re is _TAB:
        return "tab", match[1]
    return match[1], match[2] if match[2] is not None else match[1].capitalize()


def _opens_or_closes(line: str, open_marks: list[str], out: list[str]) -> bool:
    """Handle a line that begins or ends a fenced admonition; ``open_marks`` is the stack of those open."""
    match = _SLASHES.match(line) or _COLONS.match(line)
    if match is None:
        return False
    mark, name = match[1], match[2]
    if name is None:
        if mark not in open_marks:
            return False
        while open_marks and open_marks.pop() != mark:
            out += ["", "</div>", ""]
        out += ["", "</div>", ""]
        return True
    if match.re is _COLONS and name.lower() not in _ADMONITIONS:
        return False
    titles = [title for title in match.groups()[2:] if title]
    open_marks.append(mark)
    out += _opening(name, titles[0] if titles else name.replace("-", " ").capitalize())
    return True


def _opening(name: str, title: str) -> list[str]:
    if not title:
        return ["", f'<div class="admonition {name}">', ""]
    escaped = title.replace("&", "&amp;").replace("<", "&lt;")
    return [
        "",
        f'<div class="admonition {name}">',
        f'<p class="admonition-title">{escaped}</p>',
        "",
    ]


def _indented(lines: list[str], index: int) -> tuple[int, list[str]]:
    """The indented block that starts at ``index``, without its indentation, and where it ends."""
    body: list[str] = []
    while index < len(lines) and (
        not lines[index].strip() or lines[index].startswith(("    ", "\t"))
    ):
        line = lines[index]
        body.append(line[4:] if line.startswith("    ") else line.lstrip("\t"))
        index += 1
    return index, body
