"""The process that reads documents for ``SandboxedPartitioner``: bounded, without secrets, killed at will.

``python -m tidemark.adapters.partition.sandbox.worker OPTIONS MEMORY FILES PARENT DIE`` reads requests from
its standard input, writes answers to its standard output (``protocol``), and ends with its input.
"""

import ctypes
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

from tidemark.adapters.partition.sandbox import protocol
from tidemark.adapters.partition.unstructured import virtual_bytes
from tidemark.domain.documents import PartitionedDocument, RawDocument
from tidemark.domain.errors import TidemarkError

Partition = Callable[[RawDocument, frozenset[int]], PartitionedDocument]

_PARENT_DEATH_SIGNAL = 1
_GRACE = 10
"""Seconds after which a worker ends itself, where nobody is left to end it."""
_FILE_BYTES = 2**30
_WATCH_SECONDS = 2.0


def reader(options: str) -> Partition:
    """The real reader, with what most documents need loaded before the first comes."""
    import tidemark.adapters.partition.html.reader  # noqa: F401
    from tidemark.adapters.partition.partitioner import DocumentPartitioner

    plain = DocumentPartitioner(protocol.decode_options(options))

    def partition(raw: RawDocument, boilerplate: frozenset[int]) -> PartitionedDocument:
        return plain.with_boilerplate(boilerplate).partition(raw)

    return partition


def serve(make: Callable[[str], Partition], arguments: list[str]) -> None:
    """Answer requests until the input ends."""
    options, memory, files, parent, die_too = arguments
    _follow(int(parent), at_once=die_too == "1")
    requests = sys.stdin.buffer
    # Whatever a parser prints must not be taken for an answer.
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        partition = make(options)
        _limit(int(memory), int(files))
        _send(answers, protocol.READY)
        boilerplate: frozenset[int] = frozenset()
        while (data := _receive(requests)) is not None:
            raw, seconds, changed = protocol.decode_request(data)
            del data
            boilerplate = boilerplate if changed is None else changed
            signal.alarm(int(seconds) + _GRACE)
            answer = _answer(partition, raw, boilerplate)
            signal.alarm(0)
            _send(answers, answer)


def _answer(partition: Partition, raw: RawDocument, boilerplate: frozenset[int]) -> bytes:
    try:
        return protocol.encode_answer(partition(raw, boilerplate))
    except MemoryError:
        return protocol.encode_trouble(protocol.MEMORY, "out of memory")
    except TidemarkError as error:
        # Parsers in C say it in their own words, which the reader takes for damage.
        if _is_memory(error) or _is_memory(error.__cause__):
            return protocol.encode_trouble(protocol.MEMORY, "out of memory")
        return protocol.encode_failure(error)


def _is_memory(error: BaseException | None) -> bool:
    return isinstance(error, MemoryError) or "memory allocation" in str(error).lower()


def _follow(parent: int, *, at_once: bool) -> None:
    """End with the process that started this one."""
    if at_once and sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH_SECONDS)
        os._exit(0)

    if os.getppid() != parent:
        sys.exit(0)
    threading.Thread(target=watch, daemon=True).start()


def _limit(memory: int, files: int) -> None:
    """Bound what this process may take from now on; limits that a system lacks are passed over."""
    bounds = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, files),
        (resource.RLIMIT_FSIZE, _FILE_BYTES),
    ]
    base = virtual_bytes()
    if memory and base:
        bounds.append((resource.RLIMIT_AS, base + memory))
    for kind, bound in bounds:
        with suppress(OSError, ValueError):
            _, hard = resource.getrlimit(kind)
            most = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
            # That of memory is moved up by what is loaded later, for all documents.
            resource.setrlimit(kind, (most, hard if kind == resource.RLIMIT_AS else most))


def _receive(stream: BinaryIO) -> bytes | None:
    head = stream.read(protocol.LENGTH.size)
    if len(head) < protocol.LENGTH.size:
        return None
    (length,) = protocol.LENGTH.unpack(head)
    data = stream.read(length)
    return data if len(data) == length else None


def _send(stream: BinaryIO, data: bytes) -> None:
    stream.write(protocol.framed(data))
    stream.flush()


if __name__ == "__main__":
    serve(reader, sys.argv[1:])
