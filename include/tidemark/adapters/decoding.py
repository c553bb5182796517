"""Bytes to text: what the bytes say of themselves, then what was declared, then UTF-8."""

import codecs
import re

from tidemark.domain.errors import DocumentError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_META = re.compile(
    rb"<(?:meta[^>]{0,200}charset|\?xml[^>]{0,100}encoding)\s*=\s*[\"']?\s*([\w.:-]+)",
    re.IGNORECASE,
)
# Browsers read these names as what is really sent under them.
_WIDER = {
    "iso-8859-1": "cp1252",
    "latin-1": "cp1252",
    "ascii": "cp1252",
    "us-ascii": "cp1252",
    "gb2312": "gb18030",
}


def decode(content: bytes, declared: str | None, name: str) -> str:
    """Decode a text document; ``name`` names it in errors.

    Raises ``DocumentError`` for bytes that are no text.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return _clean(content.decode(encoding, "replace"))
    unmarked = looks_like_utf_16(content[:4096])
    if unmarked:
        return _clean(content.decode(unmarked, "replace"))
    if b"\0" in content[:4096]:
        raise DocumentError(
            "partition",
            f"{name} holds binary data, not text.",
            "Check the file, or exclude it from the source.",
        )
    meta = _META.search(content[:4096])
    for guess in (declared, meta.group(1).decode("ascii") if meta else None, "utf-8"):
        text = _strictly(content, guess)
        if text is not None:
            return _clean(text)
    loose = content.decode("utf-8", "replace")
    damaged = loose.count("\ufffd")
    # A cut in the middle of a character, or one stray byte, does not make a file Latin-1.
    if damaged <= 3 or damaged * 1000 < len(loose):
        return _clean(loose)
    return _clean(content.decode("cp1252", "replace"))


def looks_like_utf_16(head: bytes) -> str:
    """The codec of UTF-16 text without a byte order mark, "" for anything else.

    Latin text has nearly all its zero bytes in one of the two places of its units.
    """
    units = len(head) // 2
    if units < 4 or b"\0" not in head:
        return ""
    high_first, low_first = head[0 : units * 2 : 2].count(0), head[1 : units * 2 : 2].count(0)
    most, least = max(high_first, low_first), min(high_first, low_first)
    if most < 0.7 * units or least > 0.02 * units:
        return ""
    encoding = "utf-16-be" if high_first > low_first else "utf-16-le"
    text = head[: units * 2].decode(encoding, "replace")
    legible = sum(char.isprintable() or char in "\t\r\n\f" for char in text)
    return encoding if legible >= 0.95 * len(text) else ""


def _strictly(content: bytes, encoding: str | None) -> str | None:
    if not encoding:
        return None
    encoding = encoding.strip().lower()
    try:
        return content.decode(_WIDER.get(encoding, encoding))
    except (UnicodeDecodeError, LookupError):
        return None


def _clean(text: str) -> str:
    text = text.removeprefix("\ufeff").replace("\0", "")
    return text.replace("\r\n", "\n").replace("\r", "\n")
