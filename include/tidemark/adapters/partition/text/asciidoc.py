"""AsciiDoc to HTML blocks: titles, lists, delimited blocks, tables, admonitions; nothing is included.

The libraries for it are an alpha release or under the GPL, so what decides sections is read here, and what
else there is (inline macros, attributes) is shown by its text.
"""

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lxml import etree

from tidemark.adapters.media import canonical_syntax
from tidemark.adapters.partition.html.lines import LINE_END
from tidemark.adapters.partition.html.tree import add_block, language_code
from tidemark.domain.errors import DocumentError

_HEADING = re.compile(r"(={1,6}|#{1,6})\s+(\S.*?)(?:\s+\1)?\s*$")
_BLOCK_TITLE = re.compile(r"\.([^\s.].*)$")
_BLOCK_ATTRIBUTES = re.compile(r"\[(?!\[)([^\]]*)\]\s*$")
_BLOCK_ANCHOR = re.compile(r"\[\[([\w:.-]+)(?:,[^\]]*)?\]\]\s*$")
_ITEM = re.compile(r"\s*(\*{1,6}|-|\.{1,6}|\d{1,4}\.|[a-zA-Z]\.|<\.>|<\d{1,3}>)\s+(\S.*)$")
_TERM = re.compile(r"\s*(\S.*?)(:{2,4}|;;)(?:\s+(.*))?$")
_FENCE = re.compile(r"(-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|--|```+\s*(\S*))\s*$")
_TABLE = re.compile(r"([|,:!])={3,}\s*$")
_ATTRIBUTE = re.compile(r":(!?[\w-]+!?):(?:\s+(.*))?$")
_ADMONITION = re.compile(r"(NOTE|TIP|IMPORTANT|WARNING|CAUTION):\s+(.*)$")
_MACRO = re.compile(r"(?:include|image|video|audio|toc|ifdef|ifndef|ifeval|endif)::.*$")
_SKIPPED_LINES = re.compile(r"(?:'{3,}|<{3,}|\+)\s*$")
_VERBATIM = "-.`+"
_MAX_NESTED = 30
_CHECK = re.compile(r"\[[ x*]\]\s+")


@dataclass(slots=True)
class _Pending:
    """What stands above a block and is of it."""

    title: str = ""
    attributes: list[str] = field(default_factory=list)
    anchor: str = ""
    options: str = ""

    def take(self) -> "_Pending":
        taken = _Pending(self.title, self.attributes, self.anchor, self.options)
        self.title, self.attributes, self.anchor, self.options = "", [], "", ""
        return taken


@dataclass(frozen=True, slots=True)
class AsciiDocPage:
    """root: a ``div`` with the blocks as HTML. title: of the document, "" when it has none."""

    root: etree._Element
    title: str
    language: str | None


def read_asciidoc(text: str, name: str) -> AsciiDocPage:
    """Parse AsciiDoc; ``name`` names the document in errors. Raises ``DocumentError`` for deep nesting."""
    root = etree.Element("div")
    reader = _Reader(name)
    reader.blocks(text.expandtabs(4).split("\n"), root, 0)
    language = language_code(reader.attributes.get("lang", ""))
    return AsciiDocPage(root, reader.title, language)


