"""AsciiDoc to HTML blocks: titles, lists, delimited blocks, tables, admonitions; nothing is included.

The libraries for it are an alpha release or under the GPL, so what decides sections is read here, and what
else there is (inline macros, attributes) is shown by its text.
"""

import re
from dataclasses import dataclass, field

from lxml import etree

from tidemark.adapters.asciidoc_inline import Inline
from tidemark.adapters.asciidoc_lines import (
    ANCHOR,
    BLOCK_ATTRIBUTES,
    BLOCK_TITLE,
    FENCE,
    HEADING,
    ITEM,
    TABLE,
    TERM,
    end_of,
)
from tidemark.adapters.asciidoc_lists import ListReader
from tidemark.adapters.asciidoc_tables import add_table
from tidemark.adapters.html_titles import language_code
from tidemark.adapters.syntaxes import canonical_syntax
from tidemark.adapters.unstructured_plain_text import add_block
from tidemark.domain.errors import DocumentError

_ATTRIBUTE = re.compile(r":(!?[\w-]+!?):(?:\s+(.*))?$")
_ADMONITION = re.compile(r"(NOTE|TIP|IMPORTANT|WARNING|CAUTION):\s+(.*)$")
_MACRO = re.compile(r"(?:include|image|video|audio|toc|ifdef|ifndef|ifeval|endif)::.*$")
_SKIPPED_LINES = re.compile(r"(?:'{3,}|<{3,}|\+)\s*$")
_VERBATIM = "-.`+"
_MAX_NESTED = 30


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
        self._inline = Inline(self.attributes)
        self._lists = ListReader(self._inline, self.blocks)

    def blocks(self, lines: list[str], out: etree._Element, depth: int) -> None:
        if depth > _MAX_NESTED:
            raise DocumentError("partition", f"{self._name} is nested too deeply.", "Simplify it.")
        pending = _Pending()
        paragraph: list[str] = []
        index = 0
        while index < len(lines):
            line = lines[index]
            taken = self._block(lines, index, out, pending, paragraph, depth)
            if taken:
                index += taken
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
            taken = self._above(line, pending) or self._heading(lines, index, out, pending)
            if taken:
                return taken
        fence, table = FENCE.match(line), TABLE.match(line)
        if fence or table:
            end = end_of(lines, index)
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
        if not paragraph and (ITEM.match(line) or TERM.match(line)):
            return self._listed(lines, index, out, pending.take(), depth)
        return 0

    def _above(self, line: str, pending: _Pending) -> int:
        """What is said about the next block: attributes, its title, its anchor."""
        attribute = _ATTRIBUTE.match(line)
        if attribute:
            self.attributes[attribute[1].strip("!").lower()] = (attribute[2] or "").strip()
            return 1
        anchor, title = ANCHOR.match(line), BLOCK_TITLE.match(line)
        if anchor:
            pending.anchor = anchor[1]
            return 1
        listed = BLOCK_ATTRIBUTES.match(line)
        if listed:
            parts = [part.strip().strip('"') for part in listed[1].split(",")]
            pending.attributes, pending.options = parts, listed[1]
            named = re.search(r"#([\w:.-]+)", parts[0])
            pending.anchor = named[1] if named else pending.anchor
            return 1
        if title and not ITEM.match(line):
            pending.title = title[1]
            return 1
        return 0

    def _heading(self, lines: list[str], index: int, out: etree._Element, pending: _Pending) -> int:
        found = HEADING.match(lines[index])
        if found is None:
            return 0
        level, text = len(found[1]), self._inline.text(found[2])
        first = level == 1 and not self.title and len(out) == 0
        if not first and level == 1 and found[1] == "#":
            return 0
        about = pending.take()
        heading = add_block(out, f"h{level}", text)
        if about.anchor:
            heading.set("id", about.anchor)
        if not first:
            return 1
        self.title = text
        # The lines right under the title name its author and its version.
        taken = 1
        while index + taken < len(lines) and (line := lines[index + taken]).strip():
            if _ATTRIBUTE.match(line):
                self._above(line, pending)
            elif taken > 3 or ITEM.match(line) or line.startswith(("[", ".", "=")):
                break
            taken += 1
        return taken

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
            said = [noted[2], *lines[1:]] if noted else lines
            add_block(box, "p", self._inline.joined(said))
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

    def _listed(
        self, lines: list[str], index: int, out: etree._Element, about: _Pending, depth: int
    ) -> int:
        self._caption(about, out)
        return self._lists.read(lines, index, out, depth)

    def _table(self, body: list[str], mark: str, out: etree._Element, about: _Pending) -> None:
        table = etree.SubElement(out, "table")
        if about.title:
            add_block(table, "caption", self._inline.text(about.title))
        add_table(table, body, mark, about.options, self._inline.text)
        if len(table) == 0:
            out.remove(table)


def _admonition(kind: str, out: etree._Element) -> etree._Element:
    box = etree.SubElement(out, "div", {"class": "admonition"})
    add_block(box, "p", kind.capitalize()).set("class", "admonition-title")
    return box
