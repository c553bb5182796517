"""A file of source code to one CODE element; its definitions are looked up when it is cut."""

import re
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from tidemark.adapters.decoding import decode
from tidemark.adapters.media import BY_SUFFIX, suffix_of, syntax_of_type
from tidemark.domain.documents import Element, ElementKind, PartitionedDocument, RawDocument
from tidemark.domain.errors import DocumentError

_LONG_LINE, _LARGE = 5_000, 20_000
_COOKIE = re.compile(rb"\A(?:[^\n]*\n)?[^\n]*coding[:=][ \t]*([-\w.]+)")
_BINARY = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_UTF_16_OR_32 = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")


def partition_code(raw: RawDocument) -> PartitionedDocument:
    """The whole file, verbatim, with its name as the title.

    Raises ``DocumentError`` for what is not text, not in a known encoding, or was not written by a person.
    """
    text = _decoded(raw)
    longest = max((len(line) for line in text.split("\n")), default=0)
    if longest > _LONG_LINE and len(text) > _LARGE:
        raise DocumentError(
            "partition",
            f"{raw.uri} has a line of {longest:,} characters: it is minified or generated.",
            "Exclude it from the source, and index what it was made from.",
        )
    body = re.sub(r"\A(?:[ \t]*\n)+", "", text).rstrip()
    syntax = syntax_of_type(raw.media_type) or syntax_of_type(BY_SUFFIX.get(suffix_of(raw.uri), ""))
    elements = (Element(ElementKind.CODE, body, syntax=syntax),) if body else ()
    name = PurePosixPath(unquote(urlsplit(raw.uri).path or raw.uri)).name
    return PartitionedDocument(name, elements)


def _decoded(raw: RawDocument) -> str:
    content = raw.content
    cookie = _COOKIE.match(content[:400])
    # Before ``decode`` looks for what a web page says of its encoding, which code may well contain.
    declared = raw.charset or (cookie[1].decode("ascii", "ignore") if cookie else "utf-8")
    binary = b"\0" in content and not content.startswith(_UTF_16_OR_32)
    text = "" if binary else decode(content, declared, raw.uri)
    if binary or len(_BINARY.findall(text)) * 1000 > len(text):
        raise DocumentError(
            "partition",
            f"{raw.uri} holds binary data, not source code.",
            "Exclude it from the source.",
        )
    if text.count("\ufffd") * 1000 > len(text):
        raise DocumentError(
            "partition",
            f"{raw.uri} is in an encoding that it does not name.",
            "Save it as UTF-8.",
        )
    return text
