"""Files that hold other files: what a ZIP, a compound (OLE) or a gzip-ed file is, within bounds."""

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

from tidemark.adapters.media import BY_SUFFIX
from tidemark.domain.errors import DocumentError
from tidemark.domain.model import RawDocument


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
    "spreadsheet": "an OpenDocument spreadsheet (ODS): save it as .xlsx or .csv",
    "presentation": "an OpenDocument presentation (ODP): save it as .pptx",
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


def unpacks_too_far(name: str, packed: int, expanded: str) -> DocumentError:
    """That a file is, when unpacked, over the bounds."""
    return DocumentError(
        "partition",
        f"{name} would unpack from {packed:,} to {expanded} bytes, over the limit.",
        "Exclude it from the source, or split it: this limit is no setting.",
    )


def zip_format(raw: RawDocument, max_expanded: int, max_ratio: int) -> Format:
    """The format of a ZIP file. Raises ``DocumentError`` for one that is no document, locked or too large."""
    packed = len(raw.content)
    try:
        with ZipFile(BytesIO(raw.content)) as archive:
            entries = archive.infolist()
            expanded = sum(entry.file_size for entry in entries)
            if expanded > max_expanded or expanded > max_ratio * max(packed, 1024):
                raise unpacks_too_far(raw.uri, packed, f"{expanded:,}")
            if len(entries) > _MAX_ENTRIES:
                raise unpacks_too_far(raw.uri, packed, f"{len(entries):,} files and {expanded:,}")
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
    for word, what in _OTHER_OPEN_DOCUMENTS.items():
        if word in mimetype:
            said, _, cure = what.partition(": ")
            raise DocumentError(
                "partition",
                f"{raw.uri} is {said}, which is not read.",
                f"{cure[0].upper()}{cure[1:]}.",
            )
    raise DocumentError(
        "partition", f"{raw.uri} is an archive, not a document.", f"Unpack it: {READABLE} are read."
    )


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
    raise DocumentError(
        "partition",
        f"{raw.uri} is a compound file (OLE) of a kind that is not read.",
        f"Exclude it from the source, or convert it: {READABLE} are read.",
    )


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
                    raise unpacks_too_far(raw.uri, len(raw.content), f"more than {bound:,}")
                parts.append(part)
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(raw.uri, error) from error
    content = b"".join(parts)
    if content.startswith((GZIP, ZIP)) or content[257:262] == b"ustar":
        raise DocumentError(
            "partition",
            f"{raw.uri} is an archive, not a document.",
            f"Unpack it: {READABLE} are read.",
        )
    path = unquote(urlsplit(raw.uri).path).lower().removesuffix(".gz")
    stem, dot, suffix = path.rpartition("/")[2].rpartition(".")
    named = BY_SUFFIX.get(f".{suffix}") if stem and dot else None
    kept = "" if "gzip" in raw.media_type or "octet-stream" in raw.media_type else raw.media_type
    return replace(raw, content=content, media_type=named or kept)