class _Reader:
    def __init__(self, name: str) -> None:
        self._name = name
        self.attributes: dict[str, str] = {}
        self.title = ""
        self._inline = _Inline(self.attributes)

    def blocks(self, lines: list[str], out: etree._Element, depth: int) -> None:
        if depth > _MAX_NESTED:
            raise DocumentError("partition", f"{self._name} is nested too deeply.", "Simplify it.")
        pending = _Pending()
        paragraph: list[str] = []
        index = 0
        while index < len(lines):
            line = lines[index]
            count = self._block(lines, index, out, pending, paragraph, depth)
            if count:
                index += count
                continue
            if line.strip():
                paragraph.append(line)
            else:
                self._paragraph(paragraph, out, pending)
            index += 1
        self._paragraph(paragraph, out, pending)

    def _block(
        self, lines: list[str], index: int, out: etree._Element, pending: _Pending,
        paragraph: list[str], depth: int,
    ) -> int:  # fmt: skip
        """Read what begins at a line, and how many lines that took; 0 when nothing but text does."""
        line = lines[index]
        if line.startswith("//") and not line.startswith("////"):
            return 1
        if not paragraph:
            count = self._above(line, pending) or self._heading(lines, index, out, pending)
            if count:
                return count
        fence, table = _FENCE.match(line), _TABLE.match(line)
        if fence or table:
            end = _end_of(lines, index)
            self._paragraph(paragraph, out, pending)
            body = lines[index + 1 : end]
            if table:
                self._table(body, table[1], out, pending.take())
            elif fence:
                self._delimited(fence, body, out, pending.take(), depth)
            return end - index + 1
        if _MACRO.match(line) or _SKIPPED_LINES.match(line):
            self._paragraph(paragraph, out, pending)
            return 1
        if not paragraph and (_ITEM.match(line) or _TERM.match(line)):
            self._caption(pending.take(), out)
            return self._list(lines, index, out, depth)
        return 0

    def _above(self, line: str, pending: _Pending) -> int:
        """What is said about the next block: attributes, its title, its anchor."""
        attribute = _ATTRIBUTE.match(line)
        if attribute:
            self.attributes[attribute[1].strip("!").lower()] = (attribute[2] or "").strip()
            return 1
        anchor, title = _BLOCK_ANCHOR.match(line), _BLOCK_TITLE.match(line)
        if anchor:
            pending.anchor = anchor[1]
            return 1
        listed = _BLOCK_ATTRIBUTES.match(line)
        if listed:
            parts = [part.strip().strip('"') for part in listed[1].split(",")]
            pending.attributes, pending.options = parts, listed[1]
            named = re.search(r"#([\w:.-]+)", parts[0])
            pending.anchor = named[1] if named else pending.anchor
            return 1
        if title and not _ITEM.match(line):
            pending.title = title[1]
            return 1
        return 0

    def _heading(self, lines: list[str], index: int, out: etree._Element, pending: _Pending) -> int:
        match = _HEADING.match(lines[index])
        if match is None:
            return 0
        level, text = len(match[1]), self._inline.text(match[2])
        first = level == 1 and not self.title and len(out) == 0
        if not first and level == 1 and match[1] == "#":
            return 0
        about = pending.take()
        heading = add_block(out, f"h{level}", text)
        if about.anchor:
            heading.set("id", about.anchor)
        if not first:
            return 1
        self.title = text
        # The lines right under the title name its author and its version.
        count = 1
        while index + count < len(lines) and (line := lines[index + count]).strip():
            if _ATTRIBUTE.match(line):
                self._above(line, pending)
            elif count > 3 or _ITEM.match(line) or line.startswith(("[", ".", "=")):
                break
            count += 1
        return count

    def _paragraph(self, lines: list[str], out: etree._Element, pending: _Pending) -> None:
        if not lines:
            return
        about = pending.take()
        style = about.attributes[0].lower() if about.attributes else ""
        self._caption(about, out)
        noted = _ADMONITION.match(lines[0])
        if style.startswith(("source", "listing", "literal")) or lines[0].startswith(" "):
            self._verbatim(lines, out, about)
        elif noted or style.upper() in {"NOTE", "TIP", "IMPORTANT", "WARNING", "CAUTION"}:
            box = _admonition(noted[1] if noted else style, out)
            text = [noted[2], *lines[1:]] if noted else lines
            add_block(box, "p", self._inline.joined(text))
        elif style.startswith(("quote", "verse")):
            add_block(etree.SubElement(out, "blockquote"), "p", self._inline.joined(lines))
        else:
            add_block(out, "p", self._inline.joined(lines))
        lines.clear()

    def _caption(self, about: _Pending, out: etree._Element) -> None:
        if about.title:
            add_block(out, "p", self._inline.text(about.title)).set("class", "caption")

    def _verbatim(self, lines: list[str], out: etree._Element, about: _Pending) -> None:
        indent = min((len(x) - len(x.lstrip()) for x in lines if x.strip()), default=0)
        # Callouts are explained in the list below the code.
        body = "\n".join(line[indent:].rstrip() for line in lines)
        block = add_block(out, "pre", f"\n{body}")
        style = about.attributes[0].split("%")[0].lower() if about.attributes else ""
        language = ""
        if style in {"source", ""} and len(about.attributes) > 1:
            language = about.attributes[1]
        elif style == "source":
            language = self.attributes.get("source-language", "")
        syntax = canonical_syntax(language)
        if syntax:
            block.set("class", f"language-{syntax}")

    def _delimited(
        self,
        fence: re.Match[str],
        body: list[str],
        out: etree._Element,
        about: _Pending,
        depth: int,
    ) -> None:
        mark, style = fence[1], (about.attributes[0] if about.attributes else "")
        if mark[0] == "/":
            return
        self._caption(about, out)
        if mark == "--" and not style.lower().startswith(("source", "listing")):
            self.blocks(body, out, depth + 1)
        elif mark[0] in _VERBATIM or mark == "--":
            if mark[0] == "`" and fence[2]:
                about.attributes = ["source", fence[2]]
            if mark[0] != "+":
                self._verbatim(body, out, about)
        elif mark[0] == "_":
            self.blocks(body, etree.SubElement(out, "blockquote"), depth + 1)
        elif mark[0] == "=" and style.upper() in {"NOTE", "TIP", "IMPORTANT", "WARNING", "CAUTION"}:
            self.blocks(body, _admonition(style, out), depth + 1)
        else:
            self.blocks(body, etree.SubElement(out, "div"), depth + 1)

    def _list(self, lines: list[str], index: int, out: etree._Element, depth: int) -> int:
        """Add a list with all that hangs on it, until a blank line that no item follows.

        The number of lines that it takes.
        """
        start, holders = index, [(("", 0), out)]
        target: etree._Element | None = None
        while index < len(lines):
            line = lines[index]
            item, term = _ITEM.match(line), _TERM.match(line)
            if item or term:
                target = self._entry(holders, item, term)
                index += 1
            elif line.strip() == "+" and target is not None:
                end = _end_of_attached(lines, index + 1)
                self.blocks(lines[index + 1 : end], target, depth + 1)
                index = end
            elif not line.strip():
                after = _after_blank(lines, index, target)
                if after == index:
                    break
                index = after
            elif _opens(line) or _HEADING.match(line) or _is_above_block(line):
                break
            else:
                self._more(target, line)
                index += 1
        return max(index - start, 1)

    def _entry(
        self,
        holders: list[tuple[tuple[str, int], etree._Element]],
        item: re.Match[str] | None,
        term: re.Match[str] | None,
    ) -> etree._Element:
        """Add an item to the list of its mark, which is within the list of the item before or around it."""
        mark = item[1] if item else (term[2] if term else "")
        depth = len(mark) if mark[:1] in {"*", ".", ":"} else 0
        kind = (re.sub(r"[\w<>]", "1", mark[:1]) if item else ":", depth)
        for place, (known, _) in enumerate(holders):
            if known == kind:
                del holders[place + 1 :]
                break
        else:
            parent = holders[-1][1]
            if len(holders) > 1 and len(parent):
                parent = parent[-1]
            tag = "dl" if not item else ("ul" if mark[0] in "*-" else "ol")
            holders.append((kind, etree.SubElement(parent, tag)))
        listing = holders[-1][1]
        if item:
            return add_block(listing, "li", self._inline.text(_CHECK.sub("", item[2])))
        name, meaning_text = (term[1], term[3]) if term else ("", "")
        add_block(listing, "dt", self._inline.text(name))
        meaning = etree.SubElement(listing, "dd")
        if meaning_text:
            add_block(meaning, "p", self._inline.text(meaning_text))
        return meaning

    def _more(self, target: etree._Element | None, line: str) -> None:
        """A further line of an item's text."""
        text = self._inline.text(line.strip())
        if target is None:
            return
        if target.tag == "dd":
            if len(target) == 0:
                add_block(target, "p", text)
            else:
                target[-1].text = f"{target[-1].text or ''} {text}"
        elif len(target):
            add_block(target, "p", text)
        else:
            target.text = f"{target.text or ''} {text}"

    def _table(self, body: list[str], mark: str, out: etree._Element, about: _Pending) -> None:
        table = etree.SubElement(out, "table")
        if about.title:
            add_block(table, "caption", self._inline.text(about.title))
        _add_table(table, body, mark, about.options, self._inline.text)
        if len(table) == 0:
            out.remove(table)


