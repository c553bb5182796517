"""Undoes content encodings piece by piece, without ever making more bytes than allowed."""

import zlib
from collections.abc import Callable, Iterable, Iterator

import brotli
import zstandard

ACCEPT_ENCODING = "gzip, deflate, br, zstd"
_MAX_WINDOW_BYTES = 2**27
_PIECE_BYTES = 65_536
_ZSTD_STEP_BYTES = 256

Pieces = Iterable[bytes]


class TooLargeError(Exception):
    """More bytes would come out than allowed."""


class BrokenEncodingError(Exception):
    """The bytes are not what their encoding says, or end too early."""


def decode_body(raw: bytes, encodings: str, limit: int) -> bytes:
    """Undo a Content-Encoding header's encodings, last one first, to at most ``limit`` bytes.

    Raises ``TooLargeError`` and ``BrokenEncodingError``.
    """
    if not encodings and len(raw) <= limit:
        return raw
    return b"".join(decoded([raw], encodings, limit))


def decoded(pieces: Pieces, encodings: str, limit: int) -> Iterator[bytes]:
    """Stream what ``decode_body`` gives; of the memory it takes the limit is no part.

    Raises as it does, at the piece that is too many or broken.
    """
    for name in reversed([part.strip().lower() for part in encodings.split(",")]):
        if name in {"", "identity"}:
            continue
        decoder = _DECODERS.get(name)
        if decoder is None:
            raise BrokenEncodingError(f"the encoding {name!r} was not asked for")
        pieces = _bounded(_undone(decoder, name, pieces), limit)
    yield from _bounded(pieces, limit)


def gunzipped(pieces: Pieces, limit: int) -> Iterator[bytes]:
    """Undo gzip or zlib, of one or several members, to at most ``limit`` bytes.

    Raises ``TooLargeError`` and ``BrokenEncodingError``.
    """
    return _bounded(_undone(_gunzip, "gzip", pieces), limit)


def _undone(
    decoder: Callable[[Pieces], Iterator[bytes]], name: str, raw: Pieces
) -> Iterator[bytes]:
    try:
        yield from decoder(raw)
    except (zlib.error, brotli.error, zstandard.ZstdError) as error:
        raise BrokenEncodingError(f"the body is no valid {name}") from error


def _bounded(pieces: Pieces, limit: int) -> Iterator[bytes]:
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > limit:
            raise TooLargeError
        yield piece


def _cut(pieces: Pieces, size: int) -> Iterator[bytes]:
    """The same bytes in short pieces: decoders copy what they have not got to yet."""
    for piece in pieces:
        for start in range(0, len(piece), size):
            yield piece[start : start + size]


def _end(*, whole: bool) -> None:
    if not whole:
        raise BrokenEncodingError("the compressed body ends too early")


def _gunzip(pieces: Pieces, wbits: int = 47) -> Iterator[bytes]:
    member: zlib._Decompress | None = None
    for piece in _cut(pieces, _PIECE_BYTES):
        data = piece
        while data:
            if member is None or member.eof:
                # Some servers pad with zeros; that is no further member.
                data = data.lstrip(b"\0") if member else data
                if not data:
                    break
                member = zlib.decompressobj(wbits)
            out = member.decompress(data, _PIECE_BYTES)
            data = member.unconsumed_tail or member.unused_data
            if out:
                yield out
    # What the last piece holds back comes out without further input.
    while member is not None and not member.eof and (rest := member.decompress(b"", _PIECE_BYTES)):
        yield rest
    _end(whole=member is None or member.eof)


def _inflate(pieces: Pieces) -> Iterator[bytes]:
    # "deflate" should be zlib; some servers send it bare. The first two bytes tell.
    first = b""
    rest = iter(pieces)
    while len(first) < 2:
        piece = next(rest, None)
        if piece is None:
            break
        first += piece
    is_zlib = len(first) >= 2 and first[0] & 15 == 8 and (first[0] * 256 + first[1]) % 31 == 0
    return _gunzip(_chained(first, rest), 15 if is_zlib else -15)


def _chained(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _unbrotli(pieces: Pieces) -> Iterator[bytes]:
    decoder = brotli.Decompressor()
    empty = True
    for piece in pieces:
        empty = False
        out = decoder.process(piece, output_buffer_limit=_PIECE_BYTES)
        while out:
            yield out
            if decoder.is_finished():
                break
            out = decoder.process(b"", output_buffer_limit=_PIECE_BYTES)
    _end(whole=empty or decoder.is_finished())


def _unzstd(pieces: Pieces) -> Iterator[bytes]:
    decoder = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
    frame = None
    # A block of 4 bytes may stand for 128 KiB: small steps keep the overshoot to a few MB.
    for step in _cut(pieces, _ZSTD_STEP_BYTES):
        data = step
        while data:
            if frame is None or frame.eof:
                frame = decoder.decompressobj()
            out = frame.decompress(data)
            data = frame.unused_data if frame.eof else b""
            if out:
                yield out
    _end(whole=frame is None or frame.eof)


_DECODERS: dict[str, Callable[[Pieces], Iterator[bytes]]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _inflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}
