import gzip
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard

from tidemark.adapters.sources.website.http import BrokenEncodingError, TooLargeError, decode_body

TEXT = b"All this is said at length. " * 1_000


def bare_deflate(data: bytes) -> bytes:
    squeezer = zlib.compressobj(wbits=-15)
    return squeezer.compress(data) + squeezer.flush()


ENCODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstandard.compress,
}
every_encoding = pytest.mark.parametrize(
    ("name", "encode"), [*ENCODERS.items(), ("deflate", bare_deflate), ("X-GZIP", gzip.compress)]
)


@every_encoding
def test_it_undoes_the_encoding(name: str, encode: Callable[[bytes], bytes]) -> None:
    assert decode_body(encode(TEXT), name, len(TEXT)) == TEXT
    assert decode_body(encode(b""), name, 10) == b""


@every_encoding
def test_it_stops_a_bomb_before_it_goes_off(name: str, encode: Callable[[bytes], bytes]) -> None:
    bomb = encode(bytes(3_000_000))
    with pytest.raises(TooLargeError):
        decode_body(bomb, name, 10_000)


@every_encoding
def test_a_body_that_breaks_off_is_no_body(name: str, encode: Callable[[bytes], bytes]) -> None:
    with pytest.raises(BrokenEncodingError):
        decode_body(encode(TEXT)[:-6], name, 10**6)


@pytest.mark.parametrize("name", ENCODERS)
def test_a_body_that_is_something_else_is_no_body(name: str) -> None:
    with pytest.raises(BrokenEncodingError):
        decode_body(b"This was never encoded at all.", name, 10**6)


def test_it_undoes_several_encodings_and_several_members() -> None:
    assert decode_body(brotli.compress(gzip.compress(TEXT)), "gzip, br", 10**6) == TEXT
    assert decode_body(gzip.compress(b"a") + gzip.compress(b"b") + b"\0\0", "gzip", 9) == b"ab"
    assert decode_body(zstandard.compress(b"a") + zstandard.compress(b"b"), "zstd", 9) == b"ab"


def test_it_leaves_plain_bodies_alone_and_knows_what_it_never_asked_for() -> None:
    assert decode_body(TEXT, "", len(TEXT)) == decode_body(TEXT, "identity", len(TEXT)) == TEXT
    with pytest.raises(TooLargeError):
        decode_body(TEXT, "", 10)
    with pytest.raises(BrokenEncodingError, match="compress"):
        decode_body(TEXT, "compress", 10**6)