def _admonition(kind: str, out: etree._Element) -> etree._Element:
    box = etree.SubElement(out, "div", {"class": "admonition"})
    add_block(box, "p", kind.capitalize()).set("class", "admonition-title")
    return box


# Lines that begin or end something.


def _opens(line: str) -> bool:
    """Whether a line begins a delimited block or a table."""
    return bool(_FENCE.match(line) or _TABLE.match(line))


def _is_above_block(line: str) -> bool:
    """Whether a line says something about the block under it."""
    return bool(
        _BLOCK_ATTRIBUTES.match(line) or _BLOCK_TITLE.match(line) or _BLOCK_ANCHOR.match(line)
    )


def _end_of(lines: list[str], index: int) -> int:
    """The line that closes the block which a line opens, the last one where none does."""
    mark = re.sub(r"^(`+).*", r"\1", lines[index].strip())
    for end in range(index + 1, len(lines)):
        if lines[end].rstrip() == mark:
            return end
    return len(lines)


def _end_of_attached(lines: list[str], index: int) -> int:
    """The line after a block that "+" attaches to an item."""
    while index < len(lines) and _is_above_block(lines[index]):
        index += 1
    if index < len(lines) and _opens(lines[index]):
        return _end_of(lines, index) + 1
    while (
        index < len(lines)
        and lines[index].strip() not in {"", "+"}
        and not _ITEM.match(lines[index])
    ):
        index += 1
    return index


