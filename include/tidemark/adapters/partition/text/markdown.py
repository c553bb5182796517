"""Markdown to HTML: CommonMark with tables, footnotes, definition lists, and what generators of sites add.

The parser is markdown-it with its plugins for footnotes and definition lists. What its other plugins get
wrong (see docs/partitioning.md) or do not know is rewritten before it, line by line.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from html import escape

from lxml import etree
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from mdit_py_plugins.deflist import deflist_plugin
from mdit_py_plugins.footnote import footnote_plugin

from tidemark.adapters.media import syntax_of_info
from tidemark.adapters.partition.html.cleaner import parse_content
from tidemark.adapters.partition.html.tree import HEADINGS, language_code, text_of
from tidemark.adapters.partition.text.plain import (
    UNWRAPPED_WIDTH,
    marked_headings,
    unwrapped_headings,
)

_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.*?)\n\1[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD = re.compile(
    r"^(title|lang|language|locale)\s*[:=]\s*(.+?)\s*$", re.MULTILINE | re.IGNORECASE
)
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
    front = _FRONT_MATTER.match(text)
    if front:
        fields = {key.lower(): value.strip("\"'") for key, value in _FIELD.findall(front[2])}
        text = text[front.end() :]
    lines = _with_placeholders(_with_wiki_headings(_with_blocks(text.split("\n"))))
    html = _parser().render("\n".join(_with_admonitions(lines)))
    root = parse_content(f"<html><body>{html}</body></html>", name, max_depth)
    _set_heading_ids(root)
    language = fields.get("lang") or fields.get("language") or fields.get("locale") or ""
    return MarkdownPage(root, fields.get("title", ""), language_code(language))


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    # At its own bound the parser drops what follows without a word; ours, on the page's depth, is an error.
    parser = MarkdownIt("commonmark", {"html": True, "maxNesting": 10_000}).enable(
        ["table", "strikethrough"]
    )
    parser.core.ruler.push("syntax", _canonical_syntaxes)
    return parser.use(footnote_plugin).use(deflist_plugin)


def _canonical_syntaxes(state: StateCore) -> None:
    """Leave of each fence's info string the language alone, by its canonical name."""
    for token in state.tokens:
        if token.type == "fence":
            token.info = syntax_of_info(token.info)


def _set_heading_ids(root: etree._Element) -> None:
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
        slug = declared[1] if declared else heading.get("id") or _slug(text_of(heading))
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        if slug:
            heading.set("id", slug if count == 0 else f"{slug}-{count}")


def _slug(text: str) -> str:
    return re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", text.lower()).strip())


# Admonitions: "::: note" and "/// note" as containers, "!!! note" by its indentation, "> [!NOTE]".

_ADMONITION_NAMES = (
    "note tip warning danger info important caution hint example quote abstract summary success question "
    "failure bug attention error seealso details check todo tldr faq secondary"
)
_ADMONITIONS = frozenset(_ADMONITION_NAMES.split())
_CONTAINERS = (
    re.compile(r"(/{3,})(?:\s+([\w-]+)(?:\s*\|\s*(.+))?)?\s*$"),
    re.compile(r"(:{3,})\s*(?:\{?([\w-]+)\}?(?:\[(.+)\]|\s+(.+))?)?\s*$"),
)
_END = ["", "</div>", ""]
_BANGS = re.compile(r"(?:!!!|\?\?\?\+?)\s+([\w-]+)(?:[\w \t-]*?)(?:\s+\"(.*)\")?\s*$")
_TAB = re.compile(r"===[!+]?\s+\"(.+)\"\s*$")
_ALERT = re.compile(r"((?:>\s?)+)\[!(\w+)\]\s*$")
# A line that some other program would replace by something: an include, a template's tag.
_DIRECTIVE = re.compile(r"\s*(\{\*.*\*\}|\{%.*%\}|\{!.*!\}|\[TOC\])\s*$")
# The place where a generator would put the documentation of an object: its name is what there is.
_OBJECT = re.compile(r":::\s+([\w.]+)\s*$")


def _opening(name: str, title: str) -> list[str]:
    box = ["", f'<div class="admonition {name}">']
    if title:
        box.append(f'<p class="admonition-title">{escape(title, quote=False)}</p>')
    return [*box, ""]


