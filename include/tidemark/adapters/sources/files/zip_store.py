"""A zip archive: listed from its directory, unchanged files told by their checksum, nothing unpacked to disk.

An archive is as hostile as whoever made it, so before anything is unpacked its directory is bounded in size
and entries, and all that it claims to unpack to in total; each file in how many times its packed size it
becomes. An archive over a bound cannot be listed, so nothing of it is believed to be gone; a file that
unpacks to absurdly much is no document that grew but an attack, and is EXCLUDED, whatever was there before.
A file's name must stay within the archive, links are not followed, and archives in it are not
opened.
"""

import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import IO, Any, cast
from urllib.parse import unquote, urlsplit

from fsspec.utils import get_protocol

from tidemark.adapters.sources.files.store import Body, Entry, Location, Store
from tidemark.adapters.sources.selection import quoted
from tidemark.domain.documents import Validators
from tidemark.domain.errors import PermanentError, TransientError

MAX_ENTRIES = 100_000
MAX_DIRECTORY_BYTES = 32_000_000
MAX_UNPACKED_BYTES = 20_000_000_000
MAX_RATIO = 200
"""Text packs to a fifth; repetitive logs to a fiftieth. Deflate's own limit is 1,032."""
_SMALL = 1_000_000
"""Bytes that may be unpacked from any ratio."""
_END = struct.Struct("<4s4H2LH")
_END64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR64 = struct.Struct("<4sLQL")


class ZipStore(Store):
    """A ``Store`` over one archive, or one folder in it."""

    def __init__(self, location: Location) -> None:
        """Raises ``TidemarkError`` for an archive that is away, broken or too large to be read."""
        inner, _, outer = location.url.partition("::")
        self._folder = inner.partition("://")[2].strip("/")
        self.place = outer
        self._open = ExitStack()
        try:
            self._archive = self._opened(Location(outer, location.credentials))
        except BaseException:
            self._open.close()
            raise

    def entries(self, problems: list[str]) -> Iterator[Entry]:
        """In order of names; of two with one name the later, as every program unpacks it."""
        infos = self._archive.NameToInfo
        prefix = f"{self._folder}/" if self._folder else ""
        for name in sorted(infos):
            info = infos[name]
            if info.is_dir() or not name.startswith(prefix) or name.startswith("__MACOSX/"):
                continue
            yield self._entry(info, name[len(prefix) :])

    def read(self, entry: Entry, limit: int, held: Validators | None) -> Body:
        try:
            with self._archive.open(entry.key) as file:
                content = file.read(limit + 1)
        except (
            zipfile.BadZipFile,
            zlib.error,
            EOFError,
            NotImplementedError,
            RuntimeError,
        ) as error:
            raise PermanentError(
                f"cannot be unpacked ({error}).", "Make the archive again."
            ) from error
        except OSError as error:
            raise TransientError(
                f"The archive cannot be read ({error.strerror or type(error).__name__})."
            ) from error
        return Body(content, entry.validators, entry.modified_at)

    def close(self) -> None:
        self._open.close()

    def _opened(self, outer: Location) -> zipfile.ZipFile:
        try:
            file = self._open.enter_context(_file(outer))
            _check_directory(file, self.place)
            archive = self._open.enter_context(zipfile.ZipFile(file))
        except FileNotFoundError as error:
            raise PermanentError(
                f"The archive {self.place} is not there.", "Is the share mounted, the path right?"
            ) from error
        except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error) as error:
            raise PermanentError(
                f"{self.place} is no zip archive, or a broken one ({error}).", "Make it again."
            ) from error
        except OSError as error:
            raise TransientError(
                f"The archive {self.place} cannot be read ({error.strerror or type(error).__name__}).",
                "Check that its share or store can be reached, and the credentials.",
            ) from error
        unpacked = sum(info.file_size for info in archive.infolist())
        if len(archive.infolist()) > MAX_ENTRIES or unpacked > MAX_UNPACKED_BYTES:
            raise _refused(self.place)
        return archive

    def _entry(self, info: zipfile.ZipInfo, relative: str) -> Entry:
        changed_at = _time(info)
        return Entry(
            relative,
            f"{self.place}!/{quoted(info.filename)}",
            info.filename,
            Validators(
                size=info.file_size,
                mtime=changed_at.timestamp() if changed_at else None,
                revision=f"{info.CRC:08x}",
            ),
            info.file_size,
            changed_at,
            _refusal(info),
        )


def _file(outer: Location) -> IO[bytes]:
    if get_protocol(outer.url) in {"file", "local"}:
        return open(unquote(urlsplit(outer.url).path, errors="surrogateescape"), "rb")  # noqa: PTH123 - any bytes; closed by the caller
    from tidemark.adapters.sources.files.fsspec_store import file_system

    system: Any = file_system(outer)
    path = system._strip_protocol(outer.url)  # noqa: SLF001 - fsspec's way to read its URLs
    return cast(IO[bytes], system.open(path, "rb"))


def _check_directory(file: IO[bytes], place: str) -> None:
    """Refuse a directory that is too large, before it is read into memory."""
    size = file.seek(0, 2)
    tail_length = min(size, _END.size + 65_535 + _LOCATOR64.size)
    file.seek(size - tail_length)
    tail = file.read(tail_length)
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        raise zipfile.BadZipFile("it has no directory")
    _, _, _, _, entries, directory, _, _ = _END.unpack_from(tail, at)
    locator = at - _LOCATOR64.size
    if locator >= 0 and tail[locator : locator + 4] == b"PK\x06\x07":
        file.seek(_LOCATOR64.unpack_from(tail, locator)[2])
        _, _, _, _, _, _, _, entries, directory, _ = _END64.unpack(file.read(_END64.size))
    if entries > MAX_ENTRIES or directory > MAX_DIRECTORY_BYTES:
        raise _refused(place)
    file.seek(0)


def _refused(place: str) -> PermanentError:
    return PermanentError(
        f"The archive {place} has more than {MAX_ENTRIES:,} entries, or would unpack to more than "
        f"{MAX_UNPACKED_BYTES:,} bytes.",
        "Split it, or give the folder that it was made of.",
    )


def _refusal(info: zipfile.ZipInfo) -> str:
    """Why a file is not to be unpacked, "" when it is."""
    path = PurePosixPath(info.filename)
    if path.is_absolute() or ".." in path.parts or "\\" in info.filename or ":" in path.parts[0]:
        return "has a name that leads out of the archive"
    if stat.S_ISLNK(info.external_attr >> 16):
        return "is a link; links are not followed in an archive"
    if info.flag_bits & 1:
        return "is encrypted"
    if info.file_size > _SMALL and info.file_size > MAX_RATIO * max(info.compress_size, 1):
        return f"unpacks to more than {MAX_RATIO} times its size"
    return ""


def _time(info: zipfile.ZipInfo) -> datetime | None:
    """When it was changed; archives keep a time without a zone, which is taken for UTC."""
    try:
        return datetime(*info.date_time, tzinfo=UTC)
    except ValueError:
        return None
