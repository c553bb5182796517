"""Canonical encoding and the hashes made from it.

A hash outlives the process, the Python version and the machine that made it, so it is taken over a
canonical encoding (sorted keys, no insignificant white space, UTF-8) and never over a ``repr``.
"""

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TypeAlias

Canonical: TypeAlias = (
    "bool | int | float | str | Sequence[Canonical] | Mapping[str, Canonical] | None"
)

DIGEST_BYTES = 20


def canonical(value: Canonical) -> bytes:
    """Encode ``value`` so that equal values always give equal bytes.

    Raises ``TypeError`` for anything JSON has no form for and ``ValueError`` for NaN and infinities.
    """
    return json.dumps(
        value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    ).encode("utf-8", "surrogatepass")


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