def _after_blank(lines: list[str], index: int, target: etree._Element | None) -> int:
    """Where a list goes on after blank lines; ``index`` when it ends there."""
    after = index
    while after < len(lines) and not lines[after].strip():
        after += 1
    following = lines[after] if after < len(lines) else ""
    waits = target is not None and target.tag == "dd" and len(target) == 0
    goes_on = _ITEM.match(following) or _TERM.match(following) or (waits and following)
    return after if goes_on and not following.startswith("//") else index


# Tables of AsciiDoc: cells begin with a bar, on one line a row or one line each.

_CELL = re.compile(r"(?:(\d{1,3})?(?:\.(\d{1,3}))?(\+)|(\d{1,3})(\*))?[<^>.]{0,4}([aehlmsdv])?\|")
_COLUMNS = re.compile(r"cols=\"?([^\"\]]*)")


def _add_table(
    table: etree._Element, lines: list[str], mark: str, options: str, text: Callable[[str], str]
) -> None:
    """Fill ``table`` with the rows in ``lines``; ``mark`` begins its delimiter (a bar, "," or ":").

    options: the block's attributes as one text. text: reads a cell's inline marks.
    """
    blank_first = len(lines) > 1 and bool(lines[0].strip()) and not lines[1].strip()
    header = "header" in options or blank_first
    if mark in ",:":
        rows = [[(cell, 1, 1) for cell in row] for row in _separated(lines, mark)]
    else:
        rows = _in_rows(
            list(_cells(lines, "!" if mark == "!" else "|")), _width(lines, options, mark)
        )
    for number, row in enumerate(rows):
        line = etree.SubElement(table, "tr")
        for cell, columns, below in row:
            made = add_block(line, "th" if header and number == 0 else "td", text(cell.strip()))
            if columns > 1:
                made.set("colspan", str(columns))
            if below > 1:
                made.set("rowspan", str(below))


def _separated(lines: list[str], mark: str) -> Iterator[list[str]]:
    delimiter = "," if mark == "," else ":"
    try:
        yield from csv.reader([line for line in lines if line.strip()], delimiter=delimiter)
    except csv.Error:
        yield from ([line] for line in lines if line.strip())


def _width(lines: list[str], options: str, mark: str) -> int:
    """How many columns: as declared, else as many cells as the first line with any has."""
    declared = _COLUMNS.search(options)
    if declared:
        repeated = re.findall(r"(\d{1,3})\*", declared[1])
        plain = len([part for part in re.split("[,;]", declared[1]) if part.strip()])
        return sum(map(int, repeated)) or plain
    first = next((line for line in lines if mark in line), "")
    return sum(columns for _, columns, _ in _cells([first], mark))


def _cells(lines: list[str], mark: str) -> Iterator[tuple[str, int, int]]:
    """Text of each cell, and over how many columns and rows it reaches."""
    current: list[str] = []
    span = (1, 1)
    begun = False
    copies = 1
    for line in lines:
        place = 0
        if not line.strip() or len(line) > 100_000:
            continue
        for match in _CELL.finditer(line) if mark == "|" else re.finditer("!", line):
            if match.start() and line[match.start() - 1] == "\\":
                continue
            current.append(line[place : match.start()])
            if begun:
                for _ in range(copies):
                    yield " ".join(" ".join(current).split()), *span
            begun, current, place = True, [], match.end()
            span, copies = _reach(match)
        current.append(line[place:])
    if begun:
        for _ in range(copies):
            yield " ".join(" ".join(current).split()), *span


def _reach(match: re.Match[str]) -> tuple[tuple[int, int], int]:
    if match.re is not _CELL or not (match[3] or match[5]):
        return (1, 1), 1
    if match[5]:
        return (1, 1), min(int(match[4]), 200)
    return (int(match[1] or 1), int(match[2] or 1)), 1


def _in_rows(cells: list[tuple[str, int, int]], width: int) -> list[list[tuple[str, int, int]]]:
    rows: list[list[tuple[str, int, int]]] = []
    reached = 0
    for cell in cells:
        if not rows or reached >= max(width, 1):
            rows.append([])
            reached = 0
        rows[-1].append(cell)
        reached += cell[1]
    return rows


# The text of AsciiDoc's inline marks: links by their labels, words without the signs around them.

