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
