"""Canonical encoding and the hashes made from it.

A hash outlives the process, the Python version and the machine that made it, so it is taken over a
canonical encoding (sorted keys, no insignificant white space, UTF-8) and never over a ``repr``.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b
from struct import pack
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import UUID

Canonical: TypeAlias = (
    "bool | int | float | str | Sequence[Canonical] | Mapping[str, Canonical] | None"
)

if TYPE_CHECKING:
    from tidemark.domain.chunks import SparseVector


DIGEST_BYTES = 20


def canonical(value: Canonical) -> bytes:
    """Encode ``value`` so that equal values always give equal bytes.

    Raises ``TypeError`` for anything JSON has no form for and ``ValueError`` for NaN and infinities.
    """
    return json.dumps(
        value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    ).encode("utf-8", "surrogatepass")


def as_json(value: Any, *names: str) -> Any:
    """A value as JSON has it: ids, times and names of an enumeration as texts, a record by its fields.

    names: of the fields that are wanted, in their order; all when left out.
    """
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): as_json(one) for key, one in value.items()}
    if isinstance(value, Iterable):
        return [as_json(one) for one in value]
    return {name: as_json(getattr(value, name)) for name in names or value.__slots__}


def digest(data: bytes) -> str:
    """Hash bytes; 40 hexadecimal digits (BLAKE2b, 160 bits)."""
    return blake2b(data, digest_size=DIGEST_BYTES).hexdigest()


def digest_of(value: Canonical) -> str:
    """Hash the canonical encoding of ``value``; 40 hexadecimal digits."""
    return digest(canonical(value))


def digest_text(text: str) -> str:
    """Hash a text as it is; 40 hexadecimal digits."""
    return digest(text.encode("utf-8", "surrogatepass"))


def fingerprint(stage: str, options: Mapping[str, Canonical], upstream: str = "") -> str:
    """Fingerprint one stage: its name, its versions and options, chained to the stage before it.

    16 hexadecimal digits: long enough to tell configurations apart, short enough for a file name.
    """
    return digest_of({"stage": stage, "options": options, "upstream": upstream})[:16]


# Checksums: is what is stored of a document what was written, without comparing it piece by piece?
#
# A checksum does not depend on the order of what it was made of, so that a stream in any order can be added
# up; parts are added modulo 2^128, where equal sums of different parts are as good as impossible.

_MODULUS = 1 << 128

UNKNOWN = "?"
"""Stands in for a vector's hash where none is known (points written before they were hashed)."""


def vector_hash(vector: Sequence[float]) -> str:
    """A short hash of a dense vector (16 hex digits), the same before and after it is stored.

    It is made of the vector's length and of the signs of its numbers (below, at or above zero): stores
    normalise vectors and round their numbers, which leaves the signs as they are. Vectors of two models, or
    of two texts, do not agree in all of some hundred signs.
    """
    # A list, which is twice as fast as a generator here: an audit does this for every point.
    signs = bytes([1 if number > 0 else 0 if number == 0 else 2 for number in vector])
    return blake2b(len(vector).to_bytes(4, "big") + signs, digest_size=8).hexdigest()


def lexical_hash(vector: "SparseVector | None") -> str:
    """A short hash of a lexical vector (16 hex digits), the same before and after it is stored.

    In any order, and of numbers of 32 bits, which is what stores keep of them. None is the same as empty:
    stores have no vector without a word.
    """
    indices, values = (vector.indices, vector.values) if vector is not None else ((), ())
    ordered = tuple(sorted(indices))
    if ordered != indices:
        values = tuple(value for _, value in sorted(zip(indices, values, strict=True)))
    count = len(ordered)
    return blake2b(pack(f"<{count}I{count}f", *ordered, *values), digest_size=8).hexdigest()


def vectors_hash(dense: Sequence[float], lexical: "SparseVector | None") -> str:
    """The hash of both vectors of a point, one after the other: each can be told from it."""
    return f"{vector_hash(dense)}.{lexical_hash(lexical)}"


def are_known(hashed: str | None) -> bool:
    """Does a ``ChunkRecord.vector_hash`` tell of both vectors?"""
    return hashed is not None and "." in hashed


def agree(known: str | None, found: str) -> bool:
    """Are two hashes of vectors the same, as far as both tell?"""
    if known is None:
        return True
    parts = zip(known.split("."), found.split("."), strict=False)
    return all(a == b for a, b in parts)


def point_part(point_id: UUID, payload_hash: str, vector: str) -> int:
    """What one point adds to its document's checksum; ``vector``: its ``vectors_hash``."""
    return _part(b"p", point_id, f"{payload_hash}.{vector}")


def section_part(section_id: UUID, payload_hash: str) -> int:
    """What one section adds to its document's checksum."""
    return _part(b"s", section_id, payload_hash)


def add(*parts: int) -> int:
    """The sum of parts, or of sums of parts."""
    return sum(parts) % _MODULUS


def checksum(parts: Iterable[int]) -> str:
    """The checksum of a document, 32 hex digits; "0" * 32 for nothing."""
    return f"{sum(parts) % _MODULUS:032x}"


def _part(kind: bytes, key: UUID, what: str) -> int:
    return int.from_bytes(blake2b(kind + key.bytes + what.encode(), digest_size=16).digest(), "big")
