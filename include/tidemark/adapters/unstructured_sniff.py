"""What a document really is: its bytes first, then what its server or its suffix says."""

import codecs
import re
from dataclasses import dataclass

from tidemark.adapters.media import BY_SUFFIX, HTML_TYPES, canonical_type, suffix_of
from tidemark.adapters.syntaxes import syntax_of_type
from tidemark.adapters.text_decoding import looks_like_utf_16
from tidemark.adapters.unstructured_containers import (
    GZIP,
    OLE,
    READABLE,
    ZIP,
    Format,
    gunzipped,
    ole_format,
    zip_format,
)
from tidemark.domain.errors import DocumentError
from tidemark.domain.model import RawDocument

__all__ = ["READABLE", "Format", "Recognised", "recognise"]

_OFFICE = "application/vnd.openxmlformats-officedocument"
_BY_TYPE = {
    "text/markdown": Format.MARKDOWN,
    "text/x-rst": Format.RST,
    "text/asciidoc": Format.ASCIIDOC,
    "text/csv": Format.CSV,
    "text/tab-separated-values": Format.CSV,
    "message/rfc822": Format.EMAIL,
    "text/plain": Format.TEXT,
    "application/json": Format.JSON,
    "application/x-ndjson": Format.JSON_LINES,
    "application/x-ipynb+json": Format.NOTEBOOK,
    "application/xml": Format.XML,
}
_BINARY = {
    "application/pdf": Format.PDF,
    f"{_OFFICE}.wordprocessingml.document": Format.DOCX,
    f"{_OFFICE}.presentationml.presentation": Format.PPTX,
    f"{_OFFICE}.spreadsheetml.sheet": Format.XLSX,
    "application/vnd.oasis.opendocument.text": Format.ODT,
    "application/epub+zip": Format.EPUB,
    "application/vnd.ms-outlook": Format.MSG,
    "application/rtf": Format.RTF,
}
_VAGUE = frozenset(
    {"", "text/plain", "application/octet-stream", "binary/octet-stream", "application/gzip",
     "application/x-gzip", "application/zip", "application/x-zip-compressed"}
)  # fmt: skip
_HTML_HEAD = re.compile(
    rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_XML_HEAD = re.compile(
    rb"\s*<\?xml\s[^>]*\?>\s*(?:<!--.*?-->\s*|<\?[^>]*\?>\s*)*<[!A-Za-z_]", re.DOTALL
)
_ANY_TAG = re.compile(rb"<[a-zA-Z!/]")
_MAIL_HEAD = re.compile(
    rb"(?:From|Received|Return-Path|Delivered-To|Message-ID|MIME-Version|Date|Subject|To|X-[\w-]+):[^\n]*\n"
    rb"(?:(?:[\w-]+:|[ \t])[^\n]*\n)+", re.IGNORECASE,
)  # fmt: skip
_JSON_HEAD = re.compile(rb"\s*[\[{]\s*(?:[\[{\"\]}]|-?\d|true|false|null)")
_NOTEBOOK = re.compile(rb'"nbformat"\s*:\s*\d')
_OTHERS = (
    (b"\x89PNG\r\n\x1a\n", "a picture (PNG)"),
    (b"\xff\xd8\xff", "a picture (JPEG)"),
    (b"GIF8", "a picture (GIF)"),
    (b"II*\0", "a picture (TIFF)"),
    (b"MM\0*", "a picture (TIFF)"),
    (b"7z\xbc\xaf\x27\x1c", "an archive (7z)"),
    (b"Rar!\x1a\x07", "an archive (RAR)"),
    (b"BZh", "a compressed file (bzip2)"),
    (b"\xfd7zXZ\0", "a compressed file (xz)"),
    (b"\x28\xb5\x2f\xfd", "a compressed file (zstd)"),
    (b"PK\x05\x06", "an empty archive"),
    (b"\x7fELF", "a program"),
    (b"SQLite format 3\0", "a database (SQLite)"),
    (b"PAR1", "a data file (Parquet)"),
)


@dataclass(frozen=True, slots=True)
class Recognised:
    """A document's format, and the document itself: unpacked where it was gzip-ed."""

    format: Format
    raw: RawDocument


def recognise(raw: RawDocument, max_expanded: int, max_ratio: int) -> Recognised:
    """Tell a document's format. Raises ``DocumentError`` for what is empty, damaged, locked or unreadable.

    max_expanded: bytes an archive may hold when unpacked. max_ratio: times its packed size it may be.
    """
    _refuse_empty(raw)
    if raw.content.startswith(GZIP):
        raw = gunzipped(raw, max_expanded, max_ratio)
        _refuse_empty(raw)
    return Recognised(_format(raw, max_expanded, max_ratio), raw)


def _refuse_empty(raw: RawDocument) -> None:
    if not raw.content.strip():
        raise DocumentError("partition", f"{raw.uri} is empty.", "Check the file at its source.")
    if not raw.content.strip(b"\0 \t\r\n"):
        raise DocumentError(
            "partition",
            f"{raw.uri} holds nothing but zero bytes: it was never written whole.",
            "Copy or export the file again.",
        )


def _format(raw: RawDocument, max_expanded: int, max_ratio: int) -> Format:
    head = raw.content[:4096]
    media_type = canonical_type(raw.media_type)
    # Source code may name the mark of another format and be none: there only the first bytes count.
    if b"%PDF-" in (head[:5] if _may_name_marks(media_type) else head[:1024]):
        return Format.PDF
    if head.startswith(ZIP):
        return zip_format(raw, max_expanded, max_ratio)
    if head.startswith(OLE):
        return ole_format(raw)
    if head.startswith(b"{\\rtf"):
        return Format.RTF
    for mark, what in _OTHERS:
        if head.startswith(mark) and b"\0" in head + b"\0" * (mark == b"PK\x05\x06"):
            raise DocumentError(
                "partition",
                f"{raw.uri} is {what}, which is not read.",
                f"Exclude it from the source, or convert it: {READABLE} are read.",
            )
    expected = _BINARY.get(media_type)
    if expected is not None:
        raise DocumentError(
            "partition",
            f"{raw.uri} is declared as {expected.value.upper()} and its bytes are not.",
            "Fetch or export the file again.",
        )
    return _text_format(raw, media_type, _as_ascii(head))


def _may_name_marks(media_type: str) -> bool:
    return bool(syntax_of_type(media_type)) or media_type in {
        "message/rfc822", "application/json", "application/x-ndjson", "application/x-ipynb+json",
    }  # fmt: skip


def _as_ascii(head: bytes) -> bytes:
    """The first bytes as the expressions here read them, whatever the encoding."""
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return head[: len(head) & ~1].decode("utf-16", "replace").encode()
    encoding = looks_like_utf_16(head)
    if encoding:
        return head[: len(head) & ~1].decode(encoding, "replace").encode()
    return head.removeprefix(codecs.BOM_UTF8)


def _text_format(raw: RawDocument, media_type: str, head: bytes) -> Format:
    if media_type == "text/x-php":  # may begin with the page that it is a template of
        return Format.CODE
    if _HTML_HEAD.match(head) and media_type != "message/rfc822":
        return Format.HTML
    if media_type in HTML_TYPES:
        return Format.HTML if _ANY_TAG.search(raw.content) else Format.TEXT
    if media_type in _VAGUE:
        media_type = BY_SUFFIX.get(suffix_of(raw.uri), media_type)
    if media_type in HTML_TYPES:
        return Format.HTML
    kind = _by_type(media_type)
    if kind is Format.JSON and _NOTEBOOK.search(raw.content):
        return Format.NOTEBOOK
    if kind is not Format.TEXT:
        return kind
    if syntax_of_type(media_type):
        return Format.CODE
    if not (media_type.startswith("text/") or media_type in _VAGUE):
        raise DocumentError(
            "partition",
            f"{raw.uri} is of the type {raw.media_type or 'unknown'}, which is not read.",
            f"Exclude it from the source, or convert it: {READABLE} are read.",
        )
    return _unnamed(raw, media_type, head)


def _by_type(media_type: str) -> Format:
    """The format that a media type names, TEXT where it names none."""
    if media_type in _BY_TYPE:
        return _BY_TYPE[media_type]
    if media_type.endswith("+json"):
        return Format.JSON
    picture = media_type.startswith("image/")
    return Format.XML if media_type.endswith("+xml") and not picture else Format.TEXT


def _unnamed(raw: RawDocument, media_type: str, head: bytes) -> Format:
    """The format of text of which nobody says more than that it is text, if that."""
    if _MAIL_HEAD.match(head):
        return Format.EMAIL
    if _XML_HEAD.match(head):
        return Format.XML
    # What is served or named as text may well begin with a bracket.
    if media_type not in {"text/plain"} and _JSON_HEAD.match(head):
        return Format.NOTEBOOK if _NOTEBOOK.search(raw.content) else Format.JSON
    return Format.TEXT