_PASS = re.compile(r"\+\+\+(.+?)\+\+\+|\bpass:\w*\[(.*?)\]|`\+(.+?)\+`")
_REFERENCE = re.compile(r"\{([\w-]{1,60})\}")
_LINK = re.compile(r"\b(?:link:|(?=(?:https?|ftp|irc|mailto):))([^\s\[\]<>]{1,2000})\[([^\]]*)\]")
_CROSS = re.compile(r"<<([^,>]{1,300})(?:,\s*([^>]{1,300}))?>>")
_XREF = re.compile(r"\bxref:([^\s\[\]]{1,300})\[([^\]]*)\]")
_INLINE_MACRO = re.compile(
    r"\b(?:kbd|btn|menu|icon|footnote|stem|latexmath|asciimath|indexterm2?):([^\s\[\]]{0,200})\[([^\]]*)\]"
)
_IMAGE = re.compile(r"\bimage:[^\s\[\]]{1,300}\[[^\]]*\]")
_ANCHOR = re.compile(r"\[\[[^\]]{1,200}\]\]|\[#[^\]]{1,200}\](?=[#*_`])")
_ROLE = re.compile(r"\[\.?[\w. -]{1,60}\](?=[#*_`]\S)")
_QUOTED = re.compile(r"(?<!\w)([*_`#]{1,2})(?=\S)([^*_`#\n]{1,1000}?)(?<=\S)\1(?!\w)")
_RAISED = re.compile(r"([\^~])(\S{1,60}?)\1")
_INDEX = re.compile(r"\(\(\([^)]{1,200}\)\)\)|\(\(([^)]{1,200})\)\)")
_SIGNS = {"(C)": "©", "(R)": "®", "(TM)": "™"}
_NAMES = {"nbsp": " ", "zwsp": "", "sp": " ", "empty": "", "plus": "+", "amp": "&", "lt": "<", "gt": ">",
          "startsb": "[", "endsb": "]", "vbar": "|", "asterisk": "*", "caret": "^", "tilde": "~",
          "backslash": "\\", "backtick": "`", "two-colons": "::", "cpp": "C++", "apos": "'"}  # fmt: skip
_LONGEST = 20_000


class _Inline:
    """Reads text with the attributes that the document has set so far."""

    def __init__(self, attributes: Mapping[str, str]) -> None:
        self._attributes = attributes

    def joined(self, lines: Sequence[str]) -> str:
        """The lines of a paragraph as one text; " +" at a line's end keeps that end."""
        text = ""
        for line in (line.strip() for line in lines if not line.startswith("//")):
            hard = line.endswith(" +")
            text += (line[:-2].rstrip() if hard else line) + (LINE_END if hard else " ")
        return self.text(text.strip(f" {LINE_END}"))

    def text(self, marked: str) -> str:
        """A text without its marks."""
        if (
            len(marked) > _LONGEST
        ):  # nobody writes such a line, and expressions may take long over it
            return marked
        kept: list[str] = []

        def keep(match: re.Match[str]) -> str:
            kept.append(next((group for group in match.groups() if group), ""))
            return f"\ufdd1{len(kept) - 1}\ufdd1"

        text = _PASS.sub(keep, marked)
        text = _REFERENCE.sub(self._referred, text)
        text = _IMAGE.sub("", text)
        text = _LINK.sub(lambda m: m[2].rstrip("^").split(",")[0] or m[1], text)
        text = _CROSS.sub(lambda m: m[2] or m[1].lstrip("#").replace("_", " ").strip(), text)
        text = _XREF.sub(lambda m: m[2] or m[1].rpartition("#")[2], text)
        text = _INLINE_MACRO.sub(
            lambda m: f"[{m[2]}]" if m[0].startswith("footnote") else m[2] or m[1], text
        )
        text = _ROLE.sub("", _ANCHOR.sub("", text))
        for _ in range(2):  # one within the other
            text = _QUOTED.sub(lambda m: m[2], text)
        text = _RAISED.sub(lambda m: m[2], text)
        text = _INDEX.sub(lambda m: m[1] or "", text)
        for sign, shown in _SIGNS.items():
            text = text.replace(sign, shown)
        text = text.replace("\\", "") if re.search(r"\\[*_`#{<\[]", text) else text
        text = re.sub("\ufdd1(\\d+)\ufdd1", lambda m: kept[int(m[1])], text)
        return re.sub(r" {2,}", " ", text).strip()

    def _referred(self, match: re.Match[str]) -> str:
        name = match[1].lower()
        value = self._attributes.get(name)
        return value if value is not None and len(value) < 500 else _NAMES.get(name, match[0])
