"""What a document really is: its bytes first, then what its server or its suffix says."""

import codecs
import gzip
import re
import struct
import zlib
from dataclasses import replace
from enum import StrEnum
from importlib import import_module
from io import BytesIO
from urllib.parse import unquote, urlsplit
from zipfile import BadZipFile, ZipFile

from tidemark.adapters.decoding import looks_like_utf_16
from tidemark.adapters.media import BY_SUFFIX, HTML_TYPES, canonical_type, suffix_of, syntax_of_type
from tidemark.domain.documents import RawDocument
from tidemark.domain.errors import DocumentError


class Format(StrEnum):
    HTML = "html"
    MARKDOWN = "markdown"
    TEXT = "text"
    RST = "rst"
    ASCIIDOC = "asciidoc"
    DOCX = "docx"
    PPTX = "pptx"
    XLSX = "xlsx"
    ODT = "odt"
    EPUB = "epub"
    RTF = "rtf"
    PDF = "pdf"
    CSV = "csv"
    EMAIL = "email"
    MSG = "msg"
    XML = "xml"
    JSON = "json"
    JSON_LINES = "json lines"
    NOTEBOOK = "notebook"
    CODE = "code"


READABLE = (
    "HTML, Markdown, reStructuredText, AsciiDoc, plain text, DOCX, PPTX, XLSX, ODT, RTF, EPUB, PDF, CSV, "
    "e-mail (EML, MSG), XML, JSON, JSON lines, notebooks and source code"
)
ZIP = b"PK\x03\x04"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
GZIP = b"\x1f\x8b\x08"

_PARTS = (("word/", Format.DOCX), ("ppt/", Format.PPTX), ("xl/", Format.XLSX))
_MIMETYPES = {
    "application/epub+zip": Format.EPUB,
    "application/vnd.oasis.opendocument.text": Format.ODT,
}
_OTHER_OPEN_DOCUMENTS = {
    "spreadsheet": ("an OpenDocument spreadsheet (ODS)", "Save it as .xlsx or .csv."),
    "presentation": ("an OpenDocument presentation (ODP)", "Save it as .pptx."),
}
# Ciphers of the fonts in an e-book, which every reader undoes and which keep nobody from its text.
_FONT_CIPHER = re.compile(rb"http://(?:www\.idpf\.org/2008/embedding|ns\.adobe\.com/pdf/enc#RC)")
_CIPHER = re.compile(rb"EncryptionMethod\b[^>]*?Algorithm\s*=\s*[\"']([^\"']*)")
_MAX_ENTRIES = 50_000
_CHUNK = 1 << 20


def damaged(name: str, detail: object) -> DocumentError:
    """That a file's bytes are not whole."""
    text = " ".join(str(detail).split())[:200].rstrip(".")
    return DocumentError(
        "partition",
        f"{name} is damaged or was cut short: {text}.",
        "Fetch or export the file again.",
    )


def locked(name: str) -> DocumentError:
    """That a file cannot be read without its password."""
    return DocumentError("partition", f"{name} is encrypted.", "Save it without a password.")


def over_limit(name: str, excess: str) -> DocumentError:
    """That a file "has more than …" or "would unpack to …", over a bound that is no setting."""
    return DocumentError(
        "partition",
        f"{name} {excess}.",
        "Exclude it from the source, or split it: this limit is no setting.",
    )


def nested_too_deeply(name: str, where: str = "") -> DocumentError:
    """That a file holds parts within parts over a bound."""
    return DocumentError("partition", f"{name} is nested too deeply{where}.", "Simplify it.")


def _unpacks_too_far(raw: RawDocument, expanded: str) -> DocumentError:
    packed = len(raw.content)
    return over_limit(raw.uri, f"would unpack from {packed:,} to {expanded} bytes, over the limit")


def _not_read(message: str) -> DocumentError:
    return DocumentError(
        "partition",
        message,
        f"Exclude it from the source, or convert it: {READABLE} are read.",
    )


def _archive(name: str) -> DocumentError:
    return DocumentError(
        "partition", f"{name} is an archive, not a document.", f"Unpack it: {READABLE} are read."
    )


def zip_format(raw: RawDocument, max_expanded: int, max_ratio: int) -> Format:
    """The format of a ZIP file. Raises ``DocumentError`` for one that is no document, locked or too large."""
    try:
        with ZipFile(BytesIO(raw.content)) as archive:
            entries = archive.infolist()
            expanded = sum(entry.file_size for entry in entries)
            if expanded > min(max_expanded, max_ratio * max(len(raw.content), 1024)):
                raise _unpacks_too_far(raw, f"{expanded:,}")
            if len(entries) > _MAX_ENTRIES:
                raise _unpacks_too_far(raw, f"{len(entries):,} files and {expanded:,}")
            if any(entry.flag_bits & 1 for entry in entries):
                raise locked(raw.uri)
            return _by_entries(raw, archive, {entry.filename for entry in entries})
    except (BadZipFile, ValueError, OSError, NotImplementedError, EOFError, zlib.error) as error:
        raise damaged(raw.uri, error) from error


def _by_entries(raw: RawDocument, archive: ZipFile, names: set[str]) -> Format:
    if "[Content_Types].xml" in names:
        for folder, kind in _PARTS:
            if any(name.startswith(folder) for name in names):
                return kind
    mimetype = ""
    if "mimetype" in names:
        with archive.open("mimetype") as entry:
            mimetype = entry.read(200).decode("ascii", "replace").strip()
    if "META-INF/encryption.xml" in names or "META-INF/manifest.xml" in names:
        _refuse_locked(raw.uri, archive, names)
    if mimetype in _MIMETYPES:
        return _MIMETYPES[mimetype]
    if "META-INF/container.xml" in names and any(name.endswith(".opf") for name in names):
        return Format.EPUB
    for word, (what, hint) in _OTHER_OPEN_DOCUMENTS.items():
        if word in mimetype:
            raise DocumentError("partition", f"{raw.uri} is {what}, which is not read.", hint)
    raise _archive(raw.uri)