def _with_admonitions(lines: list[str]) -> list[str]:
    """Admonitions and tabs as HTML around Markdown, and alerts of quotations with their name."""
    out: list[str] = []
    fence = ""
    marks: list[str] = []
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        before, fence = fence, _fence_after(fence, line)
        bangs, tab, thing = _BANGS.match(line), _TAB.match(line), _OBJECT.match(line)
        if before or fence:
            out.append(line)
        elif bangs or tab:
            name, title = ("tab", tab[1]) if tab else _label(bangs)
            index, body = _indented(lines, index)
            out += [*_opening(name, title), *_with_admonitions(body), *_END]
        elif thing and thing[1].lower() not in _ADMONITIONS:
            out.append(thing[1])
        elif alert := _ALERT.match(line):
            out += [f"{alert[1]}**{alert[2].capitalize()}**", alert[1].rstrip()]
        elif not _DIRECTIVE.match(line):
            out += _container(line, marks) or [line]
    return out + _END[:2] * len(marks)


def _container(line: str, marks: list[str]) -> list[str]:
    """What a line makes that opens or closes a container; ``marks`` is the stack of those that are open."""
    match = next(filter(None, (pattern.match(line) for pattern in _CONTAINERS)), None)
    if match is None:
        return []
    mark, name, *titles = match.groups()
    if name is None:
        closed = marks[::-1].index(mark) + 1 if mark in marks else 0
        del marks[len(marks) - closed :]
        return _END * closed
    if mark[0] == ":" and name.lower() not in _ADMONITIONS:
        return []
    marks.append(mark)
    return _opening(name, next(filter(None, titles), name.replace("-", " ").capitalize()))


def _label(bangs: re.Match[str] | None) -> tuple[str, str]:
    name, title = bangs.groups() if bangs else ("", "")
    return name, title if title is not None else name.capitalize()


def _indented(lines: list[str], index: int) -> tuple[int, list[str]]:
    """The indented block that starts at ``index``, without its indentation, and where it ends."""
    body: list[str] = []
    for line in lines[index:]:
        if line.strip() and not line.startswith(("    ", "\t")):
            break
        body.append(line[4:] if line.startswith("    ") else line.lstrip("\t"))
    return index + len(body), body


# What stands in Markdown files and is no Markdown.

_FENCE = re.compile(r"\s{0,3}(?:>\s?)*(`{3,}|~{3,})")
_RAW = re.compile(r" {0,3}<(pre|script|style|textarea|!--)", re.IGNORECASE)
_RAW_ENDS = {"!--": "-->"}
_ATX = re.compile(r" {0,3}#{1,6}\s+\S")
_PARAGRAPH = re.compile(r" {0,3}[\w\"'“‘(<](?!.* \| )")
_TAG_NAMES = (
    "a abbr acronym address applet area article aside audio b base basefont bdi bdo bgsound big "
    "blink blockquote body br button canvas caption center circle cite code col colgroup data "
    "datalist dd defs del details dfn dialog dir div dl dt em embed fieldset figcaption figure font "
    "footer form frame frameset g h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe image img "
    "input ins isindex kbd keygen label legend li line link listing main map mark marquee math menu "
    "menuitem meta meter nav nobr noembed noframes noscript object ol optgroup option output p param "
    "path picture plaintext polygon polyline portal pre progress q rb rect rp rt rtc ruby s samp "
    "script search section select slot small source spacer span strike strong style sub summary sup "
    "svg table tbody td template text textarea tfoot th thead time title tr track tt u ul use var "
    "video wbr xmp "
)
_TAGS = frozenset(_TAG_NAMES.split())
_CODE_OR_TAG = re.compile(
    r"(?P<ticks>`+)[^`].*?(?<!`)(?P=ticks)(?!`)|(?<!\\)<(?P<name>[A-Za-z][\w-]*)>"
)
_CLOSED = re.compile(r"</([A-Za-z][\w-]*)\s*>")
_TYPED_BULLET = re.compile(r"([ \t]*)([・●○■□◆◇▪•※①-⑳])[ \t]*(?=[^\s・●○■□◆◇▪•※])")
_MOST_TERMS = 8
_MOST_FORMULA_LINES = 60
_DEFINES = (": ", ":\t")
_NO_TERM = frozenset("#>|-*+`~=<0123456789 \t")


def _fence_after(fence: str, line: str) -> str:
    """The mark of the code fence that is open after a line, "" for none; ``fence`` is that before it."""
    mark = _FENCE.match(line)
    if mark is None:
        return fence
    if not fence:
        return mark[1]
    return "" if mark[1].startswith(fence) else fence


def _outside_code(lines: list[str]) -> list[str]:
    """The lines, with those of code fences and of raw HTML blocks emptied."""
    kept: list[str] = []
    fence = raw = ""
    for line in lines:
        before, fence = fence, _fence_after(fence, line)
        opened = _RAW.match(line)
        kept.append("" if before or fence or raw or opened else line)
        if opened and not raw and not fence:
            name = opened[1].lower()
            raw = _RAW_ENDS.get(name, f"</{name}>")
        if raw and raw in line.lower():
            raw = ""
    return kept


