"""The text of AsciiDoc's inline marks: links by their labels, words without the signs around them."""

import re
from collections.abc import Mapping, Sequence

from tidemark.adapters.html_lines import LINE_END

_PASS = re.compile(r"\+\+\+(.+?)\+\+\+|\bpass:\w*\[(.*?)\]|`\+(.+?)\+`")
_REFERENCE = re.compile(r"\{([\w-]{1,60})\}")
_LINK = re.compile(r"\b(?:link:|(?=(?:https?|ftp|irc|mailto):))([^\s\[\]<>]{1,2000})\[([^\]]*)\]")
_CROSS = re.compile(r"<<([^,>]{1,300})(?:,\s*([^>]{1,300}))?>>")
_XREF = re.compile(r"\bxref:([^\s\[\]]{1,300})\[([^\]]*)\]")
_MACRO = re.compile(
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


class Inline:
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

        def keep(found: re.Match[str]) -> str:
            kept.append(next((group for group in found.groups() if group), ""))
            return f"\ufdd1{len(kept) - 1}\ufdd1"

        text = _PASS.sub(keep, marked)
        text = _REFERENCE.sub(self._referred, text)
        text = _IMAGE.sub("", text)
        text = _LINK.sub(lambda m: m[2].rstrip("^").split(",")[0] or m[1], text)
        text = _CROSS.sub(lambda m: m[2] or m[1].lstrip("#").replace("_", " ").strip(), text)
        text = _XREF.sub(lambda m: m[2] or m[1].rpartition("#")[2], text)
        text = _MACRO.sub(
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

    def _referred(self, found: re.Match[str]) -> str:
        name = found[1].lower()
        value = self._attributes.get(name)
        return value if value is not None and len(value) < 500 else _NAMES.get(name, found[0])