def _refuse_locked(name: str, archive: ZipFile, names: set[str]) -> None:
    if "META-INF/encryption.xml" in names:
        with archive.open("META-INF/encryption.xml") as entry:
            ciphers = _CIPHER.findall(entry.read(4 * _CHUNK))
        if any(not _FONT_CIPHER.match(cipher) for cipher in ciphers):
            raise DocumentError(
                "partition",
                f"{name} is encrypted: its publisher protects its text (DRM).",
                "Get a copy without protection, or exclude it from the source.",
            )
    if "META-INF/manifest.xml" in names:
        with archive.open("META-INF/manifest.xml") as entry:
            if b"encryption-data" in entry.read(4 * _CHUNK):
                raise locked(name)


def ole_format(raw: RawDocument) -> Format:
    """The format of a compound file: an Outlook message, or an error that says what else it is."""
    ole_file = import_module("olefile.olefile")
    try:
        with ole_file.OleFileIO(BytesIO(raw.content)) as ole:
            names = {path[0] for path in ole.listdir(streams=True, storages=True)}
    except (
        ole_file.OleFileError,
        OSError,
        ValueError,
        IndexError,
        TypeError,
        struct.error,
    ) as error:
        raise damaged(raw.uri, error) from error
    except RecursionError as error:
        raise damaged(raw.uri, "its folders hold each other") from error
    if any(name.startswith("__properties_version1") for name in names):
        return Format.MSG
    if names & {"EncryptedPackage", "EncryptionInfo"}:
        raise DocumentError(
            "partition",
            f"{raw.uri} is protected by a password.",
            "Save it as .docx, .pptx or .xlsx without a password.",
        )
    old = (("WordDocument", "Word", ".docx"), ("Workbook", "Excel", ".xlsx"), ("Book", "Excel", ".xlsx"),
           ("PowerPoint Document", "PowerPoint", ".pptx"))  # fmt: skip
    for stream, program, suffix in old:
        if stream in names:
            raise DocumentError(
                "partition",
                f"{raw.uri} is in the {program} format from before 2007.",
                f"Save it as {suffix} without a password.",
            )
    raise _not_read(f"{raw.uri} is a compound file (OLE) of a kind that is not read.")


def gunzipped(raw: RawDocument, max_expanded: int, max_ratio: int) -> RawDocument:
    """What a gzip-ed file holds, under the name without ".gz". Raises ``DocumentError``."""
    bound = min(max_expanded, max_ratio * max(len(raw.content), 1024))
    parts: list[bytes] = []
    size = 0
    try:
        with gzip.GzipFile(fileobj=BytesIO(raw.content)) as packed:
            while part := packed.read(_CHUNK):
                size += len(part)
                if size > bound:
                    raise _unpacks_too_far(raw, f"more than {bound:,}")
                parts.append(part)
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(raw.uri, error) from error
    content = b"".join(parts)
    if content.startswith((GZIP, ZIP)) or content[257:262] == b"ustar":
        raise _archive(raw.uri)
    path = unquote(urlsplit(raw.uri).path).lower().removesuffix(".gz")
    stem, dot, suffix = path.rpartition("/")[2].rpartition(".")
    named = BY_SUFFIX.get(f".{suffix}") if stem and dot else None
    declared = (
        "" if "gzip" in raw.media_type or "octet-stream" in raw.media_type else raw.media_type
    )
    return replace(raw, content=content, media_type=named or declared)


_TEXTS = {
    BY_SUFFIX[suffix]: format_
    for suffix, format_ in {
        ".md": Format.MARKDOWN, ".rst": Format.RST, ".adoc": Format.ASCIIDOC, ".csv": Format.CSV,
        ".tsv": Format.CSV, ".eml": Format.EMAIL, ".txt": Format.TEXT, ".json": Format.JSON,
        ".jsonl": Format.JSON_LINES, ".ipynb": Format.NOTEBOOK, ".xml": Format.XML,
    }.items()
}  # fmt: skip
_BINARY = {
    BY_SUFFIX[f".{format_.value}"]: format_
    for format_ in (
        Format.PDF, Format.DOCX, Format.PPTX, Format.XLSX, Format.ODT, Format.EPUB, Format.MSG,
        Format.RTF,
    )
}  # fmt: skip
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


def detect_format(
    raw: RawDocument, max_expanded: int, max_ratio: int
) -> tuple[Format, RawDocument]:
    """A document's format, and the document itself: unpacked where it was gzip-ed.

    max_expanded: bytes an archive may hold when unpacked. max_ratio: times its packed size it may be.
    Raises ``DocumentError`` for what is empty, damaged, locked or unreadable.
    """
    _refuse_empty(raw)
    if raw.content.startswith(GZIP):
        raw = gunzipped(raw, max_expanded, max_ratio)
        _refuse_empty(raw)
    return _format(raw, max_expanded, max_ratio), raw


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
            raise _not_read(f"{raw.uri} is {what}, which is not read.")
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
        declared = raw.media_type or "unknown"
        raise _not_read(f"{raw.uri} is of the type {declared}, which is not read.")
    return _unnamed(raw, media_type, head)


def _by_type(media_type: str) -> Format:
    """The format that a media type names, TEXT where it names none."""
    if media_type in _TEXTS:
        return _TEXTS[media_type]
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
