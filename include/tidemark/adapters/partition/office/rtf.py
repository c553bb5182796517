"""RTF to Elements: styles and outline levels are its headings, list marks its items, rows its tables."""

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from lxml import etree

from tidemark.adapters.partition.formats import damaged
from tidemark.adapters.partition.html.lines import LINE_END
from tidemark.adapters.partition.html.reader import elements_of
from tidemark.adapters.partition.html.tree import add_block
from tidemark.adapters.partition.titles import sensible_title
from tidemark.domain.documents import ElementKind, PartitionedDocument

# Control words by what they do to a reader of text.
_WORDS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("rtf.toml").read_text(encoding="utf-8")
)
_ENCODINGS = {int(charset): name for charset, name in _WORDS["encodings"].items()}
_SIGNS = {word: sign.replace("\n", LINE_END) for word, sign in _WORDS["signs"].items()}
_DESTINATIONS = _WORDS["destinations"]
_UNREAD = frozenset(_WORDS["groups"]["unread"].split())
_MARKS = frozenset(_WORDS["groups"]["marks"].split())


# Rich text (RTF) to paragraphs with their styles: a scanner over groups, without recursion.
#
# Libraries for it give plain text; headings, lists, tables and code, which decide sections, are lost in them.

_TOKEN = re.compile(
    rb"\\([a-zA-Z]{1,32})(-?\d{1,10})?[ ]?|\\'([0-9a-fA-F]{2})|\\([^a-zA-Z])|([{}])|[\r\n]+|([^\\{}\r\n]+)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Paragraph:
    """text: with ``LINE_END`` for a forced line end. style: its name. level: of its outline, from 1, or 0.

    mark: what its list shows before it, None outside lists. depth: of the list, from 1.
    mono: all of it is in a font of fixed width.
    row: number of the table row that it is in, 0 for none. cell: its column, from 0. header: of a header row.
    """

    text: str
    style: str = ""
    level: int = 0
    mark: str | None = None
    depth: int = 1
    mono: bool = False
    row: int = 0
    cell: int = 0
    header: bool = False


@dataclass(slots=True)
class Rtf:
    """What was read. whole: every group was closed."""

    paragraphs: list[Paragraph] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    title: str = ""
    whole: bool = True


@dataclass(slots=True)
class _Group:
    """The state that a group inherits and its end restores."""

    into: str = "text"
    font: int = -1
    skip: int = 1
    hidden: bool = False


class _Scanner:
    def __init__(self) -> None:
        self.rtf = Rtf()
        self._group = _Group()
        self._stack: list[_Group] = []
        self._page = "cp1252"
        self._bytes = bytearray()
        self._skip = 0
        self._high = ""
        self._parts: dict[str, list[str]] = {}
        self._styles: dict[int, str] = {}
        self._encodings: dict[int, str] = {}
        self._mono: set[int] = set()
        self._style_number = 0
        self._font_number = -1
        self._paragraph_style, self._level, self._depth, self._listed = 0, 0, 1, False
        self._widths = [0, 0]
        self._row, self._cell, self._in_table, self._header = 0, 0, False, False
        self._words: dict[str, Callable[[int | None], None]] = {
            "par": self._end_paragraph, "sect": self._end_paragraph, "page": self._end_paragraph,
            "pard": self._plain_paragraph, "s": self._style, "outlinelevel": self._outline,
            "f": self._font, "fcharset": self._charset, "fmodern": self._modern,
            "ansicpg": self._code_page, "ls": self._in_list, "ilvl": self._list_level,
            "v": self._hide, "deleted": self._hide, "uc": self._uc, "u": self._unicode,
            "trowd": self._begin_row, "cell": self._end_cell, "row": self._end_row,
            "trhdr": self._is_header, "intbl": self._enter_table,
        }  # fmt: skip

    def scan(self, content: bytes) -> Rtf:
        place = 0
        while token := _TOKEN.match(content, place):
            place = token.end()
            word, number, code, sign, brace, text = token.groups()
            if code is not None:
                self._byte(int(code, 16))
                continue
            self._flush_bytes()
            if word is not None:
                name = word.decode("ascii")
                if name == "bin":
                    place += max(int(number or 0), 0)
                else:
                    self._word(name, int(number) if number is not None else None)
            elif brace is not None:
                self._brace(brace)
            elif sign is not None:
                self._sign(sign)
            elif text is not None:
                self._append(self._after_unicode(text.decode(self._encoding(), "replace")))
        self._flush_bytes()
        self.rtf.whole = not self._stack and place >= len(content)
        self._end_paragraph()
        return self.rtf

    def _brace(self, brace: bytes) -> None:
        if brace == b"{":
            self._stack.append(self._group)
            old = self._group
            self._group = _Group(old.into, old.font, old.skip, old.hidden)
            return
        ended = self._group
        self._group = self._stack.pop() if self._stack else _Group()
        if ended.into != self._group.into:
            self._leave(ended.into)

    def _leave(self, into: str) -> None:
        text = "".join(self._parts.pop(into, []))
        if into == "footnote":
            self.rtf.notes.append(" ".join(text.replace(LINE_END, " ").split()))
            self._parts.setdefault(self._group.into, []).append(f"[{len(self.rtf.notes)}]")
        elif into == "title":
            self.rtf.title = " ".join(text.split())
        elif into == "mark":
            self._parts["marked"] = [text.strip()]

    def _sign(self, sign: bytes) -> None:
        if sign == b"*":
            # A destination that may be passed over by who does not know it: so are all that are not known.
            self._group.into = "unread"
        elif sign in b"\\{}":
            self._append(self._after_unicode(sign.decode()))
        elif sign == b"~":
            self._append("\xa0")
        elif sign == b"_":
            self._append("-")
        elif sign in b"\r\n":
            self._end_paragraph()

    def _word(self, name: str, number: int | None) -> None:
        into = _DESTINATIONS.get(name)
        if into is not None or name in _UNREAD:
            # What is inside something unread stays unread, but for the list marks that are optional.
            if self._group.into != "unread" or name in _MARKS:
                self._group.into = into or "unread"
        elif name in _SIGNS:
            self._append(self._after_unicode(_SIGNS[name]))
        elif name in self._words:
            self._words[name](number)

    def _font(self, number: int | None) -> None:
        self._group.font = self._font_number = number or 0

    def _charset(self, number: int | None) -> None:
        if self._group.into == "fonts" and number in _ENCODINGS:
            self._encodings[self._font_number] = _ENCODINGS[number]

    def _modern(self, _number: int | None) -> None:
        if self._group.into == "fonts":
            self._mono.add(self._font_number)

    def _code_page(self, number: int | None) -> None:
        name = {65001: "utf-8", 10000: "mac_roman"}.get(number or 0, f"cp{number}")
        try:
            b"".decode(name)
        except LookupError:
            return
        self._page = name

    def _style(self, number: int | None) -> None:
        if self._group.into == "styles":
            self._style_number = number or 0
        else:
            self._paragraph_style = number or 0

    def _plain_paragraph(self, _number: int | None) -> None:
        self._paragraph_style, self._level, self._depth, self._listed = 0, 0, 1, False
        self._in_table = False

    def _outline(self, number: int | None) -> None:
        if self._group.into == "text":
            self._level = (number or 0) + 1 if 0 <= (number or 0) < 9 else 0

    def _in_list(self, number: int | None) -> None:
        self._listed = bool(number)

    def _list_level(self, number: int | None) -> None:
        self._depth = min(max(number or 0, 0), 8) + 1

    def _hide(self, number: int | None) -> None:
        self._group.hidden = number != 0

    def _uc(self, number: int | None) -> None:
        self._group.skip = min(max(number or 0, 0), 10)

    def _begin_row(self, _number: int | None) -> None:
        self._header = False
        if self._cell == 0:
            self._row += 0 if self._row and self._in_table else 1

    def _end_cell(self, _number: int | None) -> None:
        if self._group.into == "text":
            self._in_table = True
            self._row = max(self._row, 1)
            self._end_paragraph(cell=True)
            self._cell += 1

    def _end_row(self, _number: int | None) -> None:
        self._cell, self._in_table = 0, False
        self._row += 1

    def _is_header(self, _number: int | None) -> None:
        self._header = True

    def _enter_table(self, _number: int | None) -> None:
        self._in_table = True
        self._row = max(self._row, 1)

    def _unicode(self, number: int | None) -> None:
        code = (number or 0) & 0xFFFF
        self._skip = self._group.skip
        if 0xD800 <= code < 0xDC00:
            self._high = chr(code)
            return
        char = chr(code)
        if self._high and 0xDC00 <= code < 0xE000:
            char = (self._high + char).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        self._high = ""
        self._append("" if 0xD800 <= ord(char[0]) < 0xE000 else char)

    def _after_unicode(self, text: str) -> str:
        """Text without the stand-ins for programs that know no Unicode."""
        if not self._skip:
            return text
        taken = min(self._skip, len(text))
        self._skip -= taken
        return text[taken:]

    def _byte(self, value: int) -> None:
        if self._skip:
            self._skip -= 1
        else:
            self._bytes.append(value)

    def _flush_bytes(self) -> None:
        if self._bytes:
            text = bytes(self._bytes).decode(self._encoding(), "replace")
            self._bytes.clear()
            self._append(text)

    def _encoding(self) -> str:
        return self._encodings.get(self._group.font, self._page)

    def _append(self, text: str) -> None:
        into = self._group.into
        if not text or into in {"unread", "info"} or self._group.hidden:
            return
        if into == "styles":
            self._styles[self._style_number] = (
                self._styles.get(self._style_number, "") + text
            ).strip(" ;")
        elif into == "fonts":
            if re.search(r"courier|consol|mono|menlo", text, re.IGNORECASE):
                self._mono.add(self._font_number)
        else:
            self._parts.setdefault(into, []).append(text)
            if into == "text":
                width = len(text.strip())
                self._widths[int(self._group.font in self._mono)] += width

    def _end_paragraph(self, _number: int | None = None, *, cell: bool = False) -> None:
        if self._group.into == "footnote":
            self._parts.setdefault("footnote", []).append(" ")
            return
        if self._group.into != "text":
            return
        text = "".join(self._parts.pop("text", []))
        marked = self._parts.pop("marked", None)
        style = self._styles.get(self._paragraph_style, "")
        plain, mono = self._widths
        self._widths = [0, 0]
        if not text.strip() and not cell:
            return
        mark = marked[0] if marked else ("" if self._listed else None)
        self.rtf.paragraphs.append(
            Paragraph(
                text, style, self._level, mark, self._depth, mono > 0 and not plain,
                self._row if self._in_table else 0, self._cell, self._header,
            )
        )  # fmt: skip


def read_rtf(content: bytes) -> Rtf:
    """Read RTF bytes. What is damaged is read as far as it goes; ``whole`` tells."""
    return _Scanner().scan(content.rstrip(b"\0 \r\n\t"))


def rows_of(paragraphs: list[Paragraph]) -> Iterator[Paragraph | list[Paragraph]]:
    """Paragraphs as they come, those of one table (rows that follow each other) together."""
    table: list[Paragraph] = []
    for paragraph in paragraphs:
        if paragraph.row:
            table.append(paragraph)
            continue
        if table:
            yield table
            table = []
        yield paragraph
    if table:
        yield table


_HEADING = re.compile(
    r"(?:heading|überschrift|titre|título|titolo|kop|rubrik) ?(\d)", re.IGNORECASE
)
_CODE = re.compile(r"code|preformatted|source|listing|verbatim|macro", re.IGNORECASE)
_QUOTE = re.compile(r"quot", re.IGNORECASE)
_LABEL = re.compile(r"\(?(?:\w{1,3}|\d{1,3}(?:\.\d{1,3})*)[.)]?")


def partition_rtf(content: bytes, name: str) -> PartitionedDocument:
    """Partition an RTF file; ``name`` names it in errors. Raises ``DocumentError``."""
    rtf = read_rtf(content)
    if not rtf.whole:
        raise damaged(name, "its groups are not closed")
    out = etree.Element("div")
    titled = any(paragraph.style.lower() == "title" for paragraph in rtf.paragraphs)
    for part in rows_of(rtf.paragraphs):
        if isinstance(part, list):
            _table(part, out)
        else:
            _block(part, out, deeper=int(titled))
    for number, note in enumerate(rtf.notes, start=1):
        add_block(out, "p", f"[{number}] {note}")
    elements = tuple(elements_of(out))
    heading = next((e.text for e in elements if e.kind is ElementKind.TITLE), "")
    return PartitionedDocument(sensible_title(rtf.title) or heading, elements)


def _block(paragraph: Paragraph, out: etree._Element, *, deeper: int) -> None:
    text, style = paragraph.text, paragraph.style
    heading = _HEADING.match(style)
    level = int(heading[1]) if heading else paragraph.level
    if style.lower() == "title":
        add_block(out, "h1", _folded(text))
    elif level:
        add_block(out, f"h{min(max(level + deeper, 1), 6)}", _folded(text))
    elif paragraph.mark is not None:
        _item(paragraph, out)
    elif paragraph.mono or _CODE.search(style):
        _code(text.replace(LINE_END, "\n"), out)
    elif _QUOTE.search(style):
        add_block(etree.SubElement(out, "blockquote"), "p", text)
    else:
        caption = add_block(out, "p", text)
        if style.lower() == "caption":
            caption.set("class", "caption")


def _item(paragraph: Paragraph, out: etree._Element) -> None:
    last = out[-1] if len(out) else None
    listing = last if last is not None and last.tag == "ul" else etree.SubElement(out, "ul")
    for _ in range(paragraph.depth - 1):
        inner = listing[-1] if len(listing) and listing[-1].tag == "ul" else None
        listing = inner if inner is not None else etree.SubElement(listing, "ul")
    label = (paragraph.mark or "").strip()
    mark = f"{label} " if _LABEL.fullmatch(label) and label.lower() != "o" else ""
    add_block(listing, "li", mark + paragraph.text)


def _code(text: str, out: etree._Element) -> None:
    """Each line of code is a paragraph of its own."""
    last = out[-1] if len(out) else None
    if last is not None and last.tag == "pre":
        block = add_block(etree.Element("div"), "pre", f"{last.text}\n{text}")
        out.replace(last, block)
    else:
        add_block(out, "pre", f"\n{text}")


def _table(cells: list[Paragraph], out: etree._Element) -> None:
    table = etree.SubElement(out, "table")
    rows: dict[int, dict[int, list[str]]] = {}
    headers: set[int] = set()
    for paragraph in cells:
        rows.setdefault(paragraph.row, {}).setdefault(paragraph.cell, []).append(paragraph.text)
        if paragraph.header:
            headers.add(paragraph.row)
    for number, columns in sorted(rows.items()):
        line = etree.SubElement(table, "tr")
        for column in range(max(columns) + 1):
            text = _folded(" ".join(columns.get(column, [])))
            add_block(line, "th" if number in headers else "td", text)


def _folded(text: str) -> str:
    return " ".join(text.replace(LINE_END, " ").split())
