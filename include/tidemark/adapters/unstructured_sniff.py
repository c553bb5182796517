"""What a document really is: its bytes first, then what its server or its suffix says."""

import re
from enum import StrEnum
from io import BytesIO
from zipfile import BadZipFile, ZipFile

from tidemark.adapters.media import BY_SUFFIX, HTML_TYPES, suffix_of
from tidemark.adapters.syntaxes import syntax_of_type
from tidemark.domain.errors import DocumentError
from tidemark.domain.model import RawDocument


class Format(StrEnum):
    HTML = "html"
    MARKDOWN = "markdown"
    TEXT = "text"
    RST = "rst"
    DOCX = "docx"
    PPTX = "pptx"
    XLSX = "xlsx"
    PDF = "pdf"
    CSV = "csv"
    EMAIL = "email"
    CODE = "code"


_OFFICE = "application/vnd.openxmlformats-officedocument"
_BY_TYPE = {
    "text/markdown": Format.MARKDOWN,
    "text/x-rst": Format.RST,
    "text/csv": Format.CSV,
    "text/tab-separated-values": Format.CSV,
    "message/rfc822": Format.EMAIL,
    "text/plain": Format.TEXT,
}
_BINARY = {
    "application/pdf": Format.PDF,
    f"{_OFFICE}.wordprocessingml.document": Format.DOCX,
    f"{_OFFICE}.presentationml.presentation": Format.PPTX,
    f"{_OFFICE}.spreadsheetml.sheet": Format.XLSX,
}
_PARTS = (("word/", Format.DOCX), ("ppt/", Format.PPTX), ("xl/", Format.XLSX))
_VAGUE = frozenset({"", "text/plain", "application/octet-stream", "binary/octet-stream"})
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_HTML_HEAD = re.compile(
    rb"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)*<(!doctype\s+html|html|head|body)\b",
    re.IGNORECASE | re.DOTALL,
)
_ANY_TAG = re.compile(rb"<[a-zA-Z!/]")
_MAIL_HEAD = re.compile(
    rb"(?:From|Received|Return-Path|Delivered-To|Message-ID|MIME-Version|Date|Subject|To|X-[\w-]+):[^\n]*\n"
    rb"(?:(?:[\w-]+:|[ \t])[^\n]*\n)+", re.IGNORECASE,
)  # fmt: skip
READABLE = (
    "HTML, Markdown, reStructuredText, plain text, DOCX, PPTX, XLSX, PDF, CSV, e-mail (EML) "
    "and source code"
)


def detect(raw: RawDocument, max_expanded: int, max_ratio: int) -> Format:
    """Tell a document's format. Raises ``DocumentError`` for what is empty, damaged, locked or unreadable.

    max_expanded: bytes an archive may hold when unpacked. max_ratio: times its packed size it may be.
    """
    content, head = raw.content, raw.content[:4096]
    if not content.strip():
        raise DocumentError("partition", f"{raw.uri} is empty.", "Check the file at its source.")
    # Source code may name the mark of another format and be none: there only the first bytes count.
    if b"%PDF-" in (head[:5] if syntax_of_type(raw.media_type) else head[:1024]):
        return Format.PDF
    if head.startswith(b"PK\x03\x04"):
        return _office(raw, max_expanded, max_ratio)
    if head.startswith(_OLE):
        raise DocumentError(
            "partition",
            f"{raw.uri} is protected by a password or in an Office format from before 2007.",
            "Save it as .docx, .pptx or .xlsx without a password.",
        )
    expected = _BINARY.get(raw.media_type)
    if expected is not None:
        raise DocumentError(
            "partition",
            f"{raw.uri} is declared as {expected.value.upper()} and its bytes are not.",
            "Fetch or export the file again.",
        )
    return _text_format(raw, head)


def _text_format(raw: RawDocument, head: bytes) -> Format:
    if raw.media_type == "text/x-php":  # may begin with the page that it is a template of
        return Format.CODE
    if _HTML_HEAD.match(head.removeprefix(b"\xef\xbb\xbf")) and raw.media_type != "message/rfc822":
        return Format.HTML
    if raw.media_type in HTML_TYPES:
        return Format.HTML if _ANY_TAG.search(raw.content) else Format.TEXT
    media_type = raw.media_type
    if media_type in _VAGUE:
        media_type = BY_SUFFIX.get(suffix_of(raw.uri), media_type)
    if media_type in HTML_TYPES:
        return Format.HTML
    if media_type in _BY_TYPE and media_type != "text/plain":
        return _BY_TYPE[media_type]
    if syntax_of_type(media_type):
        return Format.CODE
    if head.startswith(b"{\\rtf") or not (media_type.startswith("text/") or media_type in _VAGUE):
        raise DocumentError(
            "partition",
            f"{raw.uri} is of the type {raw.media_type or 'unknown'}, which is not read.",
            f"Exclude it from the source, or convert it: {READABLE} are read.",
        )
    return Format.EMAIL if _MAIL_HEAD.match(head) else Format.TEXT


def _office(raw: RawDocument, max_expanded: int, max_ratio: int) -> Format:
    try:
        with ZipFile(BytesIO(raw.content)) as archive:
            entries = archive.infolist()
    except (BadZipFile, ValueError, OSError, NotImplementedError) as error:
        raise DocumentError(
            "partition",
            f"{raw.uri} is damaged or was cut short: {error}.",
            "Fetch or export the file again.",
        ) from error
    expanded = sum(entry.file_size for entry in entries)
    if expanded > max_expanded or expanded > max_ratio * max(len(raw.content), 1024):
        raise DocumentError(
            "partition",
            f"{raw.uri} would unpack from {len(raw.content):,} to {expanded:,} bytes, over the limit.",
            "Exclude it, or raise the partitioner's max_expanded_bytes or max_ratio.",
        )
    if any(entry.flag_bits & 1 for entry in entries):
        raise DocumentError("partition", f"{raw.uri} is encrypted.", "Save it without a password.")
    names = {entry.filename for entry in entries}
    if "[Content_Types].xml" in names:
        for folder, kind in _PARTS:
            if any(name.startswith(folder) for name in names):
                return kind
    raise DocumentError(
        "partition", f"{raw.uri} is an archive, not a document.", f"Unpack it: {READABLE} are read."
    )
