"""What a partitioner and its worker process say to each other: frames of a length and data, never objects.

The worker reads hostile documents, so what comes from it is taken as data alone and checked.
"""

import json
import struct
from base64 import b64decode, b64encode
from dataclasses import asdict
from datetime import datetime
from typing import Any

from tidemark.adapters.partition.options import PartitionOptions
from tidemark.domain.documents import Element, ElementKind, PartitionedDocument, RawDocument
from tidemark.domain.errors import (
    ConfigurationError,
    DocumentError,
    PermanentError,
    TidemarkError,
    TransientError,
)

LENGTH = struct.Struct("!Q")
READY = b"ready"
MEMORY = "memory"
"""The kind of answer that tells of a document for which the memory did not suffice."""

_ERRORS: dict[str, type[TidemarkError]] = {
    "transient": TransientError,
    "configuration": ConfigurationError,
    "permanent": PermanentError,
}
_KINDS = {kind.value: kind for kind in ElementKind}


def framed(data: bytes) -> bytes:
    """Data with its length before it."""
    return LENGTH.pack(len(data)) + data


def encode_request(raw: RawDocument, seconds: float, boilerplate: frozenset[int] | None) -> bytes:
    """A document to be read within so many seconds; boilerplate only where it is another than before."""
    header = {
        "uri": raw.uri,
        "media_type": raw.media_type,
        "charset": raw.charset,
        "fetched_at": raw.fetched_at.isoformat(),
        "seconds": seconds,
        "furniture": None if boilerplate is None else sorted(boilerplate),
    }
    head = json.dumps(header).encode()
    return framed(LENGTH.pack(len(head)) + head + raw.content)


def decode_request(data: bytes) -> tuple[RawDocument, float, frozenset[int] | None]:
    (length,) = LENGTH.unpack_from(data)
    start = LENGTH.size + length
    header = json.loads(data[LENGTH.size : start])
    boilerplate = header["furniture"]
    raw = RawDocument(
        header["uri"],
        data[start:],
        header["media_type"],
        header["charset"],
        datetime.fromisoformat(header["fetched_at"]),
    )
    return raw, header["seconds"], None if boilerplate is None else frozenset(boilerplate)


def encode_answer(document: PartitionedDocument) -> bytes:
    rows = [
        [e.kind.value, e.text, e.level, e.page_number, e.anchor, e.header_rows, e.syntax]
        for e in document.elements
    ]
    answer = {"title": document.title, "language": document.language, "elements": rows}
    return json.dumps(answer).encode()


def encode_failure(error: TidemarkError) -> bytes:
    kind, stage = "permanent", ""
    if isinstance(error, DocumentError):
        kind, stage = "document", error.stage
    elif isinstance(error, ConfigurationError):
        kind = "configuration"
    elif isinstance(error, TransientError):
        kind = "transient"
    return encode_trouble(kind, error.message, error.hint, stage)


def encode_trouble(kind: str, message: str, hint: str = "", stage: str = "") -> bytes:
    return json.dumps({"error": kind, "message": message, "cure": hint, "stage": stage}).encode()


class OutOfMemory(Exception):  # noqa: N818 - an answer, not a fault of the program
    """The worker says that its memory did not suffice."""


def decode_answer(data: bytes) -> PartitionedDocument:
    """The document in an answer.

    Raises the error that the answer tells of, ``OutOfMemory``, and ``ValueError`` for what is no answer.
    """
    try:
        answer = json.loads(data)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(answer, dict):
        raise ValueError("it is no object")
    if "error" in answer:
        raise _failure(answer)
    title, language, rows = answer.get("title"), answer.get("language"), answer.get("elements")
    if not (isinstance(title, str) and isinstance(language, str | None) and isinstance(rows, list)):
        raise ValueError("it has other fields")
    return PartitionedDocument(title, tuple(map(_element, rows)), language)


def _failure(answer: dict[str, Any]) -> Exception:
    message, hint = str(answer.get("message")), str(answer.get("cure"))
    kind = answer["error"]
    if kind == MEMORY:
        return OutOfMemory(message)
    if kind == "document":
        return DocumentError(str(answer.get("stage")), message, hint)
    return _ERRORS.get(str(kind), PermanentError)(message, hint)


def _element(row: object) -> Element:
    if not isinstance(row, list) or len(row) != 7:
        raise ValueError("an element has other fields")
    kind, text, level, page, anchor, header_rows, syntax = row
    typed = (
        isinstance(text, str)
        and isinstance(level, int | None)
        and isinstance(page, int | None)
        and isinstance(anchor, str | None)
        and isinstance(header_rows, int)
        and isinstance(syntax, str)
    )
    if not typed or kind not in _KINDS:
        raise ValueError("an element has values of other types")
    return Element(_KINDS[kind], text, level, page, anchor, header_rows, syntax)


def encode_options(options: PartitionOptions) -> str:
    """Options as one argument of a command line."""
    return b64encode(json.dumps(asdict(options)).encode()).decode()


def decode_options(argument: str) -> PartitionOptions:
    return PartitionOptions(**json.loads(b64decode(argument)))