def _with_wiki_headings(lines: list[str]) -> list[str]:
    """Wiki headings ("== History ==") and rulers with a word ("==== Body") as Markdown's own.

    A text that has these and none of Markdown's is no Markdown at heart: its long lines are paragraphs.
    """
    if not any(line.lstrip(" ").startswith("=") for line in lines):
        return lines
    prose = _outside_code(lines)
    headings = marked_headings(prose, markdown=True)
    if not headings:
        return lines
    unwrapped = not any(_ATX.match(line) for line in prose)
    if unwrapped:
        headings |= unwrapped_headings(prose, headings)
    out: list[str] = []
    for index, line in enumerate(lines):
        heading, above = headings.get(index), prose[index - 1] if index else ""
        if heading is not None:
            # A closing "#" would be read as a mark.
            text = re.sub(r"(#+)$", r"\\\1", heading.text)
            out += ["", f"{'#' * heading.level} {text}", ""]
            continue
        long = unwrapped and len(above) > UNWRAPPED_WIDTH
        if long and _PARAGRAPH.match(line) and _PARAGRAPH.match(above):
            out.append("")
        out.append(line)
    return out


def _with_placeholders(lines: list[str]) -> list[str]:
    """Keep words in angle brackets that are no tags of HTML ("git switch <branch>") as the words they are."""
    if not any("<" in line for line in lines):
        return lines
    tags = _TAGS | {
        name.lower() for line in lines if "</" in line for name in _CLOSED.findall(line)
    }

    def escaped(match: re.Match[str]) -> str:
        name = match["name"]
        return match[0] if name is None or name.lower() in tags else f"\\{match[0]}"

    return [
        _CODE_OR_TAG.sub(escaped, line)
        if "<" in kept and not line.startswith(("    ", "\t"))
        else line
        for line, kept in zip(lines, _outside_code(lines), strict=True)
    ]


def _with_blocks(lines: list[str]) -> list[str]:
    """Bullets as they are typed, several terms over one definition, formulas between "$$"."""
    prose = _outside_code(lines)
    out: list[str] = []
    index = 0
    while index < len(lines):
        line, kept = lines[index], prose[index]
        length = _formula_length(prose, index) if kept.lstrip().startswith("$$") else 0
        if length:
            tex = " ".join(lines[index : index + length]).strip().strip("$").strip()
            out += ["", f'<p data-tm-kind="formula">{escape(tex, quote=False)}</p>', ""]
            index += length
            continue
        terms = _terms_above(prose, index) if kept.startswith(_DEFINES) else 0
        if terms:
            block = out[-terms:]
            del out[-terms:]
            for term in block[:-1]:
                # A definition that nobody sees, so that each term is one.
                out += [term, ": \u2060", ""]
            out.append(block[-1])
        bullet = _TYPED_BULLET.match(kept)
        if bullet and not kept.startswith("    "):
            sign = bullet[2] if bullet[2] in "※①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳" else ""
            line = f"{bullet[1]}- {sign}{line[bullet.end() :]}"
            if index and prose[index - 1].strip() and not _TYPED_BULLET.match(prose[index - 1]):
                out.append("")
        out.append(line)
        index += 1
    return out


def _formula_length(lines: list[str], index: int) -> int:
    """How many lines a formula between "$$" takes that begins at ``index``, 0 when there is none."""
    first = lines[index].strip()
    if len(first) > 4 and first.endswith("$$") and first.count("$$") == 2:
        return 1
    if first.count("$$") != 1:
        return 0
    for length, line in enumerate(lines[index + 1 : index + _MOST_FORMULA_LINES], 2):
        if not line.strip():
            return 0
        if line.strip().endswith("$$"):
            return length
    return 0


def _terms_above(lines: list[str], index: int) -> int:
    """How many terms stand right above a definition; 0 for a single one, or for a paragraph."""
    first = index
    while 0 < first > index - _MOST_TERMS - 1 and lines[first - 1].strip():
        if lines[first - 1].startswith(_DEFINES):
            break
        first -= 1
    terms = lines[first:index]
    if not 2 <= len(terms) <= _MOST_TERMS or any(
        line[:1] in _NO_TERM or len(line) > 60 for line in terms
    ):
        return 0
    return 0 if any(line.rstrip().endswith((".", ",", ";", ":")) for line in terms) else len(terms)
