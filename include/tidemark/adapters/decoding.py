"""Bytes to text: what they say of themselves, what was declared, UTF-8, and last what reads best."""

import codecs
import re

import webencodings

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
_CANDIDATES = [
    "cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "koi8_r",
    "cp932", "euc_jp", "gb18030", "big5", "cp949", "cp437", "cp850", "cp866",
]  # fmt: skip
"""What a text that is not UTF-8 and does not say what it is may be: what is in use, the likeliest first."""
_LOOKED_AT = 1 << 16
"""Bytes by which that is decided."""


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
    for label in (declared, meta.group(1).decode("ascii") if meta else None, "utf-8"):
        text = _strictly(content, label)
        if text is not None:
            return _clean(text)
    loose = content.decode("utf-8", "replace")
    damaged = loose.count("\ufffd")
    whole = sum(char > "\x7f" for char in loose) - damaged
    # A cut in the middle of a character, or one stray byte, does not make a file Latin-1.
    if whole >= damaged or damaged * 1000 < len(loose):
        return _clean(loose)
    return _clean(content.decode(_likeliest(content[:_LOOKED_AT]), "replace"))


def _likeliest(content: bytes) -> str:
    """The encoding in which the bytes read most like a language; Western European where nothing tells."""
    from charset_normalizer import from_bytes

    found = from_bytes(content, cp_isolation=_CANDIDATES)
    best = found.best()
    if best is None:
        return "cp1252"
    alike = {m.encoding for m in found if (m.chaos, m.coherence) == (best.chaos, best.coherence)}
    return next(name for name in _CANDIDATES if name in alike)


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


def _strictly(content: bytes, label: str | None) -> str | None:
    """The text under a label, read as browsers read it (WHATWG Encoding); None where that cannot be."""
    if not label:
        return None
    found = webencodings.lookup(label)
    name = found.codec_info.name if found else label.strip().lower().replace("cp-", "cp")
    if name.startswith("utf-16"):
        name = "utf-8"  # there is no zero byte in it: whoever says so has converted it since
    try:
        # The wider one of the two holds all of the other.
        return content.decode({"gbk": "gb18030"}.get(name, name))
    except (UnicodeDecodeError, LookupError):
        return None


def _clean(text: str) -> str:
    text = text.removeprefix("\ufeff").replace("\0", "")
    return text.replace("\r\n", "\n").replace("\r", "\n")
