"""What stands in Markdown files and is no Markdown: wiki headings, rulers, words in angle brackets."""

import re

from tidemark.adapters.plain_text_headings import (
    UNWRAPPED_WIDTH,
    below,
    marked_headings,
    unwrapped_headings,
)

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
