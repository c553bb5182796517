"""Markdown to HTML: CommonMark with tables, footnotes and definition lists, and the common admonitions."""

import re
from dataclasses import dataclass
from functools import lru_cache

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
    below,
    marked_headings,
    unwrapped_headings,
)

# What stands in Markdown files and is no Markdown: wiki headings, rulers, words in angle brackets.

FENCE = re.compile(r"\s{0,3}(?:>\s?)*(`{3,}|~{3,})")
_ATX = re.compile(r" {0,3}#{1,6}\s+\S")
_RAW = re.compile(r" {0,3}<(pre|script|style|textarea|!--)", re.IGNORECASE)
_RAW_ENDS = {
    "pre": "</pre>", "script": "</script>", "style": "</style>", "textarea": "</textarea>", "!--": "-->"
}  # fmt: skip
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
_TYPED_BULLET = re.compile(r"([ \t]*)([・●○■□◆◇▪•※①-⑳])[ \t]*(?=[^\s・●○■□◆◇▪•※])")
_MOST_TERMS = 8
_DEFINES = (": ", ":\t", ":   ")
_NO_TERM = frozenset("#>|-*+`~=<0123456789 \t")
_CLOSED = re.compile(r"</([A-Za-z][\w-]*)\s*>")


def with_wiki_headings(lines: list[str]) -> list[str]:
    """Wiki headings ("== History ==") and rulers with a word ("==== Body") as Markdown's own.

    A text that has these and none of Markdown's is no Markdown at heart: its long lines are paragraphs.
    """
    if not any(line.lstrip(" ").startswith("=") for line in lines):
        return lines
    prose = _outside_code(lines)
    found = marked_headings(prose, markdown=True)
    if not found:
        return lines
    unwrapped = not any(_ATX.match(line) for line in prose)
    if unwrapped:
        found |= below(unwrapped_headings(prose, found), found)
    out: list[str] = []
    for index, line in enumerate(lines):
        heading = found.get(index)
        if heading is not None:
            # A closing "#" would be read as a mark.
            text = re.sub(r"(#+)$", r"\\\1", heading.text)
            out += ["", f"{'#' * heading.level} {text}", ""]
            continue
        above = prose[index - 1] if index else ""
        if (
            unwrapped
            and len(above) > UNWRAPPED_WIDTH
            and _PARAGRAPH.match(line)
            and _PARAGRAPH.match(above)
        ):
            out.append("")
        out.append(line)
    return out


def with_placeholders(lines: list[str]) -> list[str]:
    """Keep words in angle brackets that are no tags of HTML ("git switch <branch>") as the words they are."""
    if not any("<" in line for line in lines):
        return lines
    closed = {name.lower() for line in lines if "</" in line for name in _CLOSED.findall(line)}

    def escape(found: re.Match[str]) -> str:
        name = found["name"]
        if name is None or name.lower() in _TAGS or name.lower() in closed:
            return found[0]
        return f"\\{found[0]}"

    prose = _outside_code(lines)
    return [
        _CODE_OR_TAG.sub(escape, line)
        if "<" in kept and not line.startswith(("    ", "\t"))
        else line
        for line, kept in zip(lines, prose, strict=True)
    ]


def with_blocks(lines: list[str]) -> list[str]:
    """Blocks that Markdown does not know: bullets as they are typed, several terms over one definition,
    formulas between "$$"."""
    prose = _outside_code(lines)
    out: list[str] = []
    index = 0
    while index < len(lines):
        line, kept = lines[index], prose[index]
        formula = _formula(prose, index) if kept.lstrip().startswith("$$") else 0
        terms = _terms(prose, index) if kept.startswith(_DEFINES) else 0
        if formula:
            tex = " ".join(lines[index : index + formula]).strip().strip("$").strip()
            escaped = tex.replace("&", "&amp;").replace("<", "&lt;")
            out += ["", f'<p data-tm-kind="formula">{escaped}</p>', ""]
            index += formula
            continue
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


def _formula(lines: list[str], index: int) -> int:
    """How many lines a formula between "$$" takes that begins at ``index``, 0 when there is none."""
    first = lines[index].strip()
    if len(first) > 4 and first.endswith("$$") and first.count("$$") == 2:
        return 1
    if first.count("$$") != 1:
        return 0
    for end in range(index + 1, min(index + 60, len(lines))):
        if not lines[end].strip():
            return 0
        if lines[end].strip().endswith("$$"):
            return end - index + 1
    return 0


def _terms(lines: list[str], index: int) -> int:
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


def _outside_code(lines: list[str]) -> list[str]:
    """The lines, with those of code fences and of raw HTML blocks emptied."""
    kept: list[str] = []
    fence = ""
    raw = ""
    for line in lines:
        mark = FENCE.match(line)
        opened = _RAW.match(line)
        inside = bool(fence or raw or mark or opened)
        if mark and not fence:
            fence = mark.group(1)
        elif mark and mark.group(1).startswith(fence):
            fence = ""
        if opened and not raw and not fence:
            raw = _RAW_ENDS[opened.group(1).lower()]
        if raw and raw in line.lower():
            raw = ""
        kept.append("" if inside else line)
    return kept


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
