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
