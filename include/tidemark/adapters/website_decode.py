"""Undoes content encodings without ever making more bytes than allowed."""

import zlib
from collections.abc import Callable

import brotli
import zstandard

ACCEPT_ENCODING = "gzip, deflate, br, zstd"
_MAX_WINDOW_BYTES = 2**27
_ZSTD_STEP_BYTES = 256


class TooLargeError(Exception):
    """More bytes would come out than allowed."""


class BrokenEncodingError(Exception):
    """The bytes are not what their encoding says, or end too early."""


def decode_body(raw: bytes, encodings: str, limit: int) -> bytes:
    """Undo a Content-Encoding header's encodings, last one first, to at most ``limit`` bytes.

    Raises ``TooLargeError`` and ``BrokenEncodingError``.
    """
    for name in reversed([part.strip().lower() for part in encodings.split(",")]):
        if name in {"", "identity"}:
            continue
        decoder = _DECODERS.get(name)
        if decoder is None:
            raise BrokenEncodingError(f"the encoding {name!r} was not asked for")
        try:
            raw = decoder(raw, limit)
        except (zlib.error, brotli.error, zstandard.ZstdError) as error:
            raise BrokenEncodingError(f"the body is no valid {name}") from error
    if len(raw) > limit:
        raise TooLargeError
    return raw


def gunzip(raw: bytes, limit: int) -> bytes:
    """Undo gzip or zlib, of one or several members, to at most ``limit`` bytes.

    Raises ``TooLargeError`` and ``BrokenEncodingError``; ``zlib.error`` for other bytes.
    """
    out = bytearray()
    while raw:
        member = zlib.decompressobj(wbits=47)
        out += member.decompress(raw, limit + 1 - len(out))
        if len(out) > limit:
            raise TooLargeError
        if not member.eof:
            raise BrokenEncodingError("the compressed body ends too early")
        # Some servers pad with zeros; that is no further member.
        raw = member.unused_data.lstrip(b"\0")
    return bytes(out)


def _inflate(raw: bytes, limit: int) -> bytes:
    try:
        return gunzip(raw, limit)
    except zlib.error:
        # "deflate" should be zlib; some servers send it bare.
        member = zlib.decompressobj(wbits=-15)
        out = member.decompress(raw, limit + 1)
        if len(out) > limit:
            raise TooLargeError from None
        if not member.eof:
            raise BrokenEncodingError("the compressed body ends too early") from None
        return out


def _unbrotli(raw: bytes, limit: int) -> bytes:
    decoder = brotli.Decompressor()
    out = bytearray()
    data = raw
    while not decoder.is_finished():
        piece = decoder.process(data, output_buffer_limit=65_536)
        data = b""
        out += piece
        if len(out) > limit:
            raise TooLargeError
        if not piece and not decoder.is_finished():
            raise BrokenEncodingError("the compressed body ends too early")
    return bytes(out)


def _unzstd(raw: bytes, limit: int) -> bytes:
    decoder = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
    out = bytearray()
    while raw:
        frame = decoder.decompressobj()
        # A block of 4 bytes may stand for 128 KiB: small steps keep the overshoot to a few MB.
        for start in range(0, len(raw), _ZSTD_STEP_BYTES):
            out += frame.decompress(raw[start : start + _ZSTD_STEP_BYTES])
            if len(out) > limit:
                raise TooLargeError
            if frame.eof:
                break
        if not frame.eof:
            raise BrokenEncodingError("the compressed body ends too early")
        raw = frame.unused_data + raw[start + _ZSTD_STEP_BYTES :]
    return bytes(out)


_DECODERS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": gunzip,
    "x-gzip": gunzip,
    "deflate": _inflate,
    "br": _unbrotli,
    "zstd": _unzstd,
}
